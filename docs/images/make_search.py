"""Draws a search in the README: ``python docs/images/make_search.py``, with playwright and Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from contextlib import chdir
from pathlib import Path
from urllib.parse import urlencode

from treedot.cli import main

HERE = Path(__file__).parent.resolve()
WIDTH = 1000
COMMAND = [sys.executable, "-m", "treedot", "serve", "--port", "0", "--index"]
QUERY = """def first_place(items, wanted, lo=0):
    hi = len(items)
    while lo < hi:
        mid = (lo + hi) // 2
        if items[mid] < wanted:
            lo = mid + 1
        else:
            hi = mid
    return lo
"""


def draw_search() -> None:
    """Search an index of the standard library, and save the first two results."""
    from playwright.sync_api import sync_playwright  # where there is a browser: tests import all modules

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, chdir(sysconfig.get_paths()["stdlib"]):
        index = str(Path(folder, "code.index"))
        main(["index", *map(str, sorted(Path().glob("*.py"))), "-o", index])
        with (
            subprocess.Popen([*COMMAND, index], stdout=subprocess.PIPE, text=True) as server,
            sync_playwright() as play,
        ):
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 900}, device_scale_factor=1)
            page.goto(f"{address}search?{urlencode({'text': QUERY, 'text_format': 'python'})}")
            end = page.locator(".results > li").nth(2).bounding_box()
            assert end is not None
            top = {"x": 0, "y": 0, "width": WIDTH, "height": end["y"]}
            page.screenshot(path=HERE / "search.png", clip=top, full_page=True)
            browser.close()
            server.terminate()


if __name__ == "__main__":
    draw_search()
