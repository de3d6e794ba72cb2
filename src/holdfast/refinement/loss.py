"""How much a linear refinement can tell about a change of the data: the exact ρ of LR Definition 5 (THEORY H5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import fmpq_mat
from scipy import sparse
from scipy.sparse import csgraph

from holdfast.arguments import Matrix, Number, Numbers, Refused, one_of, positions, positive, reals, shown
from holdfast.arrays import Floats
from holdfast.constraints import Constraint
from holdfast.exact.cheapest_rational import Cheapest, cheapest, cheapest_whole, least_squares
from holdfast.exact.rational_matrices import as_fraction, dense, left_null_space, made, read_entry, read_matrix
from holdfast.exact.rationals import numeric
from holdfast.privacy.rounding import outward
from holdfast.refinement.linear_refinement import LinearRefinement


class Loss(float):
    """A privacy loss ρ, rounded up by one double at most, with what is behind it.

    `exact` is the number itself (None where it is infinite), `outputs` the set of outputs that shows it, `difference`
    the change that it tells apart, and `attained` whether no smaller ρ will do (for whole noise that is not known).
    """

    exact: Fraction | None
    outputs: tuple[int, ...]
    difference: tuple[Fraction, ...]
    attained: bool

    @classmethod
    def of(
        cls, cost: Fraction | None, outputs: tuple[int, ...], difference: tuple[Fraction, ...], attained: bool
    ) -> Loss:
        """Return the loss of one set of outputs; without a vector the values never coincide, and it is infinite."""
        result = cls(math.inf if cost is None else outward(cost))
        result.exact = cost
        result.outputs, result.difference = outputs, difference
        result.attained = attained or cost is None
        return result

    @property
    def order(self) -> Fraction | float:
        return math.inf if self.exact is None else self.exact


@dataclass(frozen=True, eq=False)
class Study:
    """A refinement with the noise it gets, ready to be asked for losses; answers that share no noise are apart.

    `find` turns rows A, right-hand sides and weights into the cheapest vector. Costs of blocks add up.
    """

    A: fmpq_mat
    weights: list[Fraction]
    find: Callable[[fmpq_mat, list[Fraction], list[Fraction]], Cheapest | None]
    attained: bool

    @cached_property
    def blocks(self) -> list[tuple[Block, Study]]:
        """The blocks of A, each with the study of its own answers and noises."""
        found = blocks_of(self.A)
        if len(found) == 1 and len(found[0].noises) == self.A.ncols():
            return [(found[0], self)]
        rows = self.A.tolist()
        made = []
        for block in found:
            lines = [[rows[i][j] for j in block.noises] for i in block.outputs]
            part = fmpq_mat(lines) if block.noises else fmpq_mat(len(block.outputs), 0)
            made.append((block, Study(part, [self.weights[j] for j in block.noises], self.find, self.attained)))
        return made

    def of_subset(self, difference: tuple[Fraction, ...], outputs: tuple[int, ...]) -> Loss:
        """Return the least cost of a t with (A t)_S = d_S."""
        cost: Fraction | None = Fraction(0)
        for block, study in self.blocks:
            place = {i: k for k, i in enumerate(block.outputs)}
            mine = [i for i in outputs if i in place]
            if cost is None or not any(difference[i] for i in mine):
                continue  # t = 0 costs nothing
            found = study._cost([place[i] for i in mine], [difference[i] for i in mine])
            cost = None if found is None else cost + found
        return Loss.of(cost, outputs, difference, self.attained)

    def _cost(self, outputs: list[int], sides: list[Fraction]) -> Fraction | None:
        rows = self.A.tolist()
        found = self.find(fmpq_mat([rows[i] for i in outputs]), sides, self.weights) if self.weights else None
        return None if found is None else found.cost

    def largest(self, difference: tuple[Fraction, ...]) -> Loss:
        """Return the largest loss over the sets of outputs whose values can coincide."""
        cost: Fraction | None = Fraction(0)
        outputs: list[int] = []
        for block, study in self.blocks:
            mine = tuple(difference[i] for i in block.outputs)
            best, chosen = study._worst(mine) if any(mine) else (Fraction(0), range(len(mine)))
            cost = None if cost is None or best is None else cost + best
            outputs += [block.outputs[k] for k in chosen]
        return Loss.of(cost, tuple(sorted(outputs)), difference, self.attained)

    def _worst(self, difference: tuple[Fraction, ...]) -> tuple[Fraction | None, Sequence[int]]:
        """The greatest cost of one block and the set that shows it; no cost: infinite."""
        best: tuple[Fraction | None, Sequence[int]] = (Fraction(-1), ())
        for outputs in self.subsets(difference):
            sides = [difference[i] for i in outputs]
            cost = self._cost(list(outputs), sides) if any(sides) else Fraction(0)
            if cost is None:
                return None, outputs
            if best[0] is not None and cost > best[0]:
                best = cost, outputs
        return best

    def of_groups(self, difference: tuple[Fraction, ...], groups: Sequence[frozenset[int]]) -> Loss:
        """Return the largest loss over the sets of whole groups of outputs whose values can coincide."""
        found = [self.of_subset(difference, outputs) for outputs in self.subsets(difference, groups)]
        return max(found, key=lambda loss: loss.order)

    def subsets(
        self, difference: tuple[Fraction, ...], groups: Sequence[frozenset[int]] = ()
    ) -> Iterator[tuple[int, ...]]:
        """Yield the largest sets S for which some real t has (A t)_S = d_S; smaller ones have smaller losses.

        With `groups`, of sets that have all of a group or nothing.
        """
        n = self.A.nrows()
        null = left_null_space(self.A) if self.weights else [[int(i == k) for i in range(n)] for k in range(n)]
        change = [sum((y * d for y, d in zip(vector, difference, strict=True)), Fraction(0)) for vector in null]

        single = groups or [frozenset([i]) for i in range(n)]

        def real(members: frozenset[int]) -> bool:
            chosen = frozenset[int]().union(*(single[k] for k in members))
            # d_S lies in the range of A_S unless some y with yᵀA = 0 and no entry outside S has yᵀd ≠ 0, that is,
            # unless the entries outside S leave yᵀd open.
            outside = [[Fraction(vector[i]) for vector in null] for i in range(n) if i not in chosen]
            return _spans(outside, change)

        for members in largest_admitted(len(single), real):
            yield tuple(sorted(frozenset[int]().union(*(single[k] for k in members))))


def _spans(vectors: list[list[Fraction]], target: list[Fraction]) -> bool:
    if not any(target):
        return True
    used = [vector for vector in vectors if any(vector)]
    if not used:
        return False
    return bool(made(used, len(target)).rank() == made([*used, target], len(target)).rank())


def refinement_loss(
    A: Matrix | LinearRefinement,
    difference: Matrix,
    scale: Number | Numbers,
    outputs: npt.ArrayLike | None = None,
    *,
    integer: bool = False,
    law: str = "laplace",
    knowledge: Constraint | None = None,
) -> Loss:
    """Return the loss ρ with which refined answers tell a change of the true answers (THEORY H5).

    Args:
        A: the (n, n) matrix of an unbiased refinement X̂ = A X + D c, or a LinearRefinement; doubles are read as the
            simple fractions that they are near.
        difference: μ − μ', (n,), or a whole difference set, one per row: the largest loss counts.
        scale: the Laplace scale λ of the noise, or σ for `law="gaussian"`, one number or one per output.
        outputs: the refined answers that are seen; None: the largest loss over all sets of them whose values can
            coincide (LR Def 5 sets the others aside, and then nothing is said about all answers together). Named
            outputs whose values can never coincide have an infinite loss.
        integer: whole Laplace noise; ρ is then an upper bound, and infinite where values that real noise would let
            coincide never do, as when a refined answer is always even before a change and odd after it.
        law: "laplace" or "gaussian".
        knowledge: orders, ranges and other things that hold for all data, to which the refined answers are then moved;
            ρ is an upper bound, that of all refined answers where the known combinations do not change with the data.
            Where a difference changes them, the answers must be moved by `knowledge` alone, as
            `refine(refined, knowledge=…)` does, and answers that one row of it ties are seen together or not at all.

    Guarantee:
        Laplace: for every event of the outputs, e^−ρ ≤ P(X̂ ∈ Ω)/P(X̂' ∈ Ω) ≤ e^ρ. Gaussian: the pair is exactly
        √(2ρ)-GDP, hence ρ-zCDP. For continuous noise no smaller ρ will do, but for `knowledge`
        (docs/theory/refinement.md, Propositions 1, 4, 5 and 6).

    Example:
        >>> import holdfast as hf
        >>> from holdfast.refinement import LinearRefinement
        >>> hf.refinement_loss(LinearRefinement.best([[1], [1]]), [1, -1], scale=2).exact
        Fraction(1, 1)
    """
    study, n = _study(A, scale, integer, one_of("law", law, ["laplace", "gaussian"]))
    changes = _differences(difference, n)
    if knowledge is not None:
        groups, study = _groups(knowledge, n), replace(study, attained=False)
        if any(_changed(study, each) for each in changes):
            return _moved_alone(study, changes, groups, outputs)
        if outputs is not None:
            raise Refused("outputs cannot be named beside knowledge: the loss is that of all refined answers together")
        outputs = range(n)
    if outputs is not None:
        seen = tuple(sorted(positions("outputs", outputs, n).tolist()))
        return max((study.of_subset(each, seen) for each in changes), key=lambda loss: loss.order)
    return max((study.largest(each) for each in changes), key=lambda loss: loss.order)


def _groups(knowledge: Any, n: int) -> list[frozenset[int]]:
    """The outputs that rows of the knowledge tie to each other."""
    if not isinstance(knowledge, Constraint) or knowledge.has_invariants or knowledge.is_union:
        raise Refused("knowledge must be a structural constraint, such as ordered([0, 1]) or between(0, 10)")
    system = knowledge.system(n)
    tied = sparse.vstack([system.equalities.A, system.inequalities.A], format="csr") != 0
    label = csgraph.connected_components(tied.T.astype(np.int64) @ tied.astype(np.int64), directed=False)[1]
    return [frozenset(np.flatnonzero(label == k).tolist()) for k in range(int(label.max()) + 1)]


def _changed(study: Study, difference: tuple[Fraction, ...]) -> bool:
    """Whether a difference changes the known combinations: d is not A d."""
    moved = (study.A * made([[value] for value in difference], 1)).entries()
    return any(as_fraction(value) != side for value, side in zip(moved, difference, strict=True))


def _moved_alone(study: Study, changes: list[tuple[Fraction, ...]], groups: list[frozenset[int]], outputs: Any) -> Loss:
    """The largest loss of answers that were moved group by group, each a function of its own refined answers."""
    if outputs is None:
        return max((study.of_groups(each, groups) for each in changes), key=lambda loss: loss.order)
    named = frozenset(positions("outputs", outputs, study.A.nrows()).tolist())
    seen = tuple(sorted(frozenset[int]().union(*(group for group in groups if group & named))))
    return max((study.of_subset(each, seen) for each in changes), key=lambda loss: loss.order)


def _study(A: Any, scale: Any, integer: Any, law: str) -> tuple[Study, int]:
    if not isinstance(integer, bool):
        raise Refused(f"integer must be True or False, found {shown(integer)}")
    if integer and law == "gaussian":
        raise Refused("the loss of whole Gaussian noise is not known here: use integer=False, or law='laplace'")
    matrix = A.exact_A if isinstance(A, LinearRefinement) else read_matrix("A", A)
    n = int(matrix.nrows())
    if matrix.ncols() != n:
        raise Refused(f"A must be square, found shape {(n, matrix.ncols())}")
    scales = read_scales("scale", scale, n)
    if law == "gaussian":
        return Study(matrix, [1 / (2 * each**2) for each in scales], least_squares, True), n
    find = cheapest_whole if integer else cheapest
    return Study(matrix, [1 / each for each in scales], find, not integer), n


def read_scales(name: str, scale: Any, n: int) -> list[Fraction]:
    """Return one scale above 0 for each output."""
    found = numeric(name, scale)
    if found.ndim == 0:
        return [positive(name, scale)] * n
    if found.shape != (n,):
        raise Refused(f"{name} must be one number or {n} numbers, found shape {found.shape}")
    return [positive(name, value) for value in found.tolist()]


def _differences(difference: Any, n: int) -> list[tuple[Fraction, ...]]:
    """Return the differences, of d and −d one: they have the same loss."""
    found = numeric("difference", difference)
    if found.ndim not in (1, 2) or found.shape[-1] != n or found.size == 0:
        raise Refused(f"difference must have shape ({n},) or (size, {n}), found shape {found.shape}")
    rows = [tuple(read_entry("difference", value) for value in row) for row in found.reshape(-1, n).tolist()]
    distinct: dict[tuple[Fraction, ...], None] = {}
    for row in rows:
        if tuple(-value for value in row) not in distinct:
            distinct[row] = None
    return list(distinct)


@dataclass(frozen=True)
class Block:
    """Outputs and noises, increasing, that no entry of A connects with others."""

    outputs: tuple[int, ...]
    noises: tuple[int, ...]


def blocks_of(A: fmpq_mat) -> list[Block]:
    """Split the rows and columns of A; a row of zeros is a block without noise."""
    rows, columns = A.nrows(), A.ncols()
    filled = np.array([value != 0 for value in A.entries()], dtype=bool).reshape(rows, columns)
    graph = sparse.block_array([[None, sparse.csr_array(filled)], [sparse.csr_array(filled.T), None]], format="csr")
    count, label = csgraph.connected_components(graph, directed=False)
    members: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
    for i, k in enumerate(label.tolist()):
        members[k][i >= rows].append(i if i < rows else i - rows)
    return [Block(tuple(outputs), tuple(noises)) for outputs, noises in members if outputs]


# The largest sets that an increasing condition still admits, without listing all subsets.
#
# A set that is refused holds a smallest refused set; every admitted set must lack one of its members. Branching over
# which member is the first that is missing meets every largest admitted set exactly once.

#: Sets that are looked at before giving up.
MOST_SETS = 20_000

Condition = Callable[[frozenset[int]], bool]


def largest_admitted(n: int, admits: Condition) -> Iterator[frozenset[int]]:
    """Yield every subset of 0 … n−1 that is admitted and in no larger admitted one.

    `admits` holds for every subset of an admitted set. Refused when more than MOST_SETS sets had to be looked at.
    """
    everything = frozenset(range(n))
    waiting = [(frozenset[int](), frozenset[int]())]  # what is left out, what must stay
    looked_at = 0
    while waiting:
        out, stays = waiting.pop()
        looked_at += 1
        if looked_at > MOST_SETS:
            raise Refused(
                f"outputs must be named here: more than {MOST_SETS} sets of outputs would have to be looked at"
            )
        chosen = everything - out
        if admits(chosen):
            if not any(admits(chosen | {member}) for member in out):
                yield chosen
            continue
        refused = _smallest_refused(chosen, stays, admits)
        must_stay = stays
        for member in sorted(refused - stays):
            waiting.append((out | {member}, must_stay))
            must_stay = must_stay | {member}


def _smallest_refused(chosen: frozenset[int], stays: frozenset[int], admits: Condition) -> frozenset[int]:
    """Return a refused subset of which every part is admitted, with as few members outside `stays` as comes easily."""
    kept = chosen
    for member in [*sorted(chosen - stays), *sorted(chosen & stays)]:
        if not admits(kept - {member}):
            kept = kept - {member}
    return kept


def calibrate_refinement(
    A: Matrix | LinearRefinement,
    difference: Matrix,
    rho: Number,
    outputs: npt.ArrayLike | None = None,
    *,
    relative: Numbers | None = None,
    integer: bool = False,
) -> float | Floats:
    """Return the least Laplace scale at which `refinement_loss` is at most rho, rounded up.

    The loss falls as 1/factor when all scales grow by one factor, because the cheapest vector stays the same, so there
    is nothing to search.

    Args:
        A: as in `refinement_loss`.
        difference: as in `refinement_loss`.
        rho: the loss that is allowed.
        outputs: as in `refinement_loss`.
        relative: scales of the outputs relative to each other; then one scale per output is returned.
        integer: as in `refinement_loss`.

    Guarantee:
        At this scale e^−rho ≤ P(X̂ ∈ Ω)/P(X̂' ∈ Ω) ≤ e^rho for every event of the outputs (docs/theory/refinement.md).

    Example:
        >>> import holdfast as hf
        >>> from holdfast.refinement import LinearRefinement
        >>> hf.calibrate_refinement(LinearRefinement.best([[1], [1]]), [1, -1], rho=1)
        2.0
    """
    target = positive("rho", rho)
    n = len(A.exact_h) if isinstance(A, LinearRefinement) else dense("A", A).shape[0]
    scales = read_scales("relative", 1 if relative is None else relative, n)
    found = refinement_loss(A, difference, scales, outputs, integer=integer)
    if found.exact is None:
        raise Refused(
            "no noise gives these outputs a finite loss: their values before and after a change never coincide; "
            "leave outputs out, or name fewer"
        )
    if not found.exact:
        raise Refused("the difference changes no refined answer that is seen, so every scale will do: use any above 0")
    factor = found.exact / target
    if relative is None:
        return outward(factor)
    return np.array([outward(factor * each) for each in scales])


# LR Theorem 2 as it is printed: a reference, not a guarantee.
#
# Its matrix A* = V·diag(Σ₁⁻¹, I)·Uᵀ contains the null blocks U₂ and V₂ of a singular value decomposition, which are
# determined only up to a rotation, and its value changes with the rotation; a low value understates the loss. The loss
# itself is `refinement_loss` (THEORY §7).

#: Singular values below this part of the largest count as zero, and rotations may miss orthogonality by this much.
TOLERANCE = 1e-9


def printed_theorem_2(
    refinement: LinearRefinement, B: Any, difference: Any, epsilon: Any, rotation: Any = None
) -> float:
    """Return ε‖A*D(c − c') − (μ − μ')‖₁ / ‖μ − μ'‖₁ with c − c' = Bᵀ(μ − μ'), for one choice of the null block.

    `rotation`: an orthogonal (m, m) matrix by which the null block U₂ that numpy finds is turned; None: not at all.
    """
    A, D = refinement.A, refinement.D
    n, m = D.shape
    known = reals("B", dense("B", B), (n, m))
    change = reals("difference", difference, (n,))
    if not change.any():
        raise Refused("difference must not be zero")
    U, sizes, V = np.linalg.svd(A)
    rank = int((sizes > TOLERANCE * sizes[0]).sum()) if sizes[0] > 0 else 0
    if rank != n - m:
        raise Refused(f"the theorem asks for a matrix A of rank n − m = {n - m}, found rank {rank}")
    turn = np.eye(m) if rotation is None else reals("rotation", rotation, (m, m))
    if np.abs(turn @ turn.T - np.eye(m)).max() > TOLERANCE:
        raise Refused("rotation must be an orthogonal matrix")
    U[:, rank:] = U[:, rank:] @ turn
    inverse = V.T @ np.diag(np.concatenate([1 / sizes[:rank], np.ones(m)])) @ U.T
    moved = inverse @ D @ (known.T @ change) - change
    return float(positive("epsilon", epsilon)) * float(np.abs(moved).sum() / np.abs(change).sum())
