"""Texts as rows of hashed n-grams."""

import hashlib
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from treedot._runtime.hashing import keys
from treedot.models.inputs.hashed_terms import BITS
from treedot.models.inputs.table import Table
from treedot.models.inputs.text_input import TextInput, ngrams


def rows_of(*texts):
    return TextInput("q").transform(Table({"q": list(texts)}))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=5))
def test_rows_are_roots_of_counts_of_length_one(texts):
    rows = rows_of(*texts)
    assert rows.shape == (len(texts), 2**BITS)
    for text, row in zip(texts, rows, strict=True):
        counts = Counter(ngrams(text))
        wanted = Counter()
        for gram, count in counts.items():
            key = int(keys(0, [gram], "ngram")[0, 0])
            wanted[key >> (64 - BITS)] += (-1 if key & 1 else 1) * np.sqrt(count / counts.total())
        assert row.indices.tolist() == sorted(wanted)
        np.testing.assert_allclose(row.data, [wanted[column] for column in sorted(wanted)], rtol=1e-6)


def test_a_row_depends_on_its_text_alone_and_not_on_case_or_blanks():
    together = rows_of("Who wrote it?", "", "  who WROTE it ?")
    assert abs(together[0] - together[2]).sum() == 0
    assert together[1].nnz == 0
    assert abs(together[0] - rows_of("Who wrote it?")[0]).sum() == 0


def test_rows_are_frozen_to_the_byte():
    rows = rows_of("The bridge was built in 1932, wasn't it?", "Größe über alles – 東京 ﬁn")
    content = rows.indices.astype("<i4").tobytes() + rows.data.astype("<f4").tobytes()
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "0eb087350af9073b"
