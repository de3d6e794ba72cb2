"""The planner asked without a browser."""

import copy
import json
import random
import re

from starlette.testclient import TestClient

from holdfast.page.draft import Base
from holdfast.page.planning import Planner
from holdfast.page.server import Site, app
from jobs import ZONES, tree

TOKEN, HOST = "a-token-that-nobody-guesses", "127.0.0.1:8000"
HERE = f"http://{HOST}"
VERBS = ("plan", "methods", "prices", "compare", "solve", "write")


def opened(folder, text):
    (folder / "zones.csv").write_text(ZONES)
    (folder / "spec.yaml").write_text(f"# A comment\ntitle: Test <b>\noutput: out  # a folder\n{text}")
    site = Site(Base.read(folder / "spec.yaml"), Planner())
    return TestClient(app(site, TOKEN, frozenset({HOST})), base_url=HERE, raise_server_exceptions=True), site


def opened_with_a_guess(folder):
    rest = "hold: [consistent, nonnegative]\nmethod: onto"
    return opened(folder, tree(table="guess: 50, shares: {borough: 0.4, zone: 0.6}", rest=rest))


def ask(client, verb, sent, **headers):
    return client.post(f"/{TOKEN}/{verb}", content=json.dumps(sent), headers={"Origin": HERE, **headers})


def moved(site, **changes):
    fields = copy.deepcopy(site.base.fields)
    fields["budget"].update(changes.pop("budget", {}))
    fields["tables"][0].update(changes)
    return fields


def errors(answer):
    """The figures of the page, by level."""
    found = re.findall(r'data-level="([^"]+)" data-error="([^"]+)"', answer.json()["parts"]["errors"])
    return {name: float(error) for name, error in found}


NONSENSE = (
    None, True, -1, 0, 3.5, 1e400, 10**40, "", "nan", "inf", "1e999", "-0", "0x10", "1_000", "&a [*a]", "{a: *b}",
    "!!python/object:x {}", "x" * 3000, "\0", "\u202e", "{{7*7}}", "<script>", "[" * 400, "2026-01-01", "consistent",
    [], {}, [[]], {"a": {}}, ["x"], [None], {"": ""}, "{exact: [zone]}", "{either: [nonnegative, nonnegative]}",
    "{equals: {sum: [N1], value: 1e300}}",
)  # fmt: skip


def scrambled(value, chance):
    """The same with something else at a random place."""
    if chance.random() < 0.05:
        return chance.choice(NONSENSE)
    if isinstance(value, dict):
        return {key: scrambled(each, chance) for key, each in value.items() if chance.random() > 0.01}
    if isinstance(value, list):
        return [scrambled(each, chance) for each in value] + (
            [chance.choice(NONSENSE)] if chance.random() < 0.08 else []
        )
    return value


def scrambled_requests(client, site, count, seed):
    """Ask for nonsense; yield whether it was answered or refused, and what is wrong with the answer, if anything."""
    chance = random.Random(seed)
    for i in range(count):
        verb = VERBS[i % len(VERBS)] if i % 50 == 0 else chance.choice(("plan", "solve", "compare", "write"))
        fields = moved(site)
        sent = {"fields": fields, "kept": fields, "wanted": [{"zone": "2"}], "number": i, "name": f"s{i}.yaml"}
        answer = ask(client, verb, scrambled(sent, chance))
        wrong = answer.status_code not in (200, 422) or "Traceback" in answer.text
        wrong = wrong or (answer.status_code == 422 and not 10 < len(answer.json()["refused"]) < 3000)
        yield "answered" if answer.status_code == 200 else "refused", f"request {i}: {answer.text}" if wrong else None
