"""One profile of hypothesis for all tests: repeatable, and without a clock (ball arithmetic takes what it takes)."""

from hypothesis import settings

settings.register_profile("holdfast", deadline=None, derandomize=True)
settings.load_profile("holdfast")
