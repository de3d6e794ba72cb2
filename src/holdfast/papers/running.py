"""Run items of the catalogue, with the time that each took; the clock is only shown."""

from __future__ import annotations

import time

from holdfast.papers.catalogue import Item
from holdfast.papers.reproduction import Reproduction, Study


def run(item: Item, study: Study | None = None) -> Reproduction:
    started = time.perf_counter()
    findings = item.compute(study or Study())
    taken = time.perf_counter() - started
    return Reproduction(item.name, item.paper.name, item.title, item.printed, findings, taken)
