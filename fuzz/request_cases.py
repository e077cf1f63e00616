"""Hostile requests to ``treedot serve``: bytes of HTTP, made from a seed and a number."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from fuzz.mutations import NUMBERS, mutate
from fuzz.seeds import read_seeds
from fuzz.tokens import CODE, MARKUP, mutate_text
from fuzz.trees import random_tree
from treedot.languages import LANGUAGES
from treedot.serve.fields import INPUT_FORMATS, TOPICS, Field

LARGE = 3000  # nodes of a tree, more than a request may have
PLAIN = {
    "newick": b"((oak,elm)a,(fern,(moss:1.5,hornwort)d)b)c;",
    "dot-bracket": b">name\nGCAAGGCUUUGCCAAGC\n((..(((...)))..))",
    "conllu": b"1\tBirds\tbird\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsing\tsing\tVERB\t_\t_\t0\troot\t_\t_\n\n",
}
SEEDED = (*LANGUAGES, "html", "xml", "json")
COSTLY = ("estimates", "decode")  # topics that are asked for less often
ODD_VALUES: list[Any] = [
    None, True, [], {}, -1, 0, 1e999, 2**70, 0.5, "", "x" * 300, "\0", "1e5", "-0", "９", "\ud800", ["a"],
]  # fmt: skip
PATHS = [
    "/", "//", "/api", "/api/", "/api/compare/", "/API/compare", "/compare", "/static/serve.js",
    "/static/..", "/static/../work.py", "/static/%2e%2e/%2e%2e/app.py", "/etc/passwd", "/%00", "/%ff%fe",
    "/compare%0d%0aX:1", "/api/openapi.json", "/api/nothing", "*", "http://example.org/",
    "/" + "a/" * 3000, "/compare?" + "a=1&" * 99, "/?x=%zz&=&&", "/search?k=1&k=2",
    "/api/search?text=" + "%61" * 3000, "/static/serve.css%00.js",
]  # fmt: skip
METHODS = [
    "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "G\0T",
    "X" * 999,
]  # fmt: skip
HEADERS = [
    "Host: example.org", "Host: 127.0.0.1", "Origin: null", "Origin: http://example.org",
    "Content-Length: 0", "Content-Length: -1", "Content-Length: 99999999999999999999",
    "Content-Length: 7", "Content-Length: +5", "Transfer-Encoding: chunked",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: x", "Expect: 100-continue",
    "Upgrade: websocket\r\nConnection: Upgrade", "Upgrade: h2c", "Connection: close, keep-alive",
    "Range: bytes=0-1", "Content-Type: application/json; charset=utf-16",
    "Content-Type: multipart/form-data", "Content-Encoding: gzip", "Sec-Fetch-Site: cross-site",
    "X-Forwarded-For: 1.2.3.4", "Cookie: " + "a=b; " * 999, "X: \xff\xfe", ": empty", "no colon",
    " folded: yes", "If-None-Match: *", "Accept: \0", "X-Big: " + "y" * 70_000,
]  # fmt: skip


class Case(NamedTuple):
    """The bytes that a client sends, and what kind of damage they have."""

    kind: str
    data: bytes


class Request(NamedTuple):
    """The parts of a request."""

    method: str
    path: str
    headers: list[str]
    body: bytes

    def encoded(self) -> bytes:
        """Return the request as bytes."""
        head = "\r\n".join([f"{self.method} {self.path} HTTP/1.1", *self.headers, "", ""])
        return head.encode("latin-1", "replace") + self.body


def make_case(seed: int, number: int, host: str) -> Case:
    """Return one of the hostile requests; the same for the same seed, number and host."""
    random = Random(f"{seed} {number}")
    kind = random.choice(list(KINDS))
    return Case(kind, KINDS[kind](_request(random, host), random))


def _request(random: Random, host: str) -> Request:
    """Return a request with fields that may be odd, but in sound HTTP."""
    rest = [name for name in TOPICS if name not in COSTLY]
    name = random.choice(COSTLY if random.random() < 0.06 else rest)
    topic = TOPICS[name]
    fields = {one.name: _value(one, random) for one in topic.fields if random.random() < 0.9}
    if random.random() < 0.05:
        fields[random.choice(["x", "", "a" * 99, "A", "decay "])] = random.choice(ODD_VALUES)
    headers = [f"Host: {host}"]
    is_page = random.random() < 0.3
    path = topic.page if is_page else f"/api/{name}"
    query = urlencode(fields, errors="replace")
    if random.random() < 0.3 and len(query) < 200_000:
        return Request("GET", f"{path}?{query}", headers, b"")
    body = query.encode() if is_page else json.dumps(fields).encode()
    kind = "x-www-form-urlencoded" if is_page else "json"
    return Request("POST", path, [*headers, f"Content-Type: application/{kind}"], body)


def _value(field: Field, random: Random) -> Any:
    if random.random() < 0.04:
        return random.choice(ODD_VALUES)
    if field.name.endswith("_format"):
        return "auto" if random.random() < 0.7 else random.choice(INPUT_FORMATS)
    if field.name in ("a", "b", "tree", "text"):
        return _text(random)
    if field.name == "components":
        return random.choice(field.choices if random.random() < 0.05 else field.choices[:3])
    if field.choices:
        return random.choice(field.choices)
    if isinstance(field.default, float):
        return random.choice([0, 1, 0.4, random.random(), 1e-300])
    return random.randint(field.low, field.high) if field.high else field.default


def _text(random: Random) -> str:
    """Return a tree, code or a document, most often damaged."""
    kind = random.choice(["brackets", "brackets", *PLAIN, *random.sample(SEEDED, 3)])
    if kind == "brackets":
        nodes = LARGE if random.random() < 0.01 else 80
        data = str(random_tree(random, nodes)).encode()
        return (mutate(data, [data], random) if random.random() < 0.5 else data).decode("utf-8", "replace")
    seeds = _seeds(kind)
    data = random.choice(seeds)
    damage = random.random()
    if damage < 0.4:
        data = mutate_text(data, seeds, random, (CODE, MARKUP))
    elif damage < 0.7:
        data = mutate(data, seeds, random)
    return data[:120_000].decode("utf-8", "replace")


@cache
def _seeds(kind: str) -> list[bytes]:
    return [PLAIN[kind]] if kind in PLAIN else read_seeds(kind)


def _with_length(request: Request) -> Request:
    if request.method == "GET":
        return request
    return request._replace(headers=[*request.headers, f"Content-Length: {len(request.body)}"])


def _sound(request: Request, random: Random) -> bytes:
    return _with_length(request).encoded()


def _body(request: Request, random: Random) -> bytes:
    body = mutate(request.body, [request.body, b'{"a": [[', *NUMBERS], random)
    return _with_length(request._replace(method="POST", body=body)).encoded()


def _path(request: Request, random: Random) -> bytes:
    path = random.choice([*PATHS, request.path])
    if random.random() < 0.5:
        path = quote(mutate(path.encode(), [b"/../", b"%2e%2f"], random)[:5000], safe="/%?&=.*:")
    return request._replace(method="GET", path=path, body=b"").encoded()


def _method(request: Request, random: Random) -> bytes:
    return _with_length(request)._replace(method=random.choice(METHODS)).encoded()


def _headers(request: Request, random: Random) -> bytes:
    found = _with_length(request).headers
    for _ in range(random.choice([1, 1, 2, 5])):
        found.insert(random.randint(0, len(found)), random.choice(HEADERS))
    if random.random() < 0.2:
        del found[random.randrange(len(found))]
    return request._replace(headers=found).encoded()


def _chunked(request: Request, random: Random) -> bytes:
    """Send the body in chunks, half of the times with damaged ones."""
    body, chunks = request.body or b"{}", []
    while body:
        size = random.choice([1, 7, 100, 5000, len(body)])
        chunks.append(b"%x\r\n%b\r\n" % (len(body[:size]), body[:size]))
        body = body[size:]
    sent = b"".join([*chunks, b"0\r\n\r\n"])
    if random.random() < 0.5:
        sent = mutate(sent, [b"\r\n0\r\n\r\n", b"ffffffffffff\r\n", b"-1\r\n"], random)
    headers = [*request.headers, "Transfer-Encoding: chunked"]
    return request._replace(method="POST", headers=headers, body=sent).encoded()


def _bytes(request: Request, random: Random) -> bytes:
    data = _sound(request, random)
    head, _, body = data.partition(b"\r\n\r\n")
    return mutate(head + b"\r\n\r\n", [b"GET / HTTP/1.1\r\n\r\n", data], random) + body


def _half(request: Request, random: Random) -> bytes:
    data = _sound(request, random)
    return data[: random.randrange(len(data))]


def _several(request: Request, random: Random) -> bytes:
    """Send several requests at once, or nonsense after a request."""
    data = _sound(request, random)
    return data + random.choice([data, b"GET / HTTP/1.1\r\n\r\n", b"\0" * 99, b"\r\n\r\n", b"{}" * 999])


KINDS: dict[str, Callable[[Request, Random], bytes]] = {
    "fields": _sound,
    "body": _body,
    "path": _path,
    "method": _method,
    "headers": _headers,
    "chunked body": _chunked,
    "bytes": _bytes,
    "half request": _half,
    "several requests": _several,
}
