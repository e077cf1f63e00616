"""A neural network on distributed trees and a bag of words, to see what the trees add.

You learn: trees as a layer of PyTorch, and what each subtree changes in the decision of a network.

    python examples/neural.py   # on a small invented sample; with --data, on the files of that folder
    open network.html
"""

import argparse
import os
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer
from torch import Tensor, cat, float32, manual_seed, nn, optim, randperm, tensor

from sample import data_folder
from sentiment import text, without_labels
from treedot import TreeClassifier, read_trees
from treedot.models.explain import explain_by_removal
from treedot.torch import DistributedTrees


def main(arguments: list[str] | None = None) -> None:
    """Train networks and a linear model, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), type=Path, help="folder of tables")
    parser.add_argument("--task", choices=["qc", "sst"], default="qc", help="questions (qc) or films (sst)")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    options = parser.parse_args(arguments)
    data = data_folder(options.data, options.out, f"{options.task}_train", f"{options.task}_test")
    tables = [read_trees(data / f"{options.task}_{part}.tsv.gz") for part in ("train", "test")]
    split = without_labels if options.task == "sst" else lambda table: (table, table.columns["coarse"])
    (train, y), (test, truth) = map(split, tables)
    classes, numbers = np.unique(y, return_inverse=True)
    # A layer without weights makes vectors of trees; the counts of their words are another tensor.
    bag, trees = CountVectorizer(preprocessor=text, token_pattern=r"\S+").fit(train), DistributedTrees()
    words = lambda some: tensor(bag.transform(some).toarray(), dtype=float32)  # noqa: E731
    both = lambda some: cat([words(some), trees(some)], 1)  # noqa: E731
    for name, read in (("words", words), ("trees", trees), ("both", both)):
        network = trained(read(train), tensor(numbers), len(classes))
        print(f"network on {name}: {(classes[network(read(test)).argmax(1)] == truth).mean():.3f}")
    print(f"TreeClassifier: {TreeClassifier(n_jobs=-1).fit(train, y).score(test, truth):.3f}\n")
    asked = int(network(both(test[:1])).argmax())
    score = lambda some: network(both(some))[:, asked].detach()  # noqa: E731
    print(found := explain_by_removal(score, test[0], target=classes[asked]))
    (options.out / "network.html").write_text(found.to_html(), encoding="utf-8")


def trained(inputs: Tensor, numbers: Tensor, n_classes: int) -> nn.Module:
    """Return a network of two layers, trained on all examples."""
    manual_seed(0)
    hidden, out = nn.Linear(inputs.shape[1], 256), nn.Linear(256, n_classes)
    network = nn.Sequential(nn.Dropout(0.2), hidden, nn.ReLU(), nn.Dropout(0.5), out)
    optimizer = optim.AdamW(network.parameters(), lr=2e-3, weight_decay=0.01)
    for batch in (batch for _ in range(12) for batch in randperm(len(inputs)).split(64)):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(inputs[batch]), numbers[batch]).backward()
        optimizer.step()
    return network.eval()


if __name__ == "__main__":
    main()
