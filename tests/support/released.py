"""Small jobs for the tests of releases: a folder with a spec, its public domain and its confidential records."""

from pathlib import Path

from holdfast.release.job.job import Job
from holdfast.release.spec.spec import read_spec

ZONES = "borough,zone\nNorth,N1\nNorth,N2\nSouth,S1\nSouth,S2\nSouth,S3\n"
VALUES = "{sex: [F, M], age: [child, adult, old], state: [X, Y]}"
#: How often each record occurs: zone, borough, sex, age, state.
RECORDS = {
    ("N1", "North", "F", "child", "X"): 50,
    ("N2", "North", "M", "adult", "Y"): 3,
    ("S2", "South", "F", "old", "X"): 200,
    ("S3", "South", "M", "child", "Y"): 17,
}

SPECS = {
    "histogram": """
table: {histogram: age}
""",
    "hierarchy": """
table: {hierarchy: [borough, zone], root: city, categories: [sex]}
hold: [consistent, nonnegative, {exact: [city]}, {impossible: [{zone: S1}]}]
method: given
""",
    "moved": """
table: {hierarchy: [borough, zone], root: city}
hold: [consistent, nonnegative, {between: {high: 100000, at: [zone]}}]
method: onto
""",
    "margins": """
table: {cube: [sex, age, state], margins: [[sex, age], [age, state], []], numbers: real}
hold: [consistent]
method: onto
""",
    "contingency": """
table: {cube: [sex, age], numbers: real}
hold: [{exact: [[sex], [age]]}]
method: onto
""",
    "several": """
tables:
  - {name: sexes, histogram: sex}
  - {name: ages, histogram: age, share: 2, hold: [nonnegative], method: onto}
""",
}


def written(
    folder: Path, kind: str = "histogram", *, more: str = "", epsilon: str = "1.0", records=RECORDS, zones=None
) -> Path:
    """Write the files of a job and return the path of its spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zones.csv").write_text(
        ZONES if zones is None else "\n".join(["borough,zone", *map(",".join, zones)]) + "\n"
    )
    lines = [",".join(record) for record, times in records.items() for _ in range(times)]
    (folder / "trips.csv").write_text("\n".join(["zone,borough,sex,age,state", *lines]) + "\n")
    path = folder / "spec.yaml"
    path.write_text(
        f"title: Trips\ndata: {{source: trips.csv, domain: zones.csv, name: trips, values: {VALUES}}}\n"
        f"privacy: {{unit: record, neighbours: replace-one, epsilon: {epsilon}}}\noutput: out\n{SPECS[kind]}\n{more}\n"
    )
    return path


def job(folder: Path, kind: str = "histogram", *changes: tuple[str, str], **others) -> Job:
    """Write the files of a job, replace some texts of its spec and read it."""
    path = written(folder, kind, **others)
    for old, new in changes:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    return Job.from_spec(read_spec(path))
