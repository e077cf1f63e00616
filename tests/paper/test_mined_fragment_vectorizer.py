import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper.rivals.mined_fragment_vectorizer import MinedFragmentVectorizer
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection
from sklearn.svm import SVC, LinearSVC

from strategies import corpus, random_forest, trees
from treedot import DistributedTreeVectorizer, Forest, FragmentVectorizer, SubsetTreeKernel, Tree, read_trees
from treedot.errors import LimitError, ParameterError, SourceError
from treedot.kernels.reference import fragment_values

FORESTS = st.lists(trees(max_leaves=6).filter(lambda tree: not tree.is_leaf), min_size=1, max_size=4)


def every_fragment(decay=0.4, normalize=False):
    return FragmentVectorizer(
        n_features=None, decay=decay, budget=None, damping="linear", normalize=normalize, dtype="float64"
    )


def labelled(seed=5, n=60):
    """Trees that differ in one small fragment among much else."""
    classes = [("yes", "no", "maybe")[k % 3] for k in range(n)]
    rest = random_forest(seed, n, nodes=10)
    trees = [
        Tree("S", [Tree("X", [Tree(kind, ["v"])]), tree]) for kind, tree in zip(classes, rest, strict=True)
    ]
    return Forest.from_trees(trees), classes


def literal_values(forest, fragments, decay, normalize):
    rows = []
    for tree in forest:
        values = fragment_values(tree, decay)
        norm = np.sqrt(sum(value**2 for value in values.values())) if normalize else 1.0
        rows.append([values.get(fragment, 0.0) / (norm or 1.0) for fragment in fragments])
    return np.array(rows)


@given(FORESTS, FORESTS, st.sampled_from([0.0, 0.4, 1.0]), st.booleans())
def test_the_explicit_space_gives_the_exact_kernel(first, second, decay, normalize):
    vectorizer = every_fragment(decay, normalize)
    rows = vectorizer.fit_transform(first)
    kernel = SubsetTreeKernel(decay=decay, normalize=normalize)
    assert (rows @ rows.T).toarray() == pytest.approx(kernel.gram(first), rel=1e-12)
    assert np.allclose(vectorizer.transform(first).toarray(), rows.toarray(), rtol=1e-15)
    assert (vectorizer.transform(second) @ rows.T).toarray() == pytest.approx(
        kernel.gram(second, first), rel=1e-12
    )
    assert rows.toarray() == pytest.approx(
        literal_values(first, vectorizer.dictionary_.trees(), decay, normalize)
    )


def test_a_vocabulary_is_learned_from_the_training_trees_alone(monkeypatch):
    vectorizer = every_fragment().fit(["(A (B b))"])
    assert sorted(vectorizer.get_feature_names_out()) == ["(A (B b))", "(A B)", "(B b)"]
    assert vectorizer.transform(["(C c)", "(x)"]).nnz == 0
    monkeypatch.setattr("treedot.vectors.chunks.MAX_FRAGMENTS", 2000)
    with pytest.raises(LimitError, match="more than 2000 fragments"):
        every_fragment().fit(["(A" + " (B b)" * 11 + ")"])


def spread(transformer_of, pairs, dimensions, seeds):
    """Return z = (estimate - K) / σ for pairs of trees (columns) under many seeds (rows).

    σ = √((K11 K22 + K12²) / d) is the standard deviation of a Gaussian random projection.
    """
    forest = random_forest(0, 6, nodes=9)
    kernel = SubsetTreeKernel().gram(forest)
    own = np.diagonal(kernel)
    sigma = np.sqrt((np.outer(own, own) + kernel**2) / dimensions)
    vectors = (np.asarray(transformer_of(seed).fit_transform(forest)) for seed in range(seeds))
    return np.array([((v @ v.T - kernel) / sigma)[pairs] for v in vectors])


def assert_standard(z):
    """Check that every column has mean 0 and standard deviation 1, within four standard errors."""
    seeds = len(z)
    assert abs(z.mean(axis=0)).max() < 4 / np.sqrt(seeds)
    assert abs(np.sqrt((z**2).mean(axis=0)) - 1).max() < 4 / np.sqrt(2 * seeds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "projection",
    [
        GaussianRandomProjection(256),
        SparseRandomProjection(256, density=1 / 3, dense_output=True),  # random indexing
    ],
    ids=["gaussian", "sparse"],
)
def test_random_projections_of_the_explicit_space_err_by_the_johnson_lindenstrauss_deviation(projection):
    z = spread(
        lambda seed: make_pipeline(every_fragment(), clone(projection).set_params(random_state=seed)),
        np.triu_indices(6),
        dimensions=256,
        seeds=200,
    )
    assert_standard(z)


@pytest.mark.slow
def test_distributed_trees_err_as_random_projections_of_the_explicit_space_do():
    # Of two different trees: a tree's kernel with itself varies up to 1.35 times as much.
    z = spread(
        lambda seed: DistributedTreeVectorizer(
            n_components=256, random_state=seed, normalize=False, dtype="float64"
        ),
        np.triu_indices(6, k=1),
        dimensions=256,
        seeds=100,
    )
    assert_standard(z)


def test_truncated_svd_is_the_best_approximation_of_its_rank():
    forest = random_forest(1, 20, nodes=9)
    kernel = SubsetTreeKernel().gram(forest)
    eigenvalues = np.linalg.eigvalsh(kernel)
    for rank in (1, 5, 10):
        model = make_pipeline(every_fragment(), TruncatedSVD(rank, algorithm="arpack", random_state=0))
        vectors = model.fit_transform(forest)
        error = np.linalg.norm(vectors @ vectors.T - kernel)
        assert error == pytest.approx(np.linalg.norm(eigenvalues[:-rank]), rel=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_selected_fragments_are_the_heaviest_in_the_support_vector_machine(seed, n_classes, normalize):
    forest = random_forest(seed, 45, nodes=10)
    y = np.random.default_rng(seed).integers(n_classes, size=45)
    selector = MinedFragmentVectorizer(n_fragments=100, C=2.0, normalize=normalize).fit(forest, y)

    every = every_fragment(normalize=normalize)
    rows = every.fit_transform(forest)
    gram = SubsetTreeKernel(normalize=normalize).gram(forest)
    positive = [y == 1] if n_classes == 2 else [y == c for c in range(n_classes)]
    literal = []
    for side in positive:
        svm = SVC(C=2.0, kernel="precomputed").fit(gram, side)
        literal.append(svm.dual_coef_[0] @ rows[svm.support_].toarray())
        decision = rows @ literal[-1] + svm.intercept_
        assert decision == pytest.approx(svm.decision_function(gram), rel=1e-9, abs=1e-9)
    literal = np.array(literal)

    score = abs(literal).max(axis=0)
    top = np.argsort(-score)[:100]
    column = {fragment: k for k, fragment in enumerate(every.dictionary_.trees())}
    chosen = [column[fragment] for fragment in selector.fragments_]
    assert len(set(chosen) & set(np.flatnonzero(score >= score[top[-1]] * (1 - 1e-9)))) >= 90  # recall
    assert selector.exact_
    assert selector.weights_ == pytest.approx(literal[:, chosen], rel=1e-9, abs=1e-12 * score.max())
    assert (np.diff(abs(selector.weights_).max(axis=0)) <= 0).all()
    assert selector.transform(forest).toarray() == pytest.approx(rows[:, chosen].toarray(), rel=1e-12)


@given(FORESTS, st.booleans())
def test_new_trees_are_counted_literally(new, normalize):
    known, y = labelled(n=12)
    selector = MinedFragmentVectorizer(n_fragments=40, normalize=normalize).fit(known, y)
    expected = literal_values(new, selector.fragments_, 0.4, normalize)
    assert selector.transform(new).toarray() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_with_all_fragments_the_linear_kernel_is_the_exact_one(normalize):
    forest = random_forest(2, 30, nodes=9)
    # So cheap an error is worth making: every tree is a support vector.
    selector = MinedFragmentVectorizer(n_fragments=10**6, C=1e-4, normalize=normalize).fit(
        forest, ["a", "b"] * 15
    )
    rows = selector.transform(forest)
    assert (rows @ rows.T).toarray() == pytest.approx(
        SubsetTreeKernel(normalize=normalize).gram(forest), rel=1e-12
    )


def test_selection_follows_scikit_learn():
    forest, y = labelled()
    model = make_pipeline(MinedFragmentVectorizer(n_fragments=30), LinearSVC(C=10))
    assert cross_val_score(model, forest, y, cv=3).mean() > 0.9
    assert cross_val_score(model, [str(tree) for tree in forest], y, cv=3).mean() > 0.9
    search = GridSearchCV(model, {"minedfragmentvectorizer__decay": [0.2, 0.4]}, cv=2).fit(forest, y)
    assert search.best_score_ > 0.7

    selector = MinedFragmentVectorizer(n_fragments=7, decay=0.3, C=3.0, threshold=0.01, max_expansions=2)
    selector.fit(forest, y)
    assert list(selector.get_feature_names_out()) == [str(fragment) for fragment in selector.fragments_]
    assert {str(f) for f in selector.fragments_} >= {"(yes v)", "(no v)", "(maybe v)"}
    assert selector.weights_.shape == (3, 7)
    assert list(selector.classes_) == ["maybe", "no", "yes"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_fragments": 0}, "n_fragments must be at least 1"),
        ({"decay": 2}, "decay"),
        ({"C": 0}, "C must be a number above 0"),
        ({"C": "one"}, "C must be a number above 0"),
        ({"threshold": 1.5}, "threshold must be a number from 0 to 1"),
        ({"max_expansions": -1}, "max_expansions must be at least 0"),
        ({"beam": 0}, "beam must be at least 1"),
        ({"normalize": 3}, "normalize"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        MinedFragmentVectorizer(**settings).fit(["(A b)", "(A c)"], [0, 1])


def test_classes_must_fit_the_trees():
    pair = ["(A b)", "(A c)"]
    with pytest.raises(ParameterError, match="give y"):
        MinedFragmentVectorizer().fit(pair, None)
    with pytest.raises(ParameterError, match="one class for each of the 2 trees"):
        MinedFragmentVectorizer().fit(pair, [0, 1, 1])
    with pytest.raises(ParameterError, match="at least two classes"):
        MinedFragmentVectorizer().fit(pair, [1, 1])
    with pytest.raises(SourceError, match="no fragment"):
        MinedFragmentVectorizer().fit(["(a)", "(b)"], [0, 1])


@pytest.mark.corpus
def test_few_fragments_classify_questions_nearly_as_all_do():
    forest = read_trees(corpus("qc_train.tsv.gz"))[:1500]
    y = forest.columns["coarse"]
    selector = MinedFragmentVectorizer(n_fragments=2000, C=10.0)
    model = make_pipeline(selector, LinearSVC(C=1.0)).fit(forest[:1000], y[:1000])
    kernel = SubsetTreeKernel(normalize=True)
    exact = SVC(C=10.0, kernel="precomputed").fit(kernel.gram(forest[:1000]), y[:1000])
    found = model.score(forest[1000:], y[1000:])
    assert selector.exact_
    assert found > exact.score(kernel.gram(forest[1000:], forest[:1000]), y[1000:]) - 0.03
