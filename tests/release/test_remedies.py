"""Advice that is followed: what a refusal says to write makes a spec that can be planned, and records that are read."""

import pytest

from holdfast.arguments import Refused
from holdfast.release.run import release
from jobs import cube, job, tree

EXACT = "hold: [{exact: total}]\nmethod: "
REPLACED = "epsilon: 1, neighbours: replace-one"
PERSONS = "epsilon: 1, unit: {column: rider"
CROSSED = "hold: [nonnegative, {exact: [sex, age]}]\nmethod: "
#: A spec that is refused, words of the advice, and every spec that follows it.
SPECS = {
    "sums that nothing holds": (
        tree(rest="hold: [{exact: [city]}]\nmethod: topdown"),
        "it needs consistent, bounds, fixed or exact nodes and no other rows",
        [tree(rest=f"hold: [{hold}]\nmethod: {way}") for hold, way in (
            ("consistent, {exact: [city]}", "topdown"), ("{exact: [city]}", "auto"))],
    ),
    "k-norm noise without ε": (
        cube("", "rho: 1", rest=f"{EXACT}extend-k-norm"),
        "write noise: laplace under privacy, or use extend-optimal or extend-gaussian or extend-correlated",
        [cube("", "rho: 1", rest=f"{EXACT}extend-{law}") for law in ("optimal", "gaussian", "correlated")]
        + [cube("", "epsilon: 1, noise: laplace", rest=f"{EXACT}extend-k-norm")],
    ),
    "k-norm noise beside several exact figures": (
        cube("", "epsilon: 1", "numbers: real", rest="hold: [{exact: [sex, age]}]\nmethod: extend-k-norm"),
        "use extend-laplace",
        [cube("", "epsilon: 1", "numbers: real", rest="hold: [{exact: [sex, age]}]\nmethod: extend-laplace")],
    ),
    "bounds with a method for equalities": (
        cube("", "rho: 1", "numbers: real", rest="hold: [nonnegative, {exact: total}]\nmethod: extend-optimal"),
        "leave those out, or use given, onto or given-then-onto",
        [cube("", "rho: 1", "numbers: real", rest=f"hold: [{hold}{{exact: total}}]\nmethod: {way}") for hold, way in (
            ("", "extend-optimal"), ("nonnegative, ", "onto"), ("nonnegative, ", "given-then-onto"))],
    ),
    "continuous Laplace noise in crossed sums": (
        cube("", "epsilon: 1", "numbers: real", rest=f"{CROSSED}given"),
        "use onto(...), other noise or fewer constraints",
        [cube("", "epsilon: 1", "numbers: real", rest=f"{CROSSED}onto")],
    ),
    "values that are not whole": (
        cube("", "epsilon: 1", rest=f"{EXACT}project"),
        "write numbers: real in the table, or use given",
        [cube("", "epsilon: 1", "numbers: real", f"{EXACT}project"), cube("", "epsilon: 1", rest=f"{EXACT}given")],
    ),
    "shares of nothing": (
        tree(table="shares: {borough: 0, zone: 0}"),
        "give one level or margin more",
        [tree(table="shares: {borough: 0, zone: 1}")],
    ),
    "records that are dropped and replaced": (
        tree("outside: drop", REPLACED),
        "use refuse or {category: NAME} here, or neighbours: add-remove",
        [tree("outside: refuse", REPLACED), tree("outside: {category: S3}", REPLACED), tree("outside: drop")],
    ),
    "a name for no column": (
        tree("columns: {zon: PULocationID}"), "did you mean 'zone'?", [tree("columns: {zone: PULocationID}")]
    ),
    "records or counts": (
        tree("count: n, rows_are_records: true"),
        "rows are records or have a count",
        [tree("count: n"), tree("rows_are_records: true")],
    ),
    "persons in counts": (
        tree("count: n", f"{PERSONS}, max_records: 3}}"),
        "use unit: record, or one row per record",
        [tree("count: n", "epsilon: 1, unit: record"), tree("", f"{PERSONS}, max_records: 3}}")],
    ),
    "persons without a limit": (
        tree("", f"{PERSONS}}}"),
        "how many records of a person are kept, max_records, or in how many cells, max_groups",
        [tree("", f"{PERSONS}, {key}: 3}}") for key in ("max_records", "max_groups")],
    ),
    "constraints that cannot hold": (
        tree(rest="hold: [consistent, {between: {low: 5, at: [N1]}}, {impossible: [N1]}]"),
        "impossible: 'city / North / N1'; at least 5 at 'city / North / N1'",
        [tree(rest=f"hold: [consistent, {hold}]") for hold in ("{impossible: [N1]}", "{between: {low: 5, at: [N1]}}")],
    ),
    "two budgets": (
        tree(privacy="epsilon: 1, rho: 1"),
        "say how much by epsilon (perhaps with delta) or by rho",
        [tree(privacy=each) for each in ("epsilon: 1", "epsilon: 1, delta: 1e-6", "rho: 1")],
    ),
    "Gaussian noise without δ": (
        tree(privacy="epsilon: 1, noise: gaussian"),
        "gaussian noise needs delta beside epsilon, or rho",
        [tree(privacy=f"{each}, noise: gaussian") for each in ("epsilon: 1, delta: 1e-6", "rho: 1")],
    ),
    "Laplace noise by ρ": (
        tree(privacy="rho: 1, noise: laplace"),
        "rho is met by gaussian noise; laplace noise is measured by epsilon",
        [tree(privacy="rho: 1, noise: gaussian"), tree(privacy="epsilon: 1, noise: laplace")],
    ),
    "a scope that nothing has": (
        cube("", "epsilon: 1, scope: subspace", rest=f"{EXACT}given"),
        "privacy.scope can be invariant-sharing",
        [cube("", "epsilon: 1, scope: invariant-sharing", rest=f"{EXACT}given")],
    ),
    "nothing left to protect": (
        tree(rest="hold: [consistent, {exact: [zone]}]"),
        "ask for less of it",
        [tree(rest="hold: [consistent, {exact: [borough]}]")],
    ),
    "an exact level that there is not": (
        tree(rest="hold: [consistent, {exact: [county]}]"),
        "did you mean 'city'?",
        [tree(rest="hold: [consistent, {exact: [city]}]")],
    ),
    "a misspelt rule": (tree(rest="hold: [consistant]"), "did you mean 'consistent'?", [tree()]),
    "values that are not public": (
        "data: {source: t.csv}\nprivacy: {epsilon: 1}\ntable: {histogram: zone}\n",
        "list them under data.values, or name a data.domain file",
        [
            f"data: {{source: t.csv, {known}}}\nprivacy: {{epsilon: 1}}\ntable: {{histogram: zone}}\n"
            for known in ("values: {zone: [N1, N2]}", "domain: zones.csv")
        ],
    ),
    "a password": (
        tree().replace("trips.parquet", "postgresql://me:secret@localhost/x"),
        "write source: {env: NAME} or {file: NAME}, and the address there",
        [tree().replace("trips.parquet", f"{{{key}: HERE}}") for key in ("env", "file")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SPECS)
def test_a_spec_that_follows_the_advice_can_be_planned(tmp_path, case):
    refused, advice, follows = SPECS[case]
    with pytest.raises(Refused) as caught:
        job(tmp_path, refused)
    assert advice in str(caught.value)
    for text in follows:
        assert job(tmp_path, text).tables


def counted(data=""):
    return tree(data).replace("trips.parquet", "counts.csv")


def by_sex(category):
    text = counted(f"values: {{sex: [F, M, unknown]}}, nulls: {{category: {category}}}")
    return text.replace("root", "categories: [sex], root")


#: What the records look like, the spec that is refused, words of the advice, and every spec that follows it.
RECORDS = {
    "another name": (
        "borough,place\nNorth,N1\n",
        counted("columns: {zone: plce}"),
        "write zone: place in columns under data",
        [counted("columns: {zone: place}")],
    ),
    "no name": (
        "borough,somewhere\nNorth,N1\n",
        counted(),
        "write columns: {zone: NAME} under data",
        [counted("columns: {zone: somewhere}")],
    ),
    "another name of the count": (
        "borough,zone,trips\nNorth,N1,3\n",
        counted("count: trip"),
        "write count: trips under data",
        [counted("count: trips")],
    ),
    "no name of the count": (
        "borough,zone,amount\nNorth,N1,3\n",
        counted("count: x"),
        "write count: NAME under data",
        [counted("count: amount")],
    ),
    "rows that look counted": (
        "borough,zone,n\nNorth,N1,3\n",
        counted(),
        "write count: n, or rows_are_records: true",
        [counted("count: n"), counted("rows_are_records: true")],
    ),
    "no value": (
        "borough,zone\nNorth,\nNorth,N1\n",
        counted(),
        "write nulls: drop or nulls: {category: NAME}",
        [counted("nulls: drop"), counted("nulls: {category: S3}")],
    ),
    "no value in one of two columns": (
        "borough,zone,sex\nNorth,N1,F\nNorth,N1,\n",
        by_sex("unknown"),
        "name one for each column: {category: {zone: NAME}}",
        [by_sex("{zone: S3, sex: unknown}"), by_sex("{sex: unknown}")],
    ),
    "elsewhere": (
        "borough,zone\nWest,W1\nNorth,N1\n",
        counted(),
        "write outside: drop or outside: {category: NAME}",
        [counted("outside: drop"), counted("outside: {category: S3}")],
    ),
}


@pytest.mark.parametrize("case", RECORDS)
def test_records_are_read_as_the_advice_says(tmp_path, case):
    records, refused, advice, follows = RECORDS[case]
    (tmp_path / "counts.csv").write_text(records)
    with pytest.raises(Refused) as caught:
        release(job(tmp_path, refused), output=tmp_path / "refused")
    assert advice in str(caught.value)
    for i, text in enumerate(follows):
        assert release(job(tmp_path, text), output=tmp_path / f"out{i}")
