"""Every way to hold exact figures is reached from the spec: noise made for them, projections and walks."""

import re

import numpy as np
import pytest

from holdfast.release.explain import explain
from holdfast.release.job.methods import EXTENDED, evidence
from holdfast.release.plan import plan
from holdfast.release.spec.places import SpecError
from holdfast.release.spec.table import METHODS
from holdfast.subspace import LAWS
from jobs import cube, job, tree

EXACT = "hold: [{exact: [sex, age]}]"
BUDGETS = {
    "gaussian": "neighbours: replace-one, rho: 0.5",
    "laplace": "neighbours: replace-one, epsilon: 0.5",
    "laplace and delta": "neighbours: replace-one, noise: laplace, epsilon: 0.5, delta: 1e-6",
}
CELLS = "data: {source: a.csv, values: {size: [1, 2, 3, 4]}}\nprivacy: {epsilon: 1}\n"


def crossed(kind: str, method: str, table: str = "numbers: real", hold: str = EXACT) -> str:
    return cube(privacy=BUDGETS[kind], table=table, rest=f"{hold}\nmethod: {method}")


def test_the_spec_names_every_law():
    assert (
        {name for name in METHODS if name.startswith("extend-")} == {f"extend-{law}" for law in LAWS} == set(EXTENDED)
    )


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        ("optimal", "gaussian"),
        ("gaussian", "gaussian"),
        ("correlated", "gaussian"),
        ("laplace", "laplace"),
    ],
)
def test_noise_made_for_exact_margins_meets_the_budget(tmp_path, law, kind):
    made = job(tmp_path, crossed(kind, f"extend-{law}"))
    table = made.tables[0]
    assert table.mechanism.source.law == law
    found = made.guarantee.rho if kind == "gaussian" else made.guarantee.epsilon
    assert 0.5 * (1 - 1e-6) < found <= 0.5
    assert (made.guarantee.scope, made.guarantee.records, made.guarantee.status) == ("invariant-sharing", 2, "proved")
    assert {each.scope for each in made.guarantees} == {"invariant-sharing", "subspace"}
    assert any("published exactly: sex (all 2 figures), age (all 3 figures)" in words for words in made.unprotected)
    drawn = table.mechanism.simulate(np.full(6, 10), 3).reshape(3, 2, 3)
    assert np.allclose(drawn.sum(axis=1), 20)
    assert np.allclose(drawn.sum(axis=2), 30)
    assert np.ptp(drawn) > 0


def test_k_norm_noise_with_an_exact_total(tmp_path):
    rest = "table: {histogram: size, numbers: real}\nhold: [{exact: [total]}]\nmethod: extend"
    table = job(tmp_path, CELLS + rest).tables[0]
    assert {each.method: each.chosen for each in table.comparison} == {"extend-laplace": False, "extend-k-norm": True}
    assert table.errors.score == min(each.expected_absolute_error for each in table.comparison)


def test_scopes_can_be_chosen(tmp_path):
    text = crossed("gaussian", "extend-gaussian").replace("rho: 0.5", "rho: 0.5, scope: subspace")
    made = job(tmp_path, text)
    assert made.guarantee.scope == "subspace"
    assert made.guarantee.rho == pytest.approx(0.5)


def test_the_plan_says_how_good_the_noise_is(tmp_path):
    made = job(tmp_path, crossed("gaussian", "extend-optimal"))
    planned = plan(made).tables[0]
    (words,) = evidence(planned.mechanism)
    gap = re.fullmatch(r"its total squared error is within (\S+) % of the least of any Gaussian noise", words)
    assert gap is not None
    assert float(gap[1]) < 0.1
    assert "standard error" in planned.levels[0].in_words
    assert words in explain(made)["How the noise is drawn"][0]
    assert evidence(plan(job(tmp_path, crossed("laplace", "given", hold=EXACT))).tables[0].mechanism) == ()


def test_figures_without_noise_are_shown_as_exact(tmp_path):
    rest = "hold: [consistent, {exact: [borough]}]\nmethod: extend-gaussian"
    planned = plan(job(tmp_path, tree(privacy="rho: 1", table="numbers: real", rest=rest))).tables[0]
    assert planned.levels[0].in_words == "none: follows from exact figures"
    assert (planned.levels[0].expected_absolute_error, planned.levels[0].interval_width) == (0, 0)
    assert planned.levels[2].expected_absolute_error > 0.1


def test_projections_weigh_all_outputs_alike(tmp_path):
    text = tree(
        table="numbers: real, shares: {city: 1, borough: 1, zone: 4}", rest="hold: [consistent, {exact: [city]}]"
    )
    found = job(tmp_path, text).tables[0]
    assert "project" in [each.method for each in found.comparison]
    named = job(tmp_path, text + "method: project\n").tables[0]
    assert named.chosen.method == "project"
    move = named.mechanism.moves[0]
    assert (np.asarray(move.problem.spreads) == 1).all()
    assert not move.problem.integer


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "expected"), [("gaussian", "extend-optimal"), ("laplace", "extend-laplace")])
def test_auto_compares_noise_made_for_exact_figures(tmp_path, kind, expected):
    compared = {each.method: each for each in job(tmp_path, crossed(kind, "auto")).tables[0].comparison}
    assert compared[expected].expected_absolute_error is not None
    chosen = next(each for each in compared.values() if each.chosen)
    scores = [each.expected_absolute_error for each in compared.values() if each.basis is not None]
    assert chosen.expected_absolute_error <= 1.06 * min(scores)  # equal to two digits
    whole = job(tmp_path, crossed(kind, "auto", table="")).tables[0]
    assert expected not in [each.method for each in whole.comparison]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (crossed("laplace", "extend-optimal"), "not Laplace noise: write delta beside epsilon, or rho under privacy"),
        (crossed("gaussian", "extend-k-norm"), "not Gaussian noise: write noise: laplace under privacy"),
        (crossed("gaussian", "project", table=""), "write numbers: real in the table, or use given"),
        (
            crossed("gaussian", "extend-optimal", hold="hold: [nonnegative, {exact: [sex]}]"),
            "not bounds, orders or either: leave those out, or use given, onto or given-then-onto",
        ),
        (crossed("gaussian", "project", hold="hold: [nonnegative]"), "not bounds, orders or either"),
        (
            crossed("laplace", "extend-k-norm").replace("[F, M]", "[A, B, C, D]").replace("adult", "a, b, c, d, e"),
            "alone or beside an exact total: use extend-laplace",
        ),
        (
            tree(
                privacy="rho: 1",
                table="numbers: real, shares: {zone: 1, city: 1}",
                rest="hold: [consistent]\nmethod: extend-gaussian",
            ),
            "leave shares out, or use project",
        ),
    ],
)
def test_what_a_method_cannot_do_is_refused_with_a_remedy(tmp_path, text, words):
    with pytest.raises(SpecError, match=re.escape(words)) as caught:
        job(tmp_path, text)
    assert caught.value.key == "method"
    assert "law=" not in str(caught.value)
    assert "(...)" not in str(caught.value)


def test_misspelt_methods_name_the_nearest(tmp_path):
    with pytest.raises(SpecError) as caught:
        job(tmp_path, crossed("gaussian", "extend-optimum"))
    assert (caught.value.line, caught.value.key, caught.value.nearest) == (7, "method", "extend-optimal")


@pytest.mark.parametrize(
    ("law", "kind"),
    [("optimal", "gaussian"), ("gaussian", "gaussian"), ("correlated", "gaussian"), ("laplace", "laplace")],
)
def test_whole_noise_made_for_exact_figures_meets_the_budget(tmp_path, law, kind):
    """Whole numbers are the default: the noise is then whole, and only data that share the figures are spoken of."""
    privacy = {"gaussian": "rho: 0.2", "laplace": "epsilon: 0.5"}[kind]
    made = job(tmp_path, tree(privacy=privacy, rest=f"hold: [consistent, {{exact: [borough]}}]\nmethod: extend-{law}"))
    table = made.tables[0]
    found = made.guarantee.rho / 0.2 if kind == "gaussian" else made.guarantee.epsilon / 0.5
    assert 1 - 1e-9 < found <= 1
    assert (made.guarantee.scope, made.guarantee.records, made.guarantee.status) == ("invariant-sharing", 4, "proved")
    truth = table.layout.query.answer(np.full(5, 10))
    drawn = table.mechanism.simulate(truth, 50)
    exact = np.asarray(table.layout.query.tree.depth) < 2
    assert drawn.dtype == np.int64
    assert (drawn[:, exact] == truth[exact]).all()
    assert np.ptp(drawn[:, ~exact]) > 0
    if law == "optimal":
        planned = plan(made).tables[0]
        assert any("of the least of any Gaussian noise" in words for words in evidence(planned.mechanism))
        assert planned.levels[2].in_words.startswith("optimal lattice Gaussian, standard error")
