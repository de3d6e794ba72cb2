"""HiGHS as everybody here uses it: silent, and one thread, since what runs side by side has threads of its own."""

from __future__ import annotations

from typing import Any

import highspy

#: The rule of presolve that merges parallel rows and columns: undoing it writes to the standard output, silent or not.
PARALLEL_RULE = 1 << 13


def quiet_solver(**options: Any) -> Any:
    """A new solver with these options."""
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    for name, value in {"output_flag": False, "threads": 1, "presolve_rule_off": PARALLEL_RULE, **options}.items():
        solver.setOptionValue(name, value)
    return solver
