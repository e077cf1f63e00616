"""Files of arrays: what is written comes back, and what lies is refused."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from strategies import examples
from treedot._storage.growing_array import GrowingArray
from treedot._storage.safetensors import DTYPES, read_arrays, write_arrays
from treedot.errors import SourceError

SMALL = {"a": np.arange(3, dtype=np.int8), "b": np.arange(6.0).reshape(2, 3), "c": np.zeros((0, 4), np.int32)}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.safetensors"
    write_arrays(path, {"kind": "test", "λ": [0.4, None]}, SMALL)
    return path


ANY_ARRAY = st.sampled_from(list(DTYPES.values())).flatmap(
    lambda dtype: arrays_of.arrays(dtype, arrays_of.array_shapes(min_dims=0, min_side=0, max_side=4))
)


@settings(max_examples=examples(50))
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), ANY_ARRAY, max_size=4))
def test_what_is_written_comes_back_aligned_and_mapped(tmp_path_factory, wanted):
    path = tmp_path_factory.mktemp("arrays") / "x"
    if "__metadata__" in wanted:
        return
    write_arrays(path, {"n": len(wanted)}, wanted)
    description, found = read_arrays(path)
    assert description == {"n": len(wanted)}
    assert found.keys() == wanted.keys()
    for name, array in found.items():
        assert array.dtype == wanted[name].dtype
        assert array.shape == wanted[name].shape
        assert array.tobytes() == wanted[name].tobytes()
        assert array.flags.aligned
        assert not array.flags.writeable


def test_the_layout_is_that_of_safetensors(small):
    raw = small.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    assert (8 + length) % 64 == 0
    assert header["b"] == {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]}
    assert header["c"] == {"dtype": "I32", "shape": [0, 4], "data_offsets": [48, 48]}
    assert header["a"] == {"dtype": "I8", "shape": [3], "data_offsets": [48, 51]}
    assert json.loads(header["__metadata__"]["treedot"]) == {"kind": "test", "λ": [0.4, None]}
    assert np.frombuffer(raw, "<f8", 6, 8 + length).tolist() == list(range(6))


def test_an_array_that_grew_on_disk_is_written_like_any_other(tmp_path, monkeypatch):
    monkeypatch.setattr("treedot._storage.growing_array.CHUNK", 7)
    transposed = np.arange(20.0).reshape(4, 5).T
    with GrowingArray(np.int32, tmp_path / "a") as grown:
        for start in range(0, 100, 10):
            grown.append(np.arange(start, start + 10))
            assert grown.read(start, start + 3).tolist() == [start, start + 1, start + 2]
        assert not list(tmp_path.iterdir())
        with pytest.raises(SourceError, match="ends before element 101"):
            grown.read(90, 101)
        write_arrays(tmp_path / "x", {}, {"grown": grown, "transposed": transposed})
    found = read_arrays(tmp_path / "x")[1]
    assert found["grown"].tolist() == list(range(100))
    assert (found["transposed"] == transposed).all()


def test_a_file_appears_whole_or_not_at_all(small, tmp_path):
    before = small.read_bytes()
    for wrong in ({"a": np.array(["text"])}, {"a": np.zeros(2, complex)}, {"a": np.zeros(2, bool)}):
        with pytest.raises(SourceError, match="has no type"):
            write_arrays(small, {}, wrong)
    with pytest.raises(TypeError):
        write_arrays(small, {"not": "JSON", "but": {1, 2}}, {})
    assert small.read_bytes() == before
    assert list(tmp_path.iterdir()) == [small]


def test_every_truncation_is_refused(small, tmp_path):
    raw = small.read_bytes()
    cut = tmp_path / "cut"
    for size in range(len(raw)):
        cut.write_bytes(raw[:size])
        with pytest.raises(SourceError, match="cut"):
            read_arrays(cut)
    cut.write_bytes(raw + b"\0")
    with pytest.raises(SourceError, match="damaged"):
        read_arrays(cut)


def with_header(small, **changes):
    """Return the file with another header: entries changed, or taken out where None."""
    raw = small.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = {**json.loads(raw[8 : 8 + length]), **changes}
    text = json.dumps({name: entry for name, entry in header.items() if entry is not None}).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def entry(dtype="F64", shape=(2, 3), data_offsets=(0, 48)):
    return {"dtype": dtype, "shape": shape, "data_offsets": data_offsets}


@pytest.mark.parametrize(
    "changes",
    [
        {"b": None},
        {"b": 3},
        {"b": {}},
        {"b": entry(dtype="BF17")},
        {"b": entry(dtype=["F64"])},
        {"b": entry(dtype="F32")},
        {"b": entry(shape=[-2, -3])},
        {"b": entry(shape=[2.0, 3])},
        {"b": entry(shape=[True, 6])},
        {"b": entry(shape=[2**62, 2**62])},
        {"b": entry(shape=7)},
        {"b": entry(data_offsets=[0, 48, 51])},
        {"b": entry(data_offsets=[3, 51])},
        {"b": entry(data_offsets=[48, 0])},
        {"b": entry(shape=[1] * 100 + [6])},
        {"a": entry("I8", [3], [0, 3])},
        {"c": entry("I32", [0, 2**62, 4], [48, 48])},
        {"d": entry("I8", [10**18], [51, 51 + 10**18])},
        {"__metadata__": 7},
        {"__metadata__": {"treedot": 7}},
        {"__metadata__": {"treedot": "[1"}},
        {"__metadata__": {"treedot": "[1]"}},
        {"__metadata__": {"treedot": "[" * 100_000}},
    ],
)
def test_a_header_that_lies_is_refused(small, changes):
    small.write_bytes(with_header(small, **changes))
    with pytest.raises(SourceError, match=r"small\.safetensors"):
        read_arrays(small)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"PK\x03\x04" * 100,
        (2**63 - 1).to_bytes(8, "little") + b"{}",
        (10).to_bytes(8, "little") + b'{"a":1,"a"',
        (17).to_bytes(8, "little") + b'{"a":1, "a":2}   ',
        (2).to_bytes(8, "little") + b"[]",
        (8).to_bytes(8, "little") + b"[[[[[[[[",
        (100_000).to_bytes(8, "little") + b"[" * 100_000,
        (4).to_bytes(8, "little") + b'"\xff\xfe"',
        (6000).to_bytes(8, "little") + b"9" * 6000,
    ],
)
def test_a_foreign_file_is_refused(tmp_path, raw):
    path = tmp_path / "foreign"
    path.write_bytes(raw)
    with pytest.raises(SourceError, match="foreign"):
        read_arrays(path)


def test_a_missing_file_or_a_folder_is_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(SourceError, match=r"cannot (open|read)"):
            read_arrays(path)
    with pytest.raises(SourceError, match="does not exist"):
        write_arrays(tmp_path / "none" / "x", {}, {})


@pytest.mark.slow
def test_a_mutated_header_is_read_or_refused_but_nothing_else(small):
    raw = small.read_bytes()
    end = 8 + int.from_bytes(raw[:8], "little")
    random = np.random.default_rng(0)
    for _ in range(3000):
        changed = bytearray(raw)
        for place in random.integers(end, size=random.integers(1, 4)):
            changed[place] = random.choice([random.integers(256), *b'0123456789[]{},:"'])
        small.write_bytes(changed)
        try:
            _, found = read_arrays(small)
        except SourceError:
            continue
        assert sum(array.nbytes for array in found.values()) == len(raw) - end
