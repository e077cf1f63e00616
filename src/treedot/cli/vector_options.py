"""Options that choose vectors or an exact kernel; check them and make the vectorizer or kernel."""

from __future__ import annotations

import argparse
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import treedot as td
from treedot import parameters
from treedot.cli.wording import OTHER_NAMES
from treedot.errors import ParameterError

if TYPE_CHECKING:
    from treedot.vectors.dense.encoding import DenseEncoding
    from treedot.vectors.sparse.fitted_rows import FittedRows

VECTORS = ("sparse", "dense")
STORED_KERNELS = ("subset", "subtree", "bounded", "partial", "route")  # a model can store these
KERNELS = (*STORED_KERNELS, "smoothed")
CHOOSE = "choose"  # all values of an option: cross-validation takes the best
SPARSE, DENSE = "--vectors sparse", "--vectors dense"
SUBSET, SUBTREE, BOUNDED = "--kernel subset", "--kernel subtree", "--kernel bounded"
PARTIAL, SMOOTHED, ROUTE = "--kernel partial", "--kernel smoothed", "--kernel route"

# Options that do not apply to everything, each with the choices that it applies to.
APPLY_TO = {
    "kernel": (SUBSET, SUBTREE, BOUNDED, PARTIAL, SMOOTHED, ROUTE),
    **dict.fromkeys(("convention", "leaves"), (SUBSET, SUBTREE)),
    **dict.fromkeys(("mu", "gaps", "terminal_factor", "max_length"), (PARTIAL, SMOOTHED)),
    **dict.fromkeys(("word_vectors", "threshold"), (SMOOTHED,)),
    "start": (ROUTE,),
    "budget": (SPARSE, BOUNDED),
    **dict.fromkeys(("n_features", "damping", "rest", "rest_size"), (SPARSE,)),
    **dict.fromkeys(("n_components", "composition", "device"), (DENSE,)),
    **dict.fromkeys(("seed", "dtype"), (SPARSE, DENSE)),
}


def add_encoding(command: argparse.ArgumentParser, *, parts: bool = False) -> None:
    """Add the options that say how trees are encoded as vectors, in one file or in parts."""
    dense = "with --kernel" if parts else "for a .npy or .parquet file and with --kernel"
    command.add_argument(
        "--vectors",
        choices=VECTORS,
        help="sparse: rows with a column for every small fragment; "
        f"dense: distributed trees, as in the paper (default: dense {dense}; else sparse)",
    )
    command.add_argument(
        "--kernel",
        choices=("partial", "smoothed"),
        help="make dense vectors of partial trees, in which a node has any of its children (partial), "
        "optionally with partial matches of similar words (smoothed) (default: vectors of fragments, in "
        "which a node has all of its children or none)",
    )
    _add_values(command, "yes", SPARSE)
    _add_partial(command)
    _add_vectors(command, "2^20", device=not parts)


def add_kernel(command: argparse.ArgumentParser) -> None:
    """Add the options that choose between the exact kernels and vectors."""
    command.add_argument(
        "--kernel",
        choices=KERNELS,
        help="what the exact kernel counts: shared fragments (subset), complete subtrees (subtree), "
        "fragments within --budget (bounded), partial trees, in which a node has any of its children "
        "(partial), partial trees with partial matches of similar words (smoothed), or labels at the end of "
        "equal routes (route) (default: subset)",
    )
    command.add_argument(
        "--vectors",
        choices=VECTORS,
        help="estimate the kernel by dot products of vectors. sparse: the bounded kernel, or with --rest the "
        "subset kernel; dense: the subset kernel, or the one of --kernel partial or smoothed (default: "
        "compute the kernel exactly)",
    )
    _add_values(command, "no, unlike encode", f"{SPARSE} and {BOUNDED}")
    complete = command.add_argument_group("complete fragments (--kernel subset and subtree)")
    complete.add_argument(
        "--convention",
        choices=parameters.SUBTREE_CONVENTIONS,
        help="a fragment with p productions counts λ^(p-1) (paper, the default) or λ^p (collins-duffy). "
        "--kernel subset has the values of SVM-LIGHT-TK with collins-duffy, and those of KeLP with --leaves, "
        "too; --kernel subtree has them with svm-light-tk and kelp",
    )
    complete.add_argument(
        "--leaves", action="store_true", default=None, help="also count pairs of equal leaves (default: no)"
    )
    partial = _add_partial(command)
    partial.add_argument(
        "--terminal-factor",
        type=float,
        metavar="X",
        help="factor for pairs of nodes of which at least one is a leaf (default: 1)",
    )
    partial.add_argument(
        "--threshold",
        type=float,
        metavar="X",
        help="for --kernel smoothed: similarities of words below X count as 0 (default: 0.01)",
    )
    partial.add_argument(
        "--start",
        choices=parameters.STARTS,
        help="for --kernel route: routes start at any node, or only at the root (default: any)",
    )
    _add_vectors(command, "2^30, so that hardly any fragments share one", "linear, as kernels count")


def add_training_rows(command: argparse.ArgumentParser) -> None:
    """Add the options that choose the vectors or the exact kernel of a model."""
    command.add_argument(
        "--vectors",
        choices=VECTORS,
        help="sparse: rows with a column for every small fragment, with --rest for the full kernel; dense: "
        "distributed trees, as in the paper (default: sparse)",
    )
    command.add_argument(
        "--kernel",
        choices=STORED_KERNELS,
        help="train on an exact kernel (normalised) instead of vectors, and store the support vectors: for a "
        "few thousand trees. With --vectors dense, partial means vectors of partial trees",
    )
    _add_budget(command)
    _add_vectors(
        command, "2^30, so that hardly any fragments share one; with --checkpoint 2^22", several=True
    )


def add_streamed_rows(command: argparse.ArgumentParser) -> None:
    """Add the options of the sparse rows of ``treedot batch fit``."""
    group = command.add_argument_group("rows of fragments")
    _add_budget(group)
    _add_hashed_rows(group, "2^22", "sqrt", several=True)
    _add_seed_and_type(group)


def _add_budget(command: argparse._ActionsContainer, where: str = "") -> None:
    command.add_argument(
        "--budget",
        type=int,
        metavar="B",
        help=f"{where}largest cost of a fragment that counts; expanding one of m siblings costs m "
        "(default: 4)",
    )


def _add_values(command: argparse.ArgumentParser, normalized: str, bounded: str) -> None:
    """Add the options that say how much each fragment counts.

    ``normalized`` is the default of --normalize; ``bounded`` names the choices that --budget applies to.
    """
    group = command.add_argument_group("how fragments count")
    group.add_argument(
        "--decay",
        type=float,
        default=0.4,
        metavar="λ",
        help="from 0 to 1: a shared fragment with p productions counts λ^(p-1) (default: 0.4)",
    )
    _add_budget(group, f"for {bounded}: ")
    group.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help=f"scale trees so that the kernel of each with itself is 1 (default: {normalized})",
    )


def _add_partial(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    group = command.add_argument_group("partial trees (--kernel partial and smoothed) and routes")
    group.add_argument(
        "--mu",
        type=float,
        metavar="μ",
        help="from 0 to 1: factor for every node of a partial tree (default: 0.4)",
    )
    group.add_argument(
        "--gaps",
        choices=parameters.GAPS,
        help="what costs a factor λ: every child left out between two others (toolkit, as in SVM-LIGHT-TK "
        "and KeLP), or every child from first to last (span, the published formula) (default: toolkit)",
    )
    group.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="longest sequence of children that counts (default: no limit; SVM-LIGHT-TK: 5)",
    )
    group.add_argument(
        "--word-vectors",
        metavar="FILE",
        help="for --kernel smoothed: a text file with a word and the numbers of its vector on every line. "
        "The similarity of labels of the same part of speech, such as dog::n and cat::n, is the cosine of "
        "their vectors",
    )
    return group


def _add_vectors(
    command: argparse.ArgumentParser,
    width: str,
    damping: str = "sqrt; with --rest linear",
    device: bool = True,
    several: bool = False,
) -> None:
    sparse = command.add_argument_group("sparse rows (--vectors sparse)")
    _add_hashed_rows(sparse, width, damping, several)
    sparse.add_argument(
        "--rest",
        choices=parameters.RESTS,
        help="also approximate the fragments beyond the budget, by a dense vector or by blocks of four "
        "columns (default: leave them out)",
    )
    sparse.add_argument(
        "--rest-size", type=_integer, metavar="N", help="number of columns of --rest dense (default: 6144)"
    )
    dense = command.add_argument_group("dense vectors (--vectors dense)")
    dense.add_argument("-d", "--n-components", type=int, metavar="D", help="dimension (default: 8192)")
    dense.add_argument(
        "--composition",
        choices=parameters.COMPOSITIONS,
        help="how the vectors of nodes are composed. With the paper's product and convolution, hundreds of "
        "different HTML pages or functions look like duplicates (default: mixed)",
    )
    if device:
        dense.add_argument("--device", metavar="NAME", help="cuda computes them on a GPU (default: cpu)")
    _add_seed_and_type(command.add_argument_group("all vectors (--vectors)"))


def _add_hashed_rows(
    group: argparse._ActionsContainer, width: str, damping: str, several: bool = False
) -> None:
    """Add the options of sparse rows with hashed columns; ``width`` and ``damping`` are the defaults.

    ``several`` values of --damping leave the choice to cross-validation.
    """
    choice: dict[str, Any] = {"choices": parameters.DAMPINGS}
    more = ""
    if several:
        choice = {"choices": (*parameters.DAMPINGS, CHOOSE), "nargs": "+"}
        more = "; cross-validation chooses from several, or from all (choose)"
    group.add_argument(
        "--n-features",
        type=_integer,
        metavar="N",
        help=f"number of columns that fragments are hashed into, such as 2^24 (default: {width})",
    )
    group.add_argument(
        "--damping",
        **choice,
        help="how the number of occurrences of a fragment in a tree counts: as it is (linear), as its square "
        f"root (sqrt), or as ln(1 + number) (log1p){more} (default: {damping})",
    )


def _add_seed_and_type(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="random seed; only vectors with the same seed can be compared (default: 0)",
    )
    group.add_argument("--dtype", choices=parameters.DTYPES, help="type of the vectors (default: float32)")


def _integer(text: str) -> int:
    """Parse an integer, or a power such as 2^30 or 2**30."""
    power = re.fullmatch(r"(\d{1,4})(?:\^|\*\*)(\d{1,2})", text.strip())
    try:
        return int(power[1]) ** int(power[2]) if power else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an integer, such as 1024 or 2^10, not {text!r}") from None


def check_options(options: argparse.Namespace) -> None:
    """Raise ParameterError if an option is given that has no effect with the chosen vectors or kernel."""
    if options.vectors is None:
        chosen = kernel = f"--kernel {options.kernel or 'subset'}"
    else:
        chosen, kernel = f"--vectors {options.vectors}", f"--kernel {options.kernel}"
    if kernel == SMOOTHED and options.word_vectors is None:
        raise ParameterError("--kernel smoothed needs word vectors: give --word-vectors FILE")
    partial = chosen == DENSE and kernel in (PARTIAL, SMOOTHED)
    if partial and kernel == SMOOTHED and getattr(options, "threshold", None) is not None:
        raise ParameterError(
            "--threshold has no effect with --vectors: dot products include all similarities; remove it"
        )
    if partial and getattr(options, "terminal_factor", None) not in (None, 1.0):
        raise ParameterError(
            "--terminal-factor has no effect with --vectors: with a factor other than 1 the kernel may not "
            "be positive definite, so no vectors have it as their dot product; remove one of the two"
        )
    for name, ways in APPLY_TO.items():
        if getattr(options, name, None) is None or chosen in ways or (partial and kernel in ways):
            continue
        option = "--" + name.replace("_", "-")
        if name == "kernel" and kernel in (PARTIAL, SMOOTHED):
            raise ParameterError("partial trees only have dense vectors: use --vectors dense")
        if name == "kernel":
            raise ParameterError(
                "--kernel chooses an exact kernel, --vectors dot products: remove one of the two"
            )
        offered = " or ".join(way for way in ways if _is_offered(options.parser, way))
        raise ParameterError(f"{option} has no effect with {chosen}: remove it, or choose {offered}")
    if options.rest_size is not None and options.rest != "dense":
        raise ParameterError("--rest-size has no effect without --rest dense: remove it, or add --rest dense")


def _is_offered(parser: argparse.ArgumentParser, way: str) -> bool:
    """Return whether a command has an option with this value."""
    option, value = way.split()
    actions = (action for action in parser._actions if option in action.option_strings)
    return any(value in (action.choices or ()) for action in actions)


def make_vectorizer(options: argparse.Namespace, **defaults: Any) -> Any:
    """Return the scikit-learn vectorizer that the options describe; ``defaults`` fill in for options."""
    _check_rows(options)
    kind = td.FragmentVectorizer if options.vectors == "sparse" else td.DistributedTreeVectorizer
    return _with_options(kind(), options, defaults)


def make_encoding(options: argparse.Namespace, **defaults: Any) -> FittedRows | DenseEncoding:
    """Return an encoding of the same vectors as ``make_vectorizer``, without importing scikit-learn."""
    _check_rows(options)
    if options.vectors == "sparse":
        from treedot.vectors.sparse.fitted_rows import FittedRows
        from treedot.vectors.spec import SparseSpec, default_damping

        settings = _fields(SparseSpec, options, defaults)
        rows = SparseSpec(**{"damping": default_damping(options.rest), **settings})
        return FittedRows(rows, parameters={"damping": settings.get("damping")})
    from treedot.kernels.word_vectors import WordVectors
    from treedot.vectors.dense.encoding import DenseEncoding
    from treedot.vectors.spec import DenseSpec

    given, device = getattr(options, "word_vectors", None), getattr(options, "device", None)
    words = None if given is None else WordVectors.of(given)
    settings = _fields(DenseSpec, options, defaults)
    spec = DenseSpec(**settings, similarity=None if words is None else words.fingerprint)
    return DenseEncoding(spec, words, device or "cpu")


def make_kernel_encoding(options: argparse.Namespace) -> FittedRows | DenseEncoding:
    """Return an encoding whose dot products are kernels, unless the options say otherwise.

    By default rows are as wide as possible, counts are not damped, and vectors are not normalised.
    """
    from treedot.vectors.spec import MAX_FEATURES

    return make_encoding(options, n_features=MAX_FEATURES, damping="linear", normalize=False)


def _check_rows(options: argparse.Namespace) -> None:
    """Raise ParameterError if the width or the budget of rows is invalid."""
    from treedot.vectors.spec import MAX_FEATURES

    width = options.n_features
    if width is not None and (not 32 <= width <= MAX_FEATURES or width & (width - 1)):
        raise ParameterError(
            f"--n-features must be a power of two from 32 to {MAX_FEATURES} (2^30), not {width}"
        )
    if options.budget is not None:
        parameters.checked_integer("--budget", options.budget, at_least=0)


def _fields(kind: Any, options: argparse.Namespace, defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a spec of vectors that the options or the defaults give."""
    names = {field.name for field in fields(kind)} - {"similarity", "version"}
    given = {name: getattr(options, name, None) for name in names}
    settings = defaults | {name: value for name, value in given.items() if value is not None}
    return {name: value for name, value in settings.items() if name in names}


def make_kernel(options: argparse.Namespace) -> Any:
    """Return the exact kernel that the options describe."""
    if options.kernel == "smoothed":
        made = td.kernels.SmoothedPartialTreeKernel(options.word_vectors)
        return _with_options(made, argparse.Namespace(**vars(options) | {"word_vectors": None}), {})
    kinds: dict[str, Any] = {
        "bounded": td.kernels.BoundedTreeKernel,
        "partial": td.kernels.PartialTreeKernel,
        "route": td.kernels.RouteKernel,
        "subtree": td.kernels.SubtreeKernel,
    }
    return _with_options(kinds.get(options.kernel, td.kernels.SubsetTreeKernel)(), options, {})


def _with_options(made: Any, options: argparse.Namespace, defaults: dict[str, Any]) -> Any:
    """Set the parameters of a vectorizer or kernel that the options or the defaults give; return it."""
    names = made.get_params()
    given = {name: getattr(options, OTHER_NAMES.get(name, name), None) for name in names}
    chosen = {name: defaults.get(name) if value is None else value for name, value in given.items()}
    return made.set_params(**{name: value for name, value in chosen.items() if value is not None})
