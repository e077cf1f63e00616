"""The command ``treedot``. This module only parses arguments; the work is imported when it starts."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from treedot._pages.printable import printable
from treedot._runtime.ending import interruption, take_signals
from treedot._storage.compression import unpacking_large
from treedot._storage.files import reason
from treedot._version import __version__
from treedot.cli.batch_options import add_many_duplicates, add_scale_options, add_status_command
from treedot.cli.find_options import add_dups_command, add_find_commands, add_unpacking
from treedot.cli.learn_options import add_learn_commands
from treedot.cli.pipes import ignore_closed_output, note, standard_streams, warnings_as_notes
from treedot.errors import TreedotError
from treedot.parameters import (
    CODE_UNITS,
    COMPOSITIONS,
    DAMPINGS,
    DEPENDENCY_TREES,
    DOCUMENT_UNITS,
    DTYPES,
    FORMATS,
    GAPS,
    RESTS,
    STARTS,
    SUBTREE_CONVENTIONS,
)

SOURCE_HELP = (
    "file of trees (Penn brackets, .tsv, .csv, .jsonl, .parquet, .arrow, .html, .xml, .json, .conllu, .nwk, "
    ".dbn, .klp, .svmlight; also .gz, .xz, .zst), source code (.py, .js, .java, …) or a folder of it, or - "
    "for standard input"
)
# The modules of commands that are not in ``commands``: each imports no more than it needs.
MODULES = {
    **dict.fromkeys(("index", "search", "similar", "cluster"), "find"),
    **dict.fromkeys(("train", "predict", "evaluate", "explain"), "learn"),
    "status": "batch",
}
VECTORS = ("sparse", "dense")
STORED_KERNELS = ("subset", "subtree", "bounded", "partial", "route")  # models are kept with these
KERNELS = (*STORED_KERNELS, "smoothed")


class _Parser(argparse.ArgumentParser):
    """Reports an error in one line that a terminal can show, whatever the arguments hold."""

    def error(self, message: str) -> NoReturn:
        """Print why arguments are not understood, and exit."""
        self.exit(2, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = _Parser(
        prog="treedot",
        description="Find what is alike in code and other trees; turn trees into vectors, and compare them.",
        epilog="Exit codes: 0 done, 1 the input or a setting is bad (in dups 2), 2 the command line is not "
        "understood, 130 interrupted, 143 terminated.",
    )
    top.add_argument("--version", action="version", version=f"treedot {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    add_many_duplicates(add_dups_command(partial(_command, commands)))
    add_find_commands(partial(_command, commands))

    encode = _command(
        commands,
        "encode",
        "turn trees into vectors",
        "Write one vector per tree, in memory that does not grow with the number of trees. How they were "
        "made is written down in the file itself.",
    )
    encode.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    encode.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where to write: .npz (sparse rows), .npy or .parquet (dense vectors), or - for standard "
        "output; a folder, such as out/, gets parts in Arrow",
    )
    add_scale_options(encode)
    encode.add_argument(
        "--vectors",
        choices=VECTORS,
        help="sparse: rows with a column for every small fragment; "
        "dense: distributed trees, as in the paper (default: dense for a .npy or .parquet file and with "
        "--kernel; else sparse)",
    )
    encode.add_argument(
        "--kernel",
        choices=("partial", "smoothed"),
        help="encode partial trees, in which nodes have any of their children, as dense vectors (partial), "
        "also so that similar words match in part (smoothed) (default: fragments, in which nodes have all of "
        "their children or none)",
    )
    encode.set_defaults(kernels=("partial", "smoothed"))  # for hints
    _add_values(encode, "yes", "--vectors sparse")
    _add_partial(encode)
    _add_vectors(encode)
    _add_reading(encode)

    kernel = _command(
        commands,
        "kernel",
        "compare trees pair by pair",
        "Print the kernel of each tree of A with the tree of B in the same place; one tree is compared with "
        "all of the other side. Kernels are exact unless --vectors is given. A tree that cannot be read is "
        "an error: to leave it out would move the pairs.",
    )
    for name in ("a", "b"):
        kernel.add_argument(name, metavar=name.upper(), help="a tree in brackets, or a " + SOURCE_HELP)
    _add_kernel(kernel)
    _add_reading(kernel, skip=False)

    gram = _command(
        commands,
        "gram",
        "compare all trees with all",
        "Write the matrix of the kernels of all trees with all. Kernels are exact unless --vectors is given.",
    )
    gram.add_argument("trees", metavar="TREES", help="a tree in brackets, or a " + SOURCE_HELP)
    gram.add_argument("--against", metavar="TREES", help="compare with these trees instead (one column each)")
    gram.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where to write: .npy, or - for standard output",
    )
    _add_kernel(gram)
    _add_reading(gram)

    add_learn_commands(partial(_command, commands), SOURCE_HELP, _add_reading, _add_encoding)
    add_status_command(partial(_command, commands))

    convert = _command(
        commands,
        "convert",
        "write trees in another format",
        "Write the trees of files and folders to one file, in memory that does not grow with their number. "
        "Of a folder, all files are read whose suffix names a format (with --format, that one), but for "
        "those that .gitignore and .treedotignore files name.",
    )
    convert.add_argument("trees", nargs="+", metavar="TREES", help="folder, or " + SOURCE_HELP)
    convert.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where to write: .mrg, .txt or .brackets (brackets, one tree per line, without its columns); "
        ".parquet, .arrow or .feather (with them); .nwk (Newick), .klp (KeLP) or .svmlight (SVM-LIGHT-TK)",
    )
    _add_reading(convert)

    info = _command(
        commands,
        "info",
        "describe a file",
        "Say what a file holds: trees, vectors, a matrix of kernels, an index (TreeIndex) or a vectorizer; "
        "or the folder of a model.",
    )
    info.add_argument("file", metavar="FILE", help=SOURCE_HELP + "; or a file that treedot wrote")
    info.add_argument("--json", action="store_true", help="print JSON")
    _add_reading(info)

    _command(
        commands,
        "check",
        "list what treedot runs with here, which optional parts are missing, and where compiled code is kept",
    )
    _command(
        commands,
        "compile",
        "compile everything now, instead of on first use",
        "Compile everything now, a few minutes, instead of on first use: for images of containers. It is for "
        "this processor and this version, and found again where the folder that it is kept in can be written "
        "to, also by those who run the image; set NUMBA_CACHE_DIR for another folder, NUMBA_CPU_NAME=generic "
        "for code that runs on other processors too, both also at run time.",
    )

    demo = _command(commands, "demo", "find near-duplicate functions in Python's standard library")
    demo.add_argument("--out", default="demo", metavar="DIR", help="folder of the report (default: demo)")
    demo.add_argument(
        "--functions", type=int, default=10_000, metavar="N", help="at most so many (default: 10000, all)"
    )
    return top


def _command(commands: Any, name: str, brief: str, description: str | None = None) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(
        name, help=brief, description=description or f"{brief[0].upper()}{brief[1:]}."
    )
    return made


def _add_encoding(command: argparse.ArgumentParser) -> None:
    """Add what says how the trees of a model become rows, by vectors or by an exact kernel."""
    command.add_argument(
        "--vectors",
        choices=VECTORS,
        help="sparse: rows with a column for every small fragment, with --rest for the full kernel; dense: "
        "distributed trees, as in the paper (default: sparse)",
    )
    command.add_argument(
        "--kernel",
        choices=STORED_KERNELS,
        help="in place of vectors, train on an exact kernel, normalised, and keep the support vectors: for "
        "some thousand trees; partial with --vectors dense: train on vectors of partial trees",
    )
    command.set_defaults(kernels=STORED_KERNELS)
    command.add_argument(
        "--budget", type=int, metavar="B", help="the largest cost of a fragment (default: 4)"
    )
    _add_vectors(command, jobs=False)


def _add_kernel(command: argparse.ArgumentParser) -> None:
    """Add what chooses between the exact kernels and vectors."""
    command.add_argument(
        "--kernel",
        choices=KERNELS,
        help="the exact kernel counts all shared fragments (subset), complete subtrees (subtree), "
        "fragments within --budget (bounded), partial trees, in which nodes have any of their children "
        "(partial), the same where similar words match in part (smoothed), or labels by the way that leads "
        "to them (route) (default: subset)",
    )
    command.set_defaults(kernels=KERNELS)
    command.add_argument(
        "--vectors",
        choices=VECTORS,
        help="estimate the kernel by dot products of vectors. sparse: the bounded kernel; sparse with "
        "--rest, and dense: the subset kernel; dense with --kernel partial or smoothed: that one (default: "
        "exact)",
    )
    _add_values(command, "no, unlike encode", "--vectors sparse and --kernel bounded")
    _add_conventions(command)
    _add_partial(command)
    _add_vectors(command)


def _add_conventions(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("complete fragments (--kernel subset and subtree)")
    group.add_argument(
        "--convention",
        choices=SUBTREE_CONVENTIONS,
        help="a fragment with p productions counts λ^(p-1) (paper) or λ^p (collins-duffy); for --kernel "
        "subtree also what KeLP and SVM-LIGHT-TK compute (kelp, svm-light-tk) (default: paper)",
    )
    group.add_argument(
        "--leaves", action="store_true", default=None, help="also count pairs of equal leaves (default: no)"
    )


def _add_partial(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("partial trees (--kernel partial and smoothed) and routes")
    group.add_argument(
        "--mu",
        type=float,
        metavar="μ",
        help="from 0 to 1: what every node counts of a partial tree (default: 0.4)",
    )
    group.add_argument(
        "--gaps",
        choices=GAPS,
        help="every child that is left out between others costs λ (toolkit, as in SVM-LIGHT-TK and KeLP), or "
        "every child from the first to the last (span, as in the published formula) (default: toolkit)",
    )
    if not command.prog.endswith("encode"):
        group.add_argument(
            "--terminal-factor",
            type=float,
            metavar="X",
            help="how much a pair of nodes counts of which one is a leaf (default: 1)",
        )
    group.add_argument(
        "--max-length",
        type=int,
        metavar="N",
        help="the longest sequence of children that counts (default: any; in SVM-LIGHT-TK 5)",
    )
    group.add_argument(
        "--word-vectors",
        metavar="FILE",
        help="for --kernel smoothed: a text file with a word and its numbers in every line. Labels such as "
        "dog::n and cat::n, of the same part of speech, are as similar as the cosine of their vectors",
    )
    if not command.prog.endswith("encode"):
        group.add_argument(
            "--threshold",
            type=float,
            metavar="X",
            help="for --kernel smoothed: smaller similarities count as 0 (default: 0.01)",
        )
    group.add_argument(
        "--start",
        choices=STARTS,
        help="for --kernel route: routes start at any node, or at the root alone (default: any)",
    )


def _add_values(command: argparse.ArgumentParser, normalized: str, bounded: str) -> None:
    """Add the options that say how much each fragment counts."""
    group = command.add_argument_group("how fragments count")
    group.add_argument(
        "--decay",
        type=float,
        default=0.4,
        metavar="λ",
        help="from 0 to 1: a shared fragment with p productions counts λ^(p-1) (default: 0.4)",
    )
    group.add_argument(
        "--budget",
        type=int,
        metavar="B",
        help=f"for {bounded}: the largest cost of a fragment that counts, where expanding "
        "one of m siblings costs m (default: 4)",
    )
    group.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help=f"scale every tree to kernel 1 with itself (default: {normalized})",
    )


def _add_vectors(command: argparse.ArgumentParser, jobs: bool = True) -> None:
    sparse = command.add_argument_group("sparse rows (--vectors sparse)")
    compares = command.prog.endswith(("kernel", "gram"))
    width = "2^20" if command.prog.endswith("encode") else "2^30, so that hardly any fragments share one"
    damping = "linear, as kernels count" if compares else "sqrt; with --rest linear"
    sparse.add_argument(
        "--n-features",
        type=_integer,
        metavar="N",
        help=f"columns that fragments are hashed into, a power of two, such as 2^24 (default: {width})",
    )
    sparse.add_argument(
        "--damping",
        choices=DAMPINGS,
        help="how a fragment that occurs several times in a tree counts: as often as it occurs (linear), the "
        f"square root of that, or ln(1 + count) (default: {damping})",
    )
    sparse.add_argument(
        "--rest",
        choices=RESTS,
        help="also approximate the fragments beyond the budget, by a dense vector or by blocks of four "
        "columns (default: leave them out)",
    )
    sparse.add_argument(
        "--rest-size", type=_integer, metavar="N", help="columns of --rest dense (default: 6144)"
    )
    dense = command.add_argument_group("dense vectors (--vectors dense)")
    dense.add_argument("-d", "--n-components", type=int, metavar="D", help="dimensions (default: 8192)")
    dense.add_argument(
        "--composition",
        choices=COMPOSITIONS,
        help="how vectors of nodes are composed (default: mixed); the paper's product and convolution report "
        "hundreds of false duplicates among HTML pages and code",
    )
    dense.add_argument("--device", metavar="NAME", help="cuda to make them on a GPU (default: cpu)")
    both = command.add_argument_group("all vectors (--vectors)")
    both.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of all random signs and vectors: only vectors with the same seed can be compared (default: 0)",
    )
    both.add_argument("--dtype", choices=DTYPES, help="type of the vectors (default: float32)")
    if jobs:
        command.add_argument(
            "-j", "--jobs", type=int, default=-1, metavar="N", help="threads (default: -1, all cores)"
        )


def _integer(text: str) -> int:
    """Read an integer, also one written as a power: 2^30 or 2**30."""
    power = re.fullmatch(r"(\d{1,4})(?:\^|\*\*)(\d{1,2})", text.strip())
    try:
        return int(power[1]) ** int(power[2]) if power else int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an integer, such as 1024 or 2^10, not {text!r}") from None


def _add_reading(command: argparse.ArgumentParser, skip: bool = True) -> None:
    group = command.add_argument_group("reading trees")
    group.add_argument(
        "--format", choices=FORMATS, help="format of the files (default: by suffix; else brackets)"
    )
    group.add_argument(
        "--column", metavar="NAME", help="the table column that holds the trees (default: tree)"
    )
    group.add_argument(
        "--unit",
        choices=(*DOCUMENT_UNITS, *CODE_UNITS, *DEPENDENCY_TREES),
        help="what a tree is. Of XML and JSON: a document (default), or a record: an element below the root "
        "or an item of an array at the top; of source code: a function (default), a class or a file; of "
        "CoNLL-U: a dependency tree with relations (grct, default), words (lct) or words alone (loct) as "
        "inner nodes",
    )
    add_unpacking(group)
    if skip:
        group.add_argument(
            "--skip-bad", action="store_true", help="leave out trees that cannot be read, and report them"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of this process; return the exit code."""
    if arguments is None:
        take_signals()
    failed, command = 1, ""
    try:
        with standard_streams(), warnings_as_notes():
            options = parser().parse_args(arguments)
            command = options.command
            failed = 2 if command == "dups" else 1  # where 1 says that there are duplicates
            if _writes_a_file(options):
                ignore_closed_output()
            with unpacking_large(getattr(options, "unpack_large", False)):
                module = import_module(f"treedot.cli.{MODULES.get(command, 'commands')}")
                return getattr(module, command)(options) or 0
    except TreedotError as error:
        from treedot.cli.wording import in_options

        note(in_options(str(error), parser(), command) if command else str(error))
    except OSError as error:
        note(f"{error.filename}: {reason(error)}" if error.filename else reason(error))
    except KeyboardInterrupt:
        note(interruption())
        return 130
    except MemoryError as error:
        note(f"not enough memory ({error})")
    return failed


def _writes_a_file(options: argparse.Namespace) -> bool:
    """Return whether the result of a command is a file, and it prints remarks only."""
    return options.command in ("demo", "compile") or getattr(options, "output", None) not in (None, "-")
