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
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.arguments import Refused
from holdfast.page import showing, solving
from holdfast.page.draft import Base, Draft, draft
from holdfast.page.planning import Planner
from holdfast.page.solving import prices
from holdfast.release.disclosure.disclosure import so_far
from holdfast.release.ledger.ledger import Ledger
from holdfast.release.storage.files import write_text
from holdfast.release.table.laid import laid

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
        return {"parts": showing.plan(planned, told), "text": made.text, "measured": planned.measured}

    def methods(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"parts": showing.methods(self.planner.compared(self.draft(sent).spec))}

    def prices(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        planned = self.planner.at_once(self.draft(sent).spec)
        return {"parts": showing.prices(prices(self.planner, planned), len(planned.job.tables) > 1)}

    def compare(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Put a plan that was kept beside the one of now."""
        kept, now = (self.planner.at_once(self.draft(sent, name).spec) for name in ("kept", "fields"))
        return {"parts": showing.compare(kept, now)}

    def solve(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Find the budget for the errors that are wanted; without any, the best split."""
        spec, wanted = self.draft(sent).spec, sent.get("wanted")
        if sent.get("best") is True:
            return {"amount": None, "shares": _shares(solving.best(self.planner, spec))}
        if not isinstance(wanted, list):
            raise Refused("the errors that are wanted must be a list with a mapping for every table: reload the page")
        found = solving.solved(self.planner, spec, wanted, split=sent.get("split") is True)
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
        None if each is None else {name: f"{share:f}" for name, share in solving.in_decimals(each).items()}
        for each in found
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
    text, policy = showing.page(site.base, shapes)
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
