"""Compare our own code with libraries that could replace it, if they are installed.

Install ``pathspec safetensors conllu newick biopython rocket-fft edist zss svgling``; then
``python -m benchmarks.libraries`` runs both sides alternately and prints the best of five. CONTRIBUTING lists
the decisions.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from treedot import Tree, read_trees
from treedot._runtime.jit import njit
from treedot._runtime.timing import timed
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.readers import folders
from treedot.search.tree_edit_distance import edit_distance
from treedot.trees.drawing import tree_html
from treedot.vectors.dense import fourier

ROUNDS = 5
SEED = 0
JUDGED = 1000  # trees of ignore files to compare with git
PACKAGES = 100  # of 1,000 files each
LETTERS = 80  # of a name
PATTERNS = (
    "*.log", "!kept.log", "/build/", "a/", "b", "/a", "a/*", "!a/b", "**/b", "a/**", "*.b", "a?", "!b/", "/*",
    "!/a", "a b", "ab/*.b",
)  # fmt: skip
COMMON = ("*.pyc", "__pycache__/", "*.log", "/build/", "dist/", "*.so", "*~", "!kept.log", "**/gen/*.py")
SIZE = 4096  # of a row that is transformed


def alternately(*works: Callable[[], object]) -> list[float]:
    """Return the best time of each function; they run alternately."""
    taken: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for times, work in zip(taken, works, strict=True):
            times.append(timed(work)[1])
    return [min(times) for times in taken]


def ignore_files() -> Iterator[str]:
    """Compare ``IgnoreRules`` with pathspec: agreement with git, and speed."""
    ours, theirs = folders.IgnoreRules, _rules_by_pathspec()

    def walked(rules: Any, top: Path) -> list[str]:
        folders.IgnoreRules = rules  # type: ignore[misc]
        try:
            return [os.path.relpath(file.path, top) for file in folders.walk([top], lambda name: True)]
        finally:
            folders.IgnoreRules = ours  # type: ignore[misc]

    draw = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        for name in ("a/a", "a/b/a", "b/a", "b/ab/b", "ab/a.b", "a b"):
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).touch()
        subprocess.run(["git", "init", "-q", top], check=True)
        wrong = {"ours": 0, "pathspec": 0}
        for _ in range(JUDGED):
            for place, most in ((top, 4), (top / "b", 2)):
                lines = [draw.choice(PATTERNS) for _ in range(draw.randint(0, most))]
                (place / ".gitignore").write_text("\n".join(lines))
            command = ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
            listed = subprocess.run(command, cwd=top, capture_output=True, check=True).stdout.decode()
            expected = {name for name in listed.split("\0") if name and not name.endswith(".gitignore")}
            for name, rules in (("ours", ours), ("pathspec", theirs)):
                wrong[name] += set(walked(rules, top)) != expected
        yield f"differ from git, of {JUDGED:,}: {wrong['ours']} ours, {wrong['pathspec']} pathspec"
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        _large_tree(top)
        a, b = alternately(lambda: walked(ours, top), lambda: walked(theirs, top))
        yield f"walk {1000 * PACKAGES:,} files: {a:.2f} s ours, {b:.2f} s pathspec"
    rules, name = b"*a" * 6 + b"b", b"a" * LETTERS
    a, b = (timed(lambda r=r: r.parse(rules).verdict(name, is_folder=False))[1] for r in (ours, theirs))  # type: ignore[misc]
    yield f"a pattern of six stars on a name of {LETTERS} letters: {a * 1e6:.0f} us ours, {b:.1f} s pathspec"


def _rules_by_pathspec() -> Any:
    from pathspec import GitIgnoreSpec

    class Rules:
        def __init__(self, content: bytes) -> None:
            spec = GitIgnoreSpec.from_lines(os.fsdecode(content).splitlines())
            self.rules = [pattern for pattern in spec.patterns if pattern.include is not None]
            self._spec = GitIgnoreSpec(self.rules)

        parse = classmethod(lambda cls, content: cls(content))

        def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
            return self._spec.check_file(os.fsdecode(path) + "/" * is_folder).include

    return Rules


def _large_tree(top: Path) -> None:
    draw = random.Random(SEED)
    (top / ".git").mkdir()
    (top / ".gitignore").write_text("\n".join(COMMON))
    for i in range(PACKAGES):
        for j in range(10):
            for inside in ("x", "x/sub", "x/sub/deep", "y"):
                folder = top / f"package{i}/module{j}" / inside
                folder.mkdir(parents=True)
                for k in range(25):
                    (folder / f"f{k}{draw.choice(('.py', '.py', '.txt', '.log', '.pyc'))}").touch()
            (top / f"package{i}/module{j}/.gitignore").write_text("*.out\n!b*.out\n/local/\n")
        (top / f"package{i}/.gitignore").write_text("*.txt\n!/docs/\nf9?.py\n")


def arrays_on_disk() -> Iterator[str]:
    """Compare our files of arrays with safetensors: the memory of a read, and a damaged header."""
    import safetensors
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.safetensors")
        write_arrays(path, {"nested": {"a": [1]}}, {"x": np.zeros(25_000_000)})
        for name, read in (("ours", lambda: read_arrays(path)[1]), ("safetensors", lambda: load_file(path))):
            before = _own_memory()
            held = read()
            yield f"read 191 MiB, {name}: {_own_memory() - before} MiB of private memory"
            del held
        twice = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
        twice += twice[1:-1] + b"}"
        path.write_bytes(len(twice).to_bytes(8, "little") + twice + b"\0")
        with safetensors.safe_open(path, "numpy") as file:
            yield f"an array named twice in the header: rejected by ours, read as {list(file.keys())}"


def _own_memory() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) >> 10


def sentences() -> Iterator[str]:
    """Compare the reader of CoNLL-U, up to a Forest, with conllu, which stops at lists of tokens."""
    import conllu

    text = "".join(
        f"# sent_id = {s}\n"
        + "".join(
            f"{k}\tword{k}\tlemma{k}\tNOUN\tNN\tNumber=Sing\t{k // 2}\tdep\t_\tSpaceAfter=No\n"
            for k in range(1, 21)
        )
        + "\n"
        for s in range(2000)
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.conllu")
        path.write_text(text)
        a, b = alternately(lambda: read_trees(path), lambda: conllu.parse(path.read_text()))
    yield f"2,000 sentences of 20 tokens: {a:.2f} s ours, {b:.2f} s conllu"


def newick_trees() -> Iterator[str]:
    """Compare the reader of Newick, up to a Forest, with newick and Biopython, which make objects."""
    import newick
    from Bio import Phylo

    draw = random.Random(SEED)

    def tree(leaves: int) -> str:
        if leaves == 1:
            return f"species_{draw.randrange(1000)}:{draw.random():.4f}"
        left = draw.randint(1, leaves - 1)
        return f"({tree(left)},{tree(leaves - left)}):{draw.random():.4f}"

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.nwk")
        path.write_text("".join(f"{tree(50)};\n" for _ in range(1000)))
        works = lambda: read_trees(path), lambda: newick.read(path), lambda: list(Phylo.parse(path, "newick"))
        a, b, c = alternately(*works)
    yield f"1,000 trees of 50 leaves: {a:.2f} s ours, {b:.2f} s newick, {c:.2f} s Biopython"
    damaged = next(Phylo.parse(io.StringIO("(a b,c);"), "newick"))
    names = [leaf.name for leaf in damaged.get_terminals()]
    yield f"(a b,c); without its second comma: rejected by ours, read as {names} by Biopython"


def transforms() -> Iterator[str]:
    """Compare our Fourier transforms with those of rocket-fft: speed, and the bits of results."""
    work, order = fourier.plan(SIZE, "float32"), fourier.planar(np.arange(SIZE))
    natural = np.random.default_rng(SEED).normal(size=SIZE).astype(np.float32)
    row = np.concatenate([natural[0::2], natural[1::2]])  # as our rows are kept
    re, im = np.zeros((2, SIZE // 2 + 1), np.float32)
    _ours(row, order, work, re, im, 1)
    found = _theirs(natural, 1)
    same = float(np.mean((found.real == re) & (found.imag == im)))
    a, b = alternately(lambda: _ours(row, order, work, re, im, 1000), lambda: _theirs(natural, 1000))
    yield f"1,000 rows of {SIZE}: {a * 1e3:.0f} ms ours, {b * 1e3:.0f} ms rocket-fft"
    yield f"equal to the bit: {same:.0%} of the spectrum"


@njit
def _ours(row: Any, order: Any, work: Any, re: Any, im: Any, count: int) -> None:
    for _ in range(count):
        fourier.forward(row, order, work, re, im)


@njit
def _theirs(row: Any, count: int) -> Any:
    found = np.fft.rfft(row)
    for _ in range(count - 1):
        found = np.fft.rfft(row)
    return found


def edit_distances() -> Iterator[str]:
    """Compare our edit distance with those of zss, in Python, and edist, in compiled code."""
    import zss
    from edist import ted

    x, y = (_random_tree(100, seed) for seed in (1, 2))
    pair = _as_lists(x), _as_lists(y)
    nodes = _as_nodes(x, zss.Node), _as_nodes(y, zss.Node)
    distances = {edit_distance(x, y), ted.standard_ted(*pair), int(zss.simple_distance(*nodes))}
    a, b, c = alternately(
        lambda: edit_distance(x, y), lambda: ted.standard_ted(*pair), lambda: zss.simple_distance(*nodes)
    )
    yield f"two trees of 100 nodes: {a * 1e3:.2f} ms ours, {b * 1e3:.2f} ms edist, {c * 1e3:.0f} ms zss"
    yield f"the distance: {', '.join(map(str, sorted(distances)))}"


def _random_tree(size: int, seed: int) -> Tree:
    draw = random.Random(seed)
    children: list[list[int]] = [[] for _ in range(size)]
    for node in range(1, size):
        children[draw.randrange(node)].append(node)
    made: dict[int, Tree] = {}
    for node in reversed(range(size)):
        made[node] = Tree(draw.choice("abc"), tuple(made[child] for child in children[node]))
    return made[0]


def _as_lists(tree: Tree) -> tuple[list[str], list[list[int]]]:
    """Return labels and children in pre-order, as edist takes them."""
    labels: list[str] = []
    children: list[list[int]] = []

    def add(node: Tree) -> int:
        number = len(labels)
        labels.append(node.label)
        children.append([])
        children[number] += [add(child) for child in node.children]
        return number

    add(tree)
    return labels, children


def _as_nodes(tree: Tree, node: Any) -> Any:
    return node(tree.label, [_as_nodes(child, node) for child in tree.children])


def drawings() -> Iterator[str]:
    """Compare our drawings with those of svgling, for a small and a large tree."""
    import svgling

    def nested(tree: Tree) -> Any:
        return (tree.label, *map(nested, tree.children)) if tree.children else tree.label

    for size in (60, 1000):
        tree = _random_tree(size, SEED)
        text = nested(tree)
        works = partial(tree_html, tree), lambda text=text: svgling.draw_tree(text)._repr_svg_()  # type: ignore[misc]
        a, b = alternately(*works)
        ours, theirs = (len(work()) >> 10 for work in works)
        yield f"{size:,} nodes: {a * 1e3:.0f} ms, {ours} KiB ours; {b * 1e3:.0f} ms, {theirs} KiB svgling"


PARTS = {
    ignore_files: ["pathspec"],
    arrays_on_disk: ["safetensors"],
    sentences: ["conllu"],
    newick_trees: ["newick", "Bio"],
    transforms: ["rocket_fft"],
    edit_distances: ["edist", "zss"],
    drawings: ["svgling"],
}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.libraries", description=__doc__)
    parser.parse_args(arguments)
    for part, libraries in PARTS.items():
        print(part.__doc__.splitlines()[0])  # type: ignore[union-attr]
        missing = [library for library in libraries if find_spec(library) is None]
        for line in [f"not installed: {', '.join(missing)}"] if missing else part():
            print(f"  {line}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
