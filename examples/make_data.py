"""Make the confidential records of the examples, always the same ones, beside their specs.

python examples/make_data.py             all of them
python examples/make_data.py city /tmp   one of them, into another folder
"""

import csv
import sys
from pathlib import Path

import duckdb
import numpy as np

HERE = Path(__file__).parent
TRIPS, RIDERS = 300_000, 80_000
PATIENTS = 1_200
PEOPLE, VILLAGERS = 150_000, 1_800
VISITS, ACCIDENTS = 600, 4_000
HOUSES = 800
FARMS, HOLDERS, FARES = 6_000, 4_500, 50_000


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def parquet(path: Path, columns: dict[str, np.ndarray]) -> None:
    with duckdb.connect() as engine:
        engine.register("made", columns)
        engine.execute(f"COPY (FROM made) TO '{str(path).replace(chr(39), chr(39) * 2)}' (FORMAT parquet)")


def city(folder: Path) -> Path:
    generator = np.random.default_rng(20260101)
    zones = np.array(column(HERE / "city" / "zones.csv", "zone"), dtype=object)
    popularity = generator.lognormal(0.0, 1.8, size=zones.size)
    place = generator.choice(zones.size, TRIPS, p=popularity / popularity.sum())
    rider = generator.integers(RIDERS, size=TRIPS)
    path = folder / "trips.parquet"
    parquet(path, {"zone": zones[place], "rider": rider, "fare": np.round(generator.gamma(3, 5, TRIPS), 2)})
    return path


def contingency(folder: Path) -> Path:
    generator = np.random.default_rng(20260102)
    path = folder / "patients.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["clinic", "treatment", "outcome"])
        for _ in range(PATIENTS):
            treatment = generator.choice(["old", "new"])
            chances = [0.3, 0.4, 0.3] if treatment == "old" else [0.5, 0.3, 0.2]
            clinic = generator.choice(["North", "East", "South", "West"], p=[0.4, 0.3, 0.2, 0.1])
            writer.writerow([clinic, treatment, generator.choice(["better", "same", "worse"], p=chances)])
    return path


def state(folder: Path) -> Path:
    generator = np.random.default_rng(20260103)
    counties = np.array(column(HERE / "state" / "counties.csv", "county"), dtype=object)
    size = generator.lognormal(0.0, 1.2, size=counties.size)
    ages = np.array(["child", "adult", "senior"], dtype=object)
    path = folder / "people.parquet"
    home = generator.choice(counties.size, PEOPLE, p=size / size.sum())
    parquet(path, {"county": counties[home], "age": ages[generator.choice(3, PEOPLE, p=[0.2, 0.6, 0.2])]})
    return path


def listed(path: Path, columns: dict[str, np.ndarray]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    return path


def crossed(folder: Path) -> Path:
    generator = np.random.default_rng(20260104)
    ward = generator.choice(["heart", "lungs", "bones", "eyes"], VISITS, p=[0.4, 0.3, 0.2, 0.1])
    return listed(folder / "visits.csv", {"ward": ward, "week": generator.integers(1, 7, VISITS)})


def shifts(folder: Path) -> Path:
    generator = np.random.default_rng(20260105)
    hour = (generator.normal(16, 5, ACCIDENTS) % 24).astype(int)
    return listed(folder / "accidents.csv", {"hour": hour})


def census(folder: Path) -> Path:
    generator = np.random.default_rng(20260106)
    blocks = np.array(column(HERE / "census" / "blocks.csv", "block"), dtype=object)
    size = generator.gamma(2.0, 1.0, size=blocks.size)
    age = generator.choice(["child", "adult", "senior"], VILLAGERS, p=[0.2, 0.58, 0.22])
    lives = np.where(
        age == "child", "family", generator.choice(["family", "alone", "home"], VILLAGERS, p=[0.7, 0.25, 0.05])
    )
    return listed(
        folder / "persons.csv",
        {
            "block": blocks[generator.choice(blocks.size, VILLAGERS, p=size / size.sum())],
            "sex": generator.choice(["female", "male"], VILLAGERS),
            "age": age,
            "lives": lives,
        },
    )


def households(folder: Path) -> Path:
    generator = np.random.default_rng(20260107)
    blocks = np.array(column(HERE / "households" / "blocks.csv", "block"), dtype=object)
    weight = generator.gamma(2.0, 1.0, size=blocks.size)
    rows: dict[str, list[str]] = {
        name: [] for name in ("household", "block", "sex", "age", "relation", "size", "tenure", "status")
    }
    for number in range(HOUSES):
        block = blocks[generator.choice(blocks.size, p=weight / weight.sum())]
        size = int(generator.choice(6, p=[0.36, 0.34, 0.14, 0.10, 0.04, 0.02])) + 1
        tenure = str(generator.choice(["owned", "rented"], p=[0.6, 0.4]))
        for place in range(size):
            relation = "householder" if place == 0 else "partner" if place == 1 else "child of the house"
            if place and generator.random() < 0.1:
                relation = "other"
            child = relation == "child of the house" and generator.random() < 0.8
            age = "child" if child else str(generator.choice(["adult", "senior"], p=[0.7, 0.3]))
            sex = str(generator.choice(["female", "male"]))
            made = (f"h{number}", block, sex, age, relation, str(size), tenure, "lived in")
            for name, value in zip(rows, made, strict=True):
                rows[name].append(value)
    for number in range(HOUSES // 10):  # vacant units: no table counts the person that their one row stands for
        block = blocks[generator.choice(blocks.size, p=weight / weight.sum())]
        made = (f"v{number}", block, "female", "adult", "householder", "0", "rented", "vacant")
        for name, value in zip(rows, made, strict=True):
            rows[name].append(value)
    return listed(folder / "persons.csv", {name: np.array(values) for name, values in rows.items()})


def farms(folder: Path) -> Path:
    generator = np.random.default_rng(20260108)
    districts = np.array(column(HERE / "farms" / "districts.csv", "district"), dtype=object)
    made = {
        "holder": np.array([f"h{number}" for number in generator.integers(HOLDERS, size=FARMS)]),
        "district": generator.choice(districts, FARMS),
        "type": generator.choice(["arable", "dairy", "mixed"], FARMS, p=[0.5, 0.2, 0.3]),
        "hectares": np.round(generator.gamma(1.5, 40, FARMS), 1),
    }
    return listed(folder / "farms.csv", made)


def fares(folder: Path) -> Path:
    generator = np.random.default_rng(20260109)
    payment = generator.choice(["card", "cash"], FARES, p=[0.8, 0.2])
    fare = np.round(generator.gamma(3, 5, FARES), 2)
    path = folder / "fares.parquet"
    parquet(
        path,
        {
            "payment": payment.astype(object),
            "time": generator.choice(np.array(["night", "morning", "afternoon", "evening"], dtype=object), FARES),
            "fare": fare,
            "tip": np.where(payment == "card", np.round(fare * generator.uniform(0, 0.3, FARES), 2), 0.0),
        },
    )
    return path


MAKERS = {
    "city": city,
    "contingency": contingency,
    "state": state,
    "crossed": crossed,
    "shifts": shifts,
    "census": census,
    "households": households,
    "farms": farms,
    "fares": fares,
}

if __name__ == "__main__":
    chosen = sys.argv[1:2] or list(MAKERS)
    for name in chosen:
        where = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / name
        print(f"made {MAKERS[name](where)}")
