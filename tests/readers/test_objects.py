import ast
from pathlib import Path

import pytest
from hypothesis import given

from strategies import ANY_LABEL, trees
from treedot import Tree, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_tree
from treedot.readers.python_code import read_functions


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

    with pytest.raises(ParameterError, match="give a path"):
        read_trees(nltk.Tree.fromstring(text))
    with pytest.raises(SourceError, match="a leaf is text, not tuple"):
        read_trees([nltk.Tree("S", [("dog", "NN")])])

    class Node:
        def __init__(self, name, *children):
            self.name, self.children = name, children

        def label(self):
            return self.name

        def __iter__(self):
            return iter(self.children)

    assert str(read_trees([Node("S", Node("NP", "I"), "run")])[0]) == "(S (NP I) run)"


def test_kinds_may_be_mixed_and_deep():
    deep = ["x"]
    for _ in range(50_000):
        deep = ["n", deep]
    forest = read_trees([Tree.parse("(a b)"), "(a b)", ("a", "b"), deep])
    assert forest[0] == forest[1] == forest[2]
    assert forest.sizes[3] == 50_001
    assert len(read_trees([])) == 0
    assert len(read_trees(iter(["(a b)"] * 3))) == 3


@pytest.mark.parametrize("thing", [[], [[], "a"], [1, "a"], 3.5, object(), ["a", None], None, b"(a b)"])
def test_other_things_are_refused_with_their_number(thing):
    with pytest.raises(SourceError, match="tree 2"):
        read_trees(["(a b)", thing])
    errors = []
    assert len(read_trees(["(a b)", thing], on_bad=errors.append)) == 1
    assert len(errors) == 1


def test_python_functions_become_trees(tmp_path):
    source = 'class C:\n    def f(self, x=None):\n        """Doc."""\n        return x + 1\n'
    (tmp_path / "m.py").write_text(source)
    (tmp_path / "broken.py").write_text("def (")
    forest = read_functions([tmp_path / "broken.py", tmp_path / "m.py"])
    assert forest.columns == {"file": [str(tmp_path / "m.py")], "line": [2], "name": ["f"]}
    text = str(forest[0])
    assert "(BinOp (Name x) Add (Constant 1))" in text
    assert "(Constant None)" in text
    assert "Doc" not in text
    assert len(read_functions([Path(ast.__file__)])) > 50


def test_a_list_around_bracket_text_is_refused():
    with pytest.raises(SourceError, match="not a list around it"):
        read_trees([["(S a)"], ["(S b)"]])
    assert str(read_trees([["("]])[0]) == r"(\x28)"
