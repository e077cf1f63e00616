import gzip
import io
import lzma
import re
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, random_forest, trees
from treedot import Forest, Tree, iter_trees, read_trees
from treedot.errors import ParameterError, SourceError, TreeSyntaxError
from treedot.readers.brackets import reader


@given(st.lists(trees(ANY_LABEL), min_size=1, max_size=5))
def test_the_fast_reader_reads_what_tree_writes(given_trees):
    one_line = "\n".join(map(str, given_trees)).encode()
    pretty = "\n\n".join(tree.pretty(width=10) for tree in given_trees).encode()
    for text in (one_line, pretty):
        assert list(read_trees(io.BytesIO(text))) == given_trees
    assert list(read_trees(list(map(str, given_trees)))) == given_trees


@given(st.text(st.sampled_from("()ab \n\\x28"), max_size=30))
def test_the_fast_reader_accepts_and_refuses_what_the_plain_one_does(text):
    try:
        expected = Tree.parse(text)
    except TreeSyntaxError:
        expected = None
    if "(" not in text:
        expected = None  # a bare word is a tree for people, not in files
    try:
        found = read_trees([text])[0]
    except SourceError:
        found = None
    assert found == expected


def plain_forest(text: str) -> Forest | None:
    """Read sound bracket text token by token; None where it is not sound."""
    tokens = re.findall(r"[()]|[^()\s]+", text, re.ASCII)
    number: dict[str, int] = {}
    label, arity, offsets = [], [], [0]
    open_nodes: list[list[int]] = []
    after_bracket = False
    for token in [*tokens, None]:
        if after_bracket:
            name = "" if token in ("(", ")", None) else token
            open_nodes.append([number.setdefault(name, len(number)), 0])
            after_bracket = False
            if name:
                continue
        if token is None:
            break
        after_bracket = token == "("
        if after_bracket:
            continue
        if not open_nodes:
            return None
        closed = open_nodes.pop() if token == ")" else [number.setdefault(token, len(number)), 0]
        label.append(closed[0])
        arity.append(closed[1])
        if open_nodes:
            open_nodes[-1][1] += 1
        else:
            offsets.append(len(label))
    return None if open_nodes else Forest(label, arity, offsets, list(number))


LENGTHS = st.sampled_from([0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 25, 31, 32, 33, 63, 64, 65, 130])
TOKENS = st.builds(
    lambda length, first, last: (first + "-" * length + last)[:length] if length else "",
    LENGTHS,
    st.sampled_from("abä\0"),
    st.sampled_from("ab\0"),
)


@given(
    st.lists(trees(TOKENS, max_leaves=12), min_size=1, max_size=5),
    st.sampled_from([" ", "\n", "", "\r\n\t "]),
    st.sampled_from([1, 5, 64, 1 << 20]),
)
def test_arrays_and_labels_are_those_of_a_plain_reader(given_trees, gap, chunk):
    text = gap.join(f"({tree})" for tree in given_trees)
    expected = plain_forest(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK_BYTES", chunk)
        found = [read_trees(io.BytesIO(text.encode()))]
    if "\n" not in gap:
        found.append(read_trees([f"({tree})" for tree in given_trees]))
    for forest in found:
        for name in ("label", "arity", "offsets"):
            assert getattr(forest, name).tolist() == getattr(expected, name).tolist()
        assert forest.labels == expected.labels


@given(st.text(st.sampled_from("()ab \n"), max_size=40), st.sampled_from([1, 3, 1 << 20]))
def test_files_are_refused_where_a_plain_reader_refuses_them(text, chunk):
    expected = plain_forest(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "CHUNK_BYTES", chunk)
        try:
            found = read_trees(io.BytesIO(text.encode()))
        except SourceError:
            found = None
    assert found == (expected if expected else None)


@pytest.mark.parametrize("text", ["()" * 3000, "(a b c d e)" * 500, "(" * 3000 + ")" * 3000])
def test_there_is_room_for_as_many_nodes_and_trees_as_a_text_can_have(text):
    assert read_trees(io.BytesIO(text.encode())) == plain_forest(text)


@pytest.mark.parametrize("chunk", [64, 4096, 1 << 20])
def test_there_is_room_for_any_number_of_labels(monkeypatch, chunk):
    text = "".join(f"(tree{i % 7} a-rather-long-label-{i} w{i % 1000})\n" for i in range(2000))
    monkeypatch.setattr(reader, "CHUNK_BYTES", chunk)
    forest = read_trees(io.BytesIO(text.encode()))
    assert forest == plain_forest(text)
    assert len(set(forest.labels)) == len(forest.labels) == 7 + 2000 + 1000


def test_batches_have_their_own_labels_and_no_others():
    parts = list(iter_trees(io.BytesIO(b"(a b)(c d)(a d)\n(e (f"), batch_size=2, on_bad=lambda error: None))
    assert [part.labels for part in parts] == [("a", "b", "c", "d"), ("a", "d")]


@pytest.mark.parametrize("chunk", [1, 4, 1 << 20])
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_errors_name_the_same_places_whatever_the_chunks_and_batches(monkeypatch, chunk, batch):
    text = "(ä b) (c d)\n(e f) (g h) stray-text (i j))\n (k l) (m".encode()
    monkeypatch.setattr(reader, "CHUNK_BYTES", chunk)
    errors: list[SourceError] = []
    assert sum(map(len, iter_trees(io.BytesIO(text), batch_size=batch, on_bad=errors.append))) == 6
    assert [str(error) for error in errors] == [
        "<stream>:2:13 (tree 5): text outside a tree: 'stray-text'; a tree starts with '('",
        "<stream>:2:29 (tree 6): a closing bracket without an opening one",
        "<stream>:3:8 (tree 7): this tree is never closed: 1 closing bracket(s) missing",
    ]


@pytest.mark.parametrize("chunk", [2, 1 << 20])
def test_a_table_is_recognised_behind_blanks(monkeypatch, chunk):
    monkeypatch.setattr(reader, "CHUNK_BYTES", chunk)
    with pytest.raises(TreeSyntaxError, match=r":3:1 .*if this is a table, use format='tsv'"):
        read_trees(io.BytesIO(b"\n  \nid\ttree\n1\t(a b)\n"))


def test_the_place_in_a_text_is_counted_from_its_beginning():
    with pytest.raises(TreeSyntaxError, match="tree 1, character 13: this tree is never closed"):
        read_trees(["(a) (b) (c) (d"])


@pytest.mark.parametrize("chunk", [1, 7, 64])
@pytest.mark.parametrize("batch", [1, 3, 100])
def test_chunks_and_batches_do_not_matter(monkeypatch, chunk, batch):
    forest = random_forest(2, 10)
    text = "\n".join(tree.pretty(width=20) for tree in forest).encode()
    monkeypatch.setattr(reader, "CHUNK_BYTES", chunk)
    parts = list(iter_trees(io.BytesIO(text), batch_size=batch))
    assert Forest.concat(parts) == forest
    assert max(map(len, parts)) <= batch


@pytest.mark.parametrize(
    ("text", "place", "complaint"),
    [
        (b"(a b)\n(c d\n", ":2:1 (tree 2)", "never closed: 1 closing"),
        (b"(a b)\n (c d))\n", ":2:7 (tree 3)", "without an opening"),
        ("(a b)\u00a0\n".encode(), ":1:6 (tree 2)", "text outside a tree: '\\xa0'"),
        (b"(a b)\x1c", ":1:6 (tree 2)", "text outside a tree"),
        (b"(a b)\nstray (c d)", ":2:1 (tree 2)", "text outside a tree: 'stray'"),
        ("(ä b) ö".encode(), ":1:7 (tree 2)", "text outside"),
        (b"(a b)\n(c \xff\xfe)", ":2:4 (tree 2)", "not UTF-8"),
        (b"", "", "no tree"),
        (b" \n\n", "", "no tree"),
    ],
)
def test_bad_files_are_refused_with_line_and_column(tmp_path, text, place, complaint):
    path = tmp_path / "bad.mrg"
    path.write_bytes(text)
    with pytest.raises(SourceError) as caught:
        read_trees(path)
    assert f"bad.mrg{place}" in str(caught.value)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("chunk", [1, 5, 1 << 20])
def test_bad_trees_can_be_left_out_and_are_reported(tmp_path, monkeypatch, chunk):
    path = tmp_path / "mixed.mrg"
    path.write_bytes(
        b"(S a)\n(S (b c)\n(S b)\nstray\n(S c)\n(S \xff) (S inline)\n))\n(S\n  d)\n(S e)\n(S (f)\n"
    )
    monkeypatch.setattr(reader, "CHUNK_BYTES", chunk)
    errors: list[SourceError] = []
    forest = read_trees(path, on_bad=errors.append)
    assert list(map(str, forest)) == ["(S a)", "(S b)", "(S c)", "(S inline)", "(S d)", "(S e)"]
    assert [str(error).split(": ")[0].rsplit("mixed.mrg", 1)[1] for error in errors] == [
        ":2:1 (tree 2)", ":4:1 (tree 4)", ":6:4 (tree 5)", ":7:1 (tree 7)", ":11:1 (tree 9)",
    ]  # fmt: skip


def test_a_bracket_that_begins_a_line_inside_a_tree_is_no_error():
    text = b"(A (B b)\n(C d))\n"
    assert list(map(str, read_trees(io.BytesIO(text), on_bad=pytest.fail))) == ["(A (B b) (C d))"]


@given(st.lists(trees(), min_size=1, max_size=5), st.data(), st.integers(1, 6))
def test_a_valid_file_reads_alike_where_errors_are_survived(given_trees, data, batch):
    words = "\n".join(map(str, given_trees)).replace("(", " (").split(" ")
    breaks = data.draw(
        st.lists(st.sampled_from([" ", "\n", "\n\n"]), min_size=len(words), max_size=len(words))
    )
    text = "".join(word + gap for word, gap in zip(words, breaks, strict=True)).encode()
    strict = read_trees(io.BytesIO(text))
    assert Forest.concat(iter_trees(io.BytesIO(text), batch_size=batch, on_bad=pytest.fail)) == strict


@given(st.lists(trees(), min_size=2, max_size=6), st.data(), st.integers(1, 7))
def test_one_broken_tree_costs_itself_alone(given_trees, data, batch):
    lines = [f"({tree.label})" if tree.is_leaf else str(tree) for tree in given_trees]
    broken = data.draw(st.integers(0, len(lines) - 1))
    open_lines = [line[:-1] if i == broken else line for i, line in enumerate(lines)]
    closed_lines = [line + ")" if i == broken else line for i, line in enumerate(lines)]
    for bad_lines, lost in ((open_lines, 1), (closed_lines, 0)):
        errors: list[SourceError] = []
        text = io.BytesIO("\n".join(bad_lines).encode())
        found = [tree for part in iter_trees(text, batch_size=batch, on_bad=errors.append) for tree in part]
        assert found == given_trees[:broken] + given_trees[broken + lost :]
        assert [f":{broken + 1}:" in str(error) for error in errors] == [True]


@pytest.mark.slow
@pytest.mark.parametrize("line", [b"(a\n", b"a\n(b c)\n", b"(a b))\n", b"(a \xff)\n"])
def test_the_bytes_looked_at_grow_with_the_size_of_a_file_of_errors(monkeypatch, line):
    looked_at = 0

    def count(frame, event, called):
        nonlocal looked_at
        array = getattr(called, "__self__", None)
        if event == "c_call" and called.__name__ == "tobytes" and isinstance(array, np.ndarray):
            looked_at += array.nbytes

    def scan(*arguments, scan=reader.scanner.scan):
        nonlocal looked_at
        found = scan(*arguments)
        at_end = found.stop == reader.scanner.OPEN
        looked_at += arguments[0].size if at_end else max(found.position, found.used)
        return found

    monkeypatch.setattr(reader.scanner, "scan", scan)
    sizes = []
    for lines in (1000, 4000):
        looked_at = 0
        errors: list[SourceError] = []
        sys.setprofile(count)
        try:
            read_trees(io.BytesIO(line * lines + b"(x y)"), on_bad=errors.append)
        finally:
            sys.setprofile(None)
        assert len(errors) == lines
        sizes.append(looked_at)
    assert sizes[1] < 6 * sizes[0]


class Repeated(io.RawIOBase):
    """A file of a beginning, so many bytes of one kind, and an end."""

    def __init__(self, begin: bytes, byte: bytes, count: int, end: bytes) -> None:
        self.begin, self.byte, self.count, self.end = begin, byte, count, end

    def read(self, size=-1):
        if self.begin:
            head, self.begin = self.begin, b""
            return head
        length = min(size, self.count)
        self.count -= length
        if length == 0:
            tail, self.end = self.end, b""
            return tail
        return self.byte * length


@pytest.mark.large
@pytest.mark.parametrize("on_bad", [None, pytest.fail])
def test_blanks_between_trees_take_no_memory(on_bad):
    read_trees(io.BytesIO(b"(a b)"))  # compiled and loaded
    tracemalloc.start()
    try:
        forest = read_trees(Repeated(b"(a b)", b" ", 64 << 20, b"\n(c d)"), on_bad=on_bad)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert list(map(str, forest)) == ["(a b)", "(c d)"]
    assert peak < 12 << 20


@pytest.mark.slow
@pytest.mark.large
@pytest.mark.parametrize("begin", [b"(a b)\n(", b"(a b)\n(c", b"(a b)\n(c d "])
@pytest.mark.parametrize("byte", [b" ", b"0", b"\0"])
def test_absurd_labels_and_blanks_are_refused_before_they_fill_the_memory(begin, byte):
    def text():
        return Repeated(begin, byte, 256 << 20, b")\n(e f)")

    tracemalloc.start()
    try:
        with pytest.raises(TreeSyntaxError, match="more than 16 MiB without a bracket or line break"):
            read_trees(text())
        errors: list[SourceError] = []
        forest = read_trees(text(), on_bad=errors.append)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 128 << 20
    assert list(map(str, forest)) == ["(a b)", "(e f)"]
    assert len(errors) == 1


def test_after_stray_text_no_tree_is_lost(tmp_path):
    (tmp_path / "t.mrg").write_text("(A a))\n (B b)\n (C c)\nstray words (D d)\n")
    errors: list[SourceError] = []
    forest = read_trees(tmp_path / "t.mrg", on_bad=errors.append)
    assert list(map(str, forest)) == ["(A a)", "(B b)", "(C c)", "(D d)"]
    assert len(errors) == 2


def test_texts_that_only_together_make_trees_are_refused():
    with pytest.raises(TreeSyntaxError, match="tree 1"):
        read_trees(["(a", "b) (c d)"])


def test_a_byte_order_mark_is_no_text():
    assert len(read_trees(io.BytesIO(b"\xef\xbb\xbf(a b)\r\n(c d)\r\n"))) == 2


def test_open_text_files_keep_their_place_and_encoding(tmp_path):
    path = tmp_path / "t.mrg"
    path.write_text("(a ä)\n" * 2000, encoding="latin-1")
    with path.open(encoding="latin-1") as file:
        file.readline()
        forest = read_trees(file)
    assert len(forest) == 1999
    assert set(forest.labels) == {"ä", "a"}


def test_compressed_files_open_files_and_stdin(tmp_path, monkeypatch):
    forest = random_forest(3, 5)
    text = "\n".join(map(str, forest))
    (tmp_path / "t.mrg").write_text(text)
    (tmp_path / "t.mrg.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "t.mrg.xz").write_bytes(lzma.compress(text.encode()))
    for name in ("t.mrg", "t.mrg.gz", "t.mrg.xz"):
        assert read_trees(tmp_path / name) == forest
        assert read_trees(str(tmp_path / name)) == forest
    with (tmp_path / "t.mrg").open() as file:
        assert read_trees(file) == forest
    assert read_trees(io.StringIO(text)) == forest
    assert read_trees([tmp_path / "t.mrg", tmp_path / "t.mrg.gz"]) == forest + forest
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert read_trees("-") == forest


def test_zstd_files(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    forest = random_forest(3, 5)
    text = "\n".join(map(str, forest)).encode()
    (tmp_path / "t.mrg.zst").write_bytes(zstandard.compress(text[:100]) + zstandard.compress(text[100:]))
    assert read_trees(tmp_path / "t.mrg.zst") == forest
    compressor = zstandard.ZstdCompressor().compressobj()
    flushed = compressor.compress(text) + compressor.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    for broken in (zstandard.compress(text)[:-20], flushed):  # both end inside a frame
        (tmp_path / "broken.mrg.zst").write_bytes(broken)
        with pytest.raises(SourceError, match=r"broken\.mrg\.zst"):
            read_trees(tmp_path / "broken.mrg.zst")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_damaged_compression_is_refused(tmp_path, suffix):
    compress = {".gz": gzip.compress, ".xz": lzma.compress}[suffix]
    path = tmp_path / f"t.mrg{suffix}"
    path.write_bytes(compress(b"(a b)\n" * 1000)[:-12])
    with pytest.raises(SourceError, match="cannot read"):
        read_trees(path)
    path.write_bytes(b"not compressed at all")
    with pytest.raises(SourceError, match="cannot read"):
        read_trees(path)


def test_wrong_sources_are_refused(tmp_path):
    with pytest.raises(SourceError, match="cannot open"):
        read_trees(tmp_path / "missing.mrg")
    with pytest.raises(SourceError, match=r"cannot (open|read)"):
        read_trees(tmp_path)  # a folder without source code
    with pytest.raises(ParameterError, match="pass a list"):
        read_trees("(S a)")
    with pytest.raises(ParameterError, match="pass a path"):
        read_trees(7)
    with pytest.raises(ParameterError, match="pass a path"):
        read_trees(Tree("a"))
    (tmp_path / "one.mrg").write_text("(a b)")
    with pytest.raises(ParameterError, match="only trees or only paths: item 2 is str"):
        read_trees([tmp_path / "one.mrg", "(a b)"])
    with pytest.raises(ParameterError, match="unknown format"):
        read_trees(["(a b)"], "yaml")
    with pytest.raises(ParameterError, match="batch_size"):
        next(iter_trees(["(a b)"], batch_size=0))


def test_reading_says_how_far_it_is(tmp_path):
    path = tmp_path / "t.mrg"
    path.write_text("(a b)\n" * 100)
    seen: list[int] = []
    assert sum(map(len, iter_trees(path, batch_size=10, on_read=seen.append))) == 100
    assert seen[-1] == path.stat().st_size


@pytest.mark.large
def test_large_shapes_are_read_and_packed():
    deep = "(n " * 100_000 + "x" + ")" * 100_000
    wide = "(n" + " x" * 1_000_000 + ")"
    families = "(n" + " (m x)" * 100_000 + ")"
    forest = read_trees([deep, wide, families])
    assert forest.sizes.tolist() == [100_001, 1_000_001, 200_001]
    assert forest.depth.max() == 100_001
    many = read_trees(io.BytesIO(b"(a (b c))\n" * 100_000))
    assert len(many) == 100_000
    assert many.subtree.max() == 2


def test_texts_that_are_no_trees_take_little_memory_each():
    cells, errors = ["(A (B b)"] * 300, []
    list(iter_trees(cells[:1], on_bad=errors.append))  # compiles
    tracemalloc.start()
    try:
        list(iter_trees(cells, on_bad=errors.append))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(errors) == 301
    assert held < 300 * 20_000  # errors know the frames that they come from, with all that these hold
