"""Three agents publish one release from three processes; one of them is killed and run again, and nothing changes.

Run it with the name of a folder that is to hold everything. The records are made up here, so that they may be printed.
"""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
COMMAND = [sys.executable, "-m", "holdfast.cli"]


def made_up_records(folder: Path) -> dict[str, Path]:
    """Write one file of visits per district, and return them."""
    with (HERE / "clinics.csv").open(newline="") as file:
        clinics = list(csv.DictReader(file))
    generator = np.random.default_rng(20260101)
    files = {}
    for district in dict.fromkeys(clinic["district"] for clinic in clinics):
        path = folder / f"visits-{district}.csv"
        own = [clinic["clinic"] for clinic in clinics if clinic["district"] == district]
        visits = np.repeat(own, generator.poisson(40, size=len(own)))
        path.write_text("\n".join(["clinic", *visits]) + "\n")
        files[district] = path
    return files


def agent(folder: Path, district: str, records: Path) -> subprocess.Popen[bytes]:
    """Start the process of one agent."""
    words = ["agent", "spec.yaml", "--name", district, "--source", str(records), "--secret", "secret", "--quiet"]
    return subprocess.Popen([*COMMAND, *words], cwd=folder)


def slices(folder: Path) -> dict[str, bytes]:
    """Every published byte."""
    return {str(path): path.read_bytes() for path in sorted(folder.glob("release.agents/*/*"))}


def main(folder: Path) -> None:
    """Make the release."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("spec.yaml", "clinics.csv"):
        shutil.copy(HERE / name, folder)
    records = made_up_records(folder)
    subprocess.run([*COMMAND, "secret", "secret"], cwd=folder, check=True)

    first, *others = records
    crashing = agent(folder, first, records[first])
    while crashing.poll() is None and not (folder / "ledger.sqlite").exists():
        time.sleep(0.01)
    os.kill(crashing.pid, signal.SIGKILL)  # at any moment after it began to charge the ledger
    crashing.wait()
    print(f"agent {first} was killed")

    running = [agent(folder, district, records[district]) for district in others]
    running.append(agent(folder, first, records[first]))
    if any(process.wait() for process in running):
        sys.exit("an agent failed")
    before = slices(folder)
    shutil.rmtree(folder / "release.agents" / f"agent-{first}")
    if agent(folder, first, records[first]).wait() or slices(folder) != before:
        sys.exit("a slice that is made again must not change")
    print(f"agent {first} was run again twice: the same bytes")

    subprocess.run([*COMMAND, "gather", "spec.yaml"], cwd=folder, check=True)
    print((folder / "release" / "table.csv").read_text())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("name the folder that is to hold everything")
    main(Path(sys.argv[1]))
