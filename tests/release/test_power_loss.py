"""Power that goes at any call to the file system: no charge is lost, and no half release is seen."""

import random

import pytest

import power_loss
import released


def found(tmp_path, share, *careless):
    spec = released.written(tmp_path / "job")
    try:
        cases = power_loss.states(spec, tmp_path, random.Random(5), share, careless)
        return [(way, drawn, power_loss.wrong_with(place, spec, drawn)) for _, way, place, drawn in cases]
    except power_loss.Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
def test_whatever_was_not_synced_is_not_missed(tmp_path):
    """A share of `script/harden power`, which does the same with all examples."""
    cases = found(tmp_path, 0.08)
    assert {(way, drawn) for way, drawn, _ in cases} >= {(way, True) for way in ("killed", "dropped", "names", "some")}
    assert [wrong for _, _, wrong in cases if wrong is not None] == []


@pytest.mark.slow
def test_a_release_that_syncs_nothing_itself_is_caught(tmp_path):
    wrong = [(way, words) for way, _, words in found(tmp_path, 0.15, "careless") if words is not None]
    assert {way for way, _ in wrong} >= {"names", "some"}  # its names would last, and not what they are names of
    assert all("published" in words for _, words in wrong)
