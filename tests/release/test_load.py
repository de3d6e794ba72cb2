"""What an analyst computes from a published folder alone: intervals, sums, ratios, differences, simulated errors."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import holdfast as hf
import released
from holdfast.release.certificate.certificate import seal_of
from holdfast.release.certificate.comparing import Estimate, quotient, whole_ends
from holdfast.release.run import release

RARE = 1e-6


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    return hf.load(release(released.job(tmp_path_factory.mktemp("moved"), "moved")))


@pytest.fixture(scope="module")
def margins(tmp_path_factory):
    return hf.load(release(released.job(tmp_path_factory.mktemp("margins"), "margins")))


def test_a_published_figure_by_its_name_is_the_figure_of_the_file(moved):
    table = moved.table()
    found = table.estimate(where={"borough": "North"})
    row = np.flatnonzero((table.names["level"] == "borough") & (table.names["borough"] == "North"))[0]
    assert found.value == table.values[row]
    assert [found.low, found.high] == table.interval()[row].tolist()
    assert found.standard_error == table.error_bars.spread.standard_errors[row]
    assert str(found).startswith(f"{found.value:,.6g} (")


def test_several_values_are_added_up_and_errors_of_a_sum_are_smaller_than_the_sum_of_errors(moved):
    table = moved.table()
    both = table.estimate(where={"zone": ["N1", "N2"]})
    each = [table.estimate(where={"zone": name}) for name in ("N1", "N2")]
    assert both.value == sum(one.value for one in each) == table.estimate(where={"borough": "North"}).value
    assert both.high - both.low < sum(one.high - one.low for one in each)
    weights = np.where(np.isin(table.names["zone"].filled(""), ["N1", "N2"]), 1.0, 0.0)
    assert table.estimate(weights=weights) == both


def test_intervals_of_sums_of_conditioned_noise_come_from_its_law(tmp_path, monkeypatch):
    """The zones of a borough have the error of the borough; nothing is simulated, and large tables do the same."""
    jobs = [released.job(tmp_path / name, "moved", ("method: onto", "method: given-then-onto")) for name in "ab"]
    table, other = (hf.load(release(job)).table() for job in jobs)
    south, zones = {"borough": "South"}, {"zone": ["S1", "S2", "S3"]}
    errors = table.error_bars.noise(40_000, hf.seeded(4))
    errors = errors[:, np.flatnonzero(table.names["borough"] == "South")[0]]
    monkeypatch.setattr(type(table), "_study", lambda self, seed: None)
    for confidence in (0.5, 0.9, 0.95, 0.999):
        borough, sums = (table.estimate(where, confidence=confidence) for where in (south, zones))
        assert (sums.low, sums.high) == (borough.low, borough.high)
        found = table.difference(other, south, confidence=confidence)
        far, apart = (found.high - found.low) / 2, np.abs(errors[::2] - errors[1::2])
        assert (apart > far).mean() < 1 - confidence + 0.004
        assert (apart > far - 1).mean() > 1 - confidence - 0.004
        above = table.ratio({"zone": "S2"}, south, confidence=confidence)
        assert above.low < table.estimate({"zone": "S2"}).value / borough.value < above.high
        halves = [table.estimate(where, confidence=(1 + confidence) / 2) for where in ({"zone": "S2"}, south)]
        assert (above.low, above.high) == pytest.approx(
            (halves[0].low / halves[1].high, min(1, halves[0].high / halves[1].low)), rel=0.02
        )


def test_the_smallest_margin_that_has_the_columns_is_meant(margins):
    table = margins.table()
    assert table.estimate(where={}).value == table.values[-1]
    women = table.estimate(where={"sex": "F"})
    assert women.value == pytest.approx(table.values[:3].sum())
    assert table.estimate(where={"state": ["X", "Y"]}).value == pytest.approx(table.values[-1])


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ({"borugh": "North"}, "there is no column 'borugh' in where; did you mean 'borough'?"),
        ({"borough": "Nort"}, "'borough' has no value 'Nort' in where; did you mean 'North'?"),
        ({"borough": "xyz"}, "'borough' has no value 'xyz' in where: choose one of 'North', 'South'"),
        ({"borough": "North", "zone": "S1"}, "no row has the names"),
        ("North", "where must map columns to values"),
        (None, "by one of where"),
    ],
)
def test_names_that_do_not_exist_are_refused_with_the_nearest(moved, where, sentence):
    with pytest.raises(hf.Refused) as refusal:
        moved.table().estimate(where=where)
    assert sentence in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_ratio_lies_between_0_and_1_and_has_no_end_where_its_denominator_may_be_0(moved):
    table = moved.table()
    share = table.ratio({"borough": "South"}, {"city": "city"})
    assert 0 < share.low < share.high < 1
    assert share.value == pytest.approx(table.values[2] / table.values[0])
    centre = table.centre.copy()
    centre[5] = 0  # a rare draw is so far from the empty zone that the ratio has an end
    again = type(table)(table.certificate, table.columns, table.release, table.noisy)
    again.__dict__.update(mechanism=table.mechanism, error_bars=replace(table.error_bars, centre=centre))
    open_ended = again.ratio({"zone": "S2"}, {"zone": "S1"})
    assert open_ended.low == 0
    assert math.isinf(open_ended.high)
    whole = table.ratio({"zone": "N1"}, {"borough": "North"})
    assert whole.high <= 1


def test_a_ratio_that_nothing_certain_allows_keeps_what_is_certain(moved):
    """A rare draw puts a count far below 0: the ratios to it are negative, and the true one is not."""
    table = moved.table()
    again = type(table)(table.certificate, table.columns, table.release, table.noisy)
    centre = table.centre.copy()
    centre[5] = -100
    again.__dict__.update(mechanism=table.mechanism, error_bars=replace(table.error_bars, centre=centre))
    found = again.ratio({"zone": "S2"}, {"zone": "S1"})
    assert (found.low, found.high) == (0, math.inf)


def test_simulated_errors_have_the_spread_that_is_told(moved):
    table = moved.table()
    drawn = table.errors(4000)
    assert drawn.shape == (4000, 8)
    assert drawn.std(axis=0) == pytest.approx(table.error_bars.spread.standard_errors, rel=0.15)
    assert drawn[:, 0] == pytest.approx(drawn[:, 3:].sum(axis=1))
    assert not np.array_equal(table.errors(3, hf.seeded(5)), table.errors(3))


def test_two_releases_are_compared_and_what_shares_a_draw_is_not(tmp_path, moved):
    other = hf.load(release(released.job(tmp_path, "moved")))
    found = moved.table().difference(other.table(), {"borough": "South"})
    assert found.value == moved.values[2] - other.values[2]
    errors = [table.estimate(where={"borough": "South"}).standard_error for table in (moved.table(), other.table())]
    assert found.standard_error == pytest.approx(math.hypot(*errors), rel=0.05)
    assert found.low < found.high
    assert (found.low % 1, found.high % 1) == (0, 0)  # counts differ by whole numbers
    rare = moved.table().difference(other.table(), {"zone": "S2"}, confidence=0.9999)
    assert rare.high - rare.low < 40 * rare.standard_error  # Chebyshev's are 200
    with pytest.raises(hf.Refused, match="share their noise"):
        moved.table().difference(moved.table(), {"borough": "South"})


def test_tables_of_different_domains_are_not_compared(moved, margins):
    with pytest.raises(hf.Refused, match="different domains"):
        moved.table().difference(margins.table(), {"borough": "South"})
    with pytest.raises(hf.Refused, match="a table of a loaded release"):
        moved.table().difference(moved, {"borough": "South"})


def test_tables_are_found_by_their_names(moved):
    assert moved.table("table") is moved.table()
    with pytest.raises(hf.Refused, match="table must be"):
        moved.table("tabel")
    assert repr(moved) == "<Release 'Trips': table (8 figures); print .guarantee for what it promises>"
    assert repr(moved.table()) == "<Table 'table': hierarchy, 8 figures with error bars, made by onto>"


def test_a_certificate_of_a_newer_version_is_refused_in_one_sentence(tmp_path):
    folder = release(released.job(tmp_path))
    path = folder / "certificate.json"
    content = json.loads(path.read_text()) | {"schema": "holdfast-certificate-2"}
    path.write_text(json.dumps(content | {"seal": seal_of(content)}))
    with pytest.raises(hf.Refused, match="was written by a newer holdfast"):
        hf.load(folder)


@pytest.mark.parametrize(("name", "sentence"), [("table.csv", "missing"), ("measurements.parquet", "missing")])
def test_a_folder_with_a_file_missing_is_refused_in_one_sentence(tmp_path, name, sentence):
    folder = release(released.job(tmp_path, "moved"))
    (folder / name).unlink()
    with pytest.raises(hf.Refused, match=f"{name} is {sentence}"):
        hf.load(folder)


@pytest.mark.slow
@pytest.mark.parametrize("method", [pytest.param("onto", marks=pytest.mark.slow), "given-then-onto"])
def test_sums_and_ratios_cover_as_often_as_they_say(tmp_path, method):
    job = released.job(tmp_path, "moved", ("method: onto", f"method: {method}"))
    loaded = hf.load(release(job)).table()
    mechanism, truth = job.tables[0].mechanism, np.array([270, 53, 217, 50, 3, 0, 200, 17])
    stream, weights = hf.seeded(8), np.array([0, 0, 0, 2, 1, 0, 0, -1.0])
    counts, releases = np.zeros((2, 3), dtype=int), 60
    pairs, differences = [], [0, 0]
    for number in range(releases):
        drawn = mechanism.release(truth, rng=stream)
        columns = {**loaded.columns, "value": drawn.values}
        again = type(loaded)(
            loaded.certificate, columns, f"other {number}", {**loaded.noisy, "value": drawn.measurements}
        )
        again.__dict__.update(mechanism=loaded.mechanism, _studies=loaded._studies)
        loaded._study(0)
        for k, confidence in enumerate((0.5, 0.9, 0.98)):
            total = again.estimate(weights=weights, confidence=confidence)
            counts[0, k] += total.low <= weights @ truth <= total.high
        for k, confidence in enumerate((0.5, 0.9)):
            ratio = again.ratio({"zone": "N1"}, {"borough": "South"}, confidence=confidence)
            counts[1, k] += ratio.low <= 50 / 217 <= ratio.high
        pairs.append(again)
    for k, confidence in enumerate((0.5, 0.9)):  # 30 pairs of independent releases of one truth
        for one, two in zip(pairs[::2], pairs[1::2], strict=True):
            found = one.difference(two, {"zone": "S2"}, confidence=confidence)
            differences[k] += found.low <= 0 <= found.high
        assert stats.binom.ppf(RARE, 30, confidence) <= differences[k]
    assert differences[0] < 30
    for k, confidence in enumerate((0.5, 0.9, 0.98)):
        assert (counts[: 2 if k < 2 else 1, k] >= stats.binom.ppf(RARE, releases, confidence)).all()
    assert (counts[:, 0] < releases).all()


def test_numbers_are_shown_for_people():
    shown = str(Estimate(2877642.0, 3.475, 2877635.0, 2877649.0, 0.95))
    assert shown == "2,877,642 (2,877,635 to 2,877,649 at 95 %, standard error 3.48)"
    assert str(Estimate(5.0, None, -0.0, 10.25, 0.9)) == "5 (0 to 11 at 90 %)"  # outwards
    assert str(Estimate(1.0, 0.0, 1 - 3e-12, 1.0, 0.95)) == "1 (0.999999 to 1 at 95 %, standard error 0)"
    assert str(Estimate(16.0, 16.1, 8.0, 71.0, 0.95, 39.5)) == (
        "16 (8 to 71 at 95 %, standard error 16.1; bounds moved the value from 40: "
        "believe the interval, keep the value for sums)"
    )
    assert "bounds" not in str(Estimate(39.0, 16.1, 8.0, 71.0, 0.95, 39.5))
    assert str(Estimate(0.727924, 0.01044, 0.706335, 0.749732, 0.95)) == (
        "0.728 (0.706 to 0.750 at 95 %, standard error 0.0104)"
    )


def test_a_ratio_to_an_exact_figure_is_the_estimate_in_other_units(tmp_path):
    table = hf.load(release(released.job(tmp_path, "hierarchy", ("method: given", "method: onto")))).table()
    part, whole = {"borough": "South", "sex": "F"}, {"city": "city", "sex": "F"}
    found, ratio = table.estimate(part), table.ratio(part, whole)
    assert table.estimate(whole).value == 250
    assert (ratio.value, ratio.low, ratio.high) == (found.value / 250, found.low / 250, found.high / 250)
    zones = table.estimate({"zone": ["N1", "N2"], "sex": "F"})
    assert (zones.low, zones.high) == (np.rint(zones.low), np.rint(zones.high))


def test_ends_for_whole_numbers_are_whole_and_lose_none():
    assert whole_ends(1.2, 5.9) == (2.0, 5.0)
    assert whole_ends(3.0000000001, 2.9999999999) == (3.0, 3.0)
    assert whole_ends(1.2, 1.7) == (1.0, 2.0)
    assert whole_ends(-math.inf, 1.7) == (-math.inf, 1.0)
    assert str(Estimate(-0.0, None, -0.0, math.inf, 0.999)) == "0 (0 to no end at 99.9 %)"


def test_where_one_side_is_exact_a_ratio_and_a_difference_have_the_bars_of_the_other(tmp_path):
    kinds = ("hierarchy", ("method: given", "method: onto"))
    exact, noisy = ({"city": "city", "sex": "F"}, {"borough": "South", "sex": "F"})
    first, second = (hf.load(release(released.job(tmp_path / name, *kinds))).table() for name in "ab")
    assert first.difference(second, exact) == Estimate(0.0, 0.0, 0.0, 0.0, 0.95)
    bar, upside_down = first.estimate(noisy), first.ratio(exact, noisy)
    assert (upside_down.low, upside_down.high) == (250 / bar.high, 250 / bar.low)


def test_a_ratio_is_about_as_wide_as_the_bars_of_its_figures(tmp_path):
    table = hf.load(release(released.job(tmp_path, "moved", epsilon="20"))).table()
    bar, ratio = table.estimate({"zone": "S2"}), table.ratio({"zone": "S2"}, {"zone": "N1"})
    assert (ratio.high - ratio.low) / ratio.standard_error < 1.15 * (bar.high - bar.low + 1) / bar.standard_error


def test_ratios_of_intervals_have_an_end_where_the_lower_one_is_above_0():
    assert quotient((1, 4), (2, 8)) == (1 / 8, 2)
    assert quotient((-1, 4), (2, 8)) == (-1 / 2, 2)
    assert quotient((0, math.inf), (2, math.inf)) == (0, math.inf)
    assert quotient((3, 4), (0, 6)) == (1 / 2, math.inf)
    assert quotient((3, 4), (-1, 6)) == (-math.inf, math.inf)


def test_what_was_just_released_is_read_when_it_is_asked_for(tmp_path):
    job = hf.job(released.written(tmp_path, "several"))
    made = job.release()
    assert "sexes (2 figures), ages (3 figures)" in repr(made)
    assert "tables" not in vars(made)
    assert made.table("ages").values.tolist() == hf.load(made.folder).table("ages").values.tolist()
    assert "tables" in vars(made)
