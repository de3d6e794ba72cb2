"""Certificates as theorems: what they claim is what the noise costs, and Coq proves it where it is installed."""

import json
import shutil
from fractions import Fraction

import pytest

from holdfast.arguments import Refused
from holdfast.proving.prove import claim, prove, written
from holdfast.release.certificate.certificate import FILE as CERTIFICATE
from holdfast.release.certificate.certificate import read_certificate, seal_of
from holdfast.release.run import release
from jobs import cube, job, tree

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="Coq is not installed: apt-get install coq")
RECORDS = "borough,zone,sex,age,rider\nNorth,N1,F,old,a\nSouth,S2,M,child,a\nSouth,S2,M,adult,b\n"
HISTOGRAM = "data: {source: trips.csv, values: {sex: [F, M]}}\nprivacy: {epsilon: 0.7}\ntable: {histogram: sex}\n"
MARGIN = "hold: [{exact: [sex]}]\nmethod: given\naccept_disclosure: true"
READ = "hold: [nonnegative, {exact: [sex]}]\nmethod: onto\naccept_disclosure: true"
ROOT = "hold: [consistent, {exact: [city]}]\nmethod: given\naccept_disclosure: true"
EXTENDED = "hold: [{exact: [total]}]\nmethod: extend-optimal\naccept_disclosure: true"
RIDER = "epsilon: 2, unit: {column: rider, max_records: 3}"
#: Certificates that theorems are about.
COVERED = {
    "histogram": HISTOGRAM,
    "shares": tree(table="shares: {city: 0.2, borough: 0.3, zone: 0.5}", rest="hold: [consistent]\nmethod: given"),
    "moved": tree(rest="hold: [consistent, nonnegative]\nmethod: given-then-onto"),
    "independent": tree(privacy="epsilon: 0.3, neighbours: replace-one", rest="hold: [consistent]\nmethod: onto"),
    "riders": tree(privacy=RIDER, rest="hold: [consistent]\nmethod: given"),
    "unmeasured root": tree(table="shares: {borough: 1, zone: 2}", rest="hold: [consistent]\nmethod: given"),
    "unmeasured, replaced": tree(
        privacy="epsilon: 1, neighbours: replace-one",
        table="shares: {city: 1, zone: 2}",
        rest="hold: [consistent, {exact: [borough]}]\nmethod: given\naccept_disclosure: true",
    ),
    "unmeasured, exact": tree(
        privacy="rho: 1, neighbours: replace-one",
        table="shares: {zone: 1}",
        rest="hold: [consistent, nonnegative, {exact: [city]}]\nmethod: onto\naccept_disclosure: true",
    ),
    "exact total": tree(privacy="epsilon: 1, neighbours: replace-one", rest=ROOT),
    "exact margin": cube(privacy="epsilon: 1, neighbours: replace-one", rest=MARGIN),
    "exact figures read": cube(privacy="epsilon: 1, neighbours: replace-one", rest=READ),
    "exact figures read, gaussian": cube(privacy="rho: 0.5, neighbours: replace-one, records: 1", rest=READ),
    "gaussian": tree(privacy="rho: 0.5, neighbours: replace-one", rest=ROOT),
    "gaussian riders": tree(
        privacy="rho: 0.5, unit: {column: rider, max_records: 3}", rest="hold: [consistent]\nmethod: onto"
    ),
    "margins": cube(table="margins: [[sex], [age]]", rest="hold: [consistent]\nmethod: onto"),
    "margins, replaced": cube(
        privacy="rho: 0.5, neighbours: replace-one",
        table="margins: [[sex], [sex, age]]",
        rest="hold: [consistent]\nmethod: onto",
    ),
    "areas, replaced": tree(
        data="values: {sex: [F, M]}",
        privacy="rho: 0.5, neighbours: replace-one",
        table="cube: [sex], measure: {city: [total], borough: all, zone: [total, all]}",
        rest="hold: [consistent, nonnegative]\nmethod: onto",
    ),
    "gaussian, independent": cube(privacy="rho: 0.25", rest="hold: [nonnegative]\nmethod: onto"),
}
#: Those that none is about, and a word of the sentence that says so.
BEYOND = {
    "price": (tree(rest="hold: [consistent, nonnegative]\nmethod: given"), "the price of bounds"),
    "margins": (
        cube(privacy="epsilon: 1, neighbours: replace-one", table="margins: [[sex], [age]]", rest=READ),
        "levels that",
    ),
    "real": (
        cube(privacy="rho: 1, neighbours: replace-one", table="numbers: real", rest=EXTENDED),
        "Gaussian noise on N",
    ),
}


def released(folder, text):
    (folder / "trips.csv").write_text(RECORDS)
    return release(job(folder, text.replace("trips.parquet", "trips.csv")))


def largest_cost(claimed):
    """The cost of the dearest change, by plain fractions."""
    power = 1 if claimed.law == "laplace" else 2
    if not claimed.columns:  # a record counts in one figure of each level
        moved = [rate * 2 * (figures > 1) if claimed.replaced else rate for figures, rate in claimed.levels]
        return Fraction(sum(moved), claimed.denominator) * claimed.records**power
    rates = [Fraction(claimed.levels[depth][1], claimed.denominator) for depth in claimed.depths]
    columns = [dict(column) for column in claimed.columns]
    changes = [{}, *columns] if not claimed.replaced else columns
    found = Fraction(0)
    for one in changes:
        for other in changes if claimed.replaced else [{}]:
            change = {row: one.get(row, 0) - other.get(row, 0) for row in one | other}
            if claimed.records == 1 and any(sum(e * change.get(row, 0) for row, e in line) for line in claimed.rows):
                assert claimed.sharing
                continue
            found = max(found, sum(rates[row] * abs(d) ** power for row, d in change.items()))
    return found * claimed.records**power


@pytest.mark.parametrize("name", COVERED)
def test_a_claim_is_what_the_noise_costs(tmp_path, name):
    claimed = claim(read_certificate(released(tmp_path, COVERED[name])))
    cost = largest_cost(claimed)
    assert cost <= claimed.bound <= cost * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("name", BEYOND)
def test_what_no_theorem_is_about_is_told(tmp_path, name):
    text, word = BEYOND[name]
    with pytest.raises(Refused, match=f"not covered: .*{word}"):
        prove(released(tmp_path, text))


@needs_coq
@pytest.mark.slow
@pytest.mark.parametrize("name", COVERED)
def test_the_kernel_proves_it_and_refutes_a_millionth_less(tmp_path, name):
    folder = released(tmp_path, COVERED[name])
    found = prove(folder)
    assert found.proved
    assert found.sentence.startswith("proved by the kernel")
    certificate = json.loads((folder / CERTIFICATE).read_text(encoding="utf-8"))
    number = "rho" if "rho" in certificate["asked"] else "epsilon"
    certificate["statements"][0][number] *= 1 - 1e-6
    (folder / CERTIFICATE).write_text(json.dumps(certificate | {"seal": seal_of(certificate)}), encoding="utf-8")
    less = prove(folder)
    assert not less.proved
    bound_alone = "margins" in name or "areas" in name or "records replaced, for data" in less.sentence
    assert less.sentence.startswith("not proved" if bound_alone else "refuted")


def test_a_folder_without_coq_is_told_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(Refused, match="apt-get install coq"):
        prove(released(tmp_path, HISTOGRAM))


def test_a_folder_that_is_no_release_is_refused(tmp_path):
    with pytest.raises(Refused):
        prove(tmp_path)


def test_what_the_kernel_is_asked_has_nothing_of_the_records(tmp_path):
    """The file is made from the certificate, so records that differ give one file."""
    texts = []
    for k in range(2):
        folder = tmp_path / str(k)
        folder.mkdir()
        (folder / "trips.csv").write_text(RECORDS if k else RECORDS + RECORDS.partition("\n")[2])
        made = release(job(folder, COVERED["moved"].replace("trips.parquet", "trips.csv")))
        texts.append(written(claim(read_certificate(made)), "one"))
        assert "trips" not in json.dumps(texts[-1])
    assert texts[0] == texts[1]
