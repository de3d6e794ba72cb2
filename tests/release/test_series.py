"""One table in every period: charged once, drawn from one secret, made again after a crash, refused from other data."""

import concurrent.futures
import json
import shutil

import numpy as np
import polars as pl
import pytest

import holdfast as hf
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.records.tabulate import tabulate
from holdfast.release.spec.spec import read_spec
from holdfast.release.standalone_verifier import facts
from holdfast.release.table.laid import laid

MONTHS = [f"2026-{number:02d}" for number in range(1, 5)]


@pytest.fixture
def desk(tmp_path):
    rng = np.random.default_rng(3)
    lines = ["month,borough,zone,rider"]
    for month in MONTHS:
        for _ in range(300):
            borough, zone = "NS"[rng.integers(2)], rng.integers(1, 4)
            lines.append(f"{month},{borough},{borough}{zone},r{rng.integers(1, 40)}")
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
    zones = [f"{borough},{borough}{zone}" for borough in "NS" for zone in range(1, 4)]
    (tmp_path / "zones.csv").write_text("borough,zone\n" + "\n".join(zones) + "\n")
    return tmp_path


def spec(desk, **changes):
    asked = {
        "title": "Trips",
        "data": {"source": str(desk / "trips.csv"), "domain": str(desk / "zones.csv"), "name": "trips"},
        "privacy": {"rho": 2},
        "table": {"hierarchy": ["borough", "zone"], "root": "city"},
        "hold": ["consistent", "nonnegative"],
        "method": "onto",
        "time": {
            "column": "month",
            "periods": 6,
            "wanted": {"month": 1, "running": 1},
            "key": str(desk / "series.key"),
        },
        "ledger": str(desk / "book.sqlite"),
        "output": str(desk / "out"),
    }
    return {key: value for key, value in {**asked, **changes}.items() if value is not None}


def job(desk, **changes):
    return hf.job(spec(desk, **changes))


def truth(desk, month, zone=""):
    rows = [line.split(",") for line in (desk / "trips.csv").read_text().splitlines()[1:]]
    return sum(row[0] == month and row[2].startswith(zone) for row in rows)


def test_months_are_charged_once_and_verify(desk):
    made = job(desk)
    first = made.release(period="2026-01")
    charges = Ledger(desk / "book.sqlite").entries()
    for month in MONTHS[1:]:
        released = made.release(period=month)
        assert abs(released.table().values[0] - truth(desk, month)) < 30
    assert Ledger(desk / "book.sqlite").entries()[0].parts == charges[0].parts
    assert len(Ledger(desk / "book.sqlite").entries()) == 1
    assert first.guarantee.rho == pytest.approx(2)
    for month in MONTHS:
        verdict = verify(desk / "out" / month, Ledger(desk / "book.sqlite"))
        assert verdict.ok, verdict
    told = json.loads((desk / "out" / "2026-04" / "certificate.json").read_text())["series"]
    assert [each["period"] for each in told["drawn"]] == MONTHS[:3]
    assert not told["late"]
    assert (desk / "series.key").stat().st_mode & 0o077 == 0


def test_the_noise_of_months_hangs_together(desk):
    """The sum of the months is nearer to its truth than fresh noise could be: over several series."""
    found = []
    for number in range(12):
        time = {"column": "month", "periods": 4, "wanted": {"running": 1}, "key": str(desk / f"{number}.key")}
        made = job(desk, time=time, output=str(desk / f"out{number}"), privacy={"rho": 0.02}, hold=["consistent"])
        noise = [
            made.release(period=month).table()._draw - made.made.tables[0].answer(cells(desk, month))
            for month in MONTHS
        ]
        found.append(np.sum(noise, axis=0) / float(made.made.tables[0].mechanism.base.squares[0]) ** 0.5)
    spread = np.concatenate(found).std() / float(made.made.noise_over_time.factor.worst(1)) ** 0.5
    assert spread < 1.8 < 2  # 2 is that of fresh noise at this price


def cells(desk, month):
    return np.array([truth(desk, month, zone) for zone in ("N1", "N2", "N3", "S1", "S2", "S3")])


STEPS = ("counting the records", "charging the ledger, once for all periods", "drawing the tables", "writing the files")


@pytest.mark.parametrize("where", [*STEPS, "verifying what was written", "publishing"])
def test_a_crash_draws_nothing_twice(desk, where, monkeypatch):
    from holdfast.release.series import release_period

    made = job(desk).made

    def stop(words):
        if words == where:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        release_period(made, "2026-01", step=stop)
    assert not (desk / "out" / "2026-01").exists()
    release_period(made, "2026-01")
    shutil.copytree(desk / "out", desk / "kept")
    charges = Ledger(desk / "book.sqlite").entries()
    assert len(charges) == 1
    with pytest.raises(hf.Refused, match="released already"):
        release_period(made, "2026-01")
    shutil.rmtree(desk / "out")  # whoever removes a folder gets the same one again
    release_period(made, "2026-01")
    for name in ("table.csv", "measurements.csv"):
        assert (desk / "out" / "2026-01" / name).read_bytes() == (desk / "kept" / "2026-01" / name).read_bytes()


def test_other_records_are_refused_for_a_period_that_was_drawn(desk):
    job(desk).release(period="2026-01")
    job(desk).release(period="2026-02")
    shutil.rmtree(desk / "out" / "2026-02")
    with (desk / "trips.csv").open("a") as file:
        file.write("2026-02,N,N1,r1\n")
    with pytest.raises(hf.Refused, match="not those from which it was drawn"):
        job(desk).release(period="2026-02")
    assert job(desk).release(period="2026-03").table().values[0] > 0  # the desk goes on


def test_a_ledger_that_was_put_back_gives_fresh_noise_and_no_difference(desk):
    """Without the ledger's mark other records draw other noise: the difference of the two tables is not the truth's."""
    wide = {"privacy": {"rho": 0.002}}  # two tables of it are never as near as their records
    job(desk, **wide).release(period="2026-01")
    shutil.copy(desk / "book.sqlite", desk / "old.sqlite")
    one = job(desk, **wide).release(period="2026-02").table()._draw
    with (desk / "trips.csv").open("a") as file:
        file.write("2026-02,N,N1,r1\n")
    shutil.copy(desk / "old.sqlite", desk / "book.sqlite")
    shutil.rmtree(desk / "out" / "2026-02")
    other = job(desk, **wide).release(period="2026-02").table()._draw
    assert np.abs(other - one).max() > 1


def test_a_period_left_out_comes_later_and_says_so(desk):
    made = job(desk)
    made.release(period="2026-01")
    made.release(period="2026-03")
    late = made.release(period="2026-02")
    assert late.certificate.series.late
    assert any("published after later ones" in words for words in late.certificate.caveats)
    made.release(period="2026-04")
    assert all(verify(desk / "out" / month).ok for month in MONTHS)


def test_what_is_refused(desk):
    with pytest.raises(hf.Refused, match="period by period"):
        job(desk).release()
    with pytest.raises(hf.Refused, match="only a series"):
        job(desk, time=None).release(period="2026-01")
    made = job(desk)
    made.release(period="2026-01")
    for period, words in (("2026-07", "not among the periods"), ("2025-12", "not among"), ("May", "not among")):
        with pytest.raises(hf.Refused, match=words):
            made.release(period=period)
    with pytest.raises(hf.Refused, match="not the one that the series began with"):
        job(desk, title="Other").release(period="2026-02")
    with (desk / "zones.csv").open("a") as file:
        file.write("S,S9\n")
    with pytest.raises(hf.Refused, match="not the one that the series began with"):
        job(desk).release(period="2026-02")


@pytest.mark.parametrize("change", ["lost", "foreign"])
def test_without_its_key_the_rest_is_lost(desk, change):
    job(desk).release(period="2026-01")
    (desk / "series.key").unlink()
    if change == "foreign":
        (desk / "series.key").write_text("ab" * 32)
    with pytest.raises(hf.Refused, match="lost with it"):
        job(desk).release(period="2026-02")
    with pytest.raises(hf.Refused, match="no period of the series"):
        job(desk, title="Other").release(period="2026-02")


def test_a_ledger_that_is_gone_is_noticed(desk):
    job(desk).release(period="2026-01")
    (desk / "book.sqlite").unlink()
    with pytest.raises(hf.Refused, match="no charge for the series"):
        job(desk).release(period="2026-02")


def test_two_processes_at_once_charge_once(desk):
    def one(period):
        try:
            return str(job(desk).release(period=period).folder)
        except hf.Refused as refusal:
            return str(refusal)

    job(desk).release(period="2026-01")
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        said = list(both.map(one, ["2026-02", "2026-02"]))
    assert str(desk / "out" / "2026-02") in said
    assert len(Ledger(desk / "book.sqlite").entries()) == 1
    assert verify(desk / "out" / "2026-02").ok


def test_two_first_releases_at_once_charge_once(desk):
    def one(period):
        try:
            return str(job(desk).release(period=period).folder)
        except hf.Refused as refusal:
            return str(refusal)

    with concurrent.futures.ThreadPoolExecutor(2) as both:
        said = list(both.map(one, ["2026-01", "2026-02"]))
    assert any(str(desk / "out") in each for each in said)
    assert len(Ledger(desk / "book.sqlite").entries()) == 1
    with pytest.raises(hf.Refused, match=r"name one of the releases in it, as .*2026-0"):
        read_certificate(desk / "out")


def test_persons_count_in_their_first_periods(desk):
    unit = {"column": "rider", "max_records": 2, "max_periods": 2}
    made = job(desk, privacy={"rho": 20, "unit": unit}, hold=["consistent"])
    released = [made.release(period=month) for month in MONTHS]
    rows = [line.split(",") for line in (desk / "trips.csv").read_text().splitlines()[1:]]
    for number, (month, each) in enumerate(zip(MONTHS, released, strict=True)):
        seen = {}
        for row in rows:
            seen.setdefault(row[3], {}).setdefault(row[0], []).append(row)
        kept = sum(min(2, len(of.get(month, []))) for of in seen.values() if sum(m < month for m in of) < 2)
        value = each.table().values[0]
        assert abs(value - kept) < 12, (number, value, kept)
        assert any("only the first 2 periods" in words for words in each.certificate.caveats)
    assert released[0].guarantee.unit.records == 2


def test_exact_figures_and_sums_hold_in_every_month(desk):
    made = job(desk, hold=["consistent", "nonnegative", {"exact": ["city"]}], accept_disclosure=True)
    for month in MONTHS[:2]:
        released = made.release(period=month)
        assert released.table().values[0] == truth(desk, month)
        assert released.guarantee.scope == "invariant-sharing"
        assert verify(released.folder).ok


def test_a_series_is_read_as_one(desk):
    made = job(desk, method="onto", hold=["consistent", "nonnegative"])
    tables = {month: made.release(period=month).table() for month in MONTHS}
    series = hf.load(desk / "out")
    assert list(series.periods) == MONTHS
    quarter = series.table(periods=MONTHS[:3])
    assert (quarter.values == sum(tables[month].values for month in MONTHS[:3])).all()
    factor, base = series.factor, made.made.tables[0].mechanism.base
    zone = {"zone": "N1"}
    alone = [series.table(periods=month).estimate(zone) for month in MONTHS]
    assert [each.value for each in alone] == [tables[month].estimate(zone).value for month in MONTHS]
    one = tables["2026-01"].estimate(zone).standard_error / float(factor.of_period(0)) ** 0.5
    for weights, estimate in (
        ([1, 1, 1, 0, 0, 0], quarter.estimate(zone)),
        ([1, 1, -1, -1, 0, 0], series.difference(MONTHS[:2], MONTHS[2:], zone)),
    ):
        assert estimate.standard_error == pytest.approx(one * float(factor.variance(weights)) ** 0.5, rel=1e-5)
        assert estimate.low <= estimate.value <= estimate.high
    assert series.ratio(MONTHS[:2], MONTHS[:2], zone).value == 1
    growth = series.ratio(MONTHS[2], MONTHS[0], {"borough": "N"})
    assert growth.low < growth.value < growth.high
    assert series.frame().shape[0] == 4 * len(tables["2026-01"].values)
    assert base.period == 0
    with pytest.raises(hf.Refused, match="was not published"):
        series.table(periods="2026-05")
    with pytest.raises(hf.Refused, match="folder above"):
        tables["2026-01"].difference(tables["2026-02"], zone)
    shutil.copytree(desk / "out" / "2026-01", desk / "out" / "2026-05")
    with pytest.raises(hf.Refused, match="holds the period"):
        hf.load(desk / "out")


def test_intervals_of_sums_and_growth_cover(desk):
    """Sums, differences and ratios over periods, drawn 150 times by the law: each covers as often as it says."""
    made = job(desk, privacy={"rho": 0.5}, hold=["consistent"])
    for month in MONTHS:
        made.release(period=month)
    series, keys = hf.load(desk / "out"), hf.Keys.of(bytes(32))
    mechanism = made.made.tables[0].mechanism
    truths = {month: made.made.tables[0].answer(cells(desk, month)) for month in MONTHS}
    size, square = 150, mechanism.base.squares[0]
    noise = series.factor.draw(square, size * len(truths["2026-01"]), 3, lambda t: keys.at("cover", t))
    noise = noise.reshape(4, size, -1)
    zone = {"borough": "N"}
    hit = np.zeros(3)
    rows = series.table()._weights(zone)
    for draw in range(size):
        for t, month in enumerate(MONTHS):
            table = series.periods[month].tables["table"]
            moved = mechanism.image(truths[month] + noise[t, draw])
            table.columns["value"] = moved
            table.noisy["value"] = truths[month] + noise[t, draw]
        got = (
            series.summed("table", dict.fromkeys(MONTHS, 1)).estimate(zone),
            series.difference(MONTHS[2:], MONTHS[:2], zone),
            series.ratio(MONTHS[2:], MONTHS[:2], zone),
        )
        true = [float(rows @ truths[month]) for month in MONTHS]
        wanted = sum(true), true[2] + true[3] - true[0] - true[1], (true[2] + true[3]) / (true[0] + true[1])
        hit += [each.low <= number <= each.high for each, number in zip(got, wanted, strict=True)]
    assert (hit / size > 0.88).all(), hit  # 0.95 less four standard errors
    assert (hit[:2] / size < 1).all(), hit


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"privacy": {"epsilon": 1}}, "come and go"),
        ({"privacy": {"rho": 1, "neighbours": "replace-one"}}, "come and go"),
        ({"method": "given"}, "by noise, onto"),
        ({"time": {"column": "month", "periods": 6, "wanted": {"week": 1}}}, "week"),
        ({"time": {"column": "month", "periods": 6, "wanted": {"year": 1}}}, "longer than the series"),
        ({"time": {"column": "month", "periods": ["a", "a"]}}, "listed twice"),
        ({"time": {"column": "month", "periods": 6, "first": "spring"}}, "first"),
        ({"time": {"column": "month", "periods": 1000}}, "periods"),
        (
            {"time": None, "privacy": {"rho": 1, "unit": {"column": "rider", "max_records": 1, "max_periods": 2}}},
            "time",
        ),
    ],
)
def test_specs_that_are_no_series(desk, changes, words):
    with pytest.raises(hf.Refused, match=words):
        _ = job(desk, **changes).made


@pytest.mark.parametrize("change", ["period", "weights", "rows", "several", "column", "drawn", "caveat", "none"])
def test_a_changed_certificate_contradicts_itself(desk, change):
    released = job(desk).release(period="2026-01")
    told = json.loads((released.folder / "certificate.json").read_text())
    series = told["series"]
    if change == "weights":
        series["weights"][-1] *= 100
    elif change == "rows":
        series["rows"] = series["rows"][:-1]
    elif change == "drawn":
        series["drawn"] = [{"period": "1999-01", "certificate": "sha256:" + "0" * 64}]
    elif change == "caveat":
        told["caveats"] = [words for words in told["caveats"] if "one of 6 periods" not in words]
    elif change == "none":
        told["series"] = None
    else:
        series[change] = 3 if change == "several" else "other"
    assert next(facts.series(told), None) is not None


@pytest.mark.parametrize("names", [("Jan", "Feb", "Mar"), ("9", "10", "11")])
def test_first_periods_are_those_of_the_list_and_not_of_the_alphabet(desk, names):
    """Each period has its records and those of all before it, as they are when it is published."""
    unit = {"column": "rider", "max_records": 2, "max_periods": 1}
    time = {"column": "month", "periods": list(names), "key": str(desk / "series.key")}
    made = laid(read_spec(spec(desk, privacy={"rho": 2, "unit": unit}, time=time)))[0]
    rows = [{"month": name, "borough": "N", "zone": "N1", "rider": "a"} for name in names for _ in range(3)]
    counted = [
        tabulate(made, pl.DataFrame(rows[: 3 * number + 3]), period=name)[0].sum() for number, name in enumerate(names)
    ]
    assert counted == [2, 0, 0]


def test_one_key_beside_two_specs_draws_no_noise_twice(desk):
    """The noise of a late month does not follow from its records: with that of another series it would be a leak."""
    time = {"column": "month", "periods": 2, "first": "2026-01", "key": str(desk / "series.key")}
    wide = {"privacy": {"rho": 0.02}, "time": time}
    first, other = (
        job(desk, title=name, output=str(desk / name), ledger=str(desk / f"{name}.sqlite"), **wide)
        for name in ("one", "two")
    )
    drawn = [[made.release(period=month).table()._draw for month in MONTHS[1::-1]] for made in (first, other)]
    for one, two in zip(*drawn, strict=True):
        assert np.abs(one - two).max() > 2


def test_the_key_of_another_dataset_is_refused_before_the_charge(desk):
    job(desk).release(period="2026-01")
    data = {"source": str(desk / "trips.csv"), "domain": str(desk / "zones.csv"), "name": "others"}
    with pytest.raises(hf.Refused, match="another key"):
        job(desk, data=data, output=str(desk / "apart")).release(period="2026-01")
    assert len(Ledger(desk / "book.sqlite").entries()) == 1


def test_no_period_comes_late_where_persons_count_in_their_first_ones(desk):
    """Whoever has records in it may have counted in a later one, whose source did not have them."""
    time = {"column": "month", "periods": 3, "first": "2026-01", "key": str(desk / "series.key")}
    unit = {"column": "rider", "max_records": 2, "max_periods": 1}
    made = job(desk, privacy={"rho": 2, "unit": unit}, time=time)
    made.release(period="2026-02")
    with pytest.raises(hf.Refused, match="comes after later periods") as refused:
        made.release(period="2026-01")
    assert "is begun" not in "".join(getattr(refused.value, "__notes__", []))
    assert not (desk / "out" / "2026-01").exists()
    made.release(period="2026-03")
