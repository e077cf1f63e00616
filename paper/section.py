"""What an experiment has to say: text, tables and drawings, written as HTML or as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from treedot._pages.page import figure, table
from treedot._storage.files import write_whole

AGREES, DIFFERS = "✓", "✗"


@dataclass(frozen=True)
class Table:
    """Cells are plain text."""

    header: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Drawing:
    """Panels, each a matplotlib figure, with a name for their files."""

    name: str
    panels: Sequence[Any]
    caption: str

    @property
    def files(self) -> list[str]:
        """The name of the file of each panel, without its suffix: ``fig3``, or ``fig2-1``, ``fig2-2``, …."""
        if len(self.panels) == 1:
            return [self.name]
        return [f"{self.name}-{k}" for k in range(1, len(self.panels) + 1)]


@dataclass
class Section:
    """One table or figure of the paper, re-measured."""

    name: str
    title: str
    says: str
    blocks: list[str | Table | Drawing] = field(default_factory=list)

    def html(self) -> str:
        """Return the section for a page; drawings are inside."""
        parts = [f'<section id="{self.name}"><h2>{html.escape(self.title)}</h2>']
        parts.append(f'<p class="says">{_marked(self.says)}</p>')
        parts += [_html(block) for block in self.blocks]
        return "\n".join([*parts, "</section>"])

    def markdown(self, folder: str) -> str:
        """Return the section for the documentation; drawings are files of a folder."""
        return "\n\n".join(
            [f"## {self.title}", f"**{self.says}**", *(_markdown(block, folder) for block in self.blocks)]
        )

    def draw(self, folder: Path) -> None:
        """Write the drawings as PNG and SVG."""
        for block in self.blocks:
            if isinstance(block, Drawing):
                for file, figure in zip(block.files, block.panels, strict=True):
                    figure.draw_without_rendering()
                    figure.set_layout_engine("none")  # laid out once, not for every file
                    for kind in ("png", "svg"):
                        with write_whole(folder / f"{file}.{kind}") as aside:
                            figure.savefig(aside, format=kind, dpi=110)


def panel(title: str = "", **axes: Any) -> tuple[Any, Any]:
    """Return a new matplotlib figure of the size that all panels have, and its axes."""
    import matplotlib.pyplot as plt

    figure, drawn = plt.subplots(figsize=(5.2, 4), layout="constrained")
    drawn.set(title=title, **axes)
    return figure, drawn


def spread(values: Sequence[float]) -> str:
    """Return the mean and, of several values, the standard deviation."""
    mean = f"{np.mean(values):.3f}"
    return f"{mean} ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else mean


def compared(ours: float, printed: float, within: float) -> str:
    """Return our number, the paper's, and whether they agree within a tolerance, which is shown."""
    mark = AGREES if abs(ours - printed) <= within else DIFFERS
    return f"{ours:.3f} / {printed:.3f} {mark} (±{within:g})"


def _html(block: str | Table | Drawing) -> str:
    if isinstance(block, Table):
        cells = [[_marked(str(cell)) for cell in row] for row in block.rows]
        return table([html.escape(h) for h in block.header], cells)
    if isinstance(block, Drawing):
        return figure(block.caption, *block.panels)
    return f"<p>{_marked(block)}</p>"


def _marked(text: str) -> str:
    escaped = html.escape(text)
    for mark, kind in ((AGREES, "agrees"), (DIFFERS, "differs")):
        escaped = escaped.replace(mark, f'<span class="{kind}">{mark}</span>')
    return escaped


def _markdown(block: str | Table | Drawing, folder: str) -> str:
    if isinstance(block, Table):
        lines = [block.header, ["---"] * len(block.header), *block.rows]
        return "\n".join(
            "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
        )
    if isinstance(block, Drawing):
        return "\n".join(f"![{block.caption}]({folder}/{file}.png)" for file in block.files)
    return block
