"""What nothing protects is listed to the last figure, although words and statements are short."""

import numpy as np
import pytest

from holdfast.release.explain import explain
from holdfast.release.job.caveats import SHORTENED
from holdfast.release.job.unprotected import FIXED, NAMED, PUBLISHED, Unprotected
from jobs import cube, job, tree

MANY = "borough,zone\n" + "".join(f"B{i},B{i}-{j}\n" for i in range(40) for j in range(1 + i % 3))


def rows(found: list[Unprotected], why: str) -> set[int]:
    return {row for each in found if each.why == why for a, b in each.rows for row in range(a, b + 1)}


def changeable(made, exact: set[int]) -> set[int]:
    """The outputs that some replacement of one record by another changes while it keeps the exact ones."""
    query, changed = made.tables[0].layout.query, set()
    unit = np.eye(query.cells, dtype=np.int64)
    answers = [query.answer(cell) for cell in unit]
    for one in answers:
        for other in answers:
            moved = set(np.flatnonzero(one - other).tolist())
            if not moved & exact:
                changed |= moved
    return changed


@pytest.mark.parametrize("hold", ["exact: [borough]", "exact: [city]", "exact: [borough, B1-0]"])
def test_every_figure_that_no_allowed_change_alters_is_listed(tmp_path, hold):
    text = tree(privacy="epsilon: 1, neighbours: replace-one", rest=f"hold: [consistent, {{{hold}}}]\nmethod: given")
    made = job(tmp_path, text, zones_csv=MANY)
    table = made.tables[0]
    exact = {row for figure in table.holding.account["exact"] for (row,) in figure["rows"]}
    assert rows(table.unprotected, PUBLISHED) == exact
    listed = rows(table.unprotected, PUBLISHED) | rows(table.unprotected, FIXED)
    assert listed == exact | (changeable(made, set()) - changeable(made, exact))
    assert sum(each.figures for each in table.unprotected) == len(listed)


def test_long_lists_are_short_in_words_and_say_where_all_are(tmp_path):
    text = tree(
        privacy="epsilon: 1, neighbours: replace-one", rest="hold: [consistent, {exact: [borough]}]\nmethod: given"
    )
    made = job(tmp_path, text, zones_csv=MANY)
    assert any("and 34 more (published exactly)" in item for item in made.guarantee.unprotected)
    assert SHORTENED in made.caveats
    published, fixed = made.unprotected
    alone = sum(1 for i in range(40) if i % 3 == 0)
    assert alone > NAMED
    assert published == "table: published exactly: borough (all 40 figures)"
    assert fixed == (
        f"table: no number of records alters: zone ({alone} of 79 figures); the certificate lists their rows"
    )
    assert f"{fixed}." in explain(made)["What is given away"]
    few = job(tmp_path, text.replace("replace-one", "add-remove"))
    assert SHORTENED not in few.caveats
    assert few.unprotected[1] == "table: no number of records alters: city"


def test_exact_margins_are_counted_and_cells_that_they_fix_are_listed(tmp_path):
    rest = "hold: [{exact: [[sex], [age]]}, {impossible: [{sex: F, age: old}]}]\nmethod: onto"
    (table,) = job(tmp_path, cube(table="numbers: real", rest=rest)).tables
    margins = [(each.level, each.figures, each.rows) for each in table.unprotected if each.why == PUBLISHED]
    assert margins == [("sex", 2, ()), ("age", 3, ())]
    assert rows(table.unprotected, FIXED) == {5}


def test_a_job_that_publishes_nothing_exactly_leaves_nothing_out(tmp_path):
    made = job(tmp_path, tree())
    assert made.unprotected == ()
    assert explain(made)["What is given away"] == ["Nothing is published exactly: every figure is protected."]
