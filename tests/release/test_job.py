"""Jobs: the total guarantee is the one asked for, whatever the method; what promises nothing is refused."""

import json

import pytest

from holdfast.arguments import Refused
from holdfast.exchange.formats import MOVES
from holdfast.mechanism.mechanism import Mechanism
from holdfast.privacy import compose
from holdfast.release.job.job import LISTS
from holdfast.release.plan import plan
from holdfast.release.spec.places import SpecError
from jobs import cube, job, tree

EVERYTHING = "hold: [consistent, nonnegative]"


METHODS = ["given", "onto", "given-then-onto", "topdown", "bluedown", "auto"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "privacy"),
    [(method, privacy) for method in METHODS for privacy in ("epsilon: 0.7", "rho: 0.3")]
    + [("given", "epsilon: 0.7, delta: 1e-6"), ("onto", "epsilon: 0.7, delta: 1e-6")],
)
def test_every_method_meets_the_budget_from_below(tmp_path, method, privacy):
    made = job(tmp_path, tree(privacy=privacy, table="guess: 20", rest=f"{EVERYTHING}\nmethod: {method}"))
    statement = made.guarantee
    met, asked = (statement.rho, 0.3) if "rho" in privacy else (statement.epsilon, 0.7)
    assert asked * (1 - 1e-6) <= met <= asked
    if "delta" in privacy:
        assert statement.delta <= 1e-6
    assert method in ("auto", made.tables[0].chosen.method)


def test_a_person_with_several_records_costs_more_noise(tmp_path):
    one = job(tmp_path, tree(rest="hold: [consistent]\nmethod: given"))
    five = tree(privacy="epsilon: 1, unit: {column: rider, max_records: 5}", rest="hold: [consistent]\nmethod: given")
    many = job(tmp_path, five)
    assert many.guarantee.records == 5
    assert many.guarantee.epsilon == pytest.approx(1)
    scale = [made.tables[0].mechanism.base.law.laws[0].scale for made in (one, many)]
    assert float(scale[1] / scale[0]) == pytest.approx(5)
    assert many.unit == "column rider, at most 5 records"
    assert one.unit == "record"


def test_the_budget_counts_the_same_statement_for_every_method(tmp_path):
    """By default the invariant-sharing one; the subspace statement of onto would allow half the noise."""
    text = cube(table="numbers: real", rest="hold: [{exact: total}]\nmethod: onto")
    sharing = job(tmp_path, text)
    assert sharing.guarantee.scope == "invariant-sharing"
    assert sharing.guarantee.records == 2
    assert sharing.guarantee.epsilon == pytest.approx(1)
    assert [statement.scope for statement in sharing.guarantees] == ["invariant-sharing", "subspace"]
    # Both are about the two records that must change together: one for two is twice that for one.
    assert (sharing.guarantees[1].records, sharing.guarantees[1].epsilon) == (2, pytest.approx(1))
    subspace = job(tmp_path, text.replace("epsilon: 1", "epsilon: 1, scope: subspace"))
    assert subspace.guarantee.scope == "subspace"
    assert subspace.guarantee.epsilon == pytest.approx(1)
    with pytest.raises(SpecError, match=r"no statement of scope subspace.*privacy.scope can be invariant-sharing"):
        job(tmp_path, cube("", "epsilon: 1, scope: subspace", rest="hold: [{exact: total}]\nmethod: given"))


def test_a_total_is_exact_for_all_where_records_are_replaced(tmp_path):
    made = job(
        tmp_path, tree(privacy="epsilon: 1, neighbours: replace-one", rest="hold: [consistent, {exact: [city]}]")
    )
    assert made.guarantee.scope == "all"
    assert made.guarantee.unprotected == ("city (published exactly)",)
    assert not any("agree in every exactly" in caveat for caveat in made.caveats)


TWO = (
    "data: {{name: x, domain: zones.csv, values: {{sex: [F, M]}}}}\nprivacy: {{{privacy}}}\ntables:\n"
    "- {{name: places, hierarchy: [borough, zone], root: city, share: 3, hold: [{hold}], method: given}}\n"
    "- {{name: sexes, histogram: sex}}\n"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "privacy", ["epsilon: 1", "rho: 0.5", "epsilon: 1, delta: 1e-6", "epsilon: 1, delta: 1e-6, noise: laplace"]
)
@pytest.mark.parametrize("hold", ["consistent", "consistent, nonnegative", "consistent, {exact: [city]}"])
def test_tables_share_the_budget(tmp_path, privacy, hold):
    made = job(tmp_path, TWO.format(privacy=privacy, hold=hold))
    total = made.guarantee
    met, asked = (total.rho, 0.5) if "rho" in privacy else (total.epsilon, 1)
    assert met <= asked * (1 + 1e-12)
    assert met >= asked * (0.98 if "noise: laplace" not in privacy else 0.8)
    if "delta" in privacy:
        assert total.delta <= 1e-6
        assert compose(made.cost, delta=1e-6).epsilon == met
    else:
        again = compose(made.cost)
        assert (again.epsilon if asked == 1 else again.rho) == met
    shares = [statement.rho if statement.epsilon is None else statement.epsilon for statement in made.cost]
    if hold != "consistent, {exact: [city]}" and "delta" not in privacy:
        assert shares[0] / shares[1] == pytest.approx(3)


def test_an_exact_figure_in_one_table_counts_for_all(tmp_path):
    """One add and one remove change together; group privacy brings the other table to two records as well."""
    made = job(tmp_path, TWO.format(privacy="epsilon: 1", hold="consistent, {exact: [city]}"))
    assert made.guarantee.records == 2
    assert made.guarantee.scope == "invariant-sharing"
    assert (made.cost[1].records, made.cost[1].epsilon) == (2, pytest.approx(0.25))
    assert made.guarantee.epsilon == pytest.approx(1)


def test_auto_takes_the_least_error_at_the_same_guarantee(tmp_path):
    made = job(tmp_path, tree(table="guess: 30", rest=EVERYTHING))
    compared = made.tables[0].comparison
    assert [each.method for each in compared] == ["given", "onto", "given-then-onto", "topdown", "bluedown"]
    scores = [each.expected_absolute_error for each in compared]
    chosen = [each.chosen for each in compared]
    assert sum(chosen) == 1
    assert scores[chosen.index(True)] <= 1.01 * min(scores)
    # Non-negativity has a price under Laplace noise, and auto sees it.
    assert compared[0].expected_absolute_error > 1.1 * min(scores)
    assert (
        job(tmp_path, tree(table="guess: 30", rest=EVERYTHING)).tables[0].chosen.method == made.tables[0].chosen.method
    )


def test_auto_compares_laws_for_epsilon_and_delta(tmp_path):
    """Eight margins: σ grows like their square root, λ like their number. One histogram: Laplace noise is better."""
    data = "data: {name: x, values: {a: [1, 2], b: [1, 2], c: [1, 2]}}\n"
    margins = "[[], [a], [b], [c], [a, b], [a, c], [b, c], [a, b, c]]"
    many = job(
        tmp_path, f"{data}privacy: {{epsilon: 1, delta: 1e-3}}\ntable: {{cube: [a, b, c], margins: {margins}}}\n"
    )
    assert [each.noise for each in many.tables[0].comparison] == ["gaussian", "laplace"]
    assert many.tables[0].chosen.noise == "gaussian"
    one = job(tmp_path, f"{data}privacy: {{epsilon: 1, delta: 1e-9}}\ntable: {{histogram: a}}\n")
    assert one.tables[0].chosen.noise == "laplace"


def test_what_holds_nothing_is_refused_with_reasons(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        for verb in ("given", "onto"):

            def refused(*_, verb=verb, **__):
                raise Refused(f"{verb} cannot, pass integer=False")

            patched.setattr(Mechanism, verb, refused)
        with pytest.raises(SpecError, match=r"no method holds everything.*given: .*onto: .*numbers: real") as caught:
            job(tmp_path, cube(table="margins: [[sex, age], [sex]]", rest="hold: [consistent, {exact: [age]}]"))
    assert (caught.value.line, caught.value.key) == (6, "hold")
    with pytest.raises(SpecError, match="noise alone holds nothing"):
        job(tmp_path, tree(rest="hold: [consistent]\nmethod: noise"))
    with pytest.raises(SpecError, match="given-then-onto needs"):
        job(tmp_path, cube(rest="hold: [nonnegative]\nmethod: given-then-onto"))


def test_a_job_without_a_statement_is_refused(tmp_path):
    """With every zone exact no change is left that could be hidden."""
    with pytest.raises(SpecError) as caught:
        job(tmp_path, tree(rest="hold: [consistent, {exact: [zone]}]\nmethod: given"))
    assert caught.value.key == "method"
    with pytest.raises(SpecError, match="no change of a few records keeps what must hold") as caught:
        job(tmp_path, tree(rest="hold: [consistent, {exact: [zone]}]"))
    assert caught.value.key == "hold"
    assert str(caught.value).count("no change of a few records") == 1
    with pytest.raises(SpecError, match="no privacy statement is known for integer Gaussian"):
        job(tmp_path, cube(privacy="rho: 1", rest="hold: [nonnegative, {exact: [sex]}]\nmethod: given"))


def test_a_chain_of_which_nothing_is_measured_is_no_method_of_a_release(tmp_path):
    with pytest.raises(SpecError, match="metropolis"):
        job(tmp_path, tree(rest=f"{EVERYTHING}\nmethod: metropolis"))


def test_only_moved_values_may_be_published_with_their_measurements(tmp_path):
    onto = {
        m: job(tmp_path, tree(rest=f"{EVERYTHING}\nmethod: {m}")).tables[0].chosen.method in MOVES
        for m in ("given", "onto", "topdown", "given-then-onto")
    }
    assert onto == {"given": False, "onto": True, "topdown": True, "given-then-onto": False}


def test_methods_that_the_data_can_defeat_are_taken_last_and_say_so(tmp_path):
    rest = "hold: [nonnegative, {ordered: age}, {exact: [total]}]"
    made = job(tmp_path, cube(table="guess: 3", rest=f"{rest}\nmethod: given"))
    assert made.tables[0].mechanism.method == "enumeration"
    assert LISTS in made.caveats
    assert LISTS not in job(tmp_path, cube(table="guess: 3", rest=rest)).caveats


def test_shares_divide_the_noise_over_levels(tmp_path):
    made = job(tmp_path, tree(table="shares: {city: 1, zone: 3}", rest="hold: [consistent]\nmethod: given"))
    law = made.tables[0].mechanism.base.law
    scales = {
        level: law.laws[law.which[list(made.tables[0].layout.columns["level"]).index(level)]]
        for level in made.tables[0].layout.levels
    }
    assert scales["borough"] is None
    assert float(scales["city"].scale / scales["zone"].scale) == pytest.approx(3)
    margins = job(
        tmp_path, cube(table="margins: [[sex, age], []], shares: {'sex, age': 1, total: 4}", rest="method: noise")
    )
    laws = margins.tables[0].mechanism.base.law.laws
    assert float(laws[0].scale / laws[1].scale) == pytest.approx(4)


def test_caveats_say_how_records_are_treated(tmp_path):
    text = tree("nulls: drop, outside: {category: S3}", privacy="epsilon: 1, unit: {column: rider, max_records: 5}")
    words = " ".join(job(tmp_path, text).caveats)
    assert "records with a missing value are dropped; how many is not published" in words
    assert "counted as 'S3'" in words
    assert "at most 5 records are kept, chosen by a keyed hash of the person and the record alone" in words
    assert "stops the release" in " ".join(job(tmp_path, tree()).caveats)


def test_the_dataset_has_a_name(tmp_path):
    assert job(tmp_path, tree("name: trips")).dataset == "trips"
    assert job(tmp_path, tree()).dataset == str(tmp_path / "trips.parquet")
    with pytest.raises(SpecError, match=r"needs data.name"):
        _ = job(tmp_path, tree().replace("source: trips.parquet, ", "")).dataset


def test_public_files_are_hashed(tmp_path):
    first = job(tmp_path, tree()).public_files
    second = job(tmp_path, tree(), zones_csv="borough,zone\nNorth,N1\nNorth,N2\n").public_files
    assert set(first) == set(second) == {"zones.csv"}
    assert first != second
    assert len(first["zones.csv"]) == 64


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("exact", ["city", "borough"])
def test_where_figures_are_exact_all_records_of_a_person_are_protected(tmp_path, most, exact):
    """A person's records can all become others and keep the figures: that changes twice as many as a person has.

    For a record to leave its borough another must come: four records, so the total is about four times as many.
    """
    privacy = f"epsilon: 1, unit: {{column: rider, max_records: {most}}}"
    made = job(tmp_path, tree(privacy=privacy, rest=f"hold: [consistent, {{exact: [{exact}]}}]\nmethod: given"))
    statement, table = made.guarantee, made.tables[0]
    assert statement.scope == "invariant-sharing"
    assert statement.records == made.neighbours.records == {"city": 2, "borough": 4}[exact] * most
    assert any("several persons" in caveat for caveat in made.caveats)
    moved = table.layout.query.answer([most, 0, 0, 0, 0]) - table.layout.query.answer([0, most, 0, 0, 0])
    loss = sum(abs(int(move)) / float(table.mechanism.base.law.laws[0].scale) for move in moved)
    assert loss <= statement.epsilon * (1 + 1e-12) <= 1 + 1e-12


def test_all_neighbours_of_one_person_are_enough_for_the_subspace(tmp_path):
    privacy = "epsilon: 1, scope: subspace, unit: {column: rider, max_records: 3}"
    made = job(tmp_path, cube("", privacy, "numbers: real", "hold: [{exact: total}]\nmethod: onto"))
    assert (made.guarantee.scope, made.guarantee.records) == ("subspace", 3)
    assert not any("several persons" in caveat for caveat in made.caveats)


@pytest.mark.parametrize(
    ("privacy", "key"),
    [("epsilon: 1e6", "privacy.epsilon"), ("rho: 1e12", "privacy.rho"), ("epsilon: 180", "privacy")],
)
@pytest.mark.parametrize("method", ["onto", "given", "auto"])
def test_a_budget_that_leaves_no_noise_is_refused_before_anything_is_charged(tmp_path, privacy, key, method):
    with pytest.raises(SpecError, match=r"no noise is left.* publish the figures as exact") as caught:
        job(tmp_path, tree(privacy=privacy, rest=f"hold: [consistent]\nmethod: {method}"))
    assert caught.value.key == key


def test_shares_that_measure_nothing_are_refused_where_they_are_written(tmp_path):
    with pytest.raises(SpecError, match="every share is 0") as caught:
        job(tmp_path, tree(table="shares: {borough: 0, zone: 0}"))
    assert caught.value.key == "table.shares"


def test_another_name_for_a_column_that_no_table_has_is_refused(tmp_path):
    with pytest.raises(
        SpecError, match=r"neither a table nor privacy.unit has a column 'zon'.*did you mean 'zone'"
    ) as caught:
        job(tmp_path, tree("columns: {zon: PULocationID}"))
    assert caught.value.key == "data.columns.zon"


@pytest.mark.slow
def test_refused_methods_name_the_remedy_as_a_spec_does(tmp_path):
    made = job(tmp_path, cube(privacy="rho: 1", table="guess: 3", rest="hold: [nonnegative, {exact: [sex, age]}]"))
    refused = [each.refused for each in made.tables[0].comparison if each.refused]
    assert refused
    assert all("noise: laplace" in sentence and "integer=False" not in sentence for sentence in refused)


def test_refusals_call_figures_by_their_names(tmp_path):
    cannot = {
        "hold: [consistent, {between: {low: 5, at: [N1]}}, {impossible: [N1]}]": (
            "impossible: 'city / North / N1'; at least 5 at 'city / North / N1'"
        ),
        "hold: [consistent, {between: {high: 5, at: [North]}}, {between: {low: 9, at: [N1]}}, nonnegative]": (
            "consistent; at most 5 at 'city / North'; at least 9 at 'city / North / N1'; nonnegative"
        ),
    }
    for rest, words in cannot.items():
        with pytest.raises(SpecError) as caught:
            job(tmp_path, tree(rest=rest))
        assert str(caught.value).endswith(f"cannot hold together: {words}")
    with pytest.raises(SpecError, match=r"\(at most 5 at 'city / North' \(at 'city / North'\)\)"):
        job(tmp_path, tree(table="guess: 3", rest="hold: [consistent, {between: {high: 5, at: [North]}}]"))
    unmeasured = "shares: {city: 0.5, borough: 0.5}"
    with pytest.raises(SpecError, match=r"\(at 'city / North / N1'\) is not measured, nor all that is below it"):
        job(tmp_path, tree(table=unmeasured, rest=f"{EVERYTHING}\nmethod: given"))
    with pytest.raises(SpecError, match="how 'city / South / S1' and 'city / South / S3' share their sum"):
        job(tmp_path, tree(table=unmeasured, rest="hold: [consistent]\nmethod: given"))


def test_a_level_without_a_share_is_told(tmp_path):
    for shares in ("{borough: 0.5, zone: 0.5}", "{city: 0, borough: 0.5, zone: 0.5}"):
        told = job(tmp_path, tree(table=f"shares: {shares}")).caveats
        assert any("no noisy answer is taken at the level 'city'" in each for each in told)
    for table in ("shares: {city: 0.2, borough: 0.3, zone: 0.5}", ""):
        assert not any("shares" in each for each in job(tmp_path, tree(table=table)).caveats)


def test_an_error_that_nobody_can_tell_is_unknown_and_not_refused(tmp_path):
    text = tree(table="shares: {city: 0.5, borough: 0.5}", rest=f"{EVERYTHING}\nmethod: topdown")
    untold = job(tmp_path, text)
    planned = plan(untold).as_mapping()["tables"][0]
    assert [level["expected_absolute_error"] for level in planned["levels"]] == [None] * 3
    assert "nobody can tell them without a guess" in planned["errors_known"]
    json.dumps(planned, allow_nan=False)
    assert 0 < job(tmp_path, text.replace("root: city", "root: city, guess: 100")).tables[0].errors.score < 1000


def test_persons_are_counted_under_the_name_that_the_records_use(tmp_path):
    privacy = "epsilon: 1, unit: {column: rider, max_records: 5}"
    plain, renamed = (job(tmp_path, tree(data, privacy)) for data in ("", "columns: {rider: who}"))
    assert plain.unit == "column rider, at most 5 records"
    assert renamed.unit == "column who, at most 5 records"
