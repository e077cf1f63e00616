"""The compositionally smoothed partial tree kernel against its definition."""

import pickle
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from strategies import ANY_LABEL, corpus, trees
from treedot import DistributedTreeVectorizer, read_trees
from treedot.errors import ParameterError
from treedot.kernels import ComposedWordVectors, SmoothedPartialTreeKernel, WordVectors
from treedot.kernels.reference import composed_similarity, partial_tree_kernel
from treedot.trees.compositions import ROOT, composition, composition_of

RNG = np.random.default_rng(0)
WORDS = {word: RNG.random(4).tolist() for word in ("buy", "sell", "car", "bike")}
HEADS = ("buy::v", "sell::v", "steal::v", "buy::n", ROOT)
MODIFIERS = ("car::n", "bike::n", "time::n", "sell::v")
COMPOSED = [composition("dobj", head, modifier) for head in HEADS for modifier in MODIFIERS]
LABELS = st.sampled_from([*COMPOSED[:8], "nsubj<buy::v,car::n>", "NN", "COMP##dobj<sell::v,bike::n>"])


def definition(composed, a, b):
    if composition_of(a) is None or composition_of(b) is None:
        return float(a == b)
    return composed_similarity(a, b, WORDS, composed)


@pytest.mark.parametrize("composed", ["sum", "product"])
@pytest.mark.parametrize("a", COMPOSED)
def test_similarities_are_those_of_the_definition(composed, a):
    vectors = ComposedWordVectors(WORDS, composed)
    cosines = [vectors(a, b) for b in COMPOSED]
    assert cosines == pytest.approx([composed_similarity(a, b, WORDS, composed) for b in COMPOSED], abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("composed", ["sum", "product"])
@given(first=trees(LABELS, 4), second=trees(LABELS, 4))
def test_kernels_are_those_of_the_definition(composed, first, second):
    kernel = SmoothedPartialTreeKernel(ComposedWordVectors(WORDS, composed), decay=0.5, mu=0.3, threshold=0)
    wanted = partial_tree_kernel(first, second, 0.5, 0.3, similarity=partial(definition, composed))
    assert kernel(first, second) == pytest.approx(wanted, rel=1e-9)
    assert kernel.gram([first], [second])[0, 0] == pytest.approx(wanted, rel=1e-9)
    assert kernel.pairs([first, second], [0], [1])[0] == pytest.approx(wanted, rel=1e-9)


def test_tags_and_relations_may_have_to_be_equal():
    a, b, c = "dobj<buy::v,car::n>", "nsubj<buy::v,bike::n>", "dobj<buy::n,car::n>"
    assert ComposedWordVectors(WORDS)(a, b) > 0.5
    assert ComposedWordVectors(WORDS)(a, c) == 0
    assert ComposedWordVectors(WORDS, same_relation=True)(a, b) == 0
    assert ComposedWordVectors(WORDS, same_tags=False)(a, c) == pytest.approx(1.0)


def test_words_are_similar_unless_they_have_to_be_equal():
    plain = WordVectors(WORDS)
    assert ComposedWordVectors(plain)("car::n", "bike::n") == pytest.approx(plain("car::n", "bike::n"))
    assert ComposedWordVectors(plain, words=False)("car::n", "bike::n") == 0
    assert ComposedWordVectors(plain)("car::n", "dobj<buy::v,car::n>") == 0


def test_a_word_without_a_vector_gets_that_of_the_other_one():
    vectors = ComposedWordVectors(WORDS)
    cosine = WordVectors(WORDS)("car::n", "bike::n")
    assert vectors("root<*::*,car::n>", "root<*::*,bike::n>") == pytest.approx(cosine)
    assert vectors("dobj<steal::v,time::n>", "dobj<steal::v,life::n>") == 0
    assert vectors("dobj<steal::v,time::n>", "dobj<steal::v,time::n>") == 1


def test_orthogonal_words_have_no_product():
    vectors = ComposedWordVectors({"a": [1, 0], "b": [0, 1]}, "product")
    assert vectors("r<a::x,b::y>", "s<a::x,b::y>") == 0.0


def test_it_is_copied_compared_and_refused_where_it_does_not_fit():
    vectors = ComposedWordVectors(WORDS, "product", words=False)
    kernel = SmoothedPartialTreeKernel(vectors)
    assert clone(kernel) == kernel
    assert pickle.loads(pickle.dumps(vectors)) == vectors
    assert vectors != ComposedWordVectors(WORDS, words=False)
    assert "product" in repr(kernel)
    with pytest.raises(ParameterError, match="composition must be one of"):
        ComposedWordVectors(WORDS, "dilation")
    with pytest.raises(ParameterError, match="similarity must be word vectors"):
        DistributedTreeVectorizer(kernel="smoothed", similarity=vectors).fit(["(A b)"])


@pytest.mark.parametrize(
    "label", ["", "<", "a<b,c>", "a<b::x,c>", "a<b::x,c::y", "a<b::x,c::y>d", "a<b::x,c::y,d::z>", "dog::n"]
)
def test_other_labels_are_no_compositions(label):
    assert composition_of(label) is None


@given(ANY_LABEL, ANY_LABEL)
def test_every_word_can_be_named(head, modifier):
    def named(word):
        return word.replace(",", "_comma_").replace("<", "_oang_").replace(">", "_cang_")

    found = composition_of(composition("r", f"{head}::x", f"{modifier}::y"))
    assert found == ("r", f"{named(head)}::x", f"{named(modifier)}::y")


@pytest.mark.corpus
@pytest.mark.parametrize("form", ["cgrct", "clct"])
def test_kernels_of_trees_of_kelp_are_those_of_the_definition(form):
    forest = read_trees(corpus("qc_test_dep.tsv.gz"), column=form)[:5]
    parts = [part for part in map(composition_of, forest.labels) if part is not None]
    words = sorted({part.modifier.partition("::")[0] for part in parts})
    vectors = {word: np.random.default_rng(k).random(5).tolist() for k, word in enumerate(words)}
    kernel = SmoothedPartialTreeKernel(ComposedWordVectors(vectors, words=False), threshold=0)

    def similarity(a, b):
        both = composition_of(a) is not None and composition_of(b) is not None
        return composed_similarity(a, b, vectors) if both else float(a == b)

    gram = kernel.gram(forest)
    for i, j in ((0, 1), (2, 3), (4, 4)):
        wanted = partial_tree_kernel(forest[i], forest[j], 0.4, 0.4, similarity=similarity)
        assert gram[i, j] == pytest.approx(wanted, rel=1e-9)
    equal = SmoothedPartialTreeKernel(lambda a, b: 0.0).gram(forest)
    assert (gram >= equal - 1e-12).all()
    assert (gram > equal + 1e-6).any()
