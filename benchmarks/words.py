"""Measure what words and labels beside fragments add: ``python -m benchmarks.words``.

``TreeClassifier()`` is compared with one that may also choose idf, words and labels. Both choose their
settings by cross-validation on the training set. The table gives that accuracy, the accuracy on the test set
with McNemar's test of the difference, and the processor time of the fit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.tasks import TASKS, Task, read_task
from treedot import TreeClassifier
from treedot.models.evaluation import mcnemar

CHOICES: dict[str, Any] = {
    "decay": (0.2, 0.4),
    "C": (1.0, 10.0),
    **dict.fromkeys(("idf", "words", "labels"), (False, True)),
}


def compare(task: Task) -> list[str]:
    """Return one line for each classifier, and one for the test of their difference."""
    y_train, y_test = task.classes
    lines, predicted = [], []
    for name, settings in (("default", {}), ("with words", CHOICES)):
        start = time.process_time()
        model = TreeClassifier(n_jobs=1, **settings).fit(task.train, y_train)
        took = time.process_time() - start
        best = max(trial.accuracy for trial in model.trials_ if trial.folds == model.cv)
        predicted.append(model.predict(task.test))
        right = float((predicted[-1] == y_test).mean())
        chosen = [name for name in ("idf", "words", "labels") if getattr(model, f"{name}_")]
        lines.append(
            f"{task.name:10}  {name:10}  {best:.4f}  {right:.4f}  {took:6.1f} s  decay {model.decay_:g}, "
            f"C {model.C_:g}{''.join(f', {each}' for each in chosen)}"
        )
    test = mcnemar(y_test, *predicted)
    return [*lines, f"{'':10}  McNemar {test.only_first} : {test.only_second}, p = {test.p_value:.3g}"]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.words", description=__doc__)
    parser.add_argument("--data", default=os.environ.get("TREEDOT_DATA"), help="folder of the corpora")
    parser.add_argument(
        "tasks", nargs="*", metavar="TASK", help=f"of {', '.join(TASKS)} (default: six of them)"
    )
    options = parser.parse_args(arguments)
    if options.data is None:
        raise SystemExit("the corpora are needed: give --data DIR, or set TREEDOT_DATA")
    print("task        columns     folds   test    fit      chosen")
    for name in options.tasks or ("QC coarse", "QC fine", "glycans", "RNA", "SST 2", "SST 5"):
        print(*compare(read_task(Path(options.data), name)), sep="\n", flush=True)


if __name__ == "__main__":
    main()
