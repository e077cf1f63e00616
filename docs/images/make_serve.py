"""Draws the pages of treedot serve: ``python docs/images/make_serve.py``, with playwright and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent.resolve()
LIBRARY = sysconfig.get_path("stdlib")
WIDTH = 1320
TREEDOT = [sys.executable, "-m", "treedot"]
SECONDS = 60_000  # for a page, in milliseconds
MODULES = ("bisect.py", "heapq.py", "random.py", "statistics.py")  # of Python's standard library
QUERY = """def rise(items, top, place):
    wanted = items[place]
    while place > top:
        above = (place - 1) // 2
        if wanted < items[above]:
            items[place] = items[above]
            place = above
            continue
        break
    items[place] = wanted
"""


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Start the server in the folder of the standard library; yield its address."""
    command = [*TREEDOT, "serve", "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=LIBRARY) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def draw_pages() -> None:
    """Open the examples of the first page, and search an index; save what they show."""
    from playwright.sync_api import (
        expect,
        sync_playwright,
    )  # where there is a browser: tests import all modules

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=1)

        def save(name: str, bottom: float | None = None) -> None:
            """Save the page, or its upper part."""
            height = page.evaluate("document.querySelector('main').getBoundingClientRect().bottom + scrollY")
            clip = {"x": 0, "y": 0, "width": WIDTH, "height": (bottom or height) + 24}
            page.screenshot(path=HERE / f"serve-{name}.png", clip=clip, full_page=True)

        with serving() as address:
            page.goto(address)
            save("home")
            page.get_by_role("link", name="Two functions in Python").click()
            page.get_by_role("radio", name="4,096").check(force=True)
            expect(page.locator(".ladder circle")).to_have_count(100, timeout=SECONDS)
            expect(page.locator("[aria-busy=true]")).to_have_count(0)
            page.locator(".box").first.hover()
            end = page.get_by_role("heading", name="Exact kernels").bounding_box()
            assert end is not None
            save("compare", end["y"] + page.evaluate("scrollY") - 48)
            page.locator("[data-part=estimates]").screenshot(path=HERE / "serve-estimates.png")
            page.goto(address)
            page.get_by_role("link", name="see it decide").click()
            expect(page.get_by_text("The model decides for")).to_be_visible(timeout=SECONDS)
            save("explain")
        with tempfile.TemporaryDirectory() as folder:
            index = f"{folder}/code.index"
            command = [*TREEDOT, "index", *MODULES, "-o", index]
            subprocess.run(command, check=True, cwd=LIBRARY)
            with serving("--index", index) as address:
                page.goto(f"{address}search")
                page.locator("[name=text]").fill(QUERY)
                page.locator("[name=text]").evaluate("field => field.scrollTop = 0")
                page.get_by_text("Side by side").first.click(timeout=SECONDS)
                expect(page.locator("[data-tree]")).to_have_count(2, timeout=SECONDS)
                end = page.locator(".results .facts").bounding_box()
                assert end is not None
                save("search", end["y"] + page.evaluate("scrollY") - 24)
        browser.close()


if __name__ == "__main__":
    draw_pages()
