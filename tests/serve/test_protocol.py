"""Connections that send nothing, half a request or nonsense; the server keeps answering others."""

import asyncio
import json
import socket
import time
from contextlib import ExitStack

import pytest

from treedot.serve import protocol
from treedot.serve.safety import HEADERS
from treedot.serve.server import MAX_HEAD


@pytest.fixture
def connect(site):
    """Return what opens a connection that has sent some bytes."""
    with ExitStack() as opened:

        def connected(sent=b""):
            made = opened.enter_context(socket.create_connection(("127.0.0.1", site.base_url.port), 30))
            made.sendall(sent.replace(b"HOST", f"127.0.0.1:{site.base_url.port}".encode()))
            return made

        yield connected


def answer(connection):
    """Return the status, the headers and the body of what a connection receives until its end."""
    with connection.makefile("rb") as stream:
        head, _, body = stream.read().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


def test_new_connections_get_in_when_idle_ones_take_all_places(site, connect, monkeypatch):
    monkeypatch.setattr(protocol, "CONNECTIONS", 16)
    posted = b"POST /api/compare HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
    halves = (b"", b"GET /api/status HTT", posted + b"Content-Length: 9\r\n\r\n{")
    idle = [connect(sent) for sent in halves * 16]
    for _ in range(3):
        fresh = connect(b"GET /api/status HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")
        assert answer(fresh)[0] == 200
    assert idle[0].recv(1) == b""  # the oldest
    idle[-2].sendall(b"P/1.1\r\nHost: nobody\r\n\r\n")
    assert idle[-2].recv(12) == b"HTTP/1.1 421"  # a newer one is served


def test_a_connection_with_a_whole_request_is_not_closed_for_others(site, connect, monkeypatch):
    monkeypatch.setattr(protocol, "CONNECTIONS", 4)
    body = json.dumps({"a": "(A (b c))", "b": "(A (b c))"}).encode()
    head = f"POST /api/compare HTTP/1.1\r\nHost: HOST\r\nContent-Length: {len(body)}\r\n"
    asked = connect(f"{head}Content-Type: application/json\r\nConnection: close\r\n\r\n".encode() + body)
    for _ in range(20):
        connect()
        time.sleep(0.002)
    assert answer(asked)[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET /api/status HTTP/1.1\r\nHost: HOST\r\n\r\n",
        b"GET /api/status HTTP/1.1\r\nHost: HOST\r\nContent-Length: 9\r\n\r\nhalf",
        b"PUT /nothing HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nha",
    ],
)
def test_a_connection_is_closed_that_sends_no_whole_request_in_time(connect, monkeypatch, sent):
    monkeypatch.setattr(protocol, "ARRIVAL", 0.3)
    connection = connect(sent)
    for _ in range(20):  # single bytes do not prolong it
        time.sleep(0.1)
        try:
            connection.sendall(sent and b"x")
        except OSError:
            break
    received = b""
    try:
        while part := connection.recv(1 << 16):
            received += part
    except ConnectionResetError:
        pass
    assert (b"408" in received[:12]) == (sent[:9] == b"GET / HT"[:9])


def test_a_client_that_does_not_read_is_disconnected(monkeypatch):
    monkeypatch.setattr(protocol, "READING", 0.2)

    async def ended():
        async def endless(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            while True:
                await send({"type": "http.response.body", "body": b" " * (1 << 20), "more_body": True})
                await asyncio.sleep(0)
                if not state.connections:
                    return

        config = protocol_config(endless)
        from uvicorn.server import ServerState

        state = ServerState()
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: protocol.Protocol(config, state, {}), "127.0.0.1", 0)
        async with listener:
            _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname(), limit=1)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            async with asyncio.timeout(30):
                while not state.tasks:
                    await asyncio.sleep(0.01)
                while state.connections:
                    await asyncio.sleep(0.01)
            writer.close()
        return True

    assert asyncio.run(ended())


def protocol_config(app):
    from treedot.serve.server import server

    config = server(app).config
    config.load()
    return config


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: HOST\r\n\r\n", 400),
        (b"POST /api/compare HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        (b"POST /api/compare HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", 400),
        (
            b"POST /api/compare HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
            400,
        ),
        (b"GET /?" + b"a" * (MAX_HEAD + 9), 431),
        (b"GET / HTTP/1.1\r\nHost: HOST\r\nX: " + b"a" * (MAX_HEAD + 9), 431),
    ],
)
def test_what_is_not_http_is_answered_like_other_problems(connect, sent, status):
    found, headers, body = answer(connect(sent))
    assert found == status
    assert len(json.loads(body)["error"]) > 10
    assert headers["content-type"] == "application/json"
    assert {name: headers[name.lower()] for name in HEADERS} == HEADERS
