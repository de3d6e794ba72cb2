"""Plans in tests measure their errors on fewer simulated tables; tests of these figures ask for all of them."""

import pytest

from holdfast.release.job import errors, sizes


@pytest.fixture(autouse=True)
def _fewer_tables(request, monkeypatch):
    if "every_table" in request.keywords:
        return
    for module, fewer in (
        (errors, {"TABLES": 200, "SOLVED_TABLES": 10, "AREA_TABLES": 4}),
        (sizes, {"TABLES": 20, "SOLVED_TABLES": 4}),
    ):
        for name, number in fewer.items():
            monkeypatch.setattr(module, name, number)
