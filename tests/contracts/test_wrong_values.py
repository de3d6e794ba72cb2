"""What is passed by mistake is refused in a sentence that shows its type and shape, and never what is in it."""

import random

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
NAMES = ("epsilon", "rho")


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
            assert str(SECRET) not in told or told.startswith(("keep must", "shape must", "axis must")), (
                number,
                name,
                told,
            )


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
        (lambda: hf.nonnegative(at=[5, -SECRET]), "at must hold positions 0 or more, found another at place 1"),
    ],
)
def test_what_had_another_exception_is_refused(call, sentence):
    with pytest.raises(hf.Refused, match=sentence) as refused:
        call()
    assert str(SECRET) not in str(refused.value)
