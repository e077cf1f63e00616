"""Does a sentence follow from a text? A pair of trees for each example, with linked words.

You learn: models of pairs, in which placeholders link the words that both trees have, and the share of common
words is a number beside the trees; how to find out whether trees help at all; and an explanation of a pair,
with the links that counted.

    python examples/entailment.py                   # at once, on a small invented sample
    python examples/entailment.py --data FOLDER     # with rte3_dev.tsv.gz and rte3_test.tsv.gz
    open pair.html
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from sample import data_folder
from treedot import SubsetTreeKernel, TreeClassifier, explain, read_trees
from treedot.models import PairTransformer

PAIR = ["text", "hypothesis"]  # columns


def main(arguments: list[str] | None = None) -> None:
    """Train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page and of the model")
    parser.add_argument("--every", type=int, default=1, help="use only every n-th tree, for a try")
    options = parser.parse_args(arguments)

    data = data_folder(options.data, options.out, "rte3_dev", "rte3_test")
    files = [data / f"rte3_{part}.tsv.gz" for part in ("dev", "test")]
    (train, classes), (test, truth) = (pairs(path, options.every) for path in files)
    words = PairTransformer().fit(train)
    shares = [words.transform(part)["overlap"][:, None] for part in (train, test)]
    alone = LogisticRegression().fit(shares[0], classes).score(shares[1], truth)
    print(f"share of common words: {alone:.3f} of {truth.size} are right")

    settings = {"kernel": SubsetTreeKernel(normalize=True), "C": (0.1, 1, 10), "n_jobs": -1}
    plain = TreeClassifier(tree_columns=PAIR, **settings).fit(train, classes)
    print(f"both trees: {plain.score(test, truth):.3f} are right")
    model = TreeClassifier(pair_columns=PAIR, **settings).fit(train, classes)
    print(f"both trees with links, and the share: {model.score(test, truth):.3f} are right")

    # The hypothesis that the model is surest of.
    chosen = int(model.decision_function(test).argmax())
    found = explain(model, {name: test[name][chosen] for name in PAIR}, n_fragments=5)
    print(f"\n{found}")
    (options.out / "pair.html").write_text(found.to_html(), encoding="utf-8")
    model.save(options.out / "entailment.model", overwrite=True)


def pairs(path: Path, every: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return both trees of every pair, and the classes."""
    text, hypothesis = (read_trees(path, column=f"{name}_tree")[::every] for name in PAIR)
    return {"text": text, "hypothesis": hypothesis}, np.array(text.columns["label"])


if __name__ == "__main__":
    main()
