"""Write docs/dependencies.md: every package of the lock with its licence and why it is there; needs the environment.

`script/licences.py --check` asks `pip-audit` about the lock where it is installed and the registry can be reached.
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK, PAGE = ROOT / "requirements.lock", ROOT / "docs" / "dependencies.md"


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


def plain(wanted: str) -> str:
    """The name of a package in a requirement, as it is compared."""
    return re.split(r"[^\w.-]", wanted)[0].lower().replace("_", "-")


def reasons() -> dict[str, str]:
    """Why each package is there: what pyproject.toml says beside it, or which one asks for it."""
    text = (ROOT / "pyproject.toml").read_text()
    found = {plain(name): why for name, why in re.findall(r'^  "(.+>=.+)",  # (.+)$', text, re.MULTILINE)}
    found |= {"hatchling": "builds the package", "editables": "installs it from a checkout"}
    locked = {plain(line) for line in LOCK.read_text().splitlines()}
    for name in (waiting := list(found)):
        asked = {plain(each) for each in metadata.requires(name) or [] if "extra ==" not in each}
        more = sorted((asked & locked) - found.keys())
        found |= dict.fromkeys(more, f"needed by {name}")
        waiting += more
    return found


def page() -> str:
    """Return the page."""
    why, rows = reasons(), []
    for line in LOCK.read_text().splitlines():
        name, _, version = line.partition("==")
        if version and not name.startswith("#"):
            rows.append(f"| {name} | {version.split()[0]} | {licence_of(name)} | {why[plain(name)]} |")
    head = "# Dependencies\n\nMade by `script/licences.py` from `requirements.lock` and `pyproject.toml`.\n\n"
    return head + "| package | version | licence | why |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(subprocess.run(["pip-audit", "--strict", "-r", str(LOCK)], check=False).returncode)
    PAGE.write_text(page(), encoding="utf-8")
