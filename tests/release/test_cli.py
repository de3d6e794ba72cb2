"""The command: its verbs, its exit codes, and its manners."""

import json
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

import holdfast as hf
from holdfast.arguments import Refused, later
from holdfast.cli import showing, verbs
from holdfast.cli.command import app
from holdfast.cli.ending import Terminated
from holdfast.release import ends, run
from holdfast.release.ledger import store
from holdfast.release.ledger.ledger import Ledger
from jobs import ZONES
from scripts import program

SPEC = """\
title: Trips
data: {source: trips.csv, domain: zones.csv, name: trips}
privacy: {epsilon: 1}
table: {histogram: zone}
hold: [nonnegative]
method: onto
output: out
ledger: {file: book.sqlite, budget: {epsilon: 1.5}}
"""
PLACES = ["N1", "S1", "S1", "S3"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "spec.yaml").write_text(SPEC)
    pl.DataFrame({"zone": PLACES}).write_csv(tmp_path / "trips.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*words: str):
    return CliRunner().invoke(app, list(words))


def test_the_whole_way_from_a_spec_to_a_verified_release(folder):
    assert called("plan", "spec.yaml").exit_code == 0
    made = called("release", "spec.yaml")
    assert made.exit_code == 0, made.stderr
    assert str(folder / "out" / "report.html") in made.stdout
    assert called("verify", "out").exit_code == 0
    assert called("verify", "out", "--ledger", "book.sqlite").exit_code == 0
    assert called("ledger", "budget", "--file", "other.sqlite", "--dataset", "trips", "--epsilon", "1").exit_code == 0
    assert called("verify", "out", "--ledger", "other.sqlite").exit_code == 5
    listed = called("ledger", "list", "--file", "book.sqlite", "--json")
    assert [entry["dataset"] for entry in json.loads(listed.stdout)] == ["trips"]
    left = json.loads(called("ledger", "remaining", "--file", "book.sqlite", "--json").stdout)
    assert left[0]["remaining"]["epsilon"] == pytest.approx(0.5)
    unknown = called("ledger", "remaining", "--file", "book.sqlite", "--dataset", "trip")
    assert (unknown.exit_code, "nothing about 'trip'; the datasets that it knows: 'trips'" in unknown.stderr) == (
        0,
        True,
    )
    for words in (["list"], ["remaining"]):
        shown = called("ledger", *words, "--file", "book.sqlite")
        assert shown.exit_code == 0
        assert "trips" in shown.stdout


@pytest.mark.parametrize(
    "name",
    [
        "state",
        "shifts",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("city", "contingency", "crossed", "census", "households", "farms", "fares")
        ),
    ],
)
def test_the_examples_can_be_released(tmp_path, name):
    examples = Path(__file__).parents[2] / "examples"
    maker = program("examples/make_data.py")
    for file in {"spec.yaml", "zones.csv", "counties.csv", "blocks.csv", "districts.csv"} & {
        path.name for path in (examples / name).iterdir()
    }:
        shutil.copy(examples / name / file, tmp_path)
    maker.MAKERS[name](tmp_path)
    made = called("release", str(tmp_path / "spec.yaml"))
    assert made.exit_code == 0, made.stderr
    assert called("verify", str(tmp_path / "release")).exit_code == 0


def test_exit_codes(folder, monkeypatch):
    assert called("release", "nothing.yaml").exit_code == 3
    assert called("plan").exit_code == 2
    assert called("verify", ".").exit_code == 3
    assert called("schema", "certifcate").exit_code == 3
    assert called("release", "spec.yaml", "-q").exit_code == 0
    again = called("release", "spec.yaml")
    assert again.exit_code == 3
    assert "exists already" in again.stderr
    poor = called("release", "spec.yaml", "--output", "second")
    assert poor.exit_code == 4
    assert not (folder / "second").exists()
    table = folder / "out" / "table.csv"
    table.write_text(table.read_text().replace("N1", "N9"))
    assert called("verify", "out").exit_code == 5

    def broken(*_: object, **__: object) -> None:
        raise KeyError("secret")

    monkeypatch.setattr(run, "tabulate", broken)
    (folder / "book.sqlite").unlink()
    fault = called("release", "spec.yaml", "--output", "third")
    assert fault.exit_code == 1
    assert "secret" not in fault.stderr

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "tabulate", interrupted)
    stopped = called("release", "spec.yaml", "--output", "third")
    assert stopped.exit_code == 130
    assert "interrupted" in stopped.stderr
    assert not (folder / "third").exists()


def test_what_may_go_through_later_has_a_code_of_its_own(folder, monkeypatch):
    """A ledger that is being written, a database that is away; not after a charge, which would be made again."""
    text = SPEC.replace("source: trips.csv", "source: 'postgresql://127.0.0.1:1/trips', table: trips")
    (folder / "away.yaml").write_text(text)
    away = called("release", "away.yaml", "--json")
    assert away.exit_code == 8
    error = json.loads(away.stderr)["error"]
    assert (error["exit_code"], error["retry"], error["code"]) == (8, True, "HF-SPEC-DATA-SOURCE")
    assert "nothing was charged, drawn or published" in error["message"]
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    Ledger("book.sqlite").set_budget("trips", "record", epsilon=1.5)
    with Ledger("book.sqlite").writing():
        busy = called("release", "spec.yaml", "--json")
    assert busy.exit_code == 8, busy.stderr
    assert "being written by another release" in json.loads(busy.stderr)["error"]["message"]

    def gone(*_: object) -> None:
        raise later(Refused("the ledger went away"))

    with monkeypatch.context() as patched:
        patched.setattr(run, "finish", gone)
        charged = called("release", "spec.yaml", "--json")
    assert charged.exit_code == 3
    assert json.loads(charged.stderr)["error"]["retry"] is False
    assert "the ledger keeps the charge" in charged.stderr


def test_a_run_of_one_name_releases_once(folder, monkeypatch):
    (folder / "spec.yaml").write_text(SPEC.replace("budget: {epsilon: 1.5}", "budget: {epsilon: 5}"))
    name = ("release", "spec.yaml", "--json", "--id", "trips 2026-05")
    first = called(*name)
    assert first.exit_code == 0, first.stderr
    again = called(*name, "--output", "elsewhere")
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["folder"] == json.loads(first.stdout)["folder"] == str(folder / "out")
    assert json.loads(again.stdout)["already"]
    assert not (folder / "elsewhere").exists()
    assert len(Ledger("book.sqlite").entries()) == 1
    made = hf.job("spec.yaml").release(output="elsewhere", run_id="trips 2026-05")
    assert made.folder == folder / "out"
    with pytest.raises(Refused, match="text that is not empty"):
        hf.job("spec.yaml").release(output="elsewhere", run_id=" ")
    assert called(*name, "--dry-run").exit_code == 3
    text = (folder / "spec.yaml").read_text()
    (folder / "spec.yaml").write_text(text.replace("title: Trips", "title: Rides"))
    assert "released another spec" in called(*name).stderr
    (folder / "spec.yaml").write_text(text)

    def gone(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(run, "finish", gone)
        assert called("release", "spec.yaml", "--output", "june", "--id", "june").exit_code == 3
    in_vain = called("release", "spec.yaml", "--output", "june", "--id", "june")
    assert in_vain.exit_code == 3
    assert "did not publish: the ledger keeps the charge" in in_vain.stderr
    assert len(Ledger("book.sqlite").entries()) == 2
    june = Ledger("book.sqlite").entries()[-1]
    assert june.release == ends.identity_of("june")
    about = {"release": june.release, "title": june.title, "spec_hash": june.spec_hash, "when": june.when}
    with pytest.raises(Refused, match="append-only"):
        Ledger("book.sqlite").charge(june.dataset, june.unit, june.parts, **about)


def test_steps_are_lines_of_json_for_scripts(folder):
    made = called("release", "spec.yaml", "--progress", "--json")
    steps = [json.loads(line) for line in made.stderr.splitlines()]
    assert [each["step"] for each in steps if each["step"] in ("counting the records", "drawing the tables")] == [
        "counting the records",
        "drawing the tables",
    ]
    assert all(each.keys() == {"step", "percent", "seconds"} for each in steps)
    assert json.loads(made.stdout)["folder"] == str(folder / "out")


def test_a_scheduler_that_ends_a_release_is_told_what_was_charged(folder):
    (folder / "spec.yaml").write_text(SPEC.replace("budget: {epsilon: 1.5}", "budget: {epsilon: 5}"))
    words = [sys.executable, "-m", "holdfast.cli", "release", "spec.yaml", "--json", "--at-least", "600", "--progress"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as started:
        assert any("waiting until" in line for line in started.stderr)
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 143
        error = json.loads(started.stderr.read().splitlines()[-1])["error"]
    assert error["message"].startswith("terminated; the ledger keeps the charge")
    assert error["code"] == "HF-INTERRUPTED"
    assert (error["exit_code"], error["retry"]) == (143, False)
    assert not (folder / "out").exists()


def test_an_end_before_the_charge_says_that_nothing_happened(folder, monkeypatch):
    def ended(*_: object, **__: object) -> None:
        raise Terminated

    monkeypatch.setattr(verbs, "job_of", ended)
    stopped = called("release", "spec.yaml", "--json")
    assert stopped.exit_code == 143
    assert json.loads(stopped.stderr)["error"]["message"] == f"terminated; {ends.NOTHING}"


def test_init_leaves_nothing_where_the_source_cannot_be_read(folder):
    away = "postgresql://127.0.0.1:1/trips"
    assert called("init", "zones.csv", "--spec", "new.yaml", "--from", away, "--table", "trips").exit_code == 8
    assert not (folder / "new.yaml").exists()
    assert called("init", "zones.csv", "--spec", "new.yaml", "--from", "trips.csv").exit_code == 0
    assert "source: trips.csv" in (folder / "new.yaml").read_text()


def test_a_dry_run_charges_and_writes_nothing(folder):
    before = sorted(folder.iterdir())
    found = called("release", "spec.yaml", "--dry-run")
    assert found.exit_code == 0, found.stderr
    assert sorted(folder.iterdir()) == before
    assert called("release", "spec.yaml", "--dry-run", "--output", "zones.csv").exit_code == 3
    (folder / "spec.yaml").write_text(SPEC.replace("epsilon: 1.5", "epsilon: 0.5"))
    assert called("release", "spec.yaml", "--dry-run").exit_code == 4


def test_a_dry_run_opens_the_source_and_looks_for_its_columns(folder):
    """A file that is gone, one without a column, and a database that lets nobody in: none is called ready."""
    text = (folder / "trips.csv").read_text()
    (folder / "trips.csv").write_text(text.replace("zone", "place", 1))
    lacking = called("release", "spec.yaml", "--dry-run")
    assert (lacking.exit_code, "no column 'zone'" in lacking.stderr) == (3, True)
    (folder / "trips.csv").unlink()
    gone = called("release", "spec.yaml", "--dry-run")
    assert (gone.exit_code, "no file 'trips.csv'" in gone.stderr) == (3, True)
    elsewhere = SPEC.replace("source: trips.csv", "source: 'sqlite:///nowhere.sqlite', table: trips")
    (folder / "spec.yaml").write_text(elsewhere)
    shut = called("release", "spec.yaml", "--dry-run")
    assert shut.exit_code == 3, shut.stderr
    assert "nothing" not in shut.stdout


def test_scripts_get_json(folder):
    assert json.loads(called("plan", "spec.yaml", "--json").stdout)["title"] == "Trips"
    assert "What is given away" in json.loads(called("explain", "spec.yaml", "--json").stdout)
    assert json.loads(called("schema").stdout)["title"] == "holdfast spec"
    assert json.loads(called("schema", "certificate").stdout)
    assert json.loads(called("release", "spec.yaml", "--json").stdout)["folder"] == str(folder / "out")
    assert json.loads(called("verify", "out", "--json").stdout)["ok"] is True
    (folder / "spec.yaml").write_text(SPEC.replace("epsilon: 1}", "epsilom: 1}"))
    wrong = called("plan", "spec.yaml", "--json")
    assert wrong.stdout == ""
    error = json.loads(wrong.stderr)["error"]
    assert (error["line"], error["key"], error["nearest"]) == (3, "privacy.epsilom", "epsilon")
    assert error["exit_code"] == 3


def test_budgets_are_compared_in_one_table(folder):
    found = called("plan", "spec.yaml", "--epsilon", "0.5,1,2", "--json")
    assert found.exit_code == 0, found.stderr
    budgets = json.loads(found.stdout)["budgets"]
    assert [each["epsilon"] for each in budgets] == [0.5, 1, 2]
    errors = [each["tables"][0]["levels"][-1]["expected_absolute_error"] for each in budgets]
    assert errors[0] == pytest.approx(2 * errors[1], rel=0.2)
    assert errors[1] > errors[2]
    odds = [each["right_guesses_in_100"] for each in budgets]
    assert odds == [63, 74, 89]  # e^ε/(1 + e^ε)
    assert "nothing was spent" in json.loads(found.stdout)["spent"]
    shown = called("plan", "spec.yaml", "--epsilon", "0.5,1").stdout
    assert "epsilon 0.5" in shown
    assert "right guesses in 100" in shown
    for words, sentence in (
        (["--epsilon", "1,many"], "numbers with commas"),
        (["--epsilon", "0"], "above 0"),
        (["--rho", "1"], "use --epsilon in place of --rho"),
        (["--rho", "1", "--epsilon", "1"], "found both"),
    ):
        refused = called("plan", "spec.yaml", *words)
        assert refused.exit_code == 3
        assert sentence in refused.stderr


def test_a_folder_is_explained_from_its_files_alone(folder):
    assert called("release", "spec.yaml", "--quiet").exit_code == 0
    for name in ("spec.yaml", "trips.csv", "zones.csv"):
        (folder / name).unlink()
    found = json.loads(called("explain", "out", "--json").stdout)
    assert found["What this is"][-1].startswith("Every file is as certified")
    assert found["What the release promises"][0].startswith("ε = 1")
    assert any("off on average by" in words for words in found["How wrong the figures are"])
    (folder / "out" / "table.csv").write_text("nothing")
    broken = called("explain", "out", "--json")
    assert broken.exit_code == 5
    assert json.loads(broken.stdout)["NOT as certified"][0].startswith("files: table.csv is not the file")
    (folder / "out" / "certificate.json").write_text("{}")
    assert list(json.loads(called("explain", "out", "--json").stdout)) == ["NOT as certified"]


def test_quiet_says_nothing(folder):
    for words in (["plan", "spec.yaml"], ["explain", "spec.yaml"], ["release", "spec.yaml"], ["verify", "out"]):
        found = called(*words, "--quiet")
        assert (found.exit_code, found.stdout, found.stderr) == (0, "", "")


def test_init_writes_a_spec_that_can_be_planned(folder):
    assert called("init", "zones.csv", "--spec", "new.yaml", "--source", "trips.csv").exit_code == 0
    text = (folder / "new.yaml").read_text()
    assert "hierarchy: [borough, zone]" in text
    assert "#" in text
    assert called("plan", "new.yaml", "-q").exit_code == 0
    assert called("init", "zones.csv", "--spec", "new.yaml").exit_code == 3
    assert (folder / "new.yaml").read_text() == text
    (folder / "sexes.csv").write_text("sex,yes\nF,1\nM,1\nF,2\nM,2\n")
    assert called("init", "sexes.csv", "--spec", "cube.yaml").exit_code == 0
    assert "cube: [sex, 'yes']" in (folder / "cube.yaml").read_text()
    assert called("init", "missing.csv", "--spec", "x.yaml").exit_code == 3
    told = json.loads(called("init", "sexes.csv", "--spec", "z.yaml", "--source", "no.csv", "--json").stdout)
    assert told == {"spec": "z.yaml", "source": "no.csv", "source_found": False}
    assert called("schema", "--json").stdout == called("schema").stdout
    (folder / "counted.csv").write_text("sex,age,Freq\nF,old,3\nF,young,4\nM,old,0\nM,young,1\n")
    assert called("init", "counted.csv", "--spec", "counted.yaml", "--source", "counted.csv").exit_code == 0
    written = (folder / "counted.yaml").read_text()
    assert "count: Freq" in written
    assert "cube: [sex, age]" in written
    assert called("init", "counted.csv", "--spec", "y.yaml", "--source", "postgresql://me:s3cret@db/x").exit_code == 3
    assert not (folder / "y.yaml").exists()


def test_budgets_are_set_by_the_command(folder):
    assert called("ledger", "list", "--file", "none.sqlite").exit_code == 3
    assert called("ledger", "budget", "--file", "b.sqlite", "--dataset", "trips", "--epsilon", "much").exit_code == 3
    assert called("ledger", "budget", "--file", "b.sqlite", "--dataset", "trips", "--epsilon", "0.3").exit_code == 0
    rows = json.loads(called("ledger", "remaining", "--file", "b.sqlite", "--json").stdout)
    assert rows == [
        {
            "dataset": "trips",
            "unit": "record",
            "spent": None,
            "budget": {"epsilon": 0.3},
            "remaining": {"epsilon": pytest.approx(0.3)},
            "trouble": None,
            "beside": [],
        }
    ]


def commands(group, words=()):
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands(found, (*words, name))
        else:
            yield (*words, name), found


def test_every_verb_has_examples_that_parse():
    """An example of a verb or option that is gone is worse than none."""
    top = typer.main.get_command(app)
    known = dict(commands(top))
    for words, found in known.items():
        title, *lines = (found.epilog or "none").replace("\b", "").strip().split("\n")
        assert title == "Examples:", words
        for line in lines:
            called = shlex.split(line.split(" | ")[0].split(" > ")[0])
            assert called[0] == "holdfast", line
            verb = next(verb for verb in known if verb == tuple(called[1 : 1 + len(verb)]))
            known[verb].make_context(" ".join(verb), called[1 + len(verb) :])


@pytest.mark.parametrize(("typed", "found"), [("holdfast pl", "plan"), ("holdfast ledger rem", "remaining")])
def test_a_shell_completes_what_is_typed(typed, found):
    asked = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    result = CliRunner().invoke(app, [], prog_name="holdfast", env=asked)
    assert result.output.split() == [found]


def test_nothing_heavy_is_loaded_for_help():
    """Help answers at once: the engine, the models and the compiler are loaded by the verbs that need them."""
    code = (
        "import sys, holdfast.cli.command\n"
        "heavy = ('numba', 'scipy', 'numpy', 'duckdb', 'pydantic', 'sqlalchemy', 'jinja2')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
def test_what_only_reads_loads_nothing_that_draws(folder):
    """A guard of the time to start, without a clock: words, other formats and figures wait for no compiler.

    One process, least first: what a verb loads, every later one finds loaded.
    """
    assert called("release", "spec.yaml").exit_code == 0
    code = (
        "import sys\n"
        "from holdfast.cli.command import app\n"
        "def told(*heavy):\n"
        "    print('loaded', [name for name in heavy if name in sys.modules])\n"
        "draws = ('numba', 'scipy.stats', 'holdfast.given', 'holdfast.onto', 'holdfast.trees')\n"
        "for words in ('--help', 'ledger list --file book.sqlite', 'verify out', 'verify out --ledger book.sqlite'):\n"
        "    app(words.split(), standalone_mode=False)\n"
        "    told(*draws, 'scipy', 'highspy', 'narwhals', 'pandas', 'polars', 'pyarrow', 'jinja2', 'ruamel.yaml',\n"
        "         'holdfast.mechanism', 'holdfast.noise')\n"
        "for words in ('explain out', 'export out --as registry', 'export out --as croissant'):\n"
        "    app(words.split(), standalone_mode=False)\n"
        "    told(*draws, 'scipy.sparse')\n"
        "import holdfast as hf\n"
        "hf.load('out').values\n"
        "told(*draws[1:])\n"
        "import holdfast.release.run, holdfast.release.plan\n"  # nor does what draws load any statistics
        "told('scipy.stats', 'scipy.signal')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.count("loaded []") == 4 + 3 + 1 + 1, found.stdout[-300:]


@pytest.mark.slow
def test_piped_output_has_no_colours(folder):
    assert called("release", "spec.yaml").exit_code == 0
    command = [sys.executable, "-m", "holdfast.cli", "explain", "out"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Who is protected" in found.stdout
    assert "\x1b" not in found.stdout + found.stderr


def test_a_spec_that_is_written_elsewhere_still_finds_its_domain(folder):
    (folder / "below").mkdir()
    assert called("init", "zones.csv", "--spec", "below/new.yaml", "--source", "trips.csv").exit_code == 0
    assert "domain: '../zones.csv'" in (folder / "below" / "new.yaml").read_text()
    assert called("explain", "below/new.yaml").exit_code == 0


def test_faults_do_not_repeat_what_they_were_about(folder, monkeypatch):
    def broken(*_, **__):
        raise ValueError("secret")

    monkeypatch.setattr("holdfast.release.spec.spec.read_spec", broken)
    found = called("plan", "spec.yaml")
    assert found.exit_code == 1
    assert "a fault of holdfast (ValueError)" in found.stderr
    assert "secret" not in found.stderr


@pytest.mark.parametrize("text", ["[" * 600 + "]" * 600, "a: " + "{a: " * 600 + "1" + "}" * 600])
def test_a_file_that_is_nested_deeply_is_no_spec(folder, text):
    (folder / "deep.yaml").write_text(text)
    found = called("plan", "deep.yaml")
    assert found.exit_code == 3
    assert "nested" in found.stderr


def test_the_top_of_the_file_system_is_no_output(folder):
    found = called("release", "spec.yaml", "--dry-run", "--output", "/")
    assert found.exit_code == 3
    assert "name another output folder" in found.stderr


def test_a_title_is_one_line(folder):
    path = folder / "spec.yaml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("title")]
    path.write_text("\n".join(['title: "a\\e[31m"', *lines]))
    assert "control characters" in called("plan", "spec.yaml").stderr


def test_amounts_are_written_rounded_up_and_what_is_left_down():
    spent = {"epsilon": 2.0, "delta": 0.0, "rho": 0.92423431}
    assert showing.amount(spent) == "epsilon 2, rho 0.924235"
    assert showing._numbers({"rho": 0.92423481}, showing._down) == "rho 0.924234"


def test_words_that_tell_what_was_done_and_what_is_there(folder):
    assert "source: records.parquet is not there" in called("init", "zones.csv", "--spec", "new.yaml").stdout
    assert "is not there" not in called("init", "zones.csv", "--spec", "other.yaml", "--source", "trips.csv").stdout
    assert "since none is guessed" in called("plan", "spec.yaml").stdout.replace("\n", " ")
    assert called("release", "spec.yaml").exit_code == 0
    assert "wrote entry.json" in called("export", "out", "--as", "croissant", "-o", "entry.json").stderr
    table = (folder / "out" / "table.csv").read_text().splitlines()
    assert all("." not in line for line in table[1:])  # ends of intervals of counts are whole, and look it
    shown = called("verify", "out").stdout.replace("\n", " ")
    assert "none    signature: signed by nobody" in shown
    assert called("key", "sign").exit_code == 0
    refused = called("verify", "out", "--key", "sign")
    assert refused.exit_code == 3
    assert "is a private key, which signs: readers need its public part, in sign.pub" in refused.stderr


def test_a_plan_shows_the_shares_of_the_levels(folder):
    text = SPEC.replace("{histogram: zone}", "{hierarchy: [borough, zone], shares: {borough: 1, zone: 3}}")
    (folder / "shared.yaml").write_text(text.replace("[nonnegative]", "[consistent, nonnegative]"))
    found = called("plan", "shared.yaml")
    assert found.exit_code == 0, found.stderr
    shown = found.stdout.partition("Can somebody learn it?")[0]
    rows = {line.split()[0]: line.split() for line in shown.splitlines() if line.strip()}
    assert (rows["borough"][2], rows["zone"][2]) == ("0.25", "0.75")
