"""Check what ``make dist`` built: the wheel holds the package and nothing else, both name one version."""

from __future__ import annotations

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
DATA = (
    "py.typed",
    "clones/report/page.css",
    "clones/report/page.js",
    "cli/tour/questions.tsv",
)  # of the wheel


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
    strangers = [
        n for n in names if not n.startswith(("treedot/", info)) or n.endswith((".nbi", ".nbc", ".pyc"))
    ]
    if strangers:
        sys.exit(f"{wheel.name} holds {strangers}")
    modules = {str(path.relative_to("src")) for path in Path("src/treedot").rglob("*.py")}
    others = {f"treedot/{name}" for name in DATA}
    if lacking := sorted((modules | others) - set(names)):
        sys.exit(f"{wheel.name} lacks {lacking}")
    with tarfile.open(source) as tar:
        held = set(tar.getnames())
    lacking = [name for name in WANTED_IN_SOURCE if f"treedot-{version}/{name}" not in held]
    if lacking:
        sys.exit(f"{source.name} lacks {lacking}")
    print(f"{wheel.name}: {len(modules)} modules, Python {metadata['Requires-Python']}")
    print(f"{source.name}: {len(held)} files and folders")


if __name__ == "__main__":
    main(*sys.argv[1:])
