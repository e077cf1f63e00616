"""The tables of ``python -m published`` on a few made-up programs."""

import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from paper.record import Record
from paper.section import Section
from published.__main__ import main
from published.columns import WIDTH, Columns, counts
from published.cost import spent
from published.programs import Programs
from published.ranking import average_precisions, cosines_of, expanded
from published.retrieval import weighted
from scipy.sparse import csr_matrix, hstack

import published
from published import classification, clone_search, retrieval, settings
from treedot import read_code, read_trees
from treedot.errors import SourceError
from treedot.models.training.retrieval import map_at_r
from treedot.readers import CodeSettings

pytestmark = pytest.mark.slow

PROBLEMS = (1, 2, 65, 66, 81, 82, 83)
LINES = (
    "a += {n};", "while (a < {n}) a++;", "if (a > {n}) return {n};", "b[a] = {n};", "f(a, {n});",
    "a = b[{n}];",
)  # fmt: skip


def program(problem, number):
    chosen = [LINES[problem % 6], LINES[problem // 2 % 6], LINES[number % 6]] * (1 + problem % 3)
    body = "\n  ".join(line.format(n=problem * 7 + k) for k, line in enumerate(chosen))
    return f"int main() {{\n  int a = {number}, b[9];\n  {body}\n}}\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    for problem in PROBLEMS:
        inside = folder / "dataset-poj-104/codexglue" / str(problem)
        inside.mkdir(parents=True)
        for number in range(8):
            (inside / f"{number}.cpp").write_text(program(problem, number))
    (inside / "8.cpp").write_text(program(problem, 0))  # a copy
    return folder


def test_copies_are_left_out_and_trees_are_kept_for_the_next_run(data, tmp_path):
    programs = Programs(data, tmp_path)
    assert len(programs.trees) == 8 * len(PROBLEMS)
    assert np.unique(programs.problems).tolist() == list(PROBLEMS)
    assert "a" not in programs.trees.labels  # names are blurred
    assert "b" not in programs.trees.labels
    assert str(7 * 65) in programs.trees.labels  # literals are kept
    (kept,) = tmp_path.iterdir()
    again = Programs(data, tmp_path)
    os.utime(kept, ns=(0, 0))
    assert again.trees == programs.trees
    assert kept.stat().st_mtime_ns == 0


def test_average_precisions_are_those_of_centred_rows():
    random = np.random.default_rng(0)
    rows = random.random((40, 12)) * (random.random((40, 12)) < 0.5)
    rows[:, 0] += 0.1
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    mean, groups = rows[:15].mean(axis=0), random.integers(5, size=40)
    centred = rows - mean
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    found = average_precisions(cosines_of(csr_matrix(rows), mean), groups)
    assert found.mean() == pytest.approx(map_at_r(centred, groups))


def test_an_expanded_query_is_the_sum_of_its_nearest_rows():
    rows = np.random.default_rng(1).random((9, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    for i, found in enumerate(expanded(cosines.astype(np.float32), 3)):
        near = [k for k in np.argsort(-cosines[i]) if k != i][:3]
        assert found == pytest.approx((rows[i] + rows[near].sum(axis=0)) @ rows.T, rel=1e-5)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("labels", [[1, 1, 1, 1, 1, 1], [1, 2]]),
        ("edges", [[1, 1, 1, 1, 1], [2]]),
        ("adjacent children", [[1, 1], [1]]),
        ("paths of three", [[1, 1, 1], []]),
        ("productions", [[1, 1, 1], [1]]),
    ],
)
def test_columns_count_what_their_kind_says(kind, expected):
    found = counts(read_trees(["(a (b c d) (e f))", "(a b b)"]), kind, 2**20)
    assert [sorted(np.abs(row.data).tolist()) for row in found] == expected


def test_columns_are_those_of_retrieval_with_weights_counted_in_training():
    trees = read_trees(["(a (b c d) (e f))", "(a b b)", "(a (g c) (e f))"])
    columns = Columns(("labels", "edges")).fit(trees[:2])
    parts = [weighted(counts(trees, kind, WIDTH), np.arange(2)) for kind in ("labels", "edges")]
    expected = hstack(parts, format="csr")
    assert (columns.transform(trees) != expected).nnz == 0
    assert trees[[2]].labels != trees.labels  # labels that do not occur are left out
    assert (columns.transform(trees[[2]]) != expected[2]).nnz == 0


def test_columns_that_no_training_row_has_weigh_the_most():
    rows = weighted(csr_matrix([[1.0, 0, 0], [4, 1, 0], [1, 1, 1]]), np.array([0, 1]))
    frequent, once, never = rows.toarray()[2]
    assert 0 < frequent < once < never


@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (classification, "SPLITS", 2),
        (classification, "FIXED", {"idf": False}),
        (retrieval, "N_COLUMNS", (2**12,)),
        (retrieval, "SHRINKAGES", (1.0,)),
    ],
)
def test_what_was_measured_with_other_settings_is_not_taken_over(
    module, name, value, data, tmp_path, monkeypatch, capsys
):
    table = module.__name__.removeprefix("published.")
    monkeypatch.setattr(module, "steps", lambda programs: {})
    monkeypatch.setattr(module, "section", lambda record: Section("", "", ""))
    arguments = [table, "--data", str(data), "--out", str(tmp_path)]
    path = tmp_path / f"{table}.json"
    Record(path, published._made(table, Programs(data, tmp_path)), "").run("split 1", lambda _: 0)
    assert main(arguments) == 0
    monkeypatch.setattr(module, name, value)
    assert main(arguments) == 1
    assert f"{path} was made with other settings" in capsys.readouterr().err


@pytest.mark.parametrize("name", published.TABLES)
def test_settings_are_the_same_in_another_process(name):
    found = settings(published._module(name))
    code = f"import json, published; print(json.dumps(published.settings(published._module({name!r}))))"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(other.stdout) == found


def test_settings_leave_out_published_values():
    found = settings(retrieval)
    assert found["N_COLUMNS"] == repr(retrieval.N_COLUMNS)
    assert "PUBLISHED" not in found


def test_programs_that_are_parsed_in_another_way_are_other_data(data, tmp_path, monkeypatch):
    before = Programs(data, tmp_path).digest
    monkeypatch.setattr("published.programs.SETTINGS", CodeSettings(unit="file"))
    assert Programs(data, tmp_path).digest != before


def test_found_pairs_of_clones_are_counted_by_kind(tmp_path):
    body = "(Block " + " ".join(f"(S{k} (SimpleName {{0}}))" for k in range(30)) + "{1})"
    texts = [body.format("x", ""), body.format("x", ""), body.format("y", ""), body.format("x", " (New a)")]
    texts.append("(Other " + " ".join(f"(T{k} (NumberLiteral 1))" for k in range(30)) + ")")
    functions = [f"f{k}\tc{k // 4}\t60\t{text}" for k, text in enumerate(texts)]
    pairs = ["f0\tf1\tT1\t1\t1", "f0\tf2\tT2\t1\t1", "f3\tf0\tT3\t0.95\t0.9", "f4\tf0\tT3\t0.7\t0.9"]
    for name, head, lines in (
        ("functions", "id\tclone_class\tnodes\ttree", functions),
        ("pairs", "a\tb\ttype\tsimilarity_line\tsimilarity_token", pairs),
    ):
        text = "\n".join([head, *lines]) + "\n"
        (tmp_path / f"bcb_{name}.tsv.gz").write_bytes(gzip.compress(text.encode()))
    assert main(["bigclonebench", "--data", str(tmp_path), "--out", str(tmp_path)]) == 0
    steps = json.loads((tmp_path / "bigclonebench.json").read_text())["steps"]
    expected = {"T1": 1.0, "T2": 1.0, "VST3": 1.0, "ST3": 0.0, "others": 0.0}
    for step in ("shipped", "calibrated"):
        assert steps[step]["result"]["shares"] == expected
    assert "| NiCad | 1.00 |" in (tmp_path / "published.md").read_text()


def test_a_run_writes_a_page_and_does_not_measure_twice(data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(retrieval, "N_COLUMNS", (64, 128))
    monkeypatch.setattr(classification, "CHOICES", {"C": (1.0, 3.0)})
    arguments = ["classification", "retrieval", "--data", str(data), "--out", str(tmp_path)]
    assert main(arguments) == 0
    page = (tmp_path / "published.md").read_text()
    assert "## POJ-104: which problem a program solves" in page
    assert "## POJ-104: other programs for the same problem" in page
    steps = json.loads((tmp_path / "retrieval.json").read_text())["steps"]
    found = {key: step["result"] for key, step in steps.items()}
    assert 0 < found["test"]["mean"] <= 1
    assert found["test, learned"]["mean"] > found["test"]["mean"] / 2
    assert found["test"]["programs"] == found["test, index"]["programs"] == 24
    capsys.readouterr()
    assert main(arguments) == 0
    assert "step 1" not in capsys.readouterr().out
    assert (tmp_path / "published.md").read_text() == page


def test_marks_say_which_published_values_are_not_reached(tmp_path):
    record = Record(tmp_path / "x.json", {}, "")
    made = {"seconds": 3.0, "memory": 1.0, "programs": 10, "twins": 0.005}
    for key in classification.steps(None):
        accuracy = {"validation, C 0.3": 0.98, "split 1": 0.95}.get(key, 0.97)
        record.run(key, lambda _, accuracy=accuracy: {"accuracy": accuracy, **made})
    text = classification.section(record).markdown(".")
    assert "✓ TBCNN ✗ ASTNN" in text
    assert "0.9660 ± 0.0089" in text
    assert "| C: 0.3 | 0.3: 0.9800 |" in text
    assert "| columns: none | edges, adjacent children, paths of three: 0.9700 |" in text
    assert "Of the 0.0340 that are wrong, 0.0050 take" in text


def test_each_setting_is_tried_with_the_best_of_those_before(monkeypatch):
    choices = {"C": (1.0, 3.0, 10.0), "damping": ("sqrt", "log1p"), "decay": (0.4, 0.2)}
    monkeypatch.setattr(classification, "CHOICES", choices)
    record = {key: {"accuracy": 0.5} for key in classification.steps(None)}
    record["validation, C 10.0"] = {"accuracy": 0.7}
    record["validation, decay 0.2"] = {"accuracy": 0.75}
    record["validation, damping log1p"] = {"accuracy": 0.8}
    assert classification.chosen(record, before="C") == classification.first()
    assert classification.chosen(record) == {"C": 10.0, "damping": "log1p", "decay": 0.4}


def test_data_that_is_missing_is_an_error_that_says_where_to_get_it(tmp_path, capsys):
    assert main(["--data", str(tmp_path)]) == 1
    assert "git clone" in capsys.readouterr().err
    with pytest.raises(SourceError, match="is not a folder"):
        Programs(tmp_path, tmp_path)


def test_the_time_of_processes_that_parse_counts_and_they_can_parse_again(data, tmp_path):
    files = Programs(data, tmp_path).files
    spent()
    before = sum(os.times()[:2])
    total = spent()
    assert len(read_code(files[:4], unit="file")) == 4
    own = sum(os.times()[:2]) - before
    assert spent() - total > own
    assert len(read_code(files[:4], unit="file")) == 4


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return a folder with a study of a few functions, in which each even function is a clone of the next."""
    folder = tmp_path_factory.mktemp("study")
    inside = folder / clone_search.FOLDER
    names = [f"{number}_1_9.java" for number in range(2 * clone_search.RESULTS)]
    write(inside / clone_search.TREES / "lone_1_9.java", "(Lone(One:a))")
    for number, name in enumerate(names):
        text = f"(A(B:{number // 2})(C(D:{number % 7})))"
        write(inside / clone_search.TREES / name, text)
    pairs = [f"selected,{n}.java,1,9,selected,{n + 1}.java,1,9,1,1,1" for n in range(0, len(names), 2)]
    pairs.append("selected,lone.java,1,9,selected,elsewhere.java,1,9,1,1,1")
    results = "\n".join(f"0.5,0.25,0.75,0.1,X,0,{seed},normalized" for seed in clone_search.SEEDS)
    tfidf, codebert = [], ["a header"]
    for kind in clone_search.KINDS:
        write(inside / clone_search.CLONES.format(kind=kind), "\n".join(["a header", *pairs]))
        for seed in clone_search.SEEDS:
            queries = [f"/home/x/{names[seed % 7]}", f"/home/x/{names[seed % 5]}", "/home/x/lone_1_9.java"]
            write(inside / clone_search.QUERIES.format(kind=kind, seed=seed), "\n".join(queries))
            tfidf.append(f"0.5,0.25,0.75,0.1,TF-IDF,80,{seed},{kind}")
            codebert.append(f"0.5,0.25,0.75,0.1,0.1,{kind},90")
        for name in clone_search.PUBLISHED_KERNELS:
            write(inside / clone_search.BY_KERNEL.format(kind=kind, name=name), results)
    for name in clone_search.PUBLISHED_KERNELS:
        lines = "0.5,0.25,0.75,0.1,X,200,1,normalized,100\n0.5,0.25,0.75,0.1,X,900,1,normalized,500"
        write(inside / clone_search.HYBRID.format(name=name), lines)
    write(inside / clone_search.TFIDF / "metrics.csv", "\n".join(tfidf))
    write(inside / clone_search.CODEBERT, "\n".join(codebert))
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_kernels_find_clones_beside_the_published_values(study, tmp_path):
    assert main(["clone_search", "--data", str(study), "--out", str(tmp_path)]) == 0
    steps = json.loads((tmp_path / "clone_search.json").read_text())["steps"]
    published = steps.pop("published")["result"]
    assert published["T1, PTK"] == published["T2, CodeBERT"] == [0.5, 0.25, 0.75]
    assert published["seconds, PTK"] == [2.0, 2.0]
    for key in ("T1, subset trees", "T2, index"):
        for precision5, precision10, rank in steps[key]["result"]["seeds"]:
            assert 0 <= 5 * precision5 <= 10 * precision10 <= 1  # one clone at most
            assert precision5 <= rank <= 1
    assert "| KeLP: PTK, partial trees | 0.500 |" in (tmp_path / "published.md").read_text()


def test_a_score_counts_relevant_results_among_the_first():
    found = np.arange(20)
    assert clone_search._score(found, {3, 4, 7}) == (0.4, 0.3, 0.25)
    assert clone_search._score(found, set()) == (0, 0, 0)


def test_the_largest_values_are_found_and_equal_ones_keep_their_order():
    values = np.random.default_rng(0).integers(9, size=50).astype(np.float32)
    expected = sorted(range(50), key=lambda i: (-values[i], i))
    for count in (1, 7, 50):
        assert clone_search.largest(values, count).tolist() == expected[:count]


def test_hashes_are_those_of_java():
    assert clone_search.java_hash("") == 0
    assert clone_search.java_hash("ab") == 97 * 31 + 98
    assert clone_search.java_hash("hello world") == 1794106052 ^ (1794106052 >> 16)
