import copy
import pickle

import pytest
from hypothesis import given

from strategies import ANY_LABEL, trees
from treedot import Forest, FragmentVectorizer, Tree, read_trees
from treedot.errors import SourceError, TreeSyntaxError


@given(trees(ANY_LABEL))
def test_text_round_trips_for_any_label(tree):
    assert Tree.parse(str(tree)) == tree
    assert "\n" not in str(tree)


@given(trees(ANY_LABEL))
def test_pretty_text_round_trips_and_keeps_to_its_width_where_labels_allow(tree):
    assert Tree.parse(tree.pretty(width=12)) == tree


@given(trees())
def test_pretty_lines_fit_unless_a_single_leaf_is_too_long(tree):
    for line in tree.pretty(width=30).splitlines():
        assert len(line) <= 30 or line.lstrip().rstrip(")").isalpha() or line.strip("( ").isalpha()


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("A", Tree("A")),
        ("(A)", Tree("A")),
        ("()", Tree("")),
        ("( (S x))", Tree("", [Tree("S", ["x"])])),
        ("( (a) b)", Tree("", ["a", "b"])),
        ("(A (B b) c)", Tree("A", [Tree("B", ["b"]), "c"])),
        ("(A -LRB- 1\\/2)", Tree("A", ["-LRB-", "1\\/2"])),
        ("(\\x28 \\x20 \\x5cx20)", Tree("(", [" ", "\\x20"])),
        (" ( A\n\t( B ) )\n", Tree("A", ["B"])),
        ("(A\u00a0B c\u2028d)", Tree("A\u00a0B", ["c\u2028d"])),
    ],
)
def test_bracket_text_means(text, tree):
    assert Tree.parse(text) == tree


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("a b", "expected '\\('"),
        ("(a", "never closed"),
        ("(a))", "after the end"),
        ("(a) (b)", "after the end"),
        (")", "expected '\\('"),
        ("x (a)", "character 1"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text, complaint):
    with pytest.raises(TreeSyntaxError, match=complaint):
        Tree.parse(text)


def test_trees_are_immutable_values():
    tree = Tree.parse("(A (B b) c)")
    with pytest.raises(AttributeError, match="immutable"):
        tree.label = "X"
    with pytest.raises(AttributeError, match="immutable"):
        del tree.label
    assert copy.deepcopy(tree) is tree
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert {tree: 1}[Tree.parse("(A (B b) (c))")] == 1
    assert tree != Tree.parse("(A (B b) d)")
    assert tree != "(A (B b) c)"
    assert repr(tree) == "Tree.parse('(A (B b) c)')"


@pytest.mark.parametrize("children", ["text", Tree("x"), [1]])
def test_wrong_children_are_refused(children):
    with pytest.raises(TypeError):
        Tree("A", children)


def test_a_label_must_be_text():
    with pytest.raises(TypeError, match="label must be a str"):
        Tree(3)


@pytest.mark.slow
def test_a_chain_of_100_000_levels_is_no_special_case():
    chain = Tree("leaf")
    for _ in range(100_000):
        chain = Tree("n", [chain])
    other = Tree.parse(str(chain))
    assert other == chain
    assert hash(other) == hash(chain)
    assert chain.size == chain.depth == 100_001
    assert pickle.loads(pickle.dumps(chain)) == chain


HALF = "\ud800"  # a lone surrogate


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tree(f"a{HALF}"),
        lambda: Tree("a", [HALF]),
        lambda: Tree.parse(f"(a {HALF})"),
        lambda: Forest([0], [0], [0, 1], [HALF]),
        lambda: Forest([0, 1], [0, 1], [0, 2], ["\ud83d", "\ude00"]),
        lambda: read_trees([f"(a {HALF})"]),
        lambda: read_trees([["a", HALF]]),
        lambda: FragmentVectorizer().transform([["a", HALF]]),
    ],
)
def test_half_of_a_surrogate_pair_is_a_label_nowhere(make):
    with pytest.raises(SourceError, match=r"lone surrogate|not UTF-8"):
        make()


def test_characters_beyond_the_basic_plane_are_labels():
    tree = Tree("\U0001f333", ["\u00e9"])
    assert read_trees([str(tree)])[0] == read_trees([[tree.label, "\u00e9"]])[0] == tree


def test_a_large_tree_prints_its_beginning_only():
    tree = Tree("html", [Tree("p", [f"word{k}"]) for k in range(5000)])
    assert repr(tree).startswith("<Tree of 10001 nodes: (html (p word0) (p word1)")
    assert len(repr([tree, tree])) < 300
    small = Tree("A", ["x" * 300])
    assert eval(repr(small), {"Tree": Tree}) == small
