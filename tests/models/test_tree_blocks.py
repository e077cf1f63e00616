"""Labelled trees in blocks on disk."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strategies import ANY_LABEL, examples, random_forest, trees
from treedot import Forest
from treedot.errors import ParameterError, SourceError
from treedot.models.training import tree_blocks
from treedot.models.training.tree_blocks import read_block, write_blocks


def labelled(forest, classes):
    forest.columns["class"] = list(classes)
    return forest


def come_back(folder, facts):
    """Return all trees of the blocks, and their classes by name."""
    blocks = [read_block(folder, number) for number in range(len(facts.sizes))]
    assert [len(block.trees) for block in blocks] == facts.sizes
    names = [facts.names[number] for block in blocks for number in block.classes]
    return Forest.concat(block.trees for block in blocks), names


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(50))
@given(
    st.lists(
        st.lists(st.tuples(trees(ANY_LABEL), st.sampled_from(["a", "b", "ü", "c d"])), min_size=1),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 9),
    st.integers(1, 40),
)
def test_the_trees_of_all_batches_come_back_in_order(tmp_path, batches, most_trees, most_nodes):
    forests = [
        labelled(Forest.from_trees([tree for tree, _ in part]), [c for _, c in part]) for part in batches
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_blocks, "BLOCK_TREES", most_trees)
        patch.setattr(tree_blocks, "BLOCK_NODES", most_nodes)
        facts = write_blocks(tmp_path, forests, "class")
    found, names = come_back(tmp_path, facts)
    assert found == Forest.concat(forests)
    assert names == [name for part in batches for _, name in part]
    assert facts.counts == [names.count(name) for name in facts.names]
    sizes = np.split(found.sizes, np.cumsum(facts.sizes)[:-1])
    assert all(part.size <= most_trees and (part.size == 1 or part.sum() <= most_nodes) for part in sizes)


def test_labels_that_no_tree_of_a_block_has_are_not_kept(tmp_path):
    forest = Forest([1, 2], [0, 1], [0, 2], ["unused", "b", "a"], {"class": ["x"]})
    write_blocks(tmp_path, [forest], "class")
    assert read_block(tmp_path, 0).trees.labels == ("b", "a")


def test_the_digest_is_of_trees_and_classes(tmp_path):
    def digest(forest, classes):
        return write_blocks(tmp_path, [labelled(forest, classes)], "class").digest

    forest, other = random_forest(0, 10), random_forest(1, 10)
    assert digest(forest, "ababababab") == digest(forest[:], "ababababab")
    assert len({digest(forest, "ababababab"), digest(other, "ababababab"), digest(forest, "abababaaab")}) == 3
    assert digest(forest, "ababababab") != digest(forest, "acacacacac")


def test_a_tree_without_a_class_is_told_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(tree_blocks, "BLOCK_TREES", 4)
    forest = labelled(random_forest(0, 10), [*"abababa", None, *"ab"])
    with pytest.raises(
        ParameterError, match=r"'class': 1 of the trees 5 to 8 have no class, the first is tree 8"
    ):
        write_blocks(tmp_path, [forest], "class")
    with pytest.raises(ParameterError, match="no column 'kind'; the columns are 'class'"):
        write_blocks(tmp_path, [forest], "kind")


def test_a_damaged_block_is_told(tmp_path):
    write_blocks(tmp_path, [labelled(random_forest(0, 5), "ababa")], "class")
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-3], whole[:20], b"", whole.replace(b"arity", b"parit", 1)):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"damaged|truncated"):
            read_block(tmp_path, 0)
