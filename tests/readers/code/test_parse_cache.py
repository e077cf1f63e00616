"""The cache of parsed files: what it gives is what the parser gives, or nothing."""

import multiprocessing
import sqlite3
import time

import numpy as np
import pytest

from treedot import Forest
from treedot._storage.cache_file import DAY
from treedot.cli import main
from treedot.readers import CodeSettings, iter_code
from treedot.readers.code import parse_cache, reader, source_files
from treedot.readers.code.parse_cache import (
    ParseCache,
    cache_facts,
    cache_folder,
    cache_path,
    keeping_parsed,
    key_of,
)

CODE = """
def f{0}(x, y):
    return x + y * {0}


class C:
    def m(self):  # treedot: ignore
        return 1
"""


@pytest.fixture
def source(tmp_path):
    folder = tmp_path / "source"
    folder.mkdir()
    for k in range(3):
        (folder / f"m{k}.py").write_text(CODE.format(k))
    (folder / "empty.py").write_text("")
    (folder / "a.js").write_text("function f(x) { return x ? 'ü' : 2 }\n")
    return folder


@pytest.fixture
def parsed(monkeypatch):
    """The files that the parser gets."""
    files = []
    do_apart = source_files.do_apart

    def watched(function, *arguments, file, max_seconds):
        files.append(file)
        return do_apart(function, *arguments, file=file, max_seconds=max_seconds)

    monkeypatch.setattr(source_files, "do_apart", watched)
    return files


def read(source, folder, settings=None, n_jobs=None, **limits):
    skipped = []
    with keeping_parsed(ParseCache(folder, **limits)):
        forests = iter_code(
            source, settings=settings, n_jobs=n_jobs, on_skip=lambda *what: skipped.append(what)
        )
        return Forest.concat(forests), sorted(skipped)


def same(a, b):
    assert a[1] == b[1]
    assert a[0] == b[0]
    assert list(a[0].columns) == list(b[0].columns)
    for name in a[0].columns:
        left, right = a[0].columns[name], b[0].columns[name]
        assert len(left) == len(right)
        assert all(np.array_equal(x, y) for x, y in zip(left, right, strict=True)), name
        assert [type(x) for x in left] == [type(y) for y in right], name


@pytest.mark.parametrize("blurred", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_second_reading_parses_nothing_and_gives_the_same(
    source, tmp_path, parsed, blurred, n_jobs, monkeypatch
):
    monkeypatch.setattr(reader, "FILES_EACH", 1)
    settings = CodeSettings(identifiers="blur", literals="blur", blurred=blurred)
    skipped = []
    plain = Forest.concat(iter_code(source, settings=settings, on_skip=lambda *what: skipped.append(what)))
    parsed.clear()
    first = read(source, tmp_path / "cache", settings, n_jobs)
    assert len(parsed) == 5
    second = read(source, tmp_path / "cache", settings, n_jobs)
    assert len(parsed) == 5
    same(first, (plain, sorted(skipped)))
    same(second, first)


def test_only_files_with_another_content_are_parsed_again_wherever_they_are(source, tmp_path, parsed):
    read(source, tmp_path / "cache")
    parsed.clear()
    (source / "m0.py").rename(source / "moved.py")
    (source / "m1.py").write_text(CODE.format(9))
    found, _ = read(source, tmp_path / "cache")
    assert parsed == [str(source / "m1.py")]
    assert str(source / "moved.py") in found.columns["file"]
    assert "f9" in found.columns["name"]


def test_the_key_holds_all_that_determines_the_units(monkeypatch):
    base = CodeSettings()
    changed = [
        CodeSettings(unit="file"), CodeSettings(identifiers="blur"), CodeSettings(literals="drop"),
        CodeSettings(min_nodes=2), CodeSettings(blurred=True),
    ]  # fmt: skip
    keys = {key_of(b"x", "python", settings) for settings in [base, *changed]}
    keys |= {key_of(b"y", "python", base), key_of(b"x", "javascript", base)}
    monkeypatch.setattr(parse_cache, "READER", 0)
    keys.add(key_of(b"x", "python", base))
    monkeypatch.setattr(parse_cache, "_grammar", lambda language: {"python": "another"})
    keys.add(key_of(b"x", "python", base))
    assert len(keys) == 10
    slow = CodeSettings(max_seconds=1, max_bytes=100)  # limits, which change no units
    assert key_of(b"x", "python", slow) == key_of(b"x", "python", base)


@pytest.mark.parametrize("damage", ["text", "cut", "zeros", "another database", "folder"])
def test_a_damaged_cache_counts_as_none(source, tmp_path, parsed, damage):
    cache = tmp_path / "cache"
    first = read(source, cache)
    file = cache / parse_cache.FILE
    content = file.read_bytes()
    for beside in cache.iterdir():
        beside.unlink()
    if damage == "text":
        file.write_text("not a database")
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "zeros":
        file.write_bytes(content[:4096] + bytes(len(content) - 4096))
    elif damage == "another database":
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE parsed (something)")
    else:
        file.mkdir()
    same(read(source, cache), first)
    assert len(parsed) == 10


@pytest.mark.parametrize("place", [0, 20, 60, -1])
def test_a_damaged_entry_counts_as_none_and_is_replaced(source, tmp_path, parsed, place):
    cache = tmp_path / "cache"
    first = read(source, cache)
    with sqlite3.connect(cache / parse_cache.FILE) as database:
        for key, entry in database.execute("SELECT key, entry FROM parsed").fetchall():
            spoiled = bytearray(entry)
            spoiled[place] ^= 1
            database.execute("UPDATE parsed SET entry = ? WHERE key = ?", (bytes(spoiled), key))
    database.close()
    same(read(source, cache), first)
    assert len(parsed) == 10
    same(read(source, cache), first)
    assert len(parsed) == 10


def test_where_nothing_can_be_kept_everything_is_parsed(source, tmp_path, parsed):
    (tmp_path / "cache").write_text("a file, not a folder")
    first = read(source, tmp_path / "cache")
    same(read(source, tmp_path / "cache"), first)
    assert len(parsed) == 10


def test_the_least_recently_used_entries_are_removed_first(source, tmp_path, parsed):
    cache = tmp_path / "cache"
    read(source / "m0.py", cache)
    entry = cache_facts(folder=cache).size
    with sqlite3.connect(cache / parse_cache.FILE) as database:
        database.execute("UPDATE parsed SET used = ?", (time.time() - 3 * DAY,))
    database.close()
    read(source / "m1.py", cache)
    read(source / "m0.py", cache)  # which is used later than m1
    parsed.clear()
    read(source / "m2.py", cache, max_bytes=int(2.5 * entry))
    assert cache_facts(folder=cache).size <= 2.5 * entry
    read([source / "m0.py", source / "m2.py"], cache)
    assert parsed == [str(source / "m2.py")]
    read(source / "m1.py", cache)
    assert parsed[-1] == str(source / "m1.py")


def keep_many(folder, number):
    forest = next(iter_code_of(CODE.format(number)))
    for _ in range(20):
        cache = ParseCache(folder, max_bytes=20_000)
        for k in range(10):
            cache.put(key_of(f"{number} {k}".encode(), "python", CodeSettings()), forest, 0)
            cache.get(key_of(f"{number + 1} {k}".encode(), "python", CodeSettings()))
        cache.close()


def iter_code_of(text):
    yield source_files.parse_units(text.encode(), "python", "m.py", CodeSettings())[0]


@pytest.mark.slow
def test_several_processes_may_use_it_and_be_killed(source, tmp_path):
    cache = tmp_path / "cache"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=keep_many, args=(cache, number)) for number in range(3)]
    for process in processes:
        process.start()
    time.sleep(1.5)
    processes[0].kill()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes[1:]] == [0, 0]
    facts = cache_facts(folder=cache)
    assert facts.entries > 0
    assert facts.size <= 20_000
    first = read(source, cache)
    same(read(source, cache), first)


def test_the_folder_is_that_of_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    assert cache_path() == tmp_path / parse_cache.FILE
    assert cache_facts() == (0, 0)
    monkeypatch.delenv("TREEDOT_CACHE_DIR")
    assert cache_folder().name == "treedot"


def test_commands_keep_what_they_parse_and_show_and_clear_it(source, tmp_path, parsed, monkeypatch, capsys):
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path / "cache"))
    assert main(["cache"]) == 0
    assert "no cache yet" in capsys.readouterr().out
    assert main(["dups", str(source), "--no-cache"]) == 0
    assert not (tmp_path / "cache").exists()
    capsys.readouterr()
    parsed.clear()
    for command in (["dups", str(source)], ["convert", str(source), "-o", str(tmp_path / "t.mrg")]):
        outputs = []
        for _ in range(2):
            assert main(command) == 0
            outputs.append(capsys.readouterr())
        assert len(parsed) == len(set(parsed)) == 5
        assert outputs[0] == outputs[1]
        parsed.clear()
    assert main(["cache"]) == 0
    parsed_size, found_size = cache_facts().size, cache_facts(parse_cache.FOUND).size
    assert min(parsed_size, found_size) > 0
    sizes = f" 10 files in {parsed_size / 2**20:.1f} MiB, near-duplicates in {found_size / 2**20:.1f} MiB"
    assert sizes in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert not list((tmp_path / "cache").iterdir())
