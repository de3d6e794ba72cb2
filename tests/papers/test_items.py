"""Every item of the papers runs on little made-up data, comes to its verdict, and shows itself."""

import json
import math

import numpy as np
import pytest

from holdfast.papers import ITEMS, Claim, Findings, Row, Study, find, run
from holdfast.papers.catalogue import pages
from holdfast.papers.reproduction import CORRECTED, DIFFERS, EXTENDED, REPRODUCED

SMALL = Study(effort=0.02)
#: What each item comes to. A claim that turns out otherwise changes it.
VERDICTS = {
    "two-views-belief-change": CORRECTED,
    "two-views-table-1": CORRECTED,
    "two-views-lemmas": CORRECTED,
    "two-views-variances": REPRODUCED,
    "two-views-algorithm-1": CORRECTED,
    "two-views-tables-2-3": CORRECTED,
    "two-views-future": EXTENDED,
    "subspace-counties": REPRODUCED,  # without demonstration data
    "subspace-ten-states": REPRODUCED,
    "subspace-campus": CORRECTED,
    "subspace-theorem-22": REPRODUCED,
    "subspace-gaussian": CORRECTED,
    "subspace-laplace": CORRECTED,
    "subspace-properties": REPRODUCED,
    "subspace-algorithm-3": REPRODUCED,
    "refinement-example-1": REPRODUCED,
    "refinement-grades": REPRODUCED,
    "refinement-theorem-2": CORRECTED,
    "refinement-theorem-3": REPRODUCED,
    "refinement-appendix": CORRECTED,
    "refinement-future": EXTENDED,
}


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_an_item_comes_to_its_verdict(item):
    found = run(item, SMALL)
    assert found.verdict == VERDICTS[item.name], found.findings.why
    json.dumps(found.as_mapping(), allow_nan=False)
    text = pages([found], "No data were given.")[f"{item.name}.html"]
    assert found.title.split(":")[0] in text
    assert "<script" not in text
    assert all(str(picture).count("<svg") == 1 for _, picture in found.findings.pictures)


def test_a_verdict_follows_from_claims():
    def verdict(*claims):
        return Findings(tuple(Claim("", holds, "", ours=ours) for holds, ours in claims)).verdict

    assert verdict((True, False)) == REPRODUCED
    assert verdict((False, False)) == DIFFERS
    assert verdict((False, False), (True, True)) == CORRECTED
    assert verdict((True, False), (False, True)) == DIFFERS
    assert verdict((True, True)) == EXTENDED


def test_rows_carry_standard_errors():
    row = Row.of("mean", 2.0, np.array([1.0, 3.0]))
    assert (row.computed, row.error) == (2.0, 1.0)
    assert row.words() == ("mean", "2", "2.0 ± 1.0")
    assert Row("mean", None, 0.0183149, 0.000523).words()[2] == "0.01831 ± 0.00052"
    assert Row("mean", None, -12345.6, 78.9).words()[2] == "−12,346 ± 79"
    assert math.isnan(Row("one", None, 1.0).error)


def test_names_are_found_or_named():
    assert find("refinement-grades").paper.name == "Linear Refinement"
    with pytest.raises(ValueError, match="did you mean two-views-table-1"):
        find("table-1")
