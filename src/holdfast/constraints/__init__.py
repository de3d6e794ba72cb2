"""What must hold: structural constraints, mandated figures, their null spaces and lattices."""

from holdfast.constraints.constraint import Constraint
from holdfast.constraints.possible.hidden import revealed
from holdfast.constraints.structural import (
    at_least,
    between,
    consistent,
    equals,
    fixed,
    invariant,
    nonnegative,
    ordered,
)
from holdfast.constraints.system.constraint_system import System
from holdfast.constraints.system.exact_figures import ExactMargins, ExactNodes, exact_margins, exact_nodes
from holdfast.constraints.system.null_space import NullSpace, TreeShape
from holdfast.constraints.system.parts import Bounds, Part
from holdfast.constraints.system.rows import Names, Rows

__all__ = [
    "Bounds",
    "Constraint",
    "ExactMargins",
    "ExactNodes",
    "Names",
    "NullSpace",
    "Part",
    "Rows",
    "System",
    "TreeShape",
    "at_least",
    "between",
    "consistent",
    "equals",
    "exact_margins",
    "exact_nodes",
    "fixed",
    "invariant",
    "nonnegative",
    "ordered",
    "revealed",
]
