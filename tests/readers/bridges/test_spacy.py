import itertools

import pandas as pd
import pytest

from components import component
from parsed_sentences import SETTINGS, conllu, generated_sentences, read_text
from strategies import random_forest
from treedot import (
    FragmentVectorizer,
    SubsetTreeKernel,
    TreeIndex,
    compare,
    iter_trees,
    read_trees,
    similarity,
)
from treedot.errors import ParameterError, SourceError
from treedot.parameters import DEPENDENCY_TREES
from treedot.readers import read_objects

spacy = component("bridges")
from spacy.tokens import Doc, Span  # noqa: E402

VOCAB = spacy.blank("en").vocab


def parsed(tokens, spaces=None):
    """Return the Doc of a sentence."""
    forms, lemmas, upos, xpos, heads, relations = zip(*tokens, strict=True)
    heads = [k if head == 0 else head - 1 for k, head in enumerate(heads)]
    return Doc(
        VOCAB, words=forms, lemmas=lemmas, pos=upos, tags=xpos, heads=heads, deps=relations, spaces=spaces
    )


def trees_grow(**changed):
    columns = {
        "words": ["Trees", "grow", "."], "lemmas": ["tree", "grow", "."], "tags": ["NNS", "VBP", "."],
        "pos": ["NOUN", "VERB", "PUNCT"], "heads": [1, 1, 1], "deps": ["nsubj", "ROOT", "punct"],
    }  # fmt: skip
    return Doc(VOCAB, **columns | changed)


@pytest.fixture
def parse_string():
    """The extension that benepar adds to spans."""
    Span.set_extension("parse_string", default=None)
    yield
    Span.remove_extension("parse_string")


@pytest.mark.parametrize(("unit", "pos", "words"), SETTINGS)
def test_a_doc_is_the_tree_of_its_text(unit, pos, words):
    sentences = generated_sentences(100, SETTINGS.index((unit, pos, words)))
    docs = list(map(parsed, sentences))
    wanted = read_text(conllu(sentences), unit, pos, words)
    assert read_objects(docs, unit=unit, pos=pos, words=words) == wanted
    if (pos, words) == ("xpos", "lemma"):
        assert read_trees(docs, unit=unit) == wanted


def test_sentences_of_a_doc_are_trees_of_their_own():
    sentences = generated_sentences(1000, seed=1)
    doc = Doc.from_docs(list(map(parsed, sentences)))
    spans = [doc[start : start + len(s)] for start, s in zip(starts(sentences), sentences, strict=True)]
    assert read_objects(spans) == read_text(conllu(sentences))


def starts(sentences):
    return list(itertools.accumulate(map(len, sentences[:-1]), initial=0))


def test_the_forms_are_those_of_conllu():
    found = {unit: str(read_trees([trees_grow()], unit=unit)[0]) for unit in DEPENDENCY_TREES}
    assert found == {
        "grct": "(ROOT (nsubj (NNS tree::n)) (VBP grow::v) (punct (. .::.)))",
        "lct": "(grow::v (tree::n NNS nsubj) (.::. . punct) VBP ROOT)",
        "loct": "(grow::v tree::n .::.)",
        "cgrct": "(ROOT<*::*,grow::v> (nsubj<grow::v,tree::n> (NNS tree::n)) (VBP grow::v) "
        "(punct<grow::v,.::.> (. .::.)))",
        "clct": "(ROOT<*::*,grow::v> (nsubj<grow::v,tree::n> NNS nsubj tree::n) "
        "(punct<grow::v,.::.> . punct .::.) VBP ROOT grow::v)",
    }


def test_a_doc_itself_is_its_sentences_and_in_a_list_it_is_one():
    doc = Doc.from_docs(
        [trees_grow(), trees_grow(words=["Birds", "sing", "!"], lemmas=["bird", "sing", "!"])]
    )
    two = read_trees(doc)
    assert [str(tree) for tree in two] == [
        "(ROOT (nsubj (NNS tree::n)) (VBP grow::v) (punct (. .::.)))",
        "(ROOT (nsubj (NNS bird::n)) (VBP sing::v) (punct (. !::.)))",
    ]
    assert read_trees(doc.sents) == read_trees(list(doc.sents)) == read_objects(doc) == two
    assert [len(batch) for batch in iter_trees(doc, batch_size=1)] == [1, 1]
    with pytest.raises(
        SourceError, match=r"tree 2: the Doc has 2 sentences.*pass its sentences, list\(doc.sents\)"
    ):
        read_trees([trees_grow(), doc])
    with pytest.raises(SourceError, match="the Span has 2 sentences"):
        read_trees([doc[:]])
    with pytest.raises(ParameterError, match=r"from Span, which is one tree: pass a list"):
        read_trees(doc[:3])


def test_a_part_of_a_sentence_is_a_tree_of_its_own():
    doc = trees_grow()
    assert str(read_trees([doc[:2]])[0]) == "(ROOT (nsubj (NNS tree::n)) (VBP grow::v))"
    assert str(read_trees([doc[:1]])[0]) == "(nsubj (NNS tree::n))"


def test_white_space_is_left_out_unless_something_depends_on_it():
    spaced = {
        "words": ["\n", "Trees", " ", "grow"],
        "lemmas": ["", "tree", "", "grow"],
        "heads": [1, 3, 1, 3],
    }
    tags = {"tags": ["_SP", "NNS", "_SP", "VBP"], "pos": ["SPACE", "NOUN", "SPACE", "VERB"]}
    doc = trees_grow(**spaced, **tags, deps=["dep", "nsubj", "dep", "ROOT"])
    assert read_trees([doc]) == read_trees([trees_grow()[:2]])
    doc = trees_grow(
        words=["\n", "grow", "."], heads=[0, 0, 1], deps=["ROOT", "x", "punct"], lemmas=["", "grow", "."]
    )
    assert str(read_trees([doc], unit="loct")[0]) == r"(\x0a::n (grow::v .::.))"


def test_everything_that_takes_trees_takes_docs(tmp_path):
    docs = list(map(parsed, generated_sentences(8)))
    forest = read_trees(docs)
    kernel = SubsetTreeKernel()
    assert kernel(docs[0], docs[1]) == kernel(forest[0], forest[1])
    assert (kernel.gram(doc for doc in docs) == kernel.gram(forest)).all()
    rows = FragmentVectorizer().fit_transform(forest)
    for source in (docs, pd.Series(docs), pd.DataFrame({"tree": docs})):
        assert (FragmentVectorizer().fit_transform(source) != rows).nnz == 0
    assert similarity(docs[0], docs[1]) == similarity(forest[0], forest[1])
    assert str(compare(docs[0], docs[1])) == str(compare(forest[0], forest[1]))
    index = TreeIndex.build(docs, tmp_path / "docs.index")
    assert index.search([docs[3]], k=1)[0].tolist() == index.search(forest[3:4], k=1)[0].tolist()


def test_what_the_pipeline_lacks_is_named():
    plain = Doc(VOCAB, words=["Trees", "grow"])
    with pytest.raises(
        SourceError, match="tree 2: the Doc has no dependency parse: add the component 'parser'"
    ):
        read_trees([trees_grow(), plain])
    with pytest.raises(SourceError, match="the Span has no dependency parse"):
        read_trees([plain[:1]])
    with pytest.raises(
        SourceError, match="the Doc has no sentence boundaries: add the component 'parser', 'senter'"
    ):
        read_trees(plain)
    with pytest.raises(SourceError, match="the Doc has no tokens"):
        read_trees([Doc(VOCAB, words=[])])
    assert len(read_trees(Doc(VOCAB, words=[]))) == 0
    cyclic = Doc(VOCAB, words=["a", "b", "c"], heads=[1, 0, 1], deps=["x", "y", "z"])
    errors = []
    assert len(read_trees([cyclic, trees_grow()], on_bad=errors.append)) == 1
    assert str(errors[0]) == "tree 1: the Doc is not a tree: the heads of token 1 form a cycle"
    with pytest.raises(
        ParameterError,
        match="Doc has no unit 'function': use one of grct, lct, loct, cgrct, clct, constituency",
    ):
        read_trees([trees_grow()], unit="function")
    with pytest.raises(
        ParameterError, match="unit must be one of 'grct', 'lct', 'loct', 'cgrct', 'clct', 'constituency'"
    ):
        read_objects([trees_grow()], unit="function")


@pytest.mark.slow
def test_constituency_trees_are_those_that_benepar_wrote(parse_string):
    forest = random_forest(0, 1000)
    docs = [trees_grow() for _ in forest]
    for doc, tree in zip(docs, forest, strict=True):
        next(iter(doc.sents))._.parse_string = str(tree)
    sentences = [next(iter(doc.sents)) for doc in docs]
    assert read_trees(docs, unit="constituency") == read_trees(sentences, unit="constituency") == forest
    assert read_trees(docs[0], unit="constituency") == forest[:1]


def test_docs_without_constituents_are_refused(parse_string):
    with pytest.raises(SourceError, match="no constituency parse: add the component 'benepar'"):
        read_trees([trees_grow()], unit="constituency")
    doc = trees_grow()
    doc[:]._.parse_string = "(S (NP"
    with pytest.raises(
        SourceError, match="tree 1: the parse of the Span, character 1: this tree is never closed"
    ):
        read_trees([doc], unit="constituency")
    with pytest.raises(SourceError, match="the Doc has 2 sentences"):
        read_trees([Doc.from_docs([doc, doc])], unit="constituency")
    with pytest.raises(SourceError, match="no sentence boundaries"):
        read_trees([Doc(VOCAB, words=["a", "b"])], unit="constituency")
