"""Agents with slices of the records and one secret: bit for bit what one machine makes, and no trace of the secret."""

import json
import pickle
import shutil
import subprocess
import sys
import traceback
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import holdfast as hf
from holdfast.arguments import LARGEST, Refused
from holdfast.cli.command import app
from holdfast.exchange.formats import trust_model
from holdfast.noise import Independent, IntegerGaussian, IntegerLaplace
from holdfast.randomness import Keys
from holdfast.release import agents as distributed
from holdfast.release.agents import identity, noise_keys, read_secret, with_check
from holdfast.release.certificate.verify import verify
from holdfast.release.job.job import Job
from holdfast.release.job.slices import OUTSIDERS, Division, against_outsiders, joined, shared_noise
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.run import Run
from holdfast.release.spec.spec import read_spec
from holdfast.trees import Forest, Sampler
from holdfast.version import __version__
from jobs import ZONES

#: False alarms of one statistical test.
ALPHA = 1e-7
BYTES = bytes.fromhex("5ec2e7" * 10 + "5ec2")
SECRET = with_check(BYTES).hex()
TREE = hf.Hierarchy.from_parents([-1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4, 4])
COUNTS = hf.counts(TREE)
ADDS_UP = hf.consistent(TREE)
TOP = ADDS_UP & hf.invariant(hf.exact_nodes(TREE, [0]))
SOME = ADDS_UP & hf.invariant(hf.exact_nodes(TREE, [0, 1, 5]))
CELLS = hf.histogram(9)
TOTAL = hf.invariant(np.ones((1, 9), dtype=int))
TWICE = hf.counts(TREE, by=2)
CUBE = hf.margins((3, 3))
BY_NODES, BY_CELLS = {"a": [1], "b": [2, 3]}, {"x": [0, 1, 4], "y": [2, 3], "z": [5, 6, 7, 8]}

MECHANISMS = {
    "laplace": (hf.laplace(COUNTS, epsilon=1).given(ADDS_UP), BY_NODES),
    "laplace, exact top": (hf.laplace(COUNTS, epsilon=1).given(TOP), BY_NODES),
    "laplace, exact nodes": (hf.laplace(COUNTS, epsilon=1).given(SOME), BY_NODES),
    "gaussian, exact top": (hf.gaussian(COUNTS, rho=0.1).given(TOP), BY_NODES),
    "leaves as agents": (hf.laplace(COUNTS, epsilon=1).given(TOP), {str(v): [v] for v in TREE.leaves}),
    "one agent": (hf.laplace(COUNTS, epsilon=1).given(TOP), {"all": [0]}),
    "categories": (hf.laplace(TWICE, epsilon=1).given(hf.consistent(TWICE)), BY_NODES),
    "histogram, total": (hf.laplace(CELLS, epsilon=1).given(TOTAL), BY_CELLS),
    "histogram, gaussian": (hf.gaussian(CELLS, rho=0.1).given(TOTAL), BY_CELLS),
    "histogram, nothing": (hf.laplace(CELLS, epsilon=1), BY_CELLS),
    "two margins": (
        hf.gaussian(CUBE, rho=0.02).given(hf.invariant(hf.exact_margins((3, 3), [(0,), (1,)]))),
        {"x": [0, 3, 6], "y": [1, 4, 7, 2, 5, 8]},
    ),
}


def keys(number: int = 0) -> Keys:
    return Keys.of(b"%032d" % number)


def noise_of_agent(noise, division, keys, name):
    return noise.slice(keys, division.number(name), noise.head(keys))


def noise_of_all(noise, division, keys):
    head = noise.head(keys)
    return [noise.slice(keys, number, head) for number in range(len(division.names))]


# --- noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
def test_agents_make_bit_for_bit_what_one_machine_makes_and_it_obeys_what_must_hold(name):
    mechanism, parts = MECHANISMS[name]
    division = Division.of(mechanism.query, parts)
    noise = shared_noise(mechanism, division)
    together = noise_of_all(noise, division, keys())
    for agent in reversed(division.names):  # another order, and everything found again, as in another process
        again = shared_noise(pickle.loads(pickle.dumps(mechanism)), Division.of(mechanism.query, parts))
        apart = noise_of_agent(again, division, keys(), agent)
        assert apart.tobytes() == together[division.number(agent)].tobytes()
    whole = joined(mechanism.query, division, together)
    assert whole.dtype == np.int64
    assert whole.any()
    system = mechanism.source.system
    assert system is None or system.null_space().contains(whole)
    other = joined(mechanism.query, division, noise_of_all(noise, division, keys(1)))
    assert (other != whole).any()


@pytest.mark.parametrize("name", ["laplace, exact top", "histogram, total"])
def test_an_agent_reads_only_what_is_common_and_its_own(name):
    asked = []

    class Watched(Keys):
        def at(self, *path):
            asked.append(path)
            return super().at(*path)

    mechanism, parts = MECHANISMS[name]
    division = Division.of(mechanism.query, parts)
    for agent in division.names:
        asked.clear()
        noise_of_agent(shared_noise(mechanism, division), division, Watched(b"0" * 32), agent)
        assert set(asked) == {("head",), ("agent", agent)}


def conditional(weight, total, reach):
    """The law of the first of three leaves 3, 4 and (below a node) 5 + 6 = 2, given all their sum; listed."""
    found = {}
    for a, b, c in product(range(-reach, reach + 1), repeat=3):
        d = total - a - b - c
        found[a, c + d] = found.get((a, c + d), 0.0) + weight(a) * weight(b) * weight(c) * weight(d)
    everything = sum(found.values())
    return {place: value / everything for place, value in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "weight"),
    [
        (IntegerLaplace(Fraction(1)), lambda u: np.exp(-abs(u))),
        (IntegerGaussian(Fraction(1)), lambda u: np.exp(-u * u / 2)),
    ],
)
def test_noise_below_a_given_node_has_the_conditional_law(law, weight):
    forest = Forest(np.array([-1, 0, 0, 0, 3, 3]), np.zeros(6, dtype=bool))
    noise = Independent((law, None), np.array([1, 0, 0, 1, 0, 0], dtype=np.int32), 6)
    free, size, total = np.full(6, LARGEST), 20_000, 3
    given = np.array([total, 9, 9, 9, 9, 9])  # only the root's is read
    drawn = Sampler.of(forest, noise, -free, free, at_roots=given).draw(size, hf.seeded(1))
    assert (drawn[:, 0] == total).all()
    assert (drawn[:, 1:4].sum(axis=1) == total).all()
    assert (drawn[:, 4:].sum(axis=1) == drawn[:, 3]).all()

    def p_value(wanted):
        expected = {place: size * p for place, p in wanted.items() if size * p >= 10}
        pairs = list(zip(drawn[:, 1].tolist(), drawn[:, 3].tolist(), strict=True))
        counts = np.array([pairs.count(place) for place in expected])
        rest = size - sum(expected.values())
        return stats.chisquare([*counts, size - counts.sum()], [*expected.values(), rest]).pvalue

    assert p_value(conditional(weight, total, 14)) > ALPHA
    assert p_value(conditional(weight, total + 1, 14)) < ALPHA
    assert p_value(conditional(lambda u: weight(0.8 * u), total, 14)) < ALPHA


def test_the_statements_are_about_outsiders():
    mechanism, _ = MECHANISMS["laplace, exact top"]
    found = [against_outsiders(each) for each in mechanism.guarantees]
    assert [each.epsilon for each in found] == [each.epsilon for each in mechanism.guarantees]
    assert all(OUTSIDERS in each.caveats and "against an agent" in str(each) for each in found)


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [
        (hf.laplace(COUNTS, epsilon=1).given(ADDS_UP & hf.nonnegative()), "must not depend on the data"),
        (hf.laplace(COUNTS, epsilon=1).onto(ADDS_UP), "must not depend on the data"),
        (hf.laplace(COUNTS, epsilon=1), "what the slices add up to"),
        (hf.laplace(COUNTS, epsilon=1).given(hf.invariant(hf.exact_nodes(TREE, [0]))), "what the slices add up to"),
        (hf.gaussian(CELLS, rho=1, integer=False).given(hf.invariant([[1, 1, 0, 0, 0, 0, 0, 0, 0]])), "noise is real"),
        (hf.extend(CELLS, TOTAL, law="laplace", epsilon=1), "noise is real"),
        (hf.laplace(COUNTS, shares={0: 1, 1: 1, 2: 1, 3: 0}, epsilon=1).given(ADDS_UP), "every leaf is measured"),
    ],
)
def test_noise_that_agents_cannot_make_is_refused(mechanism, sentence):
    parts = BY_NODES if mechanism.query.tree is not None else BY_CELLS
    with pytest.raises(Refused, match=sentence):
        shared_noise(mechanism, Division.of(mechanism.query, parts))


@pytest.mark.parametrize(
    ("query", "parts", "sentence"),
    [
        (COUNTS, {}, "at least one agent"),
        (COUNTS, {"a": [1], "b": [2]}, "some leaf has no agent"),
        (COUNTS, {"a": [0], "b": [4]}, "below another agent's node"),
        (COUNTS, {"a": [1, 2, 3], "b": [3]}, "shares nodes"),
        (COUNTS, {" ": [0]}, "names that are not empty"),
        (CELLS, {"a": [0, 1], "b": []}, "cells of agent 'b' must be"),
        (hf.margins((2, 2), keep=[(0,)]), {"a": [0]}, "hold nodes of a hierarchy or cells"),
    ],
)
def test_a_division_must_give_everything_to_one_agent_each(query, parts, sentence):
    with pytest.raises(Refused, match=sentence):
        Division.of(query, parts)


# --- releases -------------------------------------------------------------------------------------------------------

SPEC = """\
title: Trips by agents
data: {source: trips.csv, domain: zones.csv, name: trips}
privacy: {neighbours: replace-one, epsilon: 1}
table: {hierarchy: [borough, zone], root: city}
hold: [consistent, {exact: [city]}]
method: given
distributed: {by: borough}
accept_disclosure: true
output: out
ledger: {file: book.sqlite, budget: {epsilon: 1.5}}
"""
RECORDS = {"North": "N1 N1 N1 N2", "South": "S1 S3 S3"}


def write_records(folder: Path, **records: str) -> None:
    for name, places in {**RECORDS, **records}.items():
        (folder / f"{name}.csv").write_text("zone\n" + "".join(f"{place}\n" for place in places.split()))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zones.csv").write_text(ZONES)
    (tmp_path / "spec.yaml").write_text(SPEC)
    write_records(tmp_path)
    (tmp_path / "secret").write_text(SECRET)
    (tmp_path / "secret").chmod(0o600)
    return tmp_path


@pytest.fixture
def job(folder):
    return Job.from_spec(read_spec(folder / "spec.yaml"))


@pytest.fixture
def secret(folder):
    return read_secret(folder / "secret")


def run(job, name, secret):
    return distributed.agent(job, name, secret, source=job.spec.path.parent / f"{name}.csv")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_agents_release_what_one_machine_would_and_the_ledger_is_charged_once(job, folder, secret):
    for name in ("South", "North"):
        assert run(job, name, secret) == folder / "out.agents" / f"agent-{name}"
    joint = distributed.gather(job)
    assert verify(joint, Ledger(folder / "book.sqlite")).ok
    found = hf.load(joint)
    table = job.tables[0]
    release = identity(secret, __version__, job.spec.hash, *sorted(job.public_files.values()))
    assert found.certificate.release == release
    assert trust_model(found.certificate)[0] == "Federated"
    noise = shared_noise(table.mechanism, table.division)
    one = joined(table.layout.query, table.division, noise_of_all(noise, table.division, noise_keys(secret, release)))
    truth = table.layout.query.answer(np.array([3, 1, 1, 0, 2]))
    assert found.values.tobytes() == (truth + one).tobytes()
    assert found.values[0] == 7  # the city's exact total, which no agent knew
    assert any("against an agent" in caveat for caveat in found.guarantee.caveats)
    assert len(Ledger(folder / "book.sqlite").entries()) == 1
    assert len(job.guarantees) == 1
    # The exact figures are kept once, however often the slices are joined.
    assert len(Ledger(folder / "book.sqlite").figures("trips")) == 1
    again = distributed.gather(job, output=folder / "again")
    assert (again / "table.csv").read_bytes() == (joint / "table.csv").read_bytes()
    assert len(Ledger(folder / "book.sqlite").figures("trips")) == 1


def test_slices_are_gathered_again_where_exact_figures_were_kept_meanwhile(job, folder, secret, monkeypatch):
    for name in RECORDS:
        run(job, name, secret)
    book, seal = Ledger(folder / "book.sqlite"), Run.seal

    def late(self, place, figures, since):
        monkeypatch.undo()
        other = {"release": "another", "certificate": "sha256:0", "folder": folder / "other", "when": self.when}
        assert book.seal(job.dataset, job.unit, **other, figures=figures)
        return seal(self, place, figures, since)

    monkeypatch.setattr(Run, "seal", late)
    with pytest.raises(Refused, match="another release of this dataset kept exact figures meanwhile: gather"):
        distributed.gather(job)
    assert not (folder / "out").exists()
    assert verify(distributed.gather(job), book).ok
    assert len(book.figures("trips")) == 2


def test_an_agent_that_crashed_makes_the_same_bytes(job, folder, secret, monkeypatch):
    run(job, "North", secret)
    run(job, "South", secret)
    before = contents(folder / "out.agents")
    charged = Ledger(folder / "book.sqlite").entries()
    shutil.rmtree(folder / "out.agents" / "agent-North")
    with monkeypatch.context() as patched:
        patched.setattr(distributed, "publish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(job, "North", secret)
    assert not (folder / "out.agents" / "agent-North").exists()
    run(job, "North", secret)
    assert contents(folder / "out.agents") == before
    run(job, "South", secret)  # one that did not crash, run again
    assert contents(folder / "out.agents") == before
    assert Ledger(folder / "book.sqlite").entries() == charged


def test_a_slice_is_not_made_again_with_other_noise(job, folder, secret, monkeypatch):
    shutil.rmtree(run(job, "North", secret))
    with monkeypatch.context() as patched:
        patched.setattr(distributed, "noise_keys", lambda keys, _: keys)
        with pytest.raises(Refused, match="with other noise"):
            run(job, "North", secret)
    with monkeypatch.context() as patched:
        patched.setattr(distributed, "__version__", "another")
        with pytest.raises(Refused, match="made another release"):
            run(job, "North", secret)
    assert not (folder / "out.agents" / "agent-North").exists()
    run(job, "North", secret)


def test_an_agent_that_cannot_write_says_what_was_charged(job, secret, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(distributed, "publish", full)
    with pytest.raises(Refused, match=r"No space left.*was charged, and running the agent again costs nothing"):
        run(job, "North", secret)


def test_a_secret_is_used_once(job, folder, secret):
    run(job, "North", secret)
    (folder / "spec.yaml").write_text(SPEC.replace("epsilon: 1}", "epsilon: 0.5}"))
    other = Job.from_spec(read_spec(folder / "spec.yaml"))
    with pytest.raises(Refused, match=r"made another release.*new one"):
        run(other, "North", secret)
    assert len(Ledger(folder / "book.sqlite").entries()) == 1
    write_records(folder, North="N1 N1 N1 N1")
    with pytest.raises(Refused, match="from other records before"):
        run(job, "North", secret)
    fresh = Keys.of(b"another secret, as long as needed")
    with pytest.raises(Refused, match="budget"):  # it is another release, and is charged for
        run(job, "North", fresh)


def test_slices_that_do_not_fit_are_refused(job, folder, secret):
    write_records(folder, South="S1 N1")
    with pytest.raises(Refused, match="does not belong to agent 'South'"):
        run(job, "South", secret)
    assert not (folder / "book.sqlite").exists()
    write_records(folder)
    with pytest.raises(Refused, match="agent must be one of"):
        distributed.agent(job, "West", secret, source=folder / "South.csv")
    run(job, "North", secret)
    with pytest.raises(Refused, match="slice of agent 'South' is missing"):
        distributed.gather(job)
    south = run(job, "South", secret)
    north = folder / "out.agents" / "agent-North"
    with pytest.raises(Refused, match="there twice"):
        distributed.gather(job, [north, north, south])
    with pytest.raises(Refused, match="was not charged for these slices"):
        distributed.gather(job, ledger=Ledger(folder / "other.sqlite"))
    sheet = json.loads((south / "slice.json").read_text())
    (south / "slice.json").write_text(json.dumps({**sheet, "values": sheet["values"][:-1]}))
    with pytest.raises(Refused, match="has not the rows of agent 'South'"):
        distributed.gather(job)
    with pytest.raises(Refused, match="holds something else"):
        run(job, "South", secret)
    (south / "slice.json").write_text(json.dumps({**sheet, "release": "0" * 32}))
    with pytest.raises(Refused, match="not made with one secret"):
        distributed.gather(job)
    (south / "slice.json").write_text(json.dumps({**sheet, "common": "0" * 64}))
    with pytest.raises(Refused, match="same common noise"):
        distributed.gather(job)
    for change in ({"spec_hash": "sha256:0"}, {"statements": []}, {"caveats": []}, {"domain_hash": ""}):
        (south / "slice.json").write_text(json.dumps({**sheet, **change}))
        with pytest.raises(Refused, match="another spec"):
            distributed.gather(job)
    for text in ("{}", json.dumps({**sheet, "release": [sheet["release"]]}), json.dumps({**sheet, "values": [2**62]})):
        (south / "slice.json").write_text(text)
        with pytest.raises(Refused, match="holds no slice"):
            distributed.gather(job)
    assert not (folder / "out").exists()


@pytest.mark.slow
def test_the_secret_stands_nowhere(folder, capfd):
    seen = b""
    commands = [
        ["agent", "spec.yaml", "--name", "North"],
        ["agent", "spec.yaml", "--name", "South"],
        ["agent", "spec.yaml", "--name", "West"],
        ["agent", "spec.yaml", "--name", "North", "--source", str(folder / "South.csv")],
    ]
    for words in commands:
        words[1] = str(folder / "spec.yaml")
        more = [] if "--source" in words else ["--source", str(folder / f"{words[3]}.csv")]
        made = CliRunner().invoke(app, [*words, *more, "--secret", str(folder / "secret")])
        seen += made.output.encode() + made.stderr.encode()
        if made.exception is not None:
            seen += "".join(traceback.format_exception(made.exception)).encode()
    gathered = CliRunner().invoke(app, ["gather", str(folder / "spec.yaml"), "--json"])
    assert gathered.exit_code == 0, gathered.output
    seen += gathered.output.encode()
    try:
        read_secret(folder / "secret").at(1.5)
    except Refused as refusal:
        seen += "".join(traceback.TracebackException.from_exception(refusal, capture_locals=True).format()).encode()
    out, err = capfd.readouterr()
    seen += out.encode() + err.encode()
    keys_of = read_secret(folder / "secret")
    seen += repr(keys_of).encode() + str(vars(type(keys_of))).encode()
    hidden = [BYTES.hex().encode(), BYTES, keys_of._secret, keys_of._secret.hex().encode()]
    (folder / "secret").unlink()
    for where, content in {**contents(folder), "messages": seen}.items():
        for each in hidden:
            assert each not in content, where
            assert each.upper() not in content, where
    assert b"'West'" in seen  # the messages were read at all
    assert keys_of.fingerprint.encode() in (folder / "book.sqlite").read_bytes()


def test_secrets_are_private(folder, monkeypatch):
    assert CliRunner().invoke(app, ["secret", str(folder / "new")]).exit_code == 0
    assert (folder / "new").stat().st_mode & 0o777 == 0o600
    read_secret(folder / "new")
    assert CliRunner().invoke(app, ["secret", str(folder / "new")]).exit_code == 3
    (folder / "new").chmod(0o640)
    with pytest.raises(Refused, match="others may read"):
        read_secret(folder / "new")
    monkeypatch.delenv("HOLDFAST_SECRET", raising=False)
    with pytest.raises(Refused, match="secret is missing"):
        read_secret(None)
    monkeypatch.setenv("HOLDFAST_SECRET", SECRET)
    assert read_secret(None).fingerprint == read_secret(folder / "secret").fingerprint
    mistyped = SECRET.replace("7", "8", 1)
    for text in ("not hexadecimal " + SECRET, SECRET[:20], mistyped, BYTES.hex(), "00" * 32, "00" * 36, SECRET + "00"):
        monkeypatch.setenv("HOLDFAST_SECRET", text)
        with pytest.raises(Refused, match="holds no secret") as caught:
            read_secret(None)
        shown = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
        # the variables of this test itself are shown, those of the library are not
        assert not [frame for frame in shown.stack[1:] if text in str(frame.locals)]
        assert text not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("consistent,", "consistent, nonnegative,", "agents cannot make this table"),
        ("consistent, ", "", "what the slices add up to"),
        ("method: given", "method: onto", "agents cannot make this table"),
        ("accept_disclosure: true\n", "", "accept_disclosure: true"),
        ("epsilon: 1}\ntable", "epsilon: 1, unit: {column: rider, max_records: 1}}\ntable", "several agents"),
        ("by: borough", "by: district", "no level 'district'"),
        ("by: borough", "agents: {one: [North]}", "some leaf has no agent"),
        ("by: borough", "", "found neither"),
    ],
)
def test_specs_that_agents_cannot_follow_are_refused(folder, old, new, sentence):
    (folder / "spec.yaml").write_text(SPEC.replace(old, new))
    with pytest.raises(Refused, match=sentence):
        Job.from_spec(read_spec(folder / "spec.yaml"))


@pytest.mark.slow
def test_sums_that_no_agent_can_test_are_refused(folder):
    spec = SPEC.replace("consistent,", "consistent, {equals: {sum: [North, South], value: 7}},")
    (folder / "spec.yaml").write_text(spec.replace("epsilon: 1}", "rho: 1}"))
    with pytest.raises(Refused, match="no agent can test equals"):
        Job.from_spec(read_spec(folder / "spec.yaml"))


def test_release_sends_to_the_agents(job):
    from holdfast.release.run import could_release

    with pytest.raises(Refused, match="run holdfast agent for each"):
        could_release(job)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_example_survives_a_crash(tmp_path):
    tests = Path(__file__).parents[1]
    script = tests.parent / "examples" / "distributed" / "run.py"
    command = [sys.executable, tests / "support" / "forked_example.py", script, tmp_path]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    assert "agent Coast was killed" in made.stdout
    assert "the same bytes" in made.stdout
    assert verify(tmp_path / "release", Ledger(tmp_path / "ledger.sqlite")).ok
    assert len(Ledger(tmp_path / "ledger.sqlite").entries()) == 1


def test_a_slice_that_was_edited_is_refused(job, folder, secret):
    run(job, "North", secret)
    south = run(job, "South", secret)
    sheet = json.loads((south / "slice.json").read_text())
    sheet["values"][0] += 1000
    (south / "slice.json").write_text(json.dumps(sheet))
    with pytest.raises(Refused, match="the slice of agent 'South' is not the one that it published"):
        distributed.gather(job)
    assert not (folder / "out").exists()
