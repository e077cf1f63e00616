import pytest

from parsed_sentences import SETTINGS, conllu, generated_sentences, read_text
from treedot import read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_objects

pytest.importorskip("nltk")
from nltk.parse.dependencygraph import DependencyGraph

SMALL = "1\tTrees\ttree\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n2\tgrow\t_\tVERB\t_\t_\t0\troot\t_\t_\n"


def graph(text):
    return DependencyGraph(text, cell_separator="\t", top_relation_label="root")


@pytest.mark.parametrize(("unit", "pos", "words"), SETTINGS)
def test_a_graph_is_the_tree_of_its_text(unit, pos, words):
    sentences = generated_sentences(100, SETTINGS.index((unit, pos, words)))
    graphs = [graph(conllu([tokens])) for tokens in sentences]
    wanted = read_text(conllu(sentences), unit, pos, words)
    assert read_objects(graphs, unit=unit, pos=pos, words=words) == wanted


def test_a_graph_of_four_columns_has_its_words_as_lemmas():
    found = DependencyGraph("Trees NNS 2 SUB\ngrow VBP 0 ROOT\n")
    assert str(read_trees([found])[0]) == "(ROOT (SUB (NNS trees::n)) (VBP grow::v))"


def test_damaged_graphs_are_refused():
    for change, message in (
        ({"head": 1}, "not a tree: the heads of token 1 form a cycle"),
        ({"head": None}, "has no text or no head"),
        ({"word": None}, "has no text or no head"),
        ({"head": 5}, "token 1 has the head 5"),
        ({"address": 9}, "must have the addresses 1, 2, 3"),
        ({"rel": 3}, "a label must be text, not int 3"),
        ({"tag": 3}, "is damaged, reading it raised TypeError"),
    ):
        broken = graph(SMALL)
        broken.nodes[1].update(change)
        with pytest.raises(SourceError, match=f"tree 1: .*{message}"):
            read_trees([broken])
    with pytest.raises(SourceError, match="has no words"):
        read_trees([DependencyGraph()])
    with pytest.raises(ParameterError, match="DependencyGraph has no unit 'constituency'"):
        read_trees([graph(SMALL)], unit="constituency")
