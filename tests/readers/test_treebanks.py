"""CoNLL-U, Newick and dot-bracket files."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import ANY_LABEL, corpus, trees
from treedot import Forest, Tree, iter_trees, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_conllu, read_dot_bracket, read_kelp, read_newick, text_window
from treedot.readers.folders import Skipped

SENTENCE = """\
# sent_id = s1
# text = How did you do it?
1\tHow\thow\tADV\tWRB\t_\t4\tadvmod\t_\t_
2-3\tdid you\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\tdo\tAUX\tVBD\t_\t4\taux\t_\t_
3\tyou\tyou\tPRON\tPRP\t_\t4\tnsubj\t_\t_
3.1\tthen\tthen\tADV\tRB\t_\t_\t_\t_\t_
4\tdo\tdo\tVERB\tVB\t_\t0\troot\t_\t_
5\tit\tit\tPRON\tPRP\t_\t4\tobj\t_\t_

"""
GRCT = "(root (advmod (WRB how::w)) (aux (VBD do::v)) (nsubj (PRP you::p)) (VB do::v) (obj (PRP it::p)))"


def conllu(*tokens, comments=""):
    rows = [
        f"{k}\t{form}\t{form}\tX\t{tag}\t_\t{head}\t{relation}\t_\t_"
        for k, (form, tag, head, relation) in enumerate(tokens, 1)
    ]
    return comments + "\n".join(rows) + "\n\n"


def read(text, kind="conllu", **settings):
    return read_trees(io.StringIO(text), kind, **settings)


def problem(text, kind="conllu", **settings):
    with pytest.raises(SourceError) as caught:
        read(text, kind, **settings)
    return str(caught.value)


def test_a_sentence_becomes_the_trees_of_the_literature():
    assert str(read(SENTENCE)[0]) == GRCT
    assert str(read(SENTENCE, unit="lct")[0]) == (
        "(do::v (how::w WRB advmod) (do::v VBD aux) (you::p PRP nsubj) (it::p PRP obj) VB root)"
    )
    assert str(read(SENTENCE, unit="loct")[0]) == "(do::v how::w do::v you::p it::p)"


def test_compositional_trees_name_head_and_modifier():
    sentence = conllu(("Trees", "N", 2, "nsubj"), ("grow", "V", 0, "root"), (",", ",", 2, "punct"))
    comma = "punct<grow::v,_comma_::_comma_>"
    grct = f"(root<*::*,grow::v> (nsubj<grow::v,trees::n> (N trees::n)) (V grow::v) ({comma} (, ,::,)))"
    assert str(read(sentence, unit="cgrct")[0]) == grct
    below = f"(nsubj<grow::v,trees::n> N nsubj trees::n) ({comma} , punct ,::,)"
    assert str(read(sentence, unit="clct")[0]) == f"(root<*::*,grow::v> {below} V root grow::v)"


def test_comments_become_columns_and_lines_are_known(tmp_path):
    path = tmp_path / "two.conllu"
    path.write_text(SENTENCE + conllu(("A", "T", 0, "root")), encoding="utf-8")
    forest = read_conllu(path)
    assert forest.columns == {
        "file": [str(path)] * 2,
        "start": [1, 11],
        "end": [9, 11],
        "sent_id": ["s1", ""],
        "text": ["How did you do it?", ""],
    }
    assert read_trees(path) == forest


def test_the_part_of_speech_and_the_lemma_have_stand_ins(tmp_path):
    path = tmp_path / "plain.conllu"
    path.write_text("1\tGo\t_\tVERB\t_\t_\t0\troot\t_\t_\n", encoding="utf-8")
    assert str(read_conllu(path)[0]) == "(root (VERB go::v))"
    path.write_text("1\tTrees\ttree\tNOUN\tNNS\t_\t0\troot\t_\t_\n", encoding="utf-8")
    assert str(read_conllu(path, pos="upos")[0]) == "(root (NOUN tree::n))"
    assert str(read_conllu(path, words="form")[0]) == "(root (NNS trees::n))"
    with pytest.raises(ParameterError, match="unit must be one of 'grct', 'lct', 'loct', 'cgrct', 'clct'"):
        read_conllu(path, unit="ptb")
    with pytest.raises(ParameterError, match="words must be one of 'lemma', 'form'"):
        read_conllu(path, words="text")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([("a", "A", 0, "root"), ("b", "B", 0, "root")], ":2: token 2 is a second root, beside token 1"),
        ([("a", "A", 2, "x"), ("b", "B", 1, "y")], ":1: the heads of token 1 form a cycle"),
        ([("a", "A", 0, "root"), ("b", "B", 2, "x")], ":2: the heads of token 2 form a cycle"),
        ([("a", "A", 0, "root"), ("b", "B", 7, "x")], ":2: token 2 has the head 7, but the sentence has 2"),
        ([("a", "A", "_", "root")], ":1: the head of a token must be a number, not '_'"),
        ([("a", "A", "²", "root")], ":1: the head of a token must be a number, not '²'"),
    ],
)
def test_a_sentence_that_is_no_tree_is_refused_with_its_line(tokens, message):
    assert message in problem(conllu(*tokens))


def test_lines_that_are_no_tokens_are_refused():
    assert ":1: 2 field(s); CoNLL-U has 10" in problem("1\ta\n")
    assert ":2: expected token 2, found '3'" in problem(
        conllu(("a", "A", 0, "root")).strip() + "\n" + "3" + "\t_" * 9
    )
    with pytest.raises(SourceError, match=":1: the byte 0xff is not UTF-8"):
        read_trees(io.BytesIO(b"1\t\xff" + b"\t_" * 8), "conllu")
    assert "contains no tree" in problem("# a comment alone\n\n\n")
    with pytest.raises(ParameterError, match="has no column 'x'"):
        read(SENTENCE, column="x")
    with pytest.raises(ParameterError, match="has no unit 'record'"):
        read(SENTENCE, unit="record")


def test_bad_sentences_are_left_out_whole():
    bad = conllu(("a", "A", 0, "root"), ("b", "B", 0, "root"))
    errors = []
    found = list(iter_trees(io.StringIO(bad + SENTENCE + bad), "conllu", on_bad=errors.append, batch_size=1))
    assert [str(tree) for forest in found for tree in forest] == [GRCT]
    assert [str(error).split(":")[1] for error in errors] == ["2", "15"]


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from("abc")), min_size=1, max_size=12))
def test_any_heads_are_a_tree_or_refused(tokens):
    text = conllu(*((word, word.upper(), head, word * 2) for head, word in tokens))
    heads = [head for head, _ in tokens]
    below = {0} if heads.count(0) == 1 else set()
    while new := {k for k, head in enumerate(heads, 1) if head in below} - below:
        below |= new
    if len(below) == len(tokens) + 1:
        for unit, nodes in (("grct", 3), ("lct", 3), ("loct", 1), ("cgrct", 3), ("clct", 4)):
            forest = read(text, unit=unit)
            Forest(forest.label, forest.arity, forest.offsets, forest.labels)
            assert forest.n_nodes == nodes * len(tokens)
    else:
        assert problem(text)


def test_the_words_of_relation_centred_trees_stand_in_the_order_of_the_sentence():
    heads = [2, 5, 2, 5, 0, 9, 9, 6, 5]
    text = conllu(*((f"w{k}", "T", head, "r") for k, head in enumerate(heads, 1)))
    words = [node.label for node in read(text)[0].postorder() if node.is_leaf]
    assert words == [f"w{k}::t" for k in (1, 2, 3, 4, 5, 6, 8, 7, 9)]  # 8 depends on 6 across 7


def test_a_long_chain_of_dependents_is_no_trouble():
    text = conllu(*((f"w{k}", "T", k - 1, "r") for k in range(1, 30_001)))
    assert [read(text, unit=unit).n_nodes for unit in ("grct", "lct", "loct")] == [90_000, 90_000, 30_000]


@pytest.mark.corpus
@pytest.mark.parametrize("form", ["grct", "lct", "loct", "cgrct", "clct"])
def test_the_trees_are_those_of_kelp(form):
    sentences, expected = [], []
    with gzip.open(corpus("qc_test_dep.tsv.gz"), "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            sentences.append(as_conllu(Tree.parse(row["grct"])))
            expected.append(str(without_types(Tree.parse(row[form]))))
    assert [str(tree) for tree in read("".join(sentences), unit=form)] == expected


def without_types(tree):
    return Tree(tree.label.partition("##")[2], [without_types(child) for child in tree.children])


def as_conllu(tree):
    """Return the sentence of a relation centred tree of KeLP: its tokens stand in the order of the tree."""
    tokens = []

    def walk(node, head):
        own = {"relation": node.label.partition("##")[2], "head": head}
        for child in node.children:
            if child.label.startswith("POS##"):
                lemma = child.children[0].label.partition("##")[2].rpartition("::")[0]
                tokens.append(own | {"tag": child.label.partition("##")[2], "lemma": lemma, "of": id(own)})
            else:
                walk(child, id(own))
        kept.append(own)

    kept = []  # so that no two have the same id
    walk(tree, None)
    numbers = {token["of"]: k for k, token in enumerate(tokens, 1)}
    return conllu(*((t["lemma"], t["tag"], numbers.get(t["head"], 0), t["relation"]) for t in tokens))


def test_newick_trees_have_labels_everywhere_or_nowhere():
    text = "(a,b,(c,d)e)f;\n(,,(,));[&R] (a:0.1,'it''s (b)'[c]:1e-3)\n  root:0 ;"
    assert [str(tree) for tree in read(text, "newick")] == [
        "(f a b (e c d))",
        "( () () ( () ()))",
        "(root a it's\\x20\\x28b\\x29)",
    ]


def test_lengths_of_branches_are_dropped_or_kept(tmp_path):
    path = tmp_path / "a.nwk"
    path.write_text("(a:0.1,b:-2.5E3,c)d:.5;", encoding="utf-8")
    assert str(read_newick(path)[0]) == "(d a b c)"
    assert str(read_newick(path, lengths="keep")[0]) == "(d:.5 a:0.1 b:-2.5E3 c)"
    assert read_newick(path).columns == {"file": [str(path)], "start": [1], "end": [1]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a,b", ":1: the last tree does not end with ';'"),
        ("(a,b)\nc d;", ":2: expected ',', ')' or ';', found 'd'"),
        ("(a,b;", ":1: 1 bracket(s) not closed before ';'"),
        ("a,b;", ":1: a ',' outside of brackets"),
        ("(a))b;", ":1: a ')' outside of brackets"),
        ("(a:b)c;", ":1: expected the length of a branch after ':', found 'b'"),
        ("(a:)c;", ":1: expected the length of a branch after ':', found ')'"),
        ("(a:1:2)c;", ":1: a second ':' at the same node"),
        ("(a)b(c)d;", ":1: expected ',', ')' or ';', found '('"),
        ("(a)(c)d;", ":1: expected ',', ')' or ';', found '('"),
        ("(a,'b);", ":1: a ' that is not closed"),
        ("(a,[b);", ":1: a [ that is not closed"),
        ("(a],b);", ":1: a ] without its ["),
        (";", ":1: no tree before ';'"),
        (" \n", "contains no tree"),
    ],
)
def test_newick_errors_say_what_and_where(text, message):
    assert message in problem(text, "newick")


def test_after_a_bad_tree_newick_goes_on_behind_the_semicolon():
    errors = []
    found = read("(a,b;(c)d;(e))f;(g)h;(i", "newick", on_bad=errors.append)
    assert [str(tree) for tree in found] == ["(d c)", "(h g)"]
    assert len(errors) == 3


@pytest.mark.parametrize("chunk", [1, 5, 1 << 18])
def test_a_byte_that_is_not_utf_8_costs_one_tree_in_newick(monkeypatch, chunk):
    monkeypatch.setattr(text_window, "CHUNK_BYTES", chunk)
    errors = []
    raw = "(a,é)b;\n(c,".encode() + b"\xe9)d;\n(e,[\xe9]f)g;(h,'\xc3');(i)j;"
    found = read_trees(io.BytesIO(raw), "newick", on_bad=errors.append)
    assert [str(tree) for tree in found] == ["(b a é)", "(g e f)", "(j i)"]
    assert [str(error).partition(":")[2] for error in errors] == [
        "2: the byte 0xe9 is not UTF-8",
        "3: the byte 0xc3 is not UTF-8",
    ]


LABELS = st.one_of(
    ANY_LABEL.map(lambda text: text.replace("\x00", "")), st.sampled_from(["a b", "it's", "a_b"])
)


def as_newick(tree):
    label = "'" + tree.label.replace("'", "''") + "'"
    return (f"({','.join(map(as_newick, tree.children))})" if tree.children else "") + label


@given(st.lists(trees(LABELS), min_size=1, max_size=4), st.sampled_from([1, 2, 3, 7, 1 << 18]))
def test_newick_with_labels_in_quotes_holds_any_tree_however_it_is_cut(some, chunk):
    text = "".join(f"{as_newick(tree)};\n" for tree in some)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_window, "CHUNK_BYTES", chunk)
        assert read_trees(io.BytesIO(text.encode()), "newick") == Forest.from_trees(some)


def test_a_deep_tree_in_newick_is_no_trouble():
    assert read("(" * 50_000 + "a" + ")b" * 50_000 + ";", "newick").n_nodes == 50_001


@pytest.mark.parametrize(
    ("read_files", "suffix", "text"),
    [
        (read_newick, ".nwk", "(a)b;"),
        (read_conllu, ".conllu", conllu(("a", "X", 0, "root"))),
        (read_dot_bracket, ".dbn", "A\n.\n"),
        (read_kelp, ".klp", "x |BT| (A b) |ET|\n"),
    ],
)
def test_a_damaged_file_in_a_folder_is_left_out(tmp_path, read_files, suffix, text):
    (tmp_path / f"good{suffix}").write_text(text, encoding="utf-8")
    packed = gzip.compress((text * 1000).encode())[:-9]
    (tmp_path / f"short{suffix}.gz").write_bytes(packed)
    (tmp_path / f"zeros{suffix}").write_bytes(bytes(100))
    skipped, errors = Skipped(), []
    assert len(read_files(tmp_path, on_skip=skipped)) >= 1
    assert skipped.counts == {"unreadable": 2}
    assert len(read_files(tmp_path, on_bad=errors.append)) >= 1
    assert len(errors) == 2
    with pytest.raises(SourceError, match="short"):
        read_files(tmp_path / f"short{suffix}.gz")


def test_what_is_no_path_is_refused():
    with pytest.raises(ParameterError, match=r"paths must be the path of a file or a folder, .* not 5"):
        read_newick(5)


HAIRPINS = """\
>one a hairpin
GGAAACUA
((...)). (-1.20)

>two
ACGU
.().
"""


def test_structures_become_trees_of_pairs_and_bases(tmp_path):
    path = tmp_path / "a.dbn"
    path.write_text(HAIRPINS, encoding="utf-8")
    forest = read_dot_bracket(path)
    assert [str(tree) for tree in forest] == ["(ROOT (PGU (PGC A A A)) A)", "(ROOT A PCG U)"]
    assert forest.columns["name"] == ["one a hairpin", "two"]
    assert forest.columns["sequence"] == ["GGAAACUA", "ACGU"]
    assert read_trees(path) == forest


def test_structures_need_no_names():
    forest = read("ACGU\n.().\nCC\n..\n", "dot-bracket")
    assert [str(tree) for tree in forest] == ["(ROOT A PCG U)", "(ROOT C C)"]
    assert forest.columns["start"] == [1, 3]
    assert forest.columns["end"] == [2, 4]
    assert forest.columns["name"] == ["", ""]
    assert forest.columns["structure"] == [".().", ".."]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">a\nACGU\n.([)\n", ":3:3: the mark '[': pairs in other brackets or letters may cross"),
        (">a\nACGU\n.(A)\n", ":3:3: the mark 'A': pairs in other brackets or letters may cross"),
        (">a\nACGU\n.(&)\n", ":3:3: the mark '&': a structure consists of '(', ')' and '.'"),
        (">a\nACGU\n.)..\n", ":3:2: a ')' without an opening '('"),
        (">a\nACGU\n.(..\n", ":3:2: a '(' that is never closed"),
        (">a\nAC GU\n() ()\n", ":2: a sequence must not contain blanks, as in 'AC GU'"),
        (">a\nACGU\n...\n", ":3: the sequence has 4 bases, but the structure 3"),
        (">a\n>b\nA\n.\n", ":1: expected a line with the sequence and one with the structure, found 0"),
        (
            ">a\nACGU\n....\n....\n",
            ":1: expected a line with the sequence and one with the structure, found 3",
        ),
    ],
)
def test_structures_that_are_no_trees_are_refused_with_their_place(text, message):
    assert message in problem(text, "dot-bracket")


def test_lines_that_begin_with_a_hash_are_comments():
    forest = read("#Name: a\n#Length: 3\nACG\n(.)\n#Name: b\nA\n.\n", "dot-bracket")
    assert [str(tree) for tree in forest] == ["(ROOT (PAG C))", "(ROOT A)"]
    assert forest.columns["start"] == [3, 6]


def test_bad_structures_are_left_out():
    errors = []
    text = ">a\nAC\n[]\n>b\nAC\n()\n>c\nA\n>d\nA\n.\n"
    found = read(text, "dot-bracket", on_bad=errors.append)
    assert found.columns["name"] == ["b", "d"]
    assert len(errors) == 2
    with pytest.raises(SourceError, match="not UTF-8"):
        read_trees(io.BytesIO(b">a\n\xff\n.\n"), "dot-bracket")


@given(st.lists(trees(st.just("P"), max_leaves=10), max_size=4))
def test_any_nested_pairs_are_read(some):
    def structure(tree):
        return f"({''.join(map(structure, tree.children))})" if tree.children else "."

    text = "".join(map(structure, some)) or "."
    forest = read(f"{'A' * len(text)}\n{text}\n", "dot-bracket")
    Forest(forest.label, forest.arity, forest.offsets, forest.labels)
    assert structure(forest[0])[1:-1] == text
    assert forest.n_nodes == 1 + text.count(".") + text.count("(")


@pytest.mark.corpus
def test_the_structures_of_the_corpus_become_its_trees():
    with gzip.open(corpus("rna_archive2.tsv.gz"), "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[:500]
    text = "".join(f">{k}\n{row['sequence']}\n{row['structure']}\n" for k, row in enumerate(rows))
    found = read(text, "dot-bracket", on_bad=lambda error: None)
    assert len(found) > 100
    assert [str(tree) for tree in found] == [rows[int(k)]["tree"] for k in found.columns["name"]]
