"""Trees as pictures."""

import itertools
import re

import numpy as np
from hypothesis import given

from strategies import ANY_LABEL, random_tree, trees
from treedot import Tree
from treedot.trees import drawing
from treedot.trees.drawing import tree_html

BOX = re.compile(r'<rect x="(-?[\d.]+)" y="(\d+)" width="([\d.]+)"')


def boxes(picture: str) -> list[tuple[float, int, float]]:
    return [(float(x), int(y), float(width)) for x, y, width in BOX.findall(picture)]


@given(trees(ANY_LABEL))
def test_every_node_of_a_small_tree_is_drawn_once_and_nothing_overlaps(tree):
    found = boxes(tree_html(tree))
    assert len(found) == tree.size
    assert min(x for x, _, _ in found) > -0.1
    by_level = {}
    for x, y, width in found:
        by_level.setdefault(y, []).append((x, x + width))
    assert len(by_level) == tree.depth
    for level in by_level.values():
        level.sort()
        assert all(a[1] < b[0] for a, b in itertools.pairwise(level))


def test_labels_cannot_break_out_of_the_picture():
    picture = tree_html(Tree('<b title="x">&', ["\x1b[1m", "a" * 100]))
    assert "<b" not in picture
    assert "\x1b" not in picture
    assert "&lt;b title=&quot;x&quot;&gt;&amp;" in picture
    assert "a" * 100 in picture  # in full where one points at it
    assert "a" * 23 + "…" in picture


def test_colours_follow_the_values():
    picture = tree_html(Tree.parse("(A (B b) (C c))"), [0, 1, 0, -2, 0.5])
    nodes = re.findall(
        r'<g class="(\w*)"[^>]*><title>([^<]*)</title><rect [^>]*?(?:fill-opacity="([\d.]+)")?/>', picture
    )
    assert set(nodes) == {
        ("for", "A: +0.5", "0.12"), ("for", "B: +1", "0.25"), ("against", "C: -2", "0.50"),
        ("", "b: +0", ""), ("", "c: +0", ""),
    }  # fmt: skip


def test_trees_that_are_compared_have_one_scale():
    tree, values = Tree.parse("(A b)"), [0, 1]
    assert 'fill-opacity="0.50"' in tree_html(tree, values)
    assert 'fill-opacity="0.12"' in tree_html(tree, values, largest=4)


def test_colours_are_explained_where_there_are_any():
    tree = Tree.parse("(A (B b))")
    legends = [re.findall('class="(up|down)"', tree_html(tree, values)) for values in ([0, 1, 0], [0, -1, 1])]
    assert legends == [["up"], ["up", "down"]]
    assert "legend" not in tree_html(tree)
    assert "legend" not in tree_html(tree, [0, 0, 0])


def test_large_trees_fold_where_there_is_least_to_see():
    tree = random_tree(np.random.default_rng(1), 500)
    values = np.zeros(tree.size)
    leaf = next(k for k, node in enumerate(tree.postorder()) if len(node.children) == 1 and k > 100)
    values[leaf] = 1.0
    picture = tree_html(tree, values)
    first, rest = picture.split("</svg>", 1)
    assert len(boxes(first)) < 3 * drawing.SHOWN
    assert first.count('class="for"') == 1  # the one node that counts is in the first picture
    assert len(boxes(picture)) >= tree.size
    links, targets = set(re.findall(r'href="#([\w-]+)"', picture)), set(re.findall(r'id="([\w-]+)"', rest))
    assert links == targets


def test_huge_trees_are_drawn_in_part_and_say_so():
    chain = Tree("a")
    for _ in range(20_000):
        chain = Tree("a", [chain])
    wide = Tree("S", [Tree("A", ["b"])] * 5000)
    assert "not drawn" in tree_html(chain)
    assert "(+4800 children)" in tree_html(wide)
    assert max(len(tree_html(tree)) for tree in (chain, wide)) < 2**21


def test_a_tree_draws_itself_in_notebooks():
    assert Tree.parse("(A b)")._repr_html_().count("<rect") == 2
