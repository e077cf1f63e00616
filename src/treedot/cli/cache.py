"""The command ``treedot cache``: the cache of parsed source code."""

from __future__ import annotations

import argparse


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    command.add_argument("--clear", action="store_true", help="remove the cache")


def run(options: argparse.Namespace) -> None:
    """Show or clear the cache of parsed source code.

    Commands that read source code cache the parsed files, so that unchanged files are not parsed again. The
    cache is in your cache folder, or in the folder that TREEDOT_CACHE_DIR names. It holds at most 512 MiB;
    the files that were not used for the longest time are removed first. Commands ignore it with --no-cache.

    Example: treedot cache --clear
    """
    from treedot.readers.code.parse_cache import cache_facts, remove

    facts = cache_facts()
    size = f"{facts.entries} files in {facts.size / 2**20:.1f} MiB"
    if options.clear:
        remove(facts.path)
        print(f"{facts.path}: removed, {size}")
    else:
        print(f"{facts.path}: {size}" if facts.path.exists() else f"{facts.path}: no cache yet")
