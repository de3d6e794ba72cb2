"""What `given` promises: computed once per problem, whatever way draws it (THEORY §2)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from holdfast.constraints import System
from holdfast.given.prices.lines import line_price
from holdfast.given.prices.trees import tree_price
from holdfast.given.prices.unions import ONE_SIDE, union_price
from holdfast.privacy import Additive, Differences, Guarantee, Promise
from holdfast.privacy.assumptions import never_lowered
from holdfast.privacy.composition import THESE_RECORDS_ONLY
from holdfast.privacy.guarantee import outward
from holdfast.privacy.invariants import NO_MOVE, possible, projected_loss, sharing, subspace_words
from holdfast.queries import Query

#: Differences are tested for staying whole under projection up to so many cells.
MOST_CELLS = 20_000
#: So many of them first.
FIRST_CELLS = 16

EQUALITIES = {
    "laplace": "conditioning on equalities keeps pure ε (TV Lemma 10)",
    "gaussian": "conditioning Gaussian noise on equalities keeps μ (THEORY §2)",
    "integer gaussian": "integer Gaussian noise on the lattice of the equalities keeps ρ (Poisson summation, "
    "THEORY §2); ε is converted from ρ",
}
#: What inequalities cost, each where its hypotheses hold: the first that answers is taken.
PRICES = (tree_price, line_price)
TWICE = "conditioning on a set of positive probability at most doubles pure ε (TV after Def 9)"
UNION = (
    "given a union: the largest ε_d + log c_x′/c_x over neighbouring tables, with the exact weights of its sides "
    "(corrected TV Thm 12; docs/theory/unions.md)"
)
FREE = "Gaussian noise conditioned on a convex set keeps μ (THEORY H6: Prékopa; Gopi–Lee–Liu 2022)"
NO_CLAIM = (
    "no privacy statement is known for integer Gaussian noise given these inequalities: "
    "use integer=False, Laplace noise, or onto()"
)


def statement_for(base: Additive, system: System, differences: Differences, **words: Any) -> Guarantee:
    """Return the statement about some of the changes that keep every equality of a system without a union."""
    revised = _revised(base, system, differences, **words)
    if revised:
        return revised[0]
    return Guarantee(epsilon=np.inf, neighbours=differences.neighbours, because=NO_CLAIM, **words)


def promise(base: Additive, system: System) -> Promise:
    """Return every statement that holds for the mechanism conditioned on the system."""
    if system.branches:
        return _union(base, system)
    if system.invariants.count:
        return _invariants(base, system)
    found = possible(base, system)
    if found is None:
        return Promise.of([], NO_MOVE)
    differences, words = found
    return Promise.of(_revised(base, system, differences, **words), NO_CLAIM)


def _revised(base: Additive, system: System, differences: Differences, **words: Any) -> list[Guarantee]:
    """Statements for differences that keep every equality of the system."""
    kind, integer = base.law.kind, base.law.integer
    bound = base.loss(differences)
    loss = bound.value
    # With right-hand sides other than 0 the worst data need not exist: the figure is then only a bound.
    reached = not np.asarray(system.equalities.b != 0).any()
    words = {"neighbours": differences.neighbours, "exact": bound.exact and reached} | words
    if not system.has_inequalities:
        if kind == "laplace":
            return [base.pure(loss, because=EQUALITIES["laplace"], **words)]
        if integer:
            because = EQUALITIES["integer gaussian"]
            return [base.integer_gaussian(loss, None, because=because, **words)]
        return [base.continuous_gaussian(loss, because=EQUALITIES["gaussian"], **words)]
    words["exact"] = False
    found = (price(base, system, differences, **words) for price in PRICES)
    is_priced = kind != "laplace" or not _lowered(base.query, system)
    price = next((statement for statement in found if statement is not None), None) if is_priced else None
    if price is not None and not _bounds_on_cells(base.query, system):
        price = replace(price, caveats=(*price.caveats, THESE_RECORDS_ONLY))
    if kind == "laplace":
        if price is not None and not price.void:  # void: doubles do not hold it
            return [price]
        return [base.pure(2 * loss, because=TWICE, **words)]
    if not integer:
        return [base.continuous_gaussian(loss, because=FREE, **words)]
    return [] if price is None else [price]


def _lowered(query: Query, system: System) -> bool:
    """Whether a record can lower an output that is bounded from below: then the bound is no fact about every dataset.

    Prices are those of possible tables; without that fact only twice the loss is proved (THEORY §2, H1).
    """
    bounded = np.isfinite(system.real_bounds()[0])
    if query.cells is None or not bounded.any() or never_lowered(query):
        return False
    rows = query.columns.tocsr()[np.flatnonzero(bounded)]
    return bool(rows.nnz) and bool(rows.data.min() < 0)


def _bounds_on_cells(query: Query, system: System) -> bool:
    """Whether every bound is on a single cell or follows from counts not being negative.

    Then tables between two that keep to the bounds do so too, and a priced statement can be carried over to more
    records (docs/theory/composition.md, Lemma).
    """
    if query.identity:
        return system.inequalities.count == 0
    if system.inequalities.count or query.cells is None:
        return False
    low, high = system.real_bounds()
    beyond_signs = (low > 0) | np.isfinite(high)
    if query.levels is not None and not beyond_signs.any():
        return True  # counts and margins: no entry is negative
    rows = sparse.csr_array(query.columns)
    several = np.diff(rows.indptr) > 1
    signed = np.asarray(rows.min(axis=1).todense()).ravel() < 0
    return not (several & (beyond_signs | (signed & np.isfinite(low)))).any()


def _invariants(base: Additive, system: System) -> Promise:
    statements = sharing(base, system, partial(statement_for, base, system))
    if system.has_inequalities or any(statement.scope == "all" for statement in statements):
        return Promise.of(statements, NO_CLAIM if statements else NO_MOVE)
    return Promise.of([*statements, *_subspace(base, system)], NO_MOVE)


def _subspace(base: Additive, system: System) -> list[Guarantee]:
    """All neighbours, about the part of the output in N (THEORY §2, 2)."""
    space = system.null_space()
    words = subspace_words(system, base.query) | {"neighbours": base.neighbours}
    if space.is_zero:
        return []
    if base.law.integer and not _stays_whole(base, system):
        void = "supports are disjoint: Π_N d is not a whole vector for some neighbours (THEORY §2, 2)"
        return [Guarantee(epsilon=np.inf, because=void, **words)]
    loss = projected_loss(base, space)
    if not loss:  # unknown, or 0: then the statement would be about nothing
        return []
    if base.law.kind == "laplace":
        return [base.pure(loss, because="max ‖Π_N d‖₁/λ over all neighbours (THEORY §2, 2)", **words)]
    because = "max ‖Σ^(−1/2) Π_N d‖ over all neighbours (THEORY §2, 2)"
    if base.law.integer:
        return [base.integer_gaussian(loss, None, because=because, **words)]
    return [base.continuous_gaussian(loss, because=because, **words)]


def _stays_whole(base: Additive, system: System) -> bool:
    """Whether Π_N d is a whole vector for every difference d: otherwise output supports are disjoint."""
    if base.query.cells is None or base.query.cells > MOST_CELLS:
        return False
    columns, space = base.query.columns, system.null_space()
    some = np.unique(np.linspace(0, base.query.cells - 1, FIRST_CELLS).astype(np.int64))
    for chosen in (columns[:, some], columns):  # mostly one of a few differences tells
        differences = chosen
        if base.neighbours.kind == "replace-one":
            differences = sparse.csc_array(chosen - sparse.hstack([columns[:, [0]]] * chosen.shape[1], format="csc"))
        if not space.projects_integers(differences):
            return False
    return True


def _union(base: Additive, system: System) -> Promise:
    """A disjoint union is one event: c_x′/c_x ≤ e^ε for pure ε, so at most 2ε; less where c_x is known for all truths.

    TV Thm 12 part 2 as printed does not hold: the weights of the branches depend on the data (docs/theory/unions.md).
    """
    if system.invariants.count:
        return Promise.of([], "no privacy statement is known for a union together with invariants: drop one of them")
    if base.law.kind != "laplace":
        return Promise.of([], "no privacy statement is known for Gaussian noise given a union: use Laplace noise")
    if not base.law.integer and any(branch.equalities.count for branch in system.branches):
        return Promise.of([], "a union of equalities has no defined weights under continuous noise: use integer=True")
    outside = replace(system, branches=())
    found = possible(base, outside)
    if found is None:
        return Promise.of([], NO_MOVE)
    differences, words = found
    twice = 2 * base.loss(differences).value
    price = union_price(base, system, differences.neighbours)
    if price is None:
        words |= {"neighbours": differences.neighbours, "exact": False}
        words["unprotected"] = (*words.get("unprotected", ()), ONE_SIDE)
        return Promise.of([base.pure(twice, because=TWICE, **words)])
    if price.loss is None:
        return Promise.of([], NO_MOVE)
    words |= {"neighbours": price.neighbours, "exact": price.exact, "unprotected": price.unprotected}
    words["caveats"] = (THESE_RECORDS_ONLY,)  # the price is that of possible tables, and steps between may not be
    if price.neighbours == differences.neighbours and outward(price.loss) > outward(twice):
        return Promise.of([base.pure(twice, because=TWICE, **(words | {"exact": False}))])
    return Promise.of([base.pure(price.loss, because=UNION, **words)])
