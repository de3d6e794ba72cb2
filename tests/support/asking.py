"""Releases of all kinds, and questions about their figures, to compare what answers them with Python."""

import numpy as np

import holdfast as hf
import released
import town
import village
from holdfast.release.run import release

BOUNDED = "hold: [consistent, nonnegative, {between: {high: 100000, at: [zone]}}]"
BOTH = "hold: [consistent, nonnegative, {exact: [city]}, {impossible: [{zone: S1}]}]"
ADDS_UP = (BOUNDED, "hold: [consistent]")
TWO = (BOUNDED, "hold: [consistent, {exact: [city]}]")
UNEQUAL = ("root: city}", "root: city, shares: {city: 0.5, borough: 2, zone: 97.5}}")
GAUSSIAN, GIVEN = ("epsilon: 1.0", "rho: 0.1"), ("method: onto", "method: given")
UNMEASURED = ("root: city}", "root: city, shares: {city: 1, borough: 0, zone: 2}}")
WHOLE = (", numbers: real", "")
RESIDUALS = ("[]], numbers: real}", "[]], residuals: true}")
#: Kinds of released, and what is changed in their specs.
KINDS = {
    "histogram": ("histogram", ()),
    "noise": ("moved", ((BOUNDED, "hold: []"), ("method: onto", "method: noise"))),
    "hierarchy by onto": ("moved", ()),
    "hierarchy by onto, Gaussian": ("moved", (GAUSSIAN,)),
    "hierarchy given": ("moved", (ADDS_UP, GIVEN)),
    "hierarchy given, Gaussian": ("moved", (GAUSSIAN, ADDS_UP, GIVEN)),
    "hierarchy given, most below": ("moved", (ADDS_UP, GIVEN, UNEQUAL)),
    "given, then onto": ("moved", (("method: onto", "method: given-then-onto"),)),
    "categories given": ("hierarchy", ((BOTH, "hold: [consistent, {exact: [city]}]"),)),
    "categories by onto": ("hierarchy", ((f"{BOTH}\nmethod: given", BOTH.replace("city", "borough")),)),
    "given with bounds": ("hierarchy", ()),
    "cube": ("margins", ()),
    "exact margins": ("contingency", ()),
    "several tables": ("several", ()),
    "not measured": ("moved", (UNMEASURED,)),
    "exact total": (
        "contingency",
        (("cube: [sex, age]", "histogram: age"), ("[[sex], [age]]", "[total]"), WHOLE, GIVEN),
    ),
    "exact margins given": ("contingency", (WHOLE, GIVEN)),
    "margins given, Gaussian": ("margins", (GAUSSIAN, WHOLE, GIVEN)),
    "margins made for, Gaussian": ("margins", (GAUSSIAN, ("method: onto", "method: extend-optimal"))),
    "residuals": ("margins", (GAUSSIAN, RESIDUALS)),
    "continuous, given": ("contingency", (GIVEN,)),
}
WIDE = (TWO, GIVEN, ("epsilon: 1.0", "epsilon: 0.1"))
#: Those whose errors are simulated: few of them show no rare ones.
SIMULATED = ("exact margins given", "margins given, Gaussian", "residuals", "continuous, given")


def folder(place, kind):
    """Release a kind into a folder of its own."""
    place.mkdir()
    if kind == "areas":
        town.write(place)
        return town.job(place).release().folder
    if kind == "linked":
        (place / "blocks.csv").write_text("street,block\nA,A1\nA,A2\nB,B1\nB,B2\n")
        (place / "spec.yaml").write_text(village.SPEC)
        village.write(place, village.persons())
        return hf.job(place / "spec.yaml").release().folder
    name, changes = ("moved", WIDE) if kind == "wide" else KINDS[kind]
    return release(released.job(place, name, *changes))


def questions(table, seed=0):
    """Names by one column and by two, one value and several."""
    rng, columns, found = np.random.default_rng(seed), table.certificate.columns[1:], []
    values = {name: [str(each) for each in dict.fromkeys(table.columns[name].tolist()) if each] for name in columns}
    for name in columns:
        some = values[name]
        found += [{name: some[0]}, {name: some[-1]}]
        if len(some) > 1:
            found += [{name: sorted(rng.choice(some, 2, replace=False).tolist())}, {name: some}]
        others = [other for other in columns if other != name]
        if others:
            other = str(rng.choice(others))
            found.append({name: some[0], other: values[other][-2:]})
    return found


def answered(ask):
    """An answer of Python; None where it is refused."""
    try:
        found = ask()
    except hf.Refused:
        return None
    return [found.value, found.low, found.high, found.standard_error]
