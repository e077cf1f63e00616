"""The command ``treedot mcp``: offer coding agents a search for similar code."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from treedot.errors import SourceError, missing

if TYPE_CHECKING:
    from treedot.search.index.followed_index import FollowedIndex

FOLDER = "followed"  # in the folder of caches
UNUSED = 30 * 24 * 3600  # seconds after which an index there is removed


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="source file, or folder in which new files are found (default: with --index, the folders of its "
        "files; otherwise the current folder)",
    )
    command.add_argument(
        "--index",
        metavar="INDEX",
        help="a file that treedot index wrote; it is not changed (default: an index of the PATHs, which is "
        "kept in the cache folder)",
    )


def run(options: argparse.Namespace) -> None:
    """Offer coding agents a search for similar code, as a server of the Model Context Protocol.

    An agent starts this command and talks to it on standard input and output. It has two tools: find_similar
    finds functions whose structure is similar to given code, and compare compares two pieces of code. Edited,
    new and deleted files are followed while the server runs.

    Example: claude mcp add treedot -- treedot mcp
    """
    for path in options.paths:
        if not os.path.exists(path):
            raise SourceError(f"cannot open {path}: no such file or folder")
    try:
        from treedot.agents.server import serve
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("mcp", "mcp_types", "anyio"):
            raise missing("mcp", "mcp", "treedot mcp") from None
        raise
    from treedot.search.index.followed_index import FollowedIndex

    if options.index is not None:
        index = FollowedIndex(options.index, options.paths)
        serve(lambda: index)
    else:
        serve(lambda: _index_of(options.paths or [os.curdir]))


def _index_of(paths: list[str]) -> FollowedIndex:
    """Return the index of the source code at some paths, in the cache folder, after an update."""
    from treedot._runtime.processes import LostProcessError, Process
    from treedot.readers.code.parse_cache import cache_folder
    from treedot.search.index.followed_index import FollowedIndex

    folder = cache_folder() / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    _remove_unused(folder)
    name = json.dumps([os.getcwd(), sorted(paths)]).encode()
    target = folder / f"{hashlib.blake2b(name, digest_size=16).hexdigest()}.index"
    process = Process(filter(None, [os.environ.get("PYTHONPATH")]))  # ends with this one
    try:
        process.do(write_index, paths, os.fspath(target))
    except LostProcessError as error:
        raise SourceError(f"the index could not be built: {error}") from None
    finally:
        process.end()
    return FollowedIndex(target, paths)


def write_index(paths: list[str], target: str) -> None:
    """Build or update an index of the source code at some paths."""
    from treedot.cli import index, parser
    from treedot.readers.code.parse_cache import ParseCache, keeping_parsed

    options = parser("index").parse_args(["index", "--update", "-o", target, "--", *paths])
    with keeping_parsed(ParseCache()):
        index.run(options)


def _remove_unused(folder: Path) -> None:
    """Remove indexes that were not used for a month."""
    for path in folder.glob("*.index"):
        try:
            if time.time() - path.stat().st_mtime > UNUSED:
                path.unlink()
        except OSError:  # removed by another process
            continue
