"""Draws the pictures of the README: ``python docs/images/make_pictures.py``."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import matplotlib
import numpy as np

from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    SubsetTreeKernel,
    Tree,
    dot_products,
    read_trees,
)

matplotlib.use("agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#1f5f8b", "#d9822b", "0.55"
TREES = ["(S (NP (DT the) (NN tree)) (VP (VBZ grows)))", "(S (NP (DT the) (NN bird)) (VP (VBZ sings)))"]


def draw_rows() -> None:
    """Draw two trees, the fragments in each, and the rows that they become."""
    vectorizer = FragmentVectorizer(n_features=None, budget=2).fit(TREES)
    names = vectorizer.get_feature_names_out()
    rows = vectorizer.transform(TREES).toarray()
    shared = (rows > 0).all(axis=0)
    order = np.lexsort((names, [len(name) for name in names], rows[0] == 0, ~shared))
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), width_ratios=(1.1, 1.1, 2), layout="constrained")
    for panel, text, colour in zip(axes, TREES, (BLUE, ORANGE), strict=False):
        _draw_tree(panel, Tree.parse(text), colour)
    axes[0].set_title("one tree", color=BLUE)
    axes[1].set_title("another", color=ORANGE)
    y = np.arange(len(names))
    axes[2].barh(y - 0.2, rows[0][order], 0.4, color=BLUE)
    axes[2].barh(y + 0.2, rows[1][order], 0.4, color=ORANGE)
    axes[2].axhspan(-0.5, shared.sum() - 0.5, color="0.93", zorder=0)
    axes[2].set_yticks(y, names[order], fontsize=8, family="monospace")
    axes[2].invert_yaxis()
    axes[2].spines[["top", "right"]].set_visible(False)
    axes[2].set_title(
        f"their rows; the shared part (grey) makes the dot product {rows[0] @ rows[1]:.2f}", fontsize=10
    )
    figure.savefig(HERE / "rows.png", dpi=130)


def _draw_tree(axes: plt.Axes, tree: Tree, colour: str) -> None:
    leaves = 0

    def place(node: Tree, depth: int) -> float:
        nonlocal leaves
        below = [place(child, depth + 1) for child in node.children]
        if not below:
            leaves += 1
        x = float(np.mean(below)) if below else leaves - 1.0
        for other in below:
            axes.plot([x, other], [-depth - 0.12, -depth - 0.82], color=GREY, linewidth=1)
        style = "italic" if not below else "normal"
        axes.text(x, -depth, node.label, ha="center", va="center", color=colour, style=style, fontsize=12)
        return x

    place(tree, 0)
    axes.set(xlim=(-0.6, leaves - 0.4), ylim=(-3.6, 0.6))
    axes.axis("off")


def draw_fidelity(count: int = 400) -> None:
    """Draw dot products against the exact kernel, for functions of Python's standard library."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    functions = read_trees(sorted(folder.glob("*.py"))[:60], "python")
    functions = functions[(functions.sizes >= 30) & (functions.sizes <= 600)][:count]
    exact = SubsetTreeKernel(decay=0.4, normalize=True).gram(functions)
    rows = FragmentVectorizer(n_features=2**30, rest="dense", decay=0.4).transform(functions)
    vectors = DistributedTreeVectorizer(decay=0.4).transform(functions)
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
    pairs = np.triu_indices(len(functions), 1)
    for panel, title, found in (
        (axes[0], 'FragmentVectorizer(rest="dense")', rows),
        (axes[1], "DistributedTreeVectorizer()", vectors),
    ):
        panel.plot([0, 1], [0, 1], color=GREY, linewidth=1)
        panel.plot(
            exact[pairs],
            dot_products(found)[pairs],
            ".",
            markersize=2,
            alpha=0.3,
            color=BLUE,
            rasterized=True,
        )
        panel.set(title=title, xlabel="exact kernel, normalised")
    axes[0].set_ylabel("dot product")
    figure.savefig(HERE / "fidelity.png", dpi=130)


if __name__ == "__main__":
    draw_rows()
    draw_fidelity()
