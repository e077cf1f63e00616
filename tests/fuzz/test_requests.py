"""Hostile requests to ``treedot serve``; ``python -m fuzz.requests`` sends many more."""

import asyncio

import pytest

pytest.importorskip("uvicorn")

from fuzz.request_cases import KINDS, make_case
from fuzz.requests import HEADERS, RequestError, attack, is_half, main

pytestmark = pytest.mark.slow
PROTECTED = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())


def test_the_server_refuses_or_answers_hostile_requests(capsys):
    assert main(["--count", "60", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    assert "60 hostile requests: no status of 5xx" in out
    assert " × 400" in out


def test_requests_of_all_kinds_are_made_again_from_their_seed():
    cases = [make_case(3, number, "127.0.0.1:1") for number in range(200)]
    assert cases == [make_case(3, number, "127.0.0.1:1") for number in range(200)]
    assert {case.kind for case in cases} == set(KINDS)
    assert len({case.data for case in cases}) > 150


@pytest.mark.parametrize(
    ("data", "half"),
    [
        (b"", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", False),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nx", True),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nxyz", False),
        (b"nonsense\r\n\r\n", False),
    ],
)
def test_half_a_request_need_not_be_answered(data, half):
    assert is_half(data) == half


async def attacked(*answers):
    """Attack a server whose answers to hostile requests are given; sound ones get a sound answer."""

    async def respond(reader, writer):
        sent = await reader.read(1 << 16)
        is_sound = b"NP Ann" in sent
        head, body = ("200 OK", b"{}") if is_sound else answers[0]
        protected = PROTECTED if is_sound else answers[1]
        if head:
            writer.write(f"HTTP/1.1 {head}\r\n{protected}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        return await attack(server.sockets[0].getsockname()[1], range(20), 1, 2, limit=5)


def test_a_sound_server_passes():
    found = asyncio.run(attacked(("400 Bad Request", b"no"), PROTECTED)).found
    assert found.total() == 20
    assert found["400"] > 10


@pytest.mark.parametrize(
    ("answer", "headers", "reason"),
    [
        (("500 Broken", b"no"), PROTECTED, "status 500"),
        (("200 OK", b"Traceback (most recent call last)"), PROTECTED, "a traceback"),
        (("200 OK", b"no"), "", "without the header Content-Security-Policy"),
        (
            ("400 Bad Request", b"{}"),
            PROTECTED + "Content-Type: application/json\r\n",
            "400 without a message",
        ),
        (("", b""), "", "no answer"),
    ],
)
def test_a_broken_server_is_seen(answer, headers, reason):
    with pytest.raises(ExceptionGroup) as found:
        asyncio.run(attacked(answer, headers))
    assert isinstance(found.value.exceptions[0], RequestError)
    assert reason in str(found.value.exceptions[0])
