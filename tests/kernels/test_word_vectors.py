import copy
import gzip
import pickle

import numpy as np
import pytest

from treedot.errors import ParameterError, SourceError
from treedot.kernels import SmoothedPartialTreeKernel, WordVectors

VECTORS = {"dog": [3.0, 4.0], "cat": [4.0, 3.0], "run::v": [0.0, 1.0]}


def test_labels_of_the_same_part_of_speech_are_as_similar_as_their_vectors():
    vectors = WordVectors(VECTORS)
    assert vectors("dog::n", "cat::n") == pytest.approx(0.96)
    assert vectors("dog::n", "dog::n") == 1
    assert vectors("dog::v", "run::v") == pytest.approx(0.8)
    assert vectors("dog::n", "dog::v") == vectors("dog", "cat") == vectors("dog::n", "bird::n") == 0
    assert vectors("bird::n", "bird::n") == 1
    assert "dog::n" in vectors
    assert "run::v" in vectors
    assert "run::n" not in vectors
    assert "dog" not in vectors
    assert len(vectors) == 3


def test_labels_may_name_their_type_as_in_kelp():
    vectors = WordVectors(VECTORS)
    assert vectors("LEX##dog::n", "LEX##cat::n") == pytest.approx(0.96)
    assert "COMP##root<*::*,dog::n>" not in vectors


def test_a_vector_of_a_label_comes_before_that_of_its_word():
    vectors = WordVectors({"dog": [1, 0], "dog::n": [0, 1], "cat": [0, 2]})
    assert vectors("dog::n", "cat::n") == 1
    assert vectors("dog::v", "cat::v") == 0


def test_opposite_words_have_their_cosine_and_vectors_of_length_0_are_not_similar():
    vectors = WordVectors({"up": [1, 0], "down": [-1, 0], "of": [0, 0]})
    assert vectors("up::x", "down::x") == -1
    assert vectors("up::x", "of::x") == 0
    assert SmoothedPartialTreeKernel(vectors, threshold=0)("(up::x)", "(down::x)") == 0


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_lengths_of_vectors_do_not_matter(scale):
    vectors = WordVectors({"dog": [3 * scale, 4 * scale], "cat": [4, 3]})
    assert vectors("dog::n", "cat::n") == pytest.approx(0.96)


def test_similarities_do_not_depend_on_other_labels():
    rng = np.random.default_rng(0)
    vectors = WordVectors({f"w{k}": row for k, row in enumerate(rng.normal(size=(60, 50)))})
    labels = [f"w{k}::n" for k in range(60)]
    whole = vectors.cosines(labels)
    assert (whole == whole.T).all()
    for some in (labels[:1], labels[7:20], labels[::-3]):
        at = [labels.index(label) for label in some]
        assert vectors.cosines(some).tobytes() == np.ascontiguousarray(whole[np.ix_(at, at)]).tobytes()


FILES = {
    "word2vec": "3 2\ndog 3 4\ncat 4 3 \nrun::v 0 1\n",
    "glove": "dog 3 4\ncat 4 3\nrun::v 0 1\n",
    "tabs": "dog\t3\t4\ncat\t4\t3\nrun::v\t0\t1\n",
    "kelp": "dog\tn\t0\t3,4\ncat\tn\t0\t4,3\nrun::v\tv\t0\t0,1",
}


def test_words_in_files_may_hold_blanks_and_lines_may_be_empty(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("dog 3 4\n. . . 4 3\n\nat a@b.c 0 1\n", encoding="utf-8")
    assert WordVectors.read(path) == WordVectors({"dog": [3, 4], ". . .": [4, 3], "at a@b.c": [0, 1]})


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_files_of_vectors_are_read(text, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text, encoding="utf-8")
    assert WordVectors.read(path) == WordVectors(VECTORS)
    packed = tmp_path / "vectors.txt.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert WordVectors.read(str(packed)) == WordVectors(VECTORS)
    kernel = SmoothedPartialTreeKernel(path)
    assert kernel == SmoothedPartialTreeKernel(VECTORS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it contains no word vectors"),
        ("3 2\n", "it contains no word vectors"),
        ("dog 1 2\ncat one 2\n", "line 2: expected a word and its numbers"),
        ("dog 1 2\ncat 1 2 3\n", "line 2: 3 numbers, expected 2"),
        ("dog 1 2\ncat 1\n", "line 2: 1 numbers, expected 2"),
        ("dog\n", "line 1: 0 numbers, expected some"),
        ("dog 1 nan\n", "must be finite numbers"),
    ],
)
def test_damaged_files_are_refused_with_the_line(text, message, tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as caught:
        WordVectors.read(path)
    assert "vectors.txt" in str(caught.value)


def test_files_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot open"):
        SmoothedPartialTreeKernel(tmp_path / "nothing.txt")


@pytest.mark.parametrize(
    "vectors", [[], {1: [1.0]}, {"a": "b"}, {"a": [1], "b": [1, 2]}, {"a": []}, {"a": 1}]
)
def test_what_is_not_a_mapping_of_words_to_vectors_is_refused(vectors):
    with pytest.raises(ParameterError, match="vectors"):
        WordVectors(vectors)


def test_word_vectors_are_values():
    vectors = WordVectors(VECTORS)
    assert vectors == WordVectors(VECTORS)
    assert vectors != WordVectors({"dog": [1, 1]})
    assert vectors != VECTORS
    assert copy.deepcopy(vectors) is vectors
    assert pickle.loads(pickle.dumps(vectors)) == vectors
    assert repr(vectors) == "WordVectors(3 words, 2 dimensions)"


def test_the_vectors_of_labels_have_length_1_and_are_zeros_where_there_are_none():
    vectors = WordVectors({**VECTORS, "of": [0, 0]})
    labels = ["dog::n", "run::v", "run::n", "dog", "of::x"]
    assert vectors.units(labels) == pytest.approx(np.array([[0.6, 0.8], [0, 1], [0, 0], [0, 0], [0, 0]]))
    assert vectors.units([]).shape == (0, vectors.n_dimensions)


def test_fingerprints_name_words_and_directions():
    vectors = WordVectors(VECTORS)
    turned = dict(reversed(VECTORS.items()))
    assert WordVectors(turned).fingerprint == vectors.fingerprint == "a1e57f0891413b80"
    assert WordVectors({**VECTORS, "dog": [1.5, 2.0]}).fingerprint == vectors.fingerprint
    assert WordVectors({"up": [-0.0, 1]}).fingerprint == WordVectors({"up": [0.0, 1]}).fingerprint
    for other in ({**VECTORS, "dog": [3, 5]}, {**VECTORS, "bird": [1, 1]}, {"dog": [3, 4]}):
        assert WordVectors(other).fingerprint != vectors.fingerprint


def test_arrays_hold_everything_to_the_bit():
    rng = np.random.default_rng(0)
    vectors = WordVectors({f"w\ud800 {k}\n": row for k, row in enumerate(rng.normal(size=(60, 50)))})
    again = WordVectors.from_arrays(vectors.arrays())
    assert again == vectors
    assert again.fingerprint == vectors.fingerprint


@pytest.mark.parametrize(
    "change",
    [
        {"words": np.frombuffer(b'["a"]', np.uint8)},
        {"words": np.frombuffer(b'["a", "a", "b"]', np.uint8)},
        {"words": np.frombuffer(b"[1, 2, 3]", np.uint8)},
        {"words": np.frombuffer(b"dog", np.uint8)},
        {"words": np.frombuffer(b"[" * 100_000, np.uint8)},
        {"units": np.ones(3)},
        {"units": np.full((3, 2), np.nan)},
    ],
)
def test_damaged_arrays_are_refused(change):
    with pytest.raises(SourceError, match="not word vectors"):
        WordVectors.from_arrays({**WordVectors(VECTORS).arrays(), **change})
