"""Trees that a parser has to make: the sentences that lack one are written to a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from paper.prepare.penn import ROOT, rooted
from treedot._storage.files import write_whole
from treedot.errors import SourceError, TreeSyntaxError
from treedot.trees import Tree


class Parses:
    """The trees of ``CORPUS.sentences.mrg``: one line for each line of ``CORPUS.sentences.txt``."""

    def __init__(self, folder: Path, corpus: str) -> None:
        self.sentences = folder / f"{corpus}.sentences.txt"
        self.trees = folder / f"{corpus}.sentences.mrg"
        self.known: dict[str, str] = {}
        self.missing: dict[str, None] = {}
        if self.sentences.exists() and self.trees.exists():
            sentences, trees = (path.read_text("utf-8").splitlines() for path in (self.sentences, self.trees))
            if len(sentences) != len(trees):
                raise SourceError(
                    f"{self.trees} has {len(trees)} lines and {self.sentences} {len(sentences)}: "
                    "write one tree per sentence, each on a line of its own"
                )
            self.known = dict(zip(sentences, trees, strict=True))
            self.line = {sentence: k + 1 for k, sentence in enumerate(sentences)}

    def tree(self, sentences: Sequence[str]) -> str:
        """Return the trees of sentences under one ROOT; note the sentences that have none."""
        new = [sentence for sentence in sentences if sentence not in self.known]
        self.missing.update(dict.fromkeys(new))
        if new:
            return ""
        return str(Tree(ROOT, [child for sentence in sentences for child in self._one(sentence).children]))

    def _one(self, sentence: str) -> Tree:
        try:
            tree = rooted(Tree.parse(self.known[sentence]))
        except TreeSyntaxError as error:
            raise SourceError(f"{self.trees}:{self.line[sentence]}: {error}") from error
        if not all(node.label for node in tree.postorder()):
            raise SourceError(
                f"{self.trees}:{self.line[sentence]}: a node without a label; the parser may have given up: "
                "write a tree by hand, such as (ROOT (X (X word) (X word)))"
            )
        return tree

    def write_missing(self) -> str:
        """Write the sentences that lack a tree, after those that have one; return what to do next."""
        both = [*self.known, *self.missing]
        with write_whole(self.sentences) as aside:
            aside.write_text("".join(f"{sentence}\n" for sentence in both), encoding="utf-8")
        return (
            f"{len(self.missing):,} sentences have no tree. Parse {self.sentences} with a constituency "
            f"parser, one tree per line, into {self.trees}, and run this command again. "
            "docs/reproduce.md names a parser."
        )
