"""A census too large for one file: written, verified and read back in runs of whole areas, and the same table."""

import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import holdfast as hf
from holdfast.exchange.formats import croissant, of_release
from holdfast.release import run
from holdfast.release.certificate.verify import verify
from holdfast.release.standalone_verifier.reading import Broken
from holdfast.release.table import area_cut, area_names
from tampering import certificate_of, forged, not_adding_up, sealed
from town import job, write

LABELLED = ("  values:", "  labels: {sex: {F: female, M: male}}\n  values:")
EXACT = ("[consistent, nonnegative]", "[consistent, nonnegative, {exact: [{quarter: total}]}]")
FOUR = ("lives: [family, alone]", "lives: [family, alone, sea, jail]")
RECODED = (
    "  measure:",
    "  recode: {kind: {of: lives, groups: {many: [family, jail], one: [alone, sea]}}}\n  measure:",
)
GROUPS = ("[[sex, age], lives, total]", "[[sex, kind], age, total]")


def run_alone(folder):
    return subprocess.run([sys.executable, folder / "verify.py"], capture_output=True, text=True, check=False)


def released(folder, rows, monkeypatch, *changes):
    """Release the town in files of at most so many rows, always with the same noise."""
    monkeypatch.setattr(area_names, "MOST_IN_A_FILE", rows)
    monkeypatch.setattr(area_cut, "STRETCH", 300)
    folder.mkdir()
    write(folder)
    made = job(folder, *changes)
    table = made.made.tables[0]
    monkeypatch.setattr(
        run.drawing(made.made, None).__class__,
        "draw",
        lambda self, table, cells, truth, place: table.mechanism.release(truth, rng=hf.seeded(1)),
    )
    assert (table.layout.in_parts is None) == (rows > 400)
    return made.release()


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        place = tmp_path_factory.mktemp("runs")
        yield (
            released(place / "one", 1000, monkeypatch, LABELLED),
            released(place / "parts", 100, monkeypatch, LABELLED),
        )


def test_parts_are_the_table_of_one_file(town):
    one, parts = (each.table() for each in town)
    assert (one.certificate.parts, one.certificate.runs) == (0, False)
    assert (parts.certificate.parts, parts.certificate.runs) == (5, True)
    for name, column in one.columns.items():
        np.testing.assert_array_equal(np.ma.filled(column, 0), np.ma.filled(parts.columns[name], 0), name)
    assert one.frame("polars").equals(parts.frame("polars"))
    np.testing.assert_array_equal(one.error_bars.centre, parts.error_bars.centre)
    folders = [each.folder for each in town]
    files = [folders[0] / "records.parquet", folders[1] / "records.parquet" / "*.parquet"]
    assert pl.read_parquet(files[0]).sort(pl.all()).equals(pl.read_parquet(files[1]).sort(pl.all()))


def test_both_verifications_read_every_part(town):
    for each in town:
        assert verify(each.folder).ok, verify(each.folder)
        told = run_alone(each.folder)
        assert told.returncode == 0, told.stdout
    assert hf.load(town[1].folder).table().values.sum() > 0


def test_parts_have_rows_of_whole_areas_in_their_order(town):
    parts = [pl.read_parquet(path) for path in sorted((town[1].folder / "table.parquet").iterdir())]
    assert pl.concat(parts)["row"].to_list() == list(range(town[1].table().certificate.rows))
    areas = [set(part.select("town", "quarter", "block").iter_rows()) for part in parts]
    assert not any(one & two for i, one in enumerate(areas) for two in areas[:i])


def changed(town, tmp_path, name, part, change):
    """Change a part of a file and its copy, and certify what is there now."""
    folder = tmp_path / "changed"
    shutil.copytree(town[1].folder, folder)
    told = certificate_of(folder)
    for end in ("parquet", "csv"):
        path = folder / f"{name}.{end}" / f"{part:05d}.{end}"
        frame = pl.read_parquet(path) if end == "parquet" else pl.read_csv(path, infer_schema=False)
        frame = change(frame, end)
        _ = frame.write_parquet(path) if end == "parquet" else frame.write_csv(path)
    return folder, told


def test_a_tampered_part_is_refused(town, tmp_path):
    def one_more(frame, end):
        kind = pl.Int64 if end == "parquet" else pl.String
        value = pl.col("value").cast(pl.Int64) + (pl.col("row").cast(pl.Int64) == int(frame["row"][3]))
        return frame.with_columns(value.cast(kind))

    folder, told = changed(town, tmp_path, "table", 3, one_more)
    assert "is not the file that was certified" in str(verify(folder))
    assert run_alone(folder).returncode == 5
    sealed(folder, told)
    for said in (str(verify(folder)), run_alone(folder).stdout):
        assert "have different sums over what they share" in said
    with pytest.raises(hf.Refused, match="is not as it was released"):
        hf.load(folder)


def test_a_part_without_rows_is_refused(town, tmp_path):
    last = town[1].table().certificate.parts - 1
    folder, told = changed(town, tmp_path, "table", last, lambda frame, _: frame.head(0))
    sealed(folder, told)
    assert "has a part without rows" in str(verify(folder))
    assert run_alone(folder).returncode == 5


def test_an_area_that_is_not_the_sum_of_its_parts_is_refused(town, tmp_path):
    """One person more in a block, in all of its margins: everything agrees inside the block."""

    def one_more(frame, end):
        first = int(frame["row"][0])
        more = pl.col("row").cast(pl.Int64).is_in([first, first + 1])  # the total, and a cell
        value = (pl.col("value").cast(pl.Int64) + more).cast(pl.Int64 if end == "parquet" else pl.String)
        return frame.with_columns(value)

    folder, told = changed(town, tmp_path, "table", 3, one_more)
    sealed(folder, told)
    for said in (str(verify(folder)), run_alone(folder).stdout):
        assert "is not the sum of the areas below it" in said


def test_the_verifier_by_itself_sees_areas_that_do_not_add_up_in_one_file(town, tmp_path):
    folder = tmp_path / "changed"
    shutil.copytree(town[0].folder, folder)

    def one_more(columns):
        columns["value"][-1] += 1

    forged(folder, one_more)
    assert "have different sums over what they share" in run_alone(folder).stdout
    assert not verify(folder).ok


@pytest.mark.parametrize("changes", [[EXACT], [FOUR, RECODED, GROUPS], [("  shares: best", "  numbers: real")]])
def test_whatever_holds_is_verified_in_parts(tmp_path, monkeypatch, changes):
    if EXACT in changes:  # as where another release was sealed meanwhile: everything is written again
        answers, seal = iter([False]), run.Run.seal
        monkeypatch.setattr(run.Run, "seal", lambda self, *given: next(answers, True) and seal(self, *given))
    made = released(tmp_path / "parts", 100, monkeypatch, *changes, (", records: true", ""))
    assert made.table().certificate.runs
    told = run_alone(made.folder)
    assert told.returncode == 0, told.stdout


@pytest.mark.parametrize(
    ("name", "column", "said"),
    [
        ("table", "block", "areas of one level do not have the same margins"),
        ("table", "row", "do not have every row once"),
        ("table", "high", "an interval ends before it begins"),
        ("table", "sex_label", "a code in sex has no label, or two"),
        ("measurements", "row", "speak"),
        ("records", "lives", "do not count to the table"),
    ],
)
def test_every_column_of_a_part_is_looked_at(town, tmp_path, name, column, said):
    """What a part says is changed in both of its files, and certified again."""

    def other(frame, end):
        last = frame[column][-1]
        known = {"row": 0, "high": -1, "lives": "alone" if last == "family" else "family"}
        first = pl.int_range(frame.height) == frame.height - 1
        kind = frame.schema[column]
        return frame.with_columns(
            pl.when(first).then(pl.lit(known.get(column, "other")).cast(kind)).otherwise(pl.col(column)).alias(column)
        )

    folder, told = changed(town, tmp_path, name, 3, other)
    sealed(folder, told)
    assert said in str(verify(folder)), verify(folder)
    assert run_alone(folder).returncode == 5


def test_exports_of_parts(town):
    with pytest.raises(hf.Refused, match=r"SDMX-CSV is one text, and table has 351 figures in parts"):
        of_release(town[1].folder)
    with pytest.raises(hf.Refused, match="table lies in 5 parts"):
        croissant(town[1].folder)


def test_what_memory_does_not_hold_is_refused_before_the_charge(tmp_path, monkeypatch):
    monkeypatch.setattr(area_names, "MOST_IN_A_FILE", 100)
    write(tmp_path)
    made = job(tmp_path)
    monkeypatch.setattr(run.os, "sysconf", lambda _: 2**14)
    with pytest.raises(
        hf.Refused, match=r"351 figures take about \d+ GiB of memory, and this machine has 0"
    ) as refused:
        made.release()
    assert "nothing was charged" in str(refused.value.__notes__)


def test_whole_noise_given_sums_that_are_not_written_out_is_refused():
    """Such a table did not add up."""
    tree = hf.Hierarchy.from_parents([-1, *([0] * 20), *(1 + i // 20 for i in range(400))])
    query = hf.counts(tree, by=(8, 2, 40), keep=[(), (0,), (0, 1, 2)])
    assert query.many_sums is not None
    with pytest.raises(hf.Refused, match="no way is known to draw integer Gaussian noise given the sums of 273,229"):
        _ = hf.gaussian(query, rho=1).given(hf.consistent(query)).method


PLACES = ("town", "block")
TOP = [("town: total", "T", None, None, 5), ("town: sex", "T", None, "F", 2), ("town: sex", "T", None, "M", 3)]
FIRST, SECOND = (
    [("block: total", "T", name, None, f + m), ("block: sex", "T", name, "F", f), ("block: sex", "T", name, "M", m)]
    for name, f, m in (("B1", 2, 0), ("B2", 0, 3))
)


def called(rows, level):
    return [(level(row[0]), *row[1:]) for row in rows]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([TOP, FIRST + SECOND], None),
        ([TOP, FIRST + called(SECOND, str.upper)], "areas of one level do not have the same margins"),
        ([TOP, FIRST, called(SECOND, str.upper)], "areas of one level do not have the same margins"),
        (
            [TOP, called(FIRST + SECOND, lambda level: level.replace("block", "town"))],
            "areas of two levels call themselves alike",
        ),
        ([TOP, [*FIRST, FIRST[1], *SECOND, SECOND[1]]], "an area has two rows with the same names"),
        ([TOP, FIRST, called(TOP, str), SECOND], "has rows already"),
        ([FIRST, SECOND, TOP], "areas of an upper level follow those of a lower one"),
        ([TOP, FIRST], "is not the sum of the areas below it"),
    ],
)
def test_areas_that_are_not_what_their_names_say_are_found(parts, said):
    *columns, values = map(list, zip(*(row for part in parts for row in part), strict=True))
    try:
        wrong = not_adding_up(dict(zip(("level", "town", "block", "sex"), columns, strict=True)), values, PLACES)
    except Broken as broken:
        wrong = str(broken)
    assert wrong is None if said is None else said in wrong
