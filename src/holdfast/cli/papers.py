"""The verb `papers`: list, run and write down what the papers print."""

from __future__ import annotations

from pathlib import Path

from holdfast.arguments import Refused
from holdfast.cli import showing
from holdfast.progress import command


def papers(name: str, data: Path | None, output: Path | None, json: bool, quiet: bool) -> None:
    """List the items, or run one or all of them."""
    from holdfast.papers import ITEMS, Study, find, run
    from holdfast.papers.reproduction import columns

    if data is not None and not data.is_dir():
        raise Refused(f"--data must be a folder of public data, and {str(data)!r} is none")
    if name == "list":
        rows = [(item.name, item.paper.name, item.title) for item in ITEMS]
        if json:
            showing.data([dict(zip(("name", "paper", "title"), row, strict=True)) for row in rows])
        elif not quiet:
            showing.sentence("\n".join(columns(["name", "paper", "item"], rows)))
        return
    if name == "all" and output is None:
        raise Refused("all items make a site: say where with --output FOLDER, or name one of holdfast papers list")
    chosen = list(ITEMS) if name == "all" else [find(name)]
    study, found = Study(data), []
    with command(quiet=quiet or json) as step:
        for item in chosen:
            step(f"computing {item.name}")
            found.append(run(item, study))
    if output is not None:
        from holdfast.papers.site import write

        first = write(output, found, WITH if data is not None else WITHOUT)
    if json:
        showing.data([each.as_mapping() for each in found])
    elif not quiet:
        if name != "all":
            showing.sentence("\n".join(found[0].lines()))
        else:
            rows = [(each.name, each.verdict, f"{each.seconds:.1f}") for each in found]
            showing.sentence("\n".join(columns(["item", "verdict", "seconds"], rows)))
        if output is not None:
            showing.sentence(f"read {first}")


WITH = "Data were read from a folder of public files; each page says which."
WITHOUT = "No data were given: where an item needs data, it has made up some of the same shape, and says so."
