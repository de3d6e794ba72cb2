"""TV Table 1, cell by cell: a tick is tried on many small mechanisms, a cross needs a counterexample that is listed."""

from __future__ import annotations

import numpy as np

from holdfast.papers.reproduction import Claim, Findings, Row, Study
from holdfast.papers.two_views import trials


def findings(study: Study) -> Findings:
    rng, count = study.generator(), study.times(120, 12)
    cells = [*_revision(rng, count), *_update(rng, count)]
    rows = tuple(Row(f"{view}: {column}", printed, found) for view, column, printed, found, _ in cells)
    claims = [
        Claim(f"{view}: {column} is {printed}", found == printed, because)
        for view, column, printed, found, because in cells
    ]
    claims.append(trials.union_as_it_holds(rng, count))
    return Findings(tuple(claims), rows)


Cell = tuple[str, str, str, str, str]


def _cell(view: str, column: str, printed: str, fails: str, tried: str) -> Cell:
    """A cell as it was found: a cross where something fails, with the counterexample; otherwise a tick."""
    return view, column, printed, "✗" if fails else "✓", fails or tried


def _revision(rng: np.random.Generator, count: int) -> list[Cell]:
    view = "belief revision"
    tried = f"{count} random mechanisms"
    return [
        _cell(view, "privacy preserving", "✗", trials.nonnegativity(), tried),
        _cell(
            view,
            "privacy preserving for linear equalities",
            "✓",
            trials.exact_total(),
            "every output of three cells with an exact total listed; THEORY §2, TV Lemma 10",
        ),
        _cell(view, "postprocessing", "✓", trials.processing(rng, count, revise=True), f"{tried}; TV Lemma 11 (1)"),
        _cell(view, "basic composition", "✓", trials.composition(rng, count, revise=True), f"{tried}; TV Lemma 13"),
        _cell(view, "disjoint union composition", "✓", trials.union(), tried),
        _cell(view, "mixture composition", "✗", trials.mixtures(rng, count, revise=True), tried),
        _cell(view, "minimum principle KL divergence", "✓", trials.nearest_in_kl(rng, count), f"{tried}; THEORY §2"),
    ]


def _update(rng: np.random.Generator, count: int) -> list[Cell]:
    view = "belief update"
    tried = f"{count} random mechanisms"
    kept = trials.imaging(rng, count)
    return [
        _cell(view, "privacy preserving", "✓", kept, f"{tried}, pure ε and δ(ε); TV Lemma 14"),
        _cell(view, "privacy preserving for linear equalities", "✓", kept, "the same: C is any set there"),
        _cell(view, "postprocessing", "✓", trials.processing(rng, count, revise=False), f"{tried}; h after imaging"),
        _cell(view, "basic composition", "✓", trials.composition(rng, count, revise=False), f"{tried}; TV Lemma 17"),
        _cell(view, "disjoint union composition", "✗", trials.union_of_images(), tried),
        _cell(view, "mixture composition", "✓", trials.mixtures(rng, count, revise=False), f"{tried}; TV Theorem 16"),
        _cell(
            view,
            "minimum principle L2 distance",
            "✓",
            trials.nearest_points(),
            "every point of a grid is moved nearest",
        ),
    ]
