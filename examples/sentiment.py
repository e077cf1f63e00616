"""Is a sentence of a film review for or against the film? Binary trees without any labels but words.

You learn: to remove what gives the answer away (here the labels, which say what people felt about each
phrase); that every phrase is an example of its own; and to compare with n-grams, which are better here.

    python examples/sentiment.py                    # at once, on a small invented sample
    python examples/sentiment.py --data FOLDER      # with sst_train.tsv.gz and sst_test.tsv.gz
    open sentence.html
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sample import data_folder
from treedot import Forest, Tree, TreeClassifier, explain, read_trees


def main(arguments: list[str] | None = None) -> None:
    """Train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    parser.add_argument("--every", type=int, default=1, help="use only every n-th tree, for a try")
    options = parser.parse_args(arguments)

    data = data_folder(options.data, options.out, "sst_train", "sst_test")
    files = [data / f"sst_{part}.tsv.gz" for part in ("train", "test")]
    sentences, asked = (read_trees(path)[:: options.every] for path in files)
    phrases = dict.fromkeys(node for tree in sentences for node in tree.postorder() if node.children)
    (train, classes), (test, truth) = without_labels(read_trees(list(phrases))), without_labels(asked)
    words = TfidfVectorizer(ngram_range=(1, 3), preprocessor=text, token_pattern=r"\S+")
    n_grams = make_pipeline(words, LinearSVC()).fit(train, classes).predict(test)
    model = TreeClassifier(decay=0.2, C=1, n_jobs=-1).fit(train, classes)
    scores, fragments = model.decision_function(test), model.predict(test)
    print(f"n-grams {(n_grams == truth).mean():.3f}, fragments {(fragments == truth).mean():.3f}\n")

    # What fragments are surest of, of all that they have right and n-grams have wrong.
    surest = np.where((fragments == truth) & (n_grams != truth), abs(scores), -1).argmax()
    print(found := explain(model, test[int(surest)], n_fragments=6))
    (options.out / "sentence.html").write_text(found.to_html(), encoding="utf-8")


def without_labels(trees: Forest) -> tuple[Forest, np.ndarray]:
    """Return the trees that are not neutral, with one label for all phrases, and their classes."""
    stars = np.array([int(tree.label) for tree in trees])
    label = np.where(trees.arity == 0, trees.label, len(trees.labels))
    blank = Forest(label, trees.arity, trees.offsets, [*trees.labels, "*"])
    return blank[stars != 2], np.where(stars > 2, "for", "against")[stars != 2]


def text(tree: Tree) -> str:
    """Return the words of a tree."""
    return " ".join(node.label.lower() for node in tree.postorder() if node.is_leaf)


if __name__ == "__main__":
    main()
