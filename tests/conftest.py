"""One profile of hypothesis for all tests: repeatable, and without a clock (ball arithmetic takes what it takes).

Campaigns are slow wherever they stand: tests that count draws, and all but the first cases of tests over many.
"""

import gc
import os
from collections import Counter

import pytest
from hypothesis import settings

# Workers use all processors already: threads of linear algebra would wait for each other most of their time. Set before
# numpy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: Cases of one test from here on are left to the slow tier.
QUICK_CASES = 3

settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")
gc.disable()  # until everything is loaded


def pytest_collection_modifyitems(items):
    cases = Counter()
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        if item.path.parent.name == "statistical" or cases[test] > QUICK_CASES:
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Everything loaded by now stays until the end: it need not be searched for garbage again and again.

    Nor what is new, at every turn: compiling and parsing make many objects and leave few.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()


def pytest_unconfigure():
    gc.unfreeze()
