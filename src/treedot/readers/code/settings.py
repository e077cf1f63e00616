"""``CodeSettings``: which parts of source code become trees, and which names and literals are kept."""

from __future__ import annotations

from dataclasses import dataclass

from treedot.parameters import (
    CODE_UNITS,
    POLICIES,
    checked_choice,
    checked_flag,
    checked_integer,
    checked_positive,
)

MAX_BYTES = 2_000_000
MAX_SECONDS = 10.0


@dataclass(frozen=True)
class CodeSettings:
    """The settings of ``read_code`` that apply to a single file.

    Parameters
    ----------
    unit : {"function", "class", "file"}, default="function"
        What becomes one tree.
    identifiers : {"keep", "blur", "drop"}, default="keep"
        How to represent names.
    literals : {"keep", "blur", "drop"}, default="keep"
        How to represent numbers and strings.
    min_nodes : int, default=1
        Units with fewer nodes are skipped.
    blurred : bool, default=False
        Add a column ``blurred`` with hashes of the blurred texts.
    max_bytes : int, default=2000000
        Larger files are not read.
    max_seconds : float, default=10.0
        Files that take more processor time to parse are not read.
    statements : bool, default=False
        Add the whole file as the last tree of each file, and a column ``statements``: for the tree of a file
        an array with a row for each statement, in source order; None for other units. A row holds the number
        of the statement's node in the tree, its first and its last line, and the range of its names and
        literals in the column ``blurred``. Statements are the children of blocks, bodies and files.
    stubs : bool, default=True
        Whether functions without an implementation are units, such as overloads and abstract methods.

    See Also
    --------
    read_code : Describes the settings in full.
    """

    unit: str = "function"
    identifiers: str = "keep"
    literals: str = "keep"
    min_nodes: int = 1
    blurred: bool = False
    max_bytes: int = MAX_BYTES
    max_seconds: float = MAX_SECONDS
    statements: bool = False
    stubs: bool = True

    def __post_init__(self) -> None:
        checked_choice("unit", self.unit, CODE_UNITS)
        checked_choice("identifiers", self.identifiers, POLICIES)
        checked_choice("literals", self.literals, POLICIES)
        checked_integer("min_nodes", self.min_nodes, at_least=1)
        checked_flag("blurred", self.blurred)
        checked_integer("max_bytes", self.max_bytes, at_least=1)
        checked_positive("max_seconds", self.max_seconds)
        checked_flag("statements", self.statements)
        checked_flag("stubs", self.stubs)
