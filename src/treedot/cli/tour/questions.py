"""The second section of the tour: questions are classified, and one decision is explained."""

from __future__ import annotations

import html

import numpy as np

import treedot as td
from treedot.cli.tour.section import Section, code, paragraph, picture, step
from treedot.models.evaluation import Evaluation, evaluate
from treedot.models.evaluation_report import accuracy_words, matrix_html
from treedot.models.explain.decision import Explanation
from treedot.models.explain.text import flip_words
from treedot.models.explain.web import coloured_tree, fragment_boxes
from treedot.serve.example_questions import questions

TRAINED = 100  # questions to train on; the model is tested on the others
EXPLAINED = 4  # the number of the test question whose decision is explained
LISTED = 4  # fragments for the class that are drawn


def questions_section() -> Section:
    """Make the section."""
    from sklearn.model_selection import train_test_split

    forest = questions()
    train, test, classes, truth = train_test_split(
        forest, forest.columns["label"], train_size=TRAINED, random_state=0
    )
    model = td.TreeClassifier().fit(train, classes)
    found = evaluate(model.classes_, np.array(truth), model.predict(test))
    why = td.explain(model, test[EXPLAINED], n_fragments=LISTED)
    body = _accuracy(len(forest), found) + _decision(why, str(truth[EXPLAINED]))
    said = [f"  {accuracy_words(found)}, after training on {TRAINED}", f"  {_decision_words(why)}"]
    return Section("questions", "Questions are classified, and a decision explained", body, said)


def _accuracy(n_questions: int, found: Evaluation) -> str:
    names = html.escape(", ".join(figures.name for figures in found.classes))
    introduction = paragraph(
        f"treedot comes with a small table of {n_questions} parsed questions. Their classes are what they "
        f"ask for: {names}. {code('TreeClassifier')} trains on {TRAINED} questions, chooses its settings "
        f"by cross-validation, and predicts the classes of the other {found.n_trees}."
    )
    wrong = found.n_trees - int(np.trace(found.confusion))
    matrix = picture(
        matrix_html(found),
        f"Each row is a true class, each column a predicted one. {wrong} questions are outside the diagonal: "
        f"{accuracy_words(found)}. The stronger the colour of a cell, the larger its share of the true "
        "class.",
    )
    return introduction + matrix


def _decision(why: Explanation, truth: str) -> str:
    right = "which is right" if str(why.target) == truth else f"but the true class is {html.escape(truth)}"
    tree = picture(
        coloured_tree(why.tree, why.node_values, float(abs(why.node_values).max())),
        f"The model predicts <em>{html.escape(str(why.target))}</em>, {right}. The colour of a node is its "
        f"share of the score. The shares and the bias add up exactly to the score, {why.score:+.3f}.",
        html.escape(flip_words(why)),
    )
    fragments = picture(
        fragment_boxes((f"{share.value:+.3f}", share.fragment) for share in why.supporting),
        "These fragments speak most for the class; the number is what each adds to the score.",
    )
    return step("Why this class?") + tree + fragments


def _decision_words(why: Explanation) -> str:
    words = " ".join(node.label for node in why.tree.postorder() if node.is_leaf)
    return f"{words}? {why.target}. {flip_words(why)}"
