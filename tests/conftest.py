"""One profile of hypothesis for all tests: repeatable, and without a clock (ball arithmetic takes what it takes).

Campaigns are slow wherever they stand: tests that count draws, and all but the first seeds of tests over many.
"""

import pytest
from hypothesis import settings

#: Seeds from here on are left to the slow tier.
QUICK_SEEDS = 20

settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")


def pytest_collection_modifyitems(items):
    for item in items:
        seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
        if item.path.parent.name == "statistical" or (isinstance(seed, int) and seed >= QUICK_SEEDS):
            item.add_marker(pytest.mark.slow)
