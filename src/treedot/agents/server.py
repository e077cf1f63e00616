"""A server of the Model Context Protocol on standard input and output: two tools for coding agents."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from typing import IO, Any

import anyio
import anyio.to_thread
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

from treedot._storage.files import reason, standard_input
from treedot._version import __version__
from treedot.agents import answers
from treedot.errors import LimitError, ParameterError, SourceError, TreedotError
from treedot.languages import LANGUAGES
from treedot.search.index.followed_index import FollowedIndex

PATIENCE = 10.0  # seconds that a request waits for an index that is being built
AT_ONCE = 2  # requests that are worked on
MAX_LINE = 1 << 20  # bytes of a message
BUILDING = "the index is being built: ask again in a few seconds"
INSTRUCTIONS = "Before you write a function, ask find_similar whether something like it exists already."
BROKEN = "an unexpected error in treedot; its log describes it"

log = logging.getLogger("treedot")

_LANGUAGE = {
    "type": "string",
    "description": f"language of the code: {', '.join(LANGUAGES)}; by default the main one of the index",
}
_PIECE = (
    f"source code of at most {answers.MAX_CODE:,} characters, or the place of an indexed function as "
    "find_similar prints it, such as src/a.py:12"
)
TOOLS = (
    Tool(
        name="find_similar",
        description="Find functions of this project whose structure is similar to given code, even if names, "
        "literals and some lines differ. Use it before you write or after you change a function, to see "
        "whether something like it exists already. Returns places (file:lines name), similarity from 0 to 1, "
        "and which lines and names differ.",
        input_schema={
            "type": "object",
            "properties": {
                "code": {
                    "type": "string",
                    "description": f"whole functions or statements, at most {answers.MAX_CODE:,} characters",
                },
                "language": _LANGUAGE,
                "k": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": answers.MAX_RESULTS,
                    "default": 5,
                    "description": "number of results",
                },
            },
            "required": ["code"],
        },
        annotations=ToolAnnotations(title="Find similar code", read_only_hint=True, open_world_hint=False),
    ),
    Tool(
        name="compare",
        description="Compare two functions or pieces of code: the similarity of their structure from 0 to 1, "
        "the edit distance of their syntax trees, renamed names, and the lines that differ.",
        input_schema={
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": _PIECE},
                "b": {"type": "string", "description": _PIECE},
                "language": _LANGUAGE,
            },
            "required": ["a", "b"],
        },
        annotations=ToolAnnotations(title="Compare code", read_only_hint=True, open_world_hint=False),
    ),
)


class Tools:
    """Answers calls of the tools.

    Parameters
    ----------
    open_index : callable
        Returns the index. It is called in another thread at once, and after a failure for the next request.
    """

    def __init__(self, open_index: Callable[[], FollowedIndex]) -> None:
        self._open_index = open_index
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._opened = self._open()

    def _open(self) -> Future[FollowedIndex]:
        opened: Future[FollowedIndex] = Future()

        def work() -> None:
            try:
                index = self._open_index()
                index.look()
            except BaseException as error:
                opened.set_exception(error)
            else:
                opened.set_result(index)

        threading.Thread(target=work, daemon=True).start()
        return opened

    def _index(self) -> FollowedIndex:
        """Return the index; raise LimitError if it is not ready."""
        with self._lock:
            if self._opened.done() and self._opened.exception() is not None:
                self._opened = self._open()
        try:
            return self._opened.result(PATIENCE)
        except TimeoutError:
            raise LimitError(BUILDING) from None

    def call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Return the answer of a tool; errors are answers, too."""
        try:
            with self._places:
                return _result(self._answer(name, arguments))
        except (TreedotError, OSError) as error:
            return _result(str(error), is_error=True)
        except (RecursionError, MemoryError):
            return _result("the code is nested too deeply or too large: give a part of it", is_error=True)
        except Exception:
            log.exception("unexpected error in %s", name)
            return _result(BROKEN, is_error=True)

    def _answer(self, name: str, arguments: dict[str, Any]) -> str:
        tool = next((tool for tool in TOOLS if tool.name == name), None)
        if tool is None:
            raise ParameterError(f"no tool has this name: use {' or '.join(tool.name for tool in TOOLS)}")
        _check(tool, arguments)
        if name == "find_similar":
            return answers.find_similar(self._index(), **arguments)
        return answers.compare(self._index(), **arguments)


def _check(tool: Tool, arguments: dict[str, Any]) -> None:
    """Raise ParameterError unless arguments have the names and types of a tool; remove null ones."""
    known = tool.input_schema["properties"]
    for name in [name for name, value in arguments.items() if value is None]:
        del arguments[name]
    if missing := [name for name in tool.input_schema["required"] if name not in arguments]:
        raise ParameterError(f"{tool.name} needs the argument {missing[0]!r}")
    for name, value in arguments.items():
        if name not in known:
            raise ParameterError(f"{tool.name} has no argument of this name: use {', '.join(known)}")
        kind = int if known[name]["type"] == "integer" else str
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ParameterError(f"{name} must be {'an integer' if kind is int else 'a text'}")


def _result(text: str, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


class _Lines:
    """The lines of a binary stream as text; longer ones are dropped, and so is the message in them."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readline(self) -> str:
        line = self._stream.readline(MAX_LINE + 1)
        if len(line) <= MAX_LINE:
            return line.decode("utf-8", "replace")
        while line and not line.endswith(b"\n"):
            line = self._stream.readline(MAX_LINE)
        return "{}\n"


def serve(open_index: Callable[[], FollowedIndex]) -> None:
    """Serve the tools on standard input and output, until standard input ends.

    Everything that is printed meanwhile goes to standard error.
    """
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="treedot: %(message)s")
    stream = standard_input()
    server = make_server(Tools(open_index))

    async def run() -> None:
        async with stdio_server(stdin=anyio.wrap_file(_Lines(stream))) as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    if sys.__stdout__ is None:
        raise SourceError("cannot write to standard output: it is closed")
    with contextlib.redirect_stdout(sys.__stdout__), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about grammars of other versions: nobody reads the log
        try:
            anyio.run(run)
        except* BrokenPipeError:
            pass  # the client has ended
        except* OSError as group:
            error = group.exceptions[0]
            raise SourceError(f"cannot write to standard output: {reason(error)}") from error


def make_server(tools: Tools) -> Server[Any]:
    """Return a server of the protocol that offers the tools."""

    async def listed(context: Any, params: Any) -> ListToolsResult:
        return ListToolsResult(tools=list(TOOLS))

    async def called(context: Any, params: Any) -> CallToolResult:
        return await anyio.to_thread.run_sync(tools.call, params.name, dict(params.arguments or {}))

    return Server(
        "treedot", version=__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )
