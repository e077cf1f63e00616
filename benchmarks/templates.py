"""Measure whether clustering recovers the templates of web pages: ``python -m benchmarks.templates``.

By default the pages are generated. With ``--folder``, they are files in folders ``SITE/KIND``, each with the
pages of one template. Then the score is given for all folders together, for one folder of each site, and for
the folders within each site.

A site has a frame (head, navigation, footer) that all its templates share. A template has its own parts, some
of them optional, and one or two lists of 0 to 50 similar items, some of which have extra parts. Texts differ
from page to page. Noise pages are random trees of the same tags and belong to no template.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from treedot import Forest, FragmentVectorizer, cluster_trees, read_trees
from treedot.readers import read_html

NOISE = -1
ROUNDS = 3
BLOCKS = ("div", "section", "article", "aside", "main")
LEAVES = ("p", "h2", "h3", "span", "a", "img", "time", "button", "small", "em")
LISTS = (("ul", "li"), ("ol", "li"), ("div", "div"), ("div", "article"), ("tbody", "tr"), ("dl", "dd"))
WORDS = (
    "tree",
    "kernel",
    "page",
    "price",
    "river",
    "north",
    "seven",
    "open",
    "light",
    "paper",
    "stone",
    "early",
)


@dataclass(frozen=True)
class Part:
    """An element of a template, on all pages or on a share of them; a list repeats its only child."""

    tag: str
    css: str
    children: tuple[Part, ...] = ()
    share: float = 1.0
    is_list: bool = False

    def write(self, rng: np.random.Generator, out: list[str]) -> None:
        """Append the HTML of one occurrence."""
        if rng.random() >= self.share:
            return
        out.append(f'<{self.tag} class="{self.css}" id="{self.css}-{rng.integers(1000)}">')
        if self.tag in LEAVES and self.tag != "img":
            out.extend(f"{word} " for word in rng.choice(WORDS, rng.integers(1, 8)))
        for child in self.children * (int(rng.integers(0, 51)) if self.is_list else 1):
            child.write(rng, out)
        if self.tag != "img":
            out.append(f"</{self.tag}>\n")


def grown(rng: np.random.Generator, size: int, optional: float) -> Part:
    """Return a random part of about ``size`` elements; a share of them occurs only on some pages."""
    share = float(rng.uniform(0.3, 0.9)) if rng.random() < optional else 1.0
    css = f"c{rng.integers(40)}"
    if size <= 1:
        return Part(str(rng.choice(LEAVES)), css, share=share)
    pieces = np.maximum(1, np.diff([0, *np.sort(rng.integers(0, size, rng.integers(1, 4))), size]))
    return Part(str(rng.choice(BLOCKS)), css, tuple(grown(rng, int(k), optional) for k in pieces), share)


def listing(rng: np.random.Generator) -> Part:
    """Return a list of similar items."""
    around, tag = LISTS[rng.integers(len(LISTS))]
    item = grown(rng, int(rng.integers(3, 9)), 0.2)
    return Part(around, f"l{rng.integers(40)}", (Part(tag, item.css, item.children),), is_list=True)


def site(rng: np.random.Generator, templates: int) -> list[Part]:
    """Return the templates of a site, as the bodies of their pages."""
    head, foot = grown(rng, 12, 0.1), grown(rng, 10, 0.1)
    pages = []
    for _ in range(templates):
        own = [grown(rng, int(rng.integers(8, 20)), 0.2), *(listing(rng) for _ in range(rng.integers(1, 3)))]
        pages.append(Part("body", "page", (head, Part("main", "content", tuple(own)), foot)))
    return pages


def pages(
    n_sites: int = 4, n_templates: int = 4, n_pages: int = 25, n_noise: int = 40, seed: int = 0
) -> tuple[list[str], list[int]]:
    """Return pages as HTML, and the template number of each, or ``NOISE``.

    Examples
    --------
    >>> made, template = pages(n_sites=1, n_templates=2, n_pages=3, n_noise=1)
    >>> template
    [0, 0, 0, 1, 1, 1, -1]
    """
    rng = np.random.default_rng(seed)
    made: list[str] = []
    labels: list[int] = []
    bodies = [body for _ in range(n_sites) for body in site(rng, n_templates)]
    noise = [Part("body", "page", (grown(rng, int(rng.integers(20, 200)), 0),)) for _ in range(n_noise)]
    for number, body in [
        *((k, b) for k, b in enumerate(bodies) for _ in range(n_pages)),
        *((NOISE, b) for b in noise),
    ]:
        out = ["<!doctype html><html><head><title>", str(rng.choice(WORDS)), "</title></head>"]
        body.write(rng, out)
        made.append("".join([*out, "</html>"]))
        labels.append(number)
    return made, labels


def read_pages(made: Sequence[str], **policies: str) -> Forest:
    """Return the trees of pages."""
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(made):
            (Path(folder) / f"{number:06}.html").write_text(page)
        return read_html(folder, **policies)


def clusters(trees: Forest, damping: str) -> list[int]:
    """Return the cluster of each tree."""
    found: list[int] = cluster_trees(trees, vectorizer=FragmentVectorizer(damping=damping)).labels.tolist()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how well templates are recovered, and how fast pages are read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.templates", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="number of sets of pages")
    parser.add_argument("--pages", type=int, default=25, help="number of pages per template")
    parser.add_argument(
        "--folder", type=Path, help="use the pages in folders SITE/KIND here, instead of generated ones"
    )
    options = parser.parse_args(arguments)
    if options.folder is None:
        print_generated(options.seeds, options.pages)
    else:
        print_found(options.folder)


def print_generated(seeds: int, n_pages: int) -> None:
    """Print how well the templates of generated pages are recovered, for each way to read and to count."""
    from sklearn.metrics import adjusted_rand_score

    sets = [pages(n_pages=n_pages, seed=seed) for seed in range(seeds)]
    print("adjusted Rand index against the templates, lowest and mean of", seeds, "sets of pages")
    print(f"{'attributes':<11}{'text':<6}{'damping':<9}{'lowest':>7}{'mean':>7}")
    for attributes, text in (("drop", "drop"), ("blur", "drop"), ("blur", "blur"), ("keep", "drop")):
        trees = [read_pages(made, attributes=attributes, text=text) for made, _ in sets]
        for damping in ("linear", "sqrt", "log1p"):
            scores = [
                adjusted_rand_score(template, clusters(forest, damping))
                for forest, (_, template) in zip(trees, sets, strict=True)
            ]
            print(
                f"{attributes:<11}{text:<6}{damping:<9}{min(scores):7.3f}{np.mean(scores):7.3f}", flush=True
            )
    print_speed([page.encode() for made, _ in sets for page in made])


def print_found(folder: Path) -> None:
    """Print how well the folders of pages are recovered."""
    forest = read_html(folder)
    kinds = np.array([Path(file).parent.relative_to(folder).as_posix() for file in forest.columns["file"]])
    sites = np.array([kind.split("/")[0] for kind in kinds])
    firsts = {site: min(kinds[sites == site]) for site in np.unique(sites)}
    print_score("all", forest, kinds)
    print_score("one of each site", forest, kinds, np.isin(kinds, list(firsts.values())))
    for site in firsts:
        if len(set(kinds[sites == site])) > 1:
            print_score(f"within {site}", forest, kinds, sites == site)
    print_speed([Path(file).read_bytes() for file in forest.columns["file"]])


def print_score(name: str, forest: Forest, kinds: np.ndarray, chosen: np.ndarray | None = None) -> None:
    """Print how well the kinds of the chosen pages are recovered."""
    from sklearn.metrics import adjusted_rand_score

    places = np.arange(len(kinds)) if chosen is None else np.flatnonzero(chosen)
    found = cluster_trees(forest[places])
    print(
        f"{name}: {len(places):,} pages in {len(set(kinds[places]))} folders, {len(found.sizes)} clusters, "
        f"{np.mean(found.labels < 0):.1%} in none; adjusted Rand index "
        f"{adjusted_rand_score(kinds[places], found.labels):.3f}",
        flush=True,
    )


def print_speed(made: Sequence[bytes]) -> None:
    """Print the number of nodes read per second of one processor, the best of several rounds."""
    best, nodes = np.inf, 0
    for _ in range(ROUNDS):
        start = time.process_time()
        nodes = sum(read_trees(io.BytesIO(page), "html").n_nodes for page in made)
        best = min(best, time.process_time() - start)
    size = sum(map(len, made)) / 1e6
    print(
        f"{len(made):,} pages, {nodes / best / 1e6:.2f} M nodes and {size / best:.0f} MB a second of a core"
    )


if __name__ == "__main__":
    main()
