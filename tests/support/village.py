"""A village whose persons and households are counted in one spec."""

import csv

import numpy as np

SPEC = """
title: Two tables that fit
data:
  source: persons.csv
  name: village
  domain: blocks.csv
  values: {age: [young, old], relation: [head, other], size: [1, 2, 3]}
privacy: {unit: {column: household, max_records: 3}, rho: 2}
table:
  hierarchy: [street, block]
  linked:
    persons: {most: 3, cube: [age, relation], measure: {street: [age, relation], block: all}, shares: best}
    households: {most: 1, rows: {relation: head}, cube: [size], measure: {street: [total], block: all}, share: 2}
  ties:
    - {persons: {relation: head}, households: total}
    - {persons: total, households: {sum: size}}
hold: [consistent, nonnegative]
method: onto
output: {folder: out, records: true}
ledger: ledger.sqlite
"""
BLOCKS = ["A1", "A2", "B1", "B2"]


def persons(seed=0, households=60):
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(households):
        block, size = rng.choice(BLOCKS), int(rng.integers(1, 4))
        ages = rng.choice(["young", "old"], size)
        rows += [[f"h{number}", block, age, "other" if place else "head", size] for place, age in enumerate(ages)]
    return rows


def write(folder, rows):
    with (folder / "persons.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["household", "block", "age", "relation", "size"], *rows])
