"""The options of commands that work on many files; imported with every command, so nothing heavy is here."""

from __future__ import annotations

import argparse
import re

from treedot.cli.find_options import AddCommand, add_unpacking

ENGINES = ("local", "dask", "ray")


def add_scale_options(command: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what chooses to write a folder of parts, and who makes them; return the group of these options."""
    group = command.add_argument_group(
        "many files (-o FOLDER/)",
        "With a folder as output, or one of these, files (also folders, and patterns in quotes, such as "
        "'shards/*.parquet') are cut into shards, each of which becomes a file of Arrow in the folder. A run "
        "that was ended goes on where it was when it is started again; treedot status says how far it is.",
    )
    _add_engine(group)
    group.add_argument(
        "--shard",
        type=_share,
        metavar="I/N",
        help="do the I-th of N shares alone, from 1/N to N/N: for arrays of jobs without an engine",
    )
    group.add_argument(
        "--shard-size",
        type=_bytes,
        metavar="SIZE",
        help="bytes of a file that one part is made of, about, such as 64M (default: 16M)",
    )
    return group


def add_many_duplicates(dups: argparse.ArgumentParser) -> None:
    """Add to the command that finds near-duplicates what finds them in many files of trees."""
    group = add_scale_options(dups)
    group.add_argument(
        "--column", metavar="NAME", help="the table column that holds the trees (default: tree)"
    )
    group.add_argument(
        "--skip-bad", action="store_true", help="leave out trees that cannot be read, and report them"
    )
    add_unpacking(group)


def add_status_command(command: AddCommand) -> None:
    """Add the command that looks at a folder of parts."""
    status = command(
        "status",
        "say how far a folder of parts is",
        "Count the parts of a folder and their rows, and list those that are missing and why they failed. "
        "The exit code is 0 where all are there, 1 where some are missing.",
    )
    status.add_argument("folder", metavar="FOLDER", help="a folder that encode, predict or dups wrote")
    status.add_argument("--json", action="store_true", help="print JSON")


def _share(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise argparse.ArgumentTypeError(f"expected I/N with I from 1 to N, such as 3/64, not {text!r}")
    return int(found[1]), int(found[2])


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([1-9]\d{0,11})([kKmMgG]?)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 16M, not {text!r}")
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]


def add_fit_options(command: argparse.ArgumentParser) -> None:
    """Add what chooses to train by many processes, and how."""
    group = command.add_argument_group(
        "training by many processes",
        "With one of these, TREES may also be folders, and patterns in quotes, such as 'shards/*.parquet'. "
        "The trees are dealt out to partitions, which are trained on side by side and exchange what they "
        "found after every round. A command that was ended goes on when it is given again, from what it left "
        "in the folder of --checkpoint (default: MODEL.training).",
    )
    _add_engine(group)
    group.add_argument(
        "--rounds",
        type=int,
        metavar="N",
        help="how often the partitions exchange what they found (default: 10)",
    )
    group.add_argument(
        "--partitions",
        type=int,
        metavar="N",
        help="partitions, at least as many as there are workers (default: one for 16,384 trees, at most 16)",
    )
    group.add_argument(
        "--shard-size",
        type=_bytes,
        metavar="SIZE",
        help="bytes of a file that one task reads, about, such as 64M (default: 16M)",
    )


def _add_engine(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--workers", type=int, metavar="N", help="processes (default: one for every core)")
    group.add_argument(
        "--engine", choices=ENGINES, help="who does the work (default: local, processes of this machine)"
    )
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="of Dask, such as tcp://host:8786, or of Ray (default: auto)"
    )
