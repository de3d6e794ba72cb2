"""What every table drawn on a hierarchy keeps: its sums, its bounds, and its independence of workers and rounding."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import holdfast as hf
from holdfast.arrays import compiled
from holdfast.randomness import Keys
from holdfast.trees.messages import messages
from holdfast.trees.messages import sampler as sampler_module
from holdfast.trees.messages.outlook import learned
from holdfast.trees.messages.parcels import empty_shelf
from holdfast.trees.messages.responses import at, slope_for
from holdfast.trees.messages.windows import within
from samplers import NONE, narrowed, sampler, sums_up

CITY = [-1] + [0] * 6 + [1 + g for g, size in enumerate((43, 61, 1, 69, 69, 20)) for _ in range(size)]


def nation(leaves, group=50, regions=20):
    """Parents of a root, regions, groups and leaves."""
    groups = leaves // group
    above = [-1] + [0] * regions + [1 + i * regions // groups for i in range(groups)]
    return np.array(above + [1 + regions + i // group for i in range(leaves)])


def counts_to_bounds(parents, leaf_counts):
    """Lower bounds on noise that keep every count at 0 or more."""
    counts = np.zeros(parents.size, dtype=np.int64)
    counts[-leaf_counts.size :] = leaf_counts
    for v in range(parents.size - 1, 0, -1):
        counts[parents[v]] += counts[v]
    return -counts


def random_case(seed):
    """A random tree with scales per output and bounds on some."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 70))
    parents = np.array([-1] + [int(rng.integers(max(0, v // 6 - 1), max(1, min(v, v // 4 + 1)))) for v in range(1, n)])
    low = np.where(rng.random(n) < 0.5, -rng.integers(0, 6, n), -NONE)
    high = np.where(rng.random(n) < 0.3, rng.integers(1, 9, n), NONE)
    return parents, rng.choice([0.75, 1.0, 2.5], n), low, high


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("seed", range(6))
def test_balls_and_doubles_draw_the_same_tables(kind, seed):
    """Error bounds inflated 1e11 times leave most draws to ball arithmetic, which must choose as doubles do."""
    parents, scales, low, high = random_case(seed)
    plain = sampler(parents, kind, scales, low, high).draw(6, hf.seeded(seed))
    careful = sampler(parents, kind, scales, low, high, inflation=1e11).draw(6, hf.seeded(seed))
    assert np.array_equal(plain, careful)
    assert sums_up(parents, plain)
    assert (plain >= low).all()
    assert (plain <= high).all()


@pytest.mark.slow
def test_balls_and_doubles_draw_the_same_city():
    low = np.where(np.arange(270) < 7, -NONE, -(np.arange(270) % 4))
    plain, careful = (
        sampler(CITY, "laplace", 3, low, inflation=inflation).draw(1, hf.seeded(8)) for inflation in (1.0, 1e11)
    )
    assert np.array_equal(plain, careful)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "learn"), [("laplace", False), ("laplace", True), ("gaussian", None)])
def test_workers_do_not_change_a_table(kind, learn):
    """Neither the table nor the windows that were guessed for it, in slices."""
    parents = nation(36_000, group=8)
    low = counts_to_bounds(parents, np.random.default_rng(3).integers(0, 7, 36_000))
    made = [sampler(parents[: low.size], kind, 2, low, workers=workers, learn=learn) for workers in (1, 2, 3)]
    tables = [each.draw(2, hf.seeded(4)) for each in made]
    for table, each in zip(tables[1:], made[1:], strict=True):
        assert np.array_equal(tables[0], table)
        for one, other in zip(made[0].ready.guess, each.ready.guess, strict=True):
            assert np.array_equal(one, other)
    assert not np.array_equal(tables[0][0], tables[0][1])


@pytest.mark.parametrize("holds", [True, False])
def test_a_message_tells_how_it_answers_to_slopes(holds):
    """A normal law is followed exactly from its mean and variance at one slope, if the window holds it."""
    places, grid, tilt = np.arange(-40, 51.0), np.linspace(-0.5, 0.5, 11), 0.05
    shelf = empty_shelf(np.array([places.size]))
    shelf.values[:] = np.exp(-((places - 3) ** 2) / 40)
    shelf.lo[0], shelf.hi[0], shelf.r_lo[0], shelf.r_hi[0] = -40, 50, 0.3, 0.3 if holds else 1.1
    mean, variance = (np.array([guess], dtype=np.float32) for guess in (5 + 35 * grid, np.full(grid.size, 35.0)))
    learned(np.zeros(1, dtype=np.int64), np.array([tilt]), grid, mean, variance, shelf)
    assert np.allclose(mean[0], 3 + 20 * (grid - tilt) if holds else 5 + 35 * grid, atol=1e-3)
    assert np.allclose(variance, 20 if holds else 35)


@compiled
def follow(mean, variance, grid, slope):
    """The mean and the variance under a slope, and the slope for that mean."""
    m, v = at(mean, variance, grid, slope)
    return m, v, slope_for(mean, variance, grid, m)


@pytest.mark.parametrize("part", [0.0, 0.2, 0.7, 1.0])
def test_curves_between_slopes_follow_lines_and_poles(part):
    """And are found again from their heights."""
    grid, slope = np.array([-0.5, 0.1, 0.8]), 0.1 + 0.7 * part
    assert np.allclose(follow(3 + 2 * grid, np.full(3, 2.0), grid, slope), (3 + 2 * slope, 2, slope))
    pole = 1 / (1 - grid)
    assert np.allclose(follow(pole, pole**2, grid, slope), (1 / (1 - slope), 1 / (1 - slope) ** 2, slope))


def zeros(rng, n):
    return np.zeros(n, dtype=np.int64)


def mostly_zeros(rng, n):
    return np.where(rng.random(n) < 0.95, 0, rng.poisson(60, n))


def small(rng, n):
    return np.where(rng.random(n) < 0.6, 0, rng.integers(1, 8, n))


def one_enormous(rng, n):
    return np.where(np.arange(n) == n // 3, 10**9, 0)


ADVERSARIAL = [zeros, mostly_zeros, small, one_enormous]


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("counts", ADVERSARIAL, ids=lambda make: make.__name__)
def test_adversarial_counts_are_drawn_within_their_bounds(kind, counts):
    parents = nation(20_000)
    low = counts_to_bounds(parents, counts(np.random.default_rng(1), 20_000))
    draws = sampler(parents, kind, 3, low).draw(2, hf.seeded(2))
    assert sums_up(parents, draws)
    assert (draws >= low).all()
    assert draws.std() > 0


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_thousands_of_zero_siblings(kind):
    parents = np.array([-1] + [0] * 5_000)
    low = np.where(np.arange(5_001) == 0, -NONE, 0)
    draws = sampler(parents, kind, 2, low).draw(3, hf.seeded(5))
    assert sums_up(parents, draws)
    assert (draws >= low).all()


ONE_PARENT = {
    "one large leaf among empty ones": (np.where(np.arange(2_000) == 700, 10**6, 0), 6.0),
    "nearly all empty": (np.where(np.arange(2_000) % 200 == 7, 60, 0), 6.0),
    "scales of 60 and 0.4 side by side": (np.arange(2_000) % 9, np.where(np.arange(2_001) % 2, 60.0, 0.4)),
    "narrow noise": (np.arange(2_000) % 3, 0.05),
}


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("case", ONE_PARENT)
def test_no_counts_are_refused(kind, case):
    """Where compiled messages cannot be made for such counts, they are drawn in plain numpy."""
    counts, scales = ONE_PARENT[case]
    parents = np.array([-1] + [0] * counts.size)
    low = counts_to_bounds(parents, counts)
    draws = sampler(parents, kind, scales, low).draw(1, hf.seeded(2))
    assert sums_up(parents, draws)
    assert (draws >= low).all()


def test_trees_that_are_rejected_again_and_again_are_drawn_in_plain_numpy(monkeypatch):
    """Only these: trees that were accepted stay as they were drawn."""
    parents = np.array([-1, -1] + [0] * 20 + [1] * 20)
    low = np.where(np.arange(42) < 2, -NONE, -3)
    made = sampler(parents, "laplace", 2, low)
    first = made.draw(1, hf.seeded(3))[0]
    once = type(made)._draw_rows

    def rejected(self, noise, keys, start, attempt):
        once(self, noise, keys, start, attempt)
        return {0: {int(self.ready.trees_of_outputs[0])}}

    monkeypatch.setattr(type(made), "_draw_rows", rejected)
    again = made.draw(1, hf.seeded(3))
    assert sums_up(parents, again)
    assert (again >= low).all()
    second = np.r_[1, 22:42]
    assert np.array_equal(again[0, second], first[second])
    assert not np.array_equal(again[0], first)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_alike_parcels_in_unlike_places(kind):
    # 63 empty leaves beside large ones, and 63 beside as many empty ones: one kind of piece, pulled very unlike
    parents = np.array([-1, 0, 0] + [1] * 127 + [2] * 126)
    low = counts_to_bounds(parents, np.repeat([0, 300, 0], [83, 44, 126]))
    tables = sampler(parents, kind, 6, low).draw(20, hf.seeded(3))
    assert (tables >= low).all()
    assert sums_up(parents, tables)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_boxes_hold(kind):
    parents = nation(20_000)
    rng = np.random.default_rng(6)
    leaf = np.arange(parents.size) >= parents.size - 20_000
    low = np.where(leaf, -rng.integers(0, 4, parents.size), -NONE)
    high = np.where(leaf, rng.integers(0, 4, parents.size), NONE)
    draws = sampler(parents, kind, 3, low, high).draw(2, hf.seeded(7))
    assert sums_up(parents, draws)
    assert (draws >= low).all()
    assert (draws <= high).all()


def test_zero_leaves_under_a_measured_root_have_the_known_law():
    """k zero counts are geometric: their sum has weight C(k+s−1, s)·α^s, and the root's own weight e^{−s/λ} on top."""
    k, scale, size = 300, 2.0, 4_000
    low = np.where(np.arange(k + 1) == 0, -NONE, 0)
    draws = sampler([-1] + [0] * k, "laplace", [8.0] + [scale] * k, low).draw(size, hf.seeded(9))
    s = np.arange(4_000)
    logs = np.concatenate([[0.0], np.cumsum(np.log((k + s[1:] - 1) / s[1:]))]) - s / scale - s / 8.0
    law = np.exp(logs - logs.max())
    law /= law.sum()
    mean, variance = law @ s, law @ s**2 - (law @ s) ** 2
    assert abs(draws[:, 0].mean() - mean) < 6 * np.sqrt(variance / size)
    assert draws[:, 0].var() == pytest.approx(variance, rel=0.2)
    # leaves are alike: each has a k-th of the mean
    assert abs(draws[:, 1:].mean(axis=0) - mean / k).max() < 7 * draws[:, 1:].std() / size**0.5


def test_enormous_bounds_do_not_overflow():
    parents = np.array([-1] + [0] * 100)
    high = np.array([1] + [2**61] * 100)
    draws = sampler(parents, "laplace", 2, high=high).draw(50, hf.seeded(10))
    assert (draws[:, 0] <= 1).all()
    assert draws[:, 0].min() < 0


@pytest.mark.slow
def test_deep_chains_are_drawn():
    parents = np.array([-1, *range(1_000)])
    draws = sampler(parents, "laplace", 2_500.0).draw(3, hf.seeded(11))
    assert sums_up(parents, draws)
    assert (draws == draws[:, :1]).all()


def test_single_children_share_their_noise():
    """Thirty outputs in a chain with scale 30 are one noise with scale 1."""
    size = 20_000
    draws = sampler(np.array([-1, *range(29)]), "laplace", 30.0).draw(size, hf.seeded(12))
    alpha = np.exp(-1.0)
    variance = 2 * alpha / (1 - alpha) ** 2
    assert draws[:, 0].var() == pytest.approx(variance, rel=0.12)


def test_messages_go_with_their_sampler():
    """No circle of references keeps a nation's messages alive until the collector comes by."""
    made = sampler(CITY, "laplace", 3)
    made.draw(1, hf.seeded(14))
    kept = weakref.ref(made.ready)
    gc.disable()
    try:
        del made
        assert kept() is None
    finally:
        gc.enable()


def test_no_coin_serves_twice(monkeypatch):
    """Each message beyond its window has a coin of its own, or acceptance would not be a product of probabilities."""
    tossed = []
    at = Keys.at

    def recording(self, *path):
        if path[0] == "coin":
            tossed.append(path)
        return at(self, *path)

    monkeypatch.setattr(Keys, "at", recording)
    scales = [np.inf, 1, 1, 1, 1, 1]
    made = narrowed(sampler([-1, 0, 0, 1, 1, 2], "gaussian", scales, need=0.05, need_inside=0.05), 1)
    made.draw(600, hf.seeded(13))
    assert len(tossed) > 100
    assert len(set(tossed)) == len(tossed)


@pytest.mark.parametrize("by", [1, 3])
def test_the_promise_of_a_nation_writes_out_no_paths(by):
    """What records do on a hierarchy is known; the columns of a nation, a path for every leaf, are large."""
    tree = hf.Hierarchy.from_parents(nation(500))
    query = hf.counts(tree, by=by)
    promise = hf.laplace(query, scale=2).given(hf.consistent(query) & hf.nonnegative()).guarantee
    assert promise.assumes == ()
    assert "columns" not in vars(query)


def test_sums_that_leave_out_a_child_are_assumed():
    tree = hf.Hierarchy.from_parents([-1, 0, 0, 1, 1])
    promise = hf.laplace(hf.counts(tree), scale=2).given(hf.equals([[1, -1, 0, 0, 0]], [0])).guarantee
    assert promise.assumes


def test_where_nothing_is_free_all_noise_is_0():
    made = sampler([-1, 0], "gaussian", 5.0, exact=[0])
    assert not made.draw(2, hf.seeded(1)).any()


@pytest.mark.parametrize(
    ("guess", "possible", "window"),
    [
        ((-3.5, np.inf), (-NONE, 0), (-4, 0)),
        ((-np.inf, 2.5), (-7, NONE), (-7, 3)),
        ((np.nan, np.nan), (-2, 9), (-2, 9)),
        ((-1e300, 1e300), (-NONE, NONE), (-NONE, NONE)),
        ((-0.5, 0.5), (-NONE, NONE), (-1, 1)),
        ((5.0, 6.0), (-9, 3), (0, 3)),
    ],
)
def test_windows_are_kept_to_what_is_possible(guess, possible, window):
    """Guesses have no end where nothing bends a total."""
    assert within(*guess, *possible) == window


def test_messages_that_have_no_sum_are_not_drawn_from():
    """Tiny noise leads guesses astray: far out, the message of one part rose faster than that of the other fell."""
    parents = np.array([-1, 0, 0, 0, 0] + [1] * 6 + [2] * 3 + [3] * 7 + [4] * 4)
    counts = np.array([0, 0, 14, 97, 0, 22, 0, 0, 64, 38, 0, 0, 8, 77, 0, 0, 0, 18, 0, 0])
    low = np.concatenate([np.full(5, -NONE), -counts])
    drawn = sampler(parents, "gaussian", 0.3, low)._draw(3, hf.seeded(1))
    assert sums_up(parents, drawn)
    assert (drawn >= low).all()


@pytest.mark.parametrize(("rejections", "plain"), [(3, 0), (4, 1)])
def test_plain_numpy_draws_only_after_many_rejections(rejections, plain, monkeypatch):
    made, attempts, asked = sampler(CITY, "laplace", 3.0), [], []
    finished, in_plain = sampler_module._Drawing.finished, sampler_module.PlainSampler.draw

    def rejecting(drawing):
        attempts.append(drawing.place[2])
        return {0: {int(made.ready.trees[0])}} if len(attempts) <= rejections else finished(drawing)

    monkeypatch.setattr(sampler_module, "PATIENCE", 3)
    monkeypatch.setattr(sampler_module._Drawing, "finished", rejecting)
    monkeypatch.setattr(sampler_module.PlainSampler, "draw", lambda *given: asked.append(1) or in_plain(*given))
    assert sums_up(np.array(CITY), made._draw(1, hf.seeded(4)))
    assert attempts == [0, 1, 2, 3]
    assert len(asked) == plain


def test_windows_inside_parcels_of_more_than_a_nation_miss_no_more_totals():
    def rarity(n):
        return messages._rarity(SimpleNamespace(need_inside=14.0, forest=SimpleNamespace(n=n)))

    assert rarity(1) == rarity(messages.NATION) == 14.0
    assert rarity(10 * messages.NATION) == pytest.approx(14.0 + np.log(10))
