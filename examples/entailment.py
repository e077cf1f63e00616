"""Does a sentence follow from a text? Two trees for each example, and numbers beside them.

You learn: models of several columns; how to find out whether trees help at all (here they do not: what counts
is how many words of the sentence the text has); and an explanation of a pair, each part with its own share.

    python examples/entailment.py                   # at once, on a small invented sample
    python examples/entailment.py --data FOLDER     # with rte3_dev.tsv.gz and rte3_test.tsv.gz
    open pair.html
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from sample import data_folder
from treedot import FragmentVectorizer, TreeClassifier, explain, read_trees

TREES, NUMBERS = ["text", "hypothesis"], ["words", "fragments"]  # columns


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
    words = [part["words"][:, None] for part in (train, test)]
    alone = DecisionTreeClassifier(max_depth=1).fit(words[0], classes).score(words[1], truth)
    print(f"share of words beyond a threshold: {alone:.3f} of {truth.size} are right")
    for numbers in (None, NUMBERS):
        model = TreeClassifier(tree_columns=TREES, number_columns=numbers, n_jobs=-1).fit(train, classes)
        print(f"trees{' and numbers' if numbers else ''}: {model.score(test, truth):.3f} are right")

    # The decision that the model is surest of.
    chosen = int(abs(model.decision_function(test)).argmax())
    found = explain(model, {name: test[name][chosen] for name in TREES + NUMBERS}, n_fragments=5)
    print(f"\n{found}")
    (options.out / "pair.html").write_text(found.to_html(), encoding="utf-8")
    model.save(options.out / "entailment.model", overwrite=True)


def pairs(path: Path, every: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return a table: both trees, the share of the words and of the fragments that both have; and classes."""
    text, hypothesis = (read_trees(path, column=f"{name}_tree")[::every] for name in TREES)
    rows = [FragmentVectorizer(n_features=2**30).transform(part) for part in (text, hypothesis)]
    fragments = np.asarray(rows[0].multiply(rows[1]).sum(axis=1)).ravel()  # the dot product of each pair
    words = zip(*([set(line.lower().split()) for line in text.columns[name]] for name in TREES), strict=True)
    shares = np.array([len(both & asked) / len(asked) for both, asked in words])
    table = {"text": text, "hypothesis": hypothesis, "words": shares, "fragments": fragments}
    return table, np.array(text.columns["label"])


if __name__ == "__main__":
    main()
