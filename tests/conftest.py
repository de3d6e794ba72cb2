"""One profile of hypothesis for all tests: repeatable, and without a clock (ball arithmetic takes what it takes).

Tests over many seeds are campaigns: the quick tier takes the first few.
"""

import pytest
from hypothesis import settings

#: Seeds from here on are left to the slow tier.
QUICK_SEEDS = 30

settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")


def pytest_collection_modifyitems(items):
    for item in items:
        seed = item.callspec.params.get("seed") if hasattr(item, "callspec") else None
        if isinstance(seed, int) and seed >= QUICK_SEEDS:
            item.add_marker(pytest.mark.slow)
