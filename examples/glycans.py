"""Which kingdom of life is a glycan from? Trees of sugars, whose children have no order.

You learn: trees that are not sentences; a test set that shares no glycan with the training set (near
relatives are many, so split by something that is known of the data); and which pieces of a molecule decide.

    python examples/glycans.py                      # at once, on a small invented sample
    python examples/glycans.py --data FOLDER        # with glycans.tsv.gz
    open glycan.html
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.metrics import classification_report

from sample import data_folder
from treedot import TreeClassifier, explain, read_trees


def main(arguments: list[str] | None = None) -> None:
    """Train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    parser.add_argument("--every", type=int, default=1, help="use only every n-th tree, for a try")
    options = parser.parse_args(arguments)

    # (ROOT (Gal (b1-4 (GlcNAc …)))): a sugar, the bond that leads to the next one, and so on.
    data = data_folder(options.data, options.out, "glycans")
    glycans = read_trees(data / "glycans.tsv.gz")[:: options.every]
    kingdom = np.array(glycans.columns["kingdom"])
    tested = np.array(glycans.columns["fold"]).astype(int) >= 8  # two of ten folds
    model = TreeClassifier(decay=0.4, C=10, n_jobs=-1).fit(glycans[~tested], kingdom[~tested])

    # Accuracy hides what a rare class suffers; recall is the share of a class that is found.
    test, truth = glycans[tested], kingdom[tested]
    print(classification_report(truth, model.predict(test), digits=3, zero_division=0))

    # The glycan of plants that is recognised most clearly.
    scores = model.decision_function(test)[:, model.classes_ == "Plantae"].ravel()
    chosen = int(np.where(truth == "Plantae", scores, -np.inf).argmax())
    why = explain(model, test[chosen], "Plantae", n_fragments=6)
    print(f"\n{test.columns['iupac'][chosen]}\n{why}")
    (options.out / "glycan.html").write_text(why.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
