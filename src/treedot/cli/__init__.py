"""The command ``treedot``. This module only parses arguments; the work is imported when it starts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from treedot import __version__
from treedot.errors import TreedotError
from treedot.parameters import COMPOSITIONS, DAMPINGS, DTYPES, FORMATS, RESTS

SOURCE_HELP = (
    "file of trees (brackets, .tsv, .csv, .jsonl, .parquet, .arrow; also .gz, .xz, .zst), or - for stdin"
)


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    top = argparse.ArgumentParser(
        prog="treedot",
        description="Tree kernels as dot products: trees to vectors, and the exact kernels beside them.",
        epilog="Exit codes: 0 done, 1 the input or a setting is bad, 2 the command line is not understood.",
    )
    top.add_argument("--version", action="version", version=f"treedot {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    encode = commands.add_parser("encode", help="turn trees into vectors")
    encode.add_argument("trees", nargs="+", metavar="TREES", help=SOURCE_HELP)
    encode.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="FILE",
        help="where to write: .npy, .parquet, or - for .npy on stdout; with --sparse .npz",
    )
    _add_encoding(encode)
    _add_reading(encode)

    kernel = commands.add_parser("kernel", help="compare trees pair by pair")
    for name in ("a", "b"):
        kernel.add_argument(name, metavar=name.upper(), help="a tree in brackets, or a " + SOURCE_HELP)
    _add_exact(kernel)
    _add_encoding(kernel)
    _add_reading(kernel, skip=False)

    gram = commands.add_parser("gram", help="compare all trees with all")
    gram.add_argument("trees", metavar="TREES", help=SOURCE_HELP)
    gram.add_argument("--against", metavar="TREES", help="compare with these trees instead (one column each)")
    gram.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="where to write: .npy, or - for stdout"
    )
    _add_exact(gram)
    _add_encoding(gram)
    _add_reading(gram)

    info = commands.add_parser("info", help="describe a file of trees or of vectors")
    info.add_argument("file", metavar="FILE", help=SOURCE_HELP + "; or vectors that treedot wrote")
    info.add_argument("--json", action="store_true", help="print JSON")
    _add_reading(info)

    commands.add_parser("check", help="say which optional parts work here, and how to get the others")

    demo = commands.add_parser(
        "demo", help="compare the functions of Python's standard library, with a report"
    )
    demo.add_argument("--out", default="demo", metavar="DIR", help="folder of the report (default: demo)")
    demo.add_argument(
        "--functions", type=int, default=2000, metavar="N", help="how many functions (default: 2000)"
    )
    return top


def _add_encoding(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("vectors")
    group.add_argument(
        "-d",
        "--dim",
        type=int,
        metavar="D",
        help="dimensions (default: 8192; with --sparse columns, 2^20, or 2^30 for kernels)",
    )
    group.add_argument(
        "--decay", type=float, default=0.4, metavar="λ", help="decay λ in [0, 1] (default: 0.4)"
    )
    group.add_argument("--composition", choices=COMPOSITIONS, help="of dense vectors (default: mixed)")
    group.add_argument(
        "--sparse", action="store_true", help="sparse rows: a column for every fragment within a budget"
    )
    group.add_argument(
        "--budget", type=int, metavar="B", help="of sparse rows: the largest cost of a fragment (default: 4)"
    )
    group.add_argument(
        "--damping",
        choices=DAMPINGS,
        help="of sparse rows: how repeated fragments count (default: sqrt; linear with --rest)",
    )
    group.add_argument(
        "--rest", choices=RESTS, help="of sparse rows: how to hold what lies beyond the budget (default: not)"
    )
    group.add_argument("--seed", type=int, default=0, help="seed of all random vectors (default: 0)")
    group.add_argument(
        "--normalize",
        action=argparse.BooleanOptionalAction,
        help="give every tree kernel 1 with itself (default: for sparse rows alone)",
    )
    group.add_argument("--dtype", default="float32", choices=DTYPES, help="(default: float32)")
    group.add_argument("-j", "--jobs", type=int, default=-1, metavar="N", help="threads (default: all cores)")


def _add_exact(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--exact",
        action="store_true",
        help="compute the exact subset tree kernel, not dot products of vectors",
    )


def _add_reading(command: argparse.ArgumentParser, skip: bool = True) -> None:
    group = command.add_argument_group("reading")
    group.add_argument(
        "--format",
        choices=FORMATS,
        help="(default: by suffix)",
    )
    group.add_argument(
        "--column", metavar="NAME", help="the table column that holds the trees (default: tree)"
    )
    if skip:
        group.add_argument(
            "--skip-bad", action="store_true", help="leave out trees that cannot be read, and report them"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = parser().parse_args(arguments)
    from treedot.cli import commands
    from treedot.jit import already_compiled

    if sys.stderr is not None and sys.stderr.isatty() and not already_compiled():
        print("treedot: compiling for this machine, once (about half a minute)", file=sys.stderr)
    try:
        run = getattr(commands, options.command)
        run(options)
        if sys.stdout is not None:  # it is closed in `treedot check >&-`
            sys.stdout.flush()
    except TreedotError as error:
        print(f"treedot: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of a pipeline has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("treedot: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"treedot: {error}", file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"treedot: not enough memory ({error})", file=sys.stderr)
        return 1
    return 0
