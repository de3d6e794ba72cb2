"""The census of a small town: margins of a cube in every area of a hierarchy."""

import csv

import numpy as np

import holdfast as hf

VALUES = {"sex": ["F", "M"], "age": ["child", "adult", "senior"], "lives": ["family", "alone"]}
SPEC = """\
title: A census
data:
  source: persons.csv
  domain: blocks.csv
  values: {sex: [F, M], age: [child, adult, senior], lives: [family, alone]}
privacy: {rho: 1}
table:
  hierarchy: [quarter, block]
  root: town
  cube: [sex, age, lives]
  measure: {town: all, quarter: [[sex, age], lives, total], block: [total, all]}
  shares: best
hold: [consistent, nonnegative]
output: {folder: out, records: true}
"""
BLOCKS = [(f"Q{q}", f"B{q}{b}") for q in range(3) for b in range(8)]


def write(folder):
    rng = np.random.default_rng(3)
    with (folder / "blocks.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("quarter", "block"), *BLOCKS])
    rows = [(BLOCKS[rng.integers(24)][1], *(str(rng.choice(values)) for values in VALUES.values())) for _ in range(600)]
    with (folder / "persons.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("block", *VALUES), *rows])


def job(folder, *changes):
    text = SPEC
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "spec.yaml").write_text(text)
    return hf.job(folder / "spec.yaml")
