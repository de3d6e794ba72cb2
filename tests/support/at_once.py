"""Several processes that charge one ledger at the same time."""

import os
import traceback

from holdfast.release.ledger.accounts import Overspent

#: How a process ends whose charge met something else than a budget.
FAILED = 99


def charged_at_once(processes, times, charge):
    """Call charge(name) so many times in each of so many processes; return how many charges a budget admitted."""
    children = []
    for process in range(processes):
        child = os.fork()
        if child == 0:
            os._exit(_charged([f"{process}-{number}" for number in range(times)], charge))
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert all(0 <= end < FAILED for end in ends), ends
    return sum(ends)


def _charged(names, charge):
    done = 0
    for name in names:
        try:
            charge(name)
            done += 1
        except Overspent:
            continue
        except BaseException:
            traceback.print_exc()
            return FAILED
    return done
