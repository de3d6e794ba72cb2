"""What must hold: structural constraints, mandated figures, their null spaces and lattices."""

from holdfast.constraints.constraint import Constraint
from holdfast.constraints.exact_figures import ExactMargins, ExactNodes, exact_margins, exact_nodes
from holdfast.constraints.hidden import revealed
from holdfast.constraints.invariants import invariant
from holdfast.constraints.null_space import NullSpace, TreeShape
from holdfast.constraints.parts import Bounds, Part
from holdfast.constraints.pinned import Disclosure, pinned
from holdfast.constraints.rows import Names, Rows
from holdfast.constraints.structural import at_least, between, consistent, equals, fixed, nonnegative, ordered
from holdfast.constraints.system import System

__all__ = [
    "Bounds",
    "Constraint",
    "Disclosure",
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
    "pinned",
    "revealed",
]
