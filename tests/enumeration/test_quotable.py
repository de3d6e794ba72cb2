"""Sentences that may be quoted: true of every pair of small datasets that they speak of, listed with all outputs."""

import re
from functools import cache
from itertools import product

import numpy as np
import pytest

import holdfast as hf
from holdfast.privacy.odds import guessed_right, in_words
from jobs import cube, job
from listed_noise import listed

TREE = hf.Hierarchy.from_parents([-1, 0, 0])
EXACT = np.array([[1, 1, 0]])
#: Directions in which noise may move: independent figures, and those that leave the sum of two figures.
FREE, KEPT = np.eye(3, dtype=int), np.array([[1, 0], [-1, 0], [0, 1]])


def histogram(kind):
    return hf.laplace(hf.histogram(3), scale=1, neighbours=kind)


CASES = {
    "come and go": (histogram("add-remove"), np.eye(3), FREE, 1.0, None),
    "replaced": (histogram("replace-one"), np.eye(3), FREE, 1.0, None),
    "a total that replacements cannot change": (
        hf.laplace(hf.counts(TREE), scale=[0.05, 1, 1], neighbours="replace-one"),
        np.array([[1, 1], [1, 0], [0, 1]]),
        FREE,
        [0.05, 1, 1],
        None,
    ),
    "exact, come and go": (histogram("add-remove").given(hf.invariant(EXACT)), np.eye(3), KEPT, 1.0, EXACT),
    "exact, replaced": (histogram("replace-one").given(hf.invariant(EXACT)), np.eye(3), KEPT, 1.0, EXACT),
}


def spoken_of(sentence, exact, x, y):
    """Whether a sentence speaks of a pair of datasets, by its own words."""
    change = y - x
    if "is in the data" in sentence:
        return bool(np.abs(change).sum() == 1)
    if "guesses which of two" in sentence:
        return bool(change.sum() == 0 and np.abs(change).sum() == 2)
    assert "agree in every exactly published figure" in sentence
    many = re.search(r"up to (\d+) records", sentence)
    records = int(many[1]) if many else 1
    moved = np.abs(change).sum() if "added or removed" in sentence else np.abs(change).sum() / 2
    replaced = change.sum() == 0 or "added or removed" in sentence
    return bool(replaced and 0 < moved <= records and not (exact @ change).any())


@pytest.mark.parametrize("name", CASES)
def test_a_quoted_sentence_holds_for_every_pair_that_it_speaks_of(name):
    mechanism, columns, directions, scales, exact = CASES[name]
    sentence, bound = in_words(mechanism.guarantee), guessed_right(mechanism.guarantee)
    noise, chances = listed(directions, "laplace", scales, 16)
    law = {row.tobytes(): chance for row, chance in zip(noise, chances, strict=True)}

    @cache
    def right(*change):
        """How often the best guess between two datasets that differ so is right."""
        shift = (columns @ np.array(change)).astype(noise.dtype)
        other = np.array([law.get(row.tobytes(), 0.0) for row in noise - shift])
        return (1 + np.maximum(chances - other, 0).sum()) / 2

    cells = columns.shape[1]
    datasets = [np.array(each) for each in product(range(3), repeat=cells)]
    pairs = [(x, y) for x in datasets for y in datasets]
    spoken = [right(*(y - x)) for x, y in pairs if spoken_of(sentence, exact, x, y)]
    assert 0.5 < max(spoken) <= bound + 1e-6
    presence = max(right(*(y - x)) for x, y in pairs if np.abs(x - y).sum() == 1)
    if name in ("a total that replacements cannot change", "exact, come and go", "exact, replaced"):
        assert presence > bound + 0.1  # "whether or not one record was in the data" may not be quoted there
        assert "is in the data" not in sentence


#: Sex × age, and the directions of the noise that matter: of the two cells that change where noise is independent, or
#: those that exact figures leave.
TABLES = {
    "come and go": ("epsilon: 1", "", np.eye(2, dtype=int)),
    "replaced": ("epsilon: 1, neighbours: replace-one", "", np.eye(2, dtype=int)),
    "exact sex": (
        "epsilon: 1, neighbours: replace-one, records: 1",
        "hold: [{exact: [sex]}]\nmethod: given",
        np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]),
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_column_that_is_called_hidden_is_hidden_in_every_small_dataset(tmp_path, name):
    privacy, rest, directions = TABLES[name]
    text = cube(privacy=privacy, rest=rest or "method: noise").replace("[child, adult, old]", "[child, old]")
    made = job(tmp_path, text)
    (scale,) = made.tables[0].mechanism.base.law.scale_values
    noise, chances = listed(directions, "laplace", float(scale), 40)
    law = {row.tobytes(): chance for row, chance in zip(noise, chances, strict=True)}

    @cache
    def right(*change):
        other = np.array([law.get(row.tobytes(), 0.0) for row in noise - np.array(change, dtype=noise.dtype)])
        loss = np.abs(np.log(chances[other > 0] / other[other > 0])).max(initial=0)
        return (1 + np.maximum(chances - other, 0).sum()) / 2, loss

    cells = [(sex, age) for sex in range(2) for age in range(2)]
    for column, place in (("sex", 0), ("age", 1)):
        moves = [
            tuple(int(each == end) - int(each == start) for each in cells)
            for start in cells
            for end in cells
            if start[place] != end[place] and start[1 - place] == end[1 - place]
        ]
        (row,) = [row for row in made.guarantee.columns if row.column == column]
        worst, loss = np.max([right(*(move if rest else filter(None, move))) for move in moves], axis=0)
        if row.covered:
            bound = int(re.search(r"at most (\d+) of 100", row.answer)[1]) / 100
            assert 0.5 < worst <= bound
            assert loss <= float(re.search(r"ε ([0-9.]+):", row.answer)[1]) + 1e-9
        else:
            assert worst > 0.999  # one record alone changes an exact figure
    presence = made.guarantee.columns[0]
    assert presence.covered == (name == "come and go")
