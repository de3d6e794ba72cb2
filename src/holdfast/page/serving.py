"""Serving the page: on this machine alone, at a free port, under a token that nobody can guess."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.arguments import Refused

#: The one address that is listened at: nobody on a network reaches it.
LOOPBACK = "127.0.0.1"


@contextmanager
def opened(spec: Path, port: int) -> Iterator[tuple[str, Callable[[], None]]]:
    """Lay a spec out and open a door to its page: the address, and what serves it until it is interrupted."""
    try:
        import uvicorn

        from holdfast.page.server import Site, app
    except ImportError:
        raise Refused("the page needs Starlette and uvicorn: pip install 'holdfast[page]'") from None
    from holdfast.page.draft import Base
    from holdfast.page.planning import Planner

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
