"""Releasing a job: what is written, what is charged, and what happens when something goes wrong."""

import errno
import json
import os
import re
import resource
import signal
from datetime import datetime
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

import holdfast as hf
import released
from holdfast.release import run, writing
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.load import load
from holdfast.release.certificate.verify import verify
from holdfast.release.ends import CHARGED, KEPT, NOTHING
from holdfast.release.job.job import Job
from holdfast.release.ledger.accounts import Overspent
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import could_release, release
from holdfast.release.spec.spec import read_spec
from holdfast.release.storage.files import workplace
from holdfast.release.storage.tables import read_csv, read_parquet

STEPS = (
    "checking the ledger",
    "simulating the errors",
    "rehearsing with made-up counts",
    "counting the records",
    "computing what exact figures give away",
    "charging the ledger",
    "drawing the tables",
    "writing the files",
    "verifying what was written",
    "publishing",
)


def ledger_of(job):
    return Ledger(job.spec.ledger_file)


def at(step, change):
    """Let something change when a release comes to a step: what is public was rehearsed before."""
    return lambda words: change() if words == step else None


def assert_nothing_happened(job, charges=0):
    assert not job.spec.output.exists()
    assert not list(job.spec.output.parent.glob(".*"))
    assert len(ledger_of(job).entries()) == charges


@pytest.mark.slow
@pytest.mark.parametrize("kind", released.SPECS)
def test_a_release_is_whole_and_charged(tmp_path, kind):
    job = released.job(tmp_path, kind)
    steps = []
    folder = release(job, step=steps.append)
    assert folder == tmp_path / "out"
    assert tuple(steps) == STEPS
    assert verify(folder).ok
    certificate = read_certificate(folder)
    assert {file.name for file in certificate.files} | {"certificate.json"} == {path.name for path in folder.iterdir()}
    (entry,) = ledger_of(job).entries("trips", "record")
    assert entry.release == certificate.release
    assert entry.spec_hash == certificate.spec_hash == job.spec.hash
    assert entry.parts == tuple(tuple(table.statements) for table in certificate.tables)
    assert entry.statements[0].epsilon == pytest.approx(1.0)
    assert tuple(certificate.statements) == job.guarantees
    assert not list(tmp_path.glob(".*"))


def test_the_files_do_not_tell_when_they_were_written(tmp_path):
    folder = release(released.job(tmp_path, "moved"))
    date = read_certificate(folder).date
    midnight = datetime.fromisoformat(f"{date}T00:00:00+00:00").timestamp()
    assert {path.stat().st_mtime for path in (folder, *folder.iterdir())} == {midnight}


def test_the_files_of_a_table_name_every_row(tmp_path):
    folder = release(released.job(tmp_path, "hierarchy"))
    columns = read_parquet(folder / "table.parquet")
    assert list(columns) == ["level", "city", "borough", "zone", "sex", "value", "low", "high"]
    assert columns["value"].dtype == np.int64
    text = read_csv(folder / "table.csv")
    assert text["value"].tolist() == [str(value) for value in columns["value"]]
    assert (folder / "table.csv").read_text().startswith("level,city,borough,zone,sex,value,low,high\ncity,city,,,F,")


def test_exact_figures_are_those_of_the_data(tmp_path):
    loaded = load(release(released.job(tmp_path, "hierarchy")))
    names = loaded.table().names
    cities = (names["level"] == "city") & ~np.ma.getmaskarray(names["sex"])
    assert dict(zip(names["sex"][cities], loaded.values[cities], strict=True)) == {"F": 250, "M": 20}


@pytest.mark.slow
def test_totals_over_categories_and_exact_margins_are_rows(tmp_path):
    table = load(release(released.job(tmp_path, "hierarchy"))).table()
    totals = np.ma.getmaskarray(table.names["sex"])
    assert totals.tolist() == [False] * 16 + [True] * 8
    assert table.values[16:].tolist() == table.values[:16].reshape(8, 2).sum(axis=1).tolist()
    assert table.estimate(where={"borough": "South"}).value == table.values[18]
    assert table.estimate(where={"borough": "South", "sex": "F"}).value == table.values[4]
    exact = load(release(released.job(tmp_path / "margins", "contingency"))).table()
    assert exact.names["level"].tolist() == ["sex × age"] * 6 + ["sex"] * 2 + ["age"] * 3
    assert exact.values[6:].tolist() == [250, 20, 67, 3, 200]
    assert (exact.interval()[6:] == exact.values[6:, None]).all()
    assert (exact.interval(0.8)[6:] == exact.values[6:, None]).all()
    assert exact.estimate(where={"sex": "F"}).value == 250


def test_exact_margins_are_those_of_the_data_and_leave_no_room_for_measurements(tmp_path):
    folder = release(released.job(tmp_path, "contingency"))
    values = load(folder).values[:6].reshape(2, 3)
    assert values.sum(axis=1) == pytest.approx([250, 20])
    assert values.sum(axis=0) == pytest.approx([67, 3, 200])
    # One statement is about the part that the margins leave open alone; the noisy cells say more.
    assert "subspace" in {statement.scope for statement in load(folder).table().guarantees}
    assert not (folder / "measurements.parquet").exists()


def test_several_tables_have_prefixed_files_and_share_the_budget(tmp_path):
    loaded = load(release(released.job(tmp_path, "several")))
    assert set(loaded.tables) == {"sexes", "ages"}
    epsilons = [table.guarantee.epsilon for table in loaded.tables.values()]
    assert epsilons == pytest.approx([1 / 3, 2 / 3])
    assert loaded.guarantee.epsilon == pytest.approx(1)
    with pytest.raises(hf.Refused, match="several tables"):
        _ = loaded.values


def test_what_is_loaded_is_what_was_written(tmp_path):
    loaded = load(release(released.job(tmp_path)))
    frame = loaded.to_frame("polars")
    assert frame.columns == ["level", "age", "value", "low", "high"]
    assert frame["value"].to_list() == loaded.values.tolist()
    interval = loaded.interval()
    assert (interval[:, 0] <= loaded.values).all()
    assert (interval[:, 1] >= loaded.values).all()
    assert loaded.guarantee == loaded.certificate.statements[0]
    narrow = loaded.interval(0.5)
    assert (interval[:, 0] < narrow[:, 0]).all()
    assert (narrow[:, 1] < interval[:, 1]).all()
    assert (loaded.table().error_bars.interval(0.95) == interval).all()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["pandas", "pyarrow"])
def test_a_table_without_error_bars_has_the_limits_that_are_certain(tmp_path, backend):
    loaded = load(release(released.job(tmp_path, "hierarchy")))
    assert len(loaded.to_frame(backend)) == 24
    low, high = loaded.interval().T
    exact = loaded.table().names["level"] == "city"
    assert (low[exact] == loaded.values[exact]).all()
    assert (high[exact] == loaded.values[exact]).all()
    assert (low[~exact] == 0).all()
    assert high[2:6].tolist() == [250, 20, 250, 20]
    # the last rows are totals over the categories, with limits of their own
    assert high[16:19].tolist() == [270, 270, 270]
    with pytest.raises(hf.Refused, match="depends on the data"):
        loaded.table().errors(10)


def test_measurements_are_published_for_moved_tables_and_lead_to_the_table(tmp_path):
    job = released.job(tmp_path, "moved")
    folder = release(job)
    found = read_parquet(folder / "measurements.parquet")
    assert list(found) == ["level", "city", "borough", "zone", "value", "standard_deviation"]
    assert found["level"].tolist() == ["city"] + ["borough"] * 2 + ["zone"] * 5
    coin = json.loads((folder / "certificate.json").read_text())["tables"][0]["ties"]
    moved = job.tables[0].mechanism.image(np.asarray(found["value"]), ties=int(coin, 16))
    assert moved.tolist() == load(folder).values.tolist()
    assert np.asarray(found["standard_deviation"]) == pytest.approx(np.sqrt(job.tables[0].mechanism.base.law.variances))


def test_measurements_beside_a_table_conditioned_on_its_bounds_would_be_a_second_spend(tmp_path):
    folder = release(released.job(tmp_path, "moved", ("method: onto", "method: given")))
    assert not (folder / "measurements.parquet").exists()
    assert read_certificate(folder).tables[0].measurements is None
    assert read_certificate(folder).tables[0].interval.basis == "bounds"
    found = read_parquet(folder / "table.parquet")
    assert (found["low"] == 0).all()
    # bounds of the zones carry on to what they add up to
    assert found["high"].tolist() == [500_000, 200_000, 300_000, *[100_000] * 5]


def test_the_conditioned_draw_behind_a_moved_table_is_published_with_it(tmp_path):
    job = released.job(tmp_path, "moved", ("method: onto", "method: given-then-onto"))
    folder = release(job)
    drawn = read_parquet(folder / "measurements.parquet")
    values = np.asarray(drawn["value"])
    assert values[0] == values[1] + values[2] == values[3:].sum()
    mechanism = job.tables[0].mechanism
    errors = hf.laplace(mechanism.query, scale=mechanism.base.law.scale_values[0]).given(hf.consistent(mechanism.query))
    assert np.asarray(drawn["standard_deviation"]) == pytest.approx(errors.standard_error())
    table = read_parquet(folder / "table.parquet")
    assert (table["low"] >= 0).all()
    assert (np.asarray(table["low"]) <= np.maximum(values, 0)).all()
    assert (np.asarray(table["high"]) >= np.maximum(values, 0)).all()
    coin = json.loads((folder / "certificate.json").read_text())["tables"][0]["ties"]
    assert mechanism.image(values, ties=int(coin, 16)).tolist() == load(folder).values.tolist()


def test_codes_keep_their_leading_zeros_for_whoever_reads_the_data_dictionary(tmp_path):
    path = released.written(tmp_path, "moved")
    for name in ("zones.csv", "trips.csv"):
        (tmp_path / name).write_text((tmp_path / name).read_text().replace("N1", "007"))
    folder = release(Job.from_spec(read_spec(path)))
    package = json.loads((folder / "datapackage.json").read_text())
    table, noisy = package["resources"]
    kinds = {field["name"]: field["type"] for field in table["schema"]["fields"]}
    assert kinds == {"level": "string", "city": "string", "borough": "string", "zone": "string", "value": "integer",
                     "low": "number", "high": "number"}  # fmt: skip
    text = (folder / table["path"]).read_text()
    assert text.splitlines()[0].split(",") == list(kinds)
    assert ",007," in text
    assert [field["name"] for field in noisy["schema"]["fields"]][-1] == "count"
    assert (folder / noisy["path"]).read_text().splitlines()[0].endswith(",standard_deviation,count")


def test_measurements_are_kept_back_where_only_the_moved_part_is_protected():
    counties = hf.laplace(hf.histogram(3), epsilon=1)
    total = hf.invariant([[1, 1, 1]])
    assert counties.onto(total).guarantees[-1].scope in ("subspace", "invariant-sharing")
    subspace = any(each.scope == "subspace" for each in counties.onto(total).guarantees)
    assert subspace
    assert counties.onto(total).release([1, 2, 3]).measurements is None
    assert counties.onto(hf.nonnegative()).release([1, 2, 3]).measurements is not None
    assert counties.given(total).release([1, 2, 3]).measurements is None
    assert counties.release([1, 2, 3]).measurements is None


def test_two_releases_draw_different_noise(tmp_path):
    job = released.job(tmp_path, "margins", epsilon="0.1")
    one, two = (load(release(job, output=tmp_path / name)).values for name in ("one", "two"))
    assert (one != two).any()
    assert len(ledger_of(job).entries()) == 2


def test_data_may_come_from_a_frame_and_everything_else_from_arguments(tmp_path):
    job = released.job(tmp_path)
    (tmp_path / "trips.csv").unlink()
    frame = pd.DataFrame({"age": ["child"] * 1000 + ["old"] * 3})
    ledger = Ledger(tmp_path / "other.sqlite")
    folder = release(job, source=frame, output=tmp_path / "elsewhere" / "deep", ledger=ledger)
    assert abs(load(folder).values[0] - 1000) < 100
    assert len(ledger.entries()) == 1
    assert not ledger_of(job).exists


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_an_output_that_exists_is_refused_and_costs_nothing(tmp_path, there):
    job = released.job(tmp_path)
    out = tmp_path / "out"
    {"folder": out.mkdir, "file": out.touch, "link": lambda: out.symlink_to("nowhere")}[there]()
    with pytest.raises(hf.Refused, match="exists already: name another output folder"):
        release(job)
    assert not ledger_of(job).exists
    assert not list(tmp_path.glob(".*"))


def test_more_than_what_is_left_is_refused_before_the_data_are_read(tmp_path):
    job = released.job(tmp_path, more="ledger: {budget: {epsilon: 1.5}}")
    release(job, output=tmp_path / "first")
    (tmp_path / "trips.csv").unlink()
    with pytest.raises(Overspent, match=r"is ε = 1\.5 and ε = 0\.5 is left, but the release costs ε = 1:"):
        release(job)
    assert_nothing_happened(job, charges=1)


def test_a_dry_run_refuses_what_a_release_would_refuse_and_leaves_nothing_behind(tmp_path):
    job = released.job(tmp_path, more="ledger: {budget: {epsilon: 1.5}}")
    before = sorted(tmp_path.iterdir())
    could_release(job)
    could_release(job, output=tmp_path / "far" / "away")
    assert sorted(tmp_path.iterdir()) == before
    release(job)
    with pytest.raises(hf.Refused, match="exists already"):
        could_release(job)
    with pytest.raises(Overspent):
        could_release(job, output=tmp_path / "other")
    assert len(ledger_of(job).entries()) == 1


def test_data_that_do_not_fit_cost_nothing(tmp_path):
    job = released.job(tmp_path, records={("N1", "North", "F", "unborn", "X"): 1})
    with pytest.raises(hf.Refused):
        release(job)
    assert_nothing_happened(job)


def test_a_disk_without_room_for_counting_costs_nothing(tmp_path, monkeypatch):
    job = released.job(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(run, "tabulate", full)
    with pytest.raises(hf.Refused, match=r"the records cannot be counted \(No space left.*nothing was charged"):
        release(job)
    assert_nothing_happened(job)


def test_two_releases_into_one_folder_exclude_each_other(tmp_path):
    job = released.job(tmp_path)
    with workplace(tmp_path / "out"), pytest.raises(hf.Refused, match=r"another release to .* is under way"):
        release(job)
    assert_nothing_happened(job)


def test_what_a_dead_release_left_behind_is_removed(tmp_path):
    job = released.job(tmp_path)
    partial = tmp_path / ".out.partial"
    (partial / "deep").mkdir(parents=True)
    (partial / "table.csv").write_text("old")
    folder = release(job)
    assert verify(folder).ok
    assert not (folder / "deep").exists()


def in_child(work):
    """Run work in a forked child and return what it gave back as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = work()
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writer, str(text).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    assert os.waitpid(child, 0)[1] == 0
    return text


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path):
    job = released.job(tmp_path)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    for parent in (tmp_path, *tmp_path.parents):  # the child may be another user and must be able to get here
        if parent.owner() == "root" and os.getuid() == 0 and parent.stat().st_mode & 0o5 != 0o5:
            parent.chmod(parent.stat().st_mode | 0o5)

    def attempt():
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        release(job, output=closed / "out")

    message = in_child(attempt)
    assert message.startswith("Refused: ")
    assert "cannot be written (Permission denied)" in message
    assert NOTHING in message
    assert not ledger_of(job).exists
    assert list(closed.iterdir()) == []


def test_a_disk_without_room_is_noticed_before_the_charge(tmp_path):
    job = released.job(tmp_path)

    def attempt():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        release(job)

    message = in_child(attempt)
    assert message.startswith("Refused: ")
    assert NOTHING in message
    assert_nothing_happened(job)


def test_a_ledger_without_room_lets_nothing_be_drawn(tmp_path, monkeypatch):
    job = released.job(tmp_path)

    def attempt():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        monkeypatch.setattr(run, "refuse_without_room", lambda *_: None)
        few = 1 << 12, 1 << 12
        release(job, step=at("charging the ledger", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, few)))

    message = in_child(attempt)
    assert message.startswith("Refused: the ledger")
    assert "cannot be written" in message
    assert_nothing_happened(job)


@pytest.mark.parametrize("name", ["write_table", "write_text", "sha256_of", "publish"])
def test_a_disk_that_fills_up_while_writing_keeps_the_charge_and_shows_nothing(tmp_path, monkeypatch, name):
    job = released.job(tmp_path)

    def fail(*_):
        if name == "write_table":
            raise duckdb.IOException("no room, says the engine")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    place = writing if name == "write_table" else run
    with pytest.raises(hf.Refused, match="make room") as refusal:
        release(job, step=at("drawing the tables", lambda: monkeypatch.setattr(place, name, fail)))
    assert KEPT in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert_nothing_happened(job, charges=1)
    monkeypatch.undo()
    assert verify(release(job)).ok


def test_a_certificate_that_cannot_be_made_costs_nothing(tmp_path, monkeypatch):
    job = released.job(tmp_path)
    holds = job.tables[0].holding.holds
    monkeypatch.setitem(job.tables[0].holding.__dict__, "holds", holds.model_dump() | {"impossible": [-1]})
    with pytest.raises(ValueError, match="impossible"):
        release(job)
    assert_nothing_happened(job)


def test_every_step_says_what_takes_the_time(tmp_path, monkeypatch):
    steps, during = [], {}

    def watched(name):
        real = getattr(run, name)

        def call(*given, **named):
            during.setdefault(name, steps[-1])
            return real(*given, **named)

        monkeypatch.setattr(run, name, call)

    for name in ("errors_by_size", "tabulate", "given_away", "verify"):
        watched(name)
    release(released.job(tmp_path), step=steps.append)
    assert during == {
        "errors_by_size": "simulating the errors",
        "tabulate": "counting the records",
        "given_away": "computing what exact figures give away",
        "verify": "rehearsing with made-up counts",  # and again when it was written
    }


@pytest.mark.parametrize("step", STEPS)
def test_interrupted_before_any_step_the_ledger_shows_what_may_have_been_drawn(tmp_path, step):
    job = released.job(tmp_path)

    def interrupt(words):
        if words == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        release(job, step=interrupt)
    DRAWING = "drawing the tables"
    charged = STEPS.index(step) > STEPS.index("charging the ledger")
    assert stopped.value.__notes__ == [KEPT if charged and step != DRAWING else CHARGED if charged else NOTHING]
    if charged:
        (entry,) = ledger_of(job).entries()
        assert entry.state == ("charged, not drawn" if step == DRAWING else "drawn, not published")
    assert_nothing_happened(job, charges=int(charged))


def test_files_that_are_not_as_certified_are_never_published(tmp_path, monkeypatch):
    job = released.job(tmp_path, "moved")
    write = writing.write_table

    def careless(columns, parquet, csv=None):
        columns["value"][-1] += 1
        write(columns, parquet, csv)

    with pytest.raises(RuntimeError, match=r"nothing is released: table: sums misses .*fault of holdfast"):
        release(job, step=at("drawing the tables", lambda: monkeypatch.setattr(writing, "write_table", careless)))
    assert_nothing_happened(job, charges=1)


def test_processes_at_once_on_one_ledger_release_no_more_than_the_budget(tmp_path):
    jobs = [released.job(tmp_path, more="ledger: {budget: {epsilon: 2}}")]
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                release(jobs[0], output=tmp_path / f"out{number}")
            except Overspent:
                os._exit(4)
            except BaseException:
                os._exit(1)
            os._exit(0)
        children.append(child)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 0, 4, 4]
    assert sorted(path.name for path in tmp_path.glob("out*")) == sorted(
        path.name for path in tmp_path.glob("out*") if verify(path).ok
    )
    assert len(list(tmp_path.glob("out*"))) == 2
    assert len(ledger_of(jobs[0]).entries()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hierarchy", "moved", "several"])
def test_certificate_and_report_depend_on_the_data_through_the_table_alone(tmp_path, kind):
    # one woman more, so that no exact figure is 0 and determines others
    other = {("S2", "South", "M", "adult", "Y"): 4000, ("N1", "North", "F", "child", "X"): 1}
    folders = [
        release(released.job(tmp_path / name, kind, records=records))
        for name, records in (("one", released.RECORDS), ("two", other))
    ]
    one, two = (json.loads((folder / "certificate.json").read_text()) for folder in folders)
    for certificate in (one, two):
        for key in ("release", "seal", "files", "ledger"):
            assert certificate.pop(key)
        certificate.pop("date")
        for table in certificate["tables"]:
            table.pop("ties")  # a coin of each release
    assert one == two
    pages = [plain_page(folder / "report.html") for folder in folders]
    assert pages[0] == pages[1]


def plain_page(path: Path):
    """The report without its figures, the hashes and sizes of files, and its identity."""
    text = path.read_text()
    for changing in (
        r'<div class="wide rows".*?</article>',
        r'<script type="application/json" id="data">.*?</script>',  # the figures again, and what follows from them
        r'<td class="number">[0-9,]*</td><td class="hash">.*?</td>',
        r"\b[0-9a-f]{32}\b",
        "Released on [-0-9]*",
        "release of [-0-9]*",
    ):
        text, found = re.subn(changing, "", text, flags=re.DOTALL)
        assert found
    return text.splitlines()
