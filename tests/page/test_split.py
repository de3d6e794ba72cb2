"""How the planner divides a budget: best as the spec says it, searched once; margins of levels; as in the file."""

import pytest

from holdfast.page.draft import draft
from holdfast.release.job import sharing
from holdfast.release.job.job import Job
from holdfast.release.plan import plan
from holdfast.release.spec.spec import read_spec
from jobs import tree
from planner import ask, errors, moved, opened

AREAS = (
    "data: {source: x.parquet, domain: zones.csv, values: {sex: [F, M], age: [child, old]}}\nprivacy: {rho: 0.5}\n"
    "table:\n  hierarchy: [borough, zone]\n  cube: [sex, age]\n  measure: {borough: [sex, age], zone: all}\n"
    "  shares: %s\n"
)


@pytest.mark.slow
def test_the_best_shares_are_those_of_the_plan_and_searched_once(tmp_path, monkeypatch):
    searches = []
    found_by = sharing.searched
    monkeypatch.setattr(sharing, "searched", lambda *given: searches.append(1) or found_by(*given))
    client, site = opened(tmp_path, tree(table="shares: best, guess: 50", rest="hold: [consistent]\nmethod: given"))
    assert site.base.fields["tables"][0]["shares"] == "best"
    near = ask(client, "plan", {"fields": site.base.fields})
    assert (near.status_code, near.json()["measured"], searches) == (200, False, [])
    for stage, epsilon in (("measured", "1"), ("now", "0.5"), ("measured", "0.5"), ("measured", "3")):
        answer = ask(client, "plan", {"fields": moved(site, budget={"epsilon": epsilon}), "stage": stage})
        assert "shares: best" in answer.json()["text"]
    assert len(searches) == 1
    (tmp_path / "other.yaml").write_text(answer.json()["text"])
    expected = plan(Job.from_spec(read_spec(tmp_path / "other.yaml"))).tables[0].levels
    assert errors(answer) == {level.level: level.expected_absolute_error for level in expected}
    assert len(searches) == 2


@pytest.mark.parametrize("budget", ["epsilon: 2", "rho: 0.5"])
def test_a_level_that_costs_nothing_does_not_stand_in_the_way_of_the_best_shares(tmp_path, budget):
    """Where records are replaced the total is nobody's: it has noise, but so little that the rest can be weighed."""
    table, rest = "shares: best, guess: 50", "hold: [consistent, nonnegative]\nmethod: onto"
    text = tree(privacy=f"{budget}, neighbours: replace-one", table=table, rest=rest)
    client, site = opened(tmp_path, text)
    found = ask(client, "plan", {"fields": site.base.fields})
    assert found.status_code == 200, found.json()
    shown = errors(found)
    assert shown["city"] < shown["zone"] / 5


def test_best_comes_and_goes_with_what_belongs_to_it(tmp_path):
    table = "shares: best, minimise: mean relative error, weights: {city: 1, zone: 2}"
    _, site = opened(tmp_path, tree(privacy="rho: 0.5", table=table))
    assert draft(site.base, site.base.fields).text == site.base.path.read_text()
    (found,) = draft(site.base, moved(site, shares={"city": "1", "borough": "1", "zone": "3"})).spec.tables
    assert found.shares == {"city": 1, "borough": 1, "zone": 3}
    assert found.weights is None
    (found,) = draft(site.base, moved(site, shares=None)).spec.tables
    assert found.shares is None
    _, site = opened(tmp_path, tree(privacy="rho: 0.5"))
    (found,) = draft(site.base, moved(site, shares="best")).spec.tables
    assert found.shares == "best"
    with pytest.raises(ValueError, match="shares must be a mapping"):
        draft(site.base, moved(site, shares="file"))


def test_margins_of_levels_are_written_inside_them_or_left_as_they_are(tmp_path):
    client, site = opened(tmp_path, AREAS % "{borough: {sex: 2, age: 1}, zone: 4}")
    assert site.base.fields["tables"][0]["shares"] == "file"
    assert draft(site.base, site.base.fields).text == site.base.path.read_text()
    shares = {"borough: sex": "0.2", "borough: age": "0.3", "zone: sex × age": "0.5"}
    answer = ask(client, "plan", {"fields": moved(site, shares=shares)})
    assert answer.status_code == 200, answer.json()
    assert "{borough: {sex: 0.2, age: 0.3}, zone: {sex × age: 0.5}}" in answer.json()["text"]
    assert 'data-share="0.3"' in answer.json()["parts"]["errors"]
    answer = ask(client, "solve", {"fields": moved(site), "best": True})
    assert set(answer.json()["shares"][0]) == set(shares)
    found = ask(client, "plan", {"fields": moved(site, shares=answer.json()["shares"][0])})
    assert found.status_code == 200, found.json()
