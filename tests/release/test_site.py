"""A site of releases: their own pages as they were certified, an index, and nothing else; from what verifies alone."""

import json

import pytest
from typer.testing import CliRunner

import released
from holdfast.arguments import Refused
from holdfast.cli.command import app
from holdfast.release.certificate.certificate import read_certificate
from holdfast.release.report.page import site
from holdfast.release.run import release


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("sites")
    job = released.job(place / "one", more="ledger: {file: book.sqlite, budget: {epsilon: 4}}")
    named = ("title: Trips", 'title: "<script>a</script> & b"')
    return [release(job), release(released.job(place / "two", "several", named))]


def test_a_site_holds_pages_and_an_index(folders, tmp_path):
    found = CliRunner().invoke(app, ["site", *map(str, folders), "--output", str(tmp_path / "site"), "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == {"index": str(tmp_path / "site" / "index.html"), "releases": 2}
    pages = {f"{read_certificate(folder).release}.html": folder for folder in folders}
    assert {path.name for path in (tmp_path / "site").iterdir()} == {"index.html", *pages}
    for name, folder in pages.items():
        assert (tmp_path / "site" / name).read_bytes() == (folder / "report.html").read_bytes()
    index = (tmp_path / "site" / "index.html").read_text()
    assert "ε = 1 was spent so far per record; its budget is ε = 4, of which ε = 3 is left." in index
    assert index.count("figures (") == 3
    assert index.count("Cost: ε = 1.") == 2
    assert "checks passed" in index
    assert "<script" not in index
    assert "&lt;script&gt;a&lt;/script&gt; &amp; b" in index
    assert all(f'href="{name}"' in index for name in pages)


def test_what_does_not_verify_is_refused_and_nothing_is_written(folders, tmp_path):
    copied = tmp_path / "changed"
    copied.mkdir()
    for path in folders[0].iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    (copied / "table.csv").write_text("changed")
    with pytest.raises(Refused, match="is not as it was released"):
        site([folders[1], copied], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_folder_that_is_there_is_left_alone(folders, tmp_path):
    with pytest.raises(Refused, match="exists already: name a new folder"):
        site(folders, tmp_path)


def test_what_was_spent_is_that_of_the_last_release_of_a_day(tmp_path):
    """Whatever the order in which folders are named: their lines in the ledger tell which was last."""
    job = released.job(tmp_path, more="ledger: {file: book.sqlite, budget: {epsilon: 4}}")
    folders = [release(job, output=tmp_path / name) for name in ("first", "second")]
    for n, named in enumerate((folders, folders[::-1])):
        index = site(named, tmp_path / f"site{n}").read_text()
        assert "ε = 2 was spent so far per record" in index
        assert "ε = 1 was spent" not in index
