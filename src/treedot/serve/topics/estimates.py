"""The part of a comparison that takes longest: estimates by vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from treedot.serve.answers import Given
from treedot.serve.comparing import Pair
from treedot.serve.estimates import SEEDS, Estimates
from treedot.serve.fields import Value
from treedot.serve.pages.layout import facts, layout, link
from treedot.serve.pages.plot import ladder_plot

PART = "estimates"  # of the page of a comparison


def values(fields: Mapping[str, Value], given: Given) -> dict[str, Any]:
    """Return the estimates as JSON values."""
    return Estimates.of(Pair.of(fields), fields).to_dict()


def page(fields: Mapping[str, Value], given: Given) -> str:
    """Return the page of the estimates, for browsers without scripts, and for the script of a comparison."""
    found = Estimates.of(Pair.of(fields), fields)
    last = found.ladder[-1]
    shown = facts(
        [
            ("Exact kernel", f"{found.exact:.4f}", "subset trees, 1 for equal trees"),
            ("One estimate", f"{last.values[0]:.4f} ± {last.error:.4f}", f"d = {last.components:,}, seed 0"),
            ("Mean estimate", f"{last.mean:.4f}", f"of {SEEDS} seeds"),
            ("Projection", f"± {last.expected_error:.4f}", "error of a Gaussian projection"),
        ]
    )
    caption = (
        f"A point is the dot product of the two vectors for one of {SEEDS} seeds, a bar the mean and one "
        "standard error. The line is the exact kernel. The error is proportional to 1/√d."
    )
    plot = f'<div class="wide">{ladder_plot(found.exact, found.ladder)}</div>'
    return frame(
        fields,
        f"{shown}<figure>{plot}<figcaption>{caption}</figcaption></figure>",
    )


def frame(fields: Mapping[str, Value], result: str) -> str:
    """Return the page with a result, which the page of the comparison shows, too."""
    section = (
        f'<section data-part="{PART}" data-src="{link("estimates", fields)}">{HEADLINE}{result}</section>'
    )
    return layout(
        "Estimates", f'{section}<p><a href="{link("compare", fields)}">The whole comparison</a></p>'
    )


HEADLINE = "<h2>Estimates by vectors</h2>"


def waiting_part(fields: Mapping[str, Value]) -> str:
    """Return the part of a comparison that a script replaces by the estimates."""
    to = link("estimates", fields)
    text = f'<p><a href="{to}">Estimate the kernel by distributed trees, with {SEEDS} seeds</a></p>'
    return f'<section data-part="{PART}" data-src="{to}">{HEADLINE}{text}</section>'
