"""Turn published corpora into the tables that the experiments read: ``python -m paper.prepare``.

``docs/reproduce.md`` says where each corpus is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from paper.prepare.downloads import open_downloads
from paper.prepare.parses import Parses
from paper.prepare.tables import ROWS, Table, write_tables
from treedot.errors import ParameterError

__all__ = ["CORPORA", "prepare"]

CORPORA = {  # by name: the module and the function that converts the corpus
    "qc": "questions:constituency_tables",
    "qc_dep": "questions:dependency_tables",
    "rte": "entailment:tables",
    "sst": "treebanks:sentiment_tables",
    "ptb": "treebanks:penn_tables",
    "questionbank": "treebanks:questionbank_tables",
    "craft": "treebanks:craft_tables",
    "gum": "treebanks:gum_tables",
    "glycans": "molecules:glycan_tables",
    "rna": "molecules:rna_tables",
    "bcb": "clones:tables",
}


def prepare(
    corpus: str, downloads: Sequence[str | Path], out: str | Path, say: Callable[[str], object] = print
) -> list[Path]:
    """Convert one corpus, and write its tables to a folder; return their paths.

    Parameters
    ----------
    corpus : str
        One of ``CORPORA``.
    downloads : sequence of path
        Folders, zip files or files that hold the corpus. Its files are found by their names, at any depth.
    out : path
        The folder of the tables. It is made where it does not exist.
    say : callable, default=print
        Receives lines of progress.

    Returns
    -------
    list of Path
        The tables; empty if sentences have to be parsed first. These are then in ``CORPUS.sentences.txt``.
    """
    if corpus not in CORPORA:
        raise ParameterError(f"no corpus {corpus!r}; choose one of {', '.join(CORPORA)}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    module, function = CORPORA[corpus].split(":")
    convert = getattr(import_module(f"paper.prepare.{module}"), function)
    parses = Parses(folder, corpus)
    with open_downloads(downloads) as found:
        tables: list[Table] = convert(found, parses)
    if parses.missing:
        say(parses.write_missing())
        return []
    paths = write_tables(tables, folder)
    for table, path in zip(tables, paths, strict=True):
        wanted = ROWS[table.name]
        note = "" if len(table.rows) == wanted else f"; the published figures are of {wanted:,} rows"
        say(f"{path}: {len(table.rows):,} rows{note}")
    return paths
