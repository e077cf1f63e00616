import pytest

from components import component
from parsed_sentences import SETTINGS, conllu, generated_sentences, read_text
from strategies import random_forest
from treedot import SubsetTreeKernel, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_objects

component("bridges")
from stanza.models.common.doc import Document  # noqa: E402
from stanza.models.constituency.parse_tree import Tree  # noqa: E402


def parsed(sentences):
    """Return the Document of sentences."""
    named = ("text", "lemma", "upos", "xpos", "head", "deprel")
    return Document(
        [
            [
                {"id": k, **{name: value for name, value in zip(named, token, strict=True) if value != ""}}
                for k, token in enumerate(tokens, 1)
            ]
            for tokens in sentences
        ]
    )


def with_relations(sentences):
    """Replace missing relations, which Stanza's depparse never leaves."""
    return [[token._replace(deprel=token.deprel or "dep") for token in tokens] for tokens in sentences]


def constituents(tree):
    return Tree(tree.label, [constituents(child) for child in tree.children])


def trees_grow():
    return parsed([[("Trees", "tree", "NOUN", "NNS", 2, "nsubj"), ("grow", "", "VERB", "", 0, "root")]])


@pytest.mark.parametrize(("unit", "pos", "words"), SETTINGS)
def test_a_sentence_is_the_tree_of_its_text(unit, pos, words):
    sentences = with_relations(generated_sentences(100, SETTINGS.index((unit, pos, words))))
    document = parsed(sentences)
    settings = {"unit": unit, "pos": pos, "words": words}
    wanted = read_text(conllu(sentences), **settings)
    assert read_text(f"{document:C}\n", **settings) == wanted
    assert read_objects(document, **settings) == read_objects(document.sentences, **settings) == wanted


def test_a_document_in_a_list_holds_one_sentence():
    assert str(read_trees([trees_grow()])[0]) == "(root (nsubj (NNS tree::n)) (VERB grow::v))"
    kernel = SubsetTreeKernel()
    assert kernel(trees_grow(), trees_grow().sentences[0]) == kernel(*read_trees([trees_grow()] * 2))
    with pytest.raises(SourceError, match=r"tree 1: the Document has 3 sentences.*document\.sentences"):
        read_trees([parsed(generated_sentences(3))])
    with pytest.raises(SourceError, match="the Document has no sentences"):
        read_trees([Document([])])
    with pytest.raises(ParameterError, match="from Sentence, which is one tree: pass a list"):
        read_trees(trees_grow().sentences[0])


def test_multiword_tokens_and_empty_nodes_are_left_out_as_in_text():
    document = Document(
        [
            [
                {"id": (1, 2), "text": "du"},
                {"id": 1, "text": "de", "head": 3, "deprel": "case", "upos": "ADP"},
                {"id": 2, "text": "le", "head": 3, "deprel": "det", "upos": "DET"},
                {"id": 3, "text": "pain", "head": 0, "deprel": "root", "upos": "NOUN"},
            ]
        ],
        empty_sentences=[[{"id": (3, 1), "text": "nothing"}]],
    )
    assert read_trees(document) == read_text(f"{document:C}\n")
    assert read_trees(document).sizes.tolist() == [9]


@pytest.mark.slow
def test_constituency_trees_are_those_of_the_brackets_that_stanza_writes():
    forest = random_forest(0, 1000)
    found = list(map(constituents, forest))
    assert read_trees(found) == read_trees(list(map(str, found))) == forest
    document = trees_grow()
    document.sentences[0].constituency = found[0]
    assert (
        read_trees(document, unit="constituency") == read_trees([document], unit="constituency") == forest[:1]
    )
    odd = Tree(None, [Tree("-LRB-", [Tree("a(b")]), Tree("X", [Tree(")")])])
    assert read_trees([odd]) == read_trees([str(odd)])
    with pytest.raises(ParameterError, match="Tree has no unit 'grct'"):
        read_trees([odd], unit="grct")


def test_what_the_processors_lack_is_named():
    tagged = Document([[{"id": 1, "text": "Trees"}]])
    with pytest.raises(SourceError, match="tree 1: the Sentence has no dependency parse: add 'depparse'"):
        read_trees(tagged)
    with pytest.raises(SourceError, match="no constituency parse: add 'constituency'"):
        read_trees(trees_grow(), unit="constituency")
    sentence = trees_grow().sentences[0]
    sentence.words[0].head = 7
    with pytest.raises(SourceError, match=r"not a tree: token 1 has the head 7, but the sentence has 2"):
        read_trees([sentence])
    sentence.words[0].lemma = 3
    with pytest.raises(SourceError, match="the Sentence is damaged, reading it raised AttributeError"):
        read_trees([sentence])
    sentence.words = []
    with pytest.raises(SourceError, match="the Sentence has no words"):
        read_trees([sentence])


@pytest.mark.slow
def test_a_tree_that_contains_itself_is_refused():
    cyclic = Tree("a", [Tree("b")])
    cyclic.children = (cyclic, Tree("b"))
    shared = Tree("a", [Tree("b")])
    for _ in range(40):
        shared = Tree("a", [shared, shared])
    for tree, message in ((cyclic, "contains itself"), (shared, "a tree of .* nodes")):
        with pytest.raises(SourceError, match=f"tree 1: .*{message}"):
            read_trees([tree])
