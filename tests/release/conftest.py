"""Plans and error bars in tests are measured on fewer simulated tables; tests of these figures ask for all of them."""

import pytest

from holdfast.mechanism.published import linear_estimates as linear
from holdfast.noise import spread
from holdfast.onto.ways import areas
from holdfast.release.job import errors, table

FEWER = (
    (errors, {"TABLES": 200, "SOLVED_TABLES": 10, "AREA_TABLES": 4}),
    (table, {"TABLES_BY_SIZE": 20, "SOLVED_BY_SIZE": 4}),
    *((module, {"STUDY": 2_000}) for module in (spread, areas, linear)),
)


ALL = [(module, name, getattr(module, name)) for module, fewer in FEWER for name in fewer]


@pytest.fixture(autouse=True, scope="module")
def _fewer_tables():
    with pytest.MonkeyPatch.context() as patch:
        for module, fewer in FEWER:
            for name, number in fewer.items():
                patch.setattr(module, name, number)
        yield


@pytest.fixture(autouse=True)
def _every_table(request, monkeypatch):
    if "every_table" in request.keywords:
        for module, name, number in ALL:
            monkeypatch.setattr(module, name, number)
