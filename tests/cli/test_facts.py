import json
import weakref

import numpy as np
import pytest

from strategies import random_forest
from treedot import Forest, Tree
from treedot.cli import main
from treedot.cli.facts import tree_facts


def test_info_gives_numbers_as_numbers(tmp_path, capsys):
    forest = random_forest(0, 12)
    path = tmp_path / "trees.mrg"
    path.write_text("\n".join(map(str, forest)))
    assert main(["info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["nodes per tree"] == {
        "mean": pytest.approx(forest.sizes.mean()),
        "median": np.median(forest.sizes),
        "largest": forest.sizes.max(),
    }
    assert facts["depth"]["largest"] == forest.depth.max()
    assert facts["columns"] == []
    assert main(["info", str(path)]) == 0
    assert f", largest {forest.sizes.max()}\n" in capsys.readouterr().out

    assert main(["encode", str(path), "-o", str(tmp_path / "v.npz")]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "v.npz"), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["shape"][0] == 12
    assert facts["non-zeros per row"]["mean"] > 0


class Watched(Forest):
    __slots__ = ("__weakref__",)
    __hash__ = object.__hash__


def test_batches_are_counted_together_and_not_kept():
    forest = random_forest(7, 60)
    alive = []

    def batches():
        for start in [*range(0, 60, 7), 0, 30]:
            part = forest[start : start + 7]
            part = Watched(part.label, part.arity, part.offsets, part.labels)
            alive.append(weakref.ref(part))
            assert sum(kept() is not None for kept in alive) <= 2
            yield part

    facts = tree_facts(batches())
    assert facts["trees"] == 74
    assert facts["productions"] == forest.n_productions
    assert facts["distinct subtrees"] == forest.distinct_subtrees.size
    assert facts["distinct trees"] == np.unique(forest.root_subtree).size
    assert facts["labels"] == len(forest.labels)


def test_trees_that_differ_in_shape_or_order_alone_are_distinct():
    texts = ["(a b c)", "(a c b)", "(a (b c))", "(a (b) c)", "(a b b)", "(a b)", "(a (b b))", "(b a)"]
    forest = Forest.from_trees(map(Tree.parse, texts))
    facts = tree_facts([forest, forest])
    assert facts["distinct trees"] == 7  # "(b)" is "b"
    assert facts["distinct subtrees"] == forest.distinct_subtrees.size
    assert facts["productions"] == forest.n_productions
