"""treedot dups: blocks of statements in different functions, and when they are searched."""

import json
import subprocess
import sys

import pytest

from treedot.cli import main
from treedot.clones.blocks import equal_runs

BLOCK = """\
    total = sum(price * count for price, count in items if count)
    if total > limit:
        raise ValueError(f"{total} exceeds {limit}")
    log.info("total %d", total)
"""
ALONE = """\
    with open(x) as file, lock:
        yield from {**file}
    assert not x, -y
    return {x: [y for y in x]}
"""
FIRST = f"def first(x):\n{BLOCK}{ALONE}"
APART = """\
    for a, (b, c) in d.items():
        e[a] |= b if c else lambda: 0
    try:
        pass
    finally:
        del z
"""
OTHER = f"def other(x):\n    while x > 1:\n        x = f(x, [x])\n    del y[x:2]\n{BLOCK}{APART}"


@pytest.fixture
def code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(FIRST)
    (tmp_path / "b.py").write_text(OTHER)
    return tmp_path


def places(capsys, *options):
    """Return the exit code, and the files, lines and names of the members of each group of blocks."""
    code = main(["dups", ".", "--format", "json", "-j", "1", *options])
    content = json.loads(capsys.readouterr().out)
    return code, [
        [(member["file"], member["start"], member["end"], member["name"]) for member in group["members"]]
        for group in content["blocks"]
    ]


def test_blocks_are_listed_with_the_functions_around_them(code, capsys):
    assert places(capsys) == (0, [[("a.py", 2, 5, "first"), ("b.py", 5, 8, "other")]])
    main(["dups", ".", "-j", "1"])
    assert capsys.readouterr().err.startswith("treedot: 1 group of blocks; 0 groups of 0 functions")


def test_a_second_run_reads_the_cache_and_lists_the_same(code, capsys, tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    assert places(capsys) == places(capsys)


@pytest.mark.slow
def test_a_second_run_searches_nothing_and_loads_no_compiled_code(code, monkeypatch, tmp_path_factory):
    """The first run has compiled code, so that one that searches would have loaded it."""
    pytest.importorskip("numba")
    monkeypatch.setenv("TREEDOT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    program = """
import sys
from treedot.cli import main
from treedot.clones import duplicates
from treedot.clones.blocks import duplicate_blocks
searched = []
for module, name in ((duplicates, "similar_pairs"), (duplicate_blocks, "similar_runs")):
    def watched(*given, search=getattr(module, name), name=name, **how):
        searched.append(name)
        return search(*given, **how)
    setattr(module, name, watched)
assert main(["dups", ".", "-j", "1"]) == 0
print(searched, "numba" in sys.modules, file=sys.stderr)
"""
    outputs = []
    for choice in ("always", ""):
        monkeypatch.setenv("TREEDOT_COMPILE", choice)
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        message, _, loaded = done.stderr.rstrip().rpartition("\n")
        outputs.append((done.stdout, message))
        assert loaded == ("['similar_pairs', 'similar_runs'] True" if choice else "[] False")
    assert outputs[0] == outputs[1]
    assert "1 group of blocks" in outputs[0][1]


def test_blocks_can_be_turned_off_by_an_option_and_by_a_setting(code, capsys):
    assert places(capsys, "--no-blocks") == (0, [])
    (code / "treedot.toml").write_text("[dups]\nblocks = false\n")
    assert places(capsys) == (0, [])
    assert len(places(capsys, "--blocks")[1]) == 1


def test_a_setting_of_another_kind_is_refused(code, capsys):
    (code / "treedot.toml").write_text("[dups]\nblocks = 1\n")
    assert main(["dups", "."]) == 2
    assert "blocks must be true or false, not 1" in capsys.readouterr().err


@pytest.mark.parametrize("unit", ["class", "file"])
def test_other_units_find_blocks_only_if_asked(code, capsys, unit):
    assert places(capsys, "--unit", unit) == (0, [])
    assert len(places(capsys, "--unit", unit, "--blocks")[1]) == 1


def test_the_gate_does_not_know_blocks(code, capsys):
    assert places(capsys, "--fail-on-new") == (0, [])
    assert main(["dups", ".", "--fail-on-new", "--blocks"]) == 2
    assert "--fail-on-new does not apply to blocks" in capsys.readouterr().err


def test_files_without_functions_have_blocks(code, capsys):
    (code / "a.py").write_text(
        "import os\n" + BLOCK.replace("\n    ", "\n").lstrip() + "os.remove([a, b][c])\n"
    )
    (code / "b.py").write_text("while x:\n    f(x)\n" + BLOCK.replace("\n    ", "\n").lstrip())
    assert places(capsys) == (0, [[("a.py", 2, 5, ""), ("b.py", 3, 6, "")]])


def test_a_limit_is_reported(code, capsys, monkeypatch):
    monkeypatch.setattr(equal_runs, "MAX_PLACES", 1)
    monkeypatch.setattr(equal_runs, "SEED_NODES", (12,))
    main(["dups", ".", "-j", "1", "--no-cache"])
    assert "begin a block with too many copies" in capsys.readouterr().err
