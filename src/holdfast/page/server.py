"""The server of the page: answers only who knows the token, from this machine, from the page itself.

Every answer forbids the browser to load anything from elsewhere. What cannot be done is answered by one sentence, and a
fault by its kind alone. No answer holds anything from the data source, which is never opened.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.arguments import Refused
from holdfast.page.draft import KINDS, Base, Draft, draft
from holdfast.page.planning import Planned, Planner, Price, best, in_decimals, prices, solved
from holdfast.pictures import Picture, bars, hundred, number, spreads
from holdfast.pictures.pages import filled, policy_of, text_of
from holdfast.privacy import odds
from holdfast.privacy.words import describe
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.job.errors import Errors, LevelErrors
from holdfast.release.job.job import Job, protected
from holdfast.release.job.table import Table
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.report.label import answered
from holdfast.release.spec.rules import WORDS
from holdfast.release.spec.table import METHODS
from holdfast.release.storage.files import write_text
from holdfast.release.table.laid import Laid, laid
from holdfast.version import __version__

ROOM = "holdfast.page"
#: The part of errors that a limit in the table of errors is about.
MOST = 0.95


def page(base: Base, shape: Laid) -> tuple[str, str]:
    """Return the whole page and the content security policy that it needs."""
    style = text_of("holdfast.release", "report.css") + text_of(ROOM, "page.css")
    script = text_of(ROOM, "page.js")
    tables = [
        {
            "name": table.name,
            "levels": table.layout.levels,
            "exact": _can_be_exact(table),
            "minimise": table.layout.asked.minimise,
        }
        for table in shape.tables
    ]
    text = _filled(
        "page.html",
        title=shape.title,
        file=base.path.name,
        tables=tables,
        fields=base.fields,
        start=json.dumps(base.fields),
        kinds=KINDS,
        words=WORDS,
        methods=METHODS,
        version=__version__,
        style=Markup(style),
        script=Markup(script),
    )
    more = ("connect-src 'self'", "img-src data:", "frame-ancestors 'none'")
    return text, policy_of(style, script, *more)


def _can_be_exact(table: Any) -> tuple[str, ...]:
    """What a box can make exact: levels of a hierarchy; the total and single axes of other tables."""
    laid = table.layout
    return tuple(laid.levels) if laid.tree is not None else ("total", *(laid.names if len(laid.names) > 1 else ()))


def shown_plan(planned: Planned, disclosed: Sequence[str]) -> dict[str, str]:
    """The parts that a plan fills: what it promises, how wrong it is, what it protects and gives away."""
    return {
        "promise": _filled("promise.html", job=planned.job, promise=planned.job.guarantee),
        "errors": _filled("errors.html", planned=planned, tables=_tables(planned), most=MOST),
        "protects": _filled("protects.html", job=planned.job, disclosed=disclosed, protected=protected),
    }


def _tables(planned: Planned) -> list[dict[str, Any]]:
    several = len(planned.job.tables) > 1
    return [
        {
            "name": table.name if several else "",
            "method": table.chosen.method,
            "law": table.chosen.noise,
            "outlook": outlook,
            "shares": _parts_of_budget(table),
            "picture": _distribution(outlook),
            "error_bars": table.chosen.error_bars,
        }
        for table, outlook in zip(planned.job.tables, planned.outlooks, strict=True)
    ]


def _parts_of_budget(table: Table) -> dict[str, str] | None:
    """What part of the budget every level has; what costs nothing has all of it."""
    shares = table.problem.shares
    if shares is None:
        return None
    return {level: f"{min(float(shares.get(level, 0)), 1):.3g}" for level in table.layout.levels}


def _rough(value: float) -> str:
    return number(float(f"{value:.2g}"))


def _distribution(outlook: Errors) -> Picture:
    rows = [(level.name, level.bars.tolist(), level.reach, level.within(MOST)) for level in outlook.levels]
    return spreads(rows, "error; the line holds 95 in 100")


def shown_methods(job: Job) -> dict[str, str]:
    shown = []
    for table in job.tables:
        known = [each for each in table.comparison if each.expected_absolute_error is not None]
        several = len({each.noise for each in table.comparison}) > 1
        rows = [(_named(each, several), each.expected_absolute_error or 0.0, 0.0) for each in known]
        chosen = [i for i, each in enumerate(known) if each.chosen]
        picture = bars(rows, "mean over levels of the expected absolute error", chosen) if len(rows) > 1 else None
        shown.append({"table": table, "picture": picture, "several": several})
    return {"methods": _filled("methods.html", tables=shown, named=_named)}


def _named(each: Any, several: bool) -> str:
    return f"{each.method} ({each.noise})" if several else str(each.method)


def shown_prices(found: Sequence[Price], several: bool) -> dict[str, str]:
    return {"prices": _filled("prices.html", prices=found, several=several)}


def shown_comparison(kept: Planned, now: Planned) -> dict[str, str]:
    rows = []
    for t, (before, after) in enumerate(zip(kept.outlooks, now.outlooks, strict=True)):
        for a, b in zip(before.levels, after.levels, strict=True):
            name = f"{now.job.tables[t].name}: {a.name}" if len(now.outlooks) > 1 else a.name
            rows.append((name, a, b, _change(a, b)))
    return {"compare": _filled("compare.html", rows=rows, plans=(kept, now))}


def _change(a: LevelErrors, b: LevelErrors) -> str:
    if not (a.known and b.known):
        return "–"
    if a.absolute == b.absolute or max(a.absolute, b.absolute) == 0:
        return "the same"
    if min(a.absolute, b.absolute) == 0:
        return "now exact" if b.absolute == 0 else "no longer exact"
    part = b.absolute / a.absolute - 1
    return f"{'+' if part > 0 else '−'}{abs(100 * part):.0f} %"


def _error(level: LevelErrors) -> str:
    """An error for people: exact, unknown or a number."""
    if not level.known:
        return "depends on the data"
    return "exact" if level.absolute == 0 else number(level.absolute)


def _filled(name: str, **values: Any) -> str:
    words = {"odds": odds, "describe": describe, "answered": answered, "number": number, "rough": _rough}
    return filled(ROOM, name, error=_error, hundred=hundred, **words, **values)


#: The longest request that is read.
LONGEST = 200_000
#: Figures of a spec that is planned before its page is opened, so that the first answer does not wait.
AT_ONCE = 20_000
#: How a spec may be called that the page writes, always beside the one it began with.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}\.ya?ml")
STRANGER = "this address is not the one that holdfast page printed: open that one"
ELSEWHERE = "the planner answers its own page only"
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True)
class Site:
    """One page: the spec that it began with, and who plans."""

    base: Base
    planner: Planner

    def draft(self, sent: Mapping[str, Any], name: str = "fields") -> Draft:
        return draft(self.base, sent.get(name))

    def plan(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Plan at once, or measured."""
        made, slow = self.draft(sent), sent.get("stage") == "measured"
        planned = self.planner.measured(made.spec) if slow else self.planner.at_once(made.spec)
        told: list[str] = []
        if slow:
            job = planned.job
            told = so_far(job, Ledger(job.spec.ledger_file).figures(job.dataset))
        return {"parts": shown_plan(planned, told), "text": made.text, "measured": planned.measured}

    def methods(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"parts": shown_methods(self.planner.compared(self.draft(sent).spec))}

    def prices(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        planned = self.planner.at_once(self.draft(sent).spec)
        return {"parts": shown_prices(prices(self.planner, planned), len(planned.job.tables) > 1)}

    def compare(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Put a plan that was kept beside the one of now."""
        kept, now = (self.planner.at_once(self.draft(sent, name).spec) for name in ("kept", "fields"))
        return {"parts": shown_comparison(kept, now)}

    def solve(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Find the budget for the errors that are wanted; without any, the best split."""
        spec, wanted = self.draft(sent).spec, sent.get("wanted")
        if sent.get("best") is True:
            return {"amount": None, "shares": _shares(best(self.planner, spec))}
        if not isinstance(wanted, list):
            raise Refused("the errors that are wanted must be a list with a mapping for every table: reload the page")
        found = solved(self.planner, spec, wanted, split=sent.get("split") is True)
        return {"amount": f"{found.amount:f}", "shares": _shares(found.shares)}

    def write(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Write the spec beside the first one; never over a file unless that was said."""
        made, name = self.draft(sent), sent.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise Refused("a spec is called by letters, digits, dots and hyphens, and ends in .yaml")
        path = self.base.path.with_name(name)
        if path.is_symlink() or path.is_dir():
            raise Refused(f"{name!r} is no plain file: choose another name")
        try:
            _written(path, made.text, over=sent.get("over") is True)
        except FileExistsError:
            return {"exists": name}
        except OSError as error:
            raise Refused(f"{name!r} cannot be written: {error.strerror}") from None
        return {"written": name}


def _shares(found: Any) -> list[dict[str, str] | None]:
    return [
        None if each is None else {name: f"{share:f}" for name, share in in_decimals(each).items()} for each in found
    ]


def _written(path: Path, text: str, *, over: bool) -> None:
    """Write beside the file and give it its name at last, so that it is never half there, nor over another unasked."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        write_text(beside, text)
        if over:
            beside.replace(path)
        else:
            os.link(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def app(site: Site, token: str, hosts: frozenset[str]) -> ASGIApp:
    """The application: the page, and its verbs under the token."""
    verbs = {name: getattr(site, name) for name in ("plan", "methods", "prices", "compare", "solve", "write")}
    spec = draft(site.base, site.base.fields).spec
    shapes = laid(spec)[0]
    text, policy = page(site.base, shapes)
    if sum(table.layout.query.n for table in shapes.tables) <= AT_ONCE:
        with suppress(Refused):  # the page says why
            site.planner.at_once(spec)

    async def whole(_: Request) -> Response:
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    routes = [Route(f"/{token}/", whole, methods=["GET"])]
    routes += [Route(f"/{token}/{name}", _answering(verb), methods=["POST"]) for name, verb in verbs.items()]
    return Guard(Starlette(routes=routes), token, hosts)


def _answering(verb: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            sent = await _read(request)
            return JSONResponse(await run_in_threadpool(verb, sent))
        except Refused as refusal:
            return JSONResponse({"refused": str(refusal)}, status_code=422)
        except Exception as fault:
            # Of what is no sentence of ours only the kind.
            return JSONResponse({"refused": f"a fault of holdfast ({type(fault).__name__})"}, status_code=500)

    return answer


async def _read(request: Request) -> Mapping[str, Any]:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LONGEST:
            raise Refused(f"a request of the page has at most {LONGEST} characters")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused("the page sent something that is not JSON: reload it") from None
    if not isinstance(found, dict):
        raise Refused("the page sent something that is not a mapping: reload it")
    return found


class Guard:
    """Lets nobody in who does not know the token, calls the machine by another name, or comes from another page."""

    def __init__(self, inner: ASGIApp, token: str, hosts: frozenset[str]) -> None:
        self._inner, self._token, self._hosts = inner, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        why = self._refused(request)
        inner = self._inner if why is None else PlainTextResponse(why, status_code=403)

        async def guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                wanted = {"Content-Security-Policy": NOTHING, **HEADERS}
                message["headers"] = [
                    *message["headers"],
                    *((k.encode(), v.encode()) for k, v in wanted.items() if k.lower().encode() not in present),
                ]
            await send(message)

        await inner(scope, receive, guarded)

    def _refused(self, request: Request) -> str | None:
        """Why a request is not answered; None: it is."""
        if request.headers.get("host", "") not in self._hosts:
            return ELSEWHERE
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
        own = {f"http://{host}" for host in self._hosts}
        if (origin is not None and origin not in own) or site in ("cross-site", "same-site"):
            return ELSEWHERE
        if request.method != "GET" and origin is None:
            return ELSEWHERE
        token = request.url.path.split("/")[1] if "/" in request.url.path else ""
        return None if secrets.compare_digest(token.encode(), self._token.encode()) else STRANGER


# --- serving the page: on this machine alone, at a free port, under a token that nobody can guess --------------------

#: The one address that is listened at: nobody on a network reaches it.
LOOPBACK = "127.0.0.1"


@contextmanager
def opened(spec: Path, port: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Lay a spec out and open a door to its page: the address, and what serves it until it is interrupted."""
    site = Site(Base.read(spec), Planner())
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((LOOPBACK, port))
        except OSError as error:
            raise Refused(f"the port {port} cannot be used: {error.strerror}; --port 0 takes a free one") from None
        port, token = door.getsockname()[1], secrets.token_urlsafe(24)
        settings = uvicorn.Config(
            app(site, token, frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )

        def serve() -> None:
            with suppress(KeyboardInterrupt):  # the usual way to stop it
                uvicorn.Server(settings).run(sockets=[door])

        yield f"http://{LOOPBACK}:{port}/{token}/", serve
