"""Draws the figure of decoded trees: ``python docs/images/make_decoding.py results/decoding.json [PICTURE]``.

``TREEDOT_DATA=… python -m benchmarks.decoding --parts grid`` writes the file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).with_name("decoding.png")
COLOURS = {0.2: "#1f5f8b", 0.4: "#d9822b"}


def draw(path: str, picture: str | Path = PICTURE) -> None:
    """Draw the share of trees that are read back and certified, by dimension and decay."""
    lines = [line for line in json.loads(Path(path).read_text()) if line["part"] == "grid"]
    corpora = sorted({line["what"] for line in lines}, reverse=True)
    figure, axes = plt.subplots(
        1, len(corpora), figsize=(4 * len(corpora), 3.4), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, what in zip(axes[0], corpora, strict=True):
        for decay, colour in COLOURS.items():
            here = [line for line in lines if line["what"] == what and line["decay"] == decay]
            sizes, shares = [line["n_components"] for line in here], [line["certified"] for line in here]
            panel.plot(sizes, shares, "o-", color=colour, label=f"λ = {decay}")
        every = sorted({line["n_components"] for line in lines if line["what"] == what})
        panel.set_xscale("log", base=2)
        panel.set_xticks(every, [str(size) for size in every])
        panel.set(title=what, xlabel="dimension d", ylim=(-0.03, 1.03))
        panel.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("share read back and certified")
    axes[0, -1].legend(frameon=False)
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    draw(*sys.argv[1:])
