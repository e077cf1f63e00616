"""Trees that are not sentences: glycans from their names, RNA from its paired bases."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import lzma
import re
from collections import defaultdict
from pathlib import Path

from paper.prepare.downloads import Downloads
from paper.prepare.parses import Parses
from paper.prepare.penn import ROOT
from paper.prepare.tables import Table
from treedot.errors import SourceError
from treedot.trees import Tree

KINGDOMS = ("Animalia", "Bacteria", "Fungi", "Plantae")
LEAST_RESIDUES = 3
FOLDS = 10
FLOATING = "{"  # begins a part of a glycan whose place is not known
TOKEN = re.compile(r"\[|\]|\([^()]*\)|[^\[\]()]+")  # a bracket, a linkage, a residue


def glycan_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``glycans``: those of one kingdom, with their names as trees."""
    path = found.file("v12_df_species.csv")
    seen: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in _csv(path, "glycan", "Species", "Class", "Kingdom"):
        for column in ("Species", "Class", "Kingdom"):
            seen[row["glycan"]][column].add(row[column])
    kinds = _glycan_types(found.file("v12_sugarbase.json.xz"))
    rows = []
    for name in sorted(seen):
        species, classes, kingdoms = (sorted(seen[name][c]) for c in ("Species", "Class", "Kingdom"))
        if len(kingdoms) != 1 or kingdoms[0] not in KINGDOMS or FLOATING in name:
            continue
        if name.count("(") + 1 >= LEAST_RESIDUES:  # a linkage lies between two residues
            known = kingdoms[0], classes[0] if len(classes) == 1 else "", kinds.get(name, "")
            with contextlib.suppress(SourceError):  # a few names have brackets that do not match
                rows.append((*known, fold(name), len(species), name, glycan_tree(name)))
    columns = ("kingdom", "class", "glycan_type", "fold", "n_species", "iupac", "tree")
    return [Table("glycans", columns, rows)]


def glycan_tree(name: str) -> Tree:
    """Return the tree of a name in condensed IUPAC notation, which ends with the root.

    Every linkage is a node above its residue. Branches have no order, so they are sorted.

    >>> print(glycan_tree("Man(a1-3)[Man(a1-6)]Man(b1-4)GlcNAc"))
    (ROOT (GlcNAc (b1-4 (Man (a1-3 Man) (a1-6 Man)))))
    """
    tokens = TOKEN.findall(name)
    return Tree(ROOT, [_residue(tokens, name)])


def _residue(tokens: list[str], name: str) -> Tree:
    """Take the last residue off the tokens, and all that is bound to it."""
    if not tokens or tokens[-1][0] in "[](":
        raise SourceError(f"the glycan {name!r} does not end with a residue")
    label = tokens.pop()
    branches = []
    while tokens and tokens[-1] == "]":
        tokens.pop()
        branches.append(_linkage(tokens, name))
        if not tokens or tokens.pop() != "[":
            raise SourceError(f"the glycan {name!r} has a ] without [")
    if tokens and tokens[-1].startswith("("):
        branches.append(_linkage(tokens, name))
    return Tree(label, sorted(branches, key=str))


def _linkage(tokens: list[str], name: str) -> Tree:
    if not tokens or not tokens[-1].startswith("("):
        raise SourceError(f"the glycan {name!r} has a branch without a linkage")
    label = tokens.pop()[1:-1]
    return Tree(label, [_residue(tokens, name)])


def rna_tables(found: Downloads, parses: Parses) -> list[Table]:
    """Return ``rna_archive2``: secondary structures; the name of a molecule begins with its family."""
    rows = []
    for row in _csv(found.file("ArchiveII.csv"), "id", "sequence", "structure"):
        name, sequence, structure = row["id"], row["sequence"], row["structure"]
        if "()" not in re.sub("[^()]", ".", structure):  # a hairpin without a base is no tree
            tree = rna_tree(sequence, structure)
            rows.append((name.split("_")[0].lower(), fold(name), name, sequence, structure, tree))
    return [Table("rna_archive2", ("family", "fold", "id", "sequence", "structure", "tree"), rows)]


def rna_tree(sequence: str, structure: str) -> Tree:
    """Return the tree of a structure in dot-bracket notation; pseudoknots count as unpaired.

    >>> print(rna_tree("GAAC", "(..)"))
    (ROOT (PGC A A))
    """
    if len(sequence) != len(structure):
        raise SourceError(f"the structure {structure!r} is not as long as the sequence {sequence!r}")
    open_pairs: list[tuple[str, list[Tree]]] = [("", [])]
    for base, mark in zip(sequence, structure, strict=True):
        if mark == "(":
            open_pairs.append((base, []))
        elif mark == ")":
            if len(open_pairs) == 1:
                raise SourceError(f"the structure {structure!r} has a ) without (")
            first, children = open_pairs.pop()
            open_pairs[-1][1].append(Tree(f"P{first}{base}", children))
        else:
            open_pairs[-1][1].append(Tree(base))
    if len(open_pairs) > 1:
        raise SourceError(f"the structure {structure!r} has a ( without )")
    return Tree(ROOT, open_pairs[0][1])


def fold(name: str) -> int:
    """Return one of ten folds, which depends on the name only."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % FOLDS


def _csv(path: Path, *columns: str) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    if not rows or (missing := set(columns) - set(rows[0])):
        raise SourceError(f"{path} lacks the column {min(missing) if rows else columns[0]}")
    return rows


def _glycan_types(path: Path) -> dict[str, str]:
    """Return the type of every glycan: N, O, lipid, free or repeat."""
    try:
        content = json.loads(lzma.decompress(path.read_bytes()))
        name, kind = (content["columns"].index(column) for column in ("glycan", "glycan_type"))
        return {row[name]["value"]: row[kind]["value"] or "" for row in content["data"]}
    except (ValueError, KeyError, TypeError, lzma.LZMAError) as error:
        raise SourceError(f"{path} is not the table of SugarBase in JSON: {error}") from error
