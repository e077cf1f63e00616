"""A few cases of every target, and failures on purpose."""

import contextlib
from random import Random

import pytest
from fuzz.mutations import MAX_SIZE, MUTATIONS, mutate
from fuzz.target import FileTarget
from fuzz.targets import LEFT_OUT, TARGETS, make_case, missing_modules
from fuzz.worker import Outcome, Worker, run_target

import faults
from fuzz import __main__ as command
from fuzz import tokens
from treedot.parameters import FORMATS
from treedot.readers.code.processes import CrashError, TooSlowError

pytestmark = pytest.mark.slow

FILES = {name: target for name, target in TARGETS.items() if isinstance(target, FileTarget)}


@pytest.mark.parametrize("name", TARGETS)
def test_every_case_is_read_or_refused(name, tmp_path):
    outcomes = [run_target(name, make_case(name, 0, number), tmp_path) for number in range(4)]
    assert [outcome.reason for outcome in outcomes if outcome.kind == "failed"] == []


@pytest.mark.parametrize("name", FILES)
def test_seeds_are_sound(name, tmp_path):
    target = FILES[name]
    kinds = [run_target(name, target.pack(seed), tmp_path).kind for seed in target.seeds()]
    assert kinds.count("refused") <= 1  # a table without a tree in one row, a matrix of kernels
    assert "accepted" in kinds
    assert "failed" not in kinds


def test_every_format_is_a_target():
    assert set(FORMATS) <= {*TARGETS, *LEFT_OUT}


@pytest.mark.parametrize("name", TARGETS)
def test_cases_follow_from_seed_target_and_number(name):
    assert make_case(name, 1, 2) == make_case(name, 1, 2)
    assert len({make_case(name, seed, number) for seed in range(2) for number in range(3)}) > 3


@pytest.mark.parametrize("name", ["xml", "json"])
def test_a_good_share_of_documents_is_accepted(name, tmp_path):
    kinds = [run_target(name, make_case(name, 0, number), tmp_path).kind for number in range(40)]
    assert kinds.count("accepted") >= 12


@pytest.mark.parametrize("change", MUTATIONS)
@pytest.mark.parametrize("data", [b"", b"x", b"(A 12 b)" * 300])
def test_mutations_take_bytes_of_any_length(change, data):
    for seed in range(20):
        assert isinstance(change(data, b"(other)", Random(seed)), bytes)
        assert len(mutate(data, [data], Random(seed))) <= MAX_SIZE


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (b"crash", "Segmentation fault"),
        (b"hang", "no end after 3 seconds"),
        (b"grow", "memory grew from"),
    ],
)
def test_a_fault_is_seen_and_the_next_case_is_tried(fault, reason):
    with Worker(faults.on_purpose, seconds=3 if fault == b"hang" else 60, memory=1 << 25) as worker:
        assert worker.run("any", b"nothing").kind == "accepted"
        outcome = worker.run("any", fault)
        assert outcome.kind == "failed"
        assert reason in outcome.reason
        assert worker.run("any", b"nothing").kind == "accepted"


@pytest.mark.parametrize("change", [*tokens.KEEPING, *tokens.BREAKING])
@pytest.mark.parametrize("syntax", [tokens.CODE, tokens.MARKUP])
def test_texts_are_changed_token_by_token(change, syntax):
    text = b'f(a, [1, {"b": \'c\'}]) <a x="1"><b>text</b> <b/>more</a>'
    parts = syntax.token.findall(text)
    assert b"".join(parts) == text
    for seed in range(20):
        assert all(isinstance(token, bytes) for token in change(parts, parts, syntax, Random(seed)))


@pytest.mark.parametrize("change", [tokens._exchange, tokens._graft, tokens._repeat_inside, tokens._nest])
def test_some_changes_keep_brackets_in_pairs(change):
    parts = tokens.CODE.token.findall(b"f(a, [1, {b: (c)}], 'd')")
    for seed in range(20):
        text = b"".join(change(parts, parts, tokens.CODE, Random(seed)))
        assert all(text.count(opening) == text.count(closing) for opening, closing in tokens.CLOSING.items())


def test_changed_texts_are_no_longer_than_their_limit():
    for seed in range(12):
        data = tokens.mutate_text(b"(a [b])" * 5000, [b"", b"x"], Random(seed), (tokens.CODE, tokens.MARKUP))
        assert len(data) <= tokens.MAX_TEXT


def test_a_target_whose_modules_are_missing_is_left_out_and_told(monkeypatch, tmp_path, capsys):
    target = FileTarget(".x", list, print, needs=("json", "no_such_module"))
    assert missing_modules(target) == ["no_such_module"]
    monkeypatch.setitem(LEFT_OUT, "odd", missing_modules(target))
    monkeypatch.setattr(command, "kinds", dict)
    assert command.main(["--cases", "0", "--jobs", "1", "brackets"]) == 0
    assert "odd is skipped, not installed: no_such_module" in capsys.readouterr().out


def test_an_error_that_is_not_of_treedot_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setitem(TARGETS, "dense", faults.Careless())
    outcome = run_target("dense", b"", tmp_path)
    assert outcome.kind == "failed"
    assert "IndexError: of no use" in outcome.reason


@pytest.mark.parametrize(("error", "kind"), [(TooSlowError, "too slow"), (CrashError, "failed")])
def test_a_parser_may_be_slow_but_not_crash(error, kind, tmp_path, monkeypatch):
    monkeypatch.setitem(TARGETS, "c", faults.Careless(error("c.c")))
    assert run_target("c", b"", tmp_path).kind == kind


def test_a_failing_case_is_kept_and_can_be_tried_again(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "Worker", lambda *_: Worker(faults.all_but_brackets))
    monkeypatch.setattr(command, "kinds", dict)
    folder = tmp_path / "failures"
    arguments = ["--cases", "2", "--seed", "7", "--jobs", "2", "--failures", str(folder)]
    assert command.main([*arguments, "tsv", "brackets"]) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["tsv_7_0", "tsv_7_1"]
    assert (folder / "tsv_7_1").read_bytes() == make_case("tsv", 7, 1)
    assert "on purpose" in capsys.readouterr().out
    assert command.main(["--replay", str(folder / "tsv_7_0")]) == 1
    assert command.main([*arguments, "brackets"]) == 0


def test_an_interrupt_ends_all_and_what_was_found_is_shown(tmp_path, monkeypatch):
    class Interrupted(contextlib.AbstractContextManager):
        def __exit__(self, *error):
            pass

        def run(self, name, seed, number):
            if number == 2:
                raise KeyboardInterrupt
            return Outcome("accepted")

    monkeypatch.setattr(command, "Worker", Interrupted)
    assert command.fuzz(["tsv"], 0, tmp_path, cases=5) == {"tsv": {"accepted": 2}}


def test_by_the_clock_all_targets_have_their_turns(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(command.time, "monotonic", lambda: float(next(clock)))
    turns = list(command._turns(["a", "b"], None, minutes=1))
    assert {name for name, _ in turns} == {"a", "b"}
    for name in "ab":
        numbers = [number for other, number in turns if other == name]
        assert numbers == list(range(len(numbers)))


def test_unknown_targets_are_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "there is no target nothing" in capsys.readouterr().err
