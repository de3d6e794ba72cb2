"""The accuracy study on a small made-up table: equal guarantees, right sums, and a file that is continued."""

import sys
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def accuracy():
    sys.path.insert(0, str(FOLDER))
    try:
        import accuracy as study
    finally:
        sys.path.remove(str(FOLDER))
    return study


@pytest.fixture(scope="module")
def case(accuracy):
    return sys.modules["accuracy_data"].made_up()


@pytest.mark.slow
def test_every_method_is_certified_alike_and_keeps_what_must_hold(accuracy, case):
    tree = case.tree
    for noise in sys.modules["accuracy_methods"].NOISES:
        for split in ("even", "leaves 4"):
            setting = accuracy.Setting(noise, 1.0, split)
            assert np.isinf(setting.base(case).base.law.variances[0]) == (noise == "exact total")
            for method in accuracy.METHODS:
                if method == "metropolis" or (noise, method) == ("exact total", "onto, topdown"):
                    continue
                tables = setting.mechanism(case, method).simulate(case.truth, 3, rng=hf.seeded(2))
                for table in tables:
                    assert (tree.sum_up(table[tree.leaves]) == table).all()
                    assert method == "given" or (table >= 0).all()
                    assert noise != "exact total" or table[0] == case.truth[0]


def test_a_mechanism_with_another_guarantee_is_not_let_in(accuracy, case):
    setting = accuracy.Setting("laplace", 1.0, "even")
    query = hf.counts(case.tree)
    setting.check(hf.laplace(query, epsilon=1.0))
    wrong = [
        hf.laplace(query, epsilon=1.001),
        hf.laplace(query, epsilon=0.999),
        hf.laplace(query, epsilon=1.0, neighbours="replace-one"),
        # the price of bounds is not paid here
        hf.laplace(query, epsilon=1.0).given(hf.consistent(case.tree) & hf.nonnegative(at=case.tree.leaves)),
    ]
    for mechanism in wrong:
        with pytest.raises(RuntimeError, match=r"promises|spends"):
            setting.check(mechanism)
    with pytest.raises(RuntimeError, match="spends"):
        accuracy.Setting("gaussian", 1.0, "even").check(hf.gaussian(query, rho=0.02))


def test_figures_are_means_over_tables_with_their_standard_errors(accuracy, case):
    run = accuracy.Run("made-up", accuracy.Setting("laplace", 1.0, "even"), "given")
    rows = {(row.level, row.size): row for row in accuracy.measure(case, run, 400)}
    noise = run.setting.mechanism(case, "given").simulate(case.truth, 400, rng=hf.seeded(run.seed)) - case.truth
    for depth, level in enumerate(case.tree.levels):
        row, here = rows[level, "all"], noise[:, case.tree.depth == depth]
        assert row.nodes == here.shape[1]
        assert row.error == pytest.approx(np.abs(here).mean())
        assert row.bias == pytest.approx(here.mean())
        assert row.error_se == pytest.approx(np.abs(here).mean(axis=1).std(ddof=1) / 20)
    leaves = case.truth[case.tree.leaves]
    assert rows["place", "0"].nodes == (leaves == 0).sum() > 0
    assert rows["place", "10-99"].nodes == ((leaves >= 10) & (leaves <= 99)).sum() > 0
    # integer Laplace noise of scale 3 has mean absolute value 2α/(1 − α²) = 2.94; what adds up has less
    assert 2.3 < rows["place", "all"].error < 2.94


def test_what_stands_in_the_file_is_not_run_again(accuracy, case, tmp_path, monkeypatch, capsys):
    setting = accuracy.Setting("laplace", 1.0, "even")
    planned = [accuracy.Run("made-up", setting, method) for method in ("given", "onto", "topdown")]
    monkeypatch.setattr(accuracy, "runs", lambda: iter(planned))
    monkeypatch.setitem(accuracy.READERS, "made-up", lambda _: case)
    monkeypatch.setitem(accuracy.REPETITIONS, "made-up", 40)
    file = tmp_path / "results.csv"
    accuracy.study(tmp_path, file, ["given"], 1.0)
    first = file.read_text(encoding="utf-8")
    accuracy.study(tmp_path, file, [], 1.0)
    second = file.read_text(encoding="utf-8")
    assert second.startswith(first)
    assert capsys.readouterr().out.count("40 tables") == 3
    tables = sys.modules["accuracy_tables"]
    results = tables.read(file)
    assert [row.method for row in results if row.level == "part" and row.size == "all"] == ["given", "onto", "topdown"]
    report = tables.report(results)
    assert "made-up, laplace, ε = 1.0, split even: bias by size of the true count, place" in report
    assert report.count("| topdown |") == 2


def test_a_method_is_called_unbeaten_only_if_no_baseline_is_clearly_better(accuracy):
    tables = sys.modules["accuracy_tables"]

    def row(method, level, error):
        return tables.Result("d", "laplace", "1.0", "even", method, level, "all", 5, 100, error, 0.1, 0.0, 0.1, 0.0)

    other = [row("topdown", "top", 3.0), row("topdown", "leaf", 3.0)]
    assert tables.verdict([row("onto", "top", 3.5)]) == "no baseline was run"
    assert "unbeaten" in tables.verdict([row("onto", "top", 3.5), row("onto", "leaf", 1.0), *other])
    said = tables.verdict([row("onto", "top", 3.4), row("onto", "leaf", 1.0), *other])
    assert said == "onto is beaten nowhere and ahead of all baselines at leaf"
