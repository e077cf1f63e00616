"""Measure reading the objects of parsers and libraries: ``python -m benchmarks.parsers``.

Rates are nodes per second of processor time on one core, the best of several rounds. Sentences are generated:
words follow Zipf's law, and every word depends on one of its neighbours. Libraries that are not installed are
left out. The last lines count the functions of Python's standard library whose tree from ``ast`` equals that
of their source.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.templates import pages
from benchmarks.timing import cpu_seconds as seconds
from treedot import read_trees
from treedot.readers import parse_code

Token = tuple[str, str, str, str, int, str]  # form, lemma, UPOS, XPOS, head (0 is the root), relation


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.parsers", description=__doc__)
    parser.add_argument("--sentences", type=int, default=2000, help="number of sentences (default: 2000)")
    parser.add_argument("--words", type=int, default=25, help="words of a sentence (default: 25)")
    parser.add_argument("--modules", type=int, default=100, help="modules for ast (default: 100)")
    options = parser.parse_args(arguments)
    sentences = generated(options.sentences, options.words)
    print(f"{options.sentences} sentences of {options.words} words\n\n| objects | M nodes/s |\n|---|---|")
    text = conllu(sentences)
    for unit in ("grct", "lct", "loct"):
        _row(f"CoNLL-U text, {unit}", lambda u=unit: read_trees(io.StringIO(text), "conllu", unit=u))  # type: ignore[misc]
    for name, made in objects(sentences):
        for unit in ("grct", "lct", "loct") if name in ("spaCy", "Stanza") else (None,):
            _row(", ".join(filter(None, (name, unit))), lambda m=made, u=unit: read_trees(m, unit=u))  # type: ignore[misc]
    print(
        "\nPython's ast: {} of {} functions in {} modules as in their source".format(
            *agreement(options.modules)
        )
    )
    return 0


def _row(name: str, read: Callable[[], Any]) -> None:
    print(f"| {name} | {read().n_nodes / seconds(read) / 1e6:.2f} |")


def generated(count: int, words: int) -> list[list[Token]]:
    """Return sentences; a word depends on a word between it and the root, or on the root."""
    source = random.Random(0)
    return [_sentence(source, words) for _ in range(count)]


def _sentence(source: random.Random, words: int) -> list[Token]:
    root = source.randint(1, words)
    tokens: list[Token] = []
    for k in range(1, words + 1):
        head = 0 if k == root else source.randint(*sorted((root, k + (1 if k < root else -1))))
        word = f"w{int(source.paretovariate(1.0)) % 20_000}"
        tag = source.choice(["NN", "NNS", "VB", "DT", "IN", "JJ"])
        relation = "root" if k == root else source.choice(["nsubj", "obj", "det", "case", "amod"])
        tokens.append((word, word, tag[:1], tag, head, relation))
    return tokens


def conllu(sentences: list[list[Token]]) -> str:
    """Return the text of sentences."""
    rows = (
        "\n".join(f"{k}\t{f}\t{m}\t{u}\t{x}\t_\t{h}\t{r}\t_\t_" for k, (f, m, u, x, h, r) in enumerate(s, 1))
        for s in sentences
    )
    return "\n\n".join(rows) + "\n"


def objects(sentences: list[list[Token]]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the objects of every installed library, with its name."""
    if find_spec("spacy"):
        import spacy
        from spacy.tokens import Doc

        vocab = spacy.blank("en").vocab
        yield "spaCy", [_doc(Doc, vocab, tokens) for tokens in sentences]
    if find_spec("stanza"):
        from stanza.models.common.doc import Document

        names = ("text", "lemma", "upos", "xpos", "head", "deprel")
        rows = [
            [dict(zip(names, token, strict=True), id=k) for k, token in enumerate(s, 1)] for s in sentences
        ]
        yield "Stanza", Document(rows).sentences
    if find_spec("nltk"):
        from nltk.parse.dependencygraph import DependencyGraph

        texts = conllu(sentences).split("\n\n")
        yield "NLTK", [DependencyGraph(t, cell_separator="\t", top_relation_label="root") for t in texts]
    made, _ = pages(n_sites=1, n_templates=2, n_pages=20, n_noise=0)
    if find_spec("lxml"):
        from lxml import html

        yield "lxml", list(map(html.document_fromstring, made))
    if find_spec("bs4") and find_spec("lxml"):
        from bs4 import BeautifulSoup

        yield "BeautifulSoup", [BeautifulSoup(page, "lxml") for page in made]
    yield "tree-sitter", list(_syntax_trees())


def _doc(doc: Any, vocab: Any, tokens: list[Token]) -> Any:
    forms, lemmas, _, tags, heads, relations = zip(*tokens, strict=True)
    heads = tuple(k if head == 0 else head - 1 for k, head in enumerate(heads))
    return doc(vocab, words=forms, lemmas=lemmas, tags=tags, heads=heads, deps=relations)


def _syntax_trees() -> Iterator[Any]:
    import tree_sitter
    import tree_sitter_python

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    return (parser.parse(path.read_bytes()) for path in modules(10))


def modules(count: int) -> list[Path]:
    """Return modules of Python's standard library."""
    return sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:count]


def agreement(count: int) -> tuple[int, int, int]:
    """Return how many functions have the same tree from ``ast``, of how many, in how many modules."""
    same = total = 0
    for path in modules(count):
        text = path.read_text(encoding="utf-8", errors="replace")
        code = parse_code(text, "python")
        wanted = dict(zip(code.columns["start"], code, strict=True))
        nodes = [
            n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
        found = read_trees(nodes)
        same += sum(wanted.get(node.lineno) == tree for node, tree in zip(nodes, found, strict=True))
        total += len(nodes)
    return same, total, len(modules(count))


if __name__ == "__main__":
    raise SystemExit(main())
