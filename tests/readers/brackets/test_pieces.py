"""Several threads read a text of brackets as one does: the same arrays, labels, batches and errors."""

import gzip
import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treedot import iter_trees, read_trees
from treedot._runtime.threads import ONE_THREAD
from treedot.errors import ParameterError, SourceError, TreeSyntaxError
from treedot.readers.brackets import pieces
from treedot.readers.brackets.reader import read_brackets
from treedot.readers.brackets.words import padded
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream

TREES = [f"(S (NP (N w{i % 37})) (VP v{i % 7}))" for i in range(300)]


def in_small_pieces(block, piece, batch=1, most=1 << 24):
    """Let even short texts be cut: into blocks and pieces of so many bytes."""
    return mock.patch.multiple(
        pieces,
        CHUNK_BYTES=16,
        READ_BYTES=16,
        BLOCK_BYTES=block,
        PIECE_BYTES=piece,
        BATCH_BYTES=batch,
        MOST_BYTES=most,
    )


def arrays(forest):
    return (*(array.tobytes() for array in (forest.label, forest.arity, forest.offsets)), forest.labels)


def outcome(text, batch_size, skips, n_jobs=1):
    """Return the arrays of all forests in order, and every error where it came."""
    seen = []
    on_bad = OnBad((lambda error: seen.append(str(error))) if skips else None)
    try:
        for forest in read_brackets(TreeStream(io.BytesIO(text), "f", batch_size, on_bad), n_jobs):
            seen.append(arrays(forest))
    except SourceError as error:
        seen.append((type(error), str(error)))
    return seen


PIECES_OF_TEXT = st.sampled_from(
    [b"(", b")", b"a", b"b", b" ", b"\n", b"\n(", b"\\x28", "é".encode(), b"\xff", b"\xef\xbb\xbf", b"\r\n",
     b"(a b)", b"(S (A a) (B b))", b"(S (A a)\n(B b))\n"]
)  # fmt: skip


@given(
    st.lists(PIECES_OF_TEXT, max_size=30).map(b"".join),
    st.sampled_from([1, 2, 5, 2**31 - 1]),
    st.booleans(),
    st.sampled_from([1, 7, 32, 33, 1 << 18]),
    st.sampled_from([1, 5, 40]),
    st.sampled_from([1, 10, 1 << 24]),
)
@example(b"(a b)(c \xff)", 1, True, 1, 1, 1 << 24)
@example(b"(a b)\n(c\n(d e))\n)\n(f g)", 2, True, 1, 1, 1 << 24)
@example(b"\xef\xbb\xbf(a b) x", 2, False, 1, 1, 1 << 24)
def test_threads_read_any_text_as_one_does(text, batch_size, skips, block, piece, most):
    expected = outcome(text, batch_size, skips)
    with in_small_pieces(block, piece, piece, most):
        assert outcome(text, batch_size, skips, 2) == expected


@given(
    st.lists(st.sampled_from([b"(", b")", b" ", b"\n", b"label", b"(a b) "]), max_size=60).map(b"".join),
    st.integers(0, 40),
    st.integers(0, 80),
)
def test_trees_begin_where_the_fewest_brackets_are_open(text, begin, length):
    begin = min(begin, len(text))
    end = min(begin + length, len(text))
    depths = [0]
    for byte in text[begin:end]:
        depths.append(depths[-1] + (byte == ord("(")) - (byte == ord(")")))
    found = pieces.find_starts(padded(text), begin, end)
    assert found.fewest == min(depths)
    assert found.more == depths[-1]
    assert found.breaks == text[begin:end].count(b"\n")
    opened = [k for k in range(begin, end) if text[k] == ord("(")]
    assert found.starts.tolist() == [k for k in opened if depths[k - begin] == min(depths)]


@pytest.mark.parametrize("layout", ["\n", " ", "\n\n  ", ""])
@pytest.mark.parametrize("batch_size", [1, 7, 100, 1000])
def test_batches_are_those_of_one_thread(tmp_path, layout, batch_size):
    path = tmp_path / "trees.mrg"
    path.write_text(layout.join(TREES))
    expected = [arrays(forest) for forest in iter_trees(path, batch_size=batch_size)]
    with in_small_pieces(64, 500):
        found = [arrays(forest) for forest in iter_trees(path, batch_size=batch_size, n_jobs=3)]
    assert found == expected


@pytest.mark.parametrize("fault", ["(a b", ")", "word", "(a \udcff)"])
@pytest.mark.parametrize("place", [0, 150, 299])
@pytest.mark.parametrize("gap", ["\n", " "])
def test_the_first_error_is_that_of_one_thread(tmp_path, fault, place, gap):
    path = tmp_path / "trees.mrg"
    text = gap.join([*TREES[:place], "é", fault, *TREES[place:], fault])
    path.write_bytes(text.replace("é ", "").encode(errors="surrogateescape"))
    with pytest.raises(SourceError) as expected:
        read_trees(path)
    with in_small_pieces(64, 500), pytest.raises(SourceError) as found:
        read_trees(path, n_jobs=3)
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))


def test_pieces_are_read_while_the_text_is_sound_and_by_one_thread_from_the_first_fault_on():
    text = "\n".join([*TREES[:200], "(a b))", *TREES[200:]]).encode()
    with in_small_pieces(64, 500):
        cut = pieces.Pieces(io.BytesIO(text), "f", 1000, ONE_THREAD)
        found = list(cut)
    assert len(found) > 5
    assert found[-1].trees == pieces.UNKNOWN
    read = b"".join(piece.text[: -pieces.PADDING].tobytes() for piece in found)
    assert text.index(b"(a b))") + 6 <= len(read) < len(text)
    assert text.startswith(read)


def test_pieces_that_are_done_are_forgotten_and_the_others_can_be_read_again():
    text = "\n".join(TREES).encode()
    with in_small_pieces(64, 500):
        cut = pieces.Pieces(io.BytesIO(text), "f", 1000, ONE_THREAD)
        first, second, *_ = (piece for piece, _ in zip(cut, range(4), strict=False))
        cut.done()
        before, rest = cut.rest()
        read = b"".join(iter(lambda: rest.read(100), b""))
    assert read == text[first.end - first.begin :]
    assert before == (text[: first.end - first.begin].count(b"\n"), 0)
    assert second.trees > 0


def test_a_tree_beyond_all_limits_is_read_by_one_thread(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text(f"(a b) (S {' '.join(TREES)}) (c d)")
    with in_small_pieces(64, 100, most=1000):
        assert arrays(read_trees(path, n_jobs=2)) == arrays(read_trees(path))


def test_compressed_files_are_read_by_threads_too(tmp_path):
    path = tmp_path / "trees.mrg.gz"
    path.write_bytes(gzip.compress("\n".join(TREES).encode()))
    with in_small_pieces(64, 500):
        assert arrays(read_trees(path, n_jobs=2)) == arrays(read_trees(path))


@pytest.mark.parametrize("fault", ["", ")", "word"])
@pytest.mark.parametrize("place", [10, 290])
def test_a_damaged_file_is_read_up_to_the_damage(fault, place):
    class Damaged(io.BytesIO):
        def read(self, size):
            if self.tell() == len(text):
                raise OSError("damaged")
            return super().read(size)

    text = "\n".join([*TREES[:place], fault, *TREES[place:], "(a"]).encode()

    def outcome_of(n_jobs):
        seen = []
        try:
            for forest in read_brackets(TreeStream(Damaged(text), "f", 7, OnBad()), n_jobs):
                seen.append(arrays(forest))
        except SourceError as error:
            seen.append(str(error))
        return seen

    expected = outcome_of(1)
    assert ("damaged" in expected[-1]) == (place == 290 or not fault)  # an error reads on a little
    with in_small_pieces(64, 500):
        assert outcome_of(2) == expected


@pytest.mark.large
def test_labels_beyond_the_first_table_are_merged(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("\n".join(f"(S l{i} l{2 * i} l{i // 3})" for i in range(40_000)))
    with in_small_pieces(1 << 14, 1 << 16):
        found = read_trees(path, n_jobs=2)
    assert arrays(found) == arrays(read_trees(path))
    assert found.label.dtype == found.arity.dtype == np.int32


def test_a_reader_of_batches_can_stop_at_any_time(tmp_path):
    path = tmp_path / "trees.mrg"
    path.write_text("\n".join(TREES))
    with in_small_pieces(64, 100):
        batches = iter_trees(path, batch_size=10, n_jobs=2)
        assert len(next(batches)) == 10
        batches.close()


def test_other_sources_take_threads_and_need_none(tmp_path):
    table = tmp_path / "trees.tsv"
    table.write_text("tree\n" + "\n".join(TREES))
    assert read_trees(table, n_jobs=2) == read_trees(TREES, n_jobs=2) == read_trees(TREES)
    with open(table, "rb") as stream:
        assert read_trees(stream, "tsv", n_jobs=2) == read_trees(TREES)
    with pytest.raises(ParameterError, match="n_jobs must not be 0"):
        read_trees(TREES, n_jobs=0)


def test_an_empty_file_and_one_of_blanks_have_no_tree(tmp_path):
    path = tmp_path / "trees.mrg"
    for text in ("", " \n" * 100):
        path.write_text(text)
        with pytest.raises(SourceError, match="contains no tree"):
            read_trees(path, n_jobs=2)
    path.write_text("(a")
    with pytest.raises(TreeSyntaxError, match="never closed"):
        read_trees(path, n_jobs=2)
