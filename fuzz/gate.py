"""Run sequences of edits through ``treedot dups --fail-on-new``; compare each verdict with an oracle.

A sequence is a git repository of generated functions that are copied, edited, renamed, moved, repeated and
deleted, commit by commit. Before each commit the command runs with ``--changed-since HEAD``, with
``--baseline``, and with both. A brute-force comparison of all functions, which knows each edit, decides
whether it must fail, and which functions may lead a group of the report: ``python -m fuzz.gate --sequences
60 --seed 1``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz.gate_oracle import Now, Pair, changed_units, new_pairs
from fuzz.gate_project import EDITS, Project
from treedot.cli import main as treedot

STEPS = 8
BASELINE = "known.json"
IDENTITY = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "core.autocrlf=false")


Place = tuple[str, int]  # a file and the first line of a function


class Verdict(NamedTuple):
    """The verdict of the gate on one step."""

    edit: str
    options: tuple[str, ...]
    expected: int
    found: int
    shown: list[list[Place]]  # places of the members of groups
    missing: Sequence[str] = ()  # changed functions that are not shown with their best partner
    elsewhere: Sequence[Place] = ()  # first members of groups that are not the reason for their group

    @property
    def is_right(self) -> bool:
        """Whether the verdict of the gate is right."""
        return self.expected == self.found and not self.missing and not self.elsewhere


def sequence(random: Random, folder: Path, steps: int = STEPS) -> Iterator[Verdict]:
    """Yield the verdicts of one sequence of edits in a new repository."""
    project = Project(random)
    with contextlib.chdir(folder):
        _git("init", "-q")
        _commit(project)
        before = known = Now(project)
        _dups("--write-baseline", BASELINE)
        for _ in range(steps):
            edit = random.choice(EDITS)
            edit(project)
            project.write(Path("src"))
            now = Now(project)
            changed, new = changed_units(now, before), new_pairs(now, known)
            since, known_by = ("--changed-since", "HEAD"), ("--baseline", BASELINE)
            verdict = _verdict(edit.__name__, now, _touched(now.near, changed), changed, *since)
            yield verdict._replace(missing=now.not_shown(changed, verdict.shown))
            yield _verdict(edit.__name__, now, new, range(len(now.uid)), *known_by)
            yield _verdict(edit.__name__, now, _touched(new, changed), changed, *since, *known_by)
            _commit(project)
            before = now
            if new or not known.is_all_in(now) or random.random() < 0.3:
                _dups("--write-baseline", BASELINE)
                known = now


def _touched(pairs: Iterable[Pair], changed: Sequence[int]) -> list[Pair]:
    return [pair for pair in pairs if not set(pair).isdisjoint(changed)]


def _verdict(
    edit: str, now: Now, pairs: Collection[Pair], changed: Collection[int], *options: str
) -> Verdict:
    """Run the gate; ``pairs`` are those that it must report, each at a member that is ``changed``."""
    code, groups = _dups("--fail-on-new", *options)
    shown = [[(m["file"], m["start"]) for m in group["members"]] for group in groups]
    ends = {pair for a, b in pairs for pair in ((a, b), (b, a)) if pair[0] in changed}
    reasons = {(now.places[a][:2], now.places[b][:2]) for a, b in ends}
    elsewhere = [first for first, *rest in shown if not any((first, other) in reasons for other in rest)]
    return Verdict(edit, options, int(bool(pairs)), code, shown, elsewhere=elsewhere)


def _dups(*options: str) -> tuple[int, list[dict[str, Any]]]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = treedot(["dups", "src", "--format", "json", "-j", "1", *options])
    if code not in (0, 1):
        raise RuntimeError(err.getvalue())
    # With --write-baseline nothing is printed.
    return code, json.loads(out.getvalue())["groups"] if out.getvalue() else []


def _commit(project: Project) -> None:
    project.write(Path("src"))
    _git("add", "-A")
    _git("commit", "-q", "--allow-empty", "-m", "x")


def _git(*arguments: str) -> None:
    subprocess.run(["git", *IDENTITY, *arguments], check=True, capture_output=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run sequences; return 1 if a verdict was wrong."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.gate", description=__doc__)
    parser.add_argument("--sequences", type=int, default=60, help="sequences (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=STEPS, help="edits per sequence (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="seed of the sequences (default: from the clock)")
    options = parser.parse_args(arguments)
    seed = int(time.time()) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    counts: Counter[str] = Counter()
    for number in range(options.sequences):
        with tempfile.TemporaryDirectory() as folder:
            for step, verdict in enumerate(sequence(Random(f"{seed} {number}"), Path(folder), options.steps)):
                counts["failed" if verdict.expected else "passed"] += 1
                if not verdict.is_right:
                    counts["wrong"] += 1
                    print(f"sequence {number}, verdict {step}: {verdict}", flush=True)
    print(
        f"{counts.total() - counts['wrong']:,} verdicts, {counts['failed']:,} to fail and "
        f"{counts['passed']:,} to pass; {counts['wrong']:,} were wrong"
    )
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
