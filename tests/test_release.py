"""The files of a release name the same version, dependencies and Python as the package."""

import re
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


def test_continuous_integration_runs_every_supported_python():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    matrix = set(jobs["linux"]["strategy"]["matrix"]["python"])
    supported = {
        line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", line)
    }
    assert supported <= matrix
    assert min(matrix, key=lambda version: int(version[2:])) == PROJECT["requires-python"].removeprefix(">=")
