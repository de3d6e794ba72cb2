"""The tables of the accuracy study: real counts on hierarchies, read from a folder that is given, and a made-up one."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

import holdfast as hf

#: The state whose block groups are released, by its code.
STATE = "17"
#: Puerto Rico is not part of the nation's table.
LEFT_OUT = "72"
#: How many digits of a code name a county, a tract, a block group.
GEOGRAPHY = {"county": 5, "tract": 11, "group": 12}


@dataclass(frozen=True)
class Case:
    """A hierarchy and its true counts, in the order of nodes."""

    name: str
    tree: hf.Hierarchy
    truth: npt.NDArray[np.int64]

    @classmethod
    def of(cls, name: str, domain: pl.DataFrame, counts: list[int]) -> "Case":
        """Make it from one row for each leaf; the last column names the leaf."""
        tree = hf.Hierarchy.from_frame(domain, levels=domain.columns, root=name)
        count = dict(zip(domain[:, -1], counts, strict=True))
        return cls(name, tree, tree.sum_up(np.array([count[leaf] for leaf in tree.names[tree.leaves]])))


def city(folder: Path) -> Case:
    """Yellow taxi trips of January 2022 by borough and zone."""
    frame = pl.read_csv(folder / "taxi_yellow_zone_counts.csv").filter(pl.col("zone_id") <= 263)
    zones = frame.select("borough", zone=pl.col("zone_id").cast(pl.String))
    return Case.of("city", zones, frame["jan2022_all"].to_list())


def state(folder: Path) -> Case:
    """People of one state in 2020 by county, tract and block group."""
    return _population(
        "state", folder / "us_blockgroups_2020.parquet", GEOGRAPHY, pl.col("geoid").str.starts_with(STATE)
    )


def nation(folder: Path) -> Case:
    """People of the United States in 2020 by state, county, tract and block group."""
    kept = ~pl.col("geoid").str.starts_with(LEFT_OUT)
    return _population("nation", folder / "us_blockgroups_2020.parquet", {"state": 2, **GEOGRAPHY}, kept)


def blocks(folder: Path) -> Case:
    """People of Rhode Island in 2010 by county, tract, block group and block."""
    kept = pl.col("geoid").str.starts_with("44")
    return _population("blocks", folder / "blocks_2010_RI_HI.parquet", {**GEOGRAPHY, "block": 15}, kept)


def made_up() -> Case:
    """A small table with many zeros, for trying the study out."""
    rng = np.random.default_rng(3)
    domain = pl.DataFrame({"part": [f"p{i // 5}" for i in range(20)], "place": [f"q{i}" for i in range(20)]})
    return Case.of("made-up", domain, np.where(rng.random(20) < 0.4, 0, rng.geometric(0.02, 20)).tolist())


def _population(name: str, file: Path, digits: dict[str, int], kept: pl.Expr) -> Case:
    frame = pl.read_parquet(file).filter(kept)
    codes = frame.select(**{level: pl.col("geoid").str.slice(0, count) for level, count in digits.items()})
    return Case.of(name, codes, frame["pop"].to_list())


#: How each table is read.
READERS = {"city": city, "state": state, "blocks": blocks, "nation": nation}
