import contextlib
import threading
import time

import httpx
import pytest

from treedot.serve.answers import Given
from treedot.serve.app import make_app
from treedot.serve.server import listening, server


@contextlib.contextmanager
def running(index=None, model=None, **settings):
    """Run the server in a thread; yield a client of it, which knows its address."""
    with listening(0) as listener:
        port = listener.getsockname()[1]
        runs = server(make_app(port, Given(index, model), workers=2, **settings))
        thread = threading.Thread(target=runs.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not runs.started and thread.is_alive():
                time.sleep(0.01)
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
                yield client
        finally:
            runs.should_exit = True
            thread.join()


@pytest.fixture(scope="package")
def site():
    """A server without an index or a model."""
    with running() as client:
        yield client


@pytest.fixture(scope="session")
def start():
    """Return what starts a server with other settings."""
    return running
