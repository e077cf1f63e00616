"""Which questions are of the rarest class? Find them among all others, with a probability for each.

You learn: a text beside the tree as a column of its own; the score by which settings are chosen, which trades
misses of a rare class for false alarms; and probabilities, from which you can set your own threshold.

    python examples/rare.py                    # at once, on a small invented sample
    python examples/rare.py --data FOLDER      # with qc_train.tsv.gz and qc_test.tsv.gz
    open rare.html
"""

import argparse
import os
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, log_loss

from sample import data_folder
from treedot import TreeClassifier, explain, read_trees

SCORINGS = ("accuracy", "balanced_accuracy", "neg_log_loss")
COLUMNS = {"tree_columns": ["tree"], "text_columns": ["text"]}


def main(arguments: list[str] | None = None) -> None:
    """Train with several scores, test, read the probabilities, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    parser.add_argument("--every", type=int, default=1, help="use only every n-th tree, for a try")
    options = parser.parse_args(arguments)
    data = data_folder(options.data, options.out, "qc_train", "qc_test")
    train, test = (read_trees(data / f"qc_{part}.tsv.gz")[:: options.every] for part in ("train", "test"))
    counts = Counter(train.columns["coarse"])
    rare = min(sorted({*test.columns["coarse"]}), key=lambda name: counts[name])
    print(f"{counts[rare]} of {len(train)} training questions are of the class {rare}")
    y, truth = (np.array(part.columns["coarse"]) == rare for part in (train, test))

    # A model that never finds the class is right most of the time, so accuracy is a poor guide here.
    for name in SCORINGS:
        model = TreeClassifier(**COLUMNS, scoring=name, n_jobs=-1).fit(train, y)
        found, p = model.predict(test), model.predict_proba(test)[:, 1]
        print(
            f"{name:>17}: {(found & truth).sum()} of {truth.sum()} found, {(found & ~truth).sum()} false "
            f"alarms; average precision {average_precision_score(truth, p):.2f}, "
            f"log loss {log_loss(truth, p):.3f}"
        )

    # With probabilities, the costs decide: look at a question if a miss costs ten times a false alarm.
    worth = p > 1 / 11
    print(f"p > 1/11: {(worth & truth).sum()} of {truth.sum()} found, {(worth & ~truth).sum()} false alarms")

    # The question that the model is least sure of; its text is one part of the explanation.
    chosen = int(np.abs(p - 0.5).argmin())
    found = explain(model, test[[chosen]], True, n_fragments=5)
    print(f"\n{test.columns['text'][chosen]}\nis of class {test.columns['coarse'][chosen]}:\n\n{found}")
    (options.out / "rare.html").write_text(found.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
