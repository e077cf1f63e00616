"""The HTML page that shows the size, the spread, the most typical unit and the members of each cluster."""

from __future__ import annotations

import html
from collections.abc import Callable

import numpy as np

from treedot._pages.page import page
from treedot.clones.report.text import count_of
from treedot.search import Clusters
from treedot.trees import Forest

SHOWN = 200  # listed members of a cluster


def cluster_counts(clusters: Clusters) -> str:
    """Return a sentence with the numbers of units, of clusters, and of units in no cluster."""
    units, alone = (count_of(len(x), "unit") for x in (clusters.labels, clusters.labels[clusters.labels < 0]))
    return f"{units}: {count_of(len(clusters.sizes), 'cluster')}, and {alone} in no cluster"


def cluster_page(forest: Forest, clusters: Clusters, place_of: Callable[[Forest, int], str]) -> str:
    """Return a self-contained page; ``place_of`` returns the file and the lines of a unit."""
    order = np.argsort(clusters.labels, kind="stable")
    bounds = np.searchsorted(clusters.labels[order], np.arange(len(clusters.sizes) + 1))
    parts = [
        f'<p class="says">{cluster_counts(clusters)}.</p><p>The spread is the mean of 1 - cosine between the '
        "most typical unit (the medoid) and the others: 0 if all are equal.</p>"
    ]
    for number, (size, medoid, spread) in enumerate(
        zip(clusters.sizes, clusters.medoids, clusters.spreads, strict=True)
    ):
        members = order[bounds[number] : bounds[number + 1]]
        lines = [f"<li>{html.escape(place_of(forest, int(i)))}</li>" for i in members[:SHOWN]]
        if size > SHOWN:
            lines.append(f"<li>and {size - SHOWN:,} others</li>")
        typical = html.escape(place_of(forest, int(medoid)))
        parts.append(
            f"<details><summary><b>{size:,} units</b>, spread {spread:.2f}: {typical}</summary>"
            f"<ul>{''.join(lines)}</ul></details>"
        )
    return page("Clusters", "\n".join(parts))
