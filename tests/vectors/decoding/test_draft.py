"""Gradients and weights of trees under construction, against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings

from strategies import trees
from treedot import Tree
from treedot.parameters import COMPOSITIONS
from treedot.vectors import DenseSpec
from treedot.vectors.decoding.bilinear import Bilinear
from treedot.vectors.decoding.draft import Composer, Node
from treedot.vectors.dense.reference import distributed_tree


def draft_of(tree):
    root = Node(tree.label)
    waiting = [(tree, root)]
    while waiting:
        given, node = waiting.pop()
        if given.children:
            node.expand(0, tuple(child.label for child in given.children))
            waiting.extend(zip(given.children, node.children, strict=True))
    return root


def composer(composition, decay=0.4, size=1024):
    algebra = DenseSpec(size, decay, composition).algebra()
    made = Composer(
        Bilinear(algebra), decay**0.5, lambda text: algebra.label_vectors([text])[0].astype(np.float32)
    )
    return made, algebra


def vector(made, root):
    order = root.preorder()
    made.update(order)
    return sum((node.s.astype(float) for node in order if node.s is not None), np.zeros(1024))


@pytest.mark.parametrize("composition", COMPOSITIONS)
def test_compositions_and_their_gradients_follow_the_definition(composition):
    made, algebra = composer(composition)
    rng = np.random.default_rng(0)
    a, b, c, g = (rng.normal(size=1024).astype(np.float32) for _ in range(4))
    done = made.bilinear.compose(a, b)
    np.testing.assert_allclose(done.value, algebra.compose(a, b), atol=2e-3)
    to_a, to_b = made.bilinear.gradients(done, g)
    scale = float(np.linalg.norm(g) * np.linalg.norm(done.value))
    assert to_a @ c == pytest.approx(g @ algebra.compose(c, b), abs=1e-5 * scale)
    assert to_b @ c == pytest.approx(g @ algebra.compose(a, c), abs=1e-5 * scale)


@pytest.mark.parametrize("composition", COMPOSITIONS)
@given(trees())
@settings(max_examples=15)
def test_the_vector_of_a_draft_is_that_of_its_tree(composition, tree):
    made, algebra = composer(composition)
    root = draft_of(tree)
    assert root.tree() == tree
    assert root.copy().tree() == tree
    exact = distributed_tree(tree, algebra, 0.4)
    np.testing.assert_allclose(vector(made, root), exact, atol=1e-5 * (1 + np.linalg.norm(exact)))


@pytest.mark.parametrize("composition", COMPOSITIONS)
@given(trees(max_leaves=5))
@settings(max_examples=15)
def test_a_slope_is_the_change_of_the_product_when_a_leaf_is_expanded(composition, tree):
    made, _ = composer(composition)
    root = draft_of(tree)
    before = vector(made, root)
    residual = np.random.default_rng(1).normal(size=1024).astype(np.float32)
    slopes = [slope for slope in made.slopes(root.preorder(), residual) if not slope.node.children]
    for slope in slopes[:3]:
        slope.node.expand(0, ("x", "y"))
        change = vector(made, root) - before
        own = slope.node.vector
        assert slope.gradient @ own == pytest.approx(
            residual @ change, abs=1e-3 * (1 + float(np.linalg.norm(change)))
        )
        slope.node.collapse()


def test_weights_are_the_squared_norms_of_changes_were_fragments_orthonormal():
    made, _ = composer("mixed", decay=0.25)
    root = draft_of(Tree.parse("(A (B x) (C D))"))
    vector(made, root)
    found = {
        slope.node.label: slope.weight for slope in made.slopes(root.preorder(), np.zeros(1024, np.float32))
    }
    # D as a leaf is in (C D), weight 1, in (A B (C D)), ¼, and in (A (B x) (C D)), 1/16.
    assert found["D"] == pytest.approx(1 + 0.25 * (1 + 0.25 * (1 + 0.25)))
