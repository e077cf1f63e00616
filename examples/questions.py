"""What does a question ask for? Train on the questions of TREC, test, and ask why.

You learn: from two tables of trees to a tested model in a folder, and the explanation of its most confident
mistake, which is often a mistake worth seeing.

    python examples/questions.py                    # at once, on a small invented sample
    python examples/questions.py --data FOLDER      # with qc_train.tsv.gz and qc_test.tsv.gz
    open question.html
"""

import argparse
import os
from pathlib import Path

import numpy as np

from sample import data_folder
from treedot import TreeClassifier, explain, explain_model, read_trees


def main(arguments: list[str] | None = None) -> None:
    """Train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page and of the model")
    parser.add_argument("--every", type=int, default=1, help="use only every n-th tree, for a try")
    options = parser.parse_args(arguments)

    # A table becomes a forest: the trees of its column "tree", with the other columns beside them.
    data = data_folder(options.data, options.out, "qc_train", "qc_test")
    train, test = (read_trees(data / f"qc_{part}.tsv.gz") for part in ("train", "test"))
    train, test = train[:: options.every], test[:: options.every]
    classes, truth = np.array(train.columns["coarse"]), np.array(test.columns["coarse"])

    # Decay and C are chosen by cross-validation on the training questions.
    model = TreeClassifier(n_jobs=-1).fit(train, classes)
    right = model.predict(test) == truth
    print(f"{right.mean():.3f} of {len(test)} questions are right, with λ = {model.decay_}, C = {model.C_:g}")

    # Which fragments of a tree speak for people, and which for places?
    learned = explain_model(model, train, n_fragments=3)
    for name, fragments in learned.fragments.items():
        print(f"{name:<5}", *(share.fragment for share in fragments.supporting), sep="  ")

    # The mistake that the model is surest of, or the first question where there is none.
    sure = np.where(right, -np.inf, model.decision_function(test).max(axis=1))
    chosen = int(sure.argmax())
    found = explain(model, test[chosen], n_fragments=5)
    print(f"\n{test.columns['text'][chosen]}\nis of class {truth[chosen]}, and taken for {found.target}:\n")
    print(found)
    (options.out / "question.html").write_text(found.to_html(), encoding="utf-8")
    model.save(options.out / "questions.model", overwrite=True)


if __name__ == "__main__":
    main()
