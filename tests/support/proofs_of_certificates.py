"""Certificates of the examples and of random specs, each asked of Coq's kernel as it is and a millionth lower."""

import contextlib
import itertools
import json
import os
import random

import example_jobs
from holdfast.arguments import Refused
from holdfast.proving.prove import NotCovered, compiled, prove
from holdfast.release.certificate.certificate import FILE, seal_of
from holdfast.release.job.job import Job
from holdfast.release.run import release
from holdfast.release.spec.spec import read_spec

#: Seconds of a processor in which the kernel answers, once the theorems are compiled.
SECONDS = 5
#: How many examples there are.
EXAMPLES = len(list(example_jobs.EXAMPLES.glob("*/spec.yaml")))
#: The largest domain of random specs.
ZONES = 60


def random_spec(source):
    """A small spec of a hierarchy or a cube, with the columns of its public file and of its records."""
    much = source.choice((f"epsilon: {source.randint(1, 300) / 100}", f"rho: {source.randint(1, 300) / 100}"))
    replaced = source.random() < 0.5
    privacy = [much, *(["neighbours: replace-one"] if replaced else [])]
    if not replaced and much.startswith("epsilon") and source.random() < 0.3:
        privacy.append(f"unit: {{column: rider, max_records: {source.randint(1, 5)}}}")
    tree = source.random() < 0.6
    exact = source.choice([None, None, "city" if tree else "sex"])
    hold = [source.choice(["consistent", "nonnegative"]), *([f"{{exact: [{exact}]}}"] if exact else [])]
    method = source.choice(["given", "onto", "given-then-onto"])
    if method == "given" and "nonnegative" in hold:
        hold[0] = "consistent"
    measured = source.choice(["cube: [sex, age]", "margins: [[sex], [age]]", "margins: [[age], [sex, age]]"])
    if not tree and "margins" not in measured:
        hold = [rule for rule in hold if rule != "consistent"]
    if tree and "consistent" not in hold:
        hold.append("consistent")
    table = "hierarchy: [borough, zone], root: city" if tree else measured
    data = "domain: zones.csv" if tree else "values: {sex: [F, M], age: [child, adult, old]}"
    zones = "".join(f"b{k % source.randint(2, 6)},z{k}\n" for k in range(source.randint(2, ZONES)))
    return "borough,zone\n" + zones, (
        f"title: Random\ndata: {{source: records.csv, {data}}}\nprivacy: {{{', '.join(privacy)}}}\ntable: {{{table}}}\n"
        f"hold: [{', '.join(hold)}]\nmethod: {method}\naccept_disclosure: true\noutput: out\n"
    )


def certified(folder, count, seed):
    """Release so many cases from a number on: the examples first, then random specs, without those that are refused."""
    examples = example_jobs.specs_of_examples(folder) if seed < EXAMPLES else []
    for number in range(seed, seed + count):
        if number < EXAMPLES:
            yield examples[number].parent.name, example_jobs.make(Job.from_spec(read_spec(examples[number])))
            continue
        for other in itertools.count(number, 1_000_000):
            place = folder / f"random{other}"
            place.mkdir()
            zones, text = random_spec(random.Random(other))
            (place / "zones.csv").write_text(zones)
            (place / "records.csv").write_text("borough,zone,sex,age,rider\n" + f"{zones.split()[1]},F,old,a\n" * 3)
            (place / "spec.yaml").write_text(text)
            with contextlib.suppress(Refused):
                yield "random", release(Job.from_spec(read_spec(place / "spec.yaml")))
                break


def lowered(folder):
    """Lower what a certificate claims by a millionth, and renew its seal."""
    certificate = json.loads((folder / FILE).read_text(encoding="utf-8"))
    for number in ("rho", "epsilon"):
        value = certificate["statements"][0][number]
        if value is not None:
            certificate["statements"][0][number] = value * (1 - 1e-6)
    (folder / FILE).write_text(json.dumps(certificate | {"seal": seal_of(certificate)}), encoding="utf-8")


def processor():
    """Seconds of a processor that this process and those it waited for have taken."""
    return sum(os.times()[:4])


def proofs(folder, count, seed):
    """Yield what the kernel said of each, and what is wrong: too slow, not proved, or proved a millionth lower."""
    compiled()
    slowest = 0.0
    for name, release_folder in certified(folder, count, seed):
        begin = processor()
        try:
            proof = prove(release_folder)
        except NotCovered as refusal:
            yield str(refusal)[:120] + (f" ({name})" if name != "random" else ""), None
            continue
        slowest, took = max(slowest, processor() - begin), processor() - begin
        if proof.sentence.startswith("not proved"):  # records that change together may cost less than each alone
            yield "not proved, since the theorem bounds several records by each", None
            continue
        wrong = f"{name} {release_folder}: {proof.sentence}" if not proof.proved else None
        wrong = wrong or (f"{name} {release_folder}: {took:.1f} s" if took > SECONDS else None)
        if wrong is None:
            lowered(release_folder)
            less = prove(release_folder)
            wrong = f"{name} {release_folder}: a millionth less is {less.sentence}" if less.proved else None
        yield "proved, and not a millionth less", wrong
    print(f"  slowest: {slowest:.1f} s of a processor")
