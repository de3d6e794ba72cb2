"""Bad input to `onto` with any linear rows, contradictions by name, and what a release shows for itself."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import holdfast as hf
from holdfast import onto
from holdfast.constraints.possible.contradiction import smallest_conflict, smallest_whole_conflict
from holdfast.onto.grid.closing import answered, approved
from holdfast.onto.grid.grid import Task
from holdfast.onto.solvers import whole_numbers as whole

CUBE = (3, 4)
MARGINS = hf.invariant(hf.exact_margins(CUBE, [(0,), (1,)]))
TRUTH = np.array([1, 0, 2, 5, 0, 0, 1, 1, 7, 3, 0, 2])
SECRET = 987654


def mechanism(must, **words):
    """Twelve cells moved onto something."""
    return hf.laplace(hf.histogram(12), scale=2).onto(must, **words)


def test_contradictions_are_named_and_minimal():
    """A sum that the bounds exclude: two of three parts are named, and either can be dropped to mend it."""
    total, room, other = hf.equals([np.ones(4, dtype=int)], [9]), hf.between(0, 2), hf.ordered([0, 1])
    with pytest.raises(hf.Refused, match=r"cannot hold together: equals.*; between") as refusal:
        total & other & room
    assert "ordered" not in str(refusal.value)
    parts = [*total.parts, *other.parts, *room.parts]
    found = smallest_conflict(parts, 4)
    assert found is not None
    for part in found[0]:
        assert smallest_conflict([each for each in found[0] if each is not part], 4) is None


def test_whole_contradictions_are_named_and_minimal():
    """x + y = 1 and x = y leave halves only; a part that is not to blame is not named."""
    odd, even = hf.equals([[1, 1, 0]], [1]), hf.equals([[1, -1, 0]], [0])
    idle = hf.at_least([[0, 1, 1]], [-5])
    must = odd & even & idle
    assert hf.laplace(hf.histogram(3), scale=1).onto(must, integer=False).image([0, 1, 0]).tolist() == [0.5, 0.5, 0]
    with pytest.raises(hf.Refused, match="no common solution in whole numbers"):
        hf.laplace(hf.histogram(3), scale=1).onto(must).release([0, 0, 0])
    culprits = smallest_whole_conflict(must.parts, 3)
    assert len(culprits) == 2
    for part in culprits:
        assert smallest_whole_conflict([each for each in culprits if each is not part], 3) == []
    assert smallest_whole_conflict((odd & idle).parts, 3) == []


REFUSED = {
    "an unmeasured output left open": (
        lambda: (
            hf.laplace(hf.histogram(3), scale=[1, np.inf, np.inf])
            .onto(hf.equals([[1, 1, 1]], [3]) & hf.nonnegative())
            .image([1, 0, 0])
        ),
        "measure them",
    ),
    "a way for orders asked about a table": (lambda: mechanism(MARGINS, norm="l1", method="orders").method, "'orders'"),
    "an unknown way": (lambda: mechanism(MARGINS, method="networks"), "did you mean 'network'"),
    "a truth outside its bounds": (
        lambda: mechanism(MARGINS & hf.between(0, 9)).release(np.where(TRUTH == 7, SECRET, TRUTH)),
        "position 8",
    ),
    "noise of tables with bounds": (lambda: mechanism(MARGINS & hf.nonnegative()).noise(1), "depends on the data"),
    "values that doubles cannot hold": (
        lambda: mechanism(hf.equals([np.ones(12, dtype=int)], [2**60]) & hf.nonnegative(), integer=False).image(
            np.full(12, 2**56)
        ),
        "too large",
    ),
    "values that cannot be ordered in doubles": (
        lambda: mechanism(hf.ordered(np.arange(12))).image(np.full(12, 2**55)),
        "ordered in doubles",
    ),
    "weights that cannot be compared": (
        lambda: mechanism(MARGINS & hf.nonnegative(), weights=np.geomspace(1e-150, 1e150, 12)),
        "nearer scales",
    ),
}


@pytest.mark.parametrize("name", list(REFUSED))
def test_refusals(name):
    """One sentence, and never a confidential value."""
    call, sentence = REFUSED[name]
    with pytest.raises(hf.Refused, match=sentence) as refusal:
        call()
    assert str(SECRET) not in str(refusal.value)


def test_nothing_leaves_that_misses_anything():
    """A move that misses a margin, a bound or an inequality is refused, whoever proposes it."""
    problem = mechanism(MARGINS & hf.nonnegative()).moves[0].problem
    task = Task.of(problem, TRUTH, problem.space.rows @ TRUTH)
    still = np.zeros(12, dtype=np.int64)
    np.testing.assert_array_equal(approved(task, still), TRUTH)
    swap = still.copy()
    swap[[0, 1, 4, 5]] = np.array([1, -1, -1, 1])
    for wrong in (np.eye(12, dtype=np.int64)[2], swap):
        with pytest.raises(hf.Refused, match="was not found"):
            approved(task, wrong)
        with pytest.raises(hf.Refused, match="was not found"):
            answered(task, wrong, (np.zeros(task.gap.size), np.zeros(0)))
    inside = swap * 0
    inside[[0, 3, 8, 11]] = [1, -1, -1, 1]
    worse = answered(task, inside << 30, (np.zeros(task.gap.size), np.zeros(0)))
    assert worse.evidence.gap == pytest.approx(worse.evidence.objective)
    assert worse.evidence.gap > 0


@pytest.mark.parametrize("words", [{}, {"norm": "l1"}, {"integer": True}, {"integer": True, "norm": "l1"}])
def test_releases_show_their_evidence(words):
    """Grid, exactness and gap are there; they travel with the release, and a seed gives the same table again."""
    moved = mechanism(MARGINS & hf.nonnegative(), **words)
    release = moved.release(TRUTH, rng=hf.seeded(1))
    assert release.method == "network"
    assert release.evidence.exact
    assert release.evidence.nearest
    assert release.evidence.relative_gap < 1e-9
    assert release.evidence.grid == (1 if "integer" in words else release.evidence.grid)
    again = pickle.loads(pickle.dumps(moved)).release(TRUTH, rng=hf.seeded(1))
    np.testing.assert_array_equal(again.values, release.values)
    assert pickle.loads(pickle.dumps(release.evidence)) == release.evidence
    assert moved.simulate(TRUTH, 3, rng=hf.seeded(2)).shape == (3, 12)
    table = release.values.reshape(CUBE)
    np.testing.assert_array_equal(table.sum(axis=0), TRUTH.reshape(CUBE).sum(axis=0))
    np.testing.assert_array_equal(table.sum(axis=1), TRUTH.reshape(CUBE).sum(axis=1))


def test_evidence_stays_inside_where_the_noisy_answer_would():
    """Where only the moved part is protected the noisy answer is not published, and neither is how far it was moved."""
    moved = hf.laplace(hf.histogram(4), scale=1).onto(hf.invariant([[1, 1, 1, 1]]), integer=False)
    assert any(each.scope == "subspace" for each in moved.guarantees)
    release = moved.release([1, 2, 2, 0], rng=hf.seeded(1))
    assert release.measurements is None
    assert release.evidence is None
    cells = hf.laplace(hf.histogram(4), scale=1).given(hf.equals([[1, 1, 1, 1]], [5])).onto(hf.nonnegative())
    beside = cells.release([1, 2, 2, 0], rng=hf.seeded(1))
    assert beside.measurements.sum() == 5
    assert cells.image(beside.measurements, ties=beside.ties).tolist() == beside.values.tolist()
    assert beside.evidence is not None
    formula = hf.laplace(hf.histogram(4), scale=1).onto(hf.nonnegative()).release([1, 2, 2, 0], rng=hf.seeded(1))
    assert (formula.evidence.grid, formula.evidence.gap, formula.evidence.exact) == (1, 0, True)


def test_alike_blocks_share_what_is_prepared():
    """Ten tables that differ in their margins only are one problem; another weight makes another."""
    shape = (10, 3, 3)
    must = hf.invariant(hf.exact_margins(shape, [(0, 1), (0, 2)])) & hf.nonnegative()
    scale = np.ones(90)
    plan = onto.choose(hf.laplace(hf.histogram(90), scale=scale).onto(must).moves[0].problem)
    assert len(plan.shares) == 10
    assert len({id(share.problem) for share in plan.shares}) == 1
    scale[:9] = 2
    plan = onto.choose(hf.laplace(hf.histogram(90), scale=scale).onto(must).moves[0].problem)
    assert len({id(share.problem) for share in plan.shares}) == 2


def test_searches_that_end_early_say_what_they_are(monkeypatch):
    """Where nodes run out, the point is a controlled rounding and is not called nearest; its gap is still true."""
    shape = (3, 3, 3)
    truth = np.random.default_rng(3).integers(0, 6, 27)
    must = hf.invariant(hf.exact_margins(shape, [(0, 1), (1, 2), (0, 2)])) & hf.nonnegative()
    moved = hf.laplace(hf.histogram(27), scale=5).onto(must, integer=True)
    proved = [moved.release(truth, rng=hf.seeded(seed)) for seed in range(4)]
    assert all(release.evidence.nearest for release in proved)
    full = whole.solved
    monkeypatch.setattr(whole, "solved", lambda *args, **words: replace(full(*args, **words), best=False))
    early = [moved.release(truth, rng=hf.seeded(seed)) for seed in range(4)]
    for exact, near in zip(proved, early, strict=True):
        assert not near.evidence.nearest
        assert near.evidence.exact
        assert near.evidence.objective - near.evidence.gap <= exact.evidence.objective + 1e-9


def test_a_table_of_three_ways_is_settled_by_bounds():
    """All two-way margins of 3 × 4 × 5 cells in whole numbers: proved, the same again, and no swap is nearer."""
    shape = (3, 4, 5)
    truth = np.random.default_rng(5).poisson(2.0, 60)
    must = hf.invariant(hf.exact_margins(shape, [(0, 1), (1, 2), (0, 2)])) & hf.nonnegative()
    moved = hf.laplace(hf.histogram(60), scale=2).onto(must, integer=True)
    release = moved.release(truth, rng=hf.seeded(4))
    assert release.evidence.nearest
    assert release.evidence.gap < 2 / moved.base.law.variances[0]
    np.testing.assert_array_equal(moved.release(truth, rng=hf.seeded(4)).values, release.values)
    change = (release.values - truth).reshape(shape)
    assert not any(change.sum(axis=axis).any() for axis in range(3))


def test_the_promise_is_that_of_the_constraint_and_not_of_the_way():
    """Structural constraints cost nothing; exact margins leave the statement about two records that swap."""
    free = hf.laplace(hf.histogram(4), epsilon=0.5).onto(hf.ordered([0, 1, 2, 3]))
    assert free.guarantee.epsilon == 0.5
    assert free.guarantee.scope == "all"
    for norm in ("l2", "l1"):
        for integer in (False, True):
            swapped = hf.laplace(hf.histogram(12), epsilon=0.5).onto(
                MARGINS & hf.nonnegative(), norm=norm, integer=integer
            )
            assert {each.scope for each in swapped.guarantees} == {"invariant-sharing"}
            assert swapped.guarantee.records == 2
    assert replace(free, moves=()).guarantee.epsilon == 0.5
