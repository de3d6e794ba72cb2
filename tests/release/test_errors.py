"""Errors that a plan foresees, measured on simulated tables."""

import numpy as np
import pytest

from holdfast.release.job.errors import STEPS, TABLES
from jobs import job, tree


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
