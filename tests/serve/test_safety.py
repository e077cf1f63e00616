import asyncio
import json
import os
import socket
import time

import pytest

from treedot.serve.app import MAX_BODY
from treedot.serve.fields import MAX_TEXT
from treedot.serve.inputs import MAX_DEPTH, MAX_NODES
from treedot.serve.server import listening
from treedot.serve.workers import BusyError, CrashError, Limits, TooSlowError, Workers

TREES = {"a": "(A (B c) d)", "b": "(A (B c) e)"}


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost.example.org", ""])
def test_another_host_is_refused(site, host):
    for path in ("/", "/api/compare", "/static/serve.js"):
        assert site.get(path, headers={"Host": host}).status_code == 421


def test_its_own_names_are_hosts(site):
    port = site.base_url.port
    assert site.get("/", headers={"Host": f"LOCALHOST:{port}"}).status_code == 200


@pytest.mark.parametrize("origin", ["http://example.org", "null", "https://127.0.0.1", "http://localhost:1"])
def test_pages_of_another_origin_are_refused(site, origin):
    headers = {"Origin": origin}
    assert site.post("/api/compare", json=TREES, headers=headers).status_code == 403
    assert site.get("/api/compare", params=TREES, headers=headers).status_code == 403
    own = {"Origin": f"http://127.0.0.1:{site.base_url.port}"}
    assert site.post("/api/compare", json=TREES, headers=own).status_code == 200


def test_requests_that_a_browser_says_are_of_other_sites_are_refused_but_links_work(site):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert site.get("/api/status", headers=headers).status_code == 403
    assert site.get("/compare", headers=headers | {"Sec-Fetch-Mode": "navigate"}).status_code == 200


def test_an_origin_of_a_proxy_can_be_allowed(start):
    with start(origins=["https://trees.example.org"]) as client:
        headers = {"Host": "trees.example.org", "Origin": "https://trees.example.org"}
        assert client.post("/api/compare", json=TREES, headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(site, method):
    assert site.request(method, "/api/compare").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/static/../work.py", "/static/%2e%2e/work.py", "//etc/passwd", "/static/", "/api"],
)
def test_a_path_outside_is_not_found(site, path):
    with socket.create_connection(("127.0.0.1", site.base_url.port)) as connection:
        host = f"127.0.0.1:{site.base_url.port}"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert connection.makefile("rb").readline().split()[1] == b"404"


def test_an_input_that_names_a_file_is_not_read_from_it(site, tmp_path):
    (tmp_path / "secret.mrg").write_text("(SECRET tree)")
    for format in ("auto", "brackets", "python", "json", "conllu"):
        fields = TREES | {"a": str(tmp_path / "secret.mrg"), "a_format": format}
        assert "SECRET" not in site.post("/api/compare", json=fields).text


def test_every_answer_forbids_scripts_of_others(site):
    for path in ("/", "/compare", "/api/status", "/static/serve.css", "/nothing"):
        policy = site.get(path).headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy


def test_pages_have_no_inline_script_or_style(site):
    for text in (site.get("/").text, site.get("/compare", params=TREES).text):
        assert "<script>" not in text
        assert "<style" not in text
        assert " style=" not in text


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 400),
        ({"a": "(A b", "b": "(A b)"}, 400),
        (TREES | {"a": 3}, 400),
        (TREES | {"a": ["(A b)"]}, 400),
        (TREES | {"decay": "much"}, 400),
        (TREES | {"decay": 2}, 400),
        (TREES | {"decay": True}, 400),
        (TREES | {"components": 10**30}, 400),
        (TREES | {"fragments": "1" * 5000}, 400),
        (TREES | {"a_format": "parquet"}, 400),
        (TREES | {"nothing": 1}, 400),
        (TREES | {"a": "(A b)(A b)"}, 400),
        (TREES | {"a": "x" * (MAX_TEXT + 1)}, 413),
        (TREES | {"a": f"(A {'b ' * MAX_NODES})"}, 413),
        (TREES | {"a": "(A " * MAX_DEPTH + "b" + ")" * MAX_DEPTH}, 413),
        (TREES | {"a": "[" * 40_000 + "]" * 40_000, "a_format": "json"}, 413),
    ],
)
def test_bad_fields_are_reported(site, fields, status):
    found = site.post("/api/compare", json=fields)
    assert found.status_code == status
    assert len(found.json()["error"]) > 10


def test_half_of_a_surrogate_pair_is_reported(site):
    body = json.dumps(TREES | {"a": "\ud800"})
    found = site.post("/api/compare", content=body, headers={"Content-Type": "application/json"})
    assert found.status_code == 400


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"[" * 10_000, b"\xff", b'{"a": NaN}', b"1" * 10_000])
def test_bad_bodies_are_reported(site, body):
    headers = {"Content-Type": "application/json"}
    assert site.post("/api/compare", content=body, headers=headers).status_code == 400


def test_a_body_of_another_type_or_size_is_refused(site):
    assert site.post("/api/compare", content=b"a=1").status_code == 415
    headers = {"Content-Type": "application/json"}
    assert site.post("/api/compare", content=b" " * (MAX_BODY + 1), headers=headers).status_code == 413
    parts = (b" " * 65536 for _ in range(MAX_BODY // 65536 + 1))  # without a length
    assert site.post("/api/compare", content=parts, headers=headers).status_code == 413


def run(workers, *work):
    async def all_of_it():
        try:
            return await asyncio.gather(*(workers.do(*one) for one in work), return_exceptions=True)
        finally:
            workers.end()

    return asyncio.run(all_of_it())


def test_work_that_hangs_is_ended_and_the_next_is_done():
    began = time.monotonic()
    endless = (eval, "all(True for _ in iter(int, 1))")
    hung, sleeping, fine = run(
        Workers(1, Limits(seconds=0.3, patience=1)), endless, (time.sleep, 1000), (os.path.basename, "a/b")
    )
    assert isinstance(hung, TooSlowError)
    assert isinstance(sleeping, TooSlowError)
    assert fine == "b"
    assert time.monotonic() - began < 60


def test_a_process_that_dies_is_replaced():
    died, fine = run(Workers(1), (os._exit, 3), (os.path.basename, "a/b"))
    assert isinstance(died, CrashError)
    assert fine == "b"


def test_too_much_memory_is_an_error_of_the_request():
    failed, fine = run(Workers(1), (bytearray, 1 << 33), (os.path.basename, "a/b"))
    assert isinstance(failed, MemoryError)
    assert fine == "b"


def test_too_many_requests_are_refused(monkeypatch):
    monkeypatch.setattr("treedot.serve.workers.WAITING", 2)
    found = run(Workers(1), *[(os.path.basename, "a/b")] * 3)
    assert found[:2] == ["b", "b"]
    assert isinstance(found[2], BusyError)


def test_answers_do_not_wait_for_the_confirmation_of_their_headers():
    with listening(0) as listener, socket.create_connection(listener.getsockname()):
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
