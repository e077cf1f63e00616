"""The paper's experiments on data made here, and on a slice of the corpora where they are present."""

import gzip
import itertools
import json
import math
import re
import time
from dataclasses import fields, replace

import numpy as np
import pytest
from benchmarks.timing import cpu_seconds, exponent
from matplotlib import pyplot as plt
from paper.__main__ import main
from paper.classify import as_bits, choose_cost, classified, from_bits, mcnemar, t_test
from paper.corpora import COUNTS, Corpora
from paper.fig2 import FITTED, fragment_properties, growth_per_vector, sample_fragments
from paper.fig4 import Task, pair_grams, steps
from paper.fig5 import crossing
from paper.growing import growing
from paper.methods import MIXED
from paper.record import Record
from paper.sample import SampleCorpora
from paper.section import Drawing, Section, Table, compared
from paper.settings import Settings

from paper import EXPERIMENTS, fig3, fig5, properties, run, table2
from strategies import corpus, random_forest
from treedot import SubsetTreeKernel
from treedot._pages.page import STYLE
from treedot.errors import SourceError
from treedot.models.inputs.overlap import LexicalOverlap
from treedot.vectors.dense.compositions import ALGEBRAS
from treedot.vectors.fidelity import floor, projected

pytestmark = pytest.mark.slow

TINY = Settings(
    quick=True,
    decays=(0.4,),
    seeds=2,
    samples=5,
    fragments=24,
    trees=12,
    table_seeds=2,
    sizes=(1024, 8192),
    questions=40,
    kept_fragments=50,
    pairs=12,
    costs=(1.0, 10.0),
    folds=2,
    timed_pairs=4,
)
COUNTS_HERE = dict.fromkeys(COUNTS, 24) | {"qc_train": 60, "qc_test": 20}
NOUNS = ("city", "river", "man", "year", "book", "Ann", "word", "star")
VERBS = ("is", "wrote", "saw", "means", "runs")


def sentence(random, kind):
    """Return a little sentence; its kind shows in one production."""

    def phrase(depth=0):
        noun = random.choice(NOUNS)
        if depth < 2 and random.random() < 0.4:
            return f"(NP (NP (DT the) (NN {noun})) (PP (IN of) {phrase(depth + 1)}))"
        return f"(NP (NN {noun}))"

    verb = f"(VP (VBZ {random.choice(VERBS)}) {phrase()})"
    opening = ("(WHNP (WP who))", "(WHADVP (WRB where))", "(WHNP (WP what))")[kind]
    return f"(ROOT (SBARQ {opening} (SQ {phrase()} {verb})))"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A data folder with little sets of all kinds."""
    random = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("data")
    for name, count in COUNTS_HERE.items():
        if name.startswith("qc"):
            lines = ["id\tcoarse\tfine\ttree"]
            kinds = [k % 3 for k in range(count)]
            lines += [
                f"{k}\tC{kind}\tC{kind}:{k % 2}\t{sentence(random, kind)}" for k, kind in enumerate(kinds)
            ]
        else:
            lines = ["id\tlabel\ttext_tree\thypothesis_tree"]
            lines += [
                f"{k}\t{('YES', 'NO')[k % 2]}\t{sentence(random, k % 2)}\t{sentence(random, 0)}"
                for k in range(count)
            ]
        with gzip.open(path / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def corpora(folder):
    return Corpora(folder, COUNTS_HERE)


def colours(drawings):
    """Return the colours that each method is drawn in: a curve's label begins with the method's title."""
    titles = sorted([*fig3.TITLES.values(), "FTK"], key=len, reverse=True)
    found = {}
    for drawing in drawings:
        for figure in drawing.panels:
            (axes,) = figure.axes
            for curve, label in zip(*axes.get_legend_handles_labels(), strict=True):
                line = curve[0] if isinstance(curve, tuple) else curve  # with bars, a curve has parts
                title = next((title for title in titles if label.startswith(title)), label)
                found.setdefault(title, set()).add(line.get_color())
    return found


@pytest.fixture
def briefly_timed(monkeypatch):
    """Let what is timed run for a moment."""
    for experiment in ("table1", "fig5"):
        monkeypatch.setattr(f"paper.{experiment}.cpu_seconds", lambda work: cpu_seconds(work, 0.001))
    monkeypatch.setattr("paper.table1.FEWEST", 4)
    for name in ("BATCHED", "SPARSE"):
        monkeypatch.setattr(f"paper.fig5.{name}", 20)


def test_all_experiments_run_and_a_second_run_has_nothing_to_do(folder, tmp_path, monkeypatch, briefly_timed):
    drawings = []
    draw = Section.draw

    def watched(section, folder):
        drawings.extend(block for block in section.blocks if isinstance(block, Drawing))
        draw(section, folder)

    monkeypatch.setattr(Section, "draw", watched)
    monkeypatch.setattr(
        "treedot._pages.page._png", lambda _: ""
    )  # drawn into files, not into the page once more
    said = []
    target = run(EXPERIMENTS, folder, tmp_path / "out", say=said.append, settings=TINY, counts=COUNTS_HERE)
    report = target.read_text()
    assert all(f'<section id="{name}">' in report for name in EXPERIMENTS)
    assert "http" not in report.replace("http://www.w3.org", "")  # nothing is loaded from elsewhere
    assert (target.parent / "results.md").read_text().count("\n## ") == len(EXPERIMENTS)
    for name in EXPERIMENTS:
        kept = json.loads((target.parent / f"{name}.json").read_text())
        assert kept["made"]["settings"]["seeds"] == TINY.seeds
        assert kept["made"]["versions"]["numpy"] == np.__version__
        assert kept["command"].startswith(f"python -m paper {name} ")
    assert [drawing.name for drawing in drawings] == list(EXPERIMENTS)
    assert [len(drawing.panels) for drawing in drawings] == [3, 2, 3, 1, 2, 1]
    files = [file for drawing in drawings for file in drawing.files]
    assert report.count("<img ") == len(set(files)) == 12
    for file in files:
        assert (target.parent / f"{file}.png").stat().st_size > 1000
        assert "<svg" in (target.parent / f"{file}.svg").read_text()
        assert f"(./{file}.png)" in (target.parent / "results.md").read_text()
    by_method = colours(drawings)
    assert by_method.keys() == {*fig3.TITLES.values(), "FTK", "floor"}
    assert all(len(used) == 1 for used in by_method.values())
    assert len(set.union(*by_method.values())) == len(by_method)
    before = (target.parent / "fig4.json").read_bytes()
    said.clear()
    monkeypatch.setattr("paper._report", lambda *_: target)  # which would be drawn anew all the same
    run(EXPERIMENTS, folder, tmp_path / "out", say=said.append, settings=TINY, counts=COUNTS_HERE)
    plt.close("all")  # as the report would have done
    assert not [line for line in said if "step 1" in line]
    assert (target.parent / "fig4.json").read_bytes() == before


def test_short_cells_stay_on_one_line_and_texts_do_not():
    text = "a sentence that takes more room than a screen of 400 pixels has"
    shown = Section("s", "S", "says", [Table(["a", "b"], [[compared(0.989, 0.993, 0.01), text]])]).html()
    assert '<td>0.989 / 0.993 <span class="agrees">✓</span> (±0.01)</td>' in shown
    assert f'<td class="text">{text}</td>' in shown
    assert "td { white-space: nowrap } td.text { white-space: normal;" in STYLE


def test_times_of_comparisons_do_not_count_waiting():
    assert cpu_seconds(lambda: time.sleep(0.05), 1e-6) < 0.025


@pytest.mark.parametrize("seed", [0, 3, 4])  # of which the variance at 20 vectors shows nothing
def test_few_samples_show_that_the_variance_grows_with_the_product_only(seed):
    growth = {
        name: growth_per_vector(properties.one_changed(ALGEBRAS[name](8192, seed), FITTED, 20).variance)
        for name in ("product", "convolution")
    }
    assert growth["product"] > 1.5 * max(1, growth["convolution"])


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path):
    calls = []
    record = Record(tmp_path / "a.json", {"x": 1}, "command")
    record.run("one", lambda _: calls.append("one") or [1.5])
    with pytest.raises(ZeroDivisionError):
        record.run("two", lambda done: 1 / (done["one"][0] - 1.5))
    again = Record(tmp_path / "a.json", {"x": 1}, "command")
    assert dict(again) == {"one": [1.5]}
    assert calls == ["one"]


def test_results_made_otherwise_are_not_overwritten(tmp_path):
    Record(tmp_path / "a.json", {"settings": 1}, "").run("one", lambda _: 1)
    with pytest.raises(SourceError, match="other settings"):
        Record(tmp_path / "a.json", {"settings": 2}, "")
    (tmp_path / "b.json").write_text("[]")
    with pytest.raises(SourceError, match="no file of results"):
        Record(tmp_path / "b.json", {}, "")


def test_results_of_another_kind_are_left_out_of_the_report(folder, tmp_path, briefly_timed):
    Record(tmp_path / "fig4.json", {"settings": "other"}, "").run("one", lambda _: 1)
    said = []
    run(["fig5"], folder, tmp_path, say=said.append, settings=TINY, counts=COUNTS_HERE)
    assert any("left out of the report" in line and "fig4.json" in line for line in said)
    with pytest.raises(SourceError, match="other"):
        run(["fig4"], folder, tmp_path, say=said.append, settings=TINY, counts=COUNTS_HERE)


def test_question_experiments_need_no_pairs(folder, tmp_path):
    for name in ("qc_train", "qc_test"):
        (tmp_path / f"{name}.tsv.gz").write_bytes((folder / f"{name}.tsv.gz").read_bytes())
    corpora = Corpora(tmp_path, COUNTS_HERE)
    corpora.require("qc")
    with pytest.raises(SourceError, match="lacks rte1_dev"):
        corpora.require("qc", "rte")


def test_the_command_line_says_which_data_it_needs(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("TREEDOT_DATA", raising=False)
    assert main(["fig2", "--out", str(tmp_path / "out")]) == 1
    assert "qc_train.tsv.gz" in capsys.readouterr().err
    assert main(["--data", str(tmp_path), "--out", str(tmp_path / "out")]) == 1
    assert "lacks" in capsys.readouterr().err
    monkeypatch.setattr("treedot._pages.page.find_spec", lambda name: None)
    assert main(["fig2", "--out", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "drawing the figures needs matplotlib" in told
    assert "qc_train.tsv.gz" in told
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capsys.readouterr().out
    assert "matplotlib" in told
    assert "qc_train.tsv.gz" in told


def test_incomplete_data_are_refused(folder):
    with pytest.raises(SourceError, match="holds 60 records, but the set has 5452"):
        _ = Corpora(folder).train
    with pytest.raises(SourceError, match="lacks the column nothing"):
        Corpora(folder, COUNTS_HERE)._read("qc_train", "tree", "nothing")


def test_a_label_other_than_yes_and_no_is_refused(folder, tmp_path):
    for path in folder.iterdir():
        text = gzip.decompress(path.read_bytes()).decode()
        (tmp_path / path.name).write_bytes(gzip.compress(text.replace("\tNO\t", "\tPERHAPS\t").encode()))
    with pytest.raises(SourceError, match="PERHAPS"):
        _ = Corpora(tmp_path, COUNTS_HERE).entailment


def test_the_pair_kernel_of_vectors_is_that_of_concatenated_vectors(corpora):
    train, test = (pairs.some(6) for pairs in corpora.entailment["rte2"])
    lexical = LexicalOverlap.learned(train.trees)
    task = Task(train, test, lexical(train.trees), lexical(test.trees))

    def rows(pairs):
        parts = [MIXED.rows(forest, 0.4, 1) for forest in (pairs.texts, pairs.hypotheses)]
        return np.hstack([*parts, lexical(pairs.trees)[:, None]])

    x, y = rows(train), rows(test)
    gram, across = pair_grams(task, MIXED, 0.4, 1)["PK_S+Lex"]
    assert gram == pytest.approx(x @ x.T, abs=1e-5)
    assert across == pytest.approx(y @ x.T, abs=1e-5)


def test_lexical_overlap_sees_the_words_behind_placeholders(folder):
    record = {f"C {name}": {s: {"best": 1.0} for s in ("PK_S", "PK_S+Lex")} for name in ("TK",)}
    plan = steps(Corpora(folder, COUNTS_HERE), replace(TINY, pairs=None))
    seen = []
    key = "rte1 {} TK λ 0.4 seed 0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paper.fig4.accuracies", lambda task, *_: seen.append(task))
        for kind in ("plain", "placeholders"):
            plan[key.format(kind)](record)
    assert seen[0].lexical_test.tolist() == seen[1].lexical_test.tolist()
    assert str(seen[0].test.texts[0]) != str(seen[1].test.texts[0])


def test_the_exact_pair_kernel_adds_texts_and_hypotheses(corpora):
    train, test = (pairs.some(5) for pairs in corpora.entailment["rte1"])
    kernel = SubsetTreeKernel(0.6, normalize=True)
    task = Task(train, test, np.zeros(5), np.zeros(5))
    _, across = pair_grams(task, None, 0.6, 0)["PK_S"]
    for i, j in itertools.product(range(5), range(5)):
        wanted = kernel(test.texts[i], train.texts[j]) + kernel(test.hypotheses[i], train.hypotheses[j])
        assert across[i, j] == pytest.approx(wanted)


def test_svms_on_gram_matrices_tell_separable_classes_apart():
    random = np.random.default_rng(0)
    classes = np.repeat(["a", "b", "c"], 20)
    centres = {"a": [3, 0], "b": [-3, 0], "c": [0, 4]}
    x = np.array([centres[c] for c in classes]) + random.normal(size=(60, 2)) / 3
    order = random.permutation(60)
    train, test = order[:40], order[40:]
    gram = 1 + x @ x.T
    guess = classified(gram[np.ix_(train, train)], classes[train], gram[np.ix_(test, train)], 10.0)
    assert (guess == classes[test]).all()
    two = classes != "c"
    guess = classified(gram[np.ix_(two, two)], classes[two] == "a", gram[np.ix_(two, two)], 10.0)
    assert (guess == (classes[two] == "a")).all()
    chosen = choose_cost([gram], [classes == "a"], (1e-6, 10.0), 3)  # with a tiny C the larger class wins
    assert chosen["best"] == 10.0
    assert chosen["10.0"] == 1.0 > chosen["1e-06"]


def test_mcnemar_is_the_binomial_test_of_the_answers_that_differ():
    a, b = "1" * 9 + "0" + "1" * 20, "0" * 9 + "1" + "1" * 20
    assert mcnemar(a, b) == pytest.approx(2 * (1 + 10) / 2**10)
    assert mcnemar(a, a) == 1.0
    assert from_bits(as_bits(np.array([True, False]))).tolist() == [True, False]


def test_the_t_test_is_students():
    assert t_test([0.5, 0.6, 0.55, 0.58], [0.5, 0.6, 0.55, 0.58]) == 1.0
    # Means differ by 2 standard errors of the difference, 6 degrees of freedom: the table gives 0.0924.
    a = np.array([-1.0, 1.0, -1.0, 1.0])
    error = math.sqrt(2 * a.var(ddof=1) / 4)
    assert t_test(a, a + 2 * error) == pytest.approx(0.0924, abs=5e-5)


def test_a_projection_scatters_as_the_floor_says():
    exact = SubsetTreeKernel(0.4).gram(random_forest(4, 8, 12))
    draws = np.array([projected(exact, 512, seed) for seed in range(400)])
    # 400 draws: means within 4 standard errors, variances (relative spread √(2/400)) within 40 %.
    assert (np.abs(draws.mean(axis=0) - exact) < 4 * floor(exact, 512) / 20).all()
    assert draws.std(axis=0) == pytest.approx(floor(exact, 512), rel=0.2)


def test_fragments_are_sampled_from_all_sizes(corpora):
    chosen = sample_fragments(corpora.train, 60)
    sizes = {sum(1 for node in fragment.postorder() if node.children) for fragment in chosen}
    assert len(set(chosen)) == len(chosen) == 60
    assert len(sizes) > 5


def test_fragment_vectors_are_nearly_orthonormal(corpora):
    found = fragment_properties(corpora.train, "mixed", 60)["epsilon"]["8192"]
    assert found["norm off by"] < 0.15
    assert found["root mean square"] == pytest.approx(1 / math.sqrt(8192), rel=0.5)


def test_crossings_and_exponents():
    nodes = [10.0, 100.0, 1000.0]
    assert crossing(nodes, [1, 100, 10_000], [10, 10, 10]) == "32"
    assert crossing(nodes, [1, 1, 1], [10, 10, 10]).startswith("never")
    assert crossing(nodes, [11, 12, 13], [10, 10, 10]).startswith("always")
    assert exponent(nodes, [3 * n**1.5 for n in nodes]) == pytest.approx(1.5)


def test_sections_are_written_as_html_and_as_markdown():
    section = Section("x", "A < B", "It ✓ holds.", [Table(["a|b", "c"], [["1 < 2 ✗", 3]]), "text"])
    assert "A &lt; B" in section.html()
    assert '<span class="differs">✗</span>' in section.html()
    assert "1 &lt; 2" in section.html()
    assert section.markdown("f").startswith("## A < B\n\n**It ✓ holds.**\n\n| a\\|b | c |\n| --- | --- |")


@pytest.mark.corpus
@pytest.mark.parametrize("decay", [0.2, 0.4])
def test_a_slice_of_the_corpora_agrees_with_the_paper(decay, monkeypatch):
    monkeypatch.setattr(table2, "FULL_ROWS", ())  # which the paper does not have
    questions = table2.chosen_trees(Corpora(corpus("qc_train.tsv.gz").parent), "questions", 100)
    found = table2.correlations(questions, decay, replace(TINY, sizes=(8192,)), every_size=True)
    for (group, name), printed in table2.PRINTED.items():
        if group == "questions":
            ranks = found[f"{name} 8192"]["spearman"]
            assert np.mean(ranks) == pytest.approx(printed[decay], abs=0.02)


def test_the_sample_needs_no_data_and_says_what_can_be_compared(tmp_path, monkeypatch, briefly_timed):
    monkeypatch.setattr("treedot._pages.page._png", lambda _: "")
    monkeypatch.setattr(Section, "draw", lambda *_: None)  # by the same code as of the paper's data
    monkeypatch.setattr("paper.SAMPLE", replace(TINY, sample=True, trees=60))
    said = []
    target = run(EXPERIMENTS, None, tmp_path / "out", sample=True, say=said.append)
    report, text = target.read_text(), (tmp_path / "out" / "results.md").read_text()
    assert "THIS IS A SAMPLE, NOT THE PAPER&#x27;S DATA" in report
    for name in EXPERIMENTS:
        assert any(line.startswith(f"{name}: ") and "omparable" in line for line in said)
    assert text.count("**On the sample: ") == len(EXPERIMENTS)
    assert text.count("omparable with the paper") == len(EXPERIMENTS)
    for section in re.split("^## ", text, flags=re.M):
        if not section.startswith("Fig. 2"):
            assert "✓" not in section.replace("✓ agrees", "")
            assert "5,452" not in section
            assert "RTE-" not in section.replace("place of RTE-", "")
    assert json.loads((tmp_path / "out" / "fig2.json").read_text())["command"].count(" --sample ") == 1


def test_the_sample_is_always_the_same_and_has_trees_of_all_sizes():
    corpora, again = SampleCorpora(), SampleCorpora()
    assert (len(corpora.train), len(corpora.test)) == (200, 100)
    for name, (train, test) in corpora.entailment.items():
        assert list(train.texts) == list(again.entailment[name][0].texts)
        assert not set(train.texts) & set(test.texts)
        assert train.entailed.mean() == 0.5
        assert LexicalOverlap.learned(train.trees)(train.trees)[train.entailed].min() > 0.9  # "the" for "a"
    totals = [group.total for group in growing(corpora, 5)]
    assert totals[:6] == pytest.approx([20, 40, 80, 160, 320, 640], rel=0.1)
    assert corpora.digest == again.digest


def test_settings_of_older_results_are_described_as_they_were():
    assert "sample" not in Settings().described()
    assert Settings(sample=True).described()["sample"] is True
    assert set(Settings(sample=True).described()) == {field.name for field in fields(Settings)}


def test_the_legend_of_fig_5_is_beside_the_curves_and_no_two_lines_look_alike():
    times = dict.fromkeys(("TK", "FTK", "dot product", "batched", "bounded, batched", "encoding mixed"), 1e-6)
    (figure,) = fig5._draw([{"nodes": n, **times, "TK": n * 1e-6} for n in (20.0, 40.0)])
    figure.draw_without_rendering()
    (axes,) = figure.axes
    (legend,) = figure.legends
    assert legend.get_window_extent().x0 >= axes.get_window_extent().x1
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.get_lines()]
    assert len(set(looks)) == len(looks) == 9
    assert next(text.get_text() for text in legend.get_texts()) == "TK"  # the highest in the end
