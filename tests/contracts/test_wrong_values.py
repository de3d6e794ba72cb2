"""What is passed by mistake is refused in a sentence that shows its type and shape, and never what is in it."""

import random
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from scipy import sparse

import calling
import holdfast as hf
from holdfast.arguments import shown

SECRET = 98765
#: Things of many entries, all of them the secret.
HOLDING = (
    np.full(4, SECRET), [SECRET] * 4, (SECRET, SECRET), {"a": SECRET}, {SECRET}, pl.DataFrame({"a": [SECRET] * 2}),
    pl.Series([SECRET]), [[SECRET] * 2] * 2, sparse.csr_array(np.full((2, 2), SECRET)), np.full((2, 2), SECRET),
    [{"a": SECRET}], range(SECRET, SECRET + 4), np.array([(SECRET,)], dtype=[("a", int)])[0],
)  # fmt: skip
LAPLACE = hf.laplace(hf.histogram(4), epsilon=1)
TREE = hf.Hierarchy.from_parents([-1, 0, 0])
MENDED = {"zone": ["Total", "A", "B"], "count": [10, 4, 5]}
SPEC = {
    "title": "Ages",
    "data": {"source": "people.csv", "values": {"age": ["young", "old"]}},
    "privacy": {"epsilon": 1},
    "table": {"histogram": "age"},
    "method": "noise",
    "output": "out",
}
NAMES = ("epsilon", "rho")


class Raising:
    """Something that only looks like an array."""

    def __array__(self, *args, **words):
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("value", HOLDING, ids=lambda value: type(value).__name__)
def test_only_scalars_are_shown(value):
    assert str(SECRET) not in shown(value)
    assert type(value).__name__ in shown(value)
    for name in NAMES:
        with pytest.raises(hf.Refused, match=f"{name} must be a number, found {type(value).__name__}") as refused:
            LAPLACE.calibrated(**{name: value})
        assert str(SECRET) not in str(refused.value)


def test_scalars_are_shown_as_they_are():
    assert [shown(each) for each in (None, 3, 0.5, "x", True)] == ["None", "3", "0.5", "'x'", "True"]
    assert shown(np.zeros((2, 3))) == "ndarray of shape (2, 3)"
    assert shown([1, 2]) == "list of 2 entries"
    assert shown(int) == "the type int"


def test_no_public_name_shows_what_is_in_its_arguments():
    """A fixed share of a search over all public names; scalars in lists of axes or sizes are public."""
    found = calling.things()
    targets = calling.targets(found)
    for number in range(400):
        source = random.Random(number)
        name, function = source.choice(targets)
        placed, words = calling.arguments(function, source, found)
        if not placed:
            continue
        placed[source.randrange(len(placed))] = source.choice(HOLDING)
        try:
            function(*placed, **words)
        except (hf.Refused, TypeError) as error:
            told = str(error)
            assert str(SECRET) not in told or told.startswith(("shape must", "axis must")), (number, name, told)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: hf.load("x" * 300), "is not a folder"),
        (lambda: hf.load("x" * 400), "is not a folder"),
        (lambda: hf.job(f"{'x' * 400}.yaml"), "the spec .* cannot be read: File name too long"),
        (lambda: hf.mend("x" * 300, ["consistent"]), "there is no table"),
        (lambda: hf.between(sparse.csr_array(np.eye(4)), 5), "low must be a plain array of numbers, found csr_array"),
        (lambda: hf.between(0, sparse.csr_array(np.eye(4))), "high must be a plain array of numbers, found csr_array"),
        (lambda: LAPLACE.release(range(10**9)), r"truth must have shape \(4,\), found range of 1000000000 entries"),
        (lambda: LAPLACE.simulate(range(10**9), 1), r"truth must have shape \(4,\), found range"),
        (lambda: hf.load(np.full(4, SECRET)), r"folder must be a path, found ndarray of shape \(4,\)"),
        (lambda: hf.load("a\0b"), "folder must be a path"),
        (lambda: hf.load(b"\xff"), "folder must be a path, found"),
        (
            lambda: hf.job({**SPEC, "title": np.full(4, SECRET)}),
            "title: a spec holds texts, .*, found ndarray",
        ),
        (lambda: hf.job({**SPEC, "title": [SECRET] * 4}), "title: must be a text, found a list of length 4"),
        (lambda: hf.job(SPEC).release(output=[SECRET]), "output must be a path, found list of 1 entries"),
        (lambda: hf.job(SPEC).release(ledger=[SECRET]), "ledger must be a path, found list of 1 entries"),
        (lambda: hf.job(SPEC).commit(output="x" * 400), "no file|cannot|too long"),
        (lambda: hf.job(SPEC).audit(source=[SECRET]), "source must be a bool, found list of 1 entries"),
        (lambda: hf.Hierarchy.from_frame({"a": [SECRET]}, levels=["b"]), "frame has no column 'b': it has 'a'"),
        (
            lambda: hf.Hierarchy.from_frame({"a": [1]}, levels=np.full((), SECRET)),
            "levels must be a list of column names",
        ),
        (lambda: hf.Cube((2, 2), names=range(10**9)), "names must be a list of texts, found range of"),
        (lambda: hf.Cube(np.array(SECRET)), "shape must be a list of sizes, found ndarray"),
        (lambda: hf.margins((2, 2), keep=[[SECRET]]), "keep must hold positions between 0 and 1, found another"),
        (lambda: hf.margins((2, 2), keep=np.array(SECRET)), "keep must be a list of margins"),
        (lambda: hf.margins((2, 2), keep=[0.5j]), "keep must be a list of margins"),
        (lambda: hf.laplace(hf.histogram(2), scale=[1, [SECRET]]), "scale must be an array of numbers"),
        (lambda: hf.laplace(hf.histogram(2), scale=range(10**12)), "scale is larger than memory, found range"),
        (lambda: hf.equals([Raising()], [1]), "A must be an array of numbers"),
        (lambda: hf.between(Decimal("sNaN"), 3), "low must be a finite number, found Decimal"),
        (lambda: hf.compose(range(10**9)), "parts must be a list of guarantees or of mechanisms, found range"),
        (
            lambda: hf.compare(np.array(SECRET)),
            "items must be a list of mechanisms, plans, releases or functions, found ndarray",
        ),
        (lambda: LAPLACE.about(2, kind=np.full(4, SECRET)), "neighbours must be one of .*, found ndarray"),
        (lambda: LAPLACE.calibrated(epsilon=1, scope=np.full(4, SECRET)), "scope must be one of .*, found ndarray"),
        (lambda: LAPLACE.over([SECRET]), "base must be a Additive, found list"),
        (lambda: LAPLACE.statement_for([SECRET]), "differences must be changes of the answer, found list"),
        (lambda: LAPLACE.protection([SECRET]), "columns must be a sequence of Column values"),
        (lambda: LAPLACE.protects.outside([SECRET]), "neighbours must be .*, found list"),
        (lambda: LAPLACE.error_bars([SECRET]), r"values must have shape \(4,\)"),
        (lambda: hf.histogram(4).count({"a": [1]}, count=np.full(4, SECRET)), "count must be a str, found ndarray"),
        (lambda: hf.Keys([SECRET]), "secret must be a bytes, found list"),
        (lambda: hf.Stream([SECRET]), "key must be a bytes, found list"),
        (lambda: hf.audit(LAPLACE, seconds=0 * 10**400), "seconds must be above 0"),
        (
            lambda: hf.mend({"a": SECRET}, "consistent"),
            "frame must hold columns of .*, found int",
        ),
        (lambda: hf.mend(MENDED, [[SECRET]]), "hold must list .* or constraints, found list"),
        (lambda: hf.mend(MENDED, "consistent", value=[SECRET]), "value must name a column of the table"),
        (lambda: hf.mend(MENDED, "consistent", errors=[1, [SECRET]]), "errors must be an array of numbers"),
        (lambda: hf.mend(MENDED, "consistent", errors=10**400), "errors must stay below"),
        (lambda: hf.mend(MENDED, "consistent", step=10**400), "step must stay below"),
        (lambda: hf.mend(MENDED, "consistent").report([SECRET]), "path must be a path"),
        (lambda: hf.mend(MENDED, "consistent").report("/"), "'/' cannot be written"),
        (lambda: hf.reconcile_laws(TREE, sparse.csr_array(np.full((1, 3), SECRET))), "laws must be a list"),
        (lambda: hf.reconcile_laws(TREE, [[1, 1], None, [1]]).draw(10**400), "size must be at most"),
        (lambda: hf.beliefs.condition({"a": 1}, range(10**9)), "event must be a set of worlds, found range"),
        (lambda: hf.beliefs.condition({"a": 1}, [[SECRET]]), "event must be a set of worlds"),
        (lambda: hf.Guarantee(epsilon=1, neighbours="add-remove", because="x", caveats=[SECRET]), "of type int"),
        (lambda: hf.nonnegative(at=[5, -SECRET]), "at must hold positions 0 or more, found another at place 1"),
    ],
)
def test_what_had_another_exception_is_refused(call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age\nold\n", encoding="utf-8")
    with pytest.raises(hf.Refused, match=sentence) as refused:
        call()
    assert str(SECRET) not in str(refused.value)
