"""The paper's data: questions with their classes, and pairs of texts and hypotheses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from treedot.errors import SourceError
from treedot.models.inputs import links
from treedot.readers import read_trees
from treedot.trees import Forest

ENTAILMENT_SETS = ("rte1", "rte2", "rte3", "rte5")

COUNTS = {
    "qc_train": 5452,
    "qc_test": 500,
    "rte1_dev": 567,
    "rte1_test": 800,
    "rte2_dev": 800,
    "rte2_test": 800,
    "rte3_dev": 800,
    "rte3_test": 800,
    "rte5_dev": 600,
    "rte5_test": 600,
}

LAYOUT = """The experiments read tab-separated files with one header line, compressed with gzip:
  qc_train.tsv.gz, qc_test.tsv.gz                 columns coarse, fine, tree
  rte1_dev.tsv.gz, rte1_test.tsv.gz, also rte2, rte3, rte5
                                                  columns label (YES or NO), text_tree, hypothesis_tree
Trees are in Penn brackets on one line, (ROOT (S (NP (NNP Ann)) (VP (VBZ runs)))). The questions are the
UIUC question classification set, the pairs the PASCAL Recognising Textual Entailment challenges; any
constituency parser will do for the trees. Name the folder with --data DIR or TREEDOT_DATA.
docs/reproduce.md says where to get them; --sample needs none of them."""


@dataclass(frozen=True)
class Pairs:
    """Texts and hypotheses, and which hypotheses follow from their texts."""

    texts: Forest
    hypotheses: Forest
    entailed: np.ndarray

    def __len__(self) -> int:
        return len(self.entailed)

    @property
    def trees(self) -> links.Pairs:
        """The texts and hypotheses, as treedot's models of pairs take them."""
        return links.Pairs(self.texts, self.hypotheses)

    def linked(self) -> Pairs:
        """Return the pairs with placeholders for the content words that both trees have."""
        trees = self.trees.linked()
        return Pairs(trees.texts, trees.hypotheses, self.entailed)

    def some(self, n: int | None) -> Pairs:
        """Return ``n`` pairs, always the same ones; all pairs if ``n`` is None."""
        if n is None or n >= len(self):
            return self
        chosen = np.random.default_rng(0).permutation(len(self))[:n]
        return Pairs(self.texts[chosen], self.hypotheses[chosen], self.entailed[chosen])


class Corpora:
    """A folder with the paper's data, read when it is needed and counted when it is read."""

    def __init__(self, folder: str | Path | None, counts: Mapping[str, int] = COUNTS) -> None:
        if folder is None:
            raise SourceError(f"there is no data folder.\n{LAYOUT}")
        self.folder = Path(folder)
        self.counts = counts

    def require(self, *kinds: str) -> None:
        """Raise where files of a kind, ``"qc"`` or ``"rte"``, are missing."""
        missing = [name for name in self.counts if name.startswith(kinds) and not self._path(name).is_file()]
        if missing:
            raise SourceError(f"{self.folder} lacks {', '.join(f'{m}.tsv.gz' for m in missing)}.\n{LAYOUT}")

    @cached_property
    def train(self) -> Forest:
        """The training questions, with the columns ``coarse`` and ``fine``."""
        return self._read("qc_train", "tree", "coarse", "fine")

    @cached_property
    def test(self) -> Forest:
        """The test questions."""
        return self._read("qc_test", "tree", "coarse", "fine")

    @cached_property
    def entailment(self) -> dict[str, tuple[Pairs, Pairs]]:
        """The training and the test pairs of every challenge."""
        return {name: (self._pairs(f"{name}_dev"), self._pairs(f"{name}_test")) for name in ENTAILMENT_SETS}

    @cached_property
    def growing(self) -> Forest:
        """All trees, from which those of growing size are chosen: questions, texts and hypotheses."""
        sets = [pairs for both in self.entailment.values() for pairs in both]
        return Forest.concat([self.train, *(p.texts for p in sets), *(p.hypotheses for p in sets)])

    @cached_property
    def digest(self) -> str:
        """A name for the content of the files."""
        files = [self._path(name) for name in sorted(self.counts)]
        return self._digest(*(path.read_bytes() for path in files if path.is_file()))

    def _digest(self, *contents: bytes) -> str:
        return hashlib.sha256(b"".join(contents)).hexdigest()[:16]

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.tsv.gz"

    def _read(self, name: str, column: str, *needed: str) -> Forest:
        path = self._path(name)
        forest = read_trees(path, column=column)
        if len(forest) != self.counts[name]:
            raise SourceError(
                f"{path} holds {len(forest)} records, but the set has {self.counts[name]}: "
                "supply the whole set, as the published figures are about it"
            )
        absent = set(needed) - set(forest.columns)
        if absent:
            raise SourceError(f"{path} lacks the column {', '.join(sorted(absent))}.\n{LAYOUT}")
        return Forest(
            forest.label,
            forest.arity,
            forest.offsets,
            forest.labels,
            {key: forest.columns[key] for key in needed},
        )

    def _pairs(self, name: str) -> Pairs:
        texts = self._read(name, "text_tree", "label")
        labels = np.array(texts.columns["label"])
        strange = set(labels) - {"YES", "NO"}
        if strange:
            raise SourceError(f"{self._path(name)}: label {sorted(strange)[0]!r} is neither YES nor NO")
        return Pairs(texts, self._read(name, "hypothesis_tree"), labels == "YES")
