import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, random_forest, trees
from treedot import Forest, Tree, iter_trees, read_trees
from treedot.errors import ParameterError, SourceError


@given(st.lists(trees(ANY_LABEL), max_size=5))
def test_packing_keeps_every_tree(given_trees):
    forest = Forest.from_trees(given_trees)
    assert list(forest) == given_trees
    assert len(forest) == len(given_trees)
    assert forest.n_nodes == sum(tree.size for tree in given_trees)


@given(st.lists(trees(ANY_LABEL), min_size=1, max_size=5))
def test_what_is_made_without_checks_would_pass_them(given_trees):
    packed = Forest.from_trees(given_trees)
    texts = [str(tree) for tree in given_trees]
    for forest in (
        packed,
        packed[::-1],
        packed + packed[:1],
        Forest.from_tree(given_trees[0]),
        read_trees(texts),
        read_trees(texts[:1]),
    ):
        again = Forest(forest.label, forest.arity, forest.offsets, forest.labels)
        assert again == forest
        for name in ("label", "arity", "offsets"):
            array = getattr(forest, name)
            assert array.dtype == getattr(again, name).dtype
            assert not array.flags.writeable


def test_a_tree_keeps_what_is_derived_but_no_columns():
    tree = Tree.parse("(A (B b) c)")
    first = Forest.from_tree(tree)
    first.columns["class"] = ["x"]
    second = Forest.from_tree(tree)
    assert first == second == Forest.from_trees([tree])
    assert second.columns == read_trees([tree]).columns == {}
    assert second.production is first.production
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_what_is_derived_is_computed_once_for_each_function():
    calls = []

    def count_leaves(forest):
        calls.append(len(forest))
        return int((forest.arity == 0).sum())

    forest = random_forest(0, 3)
    assert forest.derived(count_leaves) == forest.derived(count_leaves) == (forest.arity == 0).sum()
    assert forest.derived(len) == 3
    assert forest[:2].derived(count_leaves) == (forest[:2].arity == 0).sum()
    assert calls == [3, 2]


@given(st.lists(trees(), min_size=1, max_size=5))
def test_derived_columns_agree_with_the_trees(given_trees):
    forest = Forest.from_trees(given_trees)
    nodes = [node for tree in given_trees for node in tree.postorder()]
    start, child = forest.children
    for i, node in enumerate(nodes):
        children = child[start[i] : start[i + 1]]
        assert [nodes[c] for c in children] == list(node.children)
        assert all(forest.parent[c] == i for c in children)
        assert forest.subtree_size[i] == node.size
    roots = forest.roots
    assert [nodes[k] for k in roots] == given_trees
    assert [given_trees[t] for t in forest.tree_of_node[roots]] == given_trees
    assert forest.sizes.tolist() == [tree.size for tree in given_trees]
    assert np.bincount(forest.tree_of_node).tolist() == forest.sizes.tolist()
    assert (forest.parent[roots] == -1).all()
    assert (forest.depth[roots] == 1).all()
    assert forest.depth.max() == max(tree.depth for tree in given_trees)
    productions = [(n.label, *(c.label for c in n.children)) if n.children else None for n in nodes]
    for i in range(len(nodes)):
        assert (forest.production[i] == -1) == (productions[i] is None)
        for j in range(i):
            assert (forest.subtree[i] == forest.subtree[j]) == (nodes[i] == nodes[j])
            if productions[i] and productions[j]:
                assert (forest.production[i] == forest.production[j]) == (productions[i] == productions[j])
    assert [nodes[k] for k in forest.distinct_subtrees] == list(dict.fromkeys(nodes))
    assert forest.n_productions == len({p for p in productions if p})


def test_indexing_slicing_and_concatenation():
    forest = random_forest(0, 20)
    forest.columns["n"] = list(range(20))
    assert forest[-1] == forest[19]
    assert list(forest[3:7]) == [forest[i] for i in range(3, 7)]
    assert forest[[5, 2]].columns["n"] == [5, 2]
    assert forest[np.arange(20) < 3] == forest[:3]
    assert forest[:8] + forest[8:] == forest
    assert (forest[:8] + forest[8:]).columns["n"] == list(range(20))
    assert len(forest[:0]) == 0
    assert forest[:0] + forest == forest
    assert Forest.concat([]) == forest[:0]
    assert forest != forest[::-1]
    assert forest[:2] != "something else"
    with pytest.raises(IndexError):
        forest[20]
    assert pickle.loads(pickle.dumps(forest)) == forest
    assert "20 trees" in repr(forest)


def test_the_error_for_an_unknown_column_lists_the_known_ones():
    forest = random_forest(0, 3)
    with pytest.raises(KeyError, match="no column 'Class': there are none"):
        forest.columns["Class"]
    forest.columns.update({"class": "xyz", "label": "abc"})
    with pytest.raises(ParameterError, match=r"not by 'label': use forest.columns\['label'\]"):
        forest["label"]
    for copy in (forest, forest[1:], forest + forest, pickle.loads(pickle.dumps(forest))):
        assert "Class" not in copy.columns
        with pytest.raises(KeyError, match="no column 'Class': choose one of 'class', 'label'"):
            copy.columns["Class"]


def test_equal_trees_have_the_same_number_at_their_roots():
    forest = read_trees(["(A (B b))", "(B b)", "(A (B b))", "(A (B c))"])
    number = forest.root_subtree
    assert number[0] == number[2]
    assert len(set(number.tolist())) == 3


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_files_round_trip(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    forest = random_forest(1, 9)
    forest.columns["text"] = [f"t{i}" for i in range(9)]
    forest.save(tmp_path / f"f{suffix}")
    again = Forest.load(tmp_path / f"f{suffix}")
    assert again == forest
    assert again.columns == forest.columns
    assert Forest.from_arrow(forest[:0].to_arrow()) == forest[:0]


@given(st.lists(trees(ANY_LABEL), min_size=1, max_size=5))
def test_what_is_written_as_brackets_is_read_as_the_same_trees(given_trees):
    forest = Forest.from_trees(given_trees, {"n": range(len(given_trees))})
    with tempfile.TemporaryDirectory() as folder:
        for name in ("t.mrg", "t.txt"):
            path = Path(folder) / name
            forest.write_brackets(path)
            assert read_trees(path) == forest
            assert path.read_bytes().count(b"\n") == len(forest)


def test_brackets_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def broken(forest):
        yield Tree("a")
        raise ZeroDivisionError

    forest = random_forest(0, 3)
    (tmp_path / "t.mrg").write_text("(old tree)\n")
    with monkeypatch.context() as patch:
        patch.setattr(Forest, "__iter__", broken)
        with pytest.raises(ZeroDivisionError):
            forest.write_brackets(tmp_path / "t.mrg")
    assert [path.name for path in tmp_path.iterdir()] == ["t.mrg"]
    assert (tmp_path / "t.mrg").read_text() == "(old tree)\n"
    for name in ("t.parquet", "t.mrg.gz", "t"):
        with pytest.raises(ParameterError, match=r"use the suffix \.mrg, \.txt or \.brackets"):
            forest.write_brackets(tmp_path / name)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_the_documented_schema(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    table = Forest.from_trees([Tree.parse("(A (B b) c)")]).to_arrow()
    assert table.column("__treedot_label__").to_pylist() == [["b", "B", "c", "A"]]
    assert table.column("__treedot_arity__").to_pylist() == [[0, 1, 0, 2]]
    assert table.schema.metadata[b"treedot.forest"] == b"2"
    for prefix, end in (("__treedot_", "__"), ("", "")):
        plain = pa.table({f"{prefix}label{end}": [["b", "A"]], f"{prefix}arity{end}": [[0, 1]]})
        assert Forest.from_arrow(plain)[0] == Tree.parse("(A b)")


VERSION_1 = Path(__file__).with_name("version1.brackets")
COLUMNS_OF_VERSION_1 = {
    "class": ["x", "y", None, "x", "é", ""],
    "weight": [0.5, None, 2.0, -1.0, 0.0, 4.0],
    "tree": list("abcdef"),
}


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_files_of_version_1_are_read(suffix):
    pytest.importorskip("pyarrow")
    path = VERSION_1.with_suffix(suffix)
    for found in (Forest.load(path), read_trees(path), Forest.concat(iter_trees(path, batch_size=2))):
        assert found == read_trees(VERSION_1)
        assert found.columns == COLUMNS_OF_VERSION_1


NAMES = [
    "label",
    "labels",
    "arity",
    "tree",
    "offset",
    "offsets",
    "class",
    "file",
    "columns",
    "treedot",
    "",
    "a.b",
]


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
def test_columns_may_have_any_names(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    forest = random_forest(1, 5)
    forest.columns.update({name: [f"{name}{k}" for k in range(5)] for name in NAMES})
    forest.columns["arity"] = [[1, 2]] * 5  # a list, as of version 1
    forest.columns["label"] = [["b", "A"]] * 5
    path = tmp_path / f"trees{suffix}"
    forest.save(path)
    read_trees(path).save(tmp_path / f"again{suffix}")
    for found in (Forest.load(path), read_trees(path), Forest.load(tmp_path / f"again{suffix}")):
        assert found == forest
        assert found.columns == forest.columns


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.integers(0, 9)))
def test_columns_of_tables_keep_their_names(columns):
    pytest.importorskip("pyarrow")
    forest = Forest.from_trees([Tree.parse("(A b)")], {name: [value] for name, value in columns.items()})
    if any(name.startswith("__treedot_") for name in columns):
        return
    found = Forest.from_arrow(forest.to_arrow())
    assert found == forest
    assert found.columns == forest.columns


def test_names_of_the_file_format_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    forest = random_forest(1, 2)
    forest.columns.update({"label": [1, 2], "__treedot_label__": [3, 4]})
    for save in (forest.to_arrow, lambda: forest.save(tmp_path / "t.parquet")):
        with pytest.raises(
            ParameterError, match=r"reserves column names .* '__treedot_'; rename '__treedot_label__'"
        ):
            save()
    assert list(tmp_path.iterdir()) == []


def test_a_dataset_of_packed_forests_is_a_packed_forest(tmp_path):
    pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    forest = random_forest(1, 4)
    for label, part in (("x", forest[:2]), ("y", forest[2:])):
        (tmp_path / f"label={label}").mkdir()
        part.save(tmp_path / f"label={label}" / "part.parquet")
    found = Forest.from_arrow(dataset.dataset(tmp_path, partitioning="hive").to_table())
    assert found == forest
    assert found.columns == {"label": ["x", "x", "y", "y"]}


def test_bad_files_are_refused(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    with pytest.raises(ParameterError, match=r"\.parquet"):
        random_forest(0, 2).save(tmp_path / "f.txt")
    (tmp_path / "f.parquet").write_bytes(b"nonsense")
    with pytest.raises(SourceError, match=r"f\.parquet"):
        Forest.load(tmp_path / "f.parquet")
    with pytest.raises(SourceError, match="are unknown here"):
        Forest.from_arrow(random_forest(0, 2).to_arrow().replace_schema_metadata({"treedot.forest": "9"}))
    other = pa.table({"tree": ["(A b)"]}).replace_schema_metadata({"treedot.forest": b"\xff"})
    pyarrow.parquet.write_table(other, tmp_path / "other.parquet")
    with pytest.raises(SourceError, match="are unknown here"):
        read_trees(tmp_path / "other.parquet")
    (tmp_path / "other.parquet").unlink()
    with pytest.raises(SourceError, match="list columns"):
        Forest.from_arrow(pa.table({"x": [1]}))
    for wrong in ({"label": [["a"]], "arity": [0]}, {"label": [["a", None]], "arity": [[0, 1]]}):
        with pytest.raises(SourceError):
            Forest.from_arrow(pa.table(wrong))
    twice = pa.DictionaryArray.from_arrays([0, 2, 1, 2], ["b", "b", "A"])
    table = pa.table({"label": pa.ListArray.from_arrays([0, 2, 4], twice), "arity": [[0, 1], [0, 1]]})
    assert list(map(str, Forest.from_arrow(table))) == ["(A b)", "(A b)"]
    with pytest.raises(SourceError, match="columns"):
        Forest([0], [0], [0, 1], ["x"], {"c": [object()]}).save(tmp_path / "g.parquet")
    with pytest.raises(SourceError, match="differ in length"):
        Forest.from_arrow(pa.table({"label": [["b", "A"]], "arity": [[0]]}))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.parquet"]


@pytest.mark.parametrize(
    ("label", "arity", "offsets", "complaint"),
    [
        ([0, 0], [0, 0], [0, 2], "do not form one tree"),
        ([0], [1], [0, 1], "do not form one tree"),
        ([0, 0], [0, -1], [0, 2], "do not form one tree"),
        ([0, 0, 0, 0], [0, 0, 0, 3], [0, 2, 4], "tree 0"),
        ([0, 5], [0, 1], [0, 2], "outside"),
        ([0], [0], [0, 2], "same nodes"),
        ([0], [2**32], [0, 1], "fit int32"),
        ([0.5], [0], [0, 1], "must hold integers"),
        ([0], [0], [1, 1], "start with 0"),
        ([0], [0], [0, 1, 1], "at least one node"),
        ([[0]], [[0]], [0, 1], "one dimension"),
    ],
)
def test_columns_that_are_no_forest_are_refused(label, arity, offsets, complaint):
    with pytest.raises(SourceError, match=complaint):
        Forest(label, arity, offsets, ["x"])


@pytest.mark.parametrize("labels", [["b", "b"], ["b", None]])
def test_labels_are_different_texts(labels):
    with pytest.raises(SourceError, match="label"):
        Forest([0, 1], [0, 1], [0, 2], labels)


def test_a_column_needs_one_value_per_tree():
    with pytest.raises(SourceError, match="3 values for 1 trees"):
        Forest([0], [0], [0, 1], ["x"], {"c": [1, 2, 3]})
    with pytest.raises(SourceError, match="0 values for 1 trees"):
        Forest.from_trees([Tree("x")], {"c": []})
