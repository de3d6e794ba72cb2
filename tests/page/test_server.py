"""The planner without a browser: what it answers, whom it refuses, and that nothing makes it fail."""

import copy
import json
import re
import sqlite3
from itertools import pairwise

import pytest

from holdfast.arrays import Shared
from holdfast.page.draft import draft
from holdfast.page.planning import KEPT, Planner
from holdfast.page.server import HEADERS, LONGEST
from holdfast.release.job import table as tables
from holdfast.release.job.job import Job
from holdfast.release.plan import plan
from holdfast.release.records import tabulate
from holdfast.release.spec.spec import read_spec
from jobs import cube, tree
from planner import HERE, TOKEN, VERBS, ask, errors, moved, opened, opened_with_a_guess, scrambled_requests

#: A rule in which each list holds the one before it twenty times, six deep.
ALIASES = "[&a [1], " + ", ".join(f"&{b} [{', '.join([f'*{a}'] * 20)}]" for a, b in pairwise("abcdefg")) + "]"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    return (*opened_with_a_guess(folder), folder)


# --- who is let in --------------------------------------------------------------------------------------------------


def test_the_page_needs_the_token_the_host_and_its_own_origin(made):
    client, site, _ = made
    assert client.get(f"/{TOKEN}/").status_code == 200
    for address in ("/", "/plan", "/x/", f"/{TOKEN[:-1]}/", f"//{TOKEN}/", f"/{TOKEN}x/plan"):
        assert client.get(address).status_code == 403
    sent = {"fields": site.base.fields}
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9000"},
        {"Origin": HERE, "Host": "evil.example"},
        {"Origin": HERE, "Sec-Fetch-Site": "cross-site"},
    ):
        for verb in VERBS:
            answer = client.post(f"/{TOKEN}/{verb}", json=sent, headers=headers)
            assert answer.status_code == 403
            assert TOKEN not in answer.text
    assert client.post(f"/{TOKEN}/plan", json=sent).status_code == 403  # no origin at all
    assert client.get(f"/{TOKEN}/", headers={"Host": "rebound.example"}).status_code == 403
    assert client.get(f"/{TOKEN}/plan", headers={"Origin": HERE}).status_code == 405


def test_every_answer_forbids_what_the_page_does_not_need(made):
    client, site, _ = made
    answers = [client.get(f"/{TOKEN}/"), client.get("/"), ask(client, "plan", {"fields": site.base.fields})]
    for answer in answers:
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
    assert "Test &lt;b&gt;" in answers[0].text
    assert "Test <b>" not in answers[0].text


# --- what it says ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_figures_are_those_of_the_plan(made):
    client, site, folder = made
    for fields in (
        site.base.fields,
        moved(site, budget={"epsilon": "0.4"}, method="given-then-onto", exact=["borough"]),
    ):
        answer = ask(client, "plan", {"fields": fields, "stage": "measured"})
        assert answer.json()["measured"] is True
        (folder / "other.yaml").write_text(answer.json()["text"])
        expected = plan(Job.from_spec(read_spec(folder / "other.yaml"))).tables[0].levels
        assert errors(answer) == {level.level: level.expected_absolute_error for level in expected}


def test_an_answer_at_once_is_near_the_measured_one(made):
    client, site, _ = made
    ask(client, "plan", {"fields": moved(site), "stage": "measured"})
    shares = {"city": "0.2", "borough": "0.2", "zone": "0.6"}
    for change in ({"budget": {"epsilon": "0.31"}}, {"shares": shares}):
        fields = moved(site, **change)
        near = ask(client, "plan", {"fields": fields})
        assert near.json()["measured"] is False
        far = errors(ask(client, "plan", {"fields": fields, "stage": "measured"}))
        for level, error in errors(near).items():
            assert error == pytest.approx(far[level], rel=0.2)
        assert "≈" in near.json()["parts"]["errors"]


def test_first_answers_do_not_wait_for_a_simulation(tmp_path, monkeypatch):
    """The spec is planned before its page opens, and other amounts and shares are scaled from that."""
    rest = "hold: [consistent, nonnegative]\nmethod: onto"
    client, site = opened(tmp_path, tree(table="guess: 50, shares: {borough: 0.4, zone: 0.6}", rest=rest))
    monkeypatch.setattr(tables, "errors", lambda *_: pytest.fail("a first answer simulates"))
    for fields in (site.base.fields, moved(site, budget={"epsilon": "0.4"}), moved(site, budget={"epsilon": "3"})):
        answer = ask(client, "plan", {"fields": fields})
        assert answer.json()["measured"] is False
        assert len(errors(answer)) == 3


def test_the_budget_follows_the_errors_that_are_wanted(made):
    client, site, _ = made
    for split in (False, True):
        sent = {"fields": moved(site), "wanted": [{"zone": "2", "borough": 3}], "split": split}
        found = ask(client, "solve", sent).json()
        fields = moved(site, budget={"epsilon": found["amount"]})
        if split:
            fields["tables"][0]["shares"] = found["shares"][0]
            assert sum(map(float, found["shares"][0].values())) == pytest.approx(1)
        reached = errors(ask(client, "plan", {"fields": fields, "stage": "measured"}))
        ratios = [reached["zone"] / 2, reached["borough"] / 3]
        assert max(ratios) == pytest.approx(1, abs=0.1)
        if not split:
            before = float(found["amount"])
    assert float(found["amount"]) < before  # a split made for it needs less


def test_the_best_shares_are_better_than_those_of_the_file(made):
    client, site, _ = made
    shares = ask(client, "solve", {"fields": moved(site), "best": True}).json()["shares"][0]
    before, after = (
        sum(errors(ask(client, "plan", {"fields": fields, "stage": "measured"})).values())
        for fields in (moved(site), moved(site, shares=shares))
    )
    assert after < before


@pytest.mark.slow
def test_prices_methods_and_comparison(made):
    client, site, _ = made
    fields = moved(site, shares={"city": "0.3", "borough": "0.3", "zone": "0.4"})
    found = ask(client, "prices", {"fields": fields}).json()["parts"]["prices"]
    assert "consistent" in found
    assert re.search(r"makes the errors \d+ % smaller", found)  # sums that add up help
    found = ask(client, "methods", {"fields": moved(site)}).json()["parts"]["methods"]
    assert all(method in found for method in ("given", "onto", "topdown", "auto takes it"))
    sent = {"fields": moved(site, budget={"epsilon": "2"}), "kept": moved(site)}
    found = ask(client, "compare", sent).json()["parts"]["compare"]
    assert re.search(r"−4\d %|−5\d %", found)  # twice the budget, half the error


def test_what_exact_figures_give_away_is_said(made):
    client, site, _ = made
    sent = {"fields": moved(site, exact=["borough"]), "stage": "measured"}
    found = ask(client, "plan", sent).json()["parts"]["protects"]
    assert "published exactly: borough" in found
    assert "must change together" in found


def test_refusals_are_the_sentences_of_the_library(made):
    client, site, _ = made
    for change, words in [
        ({"budget": {"epsilon": "0"}}, "privacy.epsilon: must be above 0"),
        ({"budget": {"epsilon": "900"}}, "no noise is left"),
        ({"budget": {"epsilon": "much"}}, "epsilon must be a number, found 'much'"),
        ({"budget": {"epsilon": ""}}, "epsilon must be a number, found nothing"),
        ({"budget": {"kind": "epsilon-delta", "delta": "2"}}, "between 0 and 1"),
        ({"budget": {"kind": "sigma"}}, "must be one of epsilon, epsilon-delta, rho"),
        ({"method": "noise"}, "noise alone holds nothing"),
        ({"method": "magic"}, "the method must be one of"),
        ({"exact": ["nowhere"]}, "no level or node is called"),
        ({"others": ["{between: {high: 3"]}, "this rule is not YAML"),
        ({"others": ["&a [*a]"]}, "a rule has no aliases"),
        ({"others": [ALIASES]}, "a rule has no aliases"),
        ({"others": ["{sometimes: 3}"]}, "there is no rule 'sometimes'"),
        ({"others": ["{between: {high: 10}}"]}, "the guess violates what must hold"),
        ({"shares": {"zone": "-1"}}, "must be 0 or more"),
        ({"shares": {"zon": "1"}}, "there is no level or margin 'zon'"),
        ({"guess": "-4"}, "must be 0 or more"),
    ]:
        answer = ask(client, "plan", {"fields": moved(site, **change)})
        assert answer.status_code == 422
        assert words in answer.json()["refused"], answer.json()
    for sent, words in [
        ({"wanted": [{}]}, "no error is wanted yet"),
        ({"wanted": [{"zone": "0"}]}, "above 0"),
        ({"wanted": [{"zone": "1e-9"}]}, "must be between"),
        ({"wanted": [{"moon": "1"}]}, "there is no level 'moon'"),
        ({"wanted": 3}, "must be a list"),
    ]:
        answer = ask(client, "solve", {"fields": site.base.fields, **sent})
        assert words in answer.json()["refused"]


# --- writing --------------------------------------------------------------------------------------------------------


def test_a_spec_is_written_beside_the_first_and_never_over_a_file_unasked(made):
    client, site, folder = made
    before = (folder / "spec.yaml").read_text()
    fields = moved(site, budget={"epsilon": "0.25"})
    assert ask(client, "write", {"fields": fields, "name": "spec.yaml"}).json() == {"exists": "spec.yaml"}
    assert (folder / "spec.yaml").read_text() == before
    assert ask(client, "write", {"fields": fields, "name": "new.yaml"}).json() == {"written": "new.yaml"}
    text = (folder / "new.yaml").read_text()
    assert text == before.replace("epsilon: 1", "epsilon: 0.25")  # comments and all
    over = {"fields": site.base.fields, "name": "new.yaml", "over": True}
    assert ask(client, "write", over).json() == {"written": "new.yaml"}
    assert (folder / "new.yaml").read_text() == before
    (folder / "link.yaml").symlink_to(folder / "elsewhere.yaml")
    for name in ("../up.yaml", "/tmp/x.yaml", "a/b.yaml", "x.py", "", "..yaml", "x\0.yaml", 3, None, "link.yaml"):
        answer = ask(client, "write", {"fields": fields, "name": name, "over": True})
        assert answer.status_code == 422
    assert not (folder.parent / "up.yaml").exists()
    assert [each.name for each in folder.iterdir() if each.name.startswith(".")] == []


def test_a_draft_of_nothing_is_the_file_itself(tmp_path):
    for text in (
        tree(rest="hold: [consistent, {exact: [[South, S2]]}]"),
        cube(rest="hold:\n  - nonnegative  # counts\n  - exact: [sex]\nmethod: onto"),
    ):
        _, site = opened(tmp_path, text)
        assert draft(site.base, site.base.fields).text == site.base.path.read_text()


def test_several_tables_keep_their_own_rules(tmp_path):
    text = (
        "data: {source: x.parquet, domain: zones.csv, values: {age: [a, b]}}\nprivacy: {epsilon: 1}\ntables:\n"
        "  - {name: places, hierarchy: [borough, zone], hold: [consistent], method: onto}\n"
        "  - {name: ages, histogram: age, share: 2}\n"
    )
    client, site = opened(tmp_path, text)
    fields = copy.deepcopy(site.base.fields)
    fields["tables"][1]["exact"] = ["total"]
    fields["tables"][1]["method"] = "given"
    answer = ask(client, "plan", {"fields": fields, "stage": "measured"})
    assert answer.status_code == 200, answer.json()
    found = read_spec(answer.json()["text"].replace("zones.csv", str(tmp_path / "zones.csv"))).tables
    assert [each.method for each in found] == ["onto", "given"]
    assert found[1].hold[0].exact == ("total",)
    assert "places" in answer.json()["parts"]["errors"]


# --- what it does not do --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_records_are_never_opened(tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("records were opened")

    monkeypatch.setattr(tabulate, "opened", never)
    (tmp_path / "trips.parquet").mkdir()  # whoever opens it fails
    client, site = opened(tmp_path, tree(table="guess: 9", rest="hold: [consistent, {exact: [borough]}]\nmethod: onto"))
    for verb in VERBS:
        sent = {
            "fields": site.base.fields,
            "kept": site.base.fields,
            "best": True,
            "name": "b.yaml",
            "stage": "measured",
        }
        assert ask(client, verb, sent).status_code == 200
    assert not (tmp_path / "holdfast-ledger.sqlite").exists()
    assert not (tmp_path / "out").exists()


def test_a_fault_says_its_kind_and_nothing_else(made, monkeypatch):
    client, site, _ = made

    def broken(*_):
        raise sqlite3.OperationalError("secret words")

    monkeypatch.setattr(Planner, "at_once", broken)
    answer = ask(client, "plan", {"fields": site.base.fields})
    assert answer.status_code == 500
    assert answer.json() == {"refused": "a fault of holdfast (OperationalError)"}


def test_what_is_kept_is_bounded():
    kept = Shared(KEPT)
    for i in range(3 * KEPT):
        kept.put(i, str(i))
    assert kept.known(3 * KEPT - 1) == str(3 * KEPT - 1)
    assert kept.known(0) is None
    assert len(kept) == KEPT


@pytest.mark.slow
def test_scrambled_requests_meet_a_sentence_or_an_answer(made):
    """`script/harden page` asks a thousand."""
    client, site, folder = made
    before = (folder / "spec.yaml").read_text()
    met = [wrong or what for what, wrong in scrambled_requests(client, site, 250, 5)]
    assert set(met) == {"answered", "refused"}
    assert 25 < met.count("answered") < 225
    assert (folder / "spec.yaml").read_text() == before
    for body in (
        b"",
        b"{",
        b"[1]",
        b"null",
        b"[" * 100_000,
        b'{"fields": ' + b"1" * LONGEST,
        "{\u00fc".encode("latin-1"),
    ):
        answer = client.post(f"/{TOKEN}/plan", content=body, headers={"Origin": HERE})
        assert answer.status_code == 422, body[:20]
        assert json.loads(answer.text)["refused"]
