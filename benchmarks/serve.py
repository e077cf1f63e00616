"""Measure ``treedot serve`` and ``treedot mcp`` with an index of 100,000 functions.

``python -m benchmarks.serve`` starts the servers on this machine's own address, and ends them afterwards. The
index is built once, as ``treedot index`` does, of the functions of Python's standard library and of the
installed packages, with edited copies in files where they are too few; it is kept in the cache folder.
Latencies include the client, which shares the cores with the server, so run it on an idle machine. Processor
time and memory are those of a server with all its processes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from treedot import Forest, TreeIndex
from treedot.cli.units import iter_units
from treedot.languages import LANGUAGES, language_of
from treedot.readers.code.parse_cache import cache_folder
from treedot.readers.code.source_files import source_lines
from treedot.search.reading import Reading, digest_of
from treedot.serve.topics.status import QUESTION

LINES = 20  # of a function to search for
QUERIES = 200  # distinct functions
NODES = 300  # of functions to compare, or nearly so many
COMPARED = 40  # distinct functions
PATIENCE = 300.0  # seconds for an answer
NAME = re.compile(r"\b[a-z]\w{3,}\b(?!['\"])")  # not the prefix of a text
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Row(NamedTuple):
    """A figure and its bar: the largest value that is good enough."""

    what: str
    value: float
    bar: float | None
    unit: str

    def __str__(self) -> str:
        bar = "" if self.bar is None else f"{self.bar:g} {self.unit}".ljust(10)
        verdict = "" if self.bar is None else "ok" if self.value <= self.bar else "MISSED"
        return f"{self.what:64} {self.value:9.2f} {self.unit:5} {bar:10} {verdict}".rstrip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serve", description=__doc__)
    parser.add_argument("folders", nargs="*", help="folders of source code to index")
    parser.add_argument("--index", type=Path, help="an index to use, or to build if there is none")
    parser.add_argument(
        "--functions", type=int, default=100_000, help="number of functions (default: 100000)"
    )
    parser.add_argument(
        "--requests", type=int, default=20_000, help="requests of all clients (default: 20000)"
    )
    parser.add_argument("--clients", type=int, default=32, help="clients at the same time (default: 32)")
    parser.add_argument("--searches", type=int, default=1000, help="searches of one client (default: 1000)")
    parser.add_argument("--json", type=Path, help="also write the figures to a file")
    options = parser.parse_args(arguments)
    path = options.index or cache_folder() / "benchmarks" / f"functions-{options.functions}.index"
    if not path.exists():
        build(path, options.functions, options.folders)
    index = TreeIndex.open(path)
    print(f"{len(index):,} functions; load of the machine {os.getloadavg()[0]:.1f}")
    queries, pairs = chosen(index)
    rows = []
    for measure in (measured_mcp, measured_serve, measured_alone):
        for row in measure(path, queries, pairs, options):
            print(row, flush=True)
            rows.append(row)
    if options.json:
        options.json.write_text(
            json.dumps([row._asdict() for row in rows], indent=1) + "\n", encoding="utf-8"
        )


def build(path: Path, functions: int, folders: Sequence[str] = ()) -> None:
    """Build an index as ``treedot index`` does; edited copies, beside it, fill up too few functions."""
    folders = folders or list(dict.fromkeys(sysconfig.get_path(name) for name in ("stdlib", "purelib")))
    path.parent.mkdir(parents=True, exist_ok=True)
    reading = Reading(identifiers="keep", literals="keep")

    def units() -> Iterator[Forest]:
        files: list[str] = []
        for forest in iter_units(folders, reading, digest=digest_of, n_jobs=-1):
            files += forest.columns["file"][:1]
            yield forest
        for copy in count(1):
            for file in files:
                edited = write_copy(file, copy, path.with_suffix(".copies"))
                yield from iter_units([edited], reading, digest=digest_of)

    made = TreeIndex.build(first(units(), functions), path, idf=True, reading=reading.stored(), n_jobs=-1)
    print(f"{len(made):,} functions in {path}")


def first(forests: Iterable[Forest], count: int) -> Iterator[Forest]:
    """Yield forests with ``count`` trees in all."""
    for forest in forests:
        yield forest[:count]
        count -= len(forest)
        if count <= 0:
            return


def write_copy(file: str, copy: int, folder: Path) -> str:
    """Write a copy of a source file in which every name has a number at its end; return its path."""
    keywords = LANGUAGES[language_of(file) or "python"].keywords
    text = "\n".join(source_lines(file, language_of(file) or "python"))
    target = folder / str(copy) / file.lstrip(os.sep)
    target.parent.mkdir(parents=True, exist_ok=True)
    numbered = NAME.sub(lambda found: found[0] if found[0] in keywords else f"{found[0]}{copy}", text)
    target.write_text(numbered, encoding="utf-8", errors="replace")
    return os.fspath(target)


def chosen(index: TreeIndex) -> tuple[list[str], list[tuple[str, str]]]:
    """Return functions to search for, and pairs of functions to compare, as source code."""
    start, end, language = (np.array(index.column(name)) for name in ("start", "end", "language"))
    lines = end - start + 1
    random = np.random.default_rng(0)
    rows = random.permutation(np.flatnonzero(language == "python"))
    nearest = rows[np.argsort(abs(lines[rows] - LINES), kind="stable")]
    queries = list(islice(_sources(index, nearest.tolist()), QUERIES))
    candidates = rows[lines[rows] > LINES][: 20 * COMPARED]
    nodes = [index.forest([i]).n_nodes for i in candidates]
    order = candidates[np.argsort(abs(np.array(nodes) - NODES), kind="stable")]
    large = list(islice(_sources(index, order), COMPARED))
    return queries, list(zip(large[::2], large[1::2], strict=False))


def _sources(index: TreeIndex, rows: Sequence[int]) -> Iterator[str]:
    for i in rows:
        unit = index.forest([i]).columns
        lines = source_lines(unit["file"][0], "python")[unit["start"][0] - 1 : unit["end"][0]]
        text = textwrap.dedent("\n".join(lines))
        if text.startswith(("def ", "async def ")):  # lines of texts may begin before it
            yield text


class Tree:
    """A process with all that it started, as /proc shows it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def pids(self) -> list[int]:
        """Return the ids of the processes."""
        found = [self.pid]
        for pid in found:
            for task in _listed(f"/proc/{pid}/task"):
                found += map(int, _text(f"/proc/{pid}/task/{task}/children").split())
        return found

    def seconds(self) -> float:
        """Return the processor time so far, also of children that have ended."""
        fields = [_text(f"/proc/{pid}/stat").rpartition(")")[2].split() for pid in self.pids()]
        return sum(sum(map(int, one[11:15])) for one in fields if one) / TICKS

    def memory(self) -> float:
        """Return the resident memory in MB, without mapped files."""
        fields = [_text(f"/proc/{pid}/statm").split() for pid in self.pids()]
        return sum(int(one[1]) - int(one[2]) for one in fields if one) * PAGE / 1e6


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def percentiles(
    what: str, seconds: Sequence[float], p50: float | None = None, p95: float | None = None
) -> Iterator[Row]:
    for share, bar in ((50, p50), (95, p95)):
        yield Row(f"{what}, p{share}", 1000 * float(np.percentile(seconds, share)), bar, "ms")


def measured_mcp(
    path: Path, queries: list[str], pairs: list[tuple[str, str]], options: argparse.Namespace
) -> Iterator[Row]:
    """Yield the figures of ``treedot mcp``, with the client of the official SDK."""
    if find_spec("mcp") is None:
        print("treedot mcp was not measured: the library mcp is not installed")
        return
    import anyio

    yield from anyio.run(_mcp_session, path, queries, pairs, options.searches)


async def _mcp_session(
    path: Path, queries: list[str], pairs: list[tuple[str, str]], searches: int
) -> list[Row]:
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    rows = []
    before = set(Tree(os.getpid()).pids())
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "treedot", "mcp", "--index", str(path)], env=dict(os.environ)
    )
    async with Client(stdio_client(server, sys.__stderr__)) as client:
        await client.list_tools()
        tree = Tree(next(pid for pid in Tree(os.getpid()).pids() if pid not in before))
        rows.append(Row("mcp: start until the tools are listed, processor time", tree.seconds(), 1.5, "s"))

        async def call(tool: str, **arguments: Any) -> tuple[str, float]:
            start = time.perf_counter()
            result = await client.call_tool(tool, arguments)
            took = time.perf_counter() - start
            assert not result.is_error, result.content[0].text
            return result.content[0].text, took

        await call("find_similar", code=queries[0], language="python")
        rows.append(Row("mcp: start until the first answer, processor time", tree.seconds(), None, "s"))
        for query in queries:  # loads compiled code
            await call("find_similar", code=query, language="python")
        begin, seconds = tree.seconds(), []
        for query in islice(cycle(queries), searches):
            text, took = await call("find_similar", code=query, language="python")
            assert re.match("1\\. .* similarity 1.00,", text), text  # dedented, a long string may differ
            seconds.append(took)
            if len(seconds) == -(-searches // 5):
                memory = tree.memory()
        each = (tree.seconds() - begin) / len(seconds)
        rows += percentiles("mcp: find_similar, one client", seconds, 8, 25)
        rows.append(Row("mcp: find_similar, processor time of the server for each", 1000 * each, None, "ms"))
        growth = 100 * (tree.memory() / memory - 1)
        rows.append(Row("mcp: growth of memory after a fifth of the searches", growth, 5, "%"))
        taken = [
            (await call("compare", a=a, b=b, language="python"))[1]
            for a, b in islice(cycle(pairs), 5 * len(pairs))
        ]
        rows += percentiles("mcp: compare, two functions of 300 nodes", taken[len(pairs) :], 150)
    return rows


@contextmanager
def started(*options: str, **environment: str) -> Iterator[tuple[Tree, int]]:
    """Start ``treedot serve`` on a free port; yield its processes and the port."""
    command = [sys.executable, "-m", "treedot", "serve", "--port", "0", *options]
    settings = {**os.environ, **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            yield Tree(process.pid), int(address.rstrip("/").rpartition(":")[2])
        finally:
            process.terminate()


def request(port: int, path: str, fields: dict[str, Any]) -> bytes:
    """Return the bytes of a request: JSON under /api, a form elsewhere."""
    is_json = path.startswith("/api")
    body = (json.dumps(fields) if is_json else urlencode(fields)).encode()
    kind = "application/json" if is_json else "application/x-www-form-urlencoded"
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class HttpClient:
    """A connection that sends one request after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, message: bytes) -> tuple[int, bytes, float]:
        """Return the status and the body of the answer, and the seconds that it took."""
        start = time.perf_counter()
        self._writer.write(message)
        async with asyncio.timeout(PATIENCE):
            head = await self._reader.readuntil(b"\r\n\r\n")
            status = int(head.split(b" ", 2)[1])
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await self._reader.readexactly(length)
        return status, body, time.perf_counter() - start


@asynccontextmanager
async def connected(port: int) -> Any:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    try:
        yield HttpClient(reader, writer)
    finally:
        writer.close()


def measured_serve(
    path: Path, queries: list[str], pairs: list[tuple[str, str]], options: argparse.Namespace
) -> Iterator[Row]:
    """Yield the figures of ``treedot serve``, with clients that keep their connections."""
    with started("--index", str(path)) as (tree, port):
        yield from asyncio.run(_serve_session(tree, port, queries, pairs, options))


async def _serve_session(
    tree: Tree, port: int, queries: list[str], pairs: list[tuple[str, str]], options: argparse.Namespace
) -> list[Row]:
    searches = [
        request(port, "/api/search", {"text": text, "text_format": "python", "k": 10}) for text in queries
    ]
    rows = []
    async with connected(port) as client:
        home = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode()
        assert (await client.send(home))[0] == 200
        rows.append(Row("serve: start until the first page, processor time", tree.seconds(), 1.5, "s"))
        await client.send(searches[0])
        rows.append(Row("serve: start until the first search, processor time", tree.seconds(), None, "s"))
        for search in searches:  # loads compiled code, in each worker
            status, body, _ = await client.send(search)
            found = json.loads(body)["results"]
            assert found[0]["similarity"] == 1, (status, body[:300])
        begin, seconds = tree.seconds(), []
        for search in islice(cycle(searches), options.searches):
            status, _, took = await client.send(search)
            assert status == 200
            seconds.append(took)
        each = (tree.seconds() - begin) / len(seconds)
        rows += percentiles("serve: search, one client", seconds, 8, 25)
        rows.append(Row("serve: search, processor time of the server for each", 1000 * each, None, "ms"))
        rows += await _compared(tree, port, client, pairs)
    return rows + await _many_clients(tree, port, searches, options.clients, options.requests)


async def _compared(tree: Tree, port: int, client: HttpClient, pairs: list[tuple[str, str]]) -> list[Row]:
    """Return the figures of comparisons: what the page loads by itself, one part after the other.

    Both trees are read back (``/decode``) only on a click, so this is apart.
    """
    what = "serve: compare two functions of 300 nodes"
    taken: dict[str, list[float]] = {}
    for a, b in islice(cycle(pairs), 5 * len(pairs)):
        fields = {"a": a, "b": b, "a_format": "python", "b_format": "python"}
        begin = tree.seconds()
        for path in ("/compare", "/estimates", "/decode"):
            status, body, took = await client.send(request(port, path, fields))
            assert status == 200, body[:300]
            assert b'role="alert"' not in body, body
            taken.setdefault(path, []).append(took)
        taken.setdefault("processor", []).append(tree.seconds() - begin)
    warm = {name: values[len(pairs) :] for name, values in taken.items()}
    busy = 1000 * float(np.mean(warm.pop("processor")))
    parts = [row for path, seconds in warm.items() for row in percentiles(f"{what}, {path}", seconds)]
    page = list(map(sum, zip(warm["/compare"], warm["/estimates"], strict=True)))
    every = percentiles(f"{what}, the page with its estimates", page, 150, 150)
    return [*parts, *every, Row(f"{what}, all three, processor time of the server", busy, None, "ms")]


def measured_alone(
    path: Path, queries: list[str], pairs: list[tuple[str, str]], options: argparse.Namespace
) -> Iterator[Row]:
    """Yield the figures of ``treedot serve`` without an index or a model, which first learns its examples."""
    with tempfile.TemporaryDirectory() as folder:
        for state in ("nothing compiled before", "compiled before"):
            begin = time.perf_counter()
            with started(NUMBA_CACHE_DIR=folder) as (tree, port):
                status, body = asyncio.run(_explained(port))
                assert status == 200, body[:300]
                assert b"The model decides for person" in body, body
                what = f"serve alone: first explained question, {state}"
                yield Row(f"{what}, processor time", tree.seconds(), None, "s")
                yield Row(f"{what}, wall time", time.perf_counter() - begin, None, "s")


async def _explained(port: int) -> tuple[int, bytes]:
    async with connected(port) as client:
        return (await client.send(request(port, "/explain", {"tree": QUESTION})))[:2]


async def _many_clients(
    tree: Tree, port: int, searches: list[bytes], clients: int, requests: int
) -> list[Row]:
    """Return the figures of many clients that send requests at the same time."""
    waiting = islice(cycle(searches), requests)
    step = -(-requests // 10)
    seconds: list[float] = []
    memory: list[float] = []
    errors = 0

    async def work() -> None:
        nonlocal errors
        async with connected(port) as client:
            for search in waiting:
                status, _, took = await client.send(search)
                errors += status != 200
                seconds.append(took)
                if len(seconds) % step == 0:
                    memory.append(tree.memory())

    begin, cpu = time.perf_counter(), tree.seconds()
    await asyncio.gather(*(work() for _ in range(clients)))
    took, cpu = time.perf_counter() - begin, tree.seconds() - cpu
    many = f"{clients} clients, {requests:,} requests"
    return [
        *percentiles(f"serve: {many}", seconds, None, 400),
        Row(f"serve: {many}, errors", errors, 0, ""),
        Row(f"serve: {many}, requests in a second", requests / took, None, ""),
        Row(f"serve: {many}, processor time of the server for each", 1000 * cpu / requests, None, "ms"),
        *(
            Row(f"serve: memory after {number * step:,} of them", value, None, "MB")
            for number, value in enumerate(memory, 1)
        ),
        Row(f"serve: growth of memory after {step:,} of them", 100 * (max(memory) / memory[0] - 1), 5, "%"),
    ]


if __name__ == "__main__":
    main()
