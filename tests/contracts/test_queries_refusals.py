"""Bad input to queries is refused with one sentence that names the argument and no confidential value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from holdfast.arguments import Refused
from holdfast.domains import Cube, Hierarchy
from holdfast.queries import Neighbours, counts, histogram, margins, query, shared_moves, workload

TREE = Hierarchy.from_parents([-1, 0, 0])
NAN = float("nan")

CASES = {
    "unknown relation": (lambda: histogram(3).sensitivity(1, "add-remov"), "did you mean 'add-remove'"),
    "relation of a wrong type": (lambda: histogram(3).sensitivity(1, 3), "neighbours must be"),
    "no records": (lambda: Neighbours("add-remove", 0), "records must be at least 1"),
    "half a record": (lambda: Neighbours("add-remove", 1.5), "records must be a whole number"),
    "unknown norm": (lambda: histogram(3).sensitivity(3), "p must be one of"),
    "norm in words": (lambda: histogram(3).sensitivity("l1"), "p must be one of"),
    "power of largest": (lambda: histogram(3).largest([1], None, 3, "add-remove"), "p must be one of"),
    "no weights": (lambda: histogram(3).largest([], None, 1, "add-remove"), "values must be"),
    "negative weight": (lambda: histogram(3).largest([-1], None, 1, "add-remove"), "values must be"),
    "infinite weight": (lambda: histogram(3).largest([np.inf], None, 1, "add-remove"), "finite"),
    "groups of wrong length": (
        lambda: histogram(3).largest([1], [0, 0], 1, "add-remove"),
        "which must have shape",
    ),
    "group without a value": (lambda: histogram(3).largest([1], [0, 0, 1], 1, "add-remove"), "group numbers"),
    "allowed of wrong length": (
        lambda: histogram(3).largest([1], None, 1, "add-remove", [True]),
        "allowed must be",
    ),
    "allowed as numbers": (
        lambda: histogram(3).kinds(None, "add-remove", [1, 0, 1]),
        "allowed must be",
    ),
    "empty histogram": (lambda: histogram(0), "n must be at least 1"),
    "half a histogram": (lambda: histogram(2.5), "n must be a whole number"),
    "endless histogram": (lambda: histogram(2**40), "n must be at most"),
    "counts of no tree": (lambda: counts([-1, 0]), "tree must be a Hierarchy"),
    "no categories": (lambda: counts(TREE, by=0), "by must be at least 1"),
    "too few cells": (lambda: counts(TREE).answer([1]), r"cells must have shape \(2,\) or \(2, 1\)"),
    "wrong categories": (lambda: counts(TREE, by=3).answer(np.ones((3, 2))), r"\(6,\) or \(2, 3\)"),
    "negative cells": (lambda: histogram(3).answer([1, -7777, 2]), "position 1 is not"),
    "fractional cells": (lambda: histogram(3).answer([1, 2, 0.7777]), "position 2 is not whole"),
    "missing cells": (lambda: histogram(3).answer([1, NAN, 2]), "position 1 is not finite"),
    "text for cells": (lambda: histogram(2).answer(["a", "b"]), "cells must hold numbers"),
    "ragged cells": (lambda: histogram(2).answer([[1], [1, 2]]), "cells must be an array"),
    "sums beyond 64 bits": (lambda: counts(TREE).answer([2**61, 2**61]), "below 2"),
    "margin sums beyond 64 bits": (lambda: margins((2,), [()]).answer([2**61, 2**61]), "below 2"),
    "workload answers beyond 64 bits": (lambda: workload([[2**40]]).answer([2**40]), "below 2"),
    "no margins": (lambda: margins((2, 2), []), "keep must list at least one margin"),
    "axis out of range": (lambda: margins((2, 2), [(2,)]), "keep must hold positions between 0 and 1"),
    "axes out of order": (lambda: margins((2, 2), [(1, 0)]), "in table order"),
    "margin twice": (lambda: margins((2, 2), [(1,), (1,)]), "twice"),
    "margins not listed": (lambda: margins((2, 2), 1), "keep must be a list of margins"),
    "unknown axis": (lambda: margins(Cube((2, 2), ["sex", "age"]), [("aeg",)]), "did you mean 'age'"),
    "empty axis": (lambda: margins((2, 0)), "shape must be at least 1"),
    "workload of one row without cells": (lambda: workload([1, 2]), "W must have shape"),
    "empty workload": (lambda: workload(np.zeros((0, 3))), "W must have shape"),
    "missing entry": (lambda: workload([[1.0, NAN]]), "W must hold finite numbers"),
    "infinite entry with a grid": (lambda: workload([[1.0, np.inf]], grid=1), "finite"),
    "entry beyond 64 bits": (lambda: workload([[1e19]]), "below 2"),
    "grid of zero": (lambda: workload([[1]], grid=0), "grid must be above 0"),
    "grid too fine": (lambda: workload([[1.5]], grid=Fraction(1, 2**80)), "grid must be coarse"),
    "kinds of reals": (lambda: workload([[0.5]]).kinds(None, "add-remove"), "give the workload a grid"),
    "no sensitivity": (lambda: query(3), "l1 or l2 must be given"),
    "sensitivity of zero": (lambda: query(3, l1=0), "l1 must be above 0"),
    "whole or not": (lambda: query(3, l1=1, integer="yes"), "integer must be"),
    "differences unknown": (lambda: query(3, l1=1).differences(), "differences must be asked"),
    "kinds unknown": (lambda: query(3, l1=1).kinds(None, "add-remove"), "kinds must be asked"),
    "answer unknown": (lambda: query(3, l1=1).answer([1]), "answer must be asked"),
    "columns unknown": (lambda: query(3, l1=1).columns, "columns must be asked"),
    "cells unknown": (
        lambda: query(3, l1=1).largest([1], None, 1, "add-remove", [True]),
        "allowed must be asked",
    ),
    "moves unknown": (lambda: shared_moves(query(3, l1=1), np.eye(3), "add-remove"), "query must have known"),
    "rows of wrong width": (lambda: shared_moves(histogram(3), np.eye(2), "add-remove"), "rows must have"),
    "rows with a hole": (lambda: shared_moves(histogram(1), [[NAN]], "add-remove"), "rows must hold finite"),
    "rows too fine": (lambda: shared_moves(histogram(1), [[2.0**-80]], "add-remove"), "rows must hold whole"),
    "rows too large": (lambda: shared_moves(histogram(1), [[1e300]], "add-remove"), "rows must stay"),
    "zero records at least": (
        lambda: shared_moves(histogram(1), [[1]], "add-remove", records_at_least=0),
        "records_at_least must be at least 1",
    ),
    "wrong cube": (
        lambda: shared_moves(histogram(4), np.eye(4), "replace-one", cube_margins=((2, 3), [(0,), (1,)])),
        "cube_margins must be of a cube with 4 cells",
    ),
    "too many differences": (lambda: histogram(10**5).differences("replace-one"), "few enough to list"),
    "too large a workload for equalities": (
        lambda: workload(np.random.default_rng(1).integers(0, 9, (600, 600))).consistency(),
        "consistency must be asked of a workload with at most",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_with_one_sentence(case):
    action, words = CASES[case]
    with pytest.raises(Refused, match=words) as refusal:
        action()
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert "7777" not in sentence, "a confidential value was printed"
