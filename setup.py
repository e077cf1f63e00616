"""Describe the package page: its addresses, and the README with absolute links.

The page has no files beside it. The workflow of releases gives the address of the repository in the
environment variable ``TREEDOT_REPOSITORY``; without it, links stay relative. The rest is in
``pyproject.toml``.
"""

import os
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
README, VERSION = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "src/treedot/_version.py")
)
ADDRESS = os.environ.get("TREEDOT_REPOSITORY", "")
TAG = "v" + VERSION.split('"')[-2]
LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?:)([^)]*)\)")


def absolute(link: re.Match) -> str:
    """Return a link of the README with the address of this version's file."""
    picture, text, target = link.groups()
    kind = "raw" if picture else "blob"
    file = f"README.md{target}" if target.startswith("#") else target
    return f"{picture}{text}({ADDRESS}/{kind}/{TAG}/{file})"


setup(
    long_description=LINK.sub(absolute, README) if ADDRESS else README,
    long_description_content_type="text/markdown",
    project_urls={"Repository": ADDRESS, "Changelog": f"{ADDRESS}/blob/main/CHANGELOG.md"} if ADDRESS else {},
)
