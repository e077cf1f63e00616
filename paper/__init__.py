"""All of the paper's section 5, re-measured: ``python -m paper``."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

os.environ.setdefault("TREEDOT_COMPILE", "always")  # or the first measurements would be of plain Python

from paper.corpora import COUNTS, Corpora
from paper.record import Record, clock, versions
from paper.sample import SampleCorpora
from paper.section import Section
from paper.settings import FULL, QUICK, SAMPLE, Settings
from treedot import __version__
from treedot._pages.page import page, require_plots
from treedot._storage.files import write_whole
from treedot.errors import MissingDependencyError, SourceError

__all__ = ["EXPERIMENTS", "run"]

EXPERIMENTS = ("fig2", "table1", "table2", "fig3", "fig4", "fig5")


def run(
    names: Sequence[str],
    data: str | Path | None,
    out: Path,
    quick: bool = False,
    sample: bool = False,
    say: Callable[[str], object] = print,
    *,
    settings: Settings | None = None,
    counts: dict[str, int] = COUNTS,
) -> Path:
    """Measure experiments, write results and drawings to a folder, and a report over all that is there.

    Parameters
    ----------
    names : sequence of str
        Members of ``EXPERIMENTS``.
    data : path
        The folder of the corpora; see ``corpora.LAYOUT``.
    out : path
        The folder of the results. What was measured alike before is not measured again.
    quick : bool
        Measure less of everything, in minutes.
    sample : bool
        Measure trees that need no download, in minutes; ``data`` is not read.
    say : callable
        Receives lines of progress.
    settings, counts
        In place of the usual sizes.
    """
    settings = settings or (SAMPLE if sample else QUICK if quick else FULL)
    corpora = _everything_needed(names, data, counts, settings.sample)
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        _record(name, corpora, settings, out)  # refuses what was made otherwise, before any work
    for name in names:
        _measure(name, corpora, settings, out, say)
    sections = []
    for name in EXPERIMENTS:
        try:
            record = _record(name, corpora, settings, out)
        except SourceError as error:
            say(f"left out of the report: {error}")
            continue
        if all(key in record for key in _module(name).steps(corpora, settings)):
            section = _module(name).section(record, settings)
            if settings.sample:
                section.blocks.insert(0, _module(name).SAMPLE)
                section.says = f"On the sample: {section.says}"
                say(f"{name}: {_module(name).SAMPLE}")
            sections.append((section, record))
    target = _report(sections, settings, out)
    say(f"the report: {target}")
    return target


def _everything_needed(
    names: Sequence[str], data: str | Path | None, counts: dict[str, int], sample: bool
) -> Corpora:
    """Return the corpora, or raise one error that names all that is missing, before any work."""
    lacking: list[str] = []
    corpora = None
    try:
        require_plots("drawing the figures")
    except MissingDependencyError as error:
        lacking.append(str(error))
    try:
        corpora = SampleCorpora() if sample else Corpora(data, counts)
        corpora.require(*dict.fromkeys(kind for name in names for kind in _module(name).NEEDS))
    except SourceError as error:
        lacking.append(str(error))
    if lacking or corpora is None:
        raise SourceError("\n".join(lacking))
    return corpora


def _module(name: str) -> Any:
    return import_module(f"paper.{name}")


def _record(name: str, corpora: Corpora, settings: Settings, out: Path) -> Record:
    made = {
        "treedot": __version__,
        "settings": settings.described(),
        "data": corpora.digest,
        "versions": versions(),
    }
    how = "--sample" if settings.sample else f"--data DIR{' --quick' if settings.quick else ''}"
    command = f"python -m paper {name} {how} --out DIR"
    return Record(out / f"{name}.json", made, command)


def _measure(
    name: str, corpora: Corpora, settings: Settings, out: Path, say: Callable[[str], object]
) -> None:
    _record(name, corpora, settings, out).complete(name, _module(name).steps(corpora, settings), say)


def _report(sections: list[tuple[Section, Record]], settings: Settings, out: Path) -> Path:
    """Write drawings, the report as one page of HTML, and the same as Markdown."""
    import matplotlib.pyplot as plt

    for section, _ in sections:
        section.draw(out)
    scale = (
        "This is the quick run: small samples, to be read as a sketch." if settings.quick else "The full run."
    )
    if settings.sample:
        scale = (
            "THIS IS A SAMPLE, NOT THE PAPER'S DATA: invented questions, generated pairs, and functions of "
            "Python's standard library. Each section says what can be compared with the paper."
        )
    lead = (
        "Every table and figure of section 5 of Distributed Tree Kernels (Zanzotto & Dell'Arciprete, "
        f"ICML 2012), measured anew by treedot {__version__} beside the printed numbers. {scale} ✓ agrees "
        "with the paper, ✗ does not."
    )
    title = "Distributed tree kernels, re-measured"
    contents = "".join(
        f'<li><a href="#{section.name}">{html.escape(section.title)}</a>. {html.escape(section.says)}</li>'
        for section, _ in sections
    )
    made = "".join(
        f"<li><code>{record.command}</code>: {len(record)} steps, {clock(record.seconds)} minutes</li>"
        for _, record in sections
    )
    body = "\n".join(
        [f"<p>{html.escape(lead)}</p><ul>{contents}</ul>", *(section.html() for section, _ in sections),
         f"<h2>How this was made</h2><ul>{made}</ul>"]
    )  # fmt: skip
    with write_whole(out / "index.html") as aside:
        aside.write_text(page(title, body), encoding="utf-8")
    text = [f"# {title}", lead, *(section.markdown(".") for section, _ in sections)]
    with write_whole(out / "results.md") as aside:
        aside.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    plt.close("all")
    return out / "index.html"
