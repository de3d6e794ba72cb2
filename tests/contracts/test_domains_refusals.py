"""Bad trees, frames and cubes are refused with one sentence that names the argument."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from holdfast.arguments import Refused
from holdfast.domains import Cube, Hierarchy

FRAME = pl.DataFrame({"borough": ["x", "x", "y"], "zone": ["a", "b", "a"]})
TREE = Hierarchy.from_frame(FRAME, ["borough", "zone"], root="city")


def from_parents(*given, **more):
    return lambda: Hierarchy.from_parents(*given, **more)


def from_columns(levels=("borough", "zone"), root=None, frame=pl.DataFrame, **columns):
    return lambda: Hierarchy.from_frame(frame(columns), list(levels), root)


CASES = {
    "empty": (from_parents([]), "at least one parent"),
    "two dimensions": (from_parents([[-1, 0]]), "found shape"),
    "no root at all": (from_parents([1, 0]), "must not form a cycle, but node [01] is"),
    "cycle beside a tree": (from_parents([-1, 2, 3, 1, 3]), "node [123] is its own ancestor"),
    "own parent": (from_parents([-1, 1]), "as node 1 is"),
    "parent out of range": (from_parents([-1, 2]), "at most 1, but the parent of node 1"),
    "parent below −1": (from_parents([-1, -2]), "the parent of node 1 is less"),
    "fractional parent": (from_parents([-1, 0.5]), "position 1 is not whole"),
    "missing parent": (from_parents([-1, float("nan")]), "position 1 is not finite"),
    "text parents": (from_parents(["a"]), "parents must hold numbers"),
    "ragged parents": (from_parents([[-1], [0, 0]]), "parents must be an array"),
    "too few names": (from_parents([-1, 0], names=["a"]), "each of the 2 nodes, found 1"),
    "empty name": (from_parents([-1, 0], names=["a", " "]), "name of node 1"),
    "name not a text": (from_parents([-1, 0], names=["a", 3]), "name of node 1"),
    "equal siblings": (from_parents([-1, 0, 0], names=["a", "b", "b"]), "'a / b' occurs twice"),
    "equal roots": (from_parents([-1, -1], names=["a", "a"]), "'a' occurs twice"),
    "too few levels": (from_parents([-1, 0], levels=["a"]), "hierarchy's 2 depths, found 1"),
    "equal levels": (from_parents([-1, 0], levels=["a", "a"]), "different"),
    "empty level": (from_parents([-1, 0], levels=["a", ""]), "levels must be texts"),
    "duplicate path": (from_columns(borough=["x", "x"], zone=["a", "a"]), "'x / a' occurs twice"),
    "null": (from_columns(borough=["x", None], zone=["a", "b"]), "'borough' has none in row 1"),
    "pandas null": (
        from_columns(borough=["x", pd.NA], zone=["a", "b"], frame=pd.DataFrame),
        "'borough' has none in row 1",
    ),
    "not a number": (
        from_columns(borough=["x", "y"], zone=[1.0, np.nan], frame=pd.DataFrame),
        "'zone' has none in row 1",
    ),
    "empty text": (from_columns(borough=["x", "y"], zone=["a", " "]), "'zone' has none in row 1"),
    "fractions": (from_columns(borough=["x", "y"], zone=[0.5, 1.5]), "'zone' holds fractions"),
    "no rows": (from_columns(borough=[], zone=[]), "at least one row"),
    "unknown column": (lambda: Hierarchy.from_frame(FRAME, ["borough", "zona"]), "did you mean 'zone'"),
    "no levels": (lambda: Hierarchy.from_frame(FRAME, []), "levels must be a list"),
    "column twice": (lambda: Hierarchy.from_frame(FRAME, ["zone", "zone"]), "twice"),
    "empty root": (lambda: Hierarchy.from_frame(FRAME, ["borough"], root=""), "root must be a text"),
    "root like a level": (lambda: Hierarchy.from_frame(FRAME, ["zone"], root="zone"), "also a level"),
    "not a frame": (lambda: Hierarchy.from_frame([1, 2], ["zone"]), "found an object of type list"),
    "unknown level": (lambda: TREE.nodes_at("borugh"), "did you mean 'borough'"),
    "unknown depth": (lambda: TREE.nodes_at(3), "a depth up to 2"),
    "truth as depth": (lambda: TREE.nodes_at(True), "level must be"),
    "unknown path": (lambda: TREE.find("city", "x", "c"), "'c' is not below 'city / x'"),
    "unknown root": (lambda: TREE.find("citty"), "among the roots; did you mean 'city'"),
    "empty path": (TREE.find, "found none"),
    "path too long": (lambda: TREE.find("city", "y", "a", "a"), "'a' is not below 'city / y / a'"),
    "unknown node": (lambda: TREE.path(6), "between 0 and 5"),
    "negative node": (lambda: TREE.children_of(-1), "between 0 and 5"),
    "too few leaf values": (lambda: TREE.sum_up([1, 2]), r"shape \(3,\) or \(3, k\)"),
    "values in a cube": (lambda: TREE.sum_up(np.ones((3, 1, 1))), "leaf_values must have shape"),
    "missing leaf value": (lambda: TREE.sum_up([1, 2, np.nan]), "position 2 is not finite"),
    "sum beyond 2**62": (lambda: TREE.sum_up([2**61, 2**61, 0]), "unlike the one at node 1"),
    "negative sum beyond": (lambda: TREE.sum_up([-(2**61), 0, -(2**61)]), "unlike the one at node 0"),
    "value beyond 2**62": (lambda: TREE.sum_up([2**62, 0, 0]), "position 0"),
    "no axes": (lambda: Cube([]), "at least one axis"),
    "empty axis": (lambda: Cube((2, 0)), "shape must be at least 1"),
    "half an axis": (lambda: Cube((2, 1.5)), "shape must be a whole number"),
    "too many cells": (lambda: Cube((2**20, 2**21)), "at most 2"),
    "too few axis names": (lambda: Cube((2, 2), ["a"]), "one text for each of the 2 axes"),
    "equal axis names": (lambda: Cube((2, 2), ["a", "a"]), "different"),
}


@pytest.mark.parametrize("case", CASES)
def test_refused_with_one_sentence(case):
    action, words = CASES[case]
    with pytest.raises(Refused, match=words) as refusal:
        action()
    assert "\n" not in str(refusal.value)


def test_a_long_cycle_is_found_in_linear_time():
    n = 300_000
    parents = np.roll(np.arange(n), 1)
    with pytest.raises(Refused, match="its own ancestor"):
        Hierarchy.from_parents(parents)
