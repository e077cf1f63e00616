"""Run the application on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable

import uvicorn

from treedot.errors import ParameterError
from treedot.serve.answers import Given
from treedot.serve.app import make_app
from treedot.serve.protocol import ARRIVAL, Protocol

ADDRESS = "127.0.0.1"  # only this machine
BACKLOG = 256  # connections that the system keeps until they are accepted
MAX_HEAD = 1 << 18  # bytes of a link and the headers of a request


def serve(
    port: int, given: Given, origins: Iterable[str] = (), ready: Callable[[str], object] = print
) -> None:
    """Answer requests until a signal ends the process; ``ready`` gets the address first."""
    with listening(port) as listener:
        bound = listener.getsockname()[1]
        app = make_app(bound, given, origins=origins)
        ready(f"http://{ADDRESS}:{bound}/")
        server(app).run(sockets=[listener])


def listening(port: int) -> socket.socket:
    """Return a socket that listens on a port of this machine; 0 chooses a free one."""
    try:
        listener = socket.create_server((ADDRESS, port), backlog=BACKLOG)
        # Connections inherit it. Otherwise the body of an answer waits 40 ms for its headers to be confirmed.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise ParameterError(f"cannot listen on port {port}: {error}; choose another with --port") from None


def server(app: object) -> uvicorn.Server:
    """Return the server of an application."""
    config = uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=Protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=int(ARRIVAL),
        h11_max_incomplete_event_size=MAX_HEAD,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)
