"""Small specs with their public files, for the tests of the release room."""

from pathlib import Path

from holdfast.release.job.job import Job
from holdfast.release.spec.spec import read_spec

ZONES = "borough,zone\nNorth,N1\nNorth,N2\nSouth,S1\nSouth,S2\nSouth,S3\n"


def job(folder: Path, text: str, **files: str) -> Job:
    """Write a spec and its public files (name_csv="...") and build the job."""
    for name, content in {"zones_csv": ZONES, **files}.items():
        (folder / name.replace("_csv", ".csv")).write_text(content)
    path = folder / "spec.yaml"
    path.write_text(f"title: Test\noutput: out\n{text}")
    return Job.from_spec(read_spec(path))


def tree(data: str = "", privacy: str = "epsilon: 1", table: str = "", rest: str = "hold: [consistent]") -> str:
    """A hierarchy of two boroughs with five zones."""
    more = "".join(f", {part}" for part in (data,) if part)
    inner = "".join(f", {part}" for part in (table,) if part)
    return (
        f"data: {{source: trips.parquet, domain: zones.csv{more}}}\nprivacy: {{{privacy}}}\n"
        f"table: {{hierarchy: [borough, zone], root: city{inner}}}\n{rest}\n"
    )


def cube(data: str = "", privacy: str = "epsilon: 1", table: str = "", rest: str = "") -> str:
    """Two sexes, three ages."""
    more = "".join(f", {part}" for part in (data,) if part)
    inner = "".join(f", {part}" for part in (table,) if part)
    return (
        f"data: {{source: trips.parquet, values: {{sex: [F, M], age: [child, adult, old]}}{more}}}\n"
        f"privacy: {{{privacy}}}\ntable: {{cube: [sex, age]{inner}}}\n{rest}\n"
    )
