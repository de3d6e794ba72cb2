"""Tables of sums and means: from numbers in records to files that add up, and what analysts read from them."""

import csv
import json
import math
import re
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import browser
import holdfast as hf
from holdfast.arguments import Refused
from holdfast.release.records.sources import in_steps
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec
from holdfast.release.spec.table import Added
from holdfast.release.standalone_verifier import verify as standalone
from holdfast.release.table.laid import laid

DOMAIN = "region,place\nA,A1\nA,A2\nB,B1\nB,B2\nB,B3\n"
HECTARES = {"sum": "hectares", "between": [0, 500], "step": 0.5}
TURNOVER = {"sum": "turnover", "between": [-1000, 20000], "step": 100}
FIGURES = ["count", HECTARES, {"mean": "hectares"}, TURNOVER]


def farms(rows=300, seed=1):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "farm": [f"f{i // 2}" for i in range(rows)],
            "place": rng.choice(["A1", "A2", "B1", "B2", "B3"], rows, p=[0.4, 0.3, 0.2, 0.09, 0.01]),
            "hectares": np.round(rng.gamma(2, 30, rows), 2),
            "turnover": rng.normal(5000, 6000, rows).astype(int),
        }
    )


def spec(folder, privacy=None, data=None, figures=FIGURES, hold=("consistent", "nonnegative"), **table):
    (folder / "domain.csv").write_text(DOMAIN)
    return {
        "title": "Farms",
        "output": str(folder / "out"),
        "ledger": str(folder / "ledger.sqlite"),
        "data": {"name": "farms", "domain": str(folder / "domain.csv"), **(data or {})},
        "privacy": privacy or {"epsilon": 3.0},
        "table": {"hierarchy": ["region", "place"], "root": "country", "figures": figures, **table},
        "hold": list(hold),
    }


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("farms")
    return hf.job(spec(folder)).release(farms())


def rows_of(release):
    with (release.folder / "table.csv").open() as file:
        return list(csv.DictReader(file))


# --- numbers as steps ----------------------------------------------------------------------------------------------


def all_steps(values, kind, added):
    with duckdb.connect() as engine:
        words = in_steps("x", kind, added)
        cast = f"SELECT CAST(v AS {kind}) AS x, i FROM (SELECT unnest(?) AS v, generate_subscripts(?, 1) AS i)"
        return [row[0] for row in engine.execute(f"SELECT {words} FROM ({cast}) ORDER BY i", [values] * 2).fetchall()]


def steps_of(value, kind, added):
    with duckdb.connect() as engine:
        words = in_steps("x", kind, added)
        return engine.execute(f"SELECT {words} FROM (SELECT CAST(? AS {kind}) AS x)", [value]).fetchone()[0]


def by_hand(number, added):
    low, high = (Fraction(end) for end in added.between)
    inside = min(max(Fraction(number), low), high)
    return math.floor(inside / added.unit + Fraction(1, 2))


ADDED = [
    Added(sum="x", between=(0, 10), step=1),
    Added(sum="x", between=(-2.5, 7.5), step=0.5),
    Added(sum="x", between=(0, 1), step=0.01),
    Added(sum="x", between=(100, 900), step=100),
    Added(sum="x", between=(-(10**15), 10**15), step=10**9),
]


@pytest.mark.parametrize("added", ADDED, ids=str)
@settings(max_examples=10)
@given(numbers=st.lists(st.decimals(min_value=-(10**6), max_value=10**6, places=3), min_size=1, max_size=50))
def test_a_number_is_the_nearest_step_within_its_bounds(added, numbers):
    expected = [by_hand(number, added) for number in numbers]
    assert all_steps(numbers, "DECIMAL(18, 3)", added) == expected
    assert all_steps([str(number) for number in numbers], "VARCHAR", added) == expected
    assert all_steps([float(number) for number in numbers], "DOUBLE", added) == expected
    whole = [int(number) for number in numbers]
    assert all_steps(whole, "BIGINT", added) == [by_hand(number, added) for number in whole]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((1e300, "DOUBLE"), (-1e300, "DOUBLE"), (2**126, "HUGEINT"), ("1e40", "VARCHAR"), (10**17, "BIGINT")),
        *(("9" * 30, "VARCHAR"), (3.4e38, "FLOAT"), (5e-324, "DOUBLE"), ("-0", "VARCHAR"), (10**36, "DECIMAL(38, 0)")),
    ],
)
def test_numbers_of_any_size_end_within_the_bounds(value, kind):
    for added in ADDED:
        low, high = added.ends
        found = steps_of(value, kind, added)
        assert low <= found <= high
        if abs(float(value)) > 1e16:
            assert found == (high if float(value) > 0 else low)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *((math.nan, "DOUBLE"), (math.inf, "DOUBLE"), (-math.inf, "FLOAT"), (None, "DOUBLE")),
        *(("n/a", "VARCHAR"), ("", "VARCHAR"), ("1,5", "VARCHAR"), ("nan", "VARCHAR"), ("inf", "VARCHAR")),
    ],
)
def test_what_is_no_finite_number_is_none(value, kind):
    assert steps_of(value, kind, ADDED[0]) is None


def test_binary_fractions_mean_their_decimals():
    """0.285 is below 0.285 as a double, and still half a hundredth above 0.28."""
    cents = Added(sum="x", between=(0, 1), step=0.01)
    assert [steps_of(x, "DOUBLE", cents) for x in (0.285, 0.145, 0.1 + 0.2, 0.07)] == [29, 15, 30, 7]


# --- counting ------------------------------------------------------------------------------------------------------


def truth_of(frame, column, added):
    places = ["A1", "A2", "B1", "B2", "B3"]
    found = dict.fromkeys(places, 0)
    for place, number in frame.select("place", column).iter_rows():
        found[place] += by_hand(str(number), added)
    return [found[place] for place in places]


@pytest.mark.parametrize("how", ["frame", "lazy", "csv", "parquet", "sqlite"])
def test_every_source_adds_up_the_same(tmp_path, how):
    frame, source = farms(), tmp_path / f"farms.{how}"
    if how == "csv":
        frame.write_csv(source)
    elif how == "parquet":
        frame.write_parquet(source)
    elif how == "sqlite":
        import sqlite3

        with sqlite3.connect(source) as base:
            base.execute("CREATE TABLE farms (farm TEXT, place TEXT, hectares REAL, turnover INTEGER)")
            base.executemany("INSERT INTO farms VALUES (?, ?, ?, ?)", frame.iter_rows())
    given_one = {"frame": frame, "lazy": frame.lazy(), "sqlite": f"sqlite:///{source}"}.get(how, source)
    data = {"rows_are_records": True}
    shapes, _ = laid(read_spec(spec(tmp_path, data=data)))
    counts, hectares, turnover = tabulate(shapes, given_one)
    assert counts.sum() == 300
    assert hectares.tolist() == truth_of(frame, "hectares", shapes.tables[1].layout.asked.sum_of)
    assert turnover.tolist() == truth_of(frame, "turnover", shapes.tables[2].layout.asked.sum_of)


def test_of_a_person_only_the_kept_records_are_added(tmp_path):
    unit = {"column": "farm", "max_records": 1}
    shapes, _ = laid(read_spec(spec(tmp_path, privacy={"epsilon": 1.0, "unit": unit})))
    frame = pl.DataFrame({"farm": ["a"] * 4 + ["b"], "place": ["A1"] * 5, "hectares": [7.0] * 5, "turnover": [300] * 5})
    counts, hectares, turnover = tabulate(shapes, frame)
    assert (counts[0], hectares[0], turnover[0]) == (2, 28, 6)


def test_a_missing_number_stops_the_release_or_drops_its_record(tmp_path):
    frame = farms().with_columns(
        pl.when(pl.col("farm") == "f3").then(None).otherwise(pl.col("hectares")).alias("hectares")
    )
    shapes, _ = laid(read_spec(spec(tmp_path)))
    with pytest.raises(Refused, match=r"'hectares' of some record is missing, or no finite number"):
        tabulate(shapes, frame)
    shapes, _ = laid(read_spec(spec(tmp_path, data={"nulls": "drop"})))
    counts, hectares, _ = tabulate(shapes, frame)
    kept = frame.filter(pl.col("farm") != "f3")
    assert counts.sum() == kept.height == 298
    assert hectares.tolist() == truth_of(kept, "hectares", shapes.tables[1].layout.asked.sum_of)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda frame: frame.drop("hectares"), "no column 'hectares'"),
        (lambda frame: frame.with_columns(pl.lit("big").alias("hectares")), "missing, or no finite number"),
        (lambda frame: frame.with_columns(pl.lit(math.nan).alias("hectares")), "missing, or no finite number"),
        (lambda frame: frame.with_columns(pl.lit(math.inf).alias("hectares")), "missing, or no finite number"),
        (lambda frame: frame.with_columns(pl.lit(True).alias("hectares")), "has the type BOOLEAN; numbers are needed"),
    ],
)
def test_columns_that_are_no_numbers_are_refused(tmp_path, change, words):
    shapes, _ = laid(read_spec(spec(tmp_path)))
    with pytest.raises(Refused, match=words) as refusal:
        tabulate(shapes, change(farms()))
    assert "f3" not in str(refusal.value)


# --- the spec ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figures", "more", "words"),
    [
        ([{"sum": "x"}], {}, "needs public bounds"),
        ([{"sum": "x", "between": [5, 5]}], {}, "lower bound must be below"),
        ([{"sum": "x", "between": [10, 0]}], {}, "lower bound must be below"),
        ([{"sum": "x", "between": [0, 1050], "step": 100}], {}, "multiples of the step"),
        ([{"sum": "x", "between": [0, 10**16], "step": 10**9}], {}, "bounds lie within"),
        ([{"sum": "x", "between": [0, 10**12]}], {}, "at most 10\\^9 are kept"),
        ([{"sum": "x y", "between": [0, 1]}], {}, "letters, digits and _"),
        ([{"sum": "place", "between": [0, 1]}], {}, "tells rows of the table apart"),
        ([{"sum": "value", "between": [0, 1]}], {}, "has a column 'value' already"),
        ([{"mean": "x"}], {}, "a mean needs count"),
        (["count", {"mean": "x"}], {}, "a mean needs count"),
        (["count", "count"], {}, "listed twice"),
        ([], {}, "at least one entry"),
        (["median"], {}, "must be count"),
        ([{"sum": "x", "mean": "x"}], {}, "found sum and mean"),
        (["count", HECTARES], {"hold": ["consistent", {"exact": ["region"]}]}, "exact speaks of counts"),
        (["count", HECTARES], {"numbers": "real"}, "have counts alone"),
        (["count", HECTARES], {"data": {"count": "n"}}, "single records"),
    ],
)
def test_figures_that_cannot_be_are_refused(tmp_path, figures, more, words):
    with pytest.raises(Refused, match=words):
        hf.job(spec(tmp_path, figures=figures, **more))


def test_step_and_bounds_may_be_fractions(tmp_path):
    (table,) = laid(read_spec(spec(tmp_path, figures=[{"sum": "x", "between": [-0.3, 0.7], "step": 0.1}])))[0].tables
    added = table.layout.asked.sum_of
    assert (added.ends, added.most, added.unit) == ((-3, 7), 7, Fraction(1, 10))
    assert Decimal("0.1") == added.step


# --- the files -----------------------------------------------------------------------------------------------------


def test_one_file_has_all_figures_and_each_adds_up(released):
    rows = rows_of(released)
    three = [f"{name}{end}" for name in ("hectares", "hectares_mean", "turnover") for end in ("", "_low", "_high")]
    assert list(rows[0]) == ["level", "country", "region", "place", "value", "low", "high", *three]
    for figure, step in (("value", 1), ("hectares", Fraction(1, 2)), ("turnover", 100)):
        numbers = [Fraction(row[figure]) for row in rows]
        assert all((number / step).denominator == 1 for number in numbers)
        regions = {row["region"]: number for row, number in zip(rows, numbers, strict=True) if row["level"] == "region"}
        assert numbers[0] == sum(regions.values())
        for region, total in regions.items():
            inside = [
                n for row, n in zip(rows, numbers, strict=True) if row["level"] == "place" and row["region"] == region
            ]
            assert total == sum(inside)
    assert min(float(row["hectares"]) for row in rows) >= 0


def test_means_are_sums_over_counts_and_left_out_where_there_may_be_no_record(released):
    told = [row for row in rows_of(released) if row["hectares_mean"]]
    left_out = [row for row in rows_of(released) if not row["hectares_mean"]]
    for row in told:
        assert float(row["hectares_mean"]) == pytest.approx(float(row["hectares"]) / float(row["value"]))
        assert 0 <= float(row["hectares_mean_low"]) <= float(row["hectares_mean_high"]) <= 500
        assert float(row["low"]) > 0
    assert told
    assert all(not row["hectares_mean_low"] and not row["hectares_mean_high"] for row in left_out)


def test_both_verifiers_find_it_as_certified(released):
    assert hf.load(released.folder).certificate.tables[1].figure == "hectares"
    certificate = json.loads((released.folder / "certificate.json").read_text())
    assert [each["sum_of"] and each["sum_of"]["step"] for each in certificate["tables"]] == [None, "1/2", "100"]
    assert all(wrong is None for _, _, wrong in standalone.rule_book(str(released.folder), certificate, ()))


def test_an_analyst_reads_it_in_the_unit_of_the_column(released):
    rows, table = rows_of(released), released.table("hectares")
    found = table.estimate({"region": "A"})
    row = next(row for row in rows if row["region"] == "A" and row["level"] == "region")
    assert [found.value, found.low, found.high] == [float(row[f"hectares{end}"]) for end in ("", "_low", "_high")]
    assert table.estimate({"place": ["A1", "A2"]}).value == found.value
    narrow = table.estimate({"region": "A"}, confidence=0.5)
    assert found.low <= narrow.low <= narrow.high <= found.high
    assert released.table().values[0] == float(rows[0]["value"])
    errors = table.errors(400)
    assert errors.std(axis=0).max() == pytest.approx(found.standard_error, rel=1)
    part = table.ratio({"region": "A"}, {"country": "country"})
    assert 0 <= part.low <= part.value <= part.high <= 1
    assert set(released.frame("polars").columns) == set(rows[0])
    assert released.table("turnover").interval(0.5).shape == (8, 2)


def test_a_mean_of_any_rows_is_estimated(released):
    found = released.mean("hectares", {"region": "A"})
    wide = released.mean("hectares", {"place": ["A1", "A2"]}, 0.99)
    assert wide.low <= found.low <= found.value <= found.high <= wide.high
    truth = farms().filter(pl.col("place").str.starts_with("A"))["hectares"].clip(0, 500).mean()
    assert wide.low <= truth <= wide.high
    with pytest.raises(Refused, match="column"):
        released.mean("hectare", {"region": "A"})
    with pytest.raises(Refused, match="different things"):
        released.table("hectares").difference(released.table(), {"region": "A"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda row: row.__setitem__("hectares", str(float(row["hectares"]) + 0.5)), "adds up|sum"),
        (
            lambda row: row.__setitem__("hectares", str(float(row["hectares"]) + 0.25)),
            "whole numbers|not the sum divided",
        ),
        (lambda row: row.__setitem__("hectares_mean", "499.0"), "not the sum divided by the count"),
        (lambda row: row.__setitem__("hectares_mean_low", ""), "in part"),
    ],
)
def test_forged_figures_are_found(released, tmp_path, change, words):
    rows = rows_of(released)
    change(rows[1])
    table = tmp_path / "table.csv"
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    certificate = json.loads((released.folder / "certificate.json").read_text())
    told = next(each for each in certificate["tables"] if each["name"] == "hectares")
    from holdfast.release.standalone_verifier.reading import Broken
    from holdfast.release.standalone_verifier.table import Table

    for name in ("hectares-measurements.csv", "hectares-measurements.parquet"):
        (tmp_path / name).write_bytes((released.folder / name).read_bytes())
    try:
        found = " ".join(Table(str(tmp_path), told).checked().values())
    except Broken as broken:
        found = str(broken)
    assert re.search(words, found), found


def test_a_certificate_that_adds_up_something_else_is_found(released):
    from holdfast.release.standalone_verifier.facts import facts

    certificate = json.loads((released.folder / "certificate.json").read_text())
    assert list(facts(certificate)) == []
    certificate["tables"][1]["sum_of"]["high"] = "400"
    assert any("something else than the spec" in found for found in facts(certificate))


def test_weights_are_said_to_be_a_part_of_the_record(tmp_path):
    weight = {"weight": "hectares", "between": [0, 50], "step": 0.1}
    job = hf.job(spec(tmp_path, figures=["count", weight]))
    assert any("weights 'hectares' are taken as a part of each record" in words for words in job.made.caveats)


def test_other_kinds_of_tables_add_up_sums(tmp_path):
    frame = farms().with_columns(pl.Series("kind", ["arable", "dairy"] * 150))
    for name, table in {
        "cube": {"cube": ["place", "kind"], "margins": [["place"], ["kind"], []]},
        "areas": {"hierarchy": ["region", "place"], "cube": ["kind"], "measure": {"region": "all", "place": "all"}},
        "crossed": {"hierarchy": ["region", "place"], "root": "country", "categories": ["kind"]},
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        made = spec(
            folder,
            data={
                "values": {"kind": ["arable", "dairy"]}
                | ({"place": ["A1", "A2", "B1", "B2", "B3"]} if name == "cube" else {})
            },
        )
        made["table"] = {"figures": ["count", HECTARES], **table}
        if name == "cube":
            del made["data"]["domain"]
        release = hf.load(hf.job(made).release(frame).folder)
        total = float(np.sum(np.clip(frame["hectares"], 0, 500)))
        where = {"kind": ["arable", "dairy"]}
        found = release.table("hectares").estimate(where, confidence=0.999)
        assert found.low <= total <= found.high


def test_the_curator_sees_what_bounds_take_away(tmp_path):
    frame = farms().with_columns(
        pl.when(pl.col("farm") == "f3").then(None).otherwise(pl.col("turnover")).alias("turnover")
    )
    low = {"sum": "hectares", "between": [0, 50], "step": 0.5}
    found = hf.job(spec(tmp_path, figures=["count", low, TURNOVER])).check(frame)
    assert (found.records, found.kept, found.numberless) == (298, 298, 2)
    counts, hectares, turnover = found.tables
    assert counts.cut == {}
    kept = frame.filter(pl.col("farm") != "f3")
    numbers = [Fraction(str(number)) for number in kept["hectares"]]
    steps = [math.floor(2 * number + Fraction(1, 2)) for number in numbers]
    lost = 1 - sum(min(step, 100) for step in steps) / sum(steps)
    assert hectares.cut["country"] == pytest.approx(lost)
    assert turnover.cut["country"] < hectares.cut["country"]
    assert "The bounds change sums of 'country' by up to" in str(found)
    assert "Besides, 2 records without a finite number" in str(found)


@pytest.mark.slow
@pytest.mark.skipif(browser.binary() is None, reason="there is no Chromium here: apt-get install chromium")
def test_the_page_answers_in_the_unit_of_the_column(released):
    with browser.Browser() as found:
        page = found.page(released.folder / "report.html")
        for name in ("table", "hectares", "turnover"):
            for where in ({"region": "A"}, {"place": ["A1", "B2"]}):
                told = page(f"holdfast.estimate({json.dumps(where)}, 0.9, {json.dumps(name)})")
                known = released.table(name).estimate(where, confidence=0.9)
                assert [told["value"], told["low"], told["high"]] == pytest.approx([known.value, known.low, known.high])
                assert told["standard_error"] == pytest.approx(known.standard_error)
        ranks = page('holdfast.rank([{"place": "A1"}, {"place": "B2"}], 0.95, "hectares")')
        assert [each["value"] for each in ranks] == [
            released.table("hectares").estimate({"place": place}).value for place in ("A1", "B2")
        ]
