"""Draws the report in the README: ``python docs/images/make_report.py``, with playwright and Chromium."""

from __future__ import annotations

import shutil
import sysconfig
import tempfile
from contextlib import chdir
from pathlib import Path

from treedot.cli import main

HERE = Path(__file__).parent.resolve()
WIDTH = 1200


def draw_report() -> None:
    """Open the first group of the report of a package of the standard library."""
    from playwright.sync_api import sync_playwright  # where there is a browser: tests import all modules

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, chdir(sysconfig.get_paths()["stdlib"]):
        report = Path(folder, "report.html")
        main(["dups", "http", "-o", str(report)])
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": WIDTH, "height": 2000}, device_scale_factor=1.2)
            page.goto(report.as_uri())
            page.locator("#groups summary").first.click()
            groups = page.locator("#groups > *")
            shown = [groups.nth(k).bounding_box() for k in range(2)]
            top, bottom = (box["y"] for box in shown if box)
            height = bottom + 105 - top  # with the head of the second group
            page.screenshot(
                path=HERE / "report.png", clip={"x": 0, "y": top, "width": WIDTH, "height": height}
            )
            browser.close()


if __name__ == "__main__":
    draw_report()
