"""Refuse requests of other hosts and other sites' pages, and requests that are too large.

A page of another site can make a browser send requests to a local server. It cannot read the answers, unless
it first makes its own name point to this machine (DNS rebinding); then the header ``Host`` names that site.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Safety:
    """Answers only requests of its own pages and of programs; adds headers that protect the pages.

    Parameters
    ----------
    app : ASGI application
        What answers a safe request.
    port : int
        The port that the server listens on.
    origins : iterable of str
        Further origins that pages may come from, such as ``https://trees.example.org`` of a proxy.
    """

    def __init__(self, app: ASGIApp, port: int, origins: Iterable[str] = ()) -> None:
        self._app = app
        self._origins = {f"http://{name}:{port}" for name in ("127.0.0.1", "localhost")} | set(origins)
        self._hosts = {urlsplit(origin).netloc for origin in self._origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: refused before it is accepted
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def send_safely(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(Request(scope))
        try:
            await (refused or self._app)(scope, receive, send_safely)
        except Exception as error:  # a client never sees a traceback
            traceback.print_exception(error, file=sys.stderr)
            if not started:
                message = "an unexpected error; the log of the server describes it"
                await problem(500, message)(scope, receive, send_safely)

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that is refused; None for all others."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return problem(421, "this server answers only requests to its own address")
        origins = request.headers.getlist("origin")
        if any(origin not in self._origins for origin in origins):
            return problem(403, "pages of other sites may not use this server")
        is_link = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_link:
            return problem(403, "pages of other sites may not use this server")
        if request.method not in METHODS:
            return problem(405, f"the methods are {', '.join(METHODS)}")
        return None


def problem(status: int, message: str) -> JSONResponse:
    """Return a response that says what is wrong."""
    return JSONResponse({"error": message}, status, HEADERS)
