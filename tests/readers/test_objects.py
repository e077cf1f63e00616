import numpy as np
import pytest
from hypothesis import given
from sklearn.compose import ColumnTransformer

from strategies import ANY_LABEL, trees
from treedot import (
    DistributedTreeVectorizer,
    FragmentVectorizer,
    KernelTransformer,
    SubsetTreeKernel,
    Tree,
    iter_trees,
    load_vectors,
    read_trees,
    save_vectors,
)
from treedot.errors import ParameterError, SourceError
from treedot.kernels import list_fragments
from treedot.readers import read_tree


def nested(tree):
    return [tree.label, *map(nested, tree.children)] if tree.children else tree.label


@given(trees())
def test_nested_lists_and_tuples(tree):
    if not tree.is_leaf:
        assert read_trees([nested(tree), tuple(nested(tree))])[1] == tree


@given(trees(ANY_LABEL))
def test_one_tree_is_read_as_many_are(tree):
    for thing in (str(tree), f" {tree}\n", "\ufeff" + str(tree), tree):
        assert list(read_tree(thing)) == [tree]
        assert read_tree(thing) == read_trees([thing]) == read_trees([thing, "(a b)"])[:1]


@pytest.mark.parametrize("text", ["", "a", "(a", "(a b))", "(a b) c", "(a b) (c d)", "(a \udc80)", "a (b c)"])
def test_one_bad_text_is_refused_as_among_many(text):
    with pytest.raises(SourceError) as alone:
        read_tree(text)
    with pytest.raises(SourceError) as among_many:
        read_trees([text, "(a b)"])
    assert str(alone.value) == str(among_many.value)
    assert len(read_trees([text], on_bad=lambda error: None)) == 0


def test_nltk_trees_and_their_like():
    nltk = pytest.importorskip("nltk")
    text = "(S (NP (DT the) (NN tree)) (VP grows))"
    assert str(read_trees([nltk.Tree.fromstring(text)])[0]) == text

    with pytest.raises(ParameterError, match="pass a path"):
        read_trees(nltk.Tree.fromstring(text))
    with pytest.raises(SourceError, match="a leaf must be text, not tuple"):
        read_trees([nltk.Tree("S", [("dog", "NN")])])

    class Node:
        def __init__(self, name, *children):
            self.name, self.children = name, children

        def label(self):
            return self.name

        def __iter__(self):
            return iter(self.children)

    assert str(read_trees([Node("S", Node("NP", "I"), "run")])[0]) == "(S (NP I) run)"


@pytest.mark.slow
def test_kinds_may_be_mixed_and_deep():
    deep = ["x"]
    for _ in range(50_000):
        deep = ["n", deep]
    forest = read_trees([Tree.parse("(a b)"), "(a b)", ("a", "b"), deep])
    assert forest[0] == forest[1] == forest[2]
    assert forest.sizes[3] == 50_001
    assert len(read_trees([])) == 0
    assert len(read_trees(iter(["(a b)"] * 3))) == 3


class Endless(list):
    def label(self):
        return "n"


@pytest.mark.slow
def test_a_tree_that_contains_itself_is_refused_by_its_number():
    short, long = ["a"], ["x"]
    short.append(short)
    inner = long
    for _ in range(50_000):
        inner = ["n", "leaf", inner]
    long.append(inner)
    pair = ["a", ("b", [])]
    pair[1][1].extend(["c", pair])
    like_nltk = Endless(["leaf"])
    like_nltk.append(like_nltk)
    for cyclic in (short, long, pair, like_nltk):
        with pytest.raises(SourceError, match=r"tree 2: .* contains itself"):
            read_trees(["(a b)", cyclic])
        errors = []
        assert len(read_trees([cyclic, ["a", "b"]], on_bad=errors.append)) == 1
        assert len(errors) == 1


def test_shared_parts_are_read_as_often_as_they_occur_unless_that_is_past_all_bounds():
    shared = ["a", "b"]
    for _ in range(17):
        shared = ["n", shared, shared]
    assert read_trees([shared, shared]).sizes.tolist() == [3 * 2**17 - 1] * 2
    for _ in range(40):
        shared = ["n", shared, shared]
    with pytest.raises(SourceError, match=r"tree 1: a tree of .* nodes"):
        read_trees([shared])


def test_a_forest_of_one_tree_stands_for_its_tree_and_a_list_of_texts_for_none():
    forest = read_trees(["(a (b c))"])
    kernel = SubsetTreeKernel()
    assert kernel(forest, forest) == kernel("(a (b c))", "(a (b c))") == kernel(forest[0], forest)
    for vectorizer in (FragmentVectorizer(), DistributedTreeVectorizer(n_components=256)):
        with pytest.raises(SourceError, match="pass the text itself, not a list around it"):
            vectorizer.transform_fragment(["(a b)", "(c d)"])


@pytest.mark.parametrize("thing", [[], [[], "a"], [1, "a"], 3.5, object(), ["a", None], None, b"(a b)"])
def test_other_things_are_refused_with_their_number(thing):
    with pytest.raises(SourceError, match="tree 2"):
        read_trees(["(a b)", thing])
    errors = []
    assert len(read_trees(["(a b)", thing], on_bad=errors.append)) == 1
    assert len(errors) == 1


def test_the_message_says_which_item_is_no_tree_and_why(tmp_path):
    for items in (["(a b)", None], [Tree("a"), None]):
        with pytest.raises(SourceError, match="tree 2: expected a tree, found None"):
            read_trees(items)
    with pytest.raises(SourceError, match="tree 2: cannot make a tree of dict"):
        read_trees(["(a b)", {"tree": "(a b)"}])
    (tmp_path / "t.mrg").write_text("(a b)")
    with pytest.raises(SourceError, match=r"tree 2: .* is not a tree but the name of a file: pass pathlib"):
        read_trees(["(a b)", str(tmp_path / "t.mrg")])
    with pytest.raises(ParameterError, match="item 2 is str"):
        read_trees([tmp_path / "t.mrg", "(a b)"])


def test_tables_in_memory_are_refused():
    with pytest.raises(ParameterError, match=r"from dict: pass only the column of trees, source\['tree'\]"):
        read_trees({"tree": ["(a b)"], "label": [1]})
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tree": ["(a b)", "(c d)"], "label": [1, 2]})
    with pytest.raises(ParameterError, match="pass only the column of trees"):
        read_trees(frame)
    assert len(read_trees(frame["tree"])) == 2


@pytest.mark.parametrize("texts", [[], ["(a b)"], ["(a b)", "(S (a b) c)"]])
def test_a_table_in_memory_of_one_column_is_its_trees(texts):
    trees = read_trees(texts)
    column = np.array(texts, dtype=object)[:, None]
    assert read_trees(column) == read_trees(column.astype(str)) == trees
    pandas = pytest.importorskip("pandas")
    for name in ("tree", "(a b)", 0):
        assert read_trees(pandas.DataFrame({name: texts}, dtype=object)) == trees
    items = [["a", "b"], Tree("a", ["b"])]
    assert read_trees(pandas.DataFrame({"tree": items})) == read_trees(items)
    with pytest.raises(ParameterError, match="vectors already"):
        read_trees(pandas.DataFrame({"tree": [1.5]}))
    with pytest.raises(SourceError, match="tree 1: cannot make a tree of ndarray"):
        read_trees(np.array([["(a b)", "(c d)"]], dtype=object))


def test_pyarrow_arrays_are_read_as_lists_are():
    pa = pytest.importorskip("pyarrow")
    texts = ["(a b)", "(S (a b) c)", "(c d)"]
    trees = read_trees(texts)
    for kind in (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        array = pa.array(texts).cast(kind)
        for source in (
            array,
            pa.chunked_array([array[:1], array[1:]]),
            list(array),
            [array[0], texts[1], Tree("c", ["d"])],
            pa.table({"tree": array}),
            pa.record_batch({"tree": array}),
        ):
            assert read_trees(source) == trees
            assert [len(part) for part in iter_trees(source, batch_size=2)] == [2, 1]
    assert SubsetTreeKernel()(array[0], array[1]) == 1.0
    with pytest.raises(SourceError, match="tree 2: expected a tree, found None"):
        read_trees(pa.array(["(a b)", None]))
    with pytest.raises(ParameterError, match="pass only the column of trees"):
        read_trees(pa.table({"tree": array, "n": [1, 2, 3]}))


@pytest.mark.parametrize("make", [FragmentVectorizer, KernelTransformer])
def test_a_column_transformer_may_hand_over_a_frame_of_one_column(make):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"tree": ["(a b)", "(c d)", "(S (a b))"], "n": [1.0, 2.0, 3.0]})
    wanted = make().fit_transform(frame["tree"])
    for chosen in ("tree", ["tree"]):
        found = ColumnTransformer([("trees", make(), chosen)]).fit_transform(frame)
        found, dense = (m.toarray() if hasattr(m, "toarray") else m for m in (found, wanted))
        np.testing.assert_array_equal(found, dense)


def test_vectors_are_not_taken_for_trees(tmp_path):
    vectorizer = FragmentVectorizer()
    rows = vectorizer.transform(["(a b)", "(c d)"])
    save_vectors(tmp_path / "rows.npz", rows, vectorizer)
    for vectors in (rows, np.zeros((2, 3)), np.arange(3), load_vectors(tmp_path / "rows.npz")):
        with pytest.raises(ParameterError, match="these are vectors already"):
            vectorizer.transform(vectors)
    assert len(read_trees(np.array(["(a b)", "(c d)"]))) == 2


def test_a_list_around_bracket_text_is_refused():
    with pytest.raises(SourceError, match="not a list around it"):
        read_trees([["(S a)"], ["(S b)"]])
    assert str(read_trees([["("]])[0]) == r"(\x28)"


def test_a_list_of_bracket_texts_is_not_taken_for_one_tree():
    a, b = "(S (A a) b)", " (S c)\n"
    for call in (
        lambda: SubsetTreeKernel()(a, [a, b]),
        lambda: list_fragments([b, a]),
        lambda: read_trees([[a, b], [b, a]]),
        lambda: read_trees([["S", [a, b]]]),
    ):
        with pytest.raises(SourceError, match=r"tree 1: .* in brackets: pass the text itself"):
            call()
    assert len(read_trees([[a, b], a], on_bad=lambda error: None)) == 1
    assert read_trees([["p", "(see below)"], ["()", "f", "x"]])[1] == Tree("()", ["f", "x"])
    assert read_trees([Tree(a, ["x"])])[0].label == a
