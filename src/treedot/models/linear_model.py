"""``LinearModel``: everything that a prediction needs, without scikit-learn."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from treedot._runtime.array_types import Array, FloatArray, IntArray
from treedot.errors import DeviceError, ParameterError
from treedot.models.calibration import Calibration, checked_calibration
from treedot.models.inputs.inputs import columns_of, linear_scores
from treedot.models.inputs.model_input import StoredInput
from treedot.models.inputs.table import Columns, Table, read_table
from treedot.models.inputs.tree_inputs import DenseInput
from treedot.models.model_folder import read_model, write_model


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """A trained linear model of trees: ``w · x + b``, the score of each class, or a predicted number.

    ``TreeClassifier`` and ``TreeRegressor`` train and save such models; loading one and predicting with it
    need no scikit-learn.
    The model's inputs turn an example, a tree or several columns of a table, into a row x: fragments, dense
    vectors, or the exact kernels with the model's support vectors.

    Parameters
    ----------
    inputs : sequence of StoredInput
        The inputs that turn examples into rows; the rows of all inputs are concatenated.
    classes : array of str or int, or None
        The classes in ascending order; None for a model that predicts numbers.
    columns : array of int
        The columns of the rows that have weights, in ascending order.
    weights : array of float32 of shape (n_columns, n_classes)
        The weights w; for two classes, a single column with the weights of the second; for numbers, a single
        column.
    bias : array
        The biases b, one for each column of ``weights``.
    facts : dict, default={}
        Anything else about the model, as JSON values: how and on what it was trained, and its accuracy.
    calibration : Calibration, default=None
        What turns scores into probabilities; None if the model has none.

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
    classes: Array | None
    columns: IntArray
    weights: Array
    bias: FloatArray
    facts: dict[str, Any] = field(default_factory=dict)
    calibration: Calibration | None = None

    @property
    def reads(self) -> Columns:
        """The names of the columns that examples must have."""
        return columns_of(self.inputs)

    @property
    def class_column(self) -> str | None:
        """The column that held the classes, or numbers, in training; None if the model does not name one.

        ``treedot train``, ``train_files`` and ``treedot.batch.fit`` write it to ``facts["data"]["label"]``.
        """
        return self._column("label")

    @property
    def tree_column(self) -> str | None:
        """The column that held the trees in training; None if the model does not name one.

        It is in ``facts["data"]["column"]``, where training was given the name. ``reads`` has the columns of
        a model of several columns.
        """
        return self._column("column")

    def _column(self, of: str) -> str | None:
        data = self.facts.get("data")
        column = data.get(of) if isinstance(data, dict) else None
        return column if isinstance(column, str) else None

    def decision_function(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the scores of every example, one per class; for two classes, only the score of the second.

        If the model predicts numbers, these are the scores.

        Parameters
        ----------
        X : source of trees, or table
            The examples, as ``read_trees`` takes them. If the model has named columns, a table with these.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        array of shape (n_examples, n_classes), or (n_examples,) for two classes and for numbers
            The scores.
        """
        return self.scores(read_table(X, self.reads), n_jobs)

    def scores(self, table: Table, n_jobs: int | None = None) -> FloatArray:
        """Return the scores of the examples in a table.

        Parameters
        ----------
        table : Table
            The examples.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        array of shape (n_examples, n_classes), or (n_examples,) for two classes and for numbers
            The scores.
        """
        return linear_scores(self.inputs, table, self.columns, self.weights, self.bias, n_jobs)

    def predict(self, X: Any, n_jobs: int | None = None) -> Array:
        """Return the class with the largest score, or the predicted number, for every example.

        Parameters
        ----------
        X : source of trees, or table
            The examples, as ``decision_function`` takes them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        array of shape (n_examples,)
            The classes, or numbers.
        """
        return self.best(self.decision_function(X, n_jobs))

    def predict_proba(self, X: Any, n_jobs: int | None = None) -> FloatArray:
        """Return the probability of each class, for every example.

        Parameters
        ----------
        X : source of trees, or table
            The examples, as ``decision_function`` takes them.
        n_jobs : int, default=None
            The number of threads; -1 uses all cores.

        Returns
        -------
        array of shape (n_examples, n_classes)
            The probabilities, in the order of ``classes``; each row sums to 1.

        Raises
        ------
        ParameterError
            If the model has no calibration, or predicts numbers.

        See Also
        --------
        TreeClassifier.predict_proba : How probabilities are estimated.
        """
        self.check_calibrated()
        return self.probabilities(self.decision_function(X, n_jobs))

    def probabilities(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each class, given the scores.

        Parameters
        ----------
        scores : array of shape (n_examples, n_classes), or (n_examples,) for two classes
            What ``decision_function`` returns.

        Returns
        -------
        array of shape (n_examples, n_classes)
            The probabilities; each row sums to 1.

        Raises
        ------
        ParameterError
            If the model has no calibration, or predicts numbers.
        """
        return self.check_calibrated().probabilities(scores)

    def check_calibrated(self) -> Calibration:
        """Return the calibration.

        Returns
        -------
        Calibration
            What turns scores into probabilities.

        Raises
        ------
        ParameterError
            If the model has no calibration, or predicts numbers.
        """
        if self.classes is None:
            raise ParameterError("the model predicts numbers, which have no probabilities")
        return checked_calibration(self.calibration)

    def best(self, scores: FloatArray) -> Array:
        """Return the class with the largest score, given the scores; or the numbers, which are the scores.

        Parameters
        ----------
        scores : array of shape (n_examples, n_classes), or (n_examples,) for two classes and for numbers
            What ``decision_function`` returns.

        Returns
        -------
        array of shape (n_examples,)
            The class, or number, of every example.
        """
        return scores if self.classes is None else best_class(self.classes, scores)

    def __repr__(self) -> str:
        """Return one line that summarises the model."""
        inputs = ", ".join(type(one).__name__ for one in self.inputs)
        what = "numbers" if self.classes is None else f"{len(self.classes)} classes"
        return f"<LinearModel of {what}: {self.weights.size} weights of {inputs}>"

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a folder atomically: if writing fails, no folder appears.

        Parameters
        ----------
        path : path
            The folder.
        overwrite : bool, default=False
            Replace an existing model.
        """
        arrays = {"columns": self.columns, "weights": self.weights, "bias": self.bias}
        write_model(
            path, self.inputs, self.classes, arrays, self.facts, self.calibration, overwrite=overwrite
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, device: str = "cpu") -> Self:
        """Read a folder that ``save`` wrote.

        Parameters
        ----------
        path : path
            The folder.
        device : str, default="cpu"
            ``"cuda"`` computes dense vectors and their scores on a GPU, in float32.

        Returns
        -------
        LinearModel
            The model.

        Raises
        ------
        SourceError
            If the folder is damaged, or does not hold a model.
        DeviceError
            If the device does not exist, or the model has no dense vectors.
        """
        inputs, classes, columns, weights, bias, facts, calibration = read_model(path)
        if device != "cpu":
            if not any(isinstance(each, DenseInput) for each in inputs):
                raise DeviceError(f"device={device!r} needs a model of dense vectors: use device='cpu'")
            inputs = [
                replace(each, device=device) if isinstance(each, DenseInput) else each for each in inputs
            ]
        return cls(inputs, classes, columns, weights, bias, facts, calibration)


def best_class(classes: Array, scores: FloatArray) -> Array:
    """Return the class of every example, given its scores: one number for two classes, otherwise a row."""
    chosen = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
    best: Array = classes[chosen]
    return best
