"""Pictures and short cards, made of text alone: the same for report, notebooks and files, without another library."""

from holdfast.pictures.charts import bands, bars, chosen_rows, curves, hundred, line_over_time, parts, points, spreads
from holdfast.pictures.studies import Layer, five, plane
from holdfast.pictures.svg import Picture, card, number, rows_of, table_of

__all__ = [
    "Layer",
    "Picture",
    "bands",
    "bars",
    "card",
    "chosen_rows",
    "curves",
    "five",
    "hundred",
    "line_over_time",
    "number",
    "parts",
    "plane",
    "points",
    "rows_of",
    "spreads",
    "table_of",
]
