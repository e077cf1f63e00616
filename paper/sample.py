"""Trees for a first run without any download: ``python -m paper --sample``.

The questions are those of ``docs/examples/questions.tsv``, which are invented. A little grammar generates
pairs of texts and hypotheses. Trees of growing size are functions of Python's standard library.
"""

from __future__ import annotations

import sysconfig
from functools import cached_property
from pathlib import Path

import numpy as np

from paper.corpora import ENTAILMENT_SETS, Corpora, Pairs
from treedot._storage.files import read_plain
from treedot.readers import read_code, read_trees
from treedot.trees import Forest

QUESTIONS = Path(__file__).parents[1] / "docs/examples/questions.tsv"
TRAINING = 200  # of the 300 questions
PAIRS = 60  # in each set
SENTENCES = {"rte1": 1, "rte2": 2, "rte3": 3, "rte5": 8}  # in a text
FUNCTIONS = ("argparse.py", "ast.py", "datetime.py", "inspect.py", "tarfile.py", "typing.py")
NOUNS = ("doctor", "painter", "bridge", "garden", "letter", "river", "engine", "teacher", "island", "council")
VERBS = ("found", "sold", "painted", "praised", "crossed", "visited", "described", "repaired")
ADJECTIVES = ("old", "green", "famous", "broken", "quiet", "northern")
PREPOSITIONS = ("near", "behind", "with", "after")


class SampleCorpora(Corpora):
    """The same members as the paper's data, from trees that ship with Python and with the repository."""

    def __init__(self) -> None:
        super().__init__(QUESTIONS.parent, {})

    @cached_property
    def train(self) -> Forest:
        """The first 200 example questions; each class is its own fine class."""
        return self._questions[:TRAINING]

    @cached_property
    def test(self) -> Forest:
        """The other example questions."""
        return self._questions[TRAINING:]

    @cached_property
    def entailment(self) -> dict[str, tuple[Pairs, Pairs]]:
        """Generated pairs, in four sets of texts of 1, 2, 3 and 8 sentences."""
        return {
            name: (generated_pairs(SENTENCES[name], 2 * k), generated_pairs(SENTENCES[name], 2 * k + 1))
            for k, name in enumerate(ENTAILMENT_SETS)
        }

    @cached_property
    def growing(self) -> Forest:
        """Functions of six modules of the standard library."""
        library = Path(sysconfig.get_paths()["stdlib"])
        code = Forest.concat([read_code(library / name) for name in FUNCTIONS])
        return Forest(code.label, code.arity, code.offsets, code.labels)

    @cached_property
    def digest(self) -> str:
        """A name for the content of the file of questions."""
        return self._digest(read_plain(QUESTIONS))

    @cached_property
    def _questions(self) -> Forest:
        read = read_trees(QUESTIONS)
        classes = read.columns["label"]
        return Forest(
            read.label, read.arity, read.offsets, read.labels, {"coarse": classes, "fine": list(classes)}
        )


def generated_pairs(n_sentences: int, seed: int) -> Pairs:
    """Return pairs of a text and a hypothesis: one of its sentences, shortened, or one with other words."""
    random = np.random.default_rng(seed)
    texts, hypotheses = [], []
    entailed = np.arange(PAIRS) % 2 == 0
    for follows in entailed:
        facts = [_fact(random) for _ in range(n_sentences)]
        subject, verb, thing = facts[random.integers(n_sentences)]
        if not follows:
            subject, verb, thing = thing, str(random.choice(VERBS)), str(random.choice(NOUNS))
        texts.append(f"(ROOT {' '.join(_sentence(random, *fact) for fact in facts)})")
        hypotheses.append(f"(ROOT {_sentence(None, subject, verb, thing)})")
    return Pairs(read_trees(texts), read_trees(hypotheses), entailed)


def _fact(random: np.random.Generator) -> tuple[str, str, str]:
    subject, thing = random.choice(NOUNS, 2, replace=False)
    return str(subject), str(random.choice(VERBS)), str(thing)


def _sentence(random: np.random.Generator | None, subject: str, verb: str, thing: str) -> str:
    verb_phrase = f"(VP (VBD {verb}) {_phrase(random, thing)})"
    return f"(S {_phrase(random, subject)} {verb_phrase} (. .))"


def _phrase(random: np.random.Generator | None, noun: str) -> str:
    """Return a noun phrase: with adjectives and further phrases at random, or bare."""
    if random is None:
        return f"(NP (DT the) (NN {noun}))"
    adjective = f" (JJ {random.choice(ADJECTIVES)})" if random.random() < 0.5 else ""
    phrase = f"(NP (DT {random.choice(('the', 'a'))}){adjective} (NN {noun}))"
    if random.random() < 0.4:
        inner = _phrase(random, str(random.choice(NOUNS)))
        return f"(NP {phrase} (PP (IN {random.choice(PREPOSITIONS)}) {inner}))"
    return phrase
