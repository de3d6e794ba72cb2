"""A share of two campaigns of `script/harden`: random mechanisms with every output listed."""

import numpy as np
import pytest

import enumerated
import holdfast as hf


def test_random_mechanisms_draw_their_laws_and_wrong_scales_are_seen():
    cases = list(enumerated.laws(4, seed=1))
    assert [wrong for *_, wrong in cases if wrong] == []
    assert len({what for what, *_ in cases}) > 1
    assert sum(of_wrong < 1e-4 for _, _, of_wrong, _ in cases) > 2


def test_random_statements_are_not_below_the_loss():
    cases = list(enumerated.statements(6, seed=2))
    assert [wrong for *_, wrong in cases if wrong] == []
    assert {what for what, *_ in cases} == set(enumerated.CASES)


def test_a_statement_below_the_loss_is_seen():
    """The noise alone costs 1; given that nothing is negative it costs more."""
    query, must = hf.histogram(2), hf.nonnegative()
    truths = {table: query.answer(table) for table in enumerated.possible_tables(query, must, 2)}
    outputs = enumerated.window(list(truths.values()), 25)
    allowed, rows = enumerated.allowed_of(must, outputs)
    laws = {t: enumerated.log_law("laplace", [1, 1], x, outputs, allowed, rows) for t, x in truths.items()}
    noise = hf.laplace(query, scale=1)
    assert enumerated.worst_of(noise.given(must), laws, truths, rows) == pytest.approx(0, abs=1e-7)
    assert enumerated.worst_of(noise, laws, truths, rows) > 0.1
    moved = {table: np.roll(law, 1) for table, law in laws.items()}
    assert enumerated.worst_of(noise, moved, truths, rows) > 0.1
