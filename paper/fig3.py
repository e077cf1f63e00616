"""Fig. 3: classifying questions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from paper.classify import as_bits, choose_cost, classified, folded, mcnemar
from paper.corpora import Corpora
from paper.methods import BOUNDED, COLOURS, DENSE, METHODS, Method
from paper.record import Record, Step, alone
from paper.rivals.label_selection import LabelSelectionKernel
from paper.rivals.label_selection_transformer import LabelSelectionTransformer
from paper.rivals.mined_fragment_vectorizer import MinedFragmentVectorizer
from paper.section import Drawing, Section, Table, panel, spread
from paper.settings import SIZE, Settings
from treedot._runtime.timing import Stopwatch, timed
from treedot.kernels import SubsetTreeKernel
from treedot.trees import Forest
from treedot.vectors import FragmentVectorizer

TITLE = "Fig. 3: question classification"
SAMPLE = (
    "Not comparable with the paper: the accuracies are of 100 invented questions, most of which every method "
    "classifies rightly. It shows what the full run measures."
)
NEEDS = ("qc",)
COST_DECAY = 0.4  # at which C is chosen, and at which costs are compared
SHARE = 0.5  # of the comparisons that label selection may spend
ROWS: tuple[Method, ...] = (*METHODS, BOUNDED)

Grams = tuple[np.ndarray, np.ndarray]
Represent = Callable[[Forest, Forest, float, int], tuple[Grams, dict[str, Any]]]


def contenders(settings: Settings) -> dict[str, Represent]:
    """Return every method as a function from trees to Gram matrices, with what it cost, by name."""

    def exact(train: Forest, test: Forest, decay: float, seed: int) -> tuple[Grams, dict[str, Any]]:
        kernel = SubsetTreeKernel(decay=decay, normalize=True)
        clock = _Clock()
        gram = kernel.gram(train)
        clock.lap("learning")
        across = kernel.gram(test, train)
        return (gram, across), clock.done("classification")

    def approximate(train: Forest, test: Forest, decay: float, seed: int) -> tuple[Grams, dict[str, Any]]:
        transformer = LabelSelectionTransformer(decay=decay, normalize=True, comparisons=SHARE)
        clock = _Clock()
        gram = transformer.fit_transform(train, train.columns["coarse"])
        clock.lap("learning")
        across = transformer.transform(test)
        return (gram, across), {**clock.done("classification"), "speed-up": float(transformer.speedup_)}

    def selected(train: Forest, test: Forest, decay: float, seed: int) -> tuple[Grams, dict[str, Any]]:
        selector = MinedFragmentVectorizer(n_fragments=settings.kept_fragments, decay=decay, normalize=True)
        clock = _Clock()
        rows = selector.fit(train, train.columns["coarse"]).transform(train)
        gram = (rows @ rows.T).toarray()
        clock.lap("learning")
        across = (selector.transform(test) @ rows.T).toarray()
        return (gram, across), {**clock.done("classification"), "fragments": len(selector.fragments_)}

    def vectors(method: Any) -> Represent:
        def represent(train: Forest, test: Forest, decay: float, seed: int) -> tuple[Grams, dict[str, Any]]:
            clock = _Clock()
            rows = method.rows(train, decay, seed)
            gram = method.gram(rows)
            clock.lap("learning")
            across = method.gram(method.rows(test, decay, seed), rows)
            return (gram, across), clock.done("classification")

        return represent

    return {
        "TK": exact,
        **{method.name: vectors(method) for method in ROWS},
        "ATK": approximate,
        "FTK+FS": selected,
    }


TITLES = {"TK": "TK", **{method.name: method.title for method in ROWS}, "ATK": "ATK", "FTK+FS": "FTK+FS"}
RANDOM = tuple(method.name for method in ROWS)


def steps(corpora: Corpora, settings: Settings) -> dict[str, Step]:
    """Return what is to be measured, by name."""
    methods = contenders(settings)

    def data() -> tuple[Forest, Forest]:
        return _some(corpora.train, settings.questions), corpora.test

    def measured(name: str, decay: float, seed: int, record: Record) -> dict[str, Any]:
        fine = settings.fine and seed == 0 and name in (*RANDOM, "TK")
        return accuracies(data(), methods[name], decay, seed, record[f"C {name}"]["best"], fine)

    plan: dict[str, Step] = {
        f"C {name}": alone(_chosen, data, represent, settings) for name, represent in methods.items()
    }
    plan["work"] = alone(lambda: work(data()[0]))
    plan["linear SVM"] = alone(lambda: linear_svm(*data(), settings))
    for name, decay in product(methods, settings.decays):
        for seed in range(settings.seeds if name in RANDOM else 1):
            plan[_key(name, decay, seed)] = partial(measured, name, decay, seed)
    return plan


def work(train: Forest) -> dict[str, int]:
    """Count the entries of Δ that the Gram matrix of the training questions takes with each algorithm."""
    exact = {
        name: SubsetTreeKernel(COST_DECAY, algorithm=name).work(train) for name in ("TK", "FTK", "shared")
    }
    selected = LabelSelectionTransformer(comparisons=SHARE, decay=COST_DECAY, normalize=True)
    labels = selected.fit(train, train.columns["coarse"]).labels_
    return {**exact, "ATK": LabelSelectionKernel(labels, decay=COST_DECAY).work(train)}


def linear_svm(train: Forest, test: Forest, settings: Settings) -> dict[str, Any]:
    """Choose λ and C by cross-validation, then train linear SVMs on bounded rows.

    Beside it the exact kernel, chosen alike, with what learning and classification cost each.
    """
    classes = np.array(train.columns["coarse"])
    decays = [decay for decay in settings.decays if decay <= 0.4]
    chosen: dict[str, tuple[float, float, float]] = {}
    for name, represent in (("exact", _exact_gram), ("bounded", _bounded_gram)):
        for decay in decays:
            found = choose_cost([represent(train, decay)], [classes], settings.costs, settings.folds)
            chosen[name] = max(
                chosen.get(name, (0.0, 0.0, 0.0)), (found[str(found["best"])], decay, found["best"])
            )
    result: dict[str, Any] = {"chosen": chosen}
    answers = np.array(test.columns["coarse"])
    _, decay, cost = chosen["exact"]
    kernel = SubsetTreeKernel(decay, normalize=True)
    clock = _Clock()
    gram = kernel.gram(train)
    classified(gram, classes, gram[:1], cost)
    clock.lap("learning")
    across = kernel.gram(test, train)
    spent = clock.done("classification")
    result["exact"] = _graded(classified(gram, classes, across, cost) == answers, spent)
    _, decay, cost = chosen["bounded"]
    result["bounded"] = []
    for seed in range(settings.table_seeds):
        vectorizer = FragmentVectorizer(decay=decay, random_state=seed)
        clock = _Clock()
        classify = folded(vectorizer.transform(train), classes, cost)
        clock.lap("learning")
        right = classify(vectorizer.transform(test)) == answers
        result["bounded"].append(_graded(right, clock.done("classification")))
    return result


def _graded(right: np.ndarray, spent: dict[str, Any]) -> dict[str, Any]:
    each = spent["classification"] / len(right)
    return {**spent, "classification": each, "accuracy": float(right.mean()), "correct": as_bits(right)}


def _exact_gram(train: Forest, decay: float) -> np.ndarray:
    return SubsetTreeKernel(decay, normalize=True).gram(train)


def _bounded_gram(train: Forest, decay: float) -> np.ndarray:
    return BOUNDED.gram(BOUNDED.rows(train, decay, 0))


def _some(forest: Forest, n: int | None) -> Forest:
    return forest if n is None else forest[np.sort(np.random.default_rng(0).permutation(len(forest))[:n])]


def _chosen(
    data: Callable[[], tuple[Forest, Forest]], represent: Represent, settings: Settings
) -> dict[str, float]:
    train, test = data()
    (gram, _), _ = represent(train, test[:1], COST_DECAY, 0)
    return choose_cost([gram], [np.array(train.columns["coarse"])], settings.costs, settings.folds)


def accuracies(
    data: tuple[Forest, Forest], represent: Represent, decay: float, seed: int, cost: float, fine: bool
) -> dict[str, Any]:
    """Train on the training questions, classify the test questions; by fine classes too if asked."""
    train, test = data
    (gram, across), spent = represent(train, test, decay, seed)
    found: dict[str, Any] = {"cost": spent}
    for level in ("coarse", "fine") if fine else ("coarse",):
        classes = np.array(train.columns[level])
        guess, seconds = timed(partial(classified, gram, classes, across, cost))
        right = guess == np.array(test.columns[level])
        found[level] = {
            "accuracy": float(right.mean()),
            "correct": as_bits(right),
            "SVM": seconds,
        }
    return found


def section(record: Record, settings: Settings) -> Section:
    """Return what was found."""
    low = [decay for decay in settings.decays if decay <= 0.4]
    best = {name: max(_accuracy(record, settings, name, decay) for decay in low) for name in TITLES}
    dense = max((method.name for method in DENSE), key=lambda name: best[name])
    lost = {name: best[name] - _accuracy(record, settings, name, settings.decays[-1]) for name in TITLES}
    rows = BOUNDED.name
    result = Section(
        "fig3",
        TITLE,
        f"At its best λ ≤ 0.4 the exact kernel classifies {best['TK']:.1%} of the test questions rightly, "
        f"the best dense distributed one ({TITLES[dense]}) {best[dense]:.1%} and bounded rows "
        f"{best[rows]:.1%}; from there to λ = {settings.decays[-1]:g} they lose {100 * lost['TK']:.1f}, "
        f"{100 * lost[dense]:.1f} and {100 * lost[rows]:.1f} points.",
    )
    result.blocks += [
        Drawing(
            "fig3", _draw(record, settings), "Accuracy by λ; bars are the standard deviation over seeds."
        ),
        Table(
            ["λ", *TITLES.values()],
            [
                [decay, *(spread(_runs(record, settings, name, decay)) for name in TITLES)]
                for decay in settings.decays
            ],
        ),
        f"Coarse classes, one-vs-all SVMs on {settings.questions or 'all'} training "
        f"questions, {len(record[_key('TK', low[0], 0)]['coarse']['correct'])} test questions, normalised "
        f"kernels, d = {SIZE}; mean ± standard deviation over {settings.seeds} seeds. C by "
        "cross-validation on the training questions, once per method: "
        + ", ".join(f"{title} {record[f'C {name}']['best']:g}" for name, title in TITLES.items())
        + ". ATK and FTK+FS choose labels and fragments with all training questions, before folds are cut.",
        "McNemar's exact test against TK, first seed:",
        Table(
            ["λ", *(TITLES[name] for name in TITLES if name != "TK")],
            [
                [decay, *(f"p = {_p(record, name, decay):.3f}" for name in TITLES if name != "TK")]
                for decay in settings.decays
            ],
        ),
    ]
    if settings.fine:
        names = [name for name in TITLES if name not in ("ATK", "FTK+FS")]
        result.blocks += [
            "The 50 fine classes, first seed, the same C:",
            Table(
                ["λ", *(TITLES[name] for name in names)],
                [
                    [decay, *(f"{record[_key(name, decay, 0)]['fine']['accuracy']:.3f}" for name in names)]
                    for decay in settings.decays
                ],
            ),
        ]
    result.blocks += [
        f"The rivals in one table, at λ = {COST_DECAY}:",
        Table(
            [
                "method",
                "accuracy",
                "kernel or vectors of the training questions, s",
                "SVMs, s",
                "test questions, ms each",
                "",
            ],
            [
                [
                    TITLES[name],
                    f"{_accuracy(record, settings, name, COST_DECAY):.3f}",
                    f"{run['cost']['learning']:.1f}",
                    f"{run['coarse']['SVM']:.1f}",
                    f"{run['cost']['classification'] / len(run['coarse']['correct']) * 1e3:.2f}",
                    ", ".join(
                        f"{key} {value:.4g}"
                        for key, value in run["cost"].items()
                        if key in ("speed-up", "fragments")
                    ),
                ]
                for name in TITLES
                for run in [record[_key(name, COST_DECAY, 0)]]
            ],
        ),
        "Learning of TK, ATK and the vectors includes the Gram matrix, on which all SVMs are trained; "
        f"that of FTK+FS includes its own SVMs, mining and indexing. ATK may make {SHARE} of the "
        "comparisons.",
    ]
    entries = record["work"]
    result.blocks += [
        "Entries of Δ for the Gram matrix of the training questions: a pairwise kernel visits "
        f"{entries['TK']:,} pairs of nodes (TK) or {entries['FTK']:,} with equal productions (FTK); "
        "dynamic programming over the distinct subtrees of the whole set computes "
        f"{entries['shared']:,}, and {entries['ATK']:,} with ATK's labels.",
        *_linear_section(record),
    ]
    return result


def _linear_section(record: Record) -> list[str | Table]:
    found = record["linear SVM"]
    runs = found["bounded"]
    exact = found["exact"]
    p = ", ".join(f"{mcnemar(exact['correct'], run['correct']):.2f}" for run in runs)
    columns = ["λ, C by cross-validation", "accuracy", "learning, s", "classification, µs per question"]
    return [
        "Bounded rows with a linear SVM (trained on their Gram matrix as the kernels are, folded "
        f"into weights), beside the exact kernel; λ and C by cross-validation, {len(runs)} seeds. "
        "Classification is the kernels with all training questions, or encoding and weights, on one core. "
        f"McNemar's p against the exact kernel: {p}.",
        Table(
            ["method", *columns],
            [
                [
                    "exact kernel",
                    f"{found['chosen']['exact'][1]}, {found['chosen']['exact'][2]:g}",
                    f"{exact['accuracy']:.3f}",
                    f"{exact['learning']:.2f}",
                    f"{exact['classification'] * 1e6:.0f}",
                ],
                [
                    "bounded rows, 2^20 columns",
                    f"{found['chosen']['bounded'][1]}, {found['chosen']['bounded'][2]:g}",
                    spread([r["accuracy"] for r in runs]),
                    f"{np.median([r['learning'] for r in runs]):.2f}",
                    f"{np.median([r['classification'] for r in runs]) * 1e6:.0f}",
                ],
            ],
        ),
    ]


def _key(name: str, decay: float, seed: int) -> str:
    return f"{name} λ {decay} seed {seed}"


def _runs(record: Record, settings: Settings, name: str, decay: float) -> list[float]:
    seeds = range(settings.seeds if name in RANDOM else 1)
    return [record[_key(name, decay, seed)]["coarse"]["accuracy"] for seed in seeds]


def _accuracy(record: Record, settings: Settings, name: str, decay: float) -> float:
    return float(np.mean(_runs(record, settings, name, decay)))


def _p(record: Record, name: str, decay: float) -> float:
    exact, other = (record[_key(who, decay, 0)]["coarse"]["correct"] for who in ("TK", name))
    return mcnemar(exact, other)


class _Clock:
    """Seconds by name."""

    def __init__(self) -> None:
        self.watch = Stopwatch()
        self.spent: dict[str, Any] = {}

    def lap(self, name: str) -> None:
        """Give the time since the last lap a name."""
        self.spent[name] = self.watch.lap()

    def done(self, name: str) -> dict[str, Any]:
        """Name the last lap and return all."""
        self.lap(name)
        return self.spent


def _draw(record: Record, settings: Settings) -> list[Any]:
    figure, axes = panel(xlabel="λ", ylabel="accuracy, coarse classes")
    for name, title in TITLES.items():
        runs = [_runs(record, settings, name, decay) for decay in settings.decays]
        axes.errorbar(
            settings.decays,
            [np.mean(run) for run in runs],
            [np.std(run, ddof=1) if len(run) > 1 else 0 for run in runs],
            marker="o",
            markersize=4,
            capsize=3,
            color=COLOURS[name],
            label=title,
        )
    axes.legend(fontsize=8)
    return [figure]
