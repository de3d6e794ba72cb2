"""With real numbers the conditional law is that of real noise, and the statement says so; moved noise stays whole."""

import numpy as np
import pytest

from holdfast.release.certificate.verify import verify
from holdfast.release.plan import plan
from holdfast.release.run import release
from holdfast.release.spec.places import SpecError
from holdfast.release.storage.tables import read_parquet
from jobs import cube, job, tree
from released import job as with_records

EXACT = "hold: [consistent, {exact: [borough]}]\nmethod: "


@pytest.mark.parametrize(
    ("method", "numbers", "whole"),
    [
        ("given", "real", False),
        ("given-then-onto", "real", False),
        ("onto", "real", True),
        ("given", "whole", True),
        ("onto", "whole", True),
    ],
)
def test_which_noise_is_whole(tmp_path, method, numbers, whole):
    made = job(tmp_path, tree(table=f"numbers: {numbers}", rest=EXACT + method))
    assert made.tables[0].mechanism.base.law.integer is whole
    assert any("last digits can leak" in caveat for caveat in made.guarantee.caveats) is not whole


def test_real_noise_has_the_statement_about_the_subspace(tmp_path):
    text = tree(privacy="epsilon: 1, scope: subspace", table="numbers: real", rest=EXACT + "given")
    made = job(tmp_path, text)
    assert (made.guarantee.scope, made.guarantee.epsilon) == ("subspace", pytest.approx(1))
    with pytest.raises(SpecError, match="scope can be invariant-sharing"):
        job(tmp_path, text.replace("numbers: real", "numbers: whole"))


def test_released_values_are_real_and_add_up(tmp_path):
    more = "hold: [{exact: [[sex], [age]]}]\nmethod: given"
    table = ("table: {histogram: age}", "table: {cube: [sex, age], numbers: real}")
    made = with_records(tmp_path, "histogram", table, more=more)
    assert "Laplace, scale" in plan(made).tables[0].levels[0].in_words
    folder = release(made)
    verdict = verify(folder)
    assert verdict.ok, str(verdict)
    table = read_parquet(folder / "table.parquet")
    values = np.asarray(table["value"])[np.asarray(table["level"]) == "sex × age"]  # exact margins are rows too
    assert (values != np.rint(values)).any()
    assert values.reshape(2, 3).sum(axis=0) == pytest.approx([67, 3, 200])


def test_what_real_noise_cannot_is_refused_in_words_of_the_spec(tmp_path):
    bounded = "hold: [consistent, nonnegative]\nmethod: given"
    with pytest.raises(SpecError, match="no exact way is known to draw continuous Gaussian noise"):
        job(tmp_path, tree(privacy="rho: 1", table="numbers: real", rest=bounded))


def test_a_law_within_bounds_that_nothing_draws_without_them_is_not_measured(tmp_path):
    text = cube(table="margins: [[sex, age], [sex], [age]]", rest="hold: [consistent, {between: {low: 0, high: 9}}]")
    made = job(tmp_path, f"{text}method: given\n")
    assert made.tables[0].mechanism.method == "enumeration"
    assert "nobody can tell" in made.tables[0].errors.basis
