"""Releases read together: best linear estimates against dense least squares, coverage, contradictions, refusals."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import holdfast as hf
from holdfast.cli.command import app
from holdfast.together.combined import _refuse_shared
from holdfast.together.problem import Problem

AREAS = {"North": ["n1", "n2", "n3"], "South": ["s1", "s2"]}
TREE = {"hierarchy": ["borough", "zone"], "root": "city"}
FULL = ["consistent", "nonnegative"]


def records(seed, sexes=("f", "m")):
    rng = np.random.default_rng(seed)
    rows = [(b, z) for b, zones in AREAS.items() for z in zones for _ in range(rng.integers(0, 40))]
    return "borough,zone,sex\n" + "".join(f"{b},{z},{sexes[rng.integers(2)]}\n" for b, z in rows)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Releases of one city, made in different ways, and some that do not belong to it."""
    base = tmp_path_factory.mktemp("together")
    (base / "zones.csv").write_text("borough,zone\n" + "".join(f"{b},{z}\n" for b in AREAS for z in AREAS[b]))
    (base / "people.csv").write_text(records(1))
    (base / "others.csv").write_text(records(2))

    def made(name, table, hold=(), method="auto", source="people.csv", values=None, **privacy):
        data = {"source": str(base / source)}
        data |= {"domain": str(base / "zones.csv")} if "hierarchy" in table or table == {"histogram": "zone"} else {}
        data |= {"values": values} if values else {}
        hf.job(
            {
                "title": name,
                "output": str(base / name),
                "ledger": str(base / f"{name}.sqlite"),
                "data": data,
                "privacy": privacy or {"epsilon": 1.0},
                "table": table,
                "hold": list(hold),
                "method": method,
            }
        ).release()

    sexes = {"sex": ["f", "m"]}
    made("onto", TREE, FULL, "onto")
    made("given", TREE, ["consistent"], "given")
    made("gaussian", TREE, ["consistent"], "given", rho=0.5)
    made("both", {**TREE, "categories": ["sex"]}, FULL, "onto", values=sexes)
    made("zones", {"histogram": "zone"}, [], "noise")
    made(
        "cells",
        {"cube": ["sex", "zone"]},
        ["nonnegative"],
        "onto",
        values={**sexes, "zone": [*AREAS["North"], *AREAS["South"]]},
    )
    made("exact", TREE, [*FULL, {"exact": ["borough"]}], "onto", epsilon=1.0, neighbours="replace-one")
    made("bounded", TREE, FULL, "given")
    made("elsewhere", TREE, FULL, "onto", source="others.csv")
    made("less", {"histogram": "zone"}, [], "noise", values={"zone": ["n1", "n2", "n3", "s1", "s2", "s3"]})
    made("persons", {"histogram": "sex"}, [], "noise", values=sexes)
    return base


def dense(combined):
    """Least squares over cells: every figure is a sum of cells, found from its names alone."""
    names = combined.names
    finest = [key for key in zip(*names.values(), strict=True) if None not in key]
    rows = list(zip(*names.values(), strict=True))
    member = np.array([[all(a in (None, b) for a, b in zip(r, c, strict=True)) for c in finest] for r in rows], float)
    problem, count = combined.problem, len(rows)
    assert problem.universe.named == count
    weigh, pull = np.zeros((count, count)), np.zeros(count)
    exact, right = [np.zeros((0, count))], [np.zeros(0)]
    for each, at in zip(problem.sources, problem.places, strict=True):
        spot = np.eye(count)[at]
        weigh += spot.T @ each.precision.toarray() @ spot
        pull += spot.T @ each.precision.toarray() @ each.answers
        exact.append(each.equal.toarray() @ spot)
        right.append(each.right)
    held, known = np.concatenate(exact) @ member, np.concatenate(right)
    start = np.linalg.pinv(held) @ known
    _, sizes, turned = np.linalg.svd(held) if len(held) else (None, np.zeros(0), np.eye(len(finest)))
    free = turned[(sizes > 1e-9).sum() :].T
    spread = free @ np.linalg.inv(free.T @ member.T @ weigh @ member @ free) @ free.T
    cells = start + spread @ member.T @ (pull - weigh @ member @ start)
    return member @ cells, np.sqrt(np.diag(member @ spread @ member.T).clip(0))


@pytest.mark.parametrize(
    "names", [["onto", "zones"], ["onto", "both"], ["gaussian", "cells", "given"], ["exact", "onto", "zones"]]
)
def test_estimates_are_those_of_dense_least_squares(folders, names):
    combined = hf.combine(*(folders / name for name in names))
    values, errors = dense(combined)
    np.testing.assert_allclose(combined.values, values, atol=1e-8)
    np.testing.assert_allclose(combined.standard_error, errors, atol=1e-7)
    assert (combined.gained >= 1 - 1e-12).all()
    assert (combined.gained[combined.standard_error > 0] > 1.05).any()


def test_a_wrong_weight_is_seen(folders):
    combined = hf.combine(folders / "onto", folders / "zones")
    first, second = combined.problem.sources
    wrong = Problem.of(combined.problem.universe, (replace(first, precision=2 * first.precision), second), 1)
    assert np.abs(wrong.estimate[0] - combined.problem.estimate[0]).max() > 0.01


def test_conditioned_noise_has_the_weights_of_its_own_covariance(folders):
    """The best weights for the law of the errors: no shift between the two sources lowers a variance."""
    problem = hf.combine(folders / "given", folders / "onto").problem
    given = problem.sources[0]
    own = np.eye(given.outputs)
    joint = np.array([[given.spread.variance_of(a + b) for a in own] for b in own])
    single = np.array([given.spread.variance_of(a) for a in own])
    covariance = (joint - single[:, None] - single) / 2
    kept = covariance @ given.precision.toarray() @ covariance
    np.testing.assert_allclose(kept, covariance, atol=1e-8)


@pytest.mark.parametrize("names", [["onto", "zones"], ["gaussian", "cells"], ["given", "both"]])
def test_intervals_cover_as_often_as_they_say(folders, names):
    combined = hf.combine(*(folders / name for name in names))
    problem, count, size = combined.problem, combined.values.size, 20_000
    stream, still = hf.seeded(99), np.zeros_like(combined.problem.right)
    drawn = [np.asarray(each.noise(size, stream), dtype=float) for each in problem.sources]
    errors = problem.solved(drawn, still)[0][:, :count]
    reach = np.array([problem.reach(row, 0.025) for row in np.eye(count, problem.universe.n)])
    covered = (np.abs(errors) <= reach).mean(axis=0)
    assert (covered > 0.946).all()
    assert (covered < (0.97 if "given" in str(names) or "gaussian" in names else 0.96)).all()  # drawn together: wider
    np.testing.assert_allclose(errors.std(axis=0), combined.standard_error, rtol=0.05)


def test_simulated_reach_of_many_figures_is_that_of_their_law(folders):
    problem = hf.combine(folders / "onto", folders / "zones").problem
    by_law = np.array([problem.reach(row, 0.025) for row in np.eye(problem.universe.named, problem.universe.n)])
    simulated = np.quantile(np.abs(problem.errors), 0.95, axis=0)
    np.testing.assert_allclose(simulated, by_law, rtol=0.04)


def test_parts_add_up_to_the_whole(folders):
    combined = hf.combine(folders / "zones", parts={"half": {"one": folders / "onto", "two": folders / "elsewhere"}})
    names = list(zip(*combined.names.values(), strict=True))
    value = dict(zip(names, combined.values, strict=True))
    order = list(combined.names)
    for zone in ("n1", "s2"):
        rows = {key[order.index("half")]: value[key] for key in names if key[order.index("zone")] == zone}
        assert rows["one"] + rows["two"] == pytest.approx(rows[None])
    assert combined.level < 0.01  # the whole has the records of one part alone
    assert combined.contradictions


def test_what_noise_does_not_explain_is_listed(folders):
    alike = hf.combine(folders / "onto", folders / "zones", folders / "both")
    assert alike.level > 1e-4
    assert not alike.contradictions
    other = hf.combine(folders / "onto", folders / "elsewhere")
    assert other.level < 0.01
    assert any("s2" in each or "n" in each for each in other.contradictions)
    assert "contradiction" in str(other)


def test_exact_figures_hold_and_whole_figures_add_up(folders):
    combined = hf.combine(folders / "exact", folders / "onto", folders / "zones")
    rows = dict(zip(zip(*combined.names.values(), strict=True), combined.whole.tolist(), strict=True))
    published = hf.load(folders / "exact").table()
    exact = {"North": int(published.values[1])}
    assert published.columns["borough"][1] == "North"
    assert rows["North", None] == exact["North"] == round(combined.values[1])
    assert rows[None, None] == rows["North", None] + rows["South", None]
    assert rows["South", None] == rows["South", "s1"] + rows["South", "s2"]
    assert min(rows.values()) >= 0
    assert combined.estimate({"borough": "North"}).standard_error == pytest.approx(0, abs=1e-6)
    north = combined.estimate({"zone": ["n1", "n2", "n3"]})
    assert north.value == pytest.approx(exact["North"])


def test_figures_known_without_noise(folders, tmp_path):
    (tmp_path / "census.csv").write_text("zone,value\nn1,8\n,77\n")
    combined = hf.combine(folders / "onto", folders / "zones", known=tmp_path / "census.csv")
    assert combined.estimate({"zone": "n1"}).value == pytest.approx(8)
    assert combined.values[0] == 77
    (tmp_path / "other.csv").write_text("street,value\nHigh,8\n")
    with pytest.raises(hf.Refused, match="'street' that no folder has"):
        hf.combine(folders / "onto", folders / "zones", known=tmp_path / "other.csv")
    for odd in ("1e400", "1e999999999", "nan", "", "many"):
        (tmp_path / "odd.csv").write_text(f"zone,value\nn1,{odd}\n")
        with pytest.raises(hf.Refused, match="must be a CSV or Parquet file of figures"):
            hf.combine(folders / "onto", folders / "zones", known=tmp_path / "odd.csv")
    (tmp_path / "against.csv").write_text("borough,value\nNorth,1000\n")
    with pytest.raises(hf.Refused, match="exact figures contradict each other"):
        hf.combine(folders / "onto", folders / "exact", known=tmp_path / "against.csv")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["onto"], "two folders or more"),
        (["onto", "onto"], "are one release"),
        (["onto", "less"], "has no 'zone' called 'South / s3'|cannot be placed"),
        (["onto", "bounded"], "drawn given bounds"),
    ],
)
def test_refusals(folders, names, words):
    with pytest.raises(hf.Refused, match=words):
        hf.combine(*(folders / name for name in names))


def test_a_copy_a_changed_folder_and_a_foreign_key_are_refused(folders, tmp_path):
    shutil.copytree(folders / "zones", tmp_path / "copy")
    with pytest.raises(hf.Refused, match="are one release"):
        hf.combine(folders / "zones", tmp_path / "copy")
    text = (tmp_path / "copy" / "table.csv").read_text()
    (tmp_path / "copy" / "table.csv").write_text(text.replace("n1,", "n1,1", 1))
    with pytest.raises(hf.Refused, match="not as it was released"):
        hf.combine(folders / "onto", tmp_path / "copy")
    assert CliRunner().invoke(app, ["key", str(tmp_path / "mine")]).exit_code == 0
    with pytest.raises(hf.Refused, match="sign"):
        hf.combine(folders / "onto", folders / "zones", key=tmp_path / "mine.pub")


def test_answers_that_are_all_the_same_are_refused(folders):
    first, _ = hf.combine(folders / "both", folders / "zones").problem.sources
    with pytest.raises(hf.Refused, match="same noise"):
        _refuse_shared([first, replace(first, who="a copy under another name")])
    apart = replace(first, answers=first.answers + np.eye(first.outputs)[0])
    _refuse_shared([first, apart])


def test_losses_add_up_for_one_unit(folders, tmp_path):
    both = hf.combine(folders / "onto", folders / "zones")
    total = hf.load(folders / "onto").guarantee.epsilon + hf.load(folders / "zones").guarantee.epsilon
    assert f"ε = {total:g}" in both.lost
    people = tmp_path / "people.csv"
    people.write_text("who,sex\n" + "".join(f"{i},{'fm'[i % 2]}\n" for i in range(40)))
    hf.job(
        {
            "title": "persons",
            "output": str(tmp_path / "out"),
            "ledger": str(tmp_path / "ledger.sqlite"),
            "data": {"source": str(people), "values": {"sex": ["f", "m"]}},
            "privacy": {"unit": {"column": "who", "max_records": 1}, "epsilon": 1.0},
            "table": {"histogram": "sex"},
            "method": "noise",
        }
    ).release()
    mixed = hf.combine(folders / "persons", tmp_path / "out")
    assert "cannot be added up" in mixed.lost
    assert "person" in mixed.lost


def test_the_command_writes_a_folder_that_verifies_against_its_sources(folders, tmp_path):
    run, out = CliRunner(), tmp_path / "both"
    sources = [str(folders / "onto"), str(folders / "zones")]
    done = run.invoke(app, ["combine", *sources, "--output", str(out), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads((out / "combined.json").read_text())
    assert [each["title"] for each in said["sources"]] == ["onto", "zones"]
    assert str(folders) not in (out / "combined.json").read_text()
    assert run.invoke(app, ["combine", *sources, "--verify", str(out)]).exit_code == 0
    other = run.invoke(app, ["combine", sources[0], str(folders / "both"), "--verify", str(out)])
    assert other.exit_code == 5
    again = run.invoke(app, ["combine", *sources, "--output", str(out)])
    assert again.exit_code == 3
    assert run.invoke(app, ["combine", str(out), sources[0]]).exit_code == 3
    text = Path(out / "combined.csv").read_text()
    (out / "combined.csv").write_text(text.replace("North", "Nord"))
    broken = run.invoke(app, ["combine", *sources, "--verify", str(out)])
    assert broken.exit_code == 5
    assert "combined.csv was changed" in broken.output
