"""Write docs/dependencies.md: every package of the users' lock with its licence. Needs the environment.

`script/licences.py --check` asks `pip-audit` about the lock where it is installed and the registry can be reached.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]


def licence_of(name: str) -> str:
    """The licence that a package states."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return "not installed here"
    stated = found.get("License-Expression")
    listed = [each.rsplit(" :: ", 1)[-1] for each in found.get_all("Classifier") or [] if each.startswith("License ::")]
    text = stated or ", ".join(listed) or (found.get("License") or "not stated").splitlines()[0]
    return text.replace("|", "/")[:80]


def page() -> str:
    """Return the page."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = {re.split(r"[<>=\[]", each)[0].lower() for each in project["dependencies"]}
    rows = []
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        name, _, version = line.partition("==")
        if version and not name.startswith("#"):
            why = "used by holdfast" if name.lower() in own else "needed by another one"
            rows.append(f"| {name} | {version.split()[0]} | {licence_of(name)} | {why} |")
    head = "# Dependencies\n\nMade by `script/licences.py` from `requirements.lock`.\n\n"
    return head + "| package | version | licence | why |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(
            subprocess.run(["pip-audit", "--strict", "-r", str(ROOT / "requirements.lock")], check=False).returncode
        )
    (ROOT / "docs" / "dependencies.md").write_text(page(), encoding="utf-8")
