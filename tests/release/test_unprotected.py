"""What nothing protects is listed to the last figure, although words and statements are short."""

import numpy as np
import pytest

import holdfast as hf
from holdfast.release.certificate.load import load
from holdfast.release.explain import explain
from holdfast.release.job.job import SHORTENED
from holdfast.release.job.unprotected import IDLE, NAMED, UNMOVED, Unprotected, standing
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec
from holdfast.release.standalone_verifier.facts import FOLLOWS, PUBLISHED
from holdfast.release.table.holding import holding
from holdfast.release.table.laid import layout
from holdfast.release.table.public import PublicFiles
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
    exact = {row for figure in table.holding.holds.model_dump()["exact"] for (row,) in figure["rows"]}
    assert rows(table.unprotected, PUBLISHED) == exact
    listed = rows(table.unprotected, PUBLISHED) | rows(table.unprotected, FOLLOWS)
    assert listed == set(range(table.layout.query.n)) - changeable(made, exact)
    assert set(np.flatnonzero(table.standing.as_in_the_data)) == listed
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
    assert published == "published exactly: borough (all 40 figures)"
    assert fixed == (
        f"follows from exact figures: city, zone ({alone} of 79 figures); the certificate lists their rows"
    )
    assert f"F{fixed[1:]}." in explain(made)["What is given away"]
    few = job(tmp_path, text.replace("replace-one", "add-remove"))
    assert SHORTENED not in few.caveats
    assert few.unprotected[1] == "follows from exact figures: city"


def test_exact_margins_are_counted_and_cells_that_they_fix_are_listed(tmp_path):
    rest = "hold: [{exact: [[sex], [age]]}, {impossible: [{sex: F, age: old}]}]\nmethod: onto"
    (table,) = job(tmp_path, cube(table="numbers: real", rest=rest)).tables
    margins = [(each.level, each.figures, tuple(each.rows)) for each in table.unprotected if each.why == PUBLISHED]
    assert margins == [("sex", 2, ((6, 7),)), ("age", 3, ((8, 10),))]
    assert rows(table.unprotected, FOLLOWS) == {5}
    assert np.flatnonzero(table.standing.defined).tolist() == [2]


def test_a_job_that_publishes_nothing_exactly_leaves_nothing_out(tmp_path):
    made = job(tmp_path, tree())
    assert made.unprotected == ()
    assert explain(made)["What is given away"] == ["Nothing is published exactly: every figure is protected."]


def test_a_total_that_no_replacement_alters_is_not_called_protected(tmp_path):
    made = job(tmp_path, tree(privacy="epsilon: 1, neighbours: replace-one"))
    assert made.unprotected == ("unchanged when a record is replaced by another, and so not hidden: city",)
    assert [each.why for each in made.tables[0].unprotected] == [UNMOVED]
    total = job(tmp_path, cube(privacy="epsilon: 1, neighbours: replace-one", table="margins: [[], [sex]]"))
    assert total.unprotected == ("unchanged when a record is replaced by another, and so not hidden: total",)


def test_noise_on_what_exact_figures_tell_protects_nothing(tmp_path):
    (table,) = job(tmp_path, tree(rest="hold: [{exact: [borough]}]\nmethod: given")).tables
    assert rows(table.unprotected, IDLE) == {0}
    city, borough, zone = table.levels
    assert (city.exact, borough.exact, zone.exact) == (False, True, False)
    assert borough.in_words == "none: published exactly"
    assert city.in_words.startswith("integer Laplace")


@pytest.mark.parametrize("seed", range(12))
def test_what_follows_is_what_the_equalities_determine(tmp_path, seed):
    """The pass along the tree finds what linear algebra finds, on ragged trees with random exact nodes."""
    random = np.random.default_rng(seed)
    names = [(f"B{i}", f"B{i}-{j}") for i in range(5) for j in range(random.integers(1, 4))]
    chosen = [f"B{i}" for i in range(5)] + [zone for _, zone in names] + ["city"]
    exact = random.choice(chosen, size=random.integers(1, 6), replace=False).tolist()
    text = tree(rest=f"hold: [consistent, {{exact: [{', '.join(exact)}]}}]")
    (tmp_path / "zones.csv").write_text("borough,zone\n" + "".join(f"{b},{z}\n" for b, z in names))
    (tmp_path / "spec.yaml").write_text(f"title: Test\noutput: out\n{text}")
    spec = read_spec(tmp_path / "spec.yaml")
    laid = layout(spec, spec.tables[0], spec.places_of_tables[0], PublicFiles(spec.data, spec.at["data"]))
    held = holding(laid)
    pinned = held.equal.system(laid.query.n).null_space().pinned_coordinates()
    assert np.array_equal(standing(laid, held, None).as_in_the_data, pinned)
    assert standing(laid, held, None).exact.sum() == len(exact)


PEOPLE = "{source: people.csv, domain: zones.csv, values: {sex: [F, M], age: [young, old]}}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("exact", "published", "follows"),
    [
        ("city", {"city": 4}, {"city, total": 1}),
        ("{of: city, by: []}", {"city, total": 1}, {}),
        ("{of: borough, by: sex}", {"borough by sex": 4}, {"city, total": 1, "borough, total": 2}),
    ],
)
def test_one_total_or_one_per_category_is_exact_as_asked(tmp_path, exact, published, follows):
    table = "{hierarchy: [borough, zone], root: city, categories: [sex, age], guess: 10}"
    text = f"data: {PEOPLE}\nprivacy: {{epsilon: 1}}\ntable: {table}\n"
    made = job(
        tmp_path, f"{text}hold: [consistent, nonnegative, {{exact: [{exact}]}}]\nmethod: onto\naccept_disclosure: true"
    )
    found = {(each.why, each.level): each.figures for each in made.tables[0].unprotected}
    assert {level: count for (why, level), count in found.items() if why == PUBLISHED} == published
    assert {level: count for (why, level), count in found.items() if why == FOLLOWS} == follows
    random = np.random.default_rng(3)
    people = [("N1", "F", "old"), ("N2", "M", "young"), ("S1", "F", "young"), ("S3", "M", "old")]
    zones = {"N1": "North", "N2": "North", "S1": "South", "S3": "South"}
    rows = [people[i] for i in random.integers(0, 4, 60)]
    lines = "".join(f"{zones[zone]},{zone},{sex},{age}\n" for zone, sex, age in rows)
    (tmp_path / "people.csv").write_text(f"borough,zone,sex,age\n{lines}")
    loaded = load(release(made)).table()
    known = loaded.standing != "noisy"
    assert known.sum() == sum(published.values()) + sum(follows.values())
    assert (loaded.interval()[known] == loaded.values[known, None]).all()
    assert loaded.estimate(where={"city": "city"}).value == 60
    assert loaded.certificate.noise_by_level[-1].in_words.startswith("none" if "sex" in exact else "that of")


def test_under_replacements_every_node_that_holds_all_records_is_named(tmp_path):
    text = tree(privacy="epsilon: 1, neighbours: replace-one", rest="hold: [consistent]")
    made = job(tmp_path, text, zones_csv="borough,zone\nB,b1\nB,b2\nB,b3\n")
    (found,) = [[each.level for each in table.unprotected if each.why == UNMOVED] for table in made.tables]
    assert "borough" in found


@pytest.mark.parametrize("exact", ["sex", "age"])
def test_impossible_cells_that_tie_margins_together_are_refused_beside_exact_ones(tmp_path, exact):
    cells = "{impossible: [{sex: F, age: child}, {sex: F, age: old}, {sex: M, age: adult}]}"
    text = cube(table="margins: [[sex], [age]]", rest=f"hold: [{{exact: [{exact}]}}, {cells}]\nmethod: given")
    with pytest.raises(hf.Refused, match="measure the cells too"):
        job(tmp_path, text)
    job(tmp_path, text.replace(f"{{exact: [{exact}]}}, ", ""))  # all figures have noise
    if exact == "sex":  # children and old men can still take each other's places
        job(tmp_path, text.replace("margins: [[sex], [age]]", "margins: [[sex, age]]"))
