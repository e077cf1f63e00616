"""Errors of the library name options where they are printed by a command."""

import argparse

import pytest

from treedot import Forest, Tree
from treedot.cli import main, parser
from treedot.cli.wording import in_options


@pytest.mark.parametrize(
    ("command", "text", "expected"),
    [
        ("train", "it is a model: overwrite=True replaces it", "it is a model: --overwrite replaces it"),
        ("kernel", "too large: use normalize=True", "too large: use --normalize"),
        ("kernel", "normalize=False is right", "--no-normalize is right"),
        ("kernel", "use rest=None or a smaller decay", "use no --rest or a smaller decay"),
        ("kernel", "with decay=0.4.", "with --decay 0.4."),
        ("dups", "threshold must be above 0", "--threshold must be above 0"),
        ("kernel", "decay (λ) must be from 0 to 1", "--decay (λ) must be from 0 to 1"),
        ("kernel", "the decay must be smaller", "the decay must be smaller"),
        ("encode", "n_components must be 256 for composition='mixed'", None),
        ("gram", "n_jobs must not be 0", "--jobs must not be 0"),
        ("explain", "leave it out with find_flip=False", "leave it out with --no-flip"),
        (
            "batch encode",
            "planned with shard_size=1000: remove it",
            "planned with --shard-size 1000: remove it",
        ),
        ("info", "a table: give format='tsv'", "a table: give --format tsv"),
        (
            "dups",
            "a table: give format='tsv'",
            "a table: give format='tsv'",
        ),  # the option of dups is the format of the report
        ("dups", "set the language with language=…", "set the language with --language …"),
        ("info", "choose one with column=…", "choose one with --column …"),
        ("gram", "rows of FragmentVectorizer with budget=4", "rows of --vectors sparse with --budget 4"),
        ("info", "rows of FragmentVectorizer with budget=4", "rows of FragmentVectorizer with budget=4"),
        ("info", "cannot open data/unit=class/a_b.tsv", "cannot open data/unit=class/a_b.tsv"),
        ("info", "cannot open unit=class/a.tsv", "cannot open unit=class/a.tsv"),
        ("encode", "cannot open out/rest_size", "cannot open out/rest_size"),
        ("encode", "my_rest_size and rest_sizes", "my_rest_size and rest_sizes"),
    ],
)
def test_parameters_become_options_where_the_command_has_them(command, text, expected):
    if expected is None:
        expected = "--n-components must be 256 for --composition mixed"
    assert in_options(text, parser_of(command)) == expected


def test_every_command_has_a_help_with_an_example():
    def check(commands, prefix):
        (found,) = (one for one in commands._actions if isinstance(one, argparse._SubParsersAction))
        assert len(found.choices) == len(found._choices_actions) > 4
        for brief, (name, command) in zip(found._choices_actions, found.choices.items(), strict=True):
            assert brief.help[0].islower()
            assert not brief.help.endswith(".")
            if name == "batch":
                check(command, "treedot batch")
            else:
                assert f"{prefix} {name}" in command.epilog
                assert command.description
                for text in filter(None, (option.help for option in command._actions)):
                    assert text.count("(") == text.count(")"), text  # nothing is cut off

    check(parser(), "treedot")


def parser_of(command):
    """Return the parser of a command."""
    found = parser()
    for name in command.split():
        (commands,) = (one for one in found._actions if isinstance(one, argparse._SubParsersAction))
        found = commands.choices[name]
    return found


def test_a_model_in_the_way_is_replaced_by_an_option(tmp_path, capsys):
    table = tmp_path / "trees.tsv"
    table.write_text("class\ttree\n" + "x\t(A b)\ny\t(A c)\n" * 4)
    command = [
        "train",
        str(table),
        "--label",
        "class",
        "-o",
        str(tmp_path / "m"),
        "--decay",
        "0.4",
        "--C",
        "1",
    ]
    assert main(command) == 0
    capsys.readouterr()
    assert main(command) == 1
    assert "to replace the model, use --overwrite" in capsys.readouterr().err


def test_a_missing_column_is_chosen_by_an_option(tmp_path, capsys):
    (tmp_path / "trees.tsv").write_text("a\tb\n1\t(A b)\n")
    assert main(["info", str(tmp_path / "trees.tsv")]) == 1
    assert "choose one of 'a', 'b' with --column …" in capsys.readouterr().err


def test_a_dimension_that_does_not_fit_is_named_by_its_option(capsys):
    assert main(["kernel", "(A b)", "(A b)", "--vectors", "dense", "--n-components", "100"]) == 1
    error = capsys.readouterr().err
    assert "--n-components must be a positive multiple of 256 for --composition mixed, not 100" in error


def test_a_kernel_too_large_for_a_float_is_normalised_by_an_option(tmp_path, capsys):
    tree = Tree("B", ["x"])
    for _ in range(1200):
        tree = Tree("B", [tree, Tree("B", ["x"])])
    Forest.from_trees([tree]).write_brackets(tmp_path / "huge.mrg")
    command = ["gram", str(tmp_path / "huge.mrg"), "-o", str(tmp_path / "gram.npy"), "--decay", "1"]
    for more in ([], ["--vectors", "dense", "--dtype", "float64"]):
        assert main([*command, *more, "--no-normalize"]) == 1
        assert "use --normalize" in capsys.readouterr().err
