"""The remarks of ``treedot dups`` on standard error: results, limits that were met, and advice."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

import treedot as td
from treedot.clones.baseline import Baseline
from treedot.clones.blocks import DuplicateBlocks
from treedot.clones.groups import DuplicateGroup
from treedot.clones.report.text import count_of
from treedot.errors import SourceError
from treedot.readers.code.grammars import grammar_changes
from treedot.readers.folders import Skipped


def remarks(
    options: argparse.Namespace,
    forest: td.Forest,
    bad: Iterable[SourceError],
    limited: Iterable[int],
    limited_blocks: Iterable[int],
    known: Baseline | None,
) -> Iterator[str]:
    """Yield notes about files that could not be read, units with too many duplicates, and old baselines."""
    if known is not None and not known.knows_pairs:
        yield (
            f"{options.baseline} is a baseline of version {known.version}, which stores groups but not "
            "pairs: a new copy of one member of a known group may go unnoticed; "
            f"renew it with --write-baseline {options.baseline}"
        )
    elif known is not None and not known.knows_lower:
        yield (
            f"{options.baseline} is a baseline of version {known.version}, which does not store pairs below "
            f"the threshold; they are not shown; renew it with --write-baseline {options.baseline}"
        )
    if known is not None and (changes := grammar_changes(known.grammars, forest.columns.get("language", ()))):
        yield f"{options.baseline} {changes}; renew it with --write-baseline {options.baseline}"
    for error in bad:
        yield f"left out {error}"
    for count in limited:
        yield (
            f"found too many near-duplicates of {count_of(count, options.unit)}; not all of them were "
            "compared: exclude generated code with --exclude, or raise --threshold"
        )
    for count in limited_blocks:
        yield (
            f"{count_of(count, 'statement')} begin a block with too many copies, of which only neighbours "
            "were compared: exclude generated code with --exclude"
        )


def advice(options: argparse.Namespace) -> str:
    """Return advice about the near-duplicates that make the command fail."""
    baseline = options.baseline or "FILE"
    record = "" if options.changed_since and not options.baseline else f", or --write-baseline {baseline}"
    compare = "" if options.format == "html" else "; -o report.html shows the copies side by side"
    return (
        "failed because of --fail-on-new: merge the copies, or accept one with a comment 'treedot: ignore' "
        f"directly above it{record}{compare}"
    )


def summary(
    options: argparse.Namespace,
    forest: td.Forest,
    groups: Sequence[DuplicateGroup],
    blocks: DuplicateBlocks | None,
    skipped: Skipped,
) -> str:
    """Return a sentence that says how many units were compared and left out, and how many groups found."""
    left_out = f"; left out: {skipped}" if skipped.counts else ""
    also = f"{count_of(len(blocks.groups), 'group')} of blocks; " if blocks and blocks.groups else ""
    if not len(forest) and not also:
        return f"nothing to compare: no {options.unit} has {options.min_nodes} nodes or more{left_out}"
    files = len(set(forest.columns.get("file", ())))
    copies = len({i for group in groups for i in group.members})
    new = "new " if options.baseline is not None else ""
    shown = min(len(groups), options.top or len(groups))
    first = f"the first {shown:,} of " if shown < len(groups) else ""
    return (
        f"{also}{first}{count_of(len(groups), new + 'group')} of {count_of(copies, options.unit)}, among "
        f"{count_of(len(forest), options.unit)} of at least {options.min_nodes} nodes in "
        f"{count_of(files, 'file')}{left_out}"
    )
