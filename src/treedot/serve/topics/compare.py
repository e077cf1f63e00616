"""The page that compares two trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treedot._pages.page import table
from treedot.serve.answers import Given
from treedot.serve.comparing import Compared, KernelValue, Pair
from treedot.serve.fields import COMPARE, Value
from treedot.serve.pages.drawn import drawn_pair, shared_boxes
from treedot.serve.pages.layout import (
    choice_field,
    count_field,
    facts,
    form,
    layout,
    part,
    row,
    slider,
    steps_field,
    text_field,
)
from treedot.serve.topics import decode, estimates

FIELD = {field.name: field for field in COMPARE}
COMPOSITION_NAMES: dict[Value, str] = {
    "mixed": "mixed",
    "product": "⊠ product",
    "convolution": "⊡ convolution",
}
KERNELS = {
    "subset": ("Subset trees", "fragments in which a node has all of its children or none"),
    "partial": ("Partial trees", "fragments in which a node has any of its children"),
    "subtree": ("Subtrees", "whole subtrees, down to the leaves"),
}


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return the comparison as JSON values."""
    return Compared.of(Pair.of(fields), fields).to_dict()


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the page, with the result if both trees are given."""
    is_asked = bool(str(fields["a"]).strip() and str(fields["b"]).strip())
    return frame(fields, _compared(fields), is_whole=True) if is_asked else frame(fields, "")


def frame(fields: Mapping[str, Value], result: str, is_whole: bool = False) -> str:
    """Return the page with a result; if it is whole, with links to what takes longer."""
    more = [one.waiting_part(fields) if is_whole else part(one.PART, "") for one in (estimates, decode)]
    parts = part("result", result) + "".join(more)
    return layout("Compare two trees", _form(fields) + parts, "/compare")


def _form(fields: Mapping[str, Value]) -> str:
    inputs = [
        '<div class="input">'
        + text_field(FIELD[name], fields[name], f"{which} tree")
        + choice_field(FIELD[f"{name}_format"], fields[f"{name}_format"], "Format")
        + "</div>"
        for name, which in (("a", "First"), ("b", "Second"))
    ]
    sizes = {size: f"{size:,}" for size in FIELD["components"].choices}
    controls = [
        f'<div class="beside">{"".join(inputs)}</div>',
        row(
            slider(FIELD["decay"], fields["decay"], "λ, weight of larger fragments"),
            slider(FIELD["mu"], fields["mu"], "μ, decay by depth (partial trees)"),
            count_field(FIELD["fragments"], fields["fragments"], "Fragments"),
        ),
        row(
            steps_field(FIELD["components"], fields["components"], "Numbers in a vector, d", sizes),
            steps_field(FIELD["composition"], fields["composition"], "Composition", COMPOSITION_NAMES),
        ),
    ]
    return form("/compare", controls, "Compare")


def _compared(fields: Mapping[str, Value]) -> str:
    """Return the result of a comparison."""
    found = Compared.of(Pair.of(fields), fields)
    titles = tuple(
        f"{which}: {forest.n_nodes:,} nodes, read as {format}"
        for which, forest, format in zip(("First", "Second"), found.pair[:2], found.pair.formats, strict=True)
    )
    parts = [
        facts(_figures(found)),
        "<h2>Both trees</h2>",
        drawn_pair(found.shared, found.edits, (titles[0], titles[1])),
        "<h2>Shared fragments, strongest first</h2>",
        _fragments(found),
        "<h2>Exact kernels</h2>",
        _kernels(found.kernels),
    ]
    return "".join(parts)


def _figures(found: Compared) -> list[tuple[str, object, str]]:
    edits = found.edits
    counted = "the trees are too large"
    if edits is not None:
        counts = (edits.deleted, "deleted"), (edits.inserted, "inserted"), (edits.relabelled, "relabelled")
        counted = ", ".join(f"{len(nodes)} {what}" for nodes, what in counts)
    return [
        ("Similarity", f"{found.figures.similarity:.3f}", "productions in both, of those in either"),
        ("Kernel", f"{found.shared.value:.3f}", "subset trees, 1 for equal trees"),
        ("Cosine", f"{found.figures.cosine:.3f}", "of rows of small fragments"),
        ("Edit distance", "–" if edits is None else f"{edits.distance:,}", counted),
    ]


def _fragments(found: Compared) -> str:
    if not found.shared.fragments:
        return "<p>The trees share no fragment.</p>"
    return (
        "<p>A box shows a fragment, what it adds to the normalised kernel, and how often it occurs in each "
        f"tree. All others add {found.shared.unlisted:.4f}.</p>{shared_boxes(found.shared.fragments)}"
    )


def _kernels(kernels: Mapping[str, KernelValue]) -> str:
    rows = [
        (KERNELS[name][0], _number(one.normalized, ".4f"), _number(one.value, ".6g"), KERNELS[name][1])
        for name, one in kernels.items()
    ]
    return table(("Kernel", "normalised", "value", "counts"), rows)


def _number(value: float | None, format: str) -> str:
    return "too large to compute" if value is None else f"{value:{format}}"
