"""How long does a formula take to evaluate? Learn it from generated trees, and ask which parts cost most.

You learn: a regression of trees with counts of fragments, its error on new trees, and an explanation that
sums to the predicted number.

    python examples/sizes.py
    open formula.html
"""

import argparse
import random
from pathlib import Path

from treedot import FragmentVectorizer, Tree, TreeRegressor, explain, explain_model

COSTS = {"add": 1.0, "multiply": 3.0, "power": 20.0}


def formula(source: random.Random, depth: int) -> Tree:
    """Return a random formula."""
    if depth == 0 or source.random() < 0.2:
        return Tree(source.choice(["x", "y", "1", "2"]))
    name = source.choice(list(COSTS))
    return Tree(name, [formula(source, depth - 1), formula(source, depth - 1)])


def cost(tree: Tree) -> float:
    """Return the time of a formula; a square is computed as a product."""
    cheap = tree.label == "power" and tree.children[1].label == "2"
    own = COSTS["multiply"] if cheap else COSTS.get(tree.label, 0.0)
    return own + sum(map(cost, tree.children))


def main(arguments: list[str] | None = None) -> None:
    """Generate, train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    options = parser.parse_args(arguments)
    source = random.Random(0)
    trees = [Tree("formula", [formula(source, 4)]) for _ in range(1200)]
    numbers = [cost(tree) + source.gauss(0.0, 1.0) for tree in trees]

    # The cost grows with the tree, so rows hold counts of fragments instead of having length 1.
    counts = FragmentVectorizer(n_features=2**30, normalize=False, damping="linear")
    model = TreeRegressor(vectorizer=counts, n_jobs=-1).fit(trees[:1000], numbers[:1000])
    print(
        f"R² {model.score(trees[1000:], numbers[1000:]):.3f}, with λ = {model.decay_}, α = {model.alpha_:g}"
    )

    # Powers cost most, except squares.
    print(explain_model(model, trees[:1000], n_fragments=5), end="\n\n")
    found = explain(model, trees[1000], n_fragments=5)
    print(f"{trees[1000]} costs {numbers[1000]:.1f}:\n\n{found}")
    (options.out / "formula.html").write_text(found.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
