import math

import pytest
from hypothesis import given, settings
from paper.methods import CONVOLUTION, PRODUCT

from strategies import examples, trees
from treedot import Forest, edit_distance
from treedot.kernels import reference
from treedot.serve.comparing import Compared, Pair, steps
from treedot.serve.fields import COMPARE, COMPONENTS, read_fields
from treedot.serve.topics.compare import COMPOSITION_NAMES

BIRD = "(S (NP (DT the) (NN bird)) (VP (VBZ sees) (NP (DT the) (NN tree))))"
CAT = "(S (NP (DT a) (NN cat)) (VP (VBZ sees) (NP (DT the) (NN bird))))"


def compared(a, b, **settings):
    fields = read_fields(COMPARE, {"a": a, "b": b, **settings})
    return Compared.of(Pair.of(fields), fields)


@settings(max_examples=examples(25))
@given(trees(max_leaves=5), trees(max_leaves=5))
def test_the_figures_are_those_of_the_definitions(a, b):
    found = compared(str(a), str(b), a_format="brackets", b_format="brackets", decay=0.3, mu=0.6)
    expected = {
        "subset": reference.subset_tree_kernel(a, b, 0.3),
        "partial": reference.partial_tree_kernel(a, b, 0.3, 0.6),
        "subtree": reference.subtree_kernel(a, b, 0.3),
    }
    for name, value in expected.items():
        assert found.kernels[name].value == pytest.approx(value)
    own = [reference.subset_tree_kernel(tree, tree, 0.3) for tree in (a, b)]
    normalized = expected["subset"] / math.sqrt(own[0] * own[1]) if all(own) else 0.0
    assert found.kernels["subset"].normalized == pytest.approx(normalized)
    assert found.shared.value == pytest.approx(normalized)


@settings(max_examples=examples(25))
@given(trees(max_leaves=6), trees(max_leaves=6))
def test_every_node_is_kept_deleted_or_inserted_once(a, b):
    edits = compared(str(a), str(b), a_format="brackets", b_format="brackets").edits
    assert edits.distance == edit_distance(a, b)
    kept = [[pair[side] for pair in edits.pairs] for side in (0, 1)]
    assert sorted(kept[0] + edits.deleted) == list(range(a.size))
    assert sorted(kept[1] + edits.inserted) == list(range(b.size))
    labels = [[node.label for node in tree.postorder()] for tree in (a, b)]
    assert edits.relabelled == [[i, j] for i, j in edits.pairs if labels[0][i] != labels[1][j]]


@settings(max_examples=examples(25))
@given(trees(max_leaves=6), trees(max_leaves=6))
def test_steps_are_summed_over_all_pairs_of_inner_nodes(a, b):
    arity = [[len(node.children) for node in tree.postorder() if node.children] for tree in (a, b)]
    expected = sum(x * y * min(x, y) for x in arity[0] for y in arity[1])
    assert steps(Forest.from_tree(a), Forest.from_tree(b)) == expected


def test_a_partial_tree_kernel_that_would_take_too_long_is_left_out():
    wide = f"(A {'b ' * 1500})"
    found = compared(wide, wide).kernels
    assert found["partial"].value is None
    assert found["subset"].value == 1


def test_the_interface_gives_the_same_numbers_as_the_functions(site):
    found = site.post("/api/compare", json={"a": BIRD, "b": CAT, "decay": 0.3}).json()
    expected = compared(BIRD, CAT, decay=0.3)
    assert found == expected.to_dict() | {"kernels": found["kernels"]}
    assert found["kernels"]["subset"] == expected.kernels["subset"]._asdict()
    assert found == site.get("/api/compare", params={"a": BIRD, "b": CAT, "decay": "0.3"}).json()


def test_occurrences_of_shared_fragments_are_inner_nodes_of_both_trees():
    found = compared(BIRD, CAT)
    assert [str(one.fragment) for one in found.shared.fragments[:2]] == ["(NP DT NN)", "(DT the)"]
    for one in found.shared.fragments:
        inner = sum(1 for node in one.fragment.postorder() if node.children)
        assert all(len(nodes) == inner for nodes in one.nodes_a + one.nodes_b)


@pytest.mark.parametrize(
    ("format", "text", "tree"),
    [
        ("brackets", "(A (B c))", "(A (B c))"),
        ("html", "<p>a<b>c</b></p>", None),
        ("xml", "<?xml version='1.0'?><p><b>c</b></p>", None),
        ("json", '{"a": [1, 2]}', None),
        ("newick", "(a,b)c;", "(c a b)"),
        ("dot-bracket", "GCAAGC\n((..))", None),
        ("conllu", "1\tgo\tgo\tVERB\t_\t_\t0\troot\t_\t_\n\n", None),
        ("python", "def f(x):\n    return x\n", None),
        ("python", "x = 1\n", None),
        ("javascript", "function f(x) { return x; }", None),
        ("rust", "fn f(x: i32) -> i32 { x }", None),
    ],
)
def test_every_format_is_read_and_most_are_recognised(format, text, tree):
    pair = compared(text, text, b_format=format).pair
    assert pair.formats[1] == format
    if format not in ("javascript", "rust"):
        assert pair.formats[0] == format
        assert str(pair.a[0]) == str(pair.b[0])
    if tree:
        assert str(pair.b[0]) == tree


def test_the_page_shows_both_trees_and_keeps_what_was_entered(site):
    page = site.get("/compare", params={"a": BIRD, "b": CAT, "decay": "0.25", "components": COMPONENTS[-1]})
    assert page.status_code == 200
    assert page.text.count("data-tree=") == 2
    assert BIRD in page.text
    assert 'name="decay" value="0.25"' in page.text
    assert f'value="{COMPONENTS[-1]}" data-default="1024" checked' in page.text
    assert page.text.count('class="box"') == 10


def test_compositions_have_the_symbols_of_the_paper():
    for method in (PRODUCT, CONVOLUTION):
        symbol = method.title.removeprefix("DTK ")
        assert COMPOSITION_NAMES[method.name] == f"{symbol} {method.name}"


def test_a_problem_is_shown_in_the_page_with_what_was_entered(site):
    page = site.get("/compare", params={"a": "(A <b", "b": CAT, "decay": "x"})
    assert page.status_code == 200
    assert "decay must be a number from 0 to 1" in page.text
    assert 'role="alert"' in page.text
    assert "(A &lt;b" in page.text
    assert "(A <b" not in page.text


def test_labels_are_escaped(site):
    page = site.get("/compare", params={"a": '(A "<i>&)', "b": '(A "<i>&)'}).text
    assert "<i>&" not in page
    assert page.count("&quot;&lt;i&gt;&amp;") >= 4
