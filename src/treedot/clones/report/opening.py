"""The opening of the page: the run, how much is copied, the worst files, and a picture of the folders."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator

import treedot
from treedot._pages.page import table
from treedot._pages.printable import printable
from treedot.clones.report.contents import About, Report
from treedot.clones.report.overview import OWN, FileShare, Overview
from treedot.clones.report.text import count_of
from treedot.readers.folders import Skipped

FILES = 10  # of the table of files


def opening(report: Report) -> str:
    """Return what the page begins with."""
    found = report.overview
    if not found.groups:
        return _run(report.about) + "<p>No near-duplicates.</p>"
    panels = [_files(found), *([_folders(found)] if len(found.folders) > 1 else [])]
    return f'{_run(report.about)}{_figures(report)}<div class="opening">{"".join(panels)}</div>'


def _run(about: About | None) -> str:
    """Return the project, the date, the settings, and what was left out."""
    if about is None:
        return ""
    skipped = Skipped()
    skipped.counts.update(about.left_out)
    facts = {
        "Folder": about.root,
        "Searched": ", ".join(about.paths),
        "Date": about.date,
        "Made by": f"treedot {treedot.__version__}",
        "Settings": ", ".join(f"{name} {value}" for name, value in about.settings.items()),
        "Compared": about.units,
        "Left out": str(skipped) or "nothing",
    }
    shown = "".join(f"<dt>{name}</dt><dd>{_text(value)}</dd>" for name, value in facts.items() if value)
    return f'<dl class="run">{shown}</dl>'


def _figures(report: Report) -> str:
    """Return the number of groups, and the lines and files with copies, with their shares."""
    found = report.overview
    shown = len(report.found)
    listed = "" if shown == found.groups else f"; the first {shown:,} are listed"
    blocks = f", {found.blocks:,} of them of blocks," if found.blocks else ""
    known = found.lines > 0
    of_lines = f", {found.copied / found.lines:.1%} of {found.lines:,}" if known else ""
    of_files = f" of {len(report.about.lines):,}" if known and report.about else ""
    figures = (
        (
            found.groups,
            f"{_noun(found.groups, 'group')}{blocks} with {count_of(found.members, 'member')}{listed}",
        ),
        (found.copied, f"{_noun(found.copied, 'line')} in copies{of_lines}"),
        (len(found.files), f"{_noun(len(found.files), 'file')}{of_files} with copies"),
    )
    items = "".join(f"<li><b>{number:,}</b> {words}</li>" for number, words in figures)
    return f'<ul class="figures">{items}</ul>'


def _noun(n: int, noun: str) -> str:
    return count_of(n, noun).partition(" ")[2]


def _files(found: Overview) -> str:
    """Return a table of the files with most copied lines."""
    header = ("file", "lines in copies", "share", "groups")
    rows = [
        (
            _filter("text", file.file, printable(file.file)),
            f"{file.copied:,}",
            _share(file),
            f"{file.groups:,}",
        )
        for file in found.files[:FILES]
    ]
    left = len(found.files) - FILES
    more = f"<p>{count_of(left, 'more file')} with copies.</p>" if left > 0 else ""
    return f"<section><h2>Files with most copied lines</h2>{table(header, rows)}{more}</section>"


def _share(file: FileShare) -> str:
    return f"{file.copied / file.lines:.0%}" if file.lines else ""


def _folders(found: Overview) -> str:
    """Return a picture: a square for two folders, the darker the more lines they have in common."""
    numbers = range(len(found.folders))
    head = "".join(f'<th scope="col">{k + 1}</th>' for k in numbers)
    lines = "".join(
        f'<tr><th scope="row">{k + 1} {_text(name)}</th>{"".join(_squares(found, k))}</tr>'
        for k, name in enumerate(found.folders)
    )
    own = " A star stands for the files directly in a folder." if _has_own(found) else ""
    more = f" {count_of(found.more_folders, 'other folder')} with fewer copies." if found.more_folders else ""
    picture = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{lines}</tbody></table>"
    return (
        "<section><h2>Folders that copy from each other</h2><p>Darker squares have more lines in common; a "
        f'click on one shows its groups.{own}{more}</p><div class="wide folders">{picture}</div></section>'
    )


def _has_own(found: Overview) -> bool:
    return any(name.endswith(OWN) for name in found.folders)


def _squares(found: Overview, row: int) -> Iterator[str]:
    most = max(shared.lines for shared in found.shared.values())
    for column in range(len(found.folders)):
        shared = found.shared.get((min(row, column), max(row, column)))
        if shared is None:
            yield "<td><span></span></td>"
            continue
        one, other = (found.folders[k] for k in (row, column))
        extent = f"{count_of(shared.lines, 'line')} in {count_of(shared.groups, 'group')}"
        says = f"{_text(one)} and {_text(other)}: {extent}"
        share = 15 + 85 * math.sqrt(shared.lines / most)
        wanted = f"{_prefix(one)} + {_prefix(other)}"
        yield (
            f'<td><button type="button" style="--share:{share:.0f}" title="{says}" aria-label="{says}" '
            f'data-filter="folder" data-value="{_text(wanted)}"></button></td>'
        )


def _prefix(folder: str) -> str:
    """Return a folder as the filter of the page takes it."""
    return folder if folder.endswith(OWN) else f"{folder}/"


def _filter(name: str, value: str, shown: str) -> str:
    """Return a button that sets a filter of the page; paths break after slashes."""
    chosen = f'data-filter="{name}" data-value="{_text(value)}"'
    return f'<button type="button" {chosen}>{html.escape(shown).replace("/", "/<wbr>")}</button>'


def _text(text: str) -> str:
    return html.escape(printable(text))
