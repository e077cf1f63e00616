import signal
import subprocess
import sys

import httpx
import pytest

from treedot import TreeClassifier, TreeIndex
from treedot.cli import main
from treedot.models import TreeMetric
from treedot.serve.answers import Given


def test_the_command_prints_its_address_answers_and_ends_on_a_signal():
    command = [sys.executable, "-m", "treedot", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        try:
            assert httpx.get(address, timeout=60, trust_env=False).status_code == 200
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--index", "nothing.index"], "no such file"),
        (["--model", "nothing.model"], "no such file"),
        (["--index", "."], "is a folder: give a file that treedot index wrote"),
        (["--model", "."], "is not a model: give a folder that treedot train wrote"),
        (["--origin", "trees.example.org"], "--origin must be like https"),
        (["--origin", "https://trees.example.org/path"], "--origin must be like https"),
        (["--port", "-1"], "--port must be"),
        (["--port", "65536"], "--port must be at most 65535"),
    ],
)
def test_bad_options_are_reported(options, message, capsys):
    assert main(["serve", *options]) == 1
    assert message in capsys.readouterr().err


def test_only_an_index_and_a_model_are_served(tmp_path, monkeypatch, capsys):
    trees, classes = ["(S (A a))", "(S (A b))", "(T (B c))", "(T (B d))"], ["S", "S", "T", "T"]
    index, model, metric = (str(tmp_path / name) for name in ("index", "model", "metric"))
    TreeIndex.build(trees, index)
    TreeClassifier().fit(trees, classes).save(model)
    TreeMetric(n_columns=64, shrinkage=1.0).fit(trees, classes).metric_.save(metric)
    served = []
    monkeypatch.setattr("treedot.serve.server.serve", lambda port, given, *others: served.append(given))
    assert main(["serve", "--index", index, "--model", model]) == 0
    assert served == [Given(index, model)]
    wrong = [
        ("--model", metric),
        ("--model", index),
        ("--index", __file__),
        ("--index", f"{metric}/config.json"),
    ]
    for options in wrong:
        assert main(["serve", *options]) == 1
        assert f"{options[1]} is not a" in capsys.readouterr().err
    assert len(served) == 1


def test_a_port_that_is_taken_is_reported(site, capsys):
    assert main(["serve", "--port", str(site.base_url.port)]) == 1
    assert "choose another" in capsys.readouterr().err
