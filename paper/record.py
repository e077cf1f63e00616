"""Results as JSON files that grow step by step, so that nothing finished is computed again."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from treedot._runtime.timing import Stopwatch, timed
from treedot._storage.files import write_whole
from treedot.errors import SourceError

Step = Callable[["Record"], Any]


def alone(work: Callable[..., Any], *arguments: Any) -> Step:
    """Return a step that needs none of the results before it."""
    return lambda _: work(*arguments)


class Record(Mapping[str, Any]):
    """The results of one experiment by step, kept in a file.

    Parameters
    ----------
    path : Path
        The JSON file. What it holds is taken over; it must have been made alike.
    made : dict
        Everything that the results depend on: settings, data, versions.
    command : str
        How to make the file again.
    """

    def __init__(self, path: Path, made: dict[str, Any], command: str) -> None:
        self.path = path
        self.made = json.loads(json.dumps(made))
        self.command = command
        self.steps: dict[str, dict[str, Any]] = {}
        if path.is_file():
            kept = _read(path)
            if kept.get("made") != self.made:
                raise SourceError(
                    f"{path} was made with other {_difference(kept.get('made'), self.made)}: remove it to "
                    "measure anew, or choose another folder"
                )
            self.steps = kept["steps"]

    def __getitem__(self, key: str) -> Any:
        return self.steps[key]["result"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def seconds(self) -> float:
        """What the steps took in all."""
        return float(sum(step["seconds"] for step in self.steps.values()))

    def run(self, key: str, step: Step) -> None:
        """Compute a step and write the file anew, whole."""
        result, seconds = timed(lambda: json.loads(json.dumps(step(self))))
        self.steps[key] = {"seconds": round(seconds, 3), "result": result}
        content = {"made": self.made, "command": self.command, "steps": self.steps}
        with write_whole(self.path) as aside:
            aside.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")

    def complete(self, name: str, plan: Mapping[str, Step], say: Callable[[str], object]) -> None:
        """Compute the steps that are missing, with lines of progress."""
        todo = [key for key in plan if key not in self]
        if len(todo) < len(plan):
            say(f"{name}: {len(plan) - len(todo)} of {len(plan)} steps are there already")
        watch = Stopwatch()
        for done, key in enumerate(todo):
            passed = watch.seconds
            left = f", about {clock(passed / done * (len(todo) - done))} left" if done else ""
            say(f"{name}: step {done + 1} of {len(todo)}, {key} ({clock(passed)}{left})")
            self.run(key, plan[key])
        say(f"{name}: done in {clock(watch.seconds)}")


def clock(seconds: float) -> str:
    """Return minutes and seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the libraries that results depend on."""
    return {
        "python": platform.python_version(),
        **{package: _version(package) for package in ("numpy", "scipy", "scikit-learn", "numba")},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and isinstance(content.get("steps"), dict):
            return content
    except ValueError:
        pass
    raise SourceError(f"{path} is no file of results: remove it, or choose another folder")


def _difference(old: Any, new: dict[str, Any]) -> str:
    return ", ".join(key for key in new if not isinstance(old, dict) or old.get(key) != new[key])
