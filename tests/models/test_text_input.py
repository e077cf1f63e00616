"""Texts as rows of hashed n-grams."""

import hashlib
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot import TreeClassifier, read_trees
from treedot._runtime.hashing import keys
from treedot.models.inputs.hashed_terms import BITS, split_words
from treedot.models.inputs.inputs import described, restored
from treedot.models.inputs.table import Table
from treedot.models.inputs.text_input import TextInput, ngrams, whole_words
from treedot.models.inputs.tree_inputs import FragmentInput
from treedot.vectors.sparse.fitted_rows import FittedRows
from treedot.vectors.spec import SparseSpec

TEXTS = ["The bridge was built in 1932, wasn't it?", "Größe über alles – 東京 ﬁn", "it was getFileName(a_b)"]
TABLES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5)


def table_of(*texts):
    return Table({"q": list(texts)})


def rows_of(*texts, version=2):
    return TextInput("q", version).transform(table_of(*texts))


def digest(rows):
    content = rows.indices.astype("<i4").tobytes() + rows.data.astype("<f4").tobytes()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def wanted_row(counts, weight):
    """Return the values of a row by column: the definition, n-gram by n-gram."""
    length = np.sqrt(sum(count * weight(gram) ** 2 for gram, count in counts.items()))
    found = Counter()
    for gram, count in counts.items():
        key = int(keys(0, [gram], "ngram")[0, 0])
        found[key >> (64 - BITS)] += (-1 if key & 1 else 1) * np.sqrt(count) * weight(gram) / length
    return found


def assert_rows_are(rows, wanted):
    for row, values in zip(rows, wanted, strict=True):
        assert row.indices.tolist() == sorted(values)
        np.testing.assert_allclose(row.data, [values[column] for column in sorted(values)], rtol=1e-6)


@pytest.mark.parametrize(("version", "words_of"), [(1, whole_words), (2, split_words)])
@given(texts=TABLES)
def test_rows_are_roots_of_counts_of_length_one(version, words_of, texts):
    rows = rows_of(*texts, version=version)
    assert rows.shape == (len(texts), 2**BITS)
    assert_rows_are(rows, [wanted_row(Counter(ngrams(words_of(text))), lambda _: 1.0) for text in texts])


@given(texts=TABLES, others=TABLES)
def test_fitted_rows_are_weighted_by_inverse_document_frequencies(texts, others):
    made, rows = TextInput("q").fitted(table_of(*texts))
    lists = [Counter(ngrams(split_words(text))) for text in texts]
    documents = Counter(gram for counts in lists for gram in counts)

    def weight(gram):
        return np.log((1 + len(texts)) / (1 + documents[gram])) + 1

    assert_rows_are(rows, [wanted_row(counts, weight) for counts in lists])
    assert_rows_are(
        made.transform(table_of(*others)),
        [wanted_row(Counter(ngrams(split_words(text))), weight) for text in others],
    )


def test_a_row_depends_on_its_text_alone_and_not_on_case_or_blanks():
    together = rows_of("Who wrote it?", "", "  who WROTE it ?")
    assert abs(together[0] - together[2]).sum() == 0
    assert together[1].nnz == 0
    assert abs(together[0] - rows_of("Who wrote it?")[0]).sum() == 0


def test_identifiers_are_split():
    rows = rows_of("getFileName", "get_file_name", "get file name")
    assert abs(rows[0] - rows[2]).sum() == abs(rows[1] - rows[2]).sum() == 0


def test_rows_are_frozen_to_the_byte():
    assert digest(rows_of(*TEXTS[:1], TEXTS[1], version=1)) == "0eb087350af9073b"
    assert digest(TextInput("q").fitted(table_of(*TEXTS))[1]) == "a69d2cc24b68dd27"


def test_an_input_of_version_1_is_restored_without_weights():
    trees = FragmentInput("t", FittedRows(SparseSpec(n_features=2**12)))
    configs, arrays = described([trees])
    found = restored([*configs, {"kind": "texts", "column": "q", "version": 1}], arrays)[1]
    assert abs(found.transform(table_of(*TEXTS)) - rows_of(*TEXTS, version=1)).sum() == 0
    assert not found.learns


def test_a_classifier_keeps_the_weights_of_its_texts(tmp_path):
    table = {"tree": ["(S a)", "(S b)"] * 4, "q": ["the cat", "the dog", "The cat", "a dog"] * 2}
    model = TreeClassifier(tree_columns=["tree"], text_columns=["q"], decay=0.4, C=1)
    model.fit({**table, "tree": read_trees(table["tree"])}, ["x", "y"] * 4)
    model.save(tmp_path / "m")
    again = TreeClassifier.load(tmp_path / "m")
    assert again.inputs_[-1].counts.n_trees == 8
    np.testing.assert_array_equal(again.decision_function(table), model.decision_function(table))
