"""Programs of the project as modules: what stands in script/, examples/ and benchmarks/ is no package."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def program(path):
    """The module in this file, given from the project's root; loaded once per process."""
    name = Path(path).stem
    found = importlib.util.spec_from_file_location(name, ROOT / path)
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module
