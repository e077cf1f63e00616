"""Make the tour and write its page."""

from __future__ import annotations

import math
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from treedot._pages.page import page
from treedot._runtime.jit import compiles
from treedot._runtime.timing import Stopwatch, timed
from treedot._storage.files import check_target, reason, write_folder, write_whole
from treedot._version import __version__
from treedot.cli.progress import Progress
from treedot.cli.tour import plots, vectors
from treedot.cli.tour.duplicates import duplicates_section
from treedot.cli.tour.library import library_root, standard_library, units
from treedot.cli.tour.questions import questions_section
from treedot.cli.tour.section import Section, measured
from treedot.cli.tour.vectors import vectors_section
from treedot.clones.report.html import report_style
from treedot.errors import SourceError
from treedot.models.evaluation_report import MATRIX_STYLE
from treedot.models.explain.web import EXPLANATION_STYLE

PAGE = "index.html"
TITLE = "A tour of treedot"
OTHER_STEPS = 4  # reading functions twice, questions, near-duplicates

STYLE = """
body { max-width: 64rem }
section > p, figcaption, .says { max-width: 46rem }
h3.step { font-size: 1.15rem; line-height: 1.3; color: var(--heading); margin: 2.5rem 0 0.5rem }
figure { margin: 1.5rem 0 } figcaption { color: inherit; font-size: 1rem; margin-top: 0.8rem }
figcaption { border-left: 4px solid var(--line); padding-left: 0.8rem }
.beside h3 { text-align: center } .beside > div > p:not([class]) { font-size: 0.9rem; color: var(--quiet) }
.fragments small { font-weight: 400; color: var(--quiet) } .formula { white-space: nowrap }
.confusion :is(th, td) { padding: 0.3rem 0.6rem }
#duplicates .body { max-height: 32rem; overflow-y: auto }
"""


def write_tour(out: Path, n_functions: int, say: Callable[[str], object] = print) -> Path:
    """Write the page to a folder, whole or not at all, and print the result of every section."""
    target = _checked(out / PAGE)
    watch = Stopwatch()
    compiles(math.inf)  # there is enough work, and no measured time may include the decision
    with Progress("steps", OTHER_STEPS + vectors.STEPS) as progress:
        sections = _sections(n_functions, progress)
    _write(target, _tour(sections, watch.seconds))
    for number, section in enumerate(sections, 1):
        say(f"{number}. {section.title}")
        for line in section.said:
            say(line)
    say(f"The tour, with pictures: {target}")
    return target


def _sections(n_functions: int, progress: Progress) -> list[Section]:
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(done)

    root = library_root()
    progress.describe("reading the standard library", now=True)
    functions, read_seconds = timed(lambda: units(root, n_functions))
    step()
    compared = standard_library(root, min(vectors.COMPARED, n_functions))
    step()
    progress.describe("trees to vectors", now=True)
    first = vectors_section(compared, functions, step)
    progress.describe("questions", now=True)
    second = questions_section()
    step()
    progress.describe("near-duplicates", now=True)
    third = duplicates_section(root, functions, read_seconds)
    step()
    return [first, second, third]


def _tour(sections: Sequence[Section], seconds: float) -> str:
    links = "".join(f'<li><a href="#{section.name}">{section.title}</a></li>' for section in sections)
    machine = f"Python {platform.python_version()} on a machine with {os.cpu_count()} cores"
    body = [
        '<p class="says">treedot compares trees: parsed sentences, source code, web pages. It turns each '
        "tree "
        "into a vector, so that a dot product measures how many fragments two trees share.</p>",
        f'<nav aria-label="Contents"><ol>{links}</ol></nav>',
        f"<section><p>treedot {__version__} made this page in {measured(f'{seconds:.0f} s')}, with "
        f"{machine}. This run computed all numbers on the page.</p></section>",
        *(
            f'<section id="{section.name}"><h2>{number}. {section.title}</h2>\n{section.body}</section>'
            for number, section in enumerate(sections, 1)
        ),
    ]
    style = f"{report_style()}{EXPLANATION_STYLE}{MATRIX_STYLE}{plots.STYLE}{STYLE}"
    return page(TITLE, "\n".join(body), style)


def _checked(target: Path) -> Path:
    """Return where a page goes; raise before the work where it cannot be written there."""
    folder = target.parent
    try:
        tempfile.TemporaryFile(dir=next(path for path in (folder, *folder.parents) if path.exists())).close()
    except OSError as error:
        raise SourceError(f"cannot write {target}: {reason(error)}") from error
    if folder.is_dir():
        check_target(target)
    return target


def _write(target: Path, text: str) -> None:
    """Write a page whole or not at all, with its folder where there is none."""
    if target.parent.is_dir():
        with write_whole(target) as aside:
            aside.write_text(text, encoding="utf-8")
    else:
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        with write_folder(target.parent) as folder:
            (folder / target.name).write_text(text, encoding="utf-8")
