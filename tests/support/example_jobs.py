"""The examples as jobs, each in a folder of its own with its records, and how any job is made, by its agents too."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

from holdfast.mechanism.mechanism import Mechanism
from holdfast.release import agents as distributed
from holdfast.release.agents import read_secret, write_secret
from holdfast.release.job import errors, table
from holdfast.release.job.job import Job
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Records that are left of a Parquet file where few are asked for.
FEW = 2_000
#: In a process of its own: threads of the engine do not survive a fork.
CUT = """import sys, duckdb
duckdb.sql("COPY (FROM read_parquet('{}') LIMIT {}) TO '{}' (FORMAT parquet)".format(*[sys.argv[i] for i in (1, 3, 2)]))
"""


def specs_of_examples(folder, *, few=False):
    """Write every example with its records into a folder; return the specs."""
    return [_written(path, folder / path.parent.name, few) for path in sorted(EXAMPLES.glob("*/spec.yaml"))]


def _written(spec, place, few):
    shutil.copytree(spec.parent, place)
    if (place / "run.py").exists():  # agents, with a file of records each
        runpy.run_path(place / "run.py")["made_up_records"](place)
        write_secret(place / "secret")
        return place / spec.name
    made = EXAMPLES / "make_data.py"
    subprocess.run([sys.executable, made, spec.parent.name, place], check=True, capture_output=True)
    for path in place.glob("*.parquet") if few else ():
        whole = path.rename(place / "whole")
        subprocess.run([sys.executable, "-c", CUT, whole, path, str(FEW)], check=True)
        whole.unlink()
    return place / spec.name


def job_of(spec):
    """The job of a spec; what it tells of errors is simulated with few tables, since nobody looks at it here."""
    errors.TABLES = errors.SOLVED_TABLES = table.TABLES_BY_SIZE = table.SOLVED_BY_SIZE = 5
    errors.AREA_TABLES = 2
    return Job.from_spec(read_spec(spec))


def before_drawing(work):
    """Have some work done before anything is drawn from records, by a release or by an agent; not at a rehearsal."""
    for place, name in ((Mechanism, "release"), (distributed, "shared_noise")):
        setattr(place, name, _behind(work, getattr(place, name)))


def _behind(work, draw):
    def found(*given, **words):
        if "rng" not in words:
            work()
        return draw(*given, **words)

    return found


def make(job):
    """Release a job. Where it has agents each publishes its slice, which costs nothing where it has done so before."""
    if job.spec.distributed is None:
        return release(job)
    folder = job.spec.output.parent
    for name in job.tables[0].division.names:
        distributed.agent(job, name, read_secret(folder / "secret"), source=folder / f"visits-{name}.csv")
    return distributed.gather(job)
