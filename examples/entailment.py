"""Does a sentence follow from a text? Two trees for each example, and a number beside them.

You learn: models of pairs, in which the kernel of the two trees is one feature among others; how to find out
whether trees help at all (here they hardly do: what counts is how many words of the hypothesis the text has);
and what two trees share, fragment by fragment.

    python examples/entailment.py --data FOLDER     # with rte3_dev.tsv.gz and rte3_test.tsv.gz
    open pair.html
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from treedot import Forest, FragmentVectorizer, explain_pair, read_trees


def main(arguments: list[str] | None = None) -> None:
    """Train with and without trees, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA", "."), type=Path)
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    parser.add_argument("--every", type=int, default=1, help="one of so many alone, for a try")
    options = parser.parse_args(arguments)

    parts = [pairs(options.data / f"rte3_{part}.tsv.gz", options.every) for part in ("dev", "test")]
    (_, _, train, classes), (texts, hypotheses, test, truth) = parts
    for names, columns in (("words", [0]), ("trees", [1]), ("words and trees", [0, 1])):
        model = make_pipeline(StandardScaler(), LogisticRegression())
        print(f"{names}: {model.fit(train[:, columns], classes).score(test[:, columns], truth):.3f}")

    # The pair whose trees are most alike although the hypothesis does not follow: what do they share?
    chosen = int(np.where(truth == "NO", test[:, 1], -1).argmax())
    found = explain_pair(texts[chosen], hypotheses[chosen])
    print(f"\n{found}")
    (options.out / "pair.html").write_text(found.to_html(), encoding="utf-8")


def pairs(path: Path, every: int) -> tuple[Forest, Forest, np.ndarray, np.ndarray]:
    """Return texts, hypotheses, what they have in common (words, fragments), and their classes."""
    texts, hypotheses = (read_trees(path, column=f"{name}_tree")[::every] for name in ("text", "hypothesis"))
    rows = [FragmentVectorizer(n_features=2**30).transform(part) for part in (texts, hypotheses)]
    fragments = np.asarray(rows[0].multiply(rows[1]).sum(axis=1)).ravel()  # the dot product of each pair
    words = [[set(text.lower().split()) for text in texts.columns[name]] for name in ("text", "hypothesis")]
    shared = [len(text & asked) / len(asked) for text, asked in zip(*words, strict=True)]
    return texts, hypotheses, np.stack([shared, fragments], axis=1), np.array(texts.columns["label"])


if __name__ == "__main__":
    main()
