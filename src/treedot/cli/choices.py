"""Make what the options ask for: a vectorizer, only its encoding, or an exact kernel."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from treedot.errors import ParameterError
from treedot.parameters import checked_integer
from treedot.vectors.spec import MAX_FEATURES, DenseSpec, SparseSpec, default_damping

if TYPE_CHECKING:
    from treedot.vectors.dense.encoding import DenseEncoding
    from treedot.vectors.sparse.fitted_rows import FittedRows

SPARSE, DENSE = "--vectors sparse", "--vectors dense"
SUBSET, SUBTREE, BOUNDED = "--kernel subset", "--kernel subtree", "--kernel bounded"
PARTIAL, SMOOTHED, ROUTE = "--kernel partial", "--kernel smoothed", "--kernel route"

# The options that do not apply to everything, and what they apply to.
APPLY_TO = {
    "kernel": (SUBSET, SUBTREE, BOUNDED, PARTIAL, SMOOTHED, ROUTE),
    "convention": (SUBSET, SUBTREE),
    "leaves": (SUBSET, SUBTREE),
    "mu": (PARTIAL, SMOOTHED),
    "gaps": (PARTIAL, SMOOTHED),
    "terminal_factor": (PARTIAL, SMOOTHED),
    "max_length": (PARTIAL, SMOOTHED),
    "word_vectors": (SMOOTHED,),
    "threshold": (SMOOTHED,),
    "start": (ROUTE,),
    "budget": (SPARSE, BOUNDED),
    "n_features": (SPARSE,),
    "damping": (SPARSE,),
    "rest": (SPARSE,),
    "rest_size": (SPARSE,),
    "n_components": (DENSE,),
    "composition": (DENSE,),
    "device": (DENSE,),
    "seed": (SPARSE, DENSE),
    "dtype": (SPARSE, DENSE),
}


def check_options(options: argparse.Namespace) -> None:
    """Raise where an option is given that has no effect on what is computed."""
    if options.vectors is None:
        chosen = kernel = f"--kernel {options.kernel or 'subset'}"
    else:
        chosen, kernel = f"--vectors {options.vectors}", f"--kernel {getattr(options, 'kernel', None)}"
    if kernel == SMOOTHED and options.word_vectors is None:
        raise ParameterError("--kernel smoothed needs the vectors of words: give --word-vectors FILE")
    partial = chosen == DENSE and kernel in (PARTIAL, SMOOTHED)
    if partial and kernel == SMOOTHED and getattr(options, "threshold", None) is not None:
        raise ParameterError(
            "--threshold is for the exact kernel: no cosine can be left out of dot products, however small"
        )
    if partial and getattr(options, "terminal_factor", None) not in (None, 1.0):
        raise ParameterError(
            "--terminal-factor is for the exact kernel: with a factor other than 1 its matrices may have "
            "negative eigenvalues, which those of dot products have not"
        )
    for name, ways in APPLY_TO.items():
        if getattr(options, name, None) is None or chosen in ways or (partial and kernel in ways):
            continue
        option = "--" + name.replace("_", "-")
        if name == "kernel" and kernel in (PARTIAL, SMOOTHED):
            raise ParameterError("partial trees have dense vectors only: use --vectors dense")
        if name == "kernel":
            raise ParameterError(
                "--kernel is for exact kernels, --vectors for dot products: leave out one of them"
            )
        offered = " or ".join(way for way in ways if _is_offered(options, way))
        raise ParameterError(f"{option} has no effect with {chosen}: leave it out, or choose {offered}")
    if options.rest_size is not None and options.rest != "dense":
        raise ParameterError("--rest-size has no effect without --rest dense")


def _is_offered(options: argparse.Namespace, way: str) -> bool:
    """Tell whether the command has an option with this value."""
    option, value = way.removeprefix("--").split()
    return value in getattr(options, "kernels", ()) if option == "kernel" else hasattr(options, option)


def make_vectorizer(options: argparse.Namespace, **defaults: Any) -> Any:
    """Return the scikit-learn vectorizer that the options ask for."""
    settings = _settings(options, defaults)
    if "seed" in settings:
        settings["random_state"] = settings.pop("seed")
    if options.vectors == "sparse":
        from treedot.vectors.fragment_vectorizer import FragmentVectorizer

        return FragmentVectorizer(n_jobs=options.jobs, **settings)
    from treedot.vectors.distributed_tree_vectorizer import DistributedTreeVectorizer

    similarity, device = getattr(options, "word_vectors", None), getattr(options, "device", None)
    return DistributedTreeVectorizer(
        similarity=similarity, n_jobs=options.jobs, device=device or "cpu", **settings
    )


def make_encoding(options: argparse.Namespace, **defaults: Any) -> FittedRows | DenseEncoding:
    """Return what makes the same vectors as ``make_vectorizer``, without scikit-learn."""
    settings = _settings(options, defaults)
    if options.vectors == "sparse":
        from treedot.vectors.sparse.fitted_rows import FittedRows

        return FittedRows(SparseSpec(**{"damping": default_damping(options.rest), **settings}))
    from treedot.kernels.word_vectors import WordVectors
    from treedot.vectors.dense.encoding import DenseEncoding

    given, device = getattr(options, "word_vectors", None), getattr(options, "device", None)
    words = None if given is None else WordVectors.of(given)
    spec = DenseSpec(**settings, similarity=None if words is None else words.fingerprint)
    return DenseEncoding(spec, words, device or "cpu")


def make_kernel_encoding(options: argparse.Namespace) -> FittedRows | DenseEncoding:
    """Return what makes vectors whose dot products are kernels, unless the options say otherwise.

    That is, rows have the most columns, fragments count as often as they occur, and nothing is normalised.
    """
    return make_encoding(options, n_features=MAX_FEATURES, damping="linear", normalize=False)


def _settings(options: argparse.Namespace, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec of vectors that the options or the defaults give."""
    if options.n_features is not None:
        width = options.n_features
        if not 32 <= width <= MAX_FEATURES or width & (width - 1):
            raise ParameterError(
                f"--n-features must be a power of two from 32 to {MAX_FEATURES} (2^30), not {width}"
            )
    if options.budget is not None:
        checked_integer("--budget", options.budget, at_least=0)
    spec = SparseSpec if options.vectors == "sparse" else DenseSpec
    names = {field.name for field in fields(spec)} - {"similarity", "version"}
    given = {name: getattr(options, name, None) for name in names}
    settings = defaults | {name: value for name, value in given.items() if value is not None}
    return {name: value for name, value in settings.items() if name in names}


def make_kernel(options: argparse.Namespace) -> Any:
    """Return the exact kernel that the options ask for."""
    from treedot import kernels

    made: Any
    if options.kernel == "smoothed":
        made = kernels.SmoothedPartialTreeKernel(options.word_vectors)
    else:
        made = {
            "bounded": kernels.BoundedTreeKernel,
            "partial": kernels.PartialTreeKernel,
            "route": kernels.RouteKernel,
            "subtree": kernels.SubtreeKernel,
        }.get(options.kernel, kernels.SubsetTreeKernel)()
    given = {name: getattr(options, name, None) for name in made.get_params()}
    return made.set_params(**{name: value for name, value in given.items() if value is not None})


def describe_kernel(kernel: Any) -> dict[str, Any]:
    """Return what determines the values of an exact kernel."""
    names = (
        "decay", "convention", "leaves", "mu", "gaps", "terminal_factor", "max_length", "threshold", "start",
        "budget", "normalize",
    )  # fmt: skip
    settings = {name: getattr(kernel, name) for name in names if hasattr(kernel, name)}
    if hasattr(kernel, "similarity"):
        settings["similarity"] = repr(kernel.similarity)
    return {"kernel": f"exact {type(kernel).__name__}", **settings}
