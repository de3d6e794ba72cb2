"""The items of the papers by their names; what computes one is loaded when it is asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from markupsafe import Markup

from holdfast.arguments import Refused
from holdfast.papers.reproduction import Findings, Reproduction, Study
from holdfast.pictures.pages import filled, policy_of, text_of
from holdfast.version import __version__


@dataclass(frozen=True)
class Paper:
    """A paper: how it is called here, and how it is cited."""

    name: str
    cited: str


TWO_VIEWS = Paper(
    "Two Views",
    "Likang Liu, Keke Sun, Chunlai Zhou, Yuan Feng: Two Views of Constrained Differential Privacy: Belief Revision and "
    "Update. AAAI 2023 (arXiv 2303.00228)",
)
SUBSPACE = Paper(
    "Subspace",
    "Jie Gao, Ruobin Gong, Fang-Yi Yu: Subspace Differential Privacy. AAAI 2022, pages 3986–3995",
)
REFINEMENT = Paper(
    "Linear Refinement",
    "Xiaowei Ying, Xintao Wu, Yue Wang: On Linear Refinement of Differential Privacy-Preserving Query Answering. PAKDD "
    "2013, LNCS 7819",
)


@dataclass(frozen=True)
class Item:
    """One item: its name, its paper, what it is, what the paper prints, and what computes it, as module:function."""

    name: str
    paper: Paper
    title: str
    printed: str
    place: str

    def compute(self, study: Study) -> Findings:
        module, function = self.place.split(":")
        findings: Findings = getattr(import_module(f"holdfast.papers.{module}"), function)(study)
        return findings


ITEMS = (
    Item(
        "two-views-belief-change",
        TWO_VIEWS,
        "Propositions 1 and 2, equations (1) and (2), Example 3",
        "what marks conditioning and imaging, and the apple and the banana: 1 against 0.3 and 0.7",
        "two_views_trials:belief_change",
    ),
    Item(
        "two-views-table-1",
        TWO_VIEWS,
        "Table 1: which laws the two views obey",
        "twelve ticks and crosses and two principles of least change",
        "two_views_trials:table_1",
    ),
    Item(
        "two-views-lemmas",
        TWO_VIEWS,
        "Definition 8, Lemmas 10–17, Theorems 12 and 16",
        "constrained mechanisms keep, mix and compose their guarantees",
        "two_views_lemmas:lemmas",
    ),
    Item(
        "two-views-variances",
        TWO_VIEWS,
        "Proposition 18 and the conjecture of §4",
        "n cells with an exact total, Laplace noise: variance 2λ²(1 − 1/n) by imaging, 5/6·λ² by conditioning at n = "
        "3; "
        "conditioning is conjectured to be smaller for every n",
        "two_views_lemmas:variances",
    ),
    Item(
        "two-views-algorithm-1",
        TWO_VIEWS,
        "Algorithm 1, a Markov chain, and what one looks like that has not converged",
        "an improved Metropolis–Hastings algorithm on a hierarchy, without a word on its length or its step",
        "two_views_city:compared_with_exact_draws",
    ),
    Item(
        "two-views-tables-2-3",
        TWO_VIEWS,
        "Tables 2 and 3: taxi trips of February 2022 by borough and zone",
        "normalised L1 errors at ε = ½, 1, 2: conditioning is more accurate than TopDown in eight cases of nine",
        "two_views_city:findings",
    ),
    Item(
        "two-views-future",
        TWO_VIEWS,
        "§5: screened and credibility-limited revision, bounded leakage and its update twin",
        "named as future work",
        "two_views_lemmas:findings",
    ),
    Item(
        "subspace-counties",
        SUBSPACE,
        "Figure 1: counties of Illinois with an exact state total, and regressions on size",
        "projected Laplace noise at ε = 0.192 is unbiased where errors of the Census Bureau's system fall with size",
        "subspace_figures:figure_1",
    ),
    Item(
        "subspace-ten-states",
        SUBSPACE,
        "Figure 2: ten more states",
        "the same for ten states whose totals are printed",
        "subspace_figures:figure_2",
    ),
    Item(
        "subspace-campus",
        SUBSPACE,
        "§5.2 and Figure 3: 6,720 figures, 740 equalities",
        "median standard deviation of the errors 0.88, quantiles 0.86 and 0.91, relative to one unit",
        "subspace_figures:campus",
    ),
    Item(
        "subspace-theorem-22",
        SUBSPACE,
        "Theorem 22: projected and conditioned Gaussian noise have one law",
        "spherical Gaussian noise, projected, is distributed as noise given the invariant; other noise is not",
        "subspace_laws:theorem_22",
    ),
    Item(
        "subspace-gaussian",
        SUBSPACE,
        "Lemma 13, Corollaries 14 and 15: the classical σ, projected and extended noise",
        "σ = Δ₂(1 + √(1 + ln 1/δ))/ε is (ε, δ)-private for all ε and δ; errors (n − n_c)σ²; extended never worse",
        "subspace_laws:gaussian_noise",
    ),
    Item(
        "subspace-laplace",
        SUBSPACE,
        "Corollaries 17 and 18: projected and extended Laplace noise, and the basis of the second",
        "both are private; nothing is said of the basis",
        "subspace_laws:laplace_noise",
    ),
    Item(
        "subspace-properties",
        SUBSPACE,
        "Example 4, Propositions 7 and 9, Corollary 8, mixtures",
        "an exact figure leaves no (ε, δ) for all changes; subspace statements nest, compose and mix",
        "subspace_figures:properties",
    ),
    Item(
        "subspace-algorithm-3",
        SUBSPACE,
        "Algorithm 3 and Theorem 20 against the least possible error",
        "within O(log² (n − n_c) log 1/δ) of the optimum",
        "subspace_laws:algorithm_3",
    ),
    Item(
        "refinement-example-1",
        REFINEMENT,
        "Example 1: the ratio after a refinement",
        "ε-private answers become 2ε-private in the limit",
        "refinement_items:example_1",
    ),
    Item(
        "refinement-grades",
        REFINEMENT,
        "The grades of (11), for every single change",
        "three known combinations of seven answers",
        "refinement_items:grades",
    ),
    Item(
        "refinement-theorem-2",
        REFINEMENT,
        "Theorem 2 as printed, over random rotations",
        "ρ = ε‖A*D(c − c′) − (µ − µ′)‖₁/‖µ − µ′‖₁",
        "refinement_items:theorem_2",
    ),
    Item(
        "refinement-theorem-3",
        REFINEMENT,
        "Theorem 3: the best linear refinement",
        "least squares are unbiased, meet what is known, and have the least variance of every answer",
        "refinement_items:theorem_3",
    ),
    Item(
        "refinement-appendix",
        REFINEMENT,
        "The appendix for k = 1 … 10, and why it is no attack",
        "the ratio reaches e^((k+1)ε/2): the adversary can derive the value of the added record",
        "refinement_items:appendix_ratios",
    ),
    Item(
        "refinement-future",
        REFINEMENT,
        "§4 and §5: orders, ranges and Gaussian noise",
        "named as future work",
        "refinement_items:future",
    ),
)


def find(name: str) -> Item:
    for item in ITEMS:
        if item.name == name:
            return item
    near = [item.name for item in ITEMS if name in item.name]
    hint = f"; did you mean {', '.join(near)}?" if near else ": holdfast papers list names them"
    raise Refused(f"there is no item {name!r} of the papers{hint}")


def run(item: Item, study: Study | None = None) -> Reproduction:
    started = time.perf_counter()
    findings = item.compute(study or Study())
    taken = time.perf_counter() - started
    return Reproduction(item.name, item.paper.name, item.title, item.printed, findings, taken)


# --- A small site of reproductions: plain pages that need no script and no network -----------------------------------


ROOM = "holdfast.papers"


def pages(found: Sequence[Reproduction], data: str) -> dict[str, str]:
    """The pages by their file names; `data` says where the data came from."""
    style = text_of(ROOM, "papers.css")
    about: dict[str, Any] = {"style": Markup(style), "policy": policy_of(style)}
    papers: dict[Paper, list[Reproduction]] = {}
    for each in found:
        paper = next(item.paper for item in ITEMS if item.name == each.name)
        papers.setdefault(paper, []).append(each)
    seconds = sum(each.seconds for each in found)
    told = {"papers": papers.items(), "data": data, "version": __version__, "seconds": seconds}
    index = filled(ROOM, "index.html", **told, **about)
    made = {f"{each.name}.html": filled(ROOM, "item.html", item=each, **about) for each in found}
    return {"index.html": index, **made}


def write(folder: Path, found: Sequence[Reproduction], data: str) -> Path:
    """Write the site into a folder that is made where there is none; return its first page."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages(found, data).items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Refused(f"{str(folder)!r} cannot be written: {error.strerror}; name another folder") from None
    return folder / "index.html"
