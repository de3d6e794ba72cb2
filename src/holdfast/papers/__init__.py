"""The three papers behind the library, item by item: what each prints, what is computed here, and whether it holds."""

from holdfast.papers.catalogue import ITEMS, Item, find, run
from holdfast.papers.reproduction import Claim, Findings, Reproduction, Row, Study

__all__ = ["ITEMS", "Claim", "Findings", "Item", "Reproduction", "Row", "Study", "find", "run"]
