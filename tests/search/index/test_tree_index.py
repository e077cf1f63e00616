"""An index finds what a search through all rows finds, and its file is whole, or not there, or refused."""

import multiprocessing
import os
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import ANY_LABEL, examples, random_forest, trees
from treedot import (
    Forest,
    FragmentVectorizer,
    SubsetTreeKernel,
    Tree,
    TreeIndex,
    Vectors,
    nearest,
    save_vectors,
)
from treedot._storage import safetensors
from treedot._storage.safetensors import read_arrays, write_arrays
from treedot.errors import ParameterError, SourceError, SpecMismatchError
from treedot.readers import parse_code
from treedot.readers.code import grammars
from treedot.search.index import posting_search
from treedot.search.index import tree_index as module


@pytest.fixture
def small(tmp_path):
    """Return an index of some trees, twenty of them twice, in small portions, and the trees."""
    forest = random_forest(0, 150, 15)
    forest = forest + forest[:20]
    forest.columns["name"] = [f"tree {i}" for i in range(len(forest))]
    return TreeIndex.build(forest, tmp_path / "small.index"), forest


def wanted(queries, forest, k):
    vectorizer = FragmentVectorizer(n_features=2**30)
    return nearest(vectorizer.transform(queries), vectorizer.transform(forest), k)


@pytest.mark.parametrize("k", [1, 7, 170])
@pytest.mark.parametrize("records", [100, 1 << 23])
def test_an_index_finds_what_a_search_through_all_rows_finds(tmp_path, monkeypatch, k, records):
    monkeypatch.setattr("treedot.search.index.inverted_index_writer.RECORDS", records)
    monkeypatch.setattr(module, "BATCH", 16)
    forest, queries = random_forest(0, 170, 15), random_forest(1, 30, 15)
    index = TreeIndex.build(forest, tmp_path / "x")
    rows, values = index.search(queries, k)
    expected, products = wanted(queries, forest, k)
    assert rows.shape == values.shape == (30, k)
    assert (values == products).all()
    assert (rows == expected).all()


def test_a_tree_finds_itself_and_equal_ones_by_row_number(small):
    index, forest = small
    rows, values = index.search(forest[:20], 2)
    assert (rows == np.arange(20)[:, None] + [0, 150]).all()
    assert values == pytest.approx(1.0, abs=1e-6)
    assert (values[:, 0] == values[:, 1]).all()


@pytest.mark.parametrize("count", [1, 2, 30])
@pytest.mark.parametrize("block", [7, 1 << 16])
def test_results_do_not_depend_on_threads_or_blocks(small, monkeypatch, count, block):
    index, forest = small
    plain = [array.tobytes() for array in index.search(forest[:count], 9)]
    monkeypatch.setattr(posting_search, "BLOCK", block)
    plain_search = getattr(posting_search._search, "py_func", posting_search._search)
    monkeypatch.setattr(posting_search, "_search", plain_search)
    for n_jobs in (1, 2, 5):
        assert [array.tobytes() for array in index.search(forest[:count], 9, n_jobs=n_jobs)] == plain


@pytest.mark.parametrize("k", [1, 9, 1000])
def test_numpy_finds_the_same_as_compiled_code(small, monkeypatch, k):
    index, forest = small
    found = []
    for compiled in (True, False):
        monkeypatch.setattr(posting_search, "compiles", lambda steps, compiled=compiled: compiled)
        found.append(
            [array.tobytes() for n_jobs in (1, 3) for array in index.search(forest[:7], k, n_jobs=n_jobs)]
        )
    assert found[0] == found[1]


@pytest.mark.slow
@settings(max_examples=examples(25), deadline=None)
@given(st.lists(trees(), min_size=1, max_size=12), st.lists(trees(), min_size=1, max_size=3))
def test_any_trees_can_be_indexed_and_taken_out_again(tmp_path_factory, some, queries):
    forest = Forest.from_trees(some)
    index = TreeIndex.build(forest, tmp_path_factory.mktemp("index") / "x")
    assert index.forest(range(len(some))) == forest
    for found, expected in zip(
        index.search(queries, 3), wanted(Forest.from_trees(queries), forest, 3), strict=True
    ):
        assert found.tolist() == expected.tolist()


@settings(max_examples=examples(25), deadline=None)
@given(st.lists(trees(ANY_LABEL), min_size=1, max_size=5))
def test_labels_may_be_any_text(tmp_path_factory, some):
    index = TreeIndex.build(some, tmp_path_factory.mktemp("index") / "x")
    assert list(index.forest(range(len(some)))) == some


def test_where_there_are_fewer_trees_there_are_fewer_columns_as_for_rows_in_memory(tmp_path):
    trees, queries = ["(A b)", "(C d)"], [Tree.parse("(A b)"), Tree("b")]
    index = TreeIndex.build(trees, tmp_path / "x")
    for n_jobs in (1, 3):
        rows, values = index.search(queries, 4, n_jobs=n_jobs)
        assert rows.tolist() == [[0, 1]] * 2
        assert values.tolist() == [[1.0, 0.0], [0.0, 0.0]]
    rows, values = index.search(["(C d)"], 4, rerank=SubsetTreeKernel())
    assert rows.tolist() == [[1, 0]]
    assert values.tolist() == [[1.0, 0.0]]
    assert index.search([], 4)[0].shape == (0, 2)
    vectorizer = index.vectorizer
    assert nearest(vectorizer.transform(queries), vectorizer.transform(trees), 4)[0].shape == (2, 2)


def test_vectors_in_the_place_of_trees_are_refused_by_name(small, tmp_path):
    index, forest = small
    rows = index.vectorizer.transform(forest[:2])
    for vectors in (rows, rows[:, :8].toarray(), Vectors(rows, index.vectorizer.spec)):
        with pytest.raises(ParameterError, match="these are vectors already"):
            index.search(vectors)
        with pytest.raises(ParameterError, match="these are vectors"):
            TreeIndex.build(vectors, tmp_path / "y")


def test_a_kernel_to_rank_again_by_is_an_object(small):
    index, forest = small
    with pytest.raises(ParameterError, match=r"not the class SubsetTreeKernel: pass .*normalize=True"):
        index.search(forest[:1], rerank=SubsetTreeKernel)


def test_another_of_treedots_files_is_refused_with_what_opens_it(tmp_path):
    vectorizer = FragmentVectorizer(n_features=2**12)
    save_vectors(tmp_path / "rows.npz", vectorizer.transform(["(A b)"]), vectorizer)
    vectorizer.save(tmp_path / "model.parquet")
    for name, message in (
        ("rows.npz", r"rows\.npz holds sparse vectors: open it with load_vectors, not TreeIndex\.open"),
        ("model.parquet", r"holds a vectorizer: open it with FragmentVectorizer\.load"),
    ):
        with pytest.raises(SourceError, match=message):
            TreeIndex.open(tmp_path / name)
    assert len(TreeIndex.build(["(A b)"], tmp_path / "any.parquet")) == 1


def test_the_vectorizer_of_an_index_has_the_parameters_of_the_one_given(tmp_path):
    for vectorizer in (FragmentVectorizer(), FragmentVectorizer(damping="sqrt", n_jobs=2)):
        index = TreeIndex.build(["(A b)"], tmp_path / "x", vectorizer, overwrite=True)
        assert index.vectorizer.get_params() == vectorizer.get_params()


def test_an_index_opened_again_gives_the_same_answers(small):
    index, forest = small
    again = TreeIndex.open(index.path)
    for a, b in zip(index.search(forest[::7]), again.search(forest[::7]), strict=True):
        assert a.tobytes() == b.tobytes()
    assert len(again) == len(forest)
    assert again.fingerprint == index.fingerprint == FragmentVectorizer(n_features=2**30).fingerprint
    assert repr(again).startswith("<TreeIndex of 170 trees, ")


@pytest.mark.parametrize(
    "settings",
    [
        {"n_features": None},
        {"n_features": None, "idf": True},
        {"n_features": 2**12, "idf": True},
        {"n_features": 2**12, "normalize": False, "damping": "log1p"},
        {"n_features": 2**12, "rest": "dense", "rest_size": 256},
    ],
)
def test_what_the_vectorizer_is_and_has_learned_is_kept(tmp_path, settings):
    forest, queries = random_forest(0, 40, 15), random_forest(1, 5, 15)
    vectorizer = FragmentVectorizer(**settings).fit(forest)
    TreeIndex.build(forest, tmp_path / "x", vectorizer)
    index = TreeIndex.open(tmp_path / "x")
    expected, products = nearest(vectorizer.transform(queries), vectorizer.transform(forest), 6)
    rows, values = index.search(queries, 6)
    if vectorizer.rest == "dense":  # nearest multiplies these columns by BLAS
        assert values == pytest.approx(products, abs=1e-6)
    else:
        assert (values == products).all()
    assert (rows == expected).all()
    assert index.fingerprint == vectorizer.fingerprint


def test_the_file_is_the_same_to_the_byte_whatever_the_threads_and_portions(tmp_path, monkeypatch):
    forest = random_forest(5, 120, 12)
    TreeIndex.build(forest, tmp_path / "a")
    monkeypatch.setattr("treedot.search.index.inverted_index_writer.RECORDS", 500)
    TreeIndex.build(forest, tmp_path / "b", n_jobs=3)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_columns_of_metadata_survive(tmp_path):
    source = tmp_path / "trees.tsv"
    source.write_text("tree\tclass\n(A b)\tgrün\n(C d)\tred\n(A c)\t\n")
    found = TreeIndex.build(source, tmp_path / "x").forest([2, 0, 0])
    assert dict(found.columns) == {"class": ["", "grün", "grün"]}
    assert [str(tree) for tree in found] == ["(A c)", "(A b)", "(A b)"]
    forest = Forest.from_trees(
        random_forest(0, 2), {"n": [np.int64(3), None], "more": [[1, "x"], {"a": 0.5}]}
    )
    both = Forest.concat([forest, random_forest(1, 1)])
    found = TreeIndex.build(both, tmp_path / "y").forest([0, 1, 2])
    assert dict(found.columns) == {"n": [3, None, None], "more": [[1, "x"], {"a": 0.5}, None]}
    forest.columns["bad"] = [1, {1, 2}]
    with pytest.raises(SourceError, match="cannot store the columns of tree 2 as JSON"):
        TreeIndex.build(forest, tmp_path / "z")


def test_ranking_again_orders_the_candidates_by_the_exact_kernel(small):
    index, forest = small
    kernel = SubsetTreeKernel(0.8, normalize=True)
    queries = random_forest(9, 12, 15)
    candidates, _ = index.search(queries, 20)
    exact = np.take_along_axis(kernel.gram(queries, forest), candidates, 1)
    order = np.lexsort((candidates, -exact))[:, :4]
    rows, values = index.search(queries, 4, rerank=kernel, candidates=20)
    assert values == pytest.approx(np.take_along_axis(exact, order, 1))
    assert (rows == np.take_along_axis(candidates, order, 1)).mean() > 0.95
    with pytest.raises(ParameterError, match="at least k=4"):
        index.search(queries, 4, rerank=kernel, candidates=3)


def test_progress_is_told_and_nothing_is_no_index(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    seen = []
    TreeIndex.build(["(A b)"] * 5, tmp_path / "x", progress=seen.append)
    assert seen == [2, 4, 5]
    with pytest.raises(SourceError, match="give at least one tree"):
        TreeIndex.build([], tmp_path / "y")
    with pytest.raises(SourceError, match="does not exist"):
        TreeIndex.build(["(A b)"], tmp_path / "none" / "y")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_forests_may_come_one_after_the_other(tmp_path):
    forest = random_forest(0, 30)
    for source in (iter([forest[:7], forest[7:8], forest[8:]]), iter(list(forest))):
        assert TreeIndex.build(source, tmp_path / "x", overwrite=True).forest(range(30)) == forest


def test_an_index_is_replaced_only_if_that_is_asked_for(small):
    index, forest = small
    with pytest.raises(ParameterError, match=r"exists: use TreeIndex\.open to read it, or overwrite=True"):
        TreeIndex.build(["(A b)"], index.path)
    assert len(TreeIndex.open(index.path)) == len(forest)
    assert len(TreeIndex.build(["(A b)"], index.path, overwrite=True)) == 1
    assert index.forest([169]) == forest[[169]]  # the old file stays with those who have it open


def test_an_index_does_not_take_the_place_of_its_trees(tmp_path):
    path, other = tmp_path / "t.mrg", tmp_path / "other.mrg"
    for file in (path, other):
        file.write_text("(A b)\n")
    (tmp_path / "link.mrg").symlink_to(path)
    with path.open() as stream:
        for source in (
            str(path),
            tmp_path / "link.mrg",
            stream,
            [other, path],
            iter([path]),
            iter([other, path]),
        ):
            with pytest.raises(ParameterError, match=r"t\.mrg is the file that the trees are read from"):
                TreeIndex.build(source, path, overwrite=True)
    assert path.read_text() == "(A b)\n"
    assert len(TreeIndex.build(iter([other, path]), tmp_path / "x")) == 2


def test_trees_of_an_open_file_may_take_several_lines(tmp_path):
    (tmp_path / "t.mrg").write_text("(A\n (B b))\n(C c)\n")
    with (tmp_path / "t.mrg").open() as stream:
        assert len(TreeIndex.build(stream, tmp_path / "x")) == 2


@pytest.mark.parametrize("rows", [[150, 200], [-1], [0.5], [[1, 2]]])
def test_rows_that_are_not_there_are_refused(small, rows):
    with pytest.raises(ParameterError):
        small[0].forest(rows)


def unchanged(index, forest, queries):
    """Assert that an index holds some trees, and finds in them what a new index of them finds."""
    assert len(index) == len(forest)
    assert index.forest(range(len(forest))) == forest
    assert {name: index.column(name) for name in forest.columns} == dict(forest.columns)
    for found, expected in zip(index.search(queries, 7), wanted(queries, forest, 7), strict=True):
        assert found.tolist() == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("records", [50, 1 << 23])
def test_an_index_that_grows_and_shrinks_is_as_if_built_anew(small, tmp_path, monkeypatch, records):
    monkeypatch.setattr("treedot.search.index.inverted_index_writer.RECORDS", records)
    monkeypatch.setattr("treedot.search.index.index_file.BATCH", 16)
    index, forest = small
    more, queries = random_forest(7, 40, 15), random_forest(8, 10, 15)
    more.columns["name"] = [f"new {i}" for i in range(40)]
    index.add(more, n_jobs=2)
    unchanged(index, forest + more, queries)
    gone = [3, 0, 169, 180, 3]
    index.remove(gone)
    kept = (forest + more)[np.setdiff1d(np.arange(210), gone)]
    unchanged(index, kept, queries)
    unchanged(TreeIndex.open(index.path), kept, queries)
    anew = TreeIndex.build(kept, tmp_path / "anew")
    for ours, other in zip(index._file.lists, anew._file.lists, strict=True):
        assert ours.tobytes() == other.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["anew", "small.index"]


@settings(max_examples=examples(15), deadline=None)
@given(st.data(), st.lists(trees(), min_size=1, max_size=8), st.lists(trees(), max_size=4))
def test_any_rows_can_leave_and_any_trees_come(tmp_path_factory, data, some, more):
    index = TreeIndex.build(some, tmp_path_factory.mktemp("index") / "x")
    gone = data.draw(st.sets(st.integers(0, len(some) - 1)))
    index.add(more)
    after = [tree for i, tree in enumerate(some) if i not in gone] + more
    if after:
        index.remove(sorted(gone))
        assert list(index.forest(range(len(index)))) == after
    else:
        with pytest.raises(SourceError, match="give at least one tree"):
            index.remove(sorted(gone))
        assert len(index) == len(some)


def test_the_trees_of_changed_files_take_the_place_of_the_old_ones(tmp_path):
    def of(files, texts):
        return Forest.from_trees(map(Tree.parse, texts), {"file": files, "n": list(range(len(files)))})

    index = TreeIndex.build(of(["a", "b", "a", "c"], ["(A b)", "(B c)", "(C d)", "(D e)"]), tmp_path / "x")
    index.update(of(["a", "d"], ["(A x)", "(E f)"]))
    assert index.column("file") == ["b", "c", "a", "d"]
    assert index.column("n") == [1, 3, 0, 1]
    assert [str(tree) for tree in index.forest([2, 0])] == ["(A x)", "(B c)"]
    index.update([], files="b")
    index.update([], files=["never seen"])
    assert index.column("file") == ["c", "a", "d"]
    index.update(iter([of(["c"], ["(F g)"])]), files={"c", "d"})
    assert index.column("file") == ["a", "c"]
    with pytest.raises(ParameterError, match="'file'"):
        index.update(["(A b)"])


def test_a_vectorizer_that_has_learned_stays_as_it_is(tmp_path):
    forest, more = random_forest(0, 40, 15), random_forest(1, 20, 15)
    vectorizer = FragmentVectorizer(n_features=None, idf=True).fit(forest)
    index = TreeIndex.build(forest, tmp_path / "x", vectorizer, reading={"unit": "function"})
    index.add(more)
    assert index.fingerprint == vectorizer.fingerprint
    assert index.reading == {"unit": "function"}
    expected = nearest(vectorizer.transform(more), vectorizer.transform(forest + more), 5)
    for found, values in zip(index.search(more, 5), expected, strict=True):
        assert (found == values).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["lists.row"].__setitem__(slice(None), 10**9),
        lambda a: a["lists.row"].__setitem__(slice(None), -1),
        lambda a: a["lists.start"].__setitem__(slice(1, -1), 10**12),
        lambda a: a["lists.start"].__setitem__(slice(1, -1), -5),
        lambda a: a["lists.column"].__setitem__(slice(None), 7),
        lambda a: a["trees.label"].__setitem__(slice(None), 10**9),
        lambda a: a["trees.column_text"].__setitem__(slice(None), ord("[")),
    ],
)
def test_a_damaged_index_is_not_changed(small, change):
    damaged = TreeIndex.open(rewritten(small[0], lambda _, arrays: change(arrays)))
    before = damaged.path.read_bytes()
    with pytest.raises(SourceError, match=r"small\.index"):
        damaged.add(["(A b)"])
    assert damaged.path.read_bytes() == before


def test_every_truncation_is_refused(tmp_path):
    path = tmp_path / "x"
    TreeIndex.build(["(A b)"], path)
    raw = path.read_bytes()
    for size in range(0, len(raw), 3):
        path.write_bytes(raw[:size])
        with pytest.raises(SourceError, match="truncated"):
            TreeIndex.open(path)


def rewritten(index, change):
    """Write the file again with another description or other arrays, as someone else might."""
    description, arrays = read_arrays(index.path)
    arrays = {name: array.copy() for name, array in arrays.items()}
    change(description, arrays)
    write_arrays(index.path, description, arrays)
    return index.path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: d.clear(), "not an index"),
        (lambda d, a: d.update(version=4), "version 4"),
        (lambda d, a: d.update(fingerprint="other"), "fingerprint 'other'"),
        (lambda d, a: d.update(trees=3), "170 trees, not 3"),
        (lambda d, a: d.pop("vectorizer"), "cannot be rebuilt"),
        (lambda d, a: d["vectorizer"].update(n_features=7), "cannot be rebuilt"),
        (lambda d, a: d["vectorizer"].update(decay=0.5), "fingerprint"),
        (lambda d, a: d["vectorizer"].update(idf=True), "cannot be rebuilt"),
        (lambda d, a: d.update(vectorizer=3), "cannot be rebuilt"),
        (lambda d, a: d.update(reading=[1]), "its settings of reading"),
        (lambda d, a: a.pop("lists.row"), "'row' is missing"),
        (lambda d, a: a.update({"lists.value": a["lists.value"].astype(int)}), "'value' is missing or has"),
        (lambda d, a: a.update({"lists.value": a["lists.value"][1:]}), "inconsistent lengths"),
        (lambda d, a: a["lists.start"].__setitem__(-1, 5), "inconsistent lengths"),
        (lambda d, a: a.update({"trees.arity": a["trees.arity"][1:]}), "array 'arity' does not match"),
        (lambda d, a: a.update({"trees.offsets": a["trees.offsets"][[0, -1]]}), "number of trees differs"),
    ],
)
def test_a_file_that_does_not_fit_together_is_refused(small, change, message):
    with pytest.raises((SourceError, SpecMismatchError), match=message):
        TreeIndex.open(rewritten(small[0], change))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["lists.row"].__setitem__(slice(None), 10**9),
        lambda a: a["lists.row"].__setitem__(slice(None), -1),
        lambda a: a["lists.start"].__setitem__(slice(1, -1), 10**12),
        lambda a: a["lists.start"].__setitem__(slice(1, -1), -5),
        lambda a: a["lists.value"].__setitem__(slice(None), np.nan),
    ],
)
def test_damaged_lists_are_noticed_by_the_search(small, change):
    index, forest = small
    damaged = TreeIndex.open(rewritten(index, lambda _, arrays: change(arrays)))
    for n_jobs in (1, 3):
        with pytest.raises(SourceError, match=r"small\.index"):
            damaged.search(forest[:1], n_jobs=n_jobs)


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a["trees.label"].__setitem__(slice(None), 10**9),
        lambda a: a["trees.arity"].__setitem__(slice(None), 3),
        lambda a: a["trees.offsets"].__setitem__(slice(1, -1), 10**12),
        lambda a: a["trees.label_text"].__setitem__(slice(None), 0xFF),
        lambda a: a["trees.column_text"].__setitem__(slice(None), ord("[")),
        lambda a: a["trees.column_text"].__setitem__(slice(None), ord("1")),
        lambda a: a["trees.column_offsets"].__setitem__(slice(1, -1), -3),
    ],
)
def test_damaged_trees_are_noticed_when_they_are_taken_out(small, change):
    damaged = TreeIndex.open(rewritten(small[0], lambda _, arrays: change(arrays)))
    with pytest.raises(SourceError, match=r"small\.index"):
        damaged.forest([3, 4])


@pytest.mark.parametrize("text", ["[", "1", "\xff"])
def test_damaged_columns_are_noticed_when_they_are_read(small, text):
    def change(_, arrays):
        arrays["trees.column_text"][:] = ord(text)

    damaged = TreeIndex.open(rewritten(small[0], change))
    with pytest.raises(SourceError, match=r"small\.index"):
        damaged.column("name")
    with pytest.raises(SourceError, match=r"small\.index"):
        damaged.update([], files="a")


def test_a_stored_file_that_is_no_name_is_not_updated(tmp_path):
    trees = [Tree.parse("(A b)"), Tree.parse("(C d)")]
    forest = Forest.from_trees(trees, {"file": [["a"], "a"]})
    index = TreeIndex.build(forest, tmp_path / "odd.index")
    index.update([], files=["a"])
    assert index.column("file") == [["a"]]


def test_a_file_with_wrong_bytes_is_refused_or_gives_answers_of_the_right_shape(small):
    index, forest = small
    raw = index.path.read_bytes()
    header = 8 + int.from_bytes(raw[:8], "little")
    random = np.random.default_rng(0)
    for k in range(300):
        changed = bytearray(raw)
        end = header if k % 3 == 0 else len(raw)
        for place in random.integers(end, size=1 << random.integers(8)):
            changed[place] = random.integers(256)
        index.path.write_bytes(changed)
        try:
            found = TreeIndex.open(index.path)
            rows, _ = found.search(forest[:3], 5, n_jobs=1 + k % 2)
            assert rows.shape == (3, 5)
            assert len(found.forest(rows[0])) == 5
        except (SourceError, SpecMismatchError):
            continue


def stop_there(reached):
    reached.set()
    time.sleep(60)


def many_trees(reached, where):
    for i in range(5000):
        yield f"(A (B w{i}))"
        if i == 4500 and where == "reading":
            stop_there(reached)


def changed(change, path, reached, where):
    """Change an index; stop in the midst of reading trees, or of writing the file."""

    def half(array):
        for chunk in whole(array):
            yield chunk[: chunk.size // 2]
            stop_there(reached)

    whole = safetensors.chunks
    if where == "writing":
        safetensors.chunks = half
    change(path, many_trees(reached, where))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("where", ["reading", "writing"])
@pytest.mark.parametrize(
    "change",
    [
        lambda path, trees: TreeIndex.build(trees, path, overwrite=True),
        lambda path, trees: TreeIndex.open(path).add(trees),
    ],
    ids=["build", "add"],
)
def test_a_change_that_is_killed_leaves_the_old_index_as_it_was(small, where, change):
    path = small[0].path
    before = path.read_bytes()
    fork = multiprocessing.get_context("fork")
    reached = fork.Event()
    process = fork.Process(target=changed, args=(change, path, reached, where))
    process.start()
    stopped = reached.wait(60)
    process.kill()
    process.join()
    assert stopped
    assert path.read_bytes() == before
    assert len(TreeIndex.open(path)) == 170
    lock = path.with_name(".small.index.lock")
    for left in set(path.parent.iterdir()) - {path, lock}:  # at most the new one, under a name of its own
        assert where == "writing"
        assert left.name.startswith(".small.index.")
        with pytest.raises(SourceError, match="truncated"):
            TreeIndex.open(left)
    TreeIndex.open(path).add(["(A b)"])  # the lock of a process that died is free
    assert os.listdir(path.parent) == [path.name]


CODE = parse_code("def f(x):\n    return x\n", "python")


def installed(monkeypatch, version):
    monkeypatch.setattr(grammars, "version", lambda package: version)


def test_an_index_of_source_code_keeps_the_versions_that_parsed_it(tmp_path, monkeypatch):
    installed(monkeypatch, "1.0")
    index = TreeIndex.build(CODE, tmp_path / "x")
    assert index.grammars == {"tree-sitter": "tree-sitter 1.0", "python": "tree-sitter-python 1.0"}
    assert TreeIndex.build(["(A b)"], tmp_path / "y").grammars == {}
    index.search(CODE)
    installed(monkeypatch, "2.0")
    index.search(["(A b)"])  # which no grammar parsed
    with pytest.warns(
        UserWarning, match=r"tree-sitter-python 1.0, but .* 2.0 is installed.* build the index"
    ):
        rows, _ = index.search(CODE, 1)
    assert rows.tolist() == [[0]]


def test_the_oldest_version_of_a_grammar_counts_until_its_trees_are_replaced(tmp_path, monkeypatch):
    installed(monkeypatch, "1.0")
    index = TreeIndex.build(CODE, tmp_path / "x")
    installed(monkeypatch, "2.0")
    with pytest.warns(UserWarning, match="was made with"):
        index.add(CODE)
    assert index.grammars["python"] == "tree-sitter-python 1.0"
    index.update(CODE)
    assert index.grammars == {"tree-sitter": "tree-sitter 2.0", "python": "tree-sitter-python 2.0"}


def test_an_index_without_versions_of_grammars_is_searched_and_changed_silently(tmp_path, monkeypatch):
    monkeypatch.setattr("treedot.search.index.index_file.grammar_versions", lambda languages: {})
    index = TreeIndex.build(CODE, tmp_path / "x")
    monkeypatch.undo()
    index.add(CODE)
    index.search(CODE)
    assert index.grammars == {}


def test_an_index_whose_versions_are_damaged_is_refused(small):
    index, _ = small
    description, arrays = read_arrays(index.path)
    write_arrays(index.path, description | {"grammars": {"python": 3}}, arrays)
    with pytest.raises(SourceError, match="is damaged: grammar versions"):
        TreeIndex.open(index.path)
