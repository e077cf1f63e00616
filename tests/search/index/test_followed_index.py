"""``FollowedIndex``: an index in which searches see the files as they are now."""

import os
import random
import shutil

import pytest

from treedot import TreeIndex, iter_code
from treedot.cli import main
from treedot.errors import ParameterError, SourceError
from treedot.readers import parse_code
from treedot.search.index import followed_index
from treedot.search.index.followed_index import FollowedIndex
from treedot.search.reading import Reading

STATEMENTS = (
    "x = a + b", "for i in a:\n        print(i)", "if a > b:\n        return a", "while b:\n        b -= 1",
    "a.append(b)", "x = [i * 2 for i in a]", "with open(a) as f:\n        b = f.read()", "a, b = b, a",
)  # fmt: skip


def function(name, numbers):
    body = "\n    ".join(STATEMENTS[number] for number in numbers)
    return f"def {name}(a, b):\n    {body}\n    return a\n"


def query(text):
    return parse_code(text, "python", settings=Reading().code())


def found(index, text, k=3):
    columns = index.search(query(text), k).units.columns
    return list(zip(columns["name"], columns["start"], strict=True))


def best(index, text):
    columns = index.search(query(text), 1).units.columns
    (file,), (name,) = columns["file"], columns["name"]
    return file, name


A, B, C = function("first", (0, 1, 2)), function("second", (3, 4, 5)), function("third", (6, 7, 1))


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Return a folder of source files, which is the current one, with an index of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(followed_index, "PAUSE", 0.0)
    monkeypatch.setattr(followed_index, "SHARE", 1e9)
    (tmp_path / "src/inner").mkdir(parents=True)
    for name, text in (("a", A), ("b", B), ("inner/c", C)):
        (tmp_path / f"src/{name}.py").write_text(text)
    assert main(["index", "src", "-o", "x.index", "--no-cache"]) == 0
    return tmp_path


def test_an_edited_file_is_read_again_and_its_old_units_are_not_found(code):
    index = FollowedIndex("x.index")
    assert best(index, A) == ("src/a.py", "first")
    (code / "src/a.py").write_text("\n\n" + C.replace("third", "new"))
    assert found(index, C, k=2) == [("third", 1), ("new", 3)]
    assert "first" not in dict(found(index, A))
    (code / "src/a.py").write_text("\n" + C.replace("third", "new"))  # only its lines
    assert found(index, C, k=2) == [("third", 1), ("new", 2)]
    (code / "src/a.py").write_text(A)
    assert best(index, A) == ("src/a.py", "first")
    assert len(index) == 3


def test_edits_before_the_start_are_seen(code):
    (code / "src/a.py").write_text(C.replace("third", "new"))
    assert {name for name, _ in found(FollowedIndex("x.index"), C, k=2)} == {"third", "new"}


def test_units_of_deleted_files_are_not_found(code):
    index = FollowedIndex("x.index")
    (code / "src/b.py").unlink()
    shutil.rmtree(code / "src/inner")
    assert [name for name, _ in found(index, A, k=3)] == ["first"]
    assert len(index) == 1


def test_new_files_are_found_in_the_folders_of_the_index(code):
    index = FollowedIndex("x.index")
    (code / "src/ignored.py").write_text(B.replace("second", "ignored"))
    (code / "src/.gitignore").write_text("ignored.py\n")
    (code / "src/inner/d.py").write_text(B.replace("second", "copy"))
    (code / "other").mkdir()
    (code / "other/e.py").write_text(B.replace("second", "elsewhere"))
    assert [name for name, _ in found(index, B, k=2)] == ["second", "copy"]
    assert len(index) == 4
    (code / "src/inner/d.py").unlink()
    assert found(index, B, k=1) == [("second", 1)]
    assert len(index) == 3


def test_older_files_beside_those_of_an_index_stay_left_out(code):
    assert main(["index", "src/a.py", "-o", "one.index"]) == 0
    index = FollowedIndex("one.index")
    assert [name for name, _ in found(index, A)] == ["first"]
    (code / "src/new.py").write_text(B)
    assert best(index, B) == ("src/new.py", "second")
    assert len(index) == 2


def test_new_files_are_found_though_times_do_not_differ(code):
    assert main(["index", "src/a.py", "-o", "one.index"]) == 0
    (code / "src/new.py").write_text(B)
    written = os.stat("src/new.py").st_ctime_ns
    for name in ("src", "one.index"):
        os.utime(name, ns=(written, written))
    index = FollowedIndex("one.index")
    assert best(index, B) == ("src/new.py", "second")
    (code / "src/newer.py").write_text(C)
    os.utime("src", ns=(written, written))
    assert best(index, C) == ("src/newer.py", "third")


def test_new_files_are_found_in_paths(code):
    assert main(["index", "src/a.py", "-o", "one.index"]) == 0
    index = FollowedIndex("one.index", ["src", "missing"])
    assert best(index, C) == ("src/inner/c.py", "third")
    assert len(index) == 3
    absolute = FollowedIndex("one.index", [os.fspath(code / "src")])
    assert best(absolute, C) == (f"{code}/src/inner/c.py", "third")
    assert len(absolute) == 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_results_are_those_of_an_index_built_anew(code, seed):
    """The definition: an index of the files as they are now (without weights, which edits do not change)."""
    TreeIndex.build(
        iter_code("src", settings=Reading().code()), "x.index", overwrite=True, reading=Reading()._asdict()
    )
    index, choose = FollowedIndex("x.index", ["src"]), random.Random(seed)
    for step in range(15):
        file = code / "src" / choose.choice(["a.py", "b.py", "inner/c.py", "d.py", "inner/e.py"])
        if file.exists() and choose.random() < 0.3:
            file.unlink()
        else:
            units = range(choose.randint(1, 3))
            names = [function(f"f{step}_{i}", [choose.randrange(8) for _ in range(3)]) for i in units]
            file.write_text("\n".join(names))
        (code / "src/always.py").write_text(function("always", [step % 8]))
        settings = Reading().code()
        anew = TreeIndex.build(iter_code("src", settings=settings), "anew.index", overwrite=True)
        asked = query(function("asked", [choose.randrange(8) for _ in range(4)]))
        rows, cosines = anew.search(asked, 20)
        trees = anew.forest(rows[0])
        ours = index.search(asked, 20)
        assert len(index) == len(anew)

        positive = cosines[0] > 0
        assert ours.cosines.tolist() == pytest.approx(cosines[0][positive].tolist(), abs=1e-6)
        for i, name in enumerate(ours.units.columns["name"]):
            number = trees.columns["name"].index(name)
            assert ours.units[[i]] == trees[[number]]
            assert ours.units.columns["start"][i] == trees.columns["start"][number]


def test_an_index_that_is_replaced_is_used(code):
    index = FollowedIndex("x.index")
    (code / "src/a.py").write_text(C)
    assert len(index.search(query(C), 2).units) == 2
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    assert len(index.search(query(C), 2).units) == 2
    os.replace("x.index", "moved.index")
    assert best(index, B) == ("src/b.py", "second")


def test_an_index_far_from_its_files_is_searched_as_it_is(code, monkeypatch):
    (code / "elsewhere").mkdir()
    monkeypatch.chdir(code / "elsewhere")
    index = FollowedIndex("../x.index")
    assert index.is_elsewhere
    assert best(index, B) == ("src/b.py", "second")


def test_files_are_followed_without_digests(code):
    (code / "src/later.py").write_text(B)
    TreeIndex.build(iter_code("src", settings=Reading().code()), "plain.index")
    index = FollowedIndex("plain.index")
    assert best(index, A) == ("src/a.py", "first")
    (code / "src/a.py").write_text(C)
    assert [file for file, _ in [best(index, C)]] == ["src/inner/c.py"]
    assert "first" not in dict(found(index, A))


def test_a_search_does_not_wait_until_many_changed_files_are_read(code, monkeypatch):
    index = FollowedIndex("x.index", ["src"])
    for number in range(5):
        (code / f"src/new{number}.py").write_text(C.replace("third", f"new{number}"))
    monkeypatch.setattr(followed_index, "READING", -1.0)
    assert found(index, C, k=10) != []
    assert index.waiting == 8  # also those of the index, which are compared with it at first
    monkeypatch.setattr(followed_index, "READING", 60.0)
    assert len(found(index, C, k=10)) >= 6
    assert index.waiting == 0


def test_units_are_returned_by_file(code):
    index = FollowedIndex("x.index")
    assert index.units_of("src/a.py").columns["name"] == ["first"]
    (code / "src/a.py").write_text(B)
    assert index.units_of("src/a.py").columns["name"] == ["second"]
    assert index.units_of("src/z.py") is None


def test_many_changed_rows_are_passed_over(code):
    text = "\n".join(A.replace("first", f"first{number}") for number in range(100))
    (code / "src/many.py").write_text(text)
    assert main(["index", "src", "-o", "x.index", "--update"]) == 0
    index = FollowedIndex("x.index")
    (code / "src/many.py").write_text("")
    assert best(index, A) == ("src/a.py", "first")
    assert len(found(index, A, k=10)) == 3


def test_an_index_without_source_code_is_refused(tmp_path):
    (tmp_path / "p.html").write_text("<p>a</p>")
    assert main(["index", str(tmp_path), "-o", str(tmp_path / "p.index"), "--unit", "page"]) == 0
    with pytest.raises(ParameterError, match="index of pages: give an index of source code"):
        FollowedIndex(tmp_path / "p.index")
    TreeIndex.build(["(A b)"], tmp_path / "t.index")
    with pytest.raises(ParameterError, match="holds no source code"):
        FollowedIndex(tmp_path / "t.index")
    with pytest.raises(SourceError, match="cannot open"):
        FollowedIndex(tmp_path / "missing.index")
