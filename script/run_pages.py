"""Run the code that stands in pages: README, docs and notebooks, block after block, and keep what each block shows.

A page has a namespace and an empty folder of its own. Its blocks, told by their language:

    python    runs; the last expression is shown as in a notebook, after what was printed
    yaml      is kept as the file that its first line names (`# spec.yaml`); a whole spec without a name must be valid
    console   `$ holdfast …` runs; a line that must fail ends with `# exit 3`
    sh        is for the reader's shell and does not run

`<!-- hidden … -->` holds Python that runs in its place and is not shown: made-up files, and the numbers of the text,
compared.
`<!-- needs: pyspark -->` names packages without which a page does not run. A notebook (.ipynb) is its cells.
Used by docs/conf.py, which prints below each block what it shows, and by the tests.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(
    r"^```(?P<kind>\w+)\n(?P<code>.*?)^```$|^<!-- hidden\n(?P<hidden>.*?)^-->\n", re.MULTILINE | re.DOTALL
)
NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)
#: Characters of a line that a command prints: what fits beside the contents of a page.
WIDTH = 90
NAMED = re.compile(r"# ([\w-]+\.yaml)\n")
WHOLE = re.compile(r"^data:.*^privacy:", re.MULTILINE | re.DOTALL)
RUN = ("python", "yaml", "console", "hidden")


@dataclass(frozen=True)
class Block:
    """One block of a page: its language, its text, and where in the page it ends."""

    kind: str
    code: str
    end: int


@dataclass(frozen=True)
class Shown:
    """What a block shows: what it printed, and its last value as HTML or as text."""

    printed: str = ""
    html: str = ""


def markdown_of(notebook: str) -> str:
    """A notebook as a page: cells of text as they are, cells of code as blocks of Python."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(notebook)["cells"]]
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in cells) + "\n"


def text_of(path: Path) -> str:
    """The text of a page or of a notebook, as Markdown."""
    text = path.read_text(encoding="utf-8")
    return markdown_of(text) if path.suffix == ".ipynb" else text


def blocks(text: str) -> list[Block]:
    """The blocks of a page that run, in order."""
    found = [
        Block(each["kind"] or "hidden", each["code"] or each["hidden"] or "", each.end())
        for each in FENCE.finditer(text)
    ]
    return [block for block in found if block.kind in RUN]


def needs(path: Path) -> list[str]:
    """The packages without which a page does not run."""
    return [name for line in NEEDS.findall(text_of(path)) for name in line.split()]


def run(text: str, name: str) -> list[Shown]:
    """Run a page in a folder and a namespace of its own, and return what each block shows."""
    names: dict[str, Any] = {"__name__": "page"}
    with tempfile.TemporaryDirectory(prefix="page-") as folder, contextlib.chdir(folder):
        return [_run_block(block, f"{name}, block {i}", names) for i, block in enumerate(blocks(text), 1)]


def with_results(text: str, shown: list[Shown]) -> str:
    """The page with what each block shows below it, as MyST reads it; what is hidden is left out."""
    parts, at = [], 0
    for block, result in zip(blocks(text), shown, strict=True):
        parts.append(text[at : block.end])
        at = block.end
        if result.printed.strip():
            kind = "shown columns" if block.kind == "console" or "│" in result.printed else "shown"
            parts.append(f"\n\n````{{code-block}} text\n:class: {kind}\n\n{result.printed.rstrip()}\n````\n")
        if result.html:
            parts.append(f'\n\n````{{raw}} html\n<div class="shown">{result.html}</div>\n````\n')
    page = "".join([*parts, text[at:]])
    return re.sub(r"^<!-- (hidden\n.*?^|needs: .*?)-->\n", "", page, flags=re.MULTILINE | re.DOTALL)


def keep_outputs(path: Path, shown: list[Shown]) -> None:
    """Write what the cells of a notebook showed into it."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, each) in enumerate(zip(cells, shown, strict=True), 1):
        words = each.printed.rstrip("\n")
        cell["execution_count"], cell["outputs"] = number, []
        if words:
            lines = f"{words}\n".splitlines(keepends=True)
            cell["outputs"].append({"output_type": "stream", "name": "stdout", "text": lines})
        if each.html:
            cell["outputs"].append(
                {
                    "output_type": "display_data",
                    "metadata": {},
                    "data": {"text/html": each.html.splitlines(keepends=True)},
                }
            )
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _run_block(block: Block, name: str, names: dict[str, Any]) -> Shown:
    if block.kind == "yaml":
        return _keep(block.code)
    if block.kind == "console":
        lines = block.code.splitlines()
        return Shown("".join(f"{line}\n" * (len(lines) > 1) + _command(line) for line in lines))
    tree = ast.parse(block.code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) and block.kind == "python" else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), names)
        value = eval(compile(ast.Expression(last.value), name, "eval"), names) if last is not None else None
    html = value._repr_html_() if hasattr(value, "_repr_html_") else ""
    silent = (
        value is None or html or ".write_" in block.code.splitlines()[-1]
    )  # how many bytes were written tells nothing
    words = "" if silent else f"{value!r}\n"
    return Shown(printed.getvalue() + words, html)


def _keep(code: str) -> Shown:
    from holdfast.release.spec.spec import read_spec

    named = NAMED.match(code)
    if named:
        Path(named[1]).write_text(code, encoding="utf-8")
    elif WHOLE.search(code):
        Path("shown.yaml").write_text(code, encoding="utf-8")
        read_spec(Path("shown.yaml"))
    return Shown()


def _command(line: str) -> str:
    from typer.testing import CliRunner

    from holdfast.cli import showing
    from holdfast.cli.command import app

    words, _, expected = line.removeprefix("$ ").partition("  # exit ")
    assert line.startswith("$ holdfast "), f"console blocks run `$ holdfast …` and nothing else: {line}"
    usual, showing.PIPED_WIDTH = showing.PIPED_WIDTH, WIDTH
    try:
        result = CliRunner().invoke(app, shlex.split(words)[1:])
    finally:
        showing.PIPED_WIDTH = usual
    assert result.exit_code == int(expected or 0), f"{line}\n{result.output}"
    return f"{(result.output if expected else result.stdout).replace(f'{Path.cwd()}{os.sep}', '')}\n"


def pages() -> Iterator[Path]:
    """Every page of README and docs, and every notebook, that holds code which runs."""
    return (path for path in [ROOT / "README.md", *of_site()] if blocks(text_of(path)))


def of_site(folder: Path = ROOT / "docs") -> list[Path]:
    """The pages and notebooks of the site in a folder and below it."""
    found = [path for path in folder.rglob("*") if path.suffix in (".md", ".ipynb")]
    return sorted(path for path in found if "_build" not in path.parts)


def toctree(index: Path) -> list[Path]:
    """The pages below an index (index.md): those of its folder and its subfolders' indexes, in the order of its links.

    What it does not link stands at the end, so that no page is missing from the site.
    """
    if index.name != "index.md":
        return []
    folder = index.parent
    heads = {path.parent for path in of_site(folder) if path.name == "index.md" and path != index}
    below = [
        path
        for path in of_site(folder)
        if path != index and not any(head in path.parents and path != head / "index.md" for head in heads)
    ]
    linked = [(folder / to.partition("#")[0]).resolve() for to in re.findall(r"\]\(([^)\s]+)\)", text_of(index))]
    return sorted(below, key=lambda path: linked.index(path) if path in linked else len(linked))


if __name__ == "__main__":
    import sys

    keeps = "--keep" in sys.argv  # what cells show is written into notebooks
    for chosen in [Path(name) for name in sys.argv[1:] if name != "--keep"] or list(pages()):
        before = os.times()
        shown = run(text_of(chosen), str(chosen))
        for each in shown:
            print(each.printed, end="")
        if keeps and chosen.suffix == ".ipynb":
            keep_outputs(chosen, shown)
        print(f"== {chosen}: {sum(os.times()[:2]) - sum(before[:2]):.1f} s of processor time")
