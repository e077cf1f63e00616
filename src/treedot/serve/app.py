"""The web application: routes, requests to workers, and files of the pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from functools import partial
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response

from treedot._runtime.ending import before_end
from treedot.serve.answers import Answer, Given, answer, prepare, read_index, read_model, train_example
from treedot.serve.fields import TOPICS
from treedot.serve.openapi import description
from treedot.serve.pages.layout import layout, part, script, style_sheet
from treedot.serve.pages.layout import problem as page_problem
from treedot.serve.safety import Safety, problem
from treedot.serve.versions import Kept
from treedot.serve.workers import BusyError, CrashError, Limits, TooSlowError, Workers

FILES = {"serve.css": "text/css", "serve.js": "text/javascript", "icon.svg": "image/svg+xml"}
SHARED = {"serve.css": style_sheet, "serve.js": script}  # what adds the parts that reports have, too
MAX_BODY = 1 << 20  # bytes
MAX_FIELDS = 40
BODY_SECONDS = 10.0  # for a client to send it
TRAINING = Limits(seconds=60.0, patience=120.0)

Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


def make_app(
    port: int, given: Given | None = None, *, origins: Iterable[str] = (), workers: int | None = None
) -> Starlette:
    """Return the application.

    Parameters
    ----------
    port : int
        The port that the server listens on, which requests must name as their host.
    given : Given, default=None
        The index and the model.
    origins : iterable of str, default=()
        Further origins of pages, for a proxy.
    workers : int, default=None
        The number of processes that do the work; by default as many as there are cores, at most 4.
    """
    state = _Server(given or Given(), Workers(workers or min(os.cpu_count() or 1, 4)))
    app = Starlette(
        middleware=[Middleware(Safety, port=port, origins=origins)],
        lifespan=state.running,
        exception_handlers={HTTPException: _http_problem},
    )
    for name, topic in TOPICS.items():
        app.add_route(topic.page, state.page(name), ["GET", "POST"])
        app.add_route(f"/api/{name}", state.values(name), ["GET", "POST"])
    app.add_route("/api/openapi.json", _static(json.dumps(description()), "application/json"), ["GET"])
    for file, kind in FILES.items():
        app.add_route(f"/static/{file}", _static(_file(file), kind), ["GET"])
    return app


class _Server:
    """The state that the routes share."""

    def __init__(self, given: Given, workers: Workers) -> None:
        self._given, self._workers = given, workers
        self._example: str | None = None  # the folder of a model of the example questions
        self._training = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def running(self, app: Starlette) -> AsyncIterator[None]:
        """Work until the context ends; without an index or a model, train that of the examples at once."""
        with tempfile.TemporaryDirectory(prefix="treedot-") as folder:
            self._folder = folder
            self._index = self._kept(self._given.index, read_index)
            self._model = self._kept(self._given.model, read_model)
            before_end(lambda: shutil.rmtree(folder, ignore_errors=True))
            training = None if self._given != Given() else asyncio.create_task(self._with_model())
            try:
                yield
            finally:
                self._workers.end()
                if training is not None:
                    training.cancel()

    def _kept(self, path: str | None, read: Callable[[str], None]) -> Kept | None:
        return None if path is None else Kept(path, self._folder, partial(self._workers.do, read))

    async def _now(self) -> Given:
        """Return where to read the index and the model now."""
        index, model = [None if one is None else await one.current() for one in (self._index, self._model)]
        return Given(index, model)

    async def _with_model(self) -> Given:
        """Return the index and the model; without a given model, that of the example questions."""
        now = await self._now()
        if now.model is not None:
            return now
        async with self._training:
            if self._example is None:
                folder = os.path.join(self._folder, "questions.model")
                await self._workers.do(train_example, folder, limits=TRAINING)
                self._example = folder
        return replace(now, model=self._example, is_example=True)

    def page(self, name: str) -> Endpoint:
        async def respond(request: Request) -> Response:
            found = await self._answer(name, True, dict(await _form(request)))
            return HTMLResponse(found.body, found.status)

        return respond

    def values(self, name: str) -> Endpoint:
        async def respond(request: Request) -> Response:
            found = await self._answer(name, False, await _fields(request))
            return Response(found.body, found.status, media_type="application/json")

        return respond

    async def _answer(self, name: str, as_page: bool, fields: Mapping[str, Any]) -> Answer:
        try:
            given = await self._with_model() if name == "explain" else await self._now()
            return await self._workers.do(answer, name, as_page, fields, given, before=partial(prepare, name))
        except TooSlowError:
            raise HTTPException(413, "this takes too long: give smaller trees, or change settings") from None
        except CrashError:
            raise HTTPException(413, "this input ended the process that worked on it") from None
        except BusyError:
            raise HTTPException(429, "too many requests at once: try again") from None


async def _form(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a page, from the query or from a form."""
    if request.method != "POST":
        return _pairs(request.scope["query_string"])
    _check_type(request, "application/x-www-form-urlencoded")
    return _pairs(await _body(request))


async def _fields(request: Request) -> dict[str, Any]:
    """Return the fields of the JSON interface, from the query or from an object in JSON."""
    if request.method != "POST":
        return dict(_pairs(request.scope["query_string"]))
    _check_type(request, "application/json")
    try:
        found = json.loads(await _body(request))
    except (ValueError, RecursionError):
        raise HTTPException(400, "the body is not JSON") from None
    if not isinstance(found, dict):
        raise HTTPException(400, "the body must be an object, with the fields of the request")
    return found


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        decoded = text.decode("ascii")
        return parse_qsl(decoded, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise HTTPException(400, "the fields are not valid UTF-8, or too many") from None


def _check_type(request: Request, wanted: str) -> None:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != wanted:
        raise HTTPException(415, f"the content type must be {wanted}")


async def _body(request: Request) -> bytes:
    """Return the body of a request; refuse one that is too large, or takes too long to arrive."""
    too_large = HTTPException(413, f"the request has more than {MAX_BODY:,} bytes")
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15 or int(length) > MAX_BODY:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise too_large
    except (TimeoutError, ClientDisconnect):
        raise HTTPException(408, "the request did not arrive in time") from None
    return bytes(body)


def _file(name: str) -> str:
    text = files("treedot.serve").joinpath("static", name).read_text(encoding="utf-8")
    return SHARED[name](text) if name in SHARED else text


def _static(text: str, kind: str) -> Endpoint:
    async def respond(request: Request) -> Response:
        return Response(text, media_type=kind, headers={"Cache-Control": "no-cache"})

    return respond


async def _http_problem(request: Request, error: Exception) -> Response:
    status, message = getattr(error, "status_code", 500), str(getattr(error, "detail", ""))
    if request.url.path not in [topic.page for topic in TOPICS.values()]:
        return problem(status, message)
    parts = "".join(part(name, page_problem(message)) for name in ("result", "estimates", "decode"))
    return HTMLResponse(layout("This did not work", parts), status)
