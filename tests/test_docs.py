"""The documentation against the package: names, links and pages."""

import importlib
import json
import os
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import treedot
from components import is_installed
from treedot.cli import main, parser
from treedot.cli.dups import SETTINGS
from treedot.clones import report
from treedot.models import explain
from treedot.vectors import fidelity, gpu

ROOT = Path(__file__).parent.parent
PACKAGES = ("batch", "clones", "errors", "kernels", "models", "readers", "search", "trees", "vectors")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_reference_has_every_public_name_and_no_other():
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    _, *parts = re.split(r"^\.\. currentmodule:: (\S+)$", text, flags=re.M)
    sections = zip(parts[::2], parts[1::2], strict=True)
    listed = [(module, name) for module, part in sections for name in re.findall(r"^   (\w+)$", part, re.M)]
    packages = [getattr(treedot, name) for name in dir(treedot) if name in PACKAGES]
    assert len(packages) == len(PACKAGES)
    public = [("treedot", name) for name in treedot.__all__]
    if is_installed("torch"):
        packages.append(importlib.import_module("treedot.torch"))
    else:
        listed = [(module, name) for module, name in listed if module != "treedot.torch"]
    for module in (*packages, explain, fidelity, gpu, report):
        names = getattr(module, "__all__", [name for name in vars(module) if name.endswith("Error")])
        public += [(module.__name__, name) for name in set(names) - on_top(module)]
    assert sorted(listed) == sorted(public)


def on_top(module):
    """Return the names of a module that ``treedot`` itself has."""
    return {name for name in treedot.__all__ if getattr(treedot, name) is getattr(module, name, None)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page):
    for target in re.findall(r"\]\(([^)#\s]*)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert not target or (page.parent / target).exists(), target
    for target, heading in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", page.read_text(encoding="utf-8")):
        text = (page.parent / target if target else page).read_text(encoding="utf-8")
        slugs = [
            re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
            for title in re.findall(r"^#+ (.*)$", text, re.M)
        ]
        assert heading in slugs


def test_the_settings_on_the_page_are_those_of_the_command():
    text = (ROOT / "docs/duplicates.md").read_text(encoding="utf-8")
    (settings,) = blocks(text, "toml")
    shown = tomllib.loads(settings)["tool"]["treedot"]["dups"]
    assert {name.replace("-", "_") for name in shown} <= set(SETTINGS)
    listed = re.search(r"The settings are (.*)\.", text)[1]
    assert re.findall("`(.*?)`", listed) == [name.replace("_", "-") for name in SETTINGS]


def test_recipes_for_ci_and_commits_can_be_read_and_name_what_exists():
    yaml = pytest.importorskip("yaml")
    job, annotating, gitlab, hooks = map(
        yaml.safe_load, blocks((ROOT / "docs/duplicates.md").read_text(encoding="utf-8"), "yaml")
    )
    commands = [step["run"] for step in job["jobs"]["dups"]["steps"] + annotating if "run" in step]
    commands += gitlab["near-duplicates"]["script"]
    asked = [shlex.split(command) for command in commands if command.startswith("treedot dups")]
    found = [parser("dups").parse_args(arguments[1:]) for arguments in asked]
    assert [(options.format, options.output) for options in found] == [
        (None, "dups.sarif"),
        ("github", None),
        ("gitlab", "dups.json"),
    ]
    assert all(options.changed_since and options.fail_on_new for options in found)
    assert gitlab["near-duplicates"]["artifacts"]["reports"]["codequality"] == "dups.json"
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hooks["repos"][0]["hooks"][0]["id"] == hook["id"]


def test_entries_for_coding_agents_start_the_server():
    text = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    found = [*map(json.loads, blocks(text, "json")), *map(tomllib.loads, blocks(text, "toml"))]
    assert [list(one) for one in found] == [["mcpServers"], ["servers"], ["mcp_servers"]]
    for entry in (one["treedot"] for servers in found for one in servers.values()):
        program, *arguments = entry["command"], *entry["args"]
        assert (program, parser("mcp").parse_args(arguments).command) == ("treedot", "mcp")


def test_the_commands_of_the_tutorial_run(tmp_path, monkeypatch, capsys):
    (commands,) = blocks((ROOT / "docs/tutorial.md").read_text(encoding="utf-8"), "sh")
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    monkeypatch.chdir(tmp_path)
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert (program, main(arguments)) == ("treedot", 0)
    assert "accuracy 1.000" in capsys.readouterr().out
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"docs", "questions.model", "evaluation.html", "explanation.html", "classes.tsv"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_command_line_understands_every_command(page, monkeypatch):
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "1")
    text = page.read_text(encoding="utf-8")
    for line in re.findall("^treedot .*$", "".join(blocks(text, "") + blocks(text, "sh")), re.M):
        arguments = shlex.split(os.path.expandvars(line), comments=True)[1:]
        assert parser(arguments[0]).parse_args(arguments), line


def test_no_page_has_the_name_of_one_that_the_site_makes_itself():
    assert not {page.stem for page in PAGES} & {"genindex", "py-modindex", "search"}


def blocks(text, language):
    return [
        block
        for name, block in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, re.M | re.S)
        if name == language
    ]
