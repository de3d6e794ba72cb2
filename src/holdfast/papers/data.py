"""The public data of the papers, read from a folder as their publishers write them, or made up in the same shape."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.arguments import Refused
from holdfast.arrays import Ints
from holdfast.domains import Hierarchy
from holdfast.papers.reproduction import Study

#: Zones in each borough of New York, as the TLC counts them: Bronx, Brooklyn, EWR, Manhattan, Queens, Staten Island.
ZONES = {"Bronx": 43, "Brooklyn": 61, "EWR": 1, "Manhattan": 69, "Queens": 69, "Staten Island": 20}
#: Trips of the month that the paper counts; those of the stored table lack the ones without a kind of payment.
PRINTED_TRIPS = 2_979_431
#: Counties of a state and its people, as Figures 1 and 2 print them.
STATES = {
    "Illinois": (102, 12_830_632),
    "Florida": (67, 18_801_310),
    "Indiana": (92, 6_483_802),
    "Michigan": (83, 9_883_640),
    "Missouri": (115, 5_988_927),
    "Montana": (56, 989_415),
    "Ohio": (88, 11_536_504),
    "Oregon": (36, 3_831_074),
    "Pennsylvania": (67, 12_702_379),
    "Texas": (254, 25_145_561),
    "Wisconsin": (72, 5_686_986),
}


@dataclass(frozen=True)
class City:
    """Trips by borough and zone: the hierarchy and its counts, in the order of nodes; where they are from."""

    tree: Hierarchy
    truth: Ints
    source: str


@dataclass(frozen=True)
class State:
    """People by county, and where the figures are from; `protected` are those of the Census Bureau's system."""

    name: str
    people: Ints
    source: str
    protected: Ints | None = None


def city(study: Study) -> City:
    """Yellow taxi trips of February 2022.

    Read from the TLC's `yellow_tripdata_2022-02.parquet` with its `taxi_zone_lookup.csv`, or from
    `taxi_yellow_zone_counts.csv`, a table of trips by zone.
    """
    folder = study.data
    if folder is not None and (folder / "yellow_tripdata_2022-02.parquet").exists():
        return _city(*_trips(folder), "yellow_tripdata_2022-02.parquet of the TLC")
    if folder is not None and (folder / "taxi_yellow_zone_counts.csv").exists():
        rows = [row for row in _rows(folder / "taxi_yellow_zone_counts.csv") if int(row["zone_id"]) <= 263]
        counts = {row["zone_id"]: int(row["feb2022_paygt0"]) for row in rows}
        boroughs = {row["zone_id"]: row["borough"] for row in rows}
        words = f"taxi_yellow_zone_counts.csv: {sum(counts.values()):,} trips of February 2022 with a kind of payment"
        return _city(boroughs, counts, f"{words}, of {PRINTED_TRIPS:,} that the paper counts")
    rng = study.generator()
    zones = [(f"{borough} {i}", borough) for borough, count in ZONES.items() for i in range(study.scaled(count))]
    sizes = np.exp(rng.normal(4.6, 2.9, len(zones)))
    counts = dict(zip([name for name, _ in zones], np.floor(sizes).astype(int).tolist(), strict=True))
    return _city(
        dict(zones), counts, f"made up: {len(zones)} zones in six boroughs with counts that vary as taxi trips do"
    )


def _trips(folder: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Boroughs and trips of all zones up to 263, counted by DuckDB from the records."""
    lookup = folder / "taxi_zone_lookup.csv"
    if not lookup.exists():
        raise Refused(f"the TLC's trips need its taxi_zone_lookup.csv beside them, and {str(folder)!r} has none")
    import duckdb

    with duckdb.connect() as database:
        found = database.execute(
            "SELECT PULocationID, count(*) FROM read_parquet(?) GROUP BY 1",
            [str(folder / "yellow_tripdata_2022-02.parquet")],
        ).fetchall()
    boroughs = {row["LocationID"]: row["Borough"] for row in _rows(lookup) if int(row["LocationID"]) <= 263}
    counts = {str(zone): int(trips) for zone, trips in found}
    return boroughs, {zone: counts.get(zone, 0) for zone in boroughs}


def _city(boroughs: dict[str, str], counts: dict[str, int], source: str) -> City:
    names = sorted(set(boroughs.values()))
    zones = sorted(boroughs, key=lambda zone: (names.index(boroughs[zone]), zone))
    parents = [-1] + [0] * len(names) + [1 + names.index(boroughs[zone]) for zone in zones]
    tree = Hierarchy.from_parents(parents)
    return City(tree, tree.sum_up(np.array([counts[zone] for zone in zones], dtype=np.int64)), source)


def counties(study: Study, names: tuple[str, ...] = tuple(STATES)) -> list[State]:
    """People of the counties of some states in 2010.

    Read from NHGIS's `nhgis_ppdd_*_county.csv` (with what the Census Bureau's system made of them), the Census Bureau's
    `CenPop2010_Mean_CO.txt`, or `us_counties_2010.csv`.
    """
    if study.data is not None:
        for reader in (_nhgis, _centers, _table):
            found = reader(study.data)
            if found:
                return [found[name] for name in names if name in found]
    rng = study.generator()
    made = []
    for name in names:
        count, people = STATES[name]
        shares = np.exp(rng.normal(0, 1.3, count))
        sizes = np.floor(people * shares / shares.sum()).astype(np.int64)
        sizes[-1] += people - sizes.sum()
        made.append(State(name, np.sort(sizes), "made up, with as many counties and people as the paper prints"))
    return made


def _nhgis(folder: Path) -> dict[str, State]:
    files = sorted(folder.glob("nhgis_ppdd_*_county.csv"))
    if not files:
        return {}
    numbers: dict[str, list[tuple[int, int]]] = {}
    for row in _rows(files[-1]):
        before = next(row[name] for name in ("H7V001_sf", "H72001_sf") if name in row)
        after = next(row[name] for name in ("H7V001_dp", "H72001_dp") if name in row)
        numbers.setdefault(_FIPS.get(row["gisjoin"][1:3], row["gisjoin"][1:3]), []).append((int(before), int(after)))
    return {name: _state(name, found, files[-1].name) for name, found in numbers.items()}


def _centers(folder: Path) -> dict[str, State]:
    path = folder / "CenPop2010_Mean_CO.txt"
    if not path.exists():
        return {}
    numbers: dict[str, list[tuple[int, int]]] = {}
    for row in _rows(path):
        numbers.setdefault(row["STNAME"], []).append((int(row["POPULATION"]), -1))
    return {name: _state(name, found, path.name) for name, found in numbers.items()}


def _table(folder: Path) -> dict[str, State]:
    path = folder / "us_counties_2010.csv"
    if not path.exists():
        return {}
    numbers: dict[str, list[tuple[int, int]]] = {}
    for row in _rows(path):
        numbers.setdefault(row["state"], []).append((int(row["pop2010"]), -1))
    return {name: _state(name, found, path.name) for name, found in numbers.items()}


def _state(name: str, found: list[tuple[int, int]], file: str) -> State:
    ordered = np.array(sorted(found), dtype=np.int64)
    return State(name, ordered[:, 0], file, ordered[:, 1] if (ordered[:, 1] >= 0).all() else None)


def demonstrated(study: Study) -> list[State]:
    """Areas with what the Census Bureau's system made of them in a demonstration; none where there are no data."""
    if study.data is None:
        return []
    found = list(_nhgis(study.data).values())
    path = study.data / "das_demo_2010_total_pop.csv"
    if path.exists():
        numbers: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for row in _rows(path):
            key = (row["state"], row["level"], row["vintage"])
            numbers.setdefault(key, []).append((int(row["pop_sf1"]), int(row["pop_dp"])))
        found += [_state(f"{a}, {b} ({c})", rows, path.name) for (a, b, c), rows in numbers.items()]
    return found


def cube(study: Study) -> tuple[Ints, str]:
    """A table of 14 × 24 × 20 counts, `taxi_14days_24h_20zones_jan2022.csv` or made up: the campus' is not public."""
    path = None if study.data is None else study.data / "taxi_14days_24h_20zones_jan2022.csv"
    if path is not None and path.exists():
        rows = list(_rows(path))
        days, zones = sorted({row["date"] for row in rows}), sorted({row["zone_id"] for row in rows})
        counts = np.zeros((len(days), 24, len(zones)), dtype=np.int64)
        for row in rows:
            counts[days.index(row["date"]), int(row["hour_of_day"]), zones.index(row["zone_id"])] = int(row["trips"])
        return counts, f"{path.name}: taxi trips of 14 days, 24 hours, 20 zones; the campus' table is not public"
    rng = study.generator()
    day = 1 + np.sin(np.linspace(-np.pi / 2, 3 * np.pi / 2, 24))[None, :, None]
    level = np.exp(rng.normal(1.5, 1, (14, 1, 20)))
    return rng.poisson(level * day), "made up: 14 groups, 24 hours, 20 buildings; the campus' table is not public"


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


#: States by their codes, for files that name them by code.
_FIPS = {
    "12": "Florida",
    "17": "Illinois",
    "18": "Indiana",
    "26": "Michigan",
    "29": "Missouri",
    "30": "Montana",
    "39": "Ohio",
    "41": "Oregon",
    "42": "Pennsylvania",
    "48": "Texas",
    "55": "Wisconsin",
}
