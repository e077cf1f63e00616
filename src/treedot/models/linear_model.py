"""A model of trees, linear in rows of its inputs: all that a prediction needs, without scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot.errors import DeviceError
from treedot.models.inputs.inputs import columns_of, linear_scores
from treedot.models.inputs.model_input import StoredInput
from treedot.models.inputs.table import Columns, Table, read_table
from treedot.models.inputs.tree_inputs import DenseInput
from treedot.models.model_folder import read_model, write_model


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """Classes of trees by scores that are linear in their rows: ``w · x + b`` for each class.

    ``TreeClassifier`` trains one and saves it; this loads it again, and needs no scikit-learn. What a row is
    the model's inputs say: of one tree, or of several columns of a table; rows of fragments, dense vectors,
    or the exact kernels with the model's support vectors.

    Parameters
    ----------
    inputs : sequence of StoredInput
        How examples become rows, which stand side by side.
    classes : array of str or int
        The classes, ascending.
    columns : array of int
        The columns of rows that have weights, ascending.
    weights : array of float32 of shape (n_columns, n_classes)
        The weights w; for two classes one column of them, that of the second.
    bias : array
        The biases b, one for each column of ``weights``.
    facts : dict, default={}
        What else is known, as JSON values: how it was trained, on what, and how good it was.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treedot import LinearModel, TreeClassifier
    >>> trees = ["(S (A a) (B b))", "(S (A a) (B c))", "(T (A a) (C b))", "(T (A d) (C b))"]
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "model")
    >>> TreeClassifier(decay=0.4, C=10).fit(trees, ["S", "S", "T", "T"]).save(folder)
    >>> print(*LinearModel.load(folder).predict(["(T (A e) (C e))"]))
    T
    """

    inputs: Sequence[StoredInput]
    classes: Array
    columns: IntArray
    weights: Array
    bias: FloatArray
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def reads(self) -> Columns:
        """The names of the columns that examples must have."""
        return columns_of(self.inputs)

    @property
    def class_column(self) -> str | None:
        """The column that held the classes in training; None where the model does not name one.

        ``treedot train``, ``train_files`` and ``treedot.batch.fit`` write it to ``facts["data"]["label"]``.
        """
        data = self.facts.get("data")
        column = data.get("label") if isinstance(data, dict) else None
        return column if isinstance(column, str) else None

    def decision_function(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the score of every example for each class, or for the second of two.

        Parameters
        ----------
        X : source of trees, or table
            The examples, as ``read_trees`` takes them; where the model has named columns, a table with these.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_examples, n_classes), or (n_examples,) for two classes
            The scores.
        """
        return self.scores(read_table(X, self.reads), n_jobs)

    def scores(self, table: Table, n_jobs: int | None = None) -> FloatArray:
        """Return the scores of examples that have been read.

        Parameters
        ----------
        table : Table
            The examples.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_examples, n_classes), or (n_examples,) for two classes
            The scores.
        """
        return linear_scores(self.inputs, table, self.columns, self.weights, self.bias, n_jobs)

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the class with the largest score for every example.

        Parameters
        ----------
        X : source of trees, or table
            The examples, as ``decision_function`` takes them.
        n_jobs : int, default=None
            Threads; -1 for all cores.

        Returns
        -------
        array of shape (n_examples,)
            The classes.
        """
        return self.best(self.decision_function(X, n_jobs))

    def best(self, scores: FloatArray) -> Array:
        """Return the class with the largest score.

        Parameters
        ----------
        scores : array of shape (n_examples, n_classes), or (n_examples,) for two classes
            What ``decision_function`` returns.

        Returns
        -------
        array of shape (n_examples,)
            The class of every example.
        """
        return best_class(self.classes, scores)

    def __repr__(self) -> str:
        """Return one line without the weights."""
        inputs = ", ".join(type(one).__name__ for one in self.inputs)
        return f"<LinearModel of {len(self.classes)} classes: {self.weights.size} weights of {inputs}>"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder, which appears whole or not at all.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Replace a model that is there.
        """
        arrays = {"columns": self.columns, "weights": self.weights, "bias": self.bias}
        write_model(path, self.inputs, self.classes, arrays, self.facts, overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "cpu") -> Self:
        """Read a folder that ``save`` wrote.

        Parameters
        ----------
        path : path
            The folder.
        device : str, default="cpu"
            With ``"cuda"``, a GPU makes dense vectors and their scores, which are then sums in float32.

        Returns
        -------
        LinearModel
            The model.

        Raises
        ------
        SourceError
            If the folder is damaged, or is not that of a model.
        DeviceError
            If there is no such device, or the model has no dense vectors.
        """
        inputs, classes, columns, weights, bias, facts = read_model(path)
        if device != "cpu":
            if not any(isinstance(each, DenseInput) for each in inputs):
                raise DeviceError(f"a model without dense vectors has no use for device={device!r}")
            inputs = [
                replace(each, device=device) if isinstance(each, DenseInput) else each for each in inputs
            ]
        return cls(inputs, classes, columns, weights, bias, facts)


def best_class(classes: Array, scores: FloatArray) -> Array:
    """Return the class of every example from its scores: a number where there are two classes, else a row."""
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    best: Array = classes[chosen]
    return best
