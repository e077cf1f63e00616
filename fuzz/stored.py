"""Damaged files of treedot: they are read or rejected, and what is read can be used."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzz.readers import check_forest, seed_trees
from fuzz.target import FileTarget, Target, WrongResultError, require
from treedot import (
    DistributedTreeVectorizer,
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    TreedotError,
    TreeIndex,
    dot_products,
    load_vectors,
    save_vectors,
)
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.batch.encoding import Encoding
from treedot.batch.part_file import PartFile
from treedot.cli import parser, search
from treedot.cli.facts import file_facts, printed
from treedot.cli.gram import describe_kernel
from treedot.clones.baseline import read_baseline
from treedot.models import TreeMetric
from treedot.search.reading import Reading
from treedot.vectors.sparse.fitted_rows import fingerprint_of
from treedot.vectors.writers import vector_columns, write_matrix

MARK = b"\n===\n"  # between the parts of a plain content


@cache
def _forest() -> Forest:
    trees = [tree for trees in seed_trees() for tree in trees]
    return Forest.from_trees(trees, {"number": list(range(len(trees))), "text": ["é"] * len(trees)})


def _vectorizers() -> list[FragmentVectorizer]:
    made = [
        FragmentVectorizer(),
        FragmentVectorizer(n_features=64, budget=2, dtype="float64", idf=True),
        FragmentVectorizer(n_features=None, budget=1),
        FragmentVectorizer(n_features=None, budget=1, idf=True),
        FragmentVectorizer(n_features=128, rest="dense", rest_size=256),
    ]
    return [vectorizer.fit(_forest()) for vectorizer in made]


def _written(suffix: str, *writers: Callable[[Path], object]) -> list[bytes]:
    """Return the files that the given functions write."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{k}{suffix}") for k in range(len(writers))]
        for path, write in zip(paths, writers, strict=True):
            write(path)
        return [path.read_bytes() for path in paths]


def _npy() -> list[bytes]:
    def save(path: Path, **settings: Any) -> None:
        vectorizer = DistributedTreeVectorizer(n_components=256, **settings)
        save_vectors(path, vectorizer.transform(_forest()), vectorizer)

    def gram(path: Path) -> None:
        kernel = SubsetTreeKernel(0.1, normalize=True)
        with path.open("wb") as file:
            write_matrix(file, kernel.gram(_forest()), describe_kernel(kernel))

    return _written(".npy", save, lambda path: save(path, dtype="float64", normalize=False), gram)


def _vector_parquet() -> list[bytes]:
    vectorizer = DistributedTreeVectorizer(n_components=256)
    vectors = vectorizer.transform(_forest())
    return _written(
        ".parquet",
        lambda path: save_vectors(path, vectors, vectorizer),
        lambda path: save_vectors(path, vectors, vectorizer, columns=_forest().columns),
    )


def _parts() -> list[bytes]:
    def write(path: Path, vectorizer: Any) -> None:
        work = Encoding.of(vectorizer)
        with PartFile(path, work.metadata) as part:
            for some in (_forest()[:3], _forest()[3:]):
                part.write(vector_columns(work.transform(some)), some.columns)

    vectorizers = [*_vectorizers(), DistributedTreeVectorizer(n_components=256)]
    return _written(".arrow", *(partial(write, vectorizer=vectorizer) for vectorizer in vectorizers))


def _npz_members() -> list[bytes]:
    """Return archives as the names and contents of their members, concatenated."""
    found = []
    for vectorizer in _vectorizers():
        rows = vectorizer.transform(_forest())
        (data,) = _written(".npz", partial(save_vectors, matrix=rows, spec=vectorizer))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [name.encode() + b":" + archive.read(name) for name in archive.namelist()]
        found.append(MARK.join(members))
    return found


def _zipped(plain: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for member in plain.split(MARK):
            name, _, content = member.partition(b":")
            info = zipfile.ZipInfo(name.decode("latin-1").replace("\0", "") or "x")
            if info.filename not in archive.namelist():
                archive.writestr(info, content)
    return file.getvalue()


def _split_header(data: bytes) -> bytes:
    end = 8 + int.from_bytes(data[:8], "little")
    return data[8:end] + MARK + data[end:]


def _with_length(plain: bytes) -> bytes:
    header, _, data = plain.partition(MARK)
    return len(header).to_bytes(8, "little") + header + data


def _with_fingerprint(plain: bytes) -> bytes:
    """Return a file of a vectorizer or an index with a matching fingerprint, if it can have one."""
    data = _with_length(plain)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case")
        path.write_bytes(data)
        try:
            description, arrays = read_arrays(path)
            settings: Any = description.get("settings") or description.get("vectorizer")
            learned = {name.removeprefix("vectorizer."): array for name, array in arrays.items()
                       if "settings" in description or name.startswith("vectorizer.")}  # fmt: skip
            own = fingerprint_of(settings, learned)
            return data.replace(description["fingerprint"].encode(), own.encode())
        except Exception:  # nothing that could have a fingerprint
            return data


def _named_arrays() -> list[bytes]:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(0, np.int8), "c": np.array(7, np.int32)}
    made = _written(".safetensors", lambda path: write_arrays(path, {"unit": "metre"}, arrays))
    return [_split_header(data) for data in made]


def _vectorizer_files() -> list[bytes]:
    return [_split_header(data) for data in _written(".vectorizer", *(v.save for v in _vectorizers()))]


def _indexes() -> list[bytes]:
    metric = TreeMetric(n_columns=32, shrinkage=1.0).fit(_forest(), [k % 3 for k in range(len(_forest()))])
    builders = [partial(TreeIndex.build, _forest(), vectorizer=v) for v in _vectorizers()]
    made = _written(".index", *builders, partial(TreeIndex.build, _forest(), metric=metric.metric_))
    return [_split_header(data) for data in made]


def _unit_indexes() -> list[bytes]:
    """Return indexes of trees with the columns of source code."""
    count = 12
    columns: dict[str, list[Any]] = {
        "file": [f"{'a/' * (k % 3)}b.py" for k in range(count)],
        "start": list(range(1, count + 1)),
        "end": list(range(9, count + 9)),
        "name": ["C.f", "", "\u00e4"] * (count // 3),
        "language": ["python"] * count,
        "digest": ["0123"] * count,
    }
    forest = Forest.from_trees(list(_forest()[:count]), columns)
    build = partial(TreeIndex.build, forest, reading=Reading(language="python")._asdict())
    made = _written(".index", build, partial(build, vectorizer=_vectorizers()[2]))
    return [_split_header(data) for data in made]


def check_facts(path: Path) -> None:
    """Describe a file, as ``treedot info`` does; a file rejected here may still be read."""
    try:
        facts = file_facts(path)
    except TreedotError:
        return
    if facts is not None:
        json.dumps(facts)
        printed(facts)


def _check_vectors(path: Path) -> None:
    check_facts(path)
    vectors = load_vectors(path)
    with np.errstate(all="ignore"):  # values may be damaged: no digest protects them
        products = dot_products(vectors)
    require(products.shape == (len(vectors),) * 2, "the numbers of products and of pairs of vectors differ")


def _check_arrays(path: Path) -> None:
    check_facts(path)
    _, arrays = read_arrays(path)
    total = sum(array.nbytes for array in arrays.values())
    require(total <= path.stat().st_size, "the arrays are larger than the file")


def _check_vectorizer(path: Path) -> None:
    check_facts(path)
    rows = FragmentVectorizer.load(path).transform(_forest())
    require(np.isfinite(rows.data).all(), "a row is not finite")


def _check_index(path: Path) -> None:
    check_facts(path)
    index = TreeIndex.open(path)
    rows, values = index.search(_forest()[:5], k=3)
    require(np.isfinite(values).all(), "a product is not finite")
    require(((rows >= 0) & (rows < len(index))).all(), "a found row does not exist")
    check_forest(index.forest(np.arange(len(index))))


def _check_unit_index(path: Path) -> None:
    """Search an index as the command does, and change it."""
    with contextlib.redirect_stdout(io.StringIO()):
        search.run(
            parser().parse_args(["search", str(path), "def f(x): return x + 1", "-k", "3", "--jobs", "1"])
        )
    index = TreeIndex.open(path)
    count = len(index)
    index.update(_forest()[:2], files=["b.py"])
    index.remove([0])
    require(len(index) <= count + 1, "removed trees still exist")
    check_forest(index.forest(np.arange(len(index))))


def _check_forest_file(path: Path) -> None:
    check_forest(Forest.load(path))


@dataclass(frozen=True)
class OddFileTarget:
    """Special files under the names of stored files: they must be rejected at once."""

    checks: Mapping[str, Callable[[Path], None]]  # by suffix
    needs: tuple[str, ...] = ("pyarrow",)

    def make(self, random: Random) -> bytes:
        """Choose a suffix and a kind of special file."""
        return json.dumps([random.choice(list(self.checks)), random.choice(list(ODD))]).encode()

    def run(self, data: bytes, folder: Path) -> None:
        """Create it and read it: this must neither succeed nor wait."""
        suffix, kind = json.loads(data)
        path = folder / f"odd{suffix}"
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        path.unlink(missing_ok=True)
        ODD[kind](path)
        self.checks[suffix](path)
        raise WrongResultError(f"{kind} was read as a stored file")


def _linked_pipe(path: Path) -> None:
    pipe = path.with_suffix(".pipe")
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    path.symlink_to(pipe.name)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a link to a pipe": _linked_pipe,
    "a link to an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a link to an empty device": lambda path: path.symlink_to(os.devnull),
    "a link to itself": lambda path: path.symlink_to(path),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "a folder": Path.mkdir,
}


def stored(
    suffix: str,
    seeds: Callable[[], list[bytes]],
    check: Callable[[Path], None],
    pack: Callable[[bytes], bytes] = bytes,
) -> Target:
    """Return the target for a kind of files."""
    needs = ("pyarrow",) if suffix in (".parquet", ".arrow") else ()
    return FileTarget(suffix, cache(seeds), check, pack, needs=needs)


STORED = {
    "vectors.npy": stored(".npy", _npy, _check_vectors),
    "vectors.npz": stored(".npz", _npz_members, _check_vectors, _zipped),
    "vectors.parquet": stored(".parquet", _vector_parquet, _check_vectors),
    "vectors.arrow": stored(".arrow", _parts, _check_vectors),
    "forest.parquet": stored(".parquet", lambda: _written(".parquet", _forest().save), _check_forest_file),
    "forest.arrow": stored(".arrow", lambda: _written(".arrow", _forest().save), _check_forest_file),
    "arrays": stored(".safetensors", _named_arrays, _check_arrays, _with_length),
    "vectorizer": stored(".vectorizer", _vectorizer_files, _check_vectorizer, _with_fingerprint),
    "index": stored(".index", _indexes, _check_index, _with_fingerprint),
    "index.units": stored(".index", _unit_indexes, _check_unit_index, _with_fingerprint),
    "odd files": OddFileTarget(
        {
            ".npy": _check_vectors,
            ".npz": _check_vectors,
            ".parquet": _check_vectors,
            ".arrow": _check_vectors,
            ".feather": _check_forest_file,
            ".vectorizer": _check_vectorizer,
            ".index": _check_index,
            ".json": lambda path: require(read_baseline(path) is None, "it is not a baseline"),
        }
    ),
}
