"""Objects of parsers and libraries, sound and damaged, as far as these are installed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from random import Random
from typing import Any
from xml.etree import ElementTree

from fuzz.seeds import read_seeds
from fuzz.trees import LABELS

Odd = Callable[[], Any]  # returns something strange


def make_object(random: Random, odd: Odd) -> Any:
    """Return an object of a library; ``odd`` makes what replaces some of its parts."""
    makers: list[Callable[[Random, Odd], Any]] = [_ast, _tree_sitter, _element]
    for module, maker in (
        ("spacy", _spacy), ("stanza", _stanza), ("stanza", _constituents), ("nltk", _graph),
        ("lxml", _lxml), ("bs4", _soup),
    ):  # fmt: skip
        if find_spec(module) is not None:
            makers.append(maker)
    return random.choice(makers)(random, odd)


def _heads(random: Random, size: int) -> list[int]:
    """Return the heads of tokens from 0 on: a tree, several, or with cycles."""
    return [random.randrange(max(1, size if random.random() < 0.1 else k)) for k in range(size)]


def _spacy(random: Random, odd: Odd) -> Any:
    from spacy.tokens import Doc

    size = random.choice([0, 1, 3, 8])
    words = [random.choice(["a", " ", "\n", "Ä", "()", "x"]) for _ in range(size)]
    doc = Doc(_vocab(), words=words)
    if random.random() < 0.8:
        relations = [random.choice(["nsubj", "ROOT", ""]) for _ in words]
        doc = Doc(_vocab(), words=words, heads=_heads(random, size), deps=relations)
    return random.choice([doc, doc[: random.randint(0, size)], doc[random.randint(0, size) :]])


@cache
def _vocab() -> Any:
    from spacy.vocab import Vocab

    return Vocab()


def _stanza(random: Random, odd: Odd) -> Any:
    from stanza.models.common.doc import Document

    heads = [0 if head == k else head + 1 for k, head in enumerate(_heads(random, random.choice([1, 4])))]
    rows = [{"id": k, "text": "a", "head": head, "deprel": "x"} for k, head in enumerate(heads, 1)]
    document = Document([rows] * random.randint(0, 2))
    for sentence in document.sentences:
        if random.random() < 0.5:
            field = random.choice(["_text", "_lemma", "_upos", "_xpos", "_head", "_deprel"])
            setattr(random.choice(sentence.words), field, odd())
    return random.choice([document, *document.sentences])


def _constituents(random: Random, odd: Odd) -> Any:
    from stanza.models.constituency.parse_tree import Tree

    nodes = [Tree(random.choice(LABELS))]
    for _ in range(random.randrange(12)):
        nodes.append(Tree(random.choice(LABELS), random.choices(nodes, k=random.randint(1, 3))))
    if random.random() < 0.5:
        changed = random.choice(nodes)
        if random.random() < 0.3:
            changed.label = odd()
        else:
            changed.children = random.choice([odd(), (odd(),), (nodes[-1],)])
    return nodes[-1]


def _graph(random: Random, odd: Odd) -> Any:
    from nltk.parse.dependencygraph import DependencyGraph

    graph = DependencyGraph()
    for k, head in enumerate(_heads(random, random.randrange(5)), 1):
        node = {"address": k, "word": "a", "lemma": "b", "ctag": "C", "tag": "D", "rel": "e"}
        graph.add_node(node | {"head": 0 if head == k - 1 else head + 1})
    if random.random() < 0.5:
        graph.nodes[random.randrange(5)][random.choice(["address", "word", "tag", "rel", "head"])] = odd()
    return graph


def _element(random: Random, odd: Odd) -> Any:
    nodes = [ElementTree.Element("a", {"x": "1"})]
    for _ in range(random.randrange(10)):
        node = ElementTree.Element(random.choice(["a", "{urn:b}c"]))
        node.extend(random.choices(nodes, k=random.randint(1, 2)))
        node.text, node.tail = random.choice([None, " ", "text"]), random.choice([None, "tail"])
        nodes.append(node)
    changed = random.choice(nodes)
    match random.randrange(8):
        case 0:
            changed.tag = odd()
        case 1:
            changed.text = odd()
        case 2:
            changed.attrib["y"] = odd()
        case 3:
            changed.append(nodes[-1])
    return random.choice([nodes[-1], ElementTree.ElementTree(nodes[-1])])


def _lxml(random: Random, odd: Odd) -> Any:
    from lxml import etree, html

    if random.random() < 0.5:
        element = html.document_fromstring(random.choice(read_seeds("html")))
    else:
        element = etree.XML(b"<a xmlns:p='u'><p:b p:c='1'>t<!--n--><?go on?>u</p:b></a>")
    return random.choice([*element.iter(), element.getroottree()])


def _soup(random: Random, odd: Odd) -> Any:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(random.choice(read_seeds("html")), "html.parser")
    tags = soup.find_all()
    if tags and random.random() < 0.4:
        changed = random.choice(tags)
        match random.randrange(3):
            case 0:
                changed.attrs["y"] = odd()
            case 1:
                changed.contents.append(odd())
            case 2:
                changed.contents.append(random.choice(tags))
    return random.choice([soup, *tags])


def _ast(random: Random, odd: Odd) -> Any:
    nodes = list(ast.walk(ast.parse(random.choice(read_seeds("python")))))
    if random.random() < 0.6:
        changed = random.choice(nodes)
        for field in changed._fields[: random.randrange(3)]:
            setattr(changed, field, random.choice([odd(), random.choice(nodes)]))
    return random.choice(nodes)


def _tree_sitter(random: Random, odd: Odd) -> Any:
    import tree_sitter
    import tree_sitter_python

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_python.language()))
    tree = parser.parse(random.choice(read_seeds("python")))
    return random.choice([tree, *_all_nodes(tree.root_node)])


def _all_nodes(node: Any) -> Iterator[Any]:
    yield node
    for child in node.children:
        yield from _all_nodes(child)
