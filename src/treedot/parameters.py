"""Checks of settings that several parts share."""

from __future__ import annotations

import math
import operator
import os
from numbers import Real
from pathlib import Path
from typing import Any

from treedot.errors import ParameterError
from treedot.languages import LANGUAGES

# Kept here, where the command line can read them without loading anything heavy.
DOCUMENTS = ("html", "xml", "json")  # formats of files that are trees themselves
WITH_RECORDS = ("xml", "json")
TREEBANKS = ("conllu", "newick", "dot-bracket")
EXAMPLES = ("svmlight", "kelp")  # the files of older programs for tree kernels
FORMATS = (
    "brackets", "tsv", "csv", "jsonl", "parquet", "arrow", *DOCUMENTS, *TREEBANKS, *EXAMPLES, *LANGUAGES,
)  # fmt: skip
DEPENDENCY_TREES = ("grct", "lct", "loct")  # what a sentence becomes, of CoNLL-U
CODE_UNITS = ("function", "class", "file")  # what a tree is, of source code
DOCUMENT_UNITS = ("document", "record")  # of documents: all of it, or each of the things that it lists
POLICIES = ("keep", "blur", "drop")  # for texts: a node with the text below it, without, or nothing
COMPOSITIONS = ("mixed", "product", "convolution")
DTYPES = ("float32", "float64")
DAMPINGS = ("linear", "sqrt", "log1p")  # how a fragment that occurs several times counts
RESTS = ("dense", "blocks")  # how a row of fragments holds what lies beyond its budget

CONVENTIONS = ("paper", "collins-duffy")  # what a fragment of one production counts: 1, or λ
SUBTREE_CONVENTIONS = (*CONVENTIONS, "kelp", "svm-light-tk")
VECTOR_KERNELS = ("subset", "partial", "smoothed")  # that dot products of dense vectors approximate
GAPS = ("toolkit", "span")  # what partial trees cost for children that they leave out
STARTS = ("any", "root")  # where routes start

REPORT_FORMATS = ("text", "json", "sarif", "html", "markdown")


def checked_decay(decay: Any) -> float:
    """Return λ as a float, or raise where it is not a number in [0, 1]."""
    return checked_share("decay (λ)", decay)


def checked_share(name: str, value: Any) -> float:
    """Return a setting as a float, or raise where it is not a number in [0, 1]."""
    number = _number(value)
    if not 0.0 <= number <= 1.0:
        raise ParameterError(f"{name} must be a number from 0 to 1, not {value!r}")
    return number


def checked_positive(name: str, value: Any) -> float:
    """Return a setting as a float, or raise where it is not a finite number above 0."""
    number = _number(value)
    if not 0.0 < number < math.inf:
        raise ParameterError(f"{name} must be a number above 0, not {value!r}")
    return number


def checked_not_negative(name: str, value: Any) -> float:
    """Return a setting as a float, or raise where it is not a finite number of at least 0."""
    number = _number(value)
    if not 0.0 <= number < math.inf:
        raise ParameterError(f"{name} must be a number of at least 0, not {value!r}")
    return number


def _number(value: Any) -> float:
    """Return a number as a float, and NaN, which lies in no range, for everything else: text too."""
    try:
        return float(value) if isinstance(value, Real) else math.nan
    except OverflowError:  # an integer that no float can hold
        return math.nan


def checked_integer(name: str, value: Any, at_least: int | None = None) -> int:
    """Return an integer setting, or raise where it is anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ParameterError(f"{name} must be an integer, not {value!r}") from None
    if at_least is not None and number < at_least:
        raise ParameterError(f"{name} must be at least {at_least}, not {number}")
    return number


def checked_path(name: str, value: Any) -> Path:
    """Return a path, or raise where it is anything else."""
    if isinstance(value, (str, os.PathLike)) and "\0" not in str(value):
        return Path(value)
    raise ParameterError(f"{name} must be a path, not {value!r}")


def checked_choice(name: str, value: Any, choices: tuple[Any, ...]) -> Any:
    """Return a choice, or raise where it is none."""
    if not any(value is choice or value == choice for choice in choices):
        raise ParameterError(f"{name} must be one of {', '.join(map(repr, choices))}, not {value!r}")
    return value


def checked_flag(name: str, value: Any) -> bool:
    """Return a setting that is true or false, or raise where it is anything else."""
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise ParameterError(f"{name} must be True or False, not {value!r}")


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that scikit-learn's ``n_jobs`` asks for: None is 1, -1 is all cores."""
    if n_jobs is None:
        return 1
    n_jobs = checked_integer("n_jobs", n_jobs)
    if n_jobs == 0:
        raise ParameterError("n_jobs must not be 0: give a number of threads, or -1 for all cores")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
