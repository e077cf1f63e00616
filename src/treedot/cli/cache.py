"""The command ``treedot cache``: the cache of parsed source code and of near-duplicates in it."""

from __future__ import annotations

import argparse


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("--clear", action="store_true", help="remove the cache")


def run(options: argparse.Namespace) -> None:
    """Show or clear the cache of parsed source code.

    Commands that read source code cache the parsed files, so that unchanged files are not parsed again.
    treedot dups also caches the near-duplicate functions and blocks that it finds, so that unchanged folders
    are not searched again. The cache is in your cache folder, or in the folder that TREEDOT_CACHE_DIR names.
    It holds at most 512 MiB of files, and 64 MiB of near-duplicates; what was not used for the longest time
    is removed first. Commands ignore it with --no-cache.

    Example: treedot cache --clear
    """
    from treedot._storage.cache_file import remove
    from treedot.readers.code.parse_cache import FOUND, PARSED, cache_facts, cache_path

    path = cache_path()
    parsed, found = cache_facts(PARSED), cache_facts(FOUND)
    size = (
        f"{parsed.entries} files in {parsed.size / 2**20:.1f} MiB, "
        f"near-duplicates in {found.size / 2**20:.1f} MiB"
    )
    if options.clear:
        remove(path)
        print(f"{path}: removed, {size}")
    else:
        print(f"{path}: {size}" if path.exists() else f"{path}: no cache yet")
