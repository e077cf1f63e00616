"""The commands that learn: train, predict, evaluate and explain."""

import csv
import json
import os

import pytest

from treedot import LinearModel, TreeClassifier, explain, read_trees
from treedot.cli import main

QUESTIONS = "docs/examples/questions.tsv"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    target = folder / "questions"
    options = ["--decay", "0.4", "0.2", "--C", "1", "10", "--cv", "3", "-j", "1"]
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(target), *options]) == 0
    assert os.listdir(folder) == ["questions"]
    return target


def test_train_writes_the_model_of_the_estimator(model):
    forest = read_trees(QUESTIONS)
    wanted = TreeClassifier(decay=(0.2, 0.4), C=(1, 10), cv=3).fit(forest, forest.columns["label"])
    found = LinearModel.load(model)
    assert (found.decision_function(forest) == wanted.decision_function(forest)).all()
    assert found.facts["data"]["trees"] == len(forest)
    tried = [(trial["C"], trial["words"]) for trial in found.facts["training"]["trials"]]
    assert sorted(tried) == [(C, words) for C in (1, 10) for words in (False, True) for _ in range(8)]


def test_train_says_what_it_found(tmp_path, capsys):
    options = ["--decay", "0.4", "--C", "1", "10", "--balanced", "--budget", "3"]
    options += ["--words", "no", "--labels", "no", "--idf", "no"]
    assert main(["train", QUESTIONS, QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), *options]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("600 trees of ")
    assert said[1].split() == ["accuracy", "folds", "examples", "settings"]
    assert said[2].endswith(", balanced")
    assert len(said) == 5  # two trials, and the choice
    assert said[-1].startswith(f"{tmp_path / 'm'}: decay 0.4, C 1")
    assert LinearModel.load(tmp_path / "m").inputs[0].rows.spec.budget == 3


def test_train_chooses_columns_beside_the_fragments(tmp_path, capsys):
    options = ["--words", "choose", "--idf", "choose", "--labels", "no", "--decay", "0.4", "0.2"]
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), *options]) == 0
    said = capsys.readouterr().out
    assert said.count("decay 0.") == 5 + 1
    assert "  and 27 more\n" in said
    training = LinearModel.load(tmp_path / "m").facts["training"]
    assert (", words" in said.splitlines()[-1]) == training["words"]
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "n"), "--words", "yes"]) == 0
    assert LinearModel.load(tmp_path / "n").facts["training"]["words"] is True
    streamed = ["--words", "yes", "--checkpoint", str(tmp_path / "c")]
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "o"), *streamed]) == 1
    assert "--words needs all trees in memory: remove --checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options", [["--damping", "log1p"], ["--budget", "3"], ["--n-features", "2^20"], ["--seed", "1"]]
)
def test_an_option_of_rows_fixes_only_its_own_setting(options, tmp_path, capsys):
    command = ["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), "--cv", "2"]
    command += ["--C", "1", "10"]
    assert main([*command, *options]) == 0
    training = LinearModel.load(tmp_path / "m").facts["training"]
    assert len(training["trials"]) == 2 * 2 * 2**3  # decay, C; words, labels and idf
    assert training["damping"] == ("log1p" if "log1p" in options else None)
    assert capsys.readouterr().out.count("log1p") == (6 if "log1p" in options else 0)
    fixed = [*command, "--overwrite", *options, "--words", "no", "--decay", "0.4"]
    assert main(fixed) == 0
    training = LinearModel.load(tmp_path / "m").facts["training"]
    assert (training["words"], training["decay"], len(training["trials"])) == (False, 0.4, 2 * 2**2)


@pytest.mark.parametrize("options", [["--rest", "blocks", "--budget", "3"], ["--kernel", "bounded"]])
def test_a_rest_and_a_kernel_are_taken_as_they_are(options, tmp_path):
    command = ["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), "--cv", "2"]
    assert main([*command, "--decay", "0.4", "--C", "1", "10", *options]) == 0
    assert len(LinearModel.load(tmp_path / "m").facts["training"]["trials"]) == 2


def test_damping_is_chosen_from_several_values(tmp_path, capsys):
    command = ["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), "--C", "1"]
    command += ["--decay", "0.4"]
    for given, wanted in ((["choose"], ["linear", "sqrt", "log1p"]), (["sqrt", "log1p"], ["sqrt", "log1p"])):
        assert main([*command, "--overwrite", "--damping", *given]) == 0
        training = LinearModel.load(tmp_path / "m").facts["training"]
        assert sorted(trial["damping"] for trial in training["trials"]) == sorted(wanted)
        assert f"C 1, {training['damping']}\n" in capsys.readouterr().out
        assert LinearModel.load(tmp_path / "m").inputs[0].rows.spec.damping == training["damping"]
    assert main([*command, "--overwrite", "--kernel", "subset", "--damping", "sqrt", "log1p"]) == 1
    assert "--damping has no effect with --kernel subset" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_class_of_one_tree_leaves_nothing_to_choose_by(tmp_path, capsys):
    path = tmp_path / "trees.tsv"
    path.write_text("label\ttree\na\t(A b)\na\t(A c)\nb\t(B b)\n")
    assert main(["train", str(path), "--class", "label", "-o", str(tmp_path / "m")]) == 0
    said = capsys.readouterr()
    assert said.err.startswith("treedot: a class has a single tree, so no settings can be chosen")
    assert said.out.endswith("decay 0.4, C 10\n")


def test_another_score_chooses_settings(tmp_path, capsys):
    options = ["--decay", "0.4", "--C", "1", "10", "--words", "no", "--idf", "no", "--labels", "no"]
    options += ["--scoring", "neg_log_loss", "--no-balanced"]
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), *options]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "neg_log_loss"
    training = LinearModel.load(tmp_path / "m").facts["training"]
    assert training["scoring"] == "neg_log_loss"
    assert all(trial["score"] < 0 for trial in training["trials"])


def test_an_existing_model_is_replaced_only_where_that_is_asked(model, capsys):
    command = ["train", QUESTIONS, "--class", "label", "-o", str(model), "--decay", "0.2", "--C", "1"]
    before = (model / "config.json").read_bytes()
    assert main(command) == 1
    assert "it exists; to replace the model" in capsys.readouterr().err
    assert (model / "config.json").read_bytes() == before


def test_info_describes_a_model(model, capsys):
    assert main(["info", str(model), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    found = LinearModel.load(model)
    assert facts["file"] == "a model (LinearModel.load)"
    assert facts["classes"] == found.classes.tolist()
    assert facts["input 1"]["fingerprint"] == found.inputs[0].rows.fingerprint
    assert facts["trained on"] == "300 trees"


def test_groups_stay_on_one_side(tmp_path, capsys):
    table = tmp_path / "trees.tsv"
    lines = [f"{k % 2}\t{k % 3}\t(A (B b{k % 2}) (C c{k}))" for k in range(30)]
    table.write_text("\n".join(["label\tdocument\ttree", *lines]) + "\n")
    command = ["train", str(table), "--class", "label", "-o", str(tmp_path / "m"), "--group", "document"]
    assert main([*command, "--cv", "3"]) == 0
    assert main([*command, "--overwrite"]) == 1
    assert "--cv 5 needs at least 5 groups" in capsys.readouterr().err


def test_classes_of_one_tree_each_are_nothing_to_learn_from(tmp_path, capsys):
    table, model = tmp_path / "ids.tsv", tmp_path / "ids.model"
    table.write_text("id\ttree\n" + "".join(f"q{k}\t(S (A a{k}))\n" for k in range(30)))
    assert main(["train", str(table), "--class", "id", "-o", str(model)]) == 1
    assert "column 'id' has 30 classes of one tree each, which teach" in capsys.readouterr().err
    assert not model.exists()


def test_predict_prints_a_class_per_tree(model, tmp_path, capsys):
    forest, found = read_trees(QUESTIONS), LinearModel.load(model)
    assert main(["predict", str(model), QUESTIONS]) == 0
    assert capsys.readouterr().out.splitlines() == found.predict(forest).tolist()
    target = tmp_path / "scores.tsv"
    assert main(["predict", str(model), QUESTIONS, "--scores", "-o", str(target)]) == 0
    head, first, *_ = (line.split("\t") for line in target.read_text().splitlines())
    assert head == ["label", "predicted", *(f"score_{name}" for name in found.classes)]
    assert first[:2] == [forest.columns["label"][0], found.predict(forest[[0]])[0]]
    assert [float(score) for score in first[2:]] == pytest.approx(
        found.decision_function(forest[[0]])[0], abs=1e-6
    )


def test_a_written_table_keeps_the_columns_of_the_input(model, tmp_path, capsys):
    trees = ["(SBARQ (WHNP (WP Who)) (SQ (VBD wrote)))", "(SBARQ (WHADVP (WRB Where)) (SQ (VBZ is)))"]
    source, target = tmp_path / "in.jsonl", tmp_path / "out.csv"
    rows = [{"id": 7, "class": "x", "tree": trees[0], "note": 'a, "b"'}, {"id": 8, "tree": trees[1]}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["predict", str(model), str(source), "-o", str(target)]
    assert main(command) == 0
    with target.open(newline="") as file:
        head, *found = csv.reader(file)
    predicted = LinearModel.load(model).predict(trees).tolist()
    assert head == ["id", "class", "note", "predicted"]
    assert found == [["7", "x", 'a, "b"', predicted[0]], ["8", "", "", predicted[1]]]
    assert main(["predict", str(model), *trees, "-o", str(tmp_path / "bare.tsv")]) == 0
    assert (tmp_path / "bare.tsv").read_text().splitlines() == ["predicted", *predicted]
    assert main(["predict", str(model), str(source), "--scores"]) == 0
    head, first, _ = (line.split("\t") for line in capsys.readouterr().out.splitlines())
    assert head[:2] == ["predicted", "score_definition"]
    assert first[0] == predicted[0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["id\tpredicted\ttree", "1\tx\t(A b)"], "has a column 'predicted' already, which would be written"),
        (["other\ttree", "1\t(A b)"], "has no column 'id', unlike the trees before it"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(model, tmp_path, capsys, rows, message):
    first, second = tmp_path / "first.tsv", tmp_path / "second.tsv"
    first.write_text("id\ttree\n1\t(A b)\n")
    second.write_text("\n".join(rows) + "\n")
    sources = [str(second)] if "predicted" in rows[0] else [str(first), str(second)]
    assert main(["predict", str(model), *sources, "-o", str(tmp_path / "out.tsv")]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.tsv").exists()


def test_a_tab_in_a_value_needs_a_file_with_quotes(model, tmp_path, capsys):
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"note": "a\tb", "tree": "(A b)"}) + "\n")
    assert main(["predict", str(model), str(source), "-o", str(tmp_path / "out.tsv")]) == 1
    assert "it holds a tab or a line break: use -o FILE.csv" in capsys.readouterr().err
    assert main(["predict", str(model), str(source), "-o", str(tmp_path / "out.csv")]) == 0


def test_evaluate_prints_text_json_and_a_page(model, tmp_path, capsys):
    page = tmp_path / "page.html"
    command = ["evaluate", str(model), QUESTIONS, "--class", "label"]
    assert main([*command, "--html", str(page)]) == 0
    text = capsys.readouterr().out
    assert "accuracy 1.000 (95 %: 0.987 to 1.000) on 300 trees" in text
    assert "true class in rows" in text
    assert "Confusion matrix" in page.read_text()
    assert main([*command, "--json", "--against", str(model)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["accuracy"], found["against"]["p_value"], found["mistakes"]) == (1.0, 1.0, [])


def test_evaluate_takes_the_column_that_the_model_remembers(model, tmp_path, capsys):
    assert LinearModel.load(model).class_column == "label"
    assert main(["evaluate", str(model), QUESTIONS, "--json"]) == 0
    remembered = capsys.readouterr().out
    for option in ("--class", "--label"):
        assert main(["evaluate", str(model), QUESTIONS, option, "label", "--json"]) == 0
        assert capsys.readouterr().out == remembered
    assert main(["evaluate", str(model), QUESTIONS, "--class", "kind"]) == 1
    assert "there is no column 'kind'" in capsys.readouterr().err


@pytest.fixture(scope="module")
def parses(tmp_path_factory):
    """Return a folder of tables with the trees in different columns, and of a model of one of them."""
    folder = tmp_path_factory.mktemp("parses")
    forest = read_trees(QUESTIONS)
    rows = [(f"q{k}", forest.columns["label"][k], str(forest[k])) for k in range(60)]
    for name, head in (("a.tsv", "id\tkind\tparse"), ("b.tsv", "id\tkind\ttree")):
        (folder / name).write_text("\n".join([head, *map("\t".join, rows)]) + "\n")
    (folder / "a.jsonl").write_text(
        "".join(
            json.dumps({"id": i, "kind": kind, "parse": tree, "tree": "(X y)"}) + "\n"
            for i, kind, tree in rows
        )
    )
    command = [
        "train",
        str(folder / "a.tsv"),
        "--class",
        "kind",
        "--column",
        "parse",
        "-o",
        str(folder / "m"),
    ]
    assert main([*command, "--decay", "0.2", "--C", "1"]) == 0
    return folder


@pytest.mark.parametrize("table", ["a.tsv", "b.tsv", "a.jsonl"])
def test_a_model_remembers_its_tree_column_and_takes_it_from_tables_that_have_it(parses, capsys, table):
    model, table = str(parses / "m"), str(parses / table)
    assert LinearModel.load(model).tree_column == "parse"
    wanted = LinearModel.load(model).predict(read_trees(parses / "b.tsv")).tolist()
    capsys.readouterr()
    assert main(["predict", model, table]) == 0
    assert capsys.readouterr().out.splitlines() == wanted
    assert main(["evaluate", model, table, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trees"] == 60
    assert main(["explain", model, table, "--where", "id=q7", "--json"]) == 0
    by_id = capsys.readouterr().out
    assert main(["explain", model, table, "--number", "8", "--json"]) == 0
    assert capsys.readouterr().out == by_id
    assert main(["explain", model, str(read_trees(parses / "b.tsv")[7]), "--json"]) == 0
    assert capsys.readouterr().out == by_id


def test_a_column_that_is_given_counts_more_than_the_one_a_model_remembers(parses, capsys):
    model = str(parses / "m")
    assert main(["predict", model, str(parses / "a.jsonl"), "--column", "tree"]) == 0
    assert len(set(capsys.readouterr().out.splitlines())) == 1  # all trees are (X y)
    assert main(["predict", model, str(parses / "b.tsv"), "--column", "parse"]) == 1
    assert "there is no column 'parse'" in capsys.readouterr().err


def test_a_model_that_is_trained_on_streamed_trees_remembers_its_column(parses, tmp_path):
    command = [
        "train",
        str(parses / "a.tsv"),
        "--class",
        "kind",
        "--column",
        "parse",
        "-o",
        str(tmp_path / "m"),
    ]
    assert (
        main([*command, "--checkpoint", str(tmp_path / "c"), "--decay", "0.2", "--C", "1", "--passes", "1"])
        == 0
    )
    assert LinearModel.load(tmp_path / "m").tree_column == "parse"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--where", "q7"], "--where needs a column and a value, such as id=q17, not 'q7'"),
        (["--where", "number=7"], "there is no column 'number'; the columns are 'id', 'kind'"),
        (["--where", "id=q60"], "has no tree with id=q60"),
        (["--where", "id=q7", "--number", "2"], "has 1 tree with id=q7"),
    ],
)
def test_a_row_that_is_not_there_is_not_explained(parses, capsys, options, message):
    assert main(["explain", str(parses / "m"), str(parses / "a.tsv"), *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:a class has a single tree")
def test_a_few_rare_numbers_are_classes_and_a_note_names_regress(tmp_path, capsys):
    table = tmp_path / "t.tsv"
    table.write_text("size\ttree\n" + "".join(f"{k % 11}.5\t(A (B b{k}) c)\n" for k in range(12)))
    command = ["train", str(table), "--class", "size", "-o", str(tmp_path / "m"), "--overwrite"]
    said = "column 'size' is taken for classes: use --regress to predict its numbers"
    assert main(command) == 0
    assert said in capsys.readouterr().err
    assert main([*command, "--classify"]) == 0
    assert said not in capsys.readouterr().err
    assert main([*command, "--regress"]) == 0


def test_evaluate_asks_for_the_column_of_a_model_that_names_none(model, tmp_path, capsys):
    TreeClassifier.load(model).save(tmp_path / "nameless")
    assert LinearModel.load(tmp_path / "nameless").class_column is None
    assert main(["evaluate", str(tmp_path / "nameless"), QUESTIONS]) == 1
    assert "nameless does not name its column of classes: give --class" in capsys.readouterr().err
    assert main(["evaluate", str(model), QUESTIONS, "--against", str(tmp_path / "nameless")]) == 0


def test_two_models_of_different_classes_are_compared_by_a_column_that_is_given(model, tmp_path, capsys):
    forest = read_trees(QUESTIONS)
    table = tmp_path / "two.tsv"
    lines = [f"{name}\t{name}\t{tree}" for name, tree in zip(forest.columns["label"], forest, strict=True)]
    table.write_text("\n".join(["label\tkind\ttree", *lines]) + "\n")
    other, settings = str(tmp_path / "other"), ["--decay", "0.2", "--C", "1"]
    assert main(["train", str(table), "--class", "kind", "-o", other, *settings]) == 0
    command = ["evaluate", str(model), str(table), "--against", other]
    assert main(command) == 1
    assert "in column 'label', " in capsys.readouterr().err
    assert main([*command, "--class", "kind"]) == 0


def test_weights_are_a_column(tmp_path, capsys):
    forest = read_trees(QUESTIONS)
    weight = [float(k % 3) for k in range(len(forest))]
    table, target = tmp_path / "t.tsv", tmp_path / "m"
    lines = [f"{c}\t{w}\t{t}" for c, w, t in zip(forest.columns["label"], weight, forest, strict=True)]
    table.write_text("\n".join(["class\tweight\ttree", *lines]) + "\n")
    command = ["train", str(table), "--class", "class", "-o", str(target), "--decay", "0.2", "--C", "1"]
    assert main([*command, "--weight", "weight"]) == 0
    found = LinearModel.load(target)
    wanted = TreeClassifier(decay=0.2, C=1).fit(forest, forest.columns["label"], weight)
    assert found.weights.tobytes() == wanted.weights_.tobytes()
    assert found.facts["data"]["weight"] == "weight"
    capsys.readouterr()
    for options, message in (
        (["--weight", "class"], "row 1, column 'class'"),
        (["--weight", "heavy"], "there is no column 'heavy'"),
        (["--weight", "weight", "--checkpoint", str(tmp_path / "c")], "--weight needs all trees in memory"),
    ):
        assert main([*command, "--overwrite", *options]) == 1
        assert message in capsys.readouterr().err


def test_evaluate_lists_the_most_confident_mistakes_first(model, tmp_path, capsys):
    forest, found = read_trees(QUESTIONS), LinearModel.load(model)
    wrong = tmp_path / "wrong.tsv"
    label = found.classes[0]
    lines = [f"{label}\t{tree}" for tree in forest]
    wrong.write_text("\n".join(["label\ttree", *lines]) + "\n")
    assert main(["evaluate", str(model), str(wrong), "--class", "label", "--json"]) == 0
    mistakes = json.loads(capsys.readouterr().out)["mistakes"]
    values = [mistake["margin"] for mistake in mistakes]
    assert len(mistakes) == 20
    assert values == sorted(values, reverse=True)
    assert all(mistake["truth"] == label != mistake["predicted"] for mistake in mistakes)
    assert mistakes[0]["tree"] == str(forest[mistakes[0]["number"] - 1])


@pytest.mark.parametrize(
    ("table", "label", "message"),
    [
        ("label\ttree\na\t(A b)\na\t(B b)\n", "label", "at least two classes"),
        (
            "label\ttree\na\t(A b)\n\t(B b)\n",
            "label",
            "column 'label': 1 of 2 trees have no class",
        ),
        ("label\ttree\na\t(A b)\nb\t(B b)\n", "kind", "no column 'kind'; the columns are 'label'"),
        ("label\ttree\na\t(A b\nb\t(B b)\n", "label", "trees.tsv:2"),
    ],
)
def test_what_cannot_be_learned_is_told(tmp_path, capsys, table, label, message):
    path = tmp_path / "trees.tsv"
    path.write_text(table)
    assert main(["train", str(path), "--class", label, "-o", str(tmp_path / "m")]) == 1
    assert message in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["trees.tsv"]


def test_brackets_have_no_classes_and_other_folders_are_no_models(model, tmp_path, capsys):
    path = tmp_path / "trees.mrg"
    path.write_text("(A b)\n(B c)\n")
    assert main(["evaluate", str(model), str(path), "--class", "label"]) == 1
    assert "the columns are none: read the trees from a table" in capsys.readouterr().err
    assert main(["predict", str(tmp_path), str(path)]) == 1
    assert "config.json is missing, or is not a plain file" in capsys.readouterr().err
    assert main(["evaluate", str(model), QUESTIONS, "--class", "tree"]) == 1
    assert "no column 'tree'" in capsys.readouterr().err


def test_explain_takes_the_decision_of_a_model_apart(model, capsys, tmp_path):
    page = tmp_path / "page.html"
    assert main(["explain", str(model), QUESTIONS, "--number", "3", "--json", "--html", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    forest = read_trees(QUESTIONS)
    wanted = explain(TreeClassifier.load(model), forest[[2]])
    assert found == json.loads(wanted.to_json())
    assert page.read_text() == wanted.to_html()
    assert main(["explain", str(model), str(forest[2]), "--target", str(wanted.target)]) == 0
    assert capsys.readouterr().out == wanted.to_text() + "\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([QUESTIONS, "--number", "301"], "has 300 trees"),
        ([QUESTIONS, "--number", "0"], "--number must be at least 1"),
        (["(A b)", "--target", "nothing"], "nothing"),
        (["nowhere.mrg"], "cannot open nowhere.mrg"),
    ],
)
def test_what_cannot_be_explained_is_told(model, capsys, options, message):
    assert main(["explain", str(model), *options]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Return a table of pairs of trees with a number and a text, and a model of all four columns."""
    folder = tmp_path_factory.mktemp("pairs")
    forest = read_trees(QUESTIONS)
    labels = forest.columns["label"]
    lines = [f"{labels[k]}\t{forest[k]}\t{forest[7 * k % 300]}\t{k / 300}\t{'ab'[k % 2]}" for k in range(300)]
    table = folder / "pairs.tsv"
    table.write_text("\n".join(["value\ttext\thypothesis\toverlap\tnote", *lines]) + "\n")
    columns = ["--tree-column", "text", "--tree-column", "hypothesis"]
    columns += ["--number-column", "overlap", "--text-column", "note"]
    command = ["train", str(table), *columns, "--class", "value", "-o", str(folder / "m")]
    assert main([*command, "--decay", "0.2", "--C", "10"]) == 0
    return table, folder / "m"


def test_a_model_of_several_columns_is_trained_and_takes_its_columns_from_tables(pairs, capsys, tmp_path):
    table, model = pairs
    names = {
        "tree_columns": ["text", "hypothesis"],
        "number_columns": ["overlap"],
        "text_columns": ["note"],
    }
    y = read_trees(table, column="text").columns["value"]
    wanted = TreeClassifier(**names, decay=0.2, C=10).fit(table, y)
    found = LinearModel.load(model)
    assert (found.decision_function(table) == wanted.decision_function(table)).all()
    capsys.readouterr()
    assert main(["predict", str(model), str(table)]) == 0
    assert capsys.readouterr().out.splitlines() == wanted.predict(table).tolist()
    assert main(["evaluate", str(model), str(table), "--class", "value", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trees"] == 300
    assert main(["explain", str(model), str(table), "--number", "2", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert [one["column"] for one in explained["trees"]] == ["text", "hypothesis"]
    assert explained["others"].keys() == {"overlap", "note"}
    assert main(["info", str(model)]) == 0
    assert '"columns": ["overlap"]' in capsys.readouterr().out


def test_a_pair_is_linked_by_every_command(pairs, capsys, tmp_path):
    table, model = pairs[0], str(tmp_path / "m")
    command = ["train", str(table), "--pair", "text", "hypothesis", "--class", "value", "-o", model]
    assert main([*command, "--decay", "0.2", "--C", "10"]) == 0
    y = read_trees(table, column="text").columns["value"]
    wanted = TreeClassifier(pair_columns=["text", "hypothesis"], decay=0.2, C=10).fit(table, y)
    assert (LinearModel.load(model).decision_function(table) == wanted.decision_function(table)).all()
    capsys.readouterr()
    assert main(["predict", model, str(table)]) == 0
    assert capsys.readouterr().out.splitlines() == wanted.predict(table).tolist()
    assert main(["evaluate", model, str(table), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == pytest.approx(wanted.score(table, y))
    assert main(["explain", model, str(table), "--number", "9", "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    assert [one["column"] for one in explained["trees"]] == ["text", "hypothesis"]
    assert explained["others"].keys() == {"overlap of text and hypothesis"}
    assert {share["mark"] for share in explained["links"]} == {
        f"#{k + 1}" for k in range(len(explained["links"]))
    }
    assert main([*command, "--overwrite", "--column", "text"]) == 1
    assert "remove --column" in capsys.readouterr().err
    assert main([*command, "--overwrite", "--checkpoint", str(tmp_path / "c")]) == 1
    assert "single tree column" in capsys.readouterr().err


def test_the_trees_beside_numbers_are_in_the_column_that_is_read(pairs, tmp_path, capsys):
    table, _ = pairs
    command = [
        "train",
        str(table),
        "--class",
        "value",
        "--number-column",
        "overlap",
        "-o",
        str(tmp_path / "m"),
    ]
    assert main([*command, "--column", "hypothesis", "--decay", "0.2", "--C", "1"]) == 0
    assert LinearModel.load(tmp_path / "m").reads == (("hypothesis",), ("overlap",), (), ())
    assert main([*command, "--overwrite"]) == 1
    assert "no column 'tree'" in capsys.readouterr().err


def test_what_the_columns_of_a_model_lack_is_told_in_one_line(pairs, capsys, tmp_path):
    table, model = pairs
    lines = [line.split("\t") for line in table.read_text().splitlines()]
    broken = tmp_path / "broken.tsv"

    def said(*command):
        capsys.readouterr()
        assert main([*map(str, command)]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        return line

    broken.write_text("\n".join("\t".join(line[:3]) for line in lines))
    assert "there is no column 'overlap'; the columns are 'text', 'value'" in said("predict", model, broken)
    lines[200][3] = "many"
    broken.write_text("\n".join("\t".join(line) for line in lines))
    assert "row 200, column 'overlap': 'many' is not a finite number" in said("predict", model, broken)
    lines[200][2:4] = ["(A", "1"]
    broken.write_text("\n".join("\t".join(line) for line in lines))
    assert "row 200, column 'hypothesis'" in said("evaluate", model, broken, "--class", "value")
    assert "remove --column" in said("predict", model, table, "--column", "text")
    assert "there is no column 'hypothesis'" in said("explain", model, "(A b)")
    train = ["train", table, "--class", "value", "-o", tmp_path / "m"]
    assert "row 1, column 'note'" in said(*train, "--tree-column", "text", "--tree-column", "note")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (["--vectors", "dense", "-d", "256"], "dense"),
        (["--vectors", "dense", "-d", "512", "--kernel", "partial"], "dense"),
        (
            ["--vectors", "sparse", "--rest", "dense", "--rest-size", "256", "--n-features", "2^12"],
            "fragments",
        ),
        (["--vectors", "sparse", "--rest", "blocks", "--budget", "3", "--damping", "linear"], "fragments"),
        (["--kernel", "subset"], "kernel"),
        (["--kernel", "subtree"], "kernel"),
        (["--kernel", "partial"], "kernel"),
        (["--kernel", "route"], "kernel"),
        (["--kernel", "bounded", "--budget", "2"], "kernel"),
    ],
)
def test_train_makes_models_of_every_kind(options, kind, tmp_path, capsys):
    target = str(tmp_path / "m")
    command = ["train", QUESTIONS, "--class", "label", "-o", target, "--decay", "0.2", "--C", "10"]
    assert main([*command, *options]) == 0
    (only,) = LinearModel.load(target).inputs
    assert only.kind == kind
    assert main(["evaluate", target, QUESTIONS, "--class", "label", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.split("\n", 2)[2])["accuracy"] > 0.97


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kernel", "subset", "--rest", "dense"], "--rest has no effect with --kernel subset"),
        (["--vectors", "dense", "--budget", "3"], "--budget has no effect with --vectors dense"),
        (["--vectors", "dense", "--kernel", "subset"], "remove one of the two"),
    ],
)
def test_train_refuses_options_without_effect(options, message, tmp_path, capsys):
    assert main(["train", QUESTIONS, "--class", "label", "-o", str(tmp_path / "m"), *options]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl", "out.tsv.gz", "out.xlsx"])
def test_predict_refuses_a_suffix_of_another_format(name, model, tmp_path, capsys):
    assert main(["predict", str(model), QUESTIONS, "-o", str(tmp_path / name)]) == 1
    assert "use .tsv or .csv" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["out.TSV", "out.txt", "out"])
def test_predict_separates_by_tabs_unless_the_suffix_is_csv(name, model, tmp_path):
    assert main(["predict", str(model), QUESTIONS, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_text().startswith("label\tpredicted\n")


def test_classes_that_training_never_saw_count_as_wrong_and_are_told(model, tmp_path, capsys):
    forest = read_trees(QUESTIONS)
    labels = ["planet" if k < 3 else label for k, label in enumerate(forest.columns["label"])]
    table = tmp_path / "new.tsv"
    lines = [f"{label}\t{tree}" for label, tree in zip(labels, forest, strict=True)]
    table.write_text("\n".join(["label\ttree", *lines]) + "\n")
    assert main(["evaluate", str(model), str(table), "--class", "label"]) == 0
    text = capsys.readouterr().out
    assert "accuracy 0.990 " in text
    assert "3 trees of 'planet', which the model does not know, count as wrong" in text
    assert main(["evaluate", str(model), str(table), "--class", "label", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["unknown"] == {"planet": 3}
    assert [one["truth"] for one in found["mistakes"]] == ["planet"] * 3


@pytest.fixture(scope="module")
def two_columns(tmp_path_factory):
    """A table of two tree columns, of which one tells the class, and a model of each column."""
    folder = tmp_path_factory.mktemp("columns")
    rows = [f"(S (A {k % 3}))\t(T (B {'x' if k % 2 else 'y'}))\t{k % 2}" for k in range(40)]
    (folder / "t.tsv").write_text("\n".join(["tree\ttext\tlabel", *rows]))
    for name, column in (("good", ["--tree-column", "text"]), ("poor", ["--column", "tree"])):
        command = ["train", str(folder / "t.tsv"), "--class", "label", *column, "-o", str(folder / name)]
        assert main([*command, "--decay", "0.4", "--C", "1"]) == 0
    return folder


def test_each_of_two_models_reads_its_own_column(two_columns, capsys):
    table = str(two_columns / "t.tsv")
    main(["evaluate", str(two_columns / "poor"), table, "--class", "label", "--json"])
    alone = json.loads(capsys.readouterr().out)
    command = ["evaluate", str(two_columns / "good"), table, "--class", "label", "--json"]
    main([*command, "--against", str(two_columns / "poor")])
    both = json.loads(capsys.readouterr().out)
    assert both["accuracy"] == 1
    assert both["against"]["accuracy"] == alone["accuracy"] < 1
    assert main([*command, "--against", str(two_columns / "poor"), "--skip-bad"]) == 1
    assert "remove --skip-bad" in capsys.readouterr().err


def test_a_bad_tree_in_any_column_costs_its_row_with_skip_bad(tmp_path, capsys):
    rows = [f"{'ab'[k % 2]}\t(A {'xy'[k % 2]})\t(B b{k % 3})\n" for k in range(12)]
    broken = ["a\t(A x)\t(B\n", rows[0], "a\t(A\t(B b)\n", *rows[1:7], "b\t(A y)\t\n", *rows[7:]]
    for name, lines in (("good", rows), ("bad", broken), ("none", broken[:1])):
        (tmp_path / f"{name}.tsv").write_text("label\ttree\tother\n" + "".join(lines))
    good, bad, none = (str(tmp_path / f"{name}.tsv") for name in ("good", "bad", "none"))
    options = ["--class", "label", "--tree-column", "tree", "--tree-column", "other"]
    options += ["--decay", "0.4", "--C", "1"]
    assert main(["train", bad, *options, "-o", str(tmp_path / "m")]) == 1
    for name, table in (("of good", good), ("of bad", bad)):
        assert main(["train", table, *options, "-o", str(tmp_path / name), "--skip-bad"]) == 0
    weights = [LinearModel.load(tmp_path / name).weights.tobytes() for name in ("of good", "of bad")]
    assert weights[0] == weights[1]
    said = capsys.readouterr().err
    assert f"skipped {bad}, row 1, column 'other' (not counting rows that were skipped)" in said
    assert "treedot: left out 3 bad tree(s)" in said
    model = str(tmp_path / "of good")
    assert main(["predict", model, good]) == 0
    wanted = capsys.readouterr().out
    assert main(["predict", model, bad]) == 1
    assert main(["predict", model, bad, "--skip-bad"]) == 0
    assert capsys.readouterr().out == wanted
    assert main(["evaluate", model, bad, "--class", "label", "--skip-bad", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["trees"] == 12
    assert main(["explain", model, bad, "--number", "1", "--skip-bad", "--json"]) == 0
    assert main(["predict", model, none, "--skip-bad"]) == 1
    assert "no row has trees that can all be read" in capsys.readouterr().err


def test_what_is_known_before_the_work_is_told_before_it(two_columns, capsys, monkeypatch):
    monkeypatch.setattr(TreeClassifier, "fit", lambda *_: pytest.fail("trained in vain"))
    table = str(two_columns / "t.tsv")
    assert main(["train", table, "--class", "label", "-o", str(two_columns / "no" / "where")]) == 1
    assert "does not exist" in capsys.readouterr().err
    command = ["train", table, "--class", "label", "-o", str(two_columns / "new")]
    assert main([*command, "--tree-column", "text", "--checkpoint", str(two_columns / "training")]) == 1
    assert "a single tree column" in capsys.readouterr().err


def test_single_nodes_are_predicted_too(two_columns, tmp_path, capsys):
    (tmp_path / "one.tsv").write_text("text\n(T)\n")
    assert main(["predict", str(two_columns / "good"), str(tmp_path / "one.tsv")]) == 0
    assert capsys.readouterr().out.strip() in ("0", "1")
