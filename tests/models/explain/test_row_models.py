"""Explanations of models of fragments, words and labels, against the definition of their values."""

import itertools
import math
from collections import Counter

import pytest

from models.explain.test_kernel_models import SMALL, SMALL_CLASSES, occurrences
from models.explain.test_shares import assert_close, shapley
from treedot import FragmentVectorizer, TreeClassifier, explain
from treedot._runtime.hashing import keys
from treedot.kernels.fragments.cost import fragment_cost
from treedot.models.inputs.hashed_terms import BITS
from treedot.readers import read_tree

N_TRAIN, DECAY, BUDGET = 40, 0.4, 4
SETTINGS = [
    {},
    {"idf": True, "damping": "log1p"},
    {"words": True},
    {"words": True, "idf": True},
    {"labels": True},
    {"labels": True, "idf": True},
    {"words": True, "labels": True, "idf": True, "damping": "linear"},
]
DAMPING = {"linear": float, "sqrt": math.sqrt, "log1p": math.log1p}


def parts_of(tree, kind):
    """Return every occurrence of a fragment, word or label: its name, and the inner nodes that hold it."""
    nodes = list(tree.postorder())
    if kind == "fragments":
        return [(str(f), own) for own, f in occurrences(tree) if fragment_cost(f) <= BUDGET]
    if kind == "labels":
        return [(node.label, frozenset([k])) for k, node in enumerate(nodes) if node.children]
    parent = read_tree(tree).parent
    words = [(node.label.casefold(), int(parent[k])) for k, node in enumerate(nodes) if node.is_leaf]
    pairs = [(f"{a} {b}", frozenset([i, j])) for (a, i), (b, j) in itertools.pairwise(words)]
    return [(word, frozenset([node])) for word, node in words] + pairs


def idf_of(kind, is_learned):
    """Return the weight of a name: ln((1 + n) / (1 + trees with it)) + 1."""
    trees = [{name for name, _ in parts_of(tree, kind)} for tree in SMALL[:N_TRAIN]]
    seen = Counter(name for names in trees for name in names)
    return lambda name: math.log((1 + N_TRAIN) / (1 + seen[name])) + 1 if is_learned else 1.0


def weight_of(model, kind, row):
    """Return the weight of a name in the model, with the sign of its hash; 0 where it has no column."""
    kinds = ["fragments", *(name for name in ("words", "labels") if getattr(model, f"{name}_"))]
    place = kinds.index(kind)
    first = sum(each.width for each in model.inputs_[:place])
    weights = dict(zip((model.columns_ - first).tolist(), model.weights_[:, row].tolist(), strict=True))
    if kind == "fragments":
        names = model.inputs_[0].vectorizer.get_feature_names_out().tolist()
        number = {name: k for k, name in enumerate(names)}
        return lambda name: weights.get(number.get(name, -1), 0.0)

    def of_term(name):
        key = int(keys(0, [name], kind)[0, 0])
        return (-1 if key & 1 else 1) * weights.get(key >> (64 - BITS), 0.0)

    return of_term


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: " ".join(map(str, one)) or "fragments")
def test_values_of_models_of_rows_are_the_shapley_values_of_200_trees(settings):
    """A coalition has the parts whose nodes are all in it; counts, lengths and weights are the tree's."""
    vectorizer = FragmentVectorizer(n_features=None, budget=BUDGET, dtype="float64")
    model = TreeClassifier(vectorizer=vectorizer, decay=DECAY, C=1, **settings)
    model.fit(SMALL[:N_TRAIN], SMALL_CLASSES[:N_TRAIN])
    kinds = ["fragments", *(name for name in ("words", "labels") if settings.get(name))]
    idf = {kind: idf_of(kind, settings.get("idf")) for kind in kinds}
    weights = [{kind: weight_of(model, kind, row) for kind in kinds} for row in range(3)]
    damping = {"words": math.sqrt, "labels": math.sqrt, "fragments": DAMPING[settings.get("damping", "sqrt")]}
    assert len(SMALL) == 200
    for number, tree in enumerate(SMALL):
        row, own = number % 3, []
        for kind in kinds:
            parts = parts_of(tree, kind)
            counts, sizes = Counter(name for name, _ in parts), dict(parts)
            values = {
                name: damping[kind](count) * idf[kind](name)
                * (math.sqrt(DECAY) ** (len(sizes[name]) - 1) if kind == "fragments" else 1.0)
                for name, count in counts.items()
            }  # fmt: skip
            length = math.hypot(*values.values()) or 1.0
            own += [
                (nodes, weights[row][kind](name) * values[name] / length / counts[name])
                for name, nodes in parts
            ]

        def worth(coalition, own=own):
            return math.fsum(value for nodes, value in own if nodes <= coalition)

        found = explain(model, tree, model.classes_[row], find_flip=False)
        assert found.values_are == "shapley"
        assert_close(found.node_values, shapley(tree, worth), 1e-6)
        whole = found.node_values.sum() + found.bias
        assert whole == pytest.approx(model.decision_function([tree])[0, row], abs=1e-6)
