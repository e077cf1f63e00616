"""Install the wheel that ``make dist`` built as a stranger would, and do what the README shows.

A fresh environment without extras, and a folder outside the checkout: there the README's classification runs
as a doctest, then each of its commands, and those that need an optional part say what to install. What they
call is compiled on the way; what ``treedot compile`` compiles ahead is for the tests.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

EXAMPLE = "docs/examples/questions.tsv"
FUNCTION = """def {}(rows, limit):
    found = {{}}
    for row in rows:
        if row.size > limit and row.name not in found:
            found[row.name] = row.size * 2 + len(row.parts)
    return sorted(found.items(), key=lambda item: -item[1])
"""
CODE = {
    "src/one.py": "one",
    "src/two.py": "two",
    "lib/three.py": "three",
    "query.py": "four",
    "a.py": "load",
    "b.py": "read",
}
WITH_EXTRAS = (
    "batch encode trees.tsv -o parts/",
    "convert site/ -o pages.parquet",
    "info trees.parquet",
)


def main(folder: str) -> None:
    """Try the one wheel of a folder."""
    (wheel,) = Path(folder).resolve().glob("*.whl")
    readme = Path("README.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        venv.create(home / "env", with_pip=True)
        python, command = str(home / "env/bin/python"), str(home / "env/bin/treedot")
        run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)], home)
        (home / EXAMPLE).parent.mkdir(parents=True)
        shutil.copy(EXAMPLE, home / EXAMPLE)
        shutil.copy(EXAMPLE, home / "trees.tsv")
        for file in ("trees.parquet", "site/page.html"):
            (home / file).parent.mkdir(exist_ok=True)
            (home / file).touch()
        for file, function in CODE.items():
            (home / file).parent.mkdir(exist_ok=True)
            (home / file).write_text(FUNCTION.format(function), encoding="utf-8")
        (home / "classify.md").write_text(section(readme, "Classify and explain"), encoding="utf-8")
        run([python, "-m", "doctest", "classify.md"], home)
        commands = [line for line in commands_in(readme) if line not in WITH_EXTRAS]
        for line in [*commands, "check", "demo --functions 300"]:
            print(run([command, *shlex.split(line)], home), end="")
        for line in WITH_EXTRAS:
            said = run([command, *line.split()], home, code=1)
            if "with the extra '" not in said:
                sys.exit(f"treedot {line} does not say what to install: {said}")
        if not (home / "demo/index.html").is_file():
            sys.exit("treedot demo wrote no page")
    print(f"{wheel.name}: the README's classification and {len(commands)} commands work without extras")


def commands_in(text: str) -> list[str]:
    """Return the arguments of each ``treedot`` command in blocks of commands, without comments."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    commands = [line.removeprefix("treedot ") for line in lines if line.startswith("treedot ")]
    return [line.partition("#")[0].strip() for line in commands]


def section(text: str, title: str) -> str:
    """Return the text of the section with a heading."""
    found = re.search(rf"^## {title}\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
    if found is None or ">>>" not in found[1]:
        sys.exit(f"README.md has no example under {title!r}")
    return found[1]


def run(line: list[str], folder: Path, code: int = 0) -> str:
    """Run a command in a folder, without the checkout on the path; return what it printed."""
    clean = {name: x for name, x in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
    done = subprocess.run(
        line, cwd=folder, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != code:
        sys.exit(f"{shlex.join(line)} ended with {done.returncode}, not {code}:\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    main(*sys.argv[1:])
