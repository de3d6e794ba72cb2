"""The planner asked without a browser."""

import copy
import json
import re

from starlette.testclient import TestClient

from holdfast.page.draft import Base
from holdfast.page.planning import Planner
from holdfast.page.server import Site, app
from jobs import ZONES

TOKEN, HOST = "a-token-that-nobody-guesses", "127.0.0.1:8000"
HERE = f"http://{HOST}"


def opened(folder, text):
    (folder / "zones.csv").write_text(ZONES)
    (folder / "spec.yaml").write_text(f"# A comment\ntitle: Test <b>\noutput: out  # a folder\n{text}")
    site = Site(Base.read(folder / "spec.yaml"), Planner())
    return TestClient(app(site, TOKEN, frozenset({HOST})), base_url=HERE, raise_server_exceptions=True), site


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
