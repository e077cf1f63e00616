import numpy as np
import pytest
from hypothesis import given

from strategies import trees
from treedot import Forest
from treedot.readers import CodeSettings, parse_code
from treedot.readers.code.units import post_order, stable_hash


@given(trees())
def test_nodes_before_their_children_become_a_forest(tree):
    depths, nodes = [], []
    waiting = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        depths.append(depth)
        nodes.append(node)
        waiting.extend((child, depth + 1) for child in reversed(node.children))
    order, size, arity = post_order(np.array(depths))
    forest = Forest.from_trees([tree])
    assert [nodes[i].label for i in order] == [forest.labels[k] for k in forest.label]
    assert arity[order].tolist() == forest.arity.tolist()
    assert size[order].tolist() == forest.subtree_size.tolist()


SOURCE = """\
import a

class C:
    def f(self):
        return 1

    {before}
    @decorated
    def g(self):
        def inner():
            {inside}
            return 2
        return inner

def h():{behind}
    return 3
"""


@pytest.mark.parametrize(
    ("place", "left"),
    [
        (None, ["C.f", "C.g", "C.g.inner", "h"]),
        ("before", ["C.f", "h"]),
        ("inside", ["C.f", "C.g", "h"]),
        ("behind", ["C.f", "C.g", "C.g.inner"]),
    ],
)
def test_a_comment_leaves_out_the_definition_it_concerns(place, left):
    comments = {"before": "", "inside": "", "behind": ""}
    if place is not None:
        comments[place] = "# treedot: ignore"
    source = SOURCE.format(**comments)
    assert parse_code(source, "python").columns["name"] == left
    assert len(parse_code(source, "python", settings=CodeSettings(unit="class"))) == 1
    assert len(parse_code(source, "python", settings=CodeSettings(unit="file"))) == 1


def test_a_comment_outside_of_all_definitions_leaves_out_the_file():
    for unit in ("function", "class", "file"):
        source = "# treedot: ignore\nimport a\n\nclass C:\n    def f(self): pass\n"
        assert len(parse_code(source, "python", settings=CodeSettings(unit=unit))) == 0
    assert len(parse_code("x = 'treedot: ignore'\ndef f(): pass\n", "python")) == 1
    many = "def f(): 0 # treedot: ignore\n" * 3000  # in linear time
    assert len(parse_code(many, "python")) == 0


def test_definitions_inside_of_many_others_are_no_units():
    source = "".join(" " * k + f"def f{k}():\n" for k in range(60)) + " " * 60 + "pass\n"
    forest = parse_code(source, "python")
    assert len(forest) == 20
    assert forest.columns["name"][-1] == ".".join(f"f{k}" for k in range(20))
    assert forest.sizes[19] > 120  # with all that is inside


def test_small_units_are_left_out():
    source = "def f(): pass\ndef g(x): return x + x\n"
    assert parse_code(source, "python", settings=CodeSettings(min_nodes=10)).columns["name"] == ["g"]


def test_hashes_of_texts_are_frozen():
    assert stable_hash(b"name") == FROZEN_HASH


FROZEN_HASH = -2707064515180904361
