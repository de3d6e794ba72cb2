"""Pictures and cards: well-formed, escaped, and true to their figures, for every kind of thing that is shown."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import holdfast as hf
import released
from holdfast.pictures import bands, bars, curves, hundred, parts, points
from holdfast.pictures.svg import last_names, scale_of
from holdfast.release.plan import plan
from holdfast.release.run import release

NASTY = '<b onclick="x">&"</b>'
PICTURES = {
    "bands": bands([(NASTY, 2, 6), ("city", 0, 0), ("zone", math.inf, math.inf)], NASTY),
    "bars": bars([(NASTY, 2, 6), ("city", 0, 0), ("zone", math.inf, math.inf), ("wide", 5000, 5000)], NASTY, [1]),
    "parts": parts([(NASTY, 1), *((f"level {i}", i) for i in range(12))]),
    "curves": curves([0, 3, 40], [(NASTY, [1, 2, 3]), ("bias", [1, 0, -2])], NASTY, "error"),
    "hundred": hundred(74),
    "points": points([(NASTY, 5, 3, 9), ("none", -2, math.nan, math.nan)], NASTY),
}


def elements(picture, tag):
    root = ElementTree.fromstring(str(picture))
    return [each for each in root.iter() if each.tag.endswith(tag)]


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures_are_whole_and_keep_to_their_frame(kind):
    picture = PICTURES[kind]
    (root,) = elements(picture, "svg")
    assert root.get("role") == "img"
    assert root.get("aria-label") == picture.description
    assert not elements(picture, "b")
    assert not elements(picture, "style")
    _, _, width, height = map(float, root.get("viewBox").split())
    for name, limit in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height), ("y2", height)):
        assert all(-1 <= float(each.get(name)) <= limit + 1 for each in root.iter() if each.get(name))
    assert all(float(each.get("width")) >= 0 for each in elements(picture, "rect"))


def test_bars_are_as_long_as_their_figures_say():
    drawn = elements(bars([("one", 1, 0), ("three", 3, 0)], "error"), "rect")
    lengths = [float(each.get("width")) for each in drawn]
    assert lengths[1] == pytest.approx(3 * lengths[0], rel=1e-4)
    assert "one: 1; three: 3" in bars([("one", 1, 0), ("three", 3, 0)], "error").description


def test_shares_fill_their_bar_and_of_a_hundred_as_many_are_drawn():
    widths = [float(each.get("width")) + 2 for each in elements(parts([("a", 1), ("b", 3)]), "rect")][:2]
    assert widths[1] == pytest.approx(3 * widths[0], rel=1e-4)
    filled = [each.get("class") for each in elements(hundred(74), "circle")]
    assert (filled.count("hf-4"), filled.count("hf-1"), filled.count(None)) == (50, 24, 26)


def test_figures_that_differ_too_much_are_drawn_on_a_logarithmic_scale():
    assert not scale_of([1, 100], 0, 100).logarithmic
    found = scale_of([1, 5000], 0, 100)
    assert found.logarithmic
    assert [found(value) for value in (1, 10, 10_000)] == pytest.approx([0, 25, 100])
    assert found.ticks == [1, 10, 100, 1000, 10_000]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1, 2], names=["top", NASTY, "b", "c", "d", "e"])
    query = hf.counts(tree)
    mechanism = hf.laplace(query, epsilon=1.0).given(hf.consistent(tree))
    job = released.job(folder, "several", ("title: Trips", f"title: '{NASTY}'"))
    found = {
        "hierarchy": tree,
        "guarantee": mechanism.guarantee,
        "mechanism": mechanism,
        "processed": mechanism.then(np.rint, NASTY),
        "release": mechanism.release(query.answer([5, 0, 7]), hf.seeded(3)),
        "plan": plan(job),
        "loaded": hf.load(release(job)),
    }
    return found | {"comparison": hf.compare({NASTY: mechanism, "plan": found["plan"]})}


@pytest.mark.parametrize(
    "kind", ["hierarchy", "guarantee", "mechanism", "processed", "release", "plan", "loaded", "comparison"]
)
def test_cards_are_whole_short_and_escaped(shown, kind):
    text = shown[kind]._repr_html_()
    root = ElementTree.fromstring(f"<div>{text}</div>")
    assert not [each for each in root.iter() if each.tag in ("script", "style", "b") and each.get("onclick")]
    assert NASTY not in text
    assert len(text) < 15_000


def test_cards_say_what_they_show(shown):
    guarantee = shown["guarantee"]._repr_html_()
    assert "ε = 1, μ = 1.24 (proved)" in guarantee
    assert "at most 74 in 100" in guarantee
    assert "ε = 1, μ = 1.24 (proved)" in shown["mechanism"]._repr_html_()
    values = shown["release"].values
    assert all(f">{value}</td>".replace("-", "−") in shown["release"]._repr_html_() for value in values.tolist())
    assert "3 leaves" in shown["hierarchy"]._repr_html_()
    tables = shown["loaded"].certificate.tables
    assert all(f"{table.name}, {table.rows} figures" in shown["loaded"]._repr_html_() for table in tables)


def test_pictures_of_plans_and_releases_show_their_figures(shown):
    for table in shown["plan"].tables:
        for level in table.levels:
            assert (
                f"{table.name}: {level.level}: {level.expected_absolute_error:.3g}" in shown["plan"].plot().description
            )
    drawn = shown["release"].plot(most=3)
    assert drawn.description.count(" to ") == 3
    assert drawn.description.startswith("level 2: value")
    assert "not drawn, plot(level=…): level 0, level 1" in drawn.description
    assert "the first 2 of 3" in shown["release"].plot(level="level 2", most=2).description
    assert len(elements(shown["release"].plot(level="level 2"), "circle")) == 3
    with pytest.raises(hf.Refused, match="level must be one of"):
        shown["release"].plot(level="zone")
    sexes = shown["loaded"].tables["sexes"]
    assert len(elements(sexes.plot(), "circle")) == sexes.values.size


def test_a_picture_can_be_kept(shown, tmp_path):
    shown["plan"].plot().save(tmp_path / "plan.svg")
    assert ElementTree.parse(tmp_path / "plan.svg").getroot().tag.endswith("svg")


def test_a_comparison_says_promise_error_and_what_is_open(tmp_path):
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree)
    truth = query.answer([4, 0])
    adds_up = hf.laplace(query, epsilon=1, neighbours="replace-one").given(hf.consistent(tree))
    exact = hf.laplace(query, epsilon=1, neighbours="replace-one").given(
        hf.consistent(tree) & hf.invariant(hf.exact_nodes(tree, [0]))
    )
    found = hf.compare({"adds up": adds_up, "exact": exact}, truth, size=3000)
    errors = {row.name: row.errors for row in found.rows}
    assert errors["exact"]["level 0"] == 0
    expected = np.abs(adds_up.noise(20_000, hf.seeded(1))).mean(axis=0)
    assert errors["adds up"]["level 0"] == pytest.approx(expected[0], rel=0.1)
    assert errors["adds up"]["level 1"] == pytest.approx(expected[1:].mean(), rel=0.1)
    frame = found.frame("polars")
    assert frame["name"].to_list() == ["adds up", "adds up", "exact", "exact"]
    assert frame["epsilon"].to_list() == [row.guarantee.epsilon for row in found.rows for _ in range(2)]
    assert "".join(exact.guarantee.unprotected) == frame["unprotected"][-1] != ""
    assert repr(found) == repr(hf.compare({"adds up": adds_up, "exact": exact}, truth, size=3000))
    bounded = hf.laplace(query, epsilon=1).onto(hf.consistent(tree) & hf.nonnegative())
    (unknown,) = hf.compare([bounded]).rows
    assert set(unknown.errors.values()) == {math.inf}
    assert [row.name for row in hf.compare([bounded, bounded], truth).rows][1].endswith(" #2")


def test_a_function_of_ones_own_is_compared_by_its_errors():
    tree = hf.Hierarchy.from_parents([-1, 0, 0])
    query = hf.counts(tree)
    truth, rng = query.answer([4, 0]), np.random.default_rng(1)
    adds_up = hf.laplace(query, epsilon=1).given(hf.consistent(tree))
    found = hf.compare({"adds up": adds_up, "mine": lambda true: true + rng.normal(0, 2, 3)}, truth, size=4000)
    assert found.levels == ("level 0", "level 1")
    expected = 2 * math.sqrt(2 / math.pi)
    assert found.rows[1].errors == {level: pytest.approx(expected, rel=0.1) for level in found.levels}
    assert found.rows[1].guarantee is None
    assert found.frame("polars")["epsilon"].to_list()[2:] == [None, None]
    assert "mine" in found._repr_html_()
    head, first, second = str(found).splitlines()
    assert head.split() == ["level", "0", "level", "1", "promises"]
    assert first.startswith("adds up")
    assert "ε = " in first
    assert second.startswith("mine")
    assert set(hf.compare([lambda true: true], truth, size=2).rows[0].errors) == {"all figures"}
    for function, words in ((lambda _: [1, 2], "a value for every true one"), (lambda _: "x", "must hold numbers")):
        with pytest.raises(hf.Refused, match=words):
            hf.compare([function], truth, size=2)
    with pytest.raises(hf.Refused, match="give truth"):
        hf.compare([lambda true: true])
    with pytest.raises(hf.Refused, match="a value for every true one"):
        hf.compare([adds_up.then(lambda values: values[:2], "the first two")], truth, size=2)


@pytest.mark.parametrize(("items", "words"), [([], "at least one"), ([3], "found int"), (3, "must be a list")])
def test_what_cannot_be_compared_is_refused(items, words):
    with pytest.raises(hf.Refused, match=words):
        hf.compare(items)


def test_paths_are_told_apart_by_as_few_names_as_will_do():
    assert last_names(["city / N / N1", "city / N / N2", "city / S / S1"]) == ["N1", "N2", "S1"]
    assert last_names(["city / N / F", "city / S / F"]) == ["N / F", "S / F"]
    assert last_names(["city", "city / N", "city / N / N"]) == ["city", "city / N", "N / N"]
    assert last_names([]) == []
