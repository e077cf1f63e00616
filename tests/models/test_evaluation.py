"""How good predictions are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, confusion_matrix, f1_score, precision_recall_fscore_support

from treedot.models.evaluation import evaluate, margins, mcnemar, wilson
from treedot.models.evaluation_report import EvaluationReport, Mistake, as_json, as_page, as_text

CLASSES = np.array(["b", "a", "c"])
PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=30)


@given(PAIRS)
def test_figures_are_those_of_scikit_learn(pairs):
    truth, predicted = np.array(pairs).T
    found = evaluate(CLASSES, truth, predicted)
    wanted = precision_recall_fscore_support(truth, predicted, labels=CLASSES, zero_division=0)
    assert found.accuracy == pytest.approx(accuracy_score(truth, predicted))
    assert found.macro_f1 == pytest.approx(
        f1_score(truth, predicted, labels=CLASSES, average="macro", zero_division=0)
    )
    assert [list(one[1:5]) for one in found.classes] == [pytest.approx(list(row)) for row in zip(*wanted)]  # noqa: B905
    assert (found.confusion == confusion_matrix(truth, predicted, labels=CLASSES)).all()


@given(st.integers(1, 2000), st.floats(0, 1))
def test_the_interval_is_wilsons(n, share):
    right = round(n * share)
    wanted = binomtest(right, n).proportion_ci(method="wilson")
    assert wilson(right, n) == pytest.approx((wanted.low, wanted.high), abs=1e-6)


def test_mcnemar_counts_what_one_alone_has_right():
    truth = np.zeros(20, int)
    first = np.array([0] * 12 + [1] * 8)
    second = np.array([0] * 4 + [1] * 9 + [0] * 7)
    found = mcnemar(truth, first, second)
    assert found[:2] == (8, 7)
    assert found.p_value == 1.0
    assert mcnemar(truth, first, first).p_value == 1.0
    assert mcnemar(truth, truth, truth + 1).p_value == pytest.approx(2 / 2**20)


def test_margins_are_the_differences_of_scores():
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 1.0]])
    assert margins(CLASSES, np.array(["c", "b"]), scores).tolist() == [1.0, 0.0]
    assert margins(np.array(["n", "y"]), np.array(["n", "y"]), np.array([0.5, 2.0])).tolist() == [1.0, 0.0]


def test_classes_that_the_model_does_not_know_are_told_and_count_as_wrong():
    truth, predicted = np.array(["a", "z", "d", "z"]), np.array(["a", "a", "a", "b"])
    found = evaluate(CLASSES, truth, predicted)
    assert found.unknown == {"d": 1, "z": 2}
    assert found.accuracy == 0.25
    assert [one.name for one in found.classes] == ["b", "a", "c", "d", "z"]
    assert found.classes[-1].recall == 0
    assert found.confusion[4].tolist() == [1, 1, 0, 0, 0]
    text = as_text(EvaluationReport("m", found, []))
    assert "3 trees of 'd', 'z', which the model does not know, count as wrong" in text
    table = text.split("\n\n")[1].splitlines()[1:]
    assert [(row.split()[0], int(row.split()[-1])) for row in table[-2:]] == [("d", 1), ("z", 2)]
    assert as_json(EvaluationReport("m", found, []))["unknown"] == {"d": 1, "z": 2}
    scores = np.array([[1.0, 3.0, 2.0], [5.0, 1.0, 1.0]])
    assert margins(CLASSES, np.array(["z", "c"]), scores).tolist() == [1.0, 4.0]


def test_reports_say_the_same_in_every_form():
    truth, predicted = np.array(list("aabbc")), np.array(list("abbbb"))
    found = evaluate(CLASSES, truth, predicted)
    mistakes = [Mistake(5, "c", "b", 1.5, "(S (<A> a))")]
    report = EvaluationReport("m<1>", found, mistakes)
    second = report._replace(against="other", other=found, test=mcnemar(truth, predicted, predicted))
    assert as_json(report)["accuracy"] == 0.6
    assert as_json(report)["mistakes"][0]["tree"] == "(S (<A> a))"
    assert as_json(second)["against"]["p_value"] == 1.0
    assert "accuracy 0.600 (95 %: 0.231 to 0.882) on 5 trees" in as_text(report)
    assert "p = 1" in as_text(second)
    page = as_page(second)
    assert "m&lt;1&gt;" in page
    assert "(S (&lt;A&gt; a))" in page
    assert "<A>" not in page
    assert '<td style="--share: 0.500">1</td>' in page
    assert '<td class="right" style="--share: 1.000">2</td>' in page
    assert "c predicted as b: a " in page
    assert page.count("<rect") == 3  # the tree of the mistake is drawn


def test_the_page_of_a_model_without_mistakes_says_so():
    page = as_page(EvaluationReport("models/good", evaluate(CLASSES, CLASSES, CLASSES), []))
    assert "How good is good?" in page
    assert "<p>None.</p>" in page


def test_the_matrix_of_many_classes_is_small():
    names = np.array([f"c{k:02}" for k in range(20)])
    assert 'class="confusion many"' in as_page(EvaluationReport("m", evaluate(names, names, names), []))


def test_the_interval_of_macro_f1_covers_the_truth_in_most_samples():
    rng = np.random.default_rng(0)
    shares = np.array([[0.4, 0.1], [0.15, 0.35]])
    f1 = 2 * np.diag(shares) / (shares.sum(axis=0) + shares.sum(axis=1))
    covered = 0
    for _ in range(400):
        cells = rng.choice(4, 200, p=shares.ravel())
        low, high = evaluate(np.array([0, 1]), cells // 2, cells % 2).macro_f1_interval
        covered += low <= f1.mean() <= high
    assert 0.92 <= covered / 400 <= 0.98
