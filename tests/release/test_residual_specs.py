"""Noise on residuals in a spec: planned, released, certified, rebuilt from the folder, and refused where it must be."""

import numpy as np
import pytest

import holdfast as hf
import tampering
from holdfast.release.certificate.verify import verify
from town import job, write

BEST = ("  shares: best", "  residuals: true\n  shares: best")
CUBE = ("  hierarchy: [quarter, block]\n  root: town\n", "")
MARGINS = (
    "  measure: {town: all, quarter: [[sex, age], lives, total], block: [total, all]}",
    "  margins: [[sex, age], [sex]]",
)


REPLACE = ("{rho: 1}", "{rho: 1, neighbours: replace-one}")


@pytest.mark.parametrize(
    "changes",
    [
        [BEST],
        [BEST, REPLACE],
        [BEST, CUBE, MARGINS, (", records: true", "")],
        [BEST, CUBE, MARGINS, (", records: true", ""), REPLACE],
    ],
)
def test_a_release_with_noise_on_residuals(tmp_path, changes):
    """The law of the folder is that of the job, also where an axis has no figure; and its error is the least."""
    write(tmp_path)
    made = job(tmp_path, *changes)
    table = made.made.tables[0]
    assert made.guarantee.rho == pytest.approx(1)
    assert made.guarantee.rho <= 1
    assert all("Gaussian on residuals" in level.in_words for level in made.plan().tables[0].levels)
    released = made.release()
    assert verify(released.folder).ok
    found = released.table().mechanism
    assert found.guarantee.rho == pytest.approx(1)
    np.testing.assert_allclose(found.linear_part.standard_error(), table.mechanism.linear_part.standard_error())
    assert all(not level.noise for level in released.table().certificate.noise_by_level)
    query, asked = table.layout.query, {"neighbours": table.problem.neighbours, "residuals": True}
    least = hf.best_shares(query, **asked).squared_error / 2
    drawn = hf.gaussian(query, rho=1, integer=False, shares=table.problem.residuals, **asked)
    assert float((drawn.standard_error() ** 2).sum()) == pytest.approx(least, rel=1e-5)
    # what costs nothing does not take the weight of what is hidden: blocks weigh far less than the town's total
    weighs = [float(law.sigma2) for law in table.mechanism.base.law.laws]
    assert max(weighs) > 2 * min(weighs)


def test_both_verifiers_find_residuals_of_a_level_that_is_not_there(tmp_path):
    write(tmp_path)
    folder = job(tmp_path, BEST).release().folder
    certificate = tampering.certificate_of(folder)
    tampering.replaced(certificate, ("tables", 0, "residuals", 0, "level"), "other")
    tampering.sealed(folder, certificate)
    for found in tampering.broken(folder):
        assert any("noise at a level that the table does not" in words for words in found.values()), found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([BEST, ("{rho: 1}", "{epsilon: 1}")], "table.residuals: noise on residuals is Gaussian: ask for rho"),
        ([("shares: best", "residuals: true\n  shares: {block: 1}")], "table.shares: noise on residuals has shares"),
        ([BEST, ("nonnegative]", "nonnegative, {exact: [quarter]}]")], "beside exact figures: leave one of them out"),
        ([BEST, ("output:", "engine: spark\noutput:")], "noise on residuals is drawn by one process"),
        ([BEST, ("output:", "method: given\noutput:")], "noise on residuals cannot be conditioned"),
        (
            [
                ("  shares: best", "  residuals: true\n  numbers: real"),
                *(CUBE, MARGINS, (", records: true", ""), (", nonnegative]", "]")),
                ("output:", "method: extend-gaussian\noutput:"),
            ],
            "extend-gaussian makes noise of its own: leave residuals out",
        ),
        (
            [("  cube: [sex, age, lives]\n", "  residuals: true\n"), (MARGINS[0], ""), ("  shares: best", "")],
            "residuals go with cube",
        ),
    ],
)
def test_what_noise_on_residuals_is_refused_for(tmp_path, changes, said):
    write(tmp_path)
    with pytest.raises(hf.Refused) as refused:
        _ = job(tmp_path, *changes).made
    assert said in str(refused.value), refused.value
