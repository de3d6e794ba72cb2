"""The census of benchmarks/census.py through the command: planned, released, written and verified.

Run: .venv/bin/python benchmarks/census_release.py --data FOLDER [--blocks N] [--place FOLDER]
The blocks of Rhode Island with persons by the frequencies of the Adult table, as counted rows in a Parquet file; eleven
margins at each of six levels. Printed: processor seconds, seconds, most memory and bytes of `holdfast release`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from census import LEVELS, MARGINS, NAMES, RHO, SHAPE, frequencies


def write(data: Path, blocks: int, place: Path) -> None:
    """Write the spec, its domain and its records."""
    rng = np.random.default_rng(1)
    frame = pl.read_parquet(data / "blocks_2010_RI_HI.parquet").filter(pl.col("geoid").str.starts_with("44"))
    every = max(1, len(frame) // blocks)
    codes, persons = frame["geoid"].to_list()[::every][:blocks], frame["pop"].to_numpy()[::every][:blocks]
    levels = [level.replace(" ", "_") for level in LEVELS]
    ends = zip(levels[1:], (2, 5, 11, 12, 99), strict=True)
    pl.DataFrame({name: [code[:end] for code in codes] for name, end in ends}).write_parquet(place / "blocks.parquet")
    cells = rng.multinomial(persons, frequencies(data, rng))
    block, cell = np.nonzero(cells)
    values = {name: [f"{name}{i:02d}" for i in range(size)] for name, size in zip(NAMES, SHAPE, strict=True)}
    points = np.unravel_index(cell, SHAPE)
    columns = {name: np.array(values[name])[point] for name, point in zip(NAMES, points, strict=True)}
    counted = {"block": np.array(codes)[block], **columns, "persons": cells[block, cell]}
    pl.DataFrame(counted).write_parquet(place / "persons.parquet")
    margins = [[NAMES[axis] for axis in margin] or "total" for margin in MARGINS]
    spec = {
        "title": "A census of Rhode Island",
        "data": {"source": "persons.parquet", "count": "persons", "domain": "blocks.parquet", "values": values},
        "privacy": {"neighbours": "add-remove", "rho": RHO},
        "table": {
            "hierarchy": levels[1:],
            "root": levels[0],
            "cube": list(NAMES),
            "measure": dict.fromkeys(levels, margins),
            "shares": "best",
        },
        "hold": ["consistent", "nonnegative"],
        "output": {"folder": "out", "records": True},
        "ledger": "ledger.sqlite",
    }
    (place / "spec.yaml").write_text(json.dumps(spec))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--blocks", type=int, default=25_181)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--place", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.place) as folder:
        place = Path(folder)
        write(arguments.data, arguments.blocks, place)
        begin = time.perf_counter()
        command = Path(sys.executable).parent / "holdfast"
        subprocess.run([command, "release", place / "spec.yaml"], cwd=place, check=True)
        wall, used = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        size = sum(path.stat().st_size for path in (place / "out").rglob("*"))
        print(
            f"{used.ru_utime + used.ru_stime:.0f} s of processors, {wall:.0f} s, most memory "
            f"{used.ru_maxrss / 2**20:.2f} GiB, {size / 2**30:.1f} GiB written"
        )


if __name__ == "__main__":
    main()
