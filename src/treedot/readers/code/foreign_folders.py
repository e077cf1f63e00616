"""Recognise folders that the authors of a project did not write: dependencies, environments, builds.

A name is enough where it has one meaning (``node_modules``). Other names (``vendor``, ``dist``) need evidence
in the folder, such as a licence, source maps, or the records of a package manager.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator

from treedot.languages import language_of
from treedot.readers.code.handwriting import looks_compiled, looks_minified
from treedot.readers.folders import BUILD, DEPENDENCIES, ENVIRONMENT, VENDORED

MAX_ENTRIES = 300  # looked at for evidence
MAX_SAMPLES = 16  # source files that are opened for evidence
MAX_DEPTH = 3
HEAD_BYTES = 1 << 14

_DEPENDENCIES = {"node_modules", "bower_components", "jspm_packages", "site-packages", "dist-packages"}
_INSTALLED = {".package-lock.json", ".yarn-integrity", ".modules.yaml"}  # records of package managers
_VENDORED = {"_vendor", "_vendored", "vendored", "third_party", "third-party", "thirdparty", "3rdparty"}
_PERHAPS_VENDORED = {"vendor", "vendors", "extern", "external", "externals"}
_PERHAPS_BUILT = re.compile(
    r"dist|build|out|output|lib|release|target|_build|es|es\d+|esm\d*|fesm\d*|cjs|umd|amd|bundles?"
    r"|(?:dist|build|cmake-build)[-_].*"
)
_LICENCE = re.compile(r"(?i)(?:un)?licen[cs]e|copying|notice|copyright")
_PACKAGE = {
    *("package.json", "bower.json", "component.json", "composer.json", "modules.txt", "vendor.txt"),
    *("Cargo.toml", "go.mod", "setup.py", "pyproject.toml", "PKG-INFO", ".gitrepo", "autoload.php"),
}
_BANNER = re.compile(
    rb"\A\s*/\*!|@license\b|@preserve\b|(?m:^[ *#/]*.{0,60}\bv\d+\.\d+\.\d+)|^__version__ *="
)
_COPYRIGHT = re.compile(rb"(?im)\bcopyright\b[\W\d_c]*([^\n*]{2,40}\w)")
_BUILD_SCRIPTS = {"build", "compile", "prepare", "prepack", "prepublish", "prepublishOnly", "bundle"}
_OUTPUT_NAMES = {"dist", "build", "out"}
_MODULES = {"cjs", "esm", "umd", "es", "amd"}  # formats of modules of JavaScript
_ENTRY_POINTS = ("main", "module", "browser", "types", "typings", "exports", "bin", "jsnext:main")
_PYTHON_PROJECT = {"setup.py", "setup.cfg", "pyproject.toml"}


def foreign_folder(path: str, names: Collection[str]) -> str | None:
    """Return why the code in a folder is not the project's own; None if it seems to be.

    ``names`` are the entries of the folder.
    """
    name = os.path.basename(path).lower()
    if "pyvenv.cfg" in names or "conda-meta" in names:
        return ENVIRONMENT
    if name in _DEPENDENCIES or not _INSTALLED.isdisjoint(names) or _has_wheels(path, names):
        return DEPENDENCIES
    if name in _VENDORED or (name in _PERHAPS_VENDORED and _comes_from_elsewhere(path)):
        return VENDORED
    if _is_marked_build(names) or (_PERHAPS_BUILT.fullmatch(name) and _is_build(path, name, names)):
        return BUILD
    return None


def _has_wheels(path: str, names: Collection[str]) -> bool:
    """Return whether a folder holds installed Python packages."""
    return any(
        name.endswith(".dist-info") and os.path.exists(os.path.join(path, name, "RECORD")) for name in names
    )


def _comes_from_elsewhere(folder: str) -> bool:
    """Return whether a folder holds licences, packages, banners of releases, or others' copyright."""
    for path in _files(folder):
        name = os.path.basename(path)
        if name in _PACKAGE or _LICENCE.match(name) or ".min." in name or name.endswith(".gemspec"):
            return True
    heads = [_head(path)[:1024] for path in _samples(folder)]
    if any(map(_BANNER.search, heads)):
        return True
    around = [path for path in _samples(os.path.dirname(folder)) if not path.startswith(folder + os.sep)]
    own = {name for path in around for name in _COPYRIGHT.findall(_head(path)[:1024])}
    return any(name not in own for head in heads for name in _COPYRIGHT.findall(head))


def _is_marked_build(names: Collection[str]) -> bool:
    """Return whether a build system left its marks in a folder, whatever the name of the folder."""
    return (
        "CACHEDIR.TAG" in names
        or ("CMakeCache.txt" in names and "CMakeLists.txt" not in names)
        or "meson-private" in names
        or (".buildinfo" in names and "searchindex.js" in names)  # Sphinx
        or ("prettify.js" in names and "block-navigation.js" in names)  # a report of test coverage
    )


def _is_build(path: str, name: str, names: Collection[str]) -> bool:
    parent = os.path.dirname(os.path.abspath(path))
    try:
        beside = set(os.listdir(parent))
    except OSError:
        return False
    if not _PYTHON_PROJECT.isdisjoint(beside) and any(
        entry == "lib" or entry.startswith(("lib.", "bdist.", "temp.")) for entry in names if name == "build"
    ):
        return True
    if any(entry.startswith(("build.gradle", "pom.xml", "build.sbt")) for entry in beside):
        return not {"classes", "generated", "generated-sources", "libs", "tmp"}.isdisjoint(names)
    return _is_compiled(path, is_typed=name != "lib") or (
        "package.json" in beside and _is_published(parent, path, beside)
    )


def _is_compiled(folder: str, is_typed: bool) -> bool:
    """Return whether at least half of a sample of the source files of a folder were written by a compiler.

    With ``is_typed``, a file of types beside a file of code counts as the output of a compiler.
    """
    samples = list(_samples(folder))
    return 0 < len(samples) <= 2 * sum(_is_output(path, is_typed) for path in samples)


def _is_output(path: str, is_typed: bool) -> bool:
    head, stem = _head(path), os.path.splitext(path)[0]
    beside = [f"{path}.map", *(f"{stem}.d.{kind}" for kind in ("ts", "mts", "cts") if is_typed)]
    return looks_minified(head, path) or looks_compiled(head, path) or any(map(os.path.exists, beside))


def _is_published(parent: str, folder: str, beside: Collection[str]) -> bool:
    """Return whether package.json publishes a folder that is built: from sources, or in several formats."""
    try:
        with open(os.path.join(parent, "package.json"), "rb") as file:
            package = json.loads(file.read(1 << 20))
        entries = json.dumps([package.get(name) for name in _ENTRY_POINTS])
        scripts = set(package.get("scripts") or ())
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False
    name = os.path.basename(folder)
    if f'"{name}/' not in entries and f'"./{name}/' not in entries:
        return False
    has_source = "src" in beside or name in _OUTPUT_NAMES
    return (has_source and not _BUILD_SCRIPTS.isdisjoint(scripts)) or len(_MODULES & {name, *beside}) > 1


def _samples(folder: str) -> Iterator[str]:
    """Yield the first source files of a folder."""
    found = 0
    for path in _files(folder):
        if found < MAX_SAMPLES and language_of(path) is not None:
            found += 1
            yield path


def _files(folder: str) -> Iterator[str]:
    """Yield the first files of a folder, breadth first, sorted by name."""
    waiting, left = [(folder, 0)], MAX_ENTRIES
    for path, depth in waiting:
        try:
            with os.scandir(path) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)[:left]
        except OSError:
            continue
        left -= len(listed)
        for entry in listed:
            if entry.is_file(follow_symlinks=False):
                yield entry.path
            elif depth < MAX_DEPTH and entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, depth + 1))


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(HEAD_BYTES)
    except OSError:
        return b""
