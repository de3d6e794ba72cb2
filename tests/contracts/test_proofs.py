"""The theorems of proofs/ are checked by Coq where it is installed, and what is written about them is there."""

import re
import shutil
import subprocess

import pytest
import yaml

import example_jobs
from holdfast.release.job import errors, table
from holdfast.release.job.job import Job
from holdfast.release.spec.places import Places
from holdfast.release.spec.spec import checked
from scripts import ROOT, program

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: apt-get install coq")


def prove(*arguments, **options):
    return subprocess.run(
        [ROOT / "script" / "prove", *arguments], capture_output=True, text=True, check=False, **options
    )


@pytest.fixture(scope="module")
def generator():
    return program("script/reasons.py")


@needs_coq
@pytest.mark.slow
def test_coq_accepts_every_theorem():
    done = prove()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "assuming nothing but the axioms of the real numbers" in done.stdout


@needs_coq
@pytest.mark.parametrize(
    "text",
    [
        "Axiom a : False.\nTheorem t : False.\nProof. exact a. Qed.\n",
        "Variable a : False.\nTheorem t : False.\nProof. exact a. Qed.\n",
        "Theorem t : False.\nProof. Admitted.\n",
        "Theorem t : False.\nProof. exact I. Qed.\n",
    ],
)
def test_what_is_assumed_or_false_is_refused(tmp_path, text):
    (tmp_path / "A.v").write_text(text, encoding="utf-8")
    assert prove(tmp_path).returncode == 1


def test_a_machine_without_coq_is_told_how_to_install_it(tmp_path):
    (tmp_path / "bash").symlink_to(shutil.which("bash"))
    (tmp_path / "dirname").symlink_to(shutil.which("dirname"))
    done = prove(env={"PATH": str(tmp_path)})
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "apt-get install coq" in done.stderr


def test_the_page_has_every_theorem(generator):
    assert generator.PROOFS_PAGE.read_text(encoding="utf-8") == generator.proofs_page(), "run script/reasons.py"


def test_every_theorem_that_a_reason_or_a_page_names_is_proved(generator):
    listed = [name for reason in generator.reasons() for name in reason.theorems]
    assert len(set(listed)) > 12
    assert set(listed) <= set(generator.theorems())
    for page in (ROOT / "docs" / "theory").glob("*.md"):
        for name in re.findall(r"\[`(\w+)`\]\(proofs\.md\)", page.read_text(encoding="utf-8")):
            assert name in generator.theorems(), page.name


def test_words_that_stand_beside_theorems_are_of_one_reason(generator):
    """No entry is left of a reason that is no longer given."""
    sentences = [reason.sentence for reason in generator.reasons()]
    for words in generator.CHECKED:
        assert any(words in sentence for sentence in sentences), words


@pytest.mark.parametrize("path", sorted(example_jobs.EXAMPLES.glob("*/spec.yaml")), ids=lambda path: path.parent.name)
def test_every_reason_in_a_certificate_of_an_example_is_checked(path, generator, monkeypatch):
    for place, few in (*((errors, name) for name in ("TABLES", "SOLVED_TABLES")), (table, "TABLES_BY_SIZE")):
        monkeypatch.setattr(place, few, 5)
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    for asked in (values["table"], *values["table"].get("linked", {}).values()):
        if asked.get("shares") == "best":  # which takes seconds, and no reason depends on it
            del asked["shares"]
            asked.pop("minimise", None), asked.pop("weights", None)
    job = Job.from_spec(checked(values, Places(path)))
    for statement in [*job.guarantees, *(statement for each in job.tables for statement in each.statements)]:
        for sentence in re.split(r"; (?![^(]*\))", statement.because):
            known = any(words in sentence for words in generator.CHECKED)
            assert known or sentence == "ε is converted from ρ", sentence


def test_a_theorem_that_nobody_proved_is_told(generator, monkeypatch):
    monkeypatch.setattr(generator, "CHECKED", {"ε and δ add": ("fermat", "")})
    generator.reasons.cache_clear()
    try:
        with pytest.raises(SystemExit, match=r"no file of proofs/ has fermat"):
            generator.page()
    finally:
        generator.reasons.cache_clear()
