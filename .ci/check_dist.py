"""Check what ``make dist`` built: the wheel holds the package and nothing else, and both name one version.

The description has no relative link, since the page of a package has no files beside it.
"""

from __future__ import annotations

import os
import re
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

WANTED_IN_SOURCE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "tests/conftest.py",
    "paper/__init__.py",
)
COMPILED = (".nbi", ".nbc", ".pyc")


def main(folder: str) -> None:
    """Check the one wheel and the one source distribution of a folder."""
    (wheel,) = Path(folder).glob("*.whl")
    (source,) = Path(folder).glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(archive.read(metadata_name))
    version = metadata["Version"]
    info = f"treedot-{version}.dist-info/"
    strangers = [n for n in names if not n.startswith(("treedot/", info)) or n.endswith(COMPILED)]
    if strangers:
        sys.exit(f"{wheel.name} holds {strangers}")
    relative = re.findall(r"\]\((?!https://)[^)]*\)", metadata.get_payload())
    if relative and "TREEDOT_REPOSITORY" in os.environ:
        sys.exit(f"the description of {wheel.name} has relative links: {relative}")
    package = [path for path in Path("src/treedot").rglob("*") if path.is_file()]
    wanted = {str(path.relative_to("src")) for path in package if path.suffix not in COMPILED}
    if lacking := sorted(wanted - set(names)):
        sys.exit(f"{wheel.name} lacks {lacking}")
    with tarfile.open(source) as tar:
        held = set(tar.getnames())
    lacking = [name for name in WANTED_IN_SOURCE if f"treedot-{version}/{name}" not in held]
    if lacking:
        sys.exit(f"{source.name} lacks {lacking}")
    print(f"{wheel.name}: {len(wanted)} files of the package, Python {metadata['Requires-Python']}")
    print(f"{source.name}: {len(held)} files and folders")


if __name__ == "__main__":
    main(*sys.argv[1:])
