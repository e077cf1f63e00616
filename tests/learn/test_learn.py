import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from strategies import random_forest
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    KernelTransformer,
    SubsetTreeKernel,
    Tree,
    read_trees,
)
from treedot.encode import DenseEncoder, DenseSpec
from treedot.errors import ParameterError


def labelled():
    """Trees that differ in one small fragment among much else."""
    classes = ["yes", "no", "maybe"] * 20
    rest = random_forest(5, 60, nodes=12)
    trees = [
        Tree("S", [Tree("X", [Tree(kind, ["v"])]), tree]) for kind, tree in zip(classes, rest, strict=True)
    ]
    return Forest.from_trees(trees), classes


def test_transform_works_without_fit_on_every_source(tmp_path):
    forest = random_forest(0, 6)
    expected = DenseEncoder(DenseSpec(256, normalize=False)).encode(forest)
    vectorizer = DistributedTreeVectorizer(n_components=256)
    texts = [str(tree) for tree in forest]
    (tmp_path / "t.mrg").write_text("\n".join(texts))
    for source in (
        forest,
        texts,
        list(forest),
        tmp_path / "t.mrg",
        str(tmp_path / "t.mrg"),
        np.array(texts, object),
    ):
        assert (vectorizer.transform(source) == expected).all()
    assert (vectorizer.fit_transform(texts) == expected).all()
    out = np.empty((6, 256), np.float32)
    assert vectorizer.transform(forest, out=out) is out


def test_parameters_follow_scikit_learn():
    vectorizer = DistributedTreeVectorizer(
        256, decay=0.2, composition="product", random_state=4, dtype=np.float64
    )
    assert clone(vectorizer).get_params() == vectorizer.get_params()
    again = pickle.loads(pickle.dumps(vectorizer))
    forest = random_forest(0, 3)
    assert (again.transform(forest) == vectorizer.transform(forest)).all()
    assert vectorizer.spec == DenseSpec(256, 0.2, "product", 4, normalize=False, dtype="float64")
    assert len(vectorizer.get_feature_names_out()) == 256
    with pytest.raises(ParameterError, match="multiple of 256"):
        DistributedTreeVectorizer(n_components=3).fit(forest)
    with pytest.raises(ParameterError, match="integer"):
        DistributedTreeVectorizer(random_state=None).transform(forest)


def test_pandas_output():
    pandas = pytest.importorskip("pandas")
    frame = DistributedTreeVectorizer(256).set_output(transform="pandas").fit_transform(["(a b)", "(a c)"])
    assert isinstance(frame, pandas.DataFrame)
    assert frame.columns[0] == "distributedtreevectorizer0"


def test_a_linear_model_on_vectors_and_an_svm_on_the_exact_kernel_learn_a_fragment():
    forest, classes = labelled()
    linear = make_pipeline(DistributedTreeVectorizer(2048, normalize=True), LinearSVC(C=10))
    exact = make_pipeline(KernelTransformer(normalize=True), SVC(kernel="precomputed", C=10))
    assert cross_val_score(linear, forest, classes, cv=3).mean() > 0.9
    assert cross_val_score(exact, forest, classes, cv=3).mean() > 0.9
    assert cross_val_score(exact, [str(t) for t in forest], classes, cv=3).mean() > 0.9


def test_parameters_can_be_searched():
    forest, classes = labelled()
    search = GridSearchCV(
        make_pipeline(DistributedTreeVectorizer(256, normalize=True), LogisticRegression()),
        {"distributedtreevectorizer__decay": [0.2, 0.4]},
        cv=2,
    )
    assert search.fit(forest, classes).best_score_ > 0.7
    search = GridSearchCV(
        make_pipeline(KernelTransformer(), SVC(kernel="precomputed")),
        {"kerneltransformer__decay": [0.2, 0.4], "kerneltransformer__kernel": ["subset", "subtree"]},
        cv=2,
    )
    search.fit(forest, classes)


def test_the_gram_transformer_gives_kernels_with_the_training_trees():
    forest = random_forest(1, 8)
    gram = KernelTransformer(decay=0.3)
    assert np.allclose(gram.fit_transform(forest), SubsetTreeKernel(decay=0.3).gram(forest))
    rows = gram.transform(forest[:2])
    assert np.allclose(rows, SubsetTreeKernel(decay=0.3).gram(forest[:2], forest))
    assert len(gram.get_feature_names_out()) == 8
    with pytest.raises(ParameterError, match="subset, subtree"):
        KernelTransformer(kernel="polynomial").fit(forest)


def test_a_fragments_weight_can_be_read_off_a_vector():
    vectorizer = DistributedTreeVectorizer(8192, decay=0.25)
    tree = read_trees(["(S (NP (DT a) (NN tree)) (VP (VBZ is) (NP (DT a) (NN tree))))"])
    vector = vectorizer.transform(tree)[0]
    noise = 6 * np.linalg.norm(vector) / np.sqrt(8192)
    assert vector @ vectorizer.fragment("(NP (DT a) NN)") == pytest.approx(2 * 0.5, abs=noise)
    assert vector @ vectorizer.fragment("(DT a)") == pytest.approx(2, abs=noise)
    assert vector @ vectorizer.fragment("(DT the)") == pytest.approx(0, abs=noise)
