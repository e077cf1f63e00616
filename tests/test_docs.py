"""The documentation against the package: names, links and pages."""

import re
from pathlib import Path

import pytest

import treedot
from treedot import encode, report
from treedot.vectors import fidelity

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_reference_has_every_public_name_and_no_other():
    listed = re.findall(r"^   (\w+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.M)
    assert len(listed) == len(set(listed))
    modules = (treedot, encode, fidelity, report)
    assert set(listed) == {"clear_encoders", *(name for module in modules for name in module.__all__)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page):
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert not target or (page.parent / target).exists(), target
    for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", page.read_text(encoding="utf-8")):
        text = (page.parent / target if target else page).read_text(encoding="utf-8")
        slugs = [
            re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.M)
        ]
        assert heading in slugs
