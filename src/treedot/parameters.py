"""Allowed values of settings, and functions that check settings."""

from __future__ import annotations

import math
import operator
import os
from numbers import Real
from pathlib import Path
from typing import Any

from treedot.errors import ParameterError
from treedot.languages import LANGUAGES

# Defined here so that the command line can read them without importing anything heavy.
DOCUMENTS = ("html", "xml", "json")  # formats in which a whole file is one tree
WITH_RECORDS = ("xml", "json")
TREEBANKS = ("conllu", "newick", "dot-bracket")
EXAMPLES = ("svmlight", "kelp")  # file formats of SVM-LIGHT-TK and KeLP
FORMATS = (
    "brackets", "tsv", "csv", "jsonl", "parquet", "arrow", *DOCUMENTS, *TREEBANKS, *EXAMPLES, *LANGUAGES,
)  # fmt: skip
DEPENDENCY_TREES = ("grct", "lct", "loct", "cgrct", "clct")  # trees that can be made of a CoNLL-U sentence
PARSES = (*DEPENDENCY_TREES, "constituency")  # trees that can be made of the sentence of a parser
PARTS_OF_SPEECH = ("xpos", "upos")  # which one a dependency tree holds
WORDS = ("lemma", "form")  # which text of a word a dependency tree holds
TESTS = ("first", "last", "skip")  # of the list of near-duplicates
CODE_UNITS = ("function", "class", "file")  # the unit of source code that becomes one tree
DOCUMENT_UNITS = ("document", "record")  # one tree for the whole document, or one for each record in it
POLICIES = ("keep", "blur", "drop")  # for texts: the node and its text, only the node, or neither
COMPOSITIONS = ("mixed", "product", "convolution")
DTYPES = ("float32", "float64")
DAMPINGS = ("linear", "sqrt", "log1p")  # functions of the number of times that a fragment occurs
SCORINGS = ("accuracy", "balanced_accuracy", "f1_macro", "average_precision", "neg_log_loss")
RESTS = ("dense", "blocks")  # how a row stores the fragments beyond its budget

CONVENTIONS = ("paper", "collins-duffy")  # a fragment of one production counts 1, or λ
SUBTREE_CONVENTIONS = (*CONVENTIONS, "kelp", "svm-light-tk")
VECTOR_KERNELS = ("subset", "partial", "smoothed")  # kernels that dense vectors can approximate
GAPS = ("toolkit", "span")  # a partial tree pays for skipped children, or for all in its span
STARTS = ("any", "root")  # nodes at which routes start

REPORT_FORMATS = ("text", "json", "sarif", "html", "markdown", "gitlab", "github")


def checked_decay(decay: Any) -> float:
    """Return the decay λ as a float; raise ParameterError unless it is a number in [0, 1]."""
    return checked_share("decay (λ)", decay)


def checked_share(name: str, value: Any) -> float:
    """Return a setting as a float; raise ParameterError unless it is a number in [0, 1]."""
    number = _number(value)
    if not 0.0 <= number <= 1.0:
        raise ParameterError(f"{name} must be a number from 0 to 1, not {value!r}")
    return number


def checked_positive(name: str, value: Any) -> float:
    """Return a setting as a float; raise ParameterError unless it is a finite number above 0."""
    number = _number(value)
    if not 0.0 < number < math.inf:
        raise ParameterError(f"{name} must be a number above 0, not {value!r}")
    return number


def checked_not_negative(name: str, value: Any) -> float:
    """Return a setting as a float; raise ParameterError unless it is a finite number of at least 0."""
    number = _number(value)
    if not 0.0 <= number < math.inf:
        raise ParameterError(f"{name} must be a number of at least 0, not {value!r}")
    return number


def _number(value: Any) -> float:
    """Return a number as a float; NaN, which is in no range, for anything else, text included."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # the integer is too large for a float
        return math.nan


def checked_integer(name: str, value: Any, at_least: int | None = None) -> int:
    """Return a setting as an int; raise ParameterError unless it is an integer of at least ``at_least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} must be an integer, not {value!r}") from None
    if at_least is not None and number < at_least:
        raise ParameterError(f"{name} must be at least {at_least}, not {number}")
    return number


def checked_path(name: str, value: Any) -> Path:
    """Return a setting as a Path; raise ParameterError unless it is a str or path-like."""
    if isinstance(value, (str, os.PathLike)) and "\0" not in str(value):
        return Path(value)
    raise ParameterError(f"{name} must be a path, not {value!r}")


def checked_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Return a setting; raise ParameterError unless it is one of the choices."""
    if not any(value is choice or value == choice for choice in choices):
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """Return a setting as a bool; raise ParameterError unless it is True or False."""
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, not {value!r}")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for scikit-learn's ``n_jobs``: 1 for None, all cores for -1."""
    if n_jobs is None:
        return 1
    n_jobs = checked_integer("n_jobs", n_jobs)
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0: use a number of threads, or -1 for all cores")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
