"""The verb `papers`: it lists, runs one item, writes the site, and refuses what it cannot do."""

import json

from typer.testing import CliRunner

from holdfast.cli.command import app
from holdfast.papers import ITEMS

RUN = CliRunner()


def called(*words):
    return RUN.invoke(app, ["papers", *words])


def test_items_are_listed():
    found = called()
    assert found.exit_code == 0
    assert all(item.name in found.output for item in ITEMS)
    listed = json.loads(called("list", "--json").output)
    assert [each["name"] for each in listed] == [item.name for item in ITEMS]


def test_one_item_is_run_and_written(tmp_path):
    found = called("refinement-grades", "--output", str(tmp_path / "site"))
    assert found.exit_code == 0
    assert "verdict: reproduced" in found.output
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="refinement-grades.html"' in index
    assert "1.667" in (tmp_path / "site" / "refinement-grades.html").read_text(encoding="utf-8")


def test_what_is_refused(tmp_path):
    for words, told in [
        (["nothing-of-the-kind"], "there is no item"),
        (["all"], "--output FOLDER"),
        (["refinement-grades", "--data", str(tmp_path / "none")], "folder of public data"),
    ]:
        found = called(*words)
        assert found.exit_code == 3
        assert told in found.output
