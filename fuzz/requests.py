"""Send hostile requests to ``treedot serve``, which must refuse or answer each, and go on.

``python -m fuzz.requests --count 50000 --seed 1``. The requests have damaged JSON, trees, code, headers,
paths, methods and chunked bodies, or end in the middle. No answer may have a status of 5xx, come after the
limit, or lack the headers that protect pages; a connection with half a request must be closed. Meanwhile and
at the end a sound request must get the same answer as at the beginning. ``--case N`` sends only request N.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import h11
from benchmarks.serve import Tree

import treedot as td
from fuzz.request_cases import Case, make_case
from treedot.cli import main as treedot
from treedot.serve.example_questions import questions
from treedot.serve.safety import HEADERS
from treedot.serve.server import MAX_HEAD

LIMIT = 60.0  # seconds for an answer: 30 for its work, as much to wait for the work of others
HALF = 0.02  # seconds that a client stays after half a request
STAYING = 200  # of so many half requests, one stays until the server closes the connection
OFTEN = 500  # requests between two sound ones
SOUND = b'{"a": "(S (NP Ann) (VP runs))", "b": "(S (NP Bob) (VP runs))"}'
MAX_ANSWER = 1 << 26  # bytes


class RequestError(Exception):
    """An answer that the server should not give, or none."""


class Answer(NamedTuple):
    """The first answer on a connection."""

    status: int
    headers: dict[str, str]
    body: bytes


class Client:
    """Sends requests to a server, each on its own connection."""

    def __init__(self, port: int, limit: float = LIMIT) -> None:
        self.host, self._port, self._limit = f"127.0.0.1:{port}", port, limit
        self.found: Counter[str] = Counter()
        self.slowest = 0.0

    async def attack(self, case: Case, stays: bool = False) -> None:
        """Send a hostile request; raise RequestError if it is not answered as it should be."""
        may_end = is_half(case.data)
        start = time.monotonic()
        answer = await self.ask(case.data, HALF if may_end and not stays else self._limit)
        self.slowest = max(self.slowest, time.monotonic() - start)
        if answer is not None:
            _check(answer, case)
        elif not may_end:
            raise RequestError("no answer")
        self.found["none, to half a request" if answer is None else str(answer.status)] += 1

    async def ask(self, data: bytes, limit: float) -> Answer | None:
        """Return the answer to what is sent; None if the server closes the connection without one.

        Raises RequestError after the limit, unless that is short because none is expected.
        """
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=MAX_ANSWER)
        try:
            writer.write(data)
            async with asyncio.timeout(limit):
                with suppress(ConnectionError):  # refused before all of it was sent
                    await writer.drain()
                return await _answer(reader)
        except (ConnectionError, asyncio.IncompleteReadError):
            return None
        except TimeoutError:
            if limit == HALF:
                return None
            raise RequestError(f"neither an answer nor an end within {limit:.0f} s") from None
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def sound(self) -> bytes:
        """Return the answer to a sound request."""
        head = f"POST /api/compare HTTP/1.1\r\nHost: {self.host}\r\nContent-Length: {len(SOUND)}\r\n"
        sent = f"{head}Content-Type: application/json\r\n\r\n".encode() + SOUND
        answer = await self.ask(sent, self._limit)
        if answer is None or answer.status != 200:
            raise RequestError(f"a sound request has the answer {answer}")
        return answer.body


async def _answer(reader: asyncio.StreamReader) -> Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    status = int(first.split()[1])
    if status == 100:
        return await _answer(reader)
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    try:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    except asyncio.IncompleteReadError as error:  # to HEAD, or reset since the request had more bytes
        body = error.partial
    return Answer(status, headers, body)


def _check(answer: Answer, case: Case) -> None:
    """Raise RequestError if an answer shows that the server is broken."""
    if answer.status >= 500:
        raise RequestError(f"status {answer.status}: {answer.body[:300]!r}")
    if b"Traceback" in answer.body:
        raise RequestError("a traceback")
    missing = [name for name in HEADERS if name.lower() not in answer.headers]
    if missing:
        raise RequestError(f"status {answer.status} without the header {missing[0]}")
    if answer.headers.get("content-type") == "application/json" and answer.body:
        found = json.loads(answer.body)
        if answer.status >= 400 and not isinstance(found.get("error"), str):
            raise RequestError(f"status {answer.status} without a message")


def is_half(data: bytes) -> bool:
    """Return whether bytes are the beginning of a request that may still become a sound one."""
    if not data:
        return True
    connection = h11.Connection(h11.SERVER, MAX_HEAD)
    connection.receive_data(data)
    try:
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
                return False
    except h11.RemoteProtocolError:
        return False
    return True


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Tree, int]]:
    """Start a server with an index and a model; yield its processes and its port, and check how it ends."""
    if treedot(["index", str(Path(__file__).parent), "-o", str(folder / "code.index")]):
        raise RequestError("there is no index")
    forest = questions()[:60]
    td.TreeClassifier(decay=0.4, C=1).fit(forest, forest.columns["label"]).save(folder / "model")
    given = ["--index", str(folder / "code.index"), "--model", str(folder / "model")]
    with (folder / "log").open("wb") as log:
        command = [sys.executable, "-m", "treedot", "serve", "--port", "0", *given]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
            assert process.stdout is not None
            try:
                yield Tree(process.pid), int(process.stdout.readline().rstrip("/\n").rpartition(":")[2])
                if process.poll() is not None:
                    raise RequestError(f"the server has ended with exit code {process.returncode}")
            finally:
                process.terminate()
    text = (folder / "log").read_text(errors="replace")
    if "Traceback" in text:
        raise RequestError(f"the log has a traceback:\n{text[text.index('Traceback') :][:3000]}")


async def attack(port: int, numbers: Sequence[int], seed: int, clients: int, limit: float = LIMIT) -> Client:
    """Send requests by several clients at once; return what was found, or raise RequestError."""
    client = Client(port, limit)
    expected = await client.sound()
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            case = make_case(seed, number, client.host)
            try:
                await client.attack(case, stays=number % STAYING == 0)
            except (RequestError, ValueError, OSError) as error:
                raise RequestError(
                    f"request {number}, {case.kind}: {error!r}; {case.data[:300]!r}"
                ) from error
            if number % OFTEN == 0 and await client.sound() != expected:
                raise RequestError(f"after request {number}, the answer to a sound one is another")

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(work())
    if await client.sound() != expected:
        raise RequestError("at the end, the answer to a sound request is another")
    return client


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.requests", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, metavar="N", help="requests (default: 1000)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(default: 1)")
    parser.add_argument("--case", type=int, metavar="N", help="send only this one of the requests")
    parser.add_argument("--clients", type=int, default=4, metavar="N", help="at once (default: 4)")
    options = parser.parse_args(arguments)
    numbers = range(options.count) if options.case is None else [options.case]
    try:
        with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as (tree, port):
            client = asyncio.run(attack(port, numbers, options.seed, options.clients))
            seconds = tree.seconds()
    except (RequestError, ExceptionGroup) as failure:
        first = failure.exceptions[0] if isinstance(failure, ExceptionGroup) else failure
        print(f"failed: {first}", file=sys.stderr)
        return 1
    print(f"{len(numbers):,} hostile requests: no status of 5xx, and the server is sound")
    print(", ".join(f"{count:,} × {status}" for status, count in sorted(client.found.items())))
    print(f"slowest answer {client.slowest:.1f} s; {seconds:.0f} s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
