"""Distributed trees as a layer of PyTorch: the vectors of the vectorizer, on the device of the network."""

from __future__ import annotations

import copy
import io
from typing import Any

import numpy as np
import pytest

from components import component
from strategies import random_forest
from treedot import DistributedTreeVectorizer, Forest, LinearModel, TreeClassifier, explain, read_trees
from treedot.errors import ParameterError, RangeError, SourceError, SpecMismatchError
from treedot.models.explain import explain_by_removal

torch: Any = component("torch")
from treedot.torch import DistributedTrees, TreeDataset, collate_trees  # noqa: E402

SMALL = DistributedTreeVectorizer(n_components=512)


@pytest.mark.parametrize(
    "vectorizer",
    [
        DistributedTreeVectorizer(),
        SMALL,
        DistributedTreeVectorizer(n_components=512, composition="product", decay=0.2, normalize=False),
        DistributedTreeVectorizer(n_components=512, composition="convolution", dtype="float64"),
        DistributedTreeVectorizer(n_components=512, kernel="partial", random_state=3),
        DistributedTreeVectorizer(n_components=512, kernel="smoothed", similarity={"a": [1.0, 2.0]}),
    ],
)
def test_the_layer_returns_the_vectors_of_the_vectorizer(vectorizer):
    forest = random_forest(1, 20)
    layer = DistributedTrees(vectorizer)
    vectors = layer(forest)
    assert np.array_equal(vectors.numpy(), vectorizer.transform(forest).astype(np.float32))
    assert vectors.shape == (20, layer.out_features)
    assert not vectors.requires_grad
    assert np.array_equal(copy.deepcopy(layer)([str(tree) for tree in forest]), vectors)  # texts, too


def test_the_type_of_the_tensor_follows_the_network():
    forest = random_forest(2, 5)
    network = torch.nn.Sequential(DistributedTrees(SMALL), torch.nn.Linear(512, 3))
    assert network(forest).dtype == torch.float32
    assert network.double()(forest).dtype == torch.float64
    assert network[0].half()(forest).dtype == torch.float16
    assert not list(network[0].parameters())
    network.float()(forest).sum().backward()
    assert network[1].weight.grad.abs().sum() > 0


def test_a_state_holds_the_settings_and_fits_no_others():
    network = torch.nn.Sequential(DistributedTrees(SMALL), torch.nn.Linear(512, 2))
    file = io.BytesIO()
    torch.save(network.state_dict(), file)
    file.seek(0)
    state = torch.load(file, weights_only=True)  # plain values only
    same = torch.nn.Sequential(DistributedTrees(SMALL), torch.nn.Linear(512, 2))
    same.load_state_dict(state)
    assert torch.equal(same[1].weight, network[1].weight)
    other = DistributedTrees(DistributedTreeVectorizer(n_components=512, decay=0.2))
    with pytest.raises(SpecMismatchError, match="decay"):
        torch.nn.Sequential(other, torch.nn.Linear(512, 2)).load_state_dict(state)
    with pytest.raises(SpecMismatchError, match="no settings"):
        DistributedTrees(SMALL).set_extra_state(None)


def test_the_layer_says_what_it_cannot_take():
    with pytest.raises(ParameterError, match="must be a DistributedTreeVectorizer, not 512"):
        DistributedTrees(512)
    with pytest.raises(SourceError):
        DistributedTrees(SMALL)(["(S (A"])
    wide = f"(S {'(A a) ' * 2000})"
    with pytest.raises(RangeError, match="normalize=True"):
        DistributedTrees(DistributedTreeVectorizer(n_components=512, decay=1.0, normalize=False))([wide] * 2)
    assert "512, decay=0.4, composition='mixed', kernel='subset'" in repr(DistributedTrees(SMALL))


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_loader_gives_every_tree_once_with_its_target(workers):
    forest, targets = random_forest(3, 23), [f"class {k % 3}" for k in range(23)]
    data = TreeDataset(forest, targets)
    loader = torch.utils.data.DataLoader(
        data, batch_size=5, shuffle=True, collate_fn=collate_trees, num_workers=workers
    )
    seen = [
        (tree, data.classes[k]) for trees, numbers in loader for tree, k in zip(trees, numbers, strict=True)
    ]
    assert sorted(seen, key=repr) == sorted(zip(forest, targets, strict=True), key=repr)
    assert len(data) == 23


def test_items_are_joined_whether_a_loader_asks_for_them_singly_or_together():
    data = TreeDataset(random_forest(4, 6), [0.5, 1.0, 2.0, 3.0, 4.0, 5.0])
    singly, together = collate_trees([data[1], data[4]]), collate_trees(data.__getitems__([1, 4]))
    assert list(singly[0]) == list(together[0]) == [data.trees[1], data.trees[4]]
    assert singly[1].tolist() == together[1].tolist() == [1.0, 4.0]
    assert (data.classes, data.targets.dtype) == (None, torch.float32)
    without = TreeDataset(data.trees)
    assert isinstance(collate_trees([without[0]]), Forest)


def test_targets_are_numbered_by_the_given_classes():
    train = TreeDataset(["(S a)", "(S b)"], ["yes", "no"])
    test = TreeDataset(["(S c)"], ["yes"], classes=train.classes)
    assert (train.targets.tolist(), test.targets.tolist()) == ([1, 0], [1])
    with pytest.raises(ParameterError, match="the class 'perhaps' is not one"):
        TreeDataset(["(S c)"], ["perhaps"], classes=train.classes)
    with pytest.raises(ParameterError, match="one target for each of the 2 trees"):
        TreeDataset(["(S a)", "(S b)"], ["yes"])


def test_a_network_of_one_linear_layer_is_explained_as_the_linear_model_is():
    trees = read_trees(["(S (A a) (B b))", "(S (A a) (C c))", "(S (B b) (B c))", "(T (C c) (A b))"])
    vectorizer = DistributedTreeVectorizer(n_components=512, kernel="partial")  # explained by removal
    model: LinearModel = (
        TreeClassifier(vectorizer=vectorizer, decay=None, C=1.0).fit(trees, ["x", "x", "y", "y"]).to_model()
    )
    linear = torch.nn.Linear(512, 1)
    with torch.no_grad():
        linear.weight[0] = torch.from_numpy(np.ascontiguousarray(model.weights[:, 0]))
        linear.bias[0] = float(model.bias[0])
    network = torch.nn.Sequential(DistributedTrees(vectorizer), linear)
    for tree in trees:
        expected = explain(model, tree, target="y", find_flip=False)
        found = explain_by_removal(lambda some: network(some)[:, 0].detach(), tree, "y")
        assert (expected.values_are, found.values_are) == ("removal", "removal")
        np.testing.assert_allclose(found.node_values, expected.node_values, atol=1e-5)
        assert found.score == pytest.approx(expected.score, abs=1e-5)


gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@gpu
@pytest.mark.parametrize("composition", ["mixed", "product", "convolution"])
def test_vectors_are_made_on_the_gpu_of_the_network(composition):
    forest = random_forest(5, 50)
    vectorizer = DistributedTreeVectorizer(n_components=512, composition=composition)
    vectors = DistributedTrees(vectorizer).to("cuda")(forest)
    assert vectors.device.type == "cuda"
    np.testing.assert_allclose(vectors.cpu(), vectorizer.transform(forest), atol=1e-5)
