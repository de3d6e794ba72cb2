"""Errors that a spec accepts at most: judged by the plan, refused before the charge, solved for a budget."""

import math

import numpy as np
import polars as pl
import pytest

from holdfast.arguments import Refused
from holdfast.release.certificate.certificate import FILE, read_certificate
from holdfast.release.certificate.verify import verify
from holdfast.release.error_targets import _searched, accepted
from holdfast.release.job.errors import STEPS, TABLES
from holdfast.release.plan import plan
from holdfast.release.run import could_release, release
from holdfast.release.spec.places import SpecError
from holdfast.release.standalone_verifier.verify import checks as checks_of
from jobs import job, tree

AGES = "data: {name: x, values: {age: [1, 2, 3]}}\ntable: {histogram: age}\n"


def ages(epsilon, accept):
    return f"{AGES}privacy: {{epsilon: {epsilon}}}\naccept: {{age: {accept}}}\n"


def mean(epsilon):
    """E|u| of the integer Laplace law P(u) ∝ a^|u|, a = e^(−ε)."""
    a = math.exp(-epsilon)
    return 2 * a / (1 - a * a)


def within(epsilon, limit):
    """P(|u| ≤ limit) of the same law."""
    a = math.exp(-epsilon)
    return 1 - 2 * a ** (limit + 1) / (1 + a)


def test_a_mean_and_a_part_are_judged_by_the_law(tmp_path):
    """At ε = 1/2 the mean error is 1.92, and 90 in 100 are within 4: P(|u| ≤ 4) = 0.898 and P(|u| ≤ 5) = 0.938."""
    assert within(0.5, 4) < 0.9 < within(0.5, 5)
    for accept, met in [
        ("{error: 2.1}", True),  # six standard errors of 6,000 draws are 0.15
        ("{error: 1.7}", False),
        ("{error: 5, confidence: 0.9}", True),
        ("{error: 4, confidence: 0.93}", False),
        ("{error: 4, confidence: 0.88}", True),
    ]:
        found = accepted(job(tmp_path, ages(0.5, accept)))
        assert found.met is met, accept
        assert found.each[0].met is met


def test_the_budget_that_would_do_is_the_least_one(tmp_path):
    """The mean error falls to 1/2 where 2a/(1 − a²) = 1/2: a = √5 − 2, ε = 1.444; simulation is good to 4 %."""
    found = accepted(job(tmp_path, ages(0.5, "{error: 0.5}")))
    expected = -math.log(math.sqrt(5) - 2)
    assert mean(expected) == pytest.approx(0.5)
    assert float(found.amount) == pytest.approx(expected, rel=0.04)
    at = accepted(job(tmp_path, ages(found.amount, "{error: 0.5}")))
    assert at.met
    assert not accepted(job(tmp_path, ages(round(0.97 * float(found.amount), 3), "{error: 0.5}"))).met


@pytest.mark.parametrize("start", [0.001, 0.3, 7.0, 200.0])
@pytest.mark.parametrize(("power", "place"), [(1.0, 2.345), (2.0, 0.0456), (1.0, 199.0)])
def test_the_search_ends_just_above_the_least_amount(start, power, place):
    found = float(_searched(lambda amount: (place / amount) ** (1 / power), start, power))
    assert place <= found <= place * 1.011


def test_the_search_says_when_no_amount_does():
    assert _searched(lambda _: 1.5, 1.0, 1.0) is None
    assert _searched(lambda amount: math.nan if amount > 5 else 10.0, 1.0, 1.0) is None


def test_a_release_is_refused_before_the_charge(tmp_path):
    made = job(tmp_path, tree(rest="hold: [consistent]\nmethod: onto\naccept: {zone: {error: 0.1, confidence: 0.9}}"))
    for attempt in (lambda: could_release(made), lambda: release(made)):
        with pytest.raises(SpecError, match=r"accept: the errors would be larger .* at epsilon \d") as caught:
            attempt()
        assert caught.value.key == "accept"
    assert not (tmp_path / "holdfast-ledger.sqlite").exists()
    assert not (tmp_path / "out").exists()


def test_an_error_that_verification_would_refuse_is_refused_before_the_charge(tmp_path):
    """A level whose certified error is not the one that was judged would else be found after the charge."""
    made = job(tmp_path, ages(0.5, "{error: 4.5}"))
    vars(made.tables[0])["levels"] = (made.tables[0].levels[0].model_copy(update={"expected_absolute_error": 3.0}),)
    with pytest.raises(Refused, match="would not pass its own verification: the mean error of age"):
        release(made, source=pl.DataFrame({"age": [1, 2]}))
    assert not made.spec.ledger_file.exists()


def test_what_nobody_can_tell_is_not_met(tmp_path):
    sides = "hold: [consistent, {either: [{equals: {sum: [N1], value: 0}}, {equals: {sum: [N1], value: 9}}]}]"
    made = job(tmp_path, tree(rest=f"{sides}\nmethod: onto\naccept: {{zone: {{error: 100}}}}"))
    found = accepted(made)
    assert not found.met
    assert found.amount is None
    assert "nobody can tell" in str(found.each[0])
    assert found.as_mapping()["levels"][0]["reached"] is None


def test_levels_are_named_as_in_shares(tmp_path):
    with pytest.raises(SpecError, match="there is no level or margin 'zon'") as caught:
        plan(job(tmp_path, tree(rest="hold: [consistent]\nmethod: onto\naccept: {zon: {error: 1}}")))
    assert caught.value.key == "accept.zon"
    for wrong, words in [
        ("{zone: {error: 0}}", "above 0"),
        ("{zone: {error: 1, confidence: 1}}", "between 0 and 1"),
        ("{zone: {confidence: 0.9}}", "missing"),
        ("{zone: 5}", "mapping"),
    ]:
        with pytest.raises(SpecError, match=words):
            job(tmp_path, tree(rest=f"accept: {wrong}"))


def test_it_is_no_part_of_the_hash_where_nothing_is_accepted(tmp_path):
    bare = job(tmp_path, tree()).spec
    assert '"accept"' not in bare.canonical
    assert '"accept"' in job(tmp_path, tree(rest="accept: {zone: {error: 50}}")).spec.canonical


def test_an_outlook_has_the_figures_of_the_plan(tmp_path):
    table = job(tmp_path, tree(rest="hold: [consistent]\nmethod: onto")).tables[0]
    found = table.errors_on(TABLES)
    assert [level.absolute for level in found.levels] == list(table.errors.absolute)
    assert found.score == table.errors.score
    for level in found.levels:
        assert len(level.magnitudes) == STEPS + 1
        assert level.bars.sum() == pytest.approx(1, abs=0.02)
        assert (np.diff(level.magnitudes) >= 0).all()
        assert level.within(0.95) >= level.within(0.5)
    few = table.errors_on(50)
    for rough, fine in zip(few.levels, found.levels, strict=True):
        assert abs(rough.absolute - fine.absolute) < 6 * rough.uncertain
        assert rough.uncertain > fine.uncertain


def test_the_certificate_says_what_was_accepted_and_verify_checks_it(tmp_path):
    """Each table has ε = 1/2: both errors are met, stated with their figures, and checked."""
    text = (
        "data: {name: x, values: {age: [1, 2, 3]}}\ntables:\n"
        "  - {name: a, histogram: age, accept: {age: {error: 4.5}}}\n"
        "  - {name: b, histogram: age, accept: {age: {error: 12, confidence: 0.95}}}\nprivacy: {epsilon: 1}\n"
    )
    made = job(tmp_path, text)
    source = pl.DataFrame({"age": [1, 2, 2, 3, 3, 3]})
    folder = release(made, source=source)
    found = read_certificate(folder)
    mean_of, part_of = found.tables[0].accepted[0], found.tables[1].accepted[0]
    assert (mean_of.error, mean_of.confidence) == ("4.5", None)
    assert mean_of.reached == pytest.approx(found.tables[0].noise_by_level[0].expected_absolute_error)
    assert (part_of.error, part_of.confidence) == ("12", "0.95")
    assert within(0.5, 5) < 0.95 < within(0.5, part_of.reached)
    found_right = {check.name: check for check in verify(folder).checks}
    assert found_right["accepted errors"].ok
    assert {name: wrong for name, _, wrong in checks_of(str(folder), None)}["accepted errors"] is None
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Errors that were accepted beforehand" in page
    assert "the error that 95 in 100 figures keep" in page
    assert "no error that the plan foresaw is larger than the spec accepts" in page

    for words, change in {
        "larger than accepted": {"reached": 13.0},
        "not those that the spec accepts": {"error": "13"},
        "no level": {"level": "moon"},
    }.items():
        table = found.tables[1].model_copy(update={"accepted": [part_of.model_copy(update=change)]})
        (folder / FILE).write_text(found.model_copy(update={"tables": [found.tables[0], table]}).sealed().to_json())
        broken = {check.name: check for check in verify(folder).checks}["accepted errors"]
        assert not broken.ok
        assert words in broken.sentence
        alone = {name: wrong for name, _, wrong in checks_of(str(folder), None)}["accepted errors"]
        assert words in alone
    for accepted_of, words in (
        ([mean_of.model_copy(update={"reached": 0.5})], "not the one that the plan had"),
        ([], "not those that the spec accepts"),
    ):
        table = found.tables[0].model_copy(update={"accepted": accepted_of})
        (folder / FILE).write_text(found.model_copy(update={"tables": [table, found.tables[1]]}).sealed().to_json())
        assert words in {check.name: check for check in verify(folder).checks}["accepted errors"].sentence
