"""``treedot mcp``, as a real client of the protocol sees it."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager

import anyio
import pytest

from components import component
from treedot.cli import main

component("mcp")

from mcp import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

pytestmark = pytest.mark.slow

WANTED = """def merge_ranges(ranges, gap):
    ordered = sorted(ranges)
    merged = []
    for start, end in ordered:
        if end < start:
            raise ValueError("a range ends before it starts")
        if merged and start <= merged[-1][1] + gap:
            last = merged[-1]
            merged[-1] = (last[0], max(last[1], end))
        else:
            merged.append((start, end))
    total = 0
    for start, end in merged:
        total += end - start
    widest = None
    for start, end in merged:
        if widest is None or end - start > widest[1] - widest[0]:
            widest = (start, end)
    print(total, widest)
    return merged, total
"""
NEW = """def table_of(rows):
    while rows:
        row = rows.pop()
        yield {key: value for key, value in zip(row.keys(), row.values()) if value}
"""
PATIENCE = 60  # seconds; files are looked at again after one, or later on a busy machine


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder with 200 functions, which is the current one, with an index of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "src").mkdir()
    others = [
        f"def other{i}(a, b):\n    for x in a:\n" + "        b.add(x)\n" * (i % 9 + 1) + "    return b\n"
        for i in range(199)
    ]
    (tmp_path / "src/others.py").write_text("\n".join(others))
    (tmp_path / "src/wanted.py").write_text(WANTED)
    return tmp_path


def command(*arguments):
    return [sys.executable, "-m", "treedot", "mcp", *arguments]


@asynccontextmanager
async def client(*arguments):
    program, *rest = command(*arguments)
    server = StdioServerParameters(command=program, args=rest, env=dict(os.environ))
    async with Client(stdio_client(server)) as connected:
        yield connected


async def answer(connected, tool="find_similar", **arguments):
    result = await connected.call_tool(tool, arguments)
    (content,) = result.content
    return result.is_error, content.text


async def eventually(connected, begins, code):
    """Ask until an answer begins so."""
    deadline = time.monotonic() + PATIENCE
    while not (found := (await answer(connected, code=code))[1]).startswith(begins):
        assert time.monotonic() < deadline, found
        await anyio.sleep(0.2)


def test_tools_answer_and_follow_edited_files(code):
    assert main(["index", "src", "-o", "x.index"]) == 0
    before = (code / "x.index").read_bytes()
    renamed = WANTED.replace("ranges", "spans").replace("start", "first").replace("merged", "result")

    async def session():
        async with client("--index", "x.index") as connected:
            tools = (await connected.list_tools()).tools
            assert [tool.name for tool in tools] == ["find_similar", "compare"]
            assert all(tool.annotations.read_only_hint for tool in tools)
            failed, text = await answer(connected, code=renamed, language="python", k=3)
            assert not failed
            assert text.startswith("1. src/wanted.py:1-20 merge_ranges: similarity 1.00, cosine ")
            failed, text = await answer(
                connected, "compare", a=renamed, b="src/wanted.py:1", language="python"
            )
            assert not failed
            assert "similarity 1.00" in text

            (code / "src/wanted.py").write_text(NEW)
            (code / "src/new.py").write_text("\n\n" + WANTED)
            await eventually(connected, "1. src/new.py:3-22 merge_ranges: similarity 1.00", WANTED)
            await eventually(connected, "1. src/wanted.py:1-4 table_of: similarity 1.00", NEW)
            (code / "src/new.py").unlink()
            await eventually(connected, "Nothing similar", WANTED)

            for arguments, message in [
                ({"code": "def f(:"}, "code has 1 syntax error as python code"),
                ({"code": "x = 1", "language": "cobol"}, "unknown language 'cobol': use one of python"),
                ({"code": "x = 1", "k": "many"}, "k must be an integer"),
                ({"code": "x = 1", "k": 21}, "k must be from 1 to 20, not 21"),
                ({"code": 1}, "code must be a text"),
                ({"text": "x"}, "find_similar needs the argument 'code'"),
                (
                    {"code": "x", "path": "/"},
                    "find_similar has no argument of this name: use code, language, k",
                ),
            ]:
                failed, text = await answer(connected, **arguments)
                assert failed
                assert message in text
            assert (await answer(connected, "no_such_tool"))[0]
            assert not (await answer(connected, code=NEW, language=None))[0]

    anyio.run(session)
    assert (code / "x.index").read_bytes() == before


def test_without_an_index_the_current_folder_is_indexed(code):
    (code / "src/wanted.py").rename(code / "wanted.txt")
    (code / "src/others.py").rename(code / "others.txt")

    async def session():
        async with client() as connected:
            failed, text = await answer(connected, code=WANTED)
            assert failed
            assert "no source file to read in ." in text
            (code / "wanted.txt").rename(code / "src/wanted.py")
            assert (await answer(connected, code=WANTED))[1].startswith("1. src/wanted.py:1-20 merge_ranges")
            (code / "later").mkdir()
            (code / "later/new.py").write_text(NEW)
            await eventually(connected, "1. later/new.py:1-4 table_of", NEW)

    anyio.run(session)
    assert len(list((code / "cache/followed").glob("*.index"))) == 1
    assert not list(code.glob("*.index"))


def test_only_messages_of_the_protocol_are_printed(code):
    """Also with messages that are no messages, or too long, and after errors."""
    assert main(["index", "src", "-o", "x.index"]) == 0
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "find_similar", "arguments": {"code": WANTED}}
    sent = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": call},
    ]
    lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in sent]
    lines[2:2] = [b"not JSON", b"", b'"' + b"a" * 3_000_000 + b'"', b"\xff\xfe", b"[" * 100_000]
    with subprocess.Popen(
        command("--index", "x.index"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        server.stdin.write(b"\n".join(lines) + b"\n")
        server.stdin.flush()
        answers = []
        while not any(one.get("id") == 2 for one in answers):
            answers.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        answers += map(json.loads, server.stdout.read().splitlines())
        assert server.wait(30) == 0
    assert all(one["jsonrpc"] == "2.0" for one in answers)
    text = next(one for one in answers if one.get("id") == 2)["result"]["content"][0]["text"]
    assert text.startswith("1. src/wanted.py:1-20 merge_ranges: similarity 1.00")


KILLED = """
import os, sys, anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def session():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        await client.call_tool("find_similar", {"code": "def f(a):\\n    return a\\n"})
        print("ready", flush=True)
        await anyio.sleep(600)

anyio.run(session)
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes in /proc")
def test_a_killed_client_leaves_no_process(code):
    assert main(["index", "src", "-o", "x.index"]) == 0
    mark = f"TREEDOT_TEST={os.getpid()}-{time.time_ns()}"
    name, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, *command("--index", "x.index")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, name: value},
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        assert len(marked(mark)) >= 3  # the client, the server and a process that parses
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not marked(mark)


def marked(mark):
    """Return the running processes that have a variable in their environment."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environment, open(f"/proc/{pid}/stat") as stat:
                if mark.encode() in environment.read().split(b"\0") and ") Z " not in stat.read():
                    found.append(pid)
        except OSError:
            continue
    return found


def test_an_index_or_path_that_does_not_exist_ends_the_command(code, capsys):
    assert main(["mcp", "--index", "missing.index"]) == 1
    assert "missing.index" in capsys.readouterr().err
    assert main(["mcp", "missing"]) == 1
    assert "cannot open missing: no such file or folder" in capsys.readouterr().err
