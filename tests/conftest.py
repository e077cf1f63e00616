import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Most tests would be of plain Python if they let treedot decide.
os.environ["TREEDOT_COMPILE"] = os.environ.get("TREEDOT_COMPILE") or "always"

# A background job of a shell ignores SIGINT, and its processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

from components import CHROMIUM, EXPECTED, component, is_installed
from treedot._runtime.jit import CHOICE, COMPILED

# Processes that tests start decide as a user's do: most have little work, and loading compiled code takes
# longer than that. Tests of compiled code in other processes ask for it.
if CHOICE == "always":
    os.environ["TREEDOT_COMPILE"] = ""

# Compiled code makes the first example of a test slow, and examples must not change from run to run.
# Without compiled code every example is slow, and a few of them show what differs.
settings.register_profile(
    "treedot",
    deadline=None,
    derandomize=True,
    max_examples=60 if COMPILED else 5,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("treedot"), max_examples=10)
settings.load_profile("treedot")


@pytest.fixture(scope="session", autouse=True)
def cache_of_parsed_files(tmp_path_factory):
    """Keep tests, and the processes that they start, out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEDOT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def browser():
    """A real browser, for the tests of one module."""
    with component("chromium").sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


PAGES = {"docs/parsers.md": ("bridges",)}  # the components that their examples need


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items):
    """Mark the slow examples of the documentation, and those of components, which cannot hold marks."""
    for item in items:
        if item.nodeid.startswith(("docs/models.md", "src/treedot/batch/streaming.py")):
            item.add_marker(pytest.mark.slow)
        for name in PAGES.get(item.nodeid.partition("::")[0], ()):
            if name not in EXPECTED and not is_installed(name):
                item.add_marker(pytest.mark.skip(reason=f"{name} is not installed"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Leave thousands of tests and their modules, which stay until the end, to no garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
