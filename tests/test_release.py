"""The files of a release name the same version, dependencies and Python as the package."""

import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import treedot

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {"tree-sitter": "py-tree-sitter"}  # of packages that conda calls otherwise


@pytest.fixture
def recipe():
    return yaml.safe_load((ROOT / "conda/recipe.yaml").read_text())


def test_the_conda_recipe_has_the_dependencies_of_the_wheel(recipe):
    wanted = {f"python {PROJECT['requires-python']}"}
    for line in PROJECT["dependencies"]:
        name, bound = re.fullmatch(r"([\w-]+)(>=[\d.]+)", line).groups()
        wanted.add(f"{NAMES.get(name, name)} {bound}")
    assert set(recipe["requirements"]["run"]) == wanted
    (command,) = recipe["build"]["python"]["entry_points"]
    assert command == f"treedot = {PROJECT['scripts']['treedot']}"
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_recipe_citation_and_changelog_name_the_version(recipe):
    assert recipe["context"]["version"] == treedot.__version__
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == treedot.__version__
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first[1] == treedot.__version__


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="needs a repository")
def test_git_ignores_what_the_readme_and_the_examples_write():
    written = re.findall(r"^treedot .* (?:-o|--html) (\S+)", (ROOT / "README.md").read_text(), re.MULTILINE)
    for script in (ROOT / "examples").glob("*.py"):
        made = re.findall(r'options\.out / "([^"]+)"', script.read_text())
        written += [*made, *(f"examples/{name}" for name in made)]
    assert len(written) > 20
    given = "\n".join([*written, "sample/x", "examples/sample/x"])
    done = subprocess.run(
        ["git", "check-ignore", "--stdin"], cwd=ROOT, input=given, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == given.splitlines()
    tracked = ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(tracked, cwd=ROOT, capture_output=True, text=True, check=True).stdout == ""


def test_the_package_and_the_documentation_have_the_same_questions():
    packaged = ROOT / "src/treedot/serve/questions.tsv"
    shown = ROOT / "docs/examples/questions.tsv"
    assert not shown.is_symlink()  # which a checkout on Windows may not have
    assert shown.read_bytes() == packaged.read_bytes()


def test_the_page_of_the_package_has_absolute_links_to_files_of_its_version(monkeypatch):
    given = {}
    setuptools = pytest.importorskip("setuptools")
    monkeypatch.setattr(setuptools, "setup", given.update)
    base = "https://example.org/trees/treedot"
    monkeypatch.setenv("TREEDOT_REPOSITORY", base)
    runpy.run_path(str(ROOT / "setup.py"))
    text = given["long_description"]
    assert given["project_urls"]["Repository"] == base
    shown = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)
    links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)]*)\)", text)
    assert len(shown) == 4
    assert len(links) > 30
    for kind, targets in (("raw", shown), ("blob", links)):
        for target in targets:
            start = f"{base}/{kind}/v{treedot.__version__}/"
            assert target.startswith(start)
            assert (ROOT / target.removeprefix(start).partition("#")[0]).exists()


def test_continuous_integration_runs_every_supported_python():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    matrix = set(jobs["linux"]["strategy"]["matrix"]["python"])
    supported = {
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)
    }
    assert supported <= matrix
    assert min(matrix, key=lambda version: int(version[2:])) == PROJECT["requires-python"].removeprefix(">=")
