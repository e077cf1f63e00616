"""Converters of corpora, on little samples in the formats of the originals; every line is invented."""

import csv
import gzip
import json
import lzma
import zipfile

import pytest
from paper.corpora import Corpora
from paper.prepare import prepare
from paper.prepare.__main__ import main
from paper.prepare.entailment import sentences
from paper.prepare.molecules import fold, glycan_tree, rna_tree
from paper.prepare.penn import cleaned
from paper.prepare.tables import ROWS, Table, write_tables

from treedot import SubsetTreeKernel, Tree, read_trees
from treedot.errors import ParameterError, SourceError


def rows(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def written(folder, files):
    """Write files by name, and return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def prepared(corpus, folder, tmp_path):
    """Return the rows of every table that a corpus becomes, by name."""
    paths = prepare(corpus, [folder], tmp_path / "tables", say=lambda line: None)
    return {path.name.removesuffix(".tsv.gz"): rows(path) for path in paths}


QUESTIONS = {
    "qc/train.txt": b"NUM:dist How far is it ?\nHUM:ind Who\xf0sings ? Loudly !\n"
    b"DESC:def What is a ' lum ' ?\n",
    "qc/test.txt": "LOC:city Where is it ?\n",
    "NUM_train.dat": "+1 |BT| (ROOT (SBARQ (WRB How)(RB far)(SQ (VBZ is)(PRP it))(. ?))) |ET|\n"
    "-1 |BT| (ROOT (SQ (WP Who)(VBZ sings)(. ?))) |ET|\n"
    "-1 |BT| (ROOT (X (RB Loudly)(. !))) |ET|\n"
    "-1 |BT| (ROOT (SQ (WP What)(VBZ is a)(NN lum)(. ?))) |ET|\n",
    "NUM_test.dat": "-1 |BT| (ROOT (SQ (WRB Where)(VBZ is)(PRP it)(. ?))) |ET|\n",
}


def test_questions_get_their_trees_by_their_words_and_the_rest_from_a_parser(tmp_path):
    folder = written(tmp_path / "in", QUESTIONS)
    said = []
    assert prepare("qc", [folder], tmp_path, say=said.append) == []
    assert "1 sentences have no tree" in said[0]
    assert (tmp_path / "qc.sentences.txt").read_text() == "What is a ' lum ' ?\n"
    (tmp_path / "qc.sentences.mrg").write_text("(S (WP What) (VBZ is) (NN lum))\n")
    train, test = map(rows, prepare("qc", [folder], tmp_path, say=said.append))
    assert [row["tree_source"] for row in train] == ["svmlighttk", "svmlighttk-joined2", "parser"]
    assert train[0]["tree"] == "(ROOT (SBARQ (WRB How) (RB far) (SQ (VBZ is) (PRP it)) (. ?)))"
    assert train[1]["tree"] == "(ROOT (SQ (WP Who) (VBZ sings) (. ?)) (X (RB Loudly) (. !)))"
    assert train[1]["text"] == "Who sings ? Loudly !"  # the broken byte is a space
    assert train[2]["tree"] == "(ROOT (S (WP What) (VBZ is) (NN lum)))"
    assert test == [
        {
            "id": "test-0",
            "coarse": "LOC",
            "fine": "LOC:city",
            "text": "Where is it ?",
            "tree": "(ROOT (SQ (WRB Where) (VBZ is) (PRP it) (. ?)))",
            "tree_source": "svmlighttk",
        }
    ]
    counts = {"qc_train": 3, "qc_test": 1}
    assert Corpora(tmp_path, counts).train.columns["coarse"] == ["NUM", "HUM", "DESC"]
    assert "the published figures are of 5,452 rows" in said[1]


def test_a_parser_that_gave_up_is_reported_with_the_line(tmp_path):
    folder = written(tmp_path / "in", QUESTIONS)
    prepare("qc", [folder], tmp_path, say=lambda line: None)
    (tmp_path / "qc.sentences.mrg").write_text("(())\n")
    with pytest.raises(SourceError, match=r"qc.sentences.mrg:1: a node without a label"):
        prepare("qc", [folder], tmp_path)
    (tmp_path / "qc.sentences.mrg").write_text("(S (A a)\n")
    with pytest.raises(SourceError, match=r"qc.sentences.mrg:1: "):
        prepare("qc", [folder], tmp_path)
    (tmp_path / "qc.sentences.mrg").write_text("(A a)\n(B b)\n")
    with pytest.raises(SourceError, match=r"has 2 lines and .* 1: write one tree per sentence"):
        prepare("qc", [folder], tmp_path)
    assert not (tmp_path / "qc_test.tsv.gz").exists()


def test_dependency_trees_are_taken_from_kelp_as_they_are(tmp_path):
    forms = " ".join(f"|BT:{form}| (SYNT##{form}(LEX##is::v)) |ET|" for form in ("grct", "lct", "loct"))
    example = f"NUM |BS:q| How far |ES| {forms} |BT:cgrct| (a) |ET| |BT:clct| (b) |ET|\n"
    labels = {"train_5500.label": "NUM:dist How far ?\n", "TREC_10.label": "NUM:date When ?\n"}
    kelp = dict.fromkeys(
        ("train_5500.coarse.klp.gz", "TREC_10.coarse.klp.gz"), gzip.compress(example.encode())
    )
    folder = written(tmp_path / "in", labels | kelp)
    found = prepared("qc_dep", folder, tmp_path)
    assert found["qc_train_dep"][0]["grct"] == "(SYNT##grct(LEX##is::v))"
    assert found["qc_test_dep"][0]["fine"] == "NUM:date"
    (folder / "TREC_10.label").write_text("NUM:date When ?\nNUM:date When then ?\n")
    with pytest.raises(SourceError, match="1 examples for 2 questions"):
        prepared("qc_dep", folder, tmp_path)


PAIR = '<pair id="7" {}="{}" task="QA"><t>Ann\n ran. Bob sat.</t><h>Ann moved.</h></pair>'
RTE = {
    f"{name}.xml": f"<all>{PAIR.format(key, value)}</all>"
    for name, key, value in (
        ("rte1_dev", "value", "TRUE"),
        ("rte1_test", "value", "FALSE"),
        ("RTE2_dev", "entailment", "YES"),
        ("rte2_dev", "entailment", "NO"),  # NLTK's, which is not whole
        ("rte2_test", "entailment", "NO"),
        ("rte3_dev", "entailment", "YES"),
        ("rte3_test", "entailment", "NO"),
        ("RTE5_train", "entailment", "ENTAILMENT"),
        ("RTE5_test", "entailment", "CONTRADICTION"),
    )
}


def test_pairs_get_two_classes_and_a_tree_over_all_sentences_of_the_text(tmp_path):
    folder = written(tmp_path / "in", RTE)
    assert main(["rte", str(folder), "-o", str(tmp_path)]) == 3
    assert (tmp_path / "rte.sentences.txt").read_text() == "Ann ran.\nBob sat.\nAnn moved.\n"
    (tmp_path / "rte.sentences.mrg").write_text("(ROOT (S (A b)))\n(TOP (S (C d)))\n( (S (E f)))\n")
    assert main(["rte", str(folder), "-o", str(tmp_path)]) == 0
    labels = {name: rows(tmp_path / f"{name}.tsv.gz")[0]["label"] for name in ROWS if name.startswith("rte")}
    assert list(labels.values()) == ["YES", "NO", "YES", "NO", "YES", "NO", "YES", "NO"]
    (pair,) = rows(tmp_path / "rte5_test.tsv.gz")
    assert pair["label_orig"] == "CONTRADICTION"
    assert pair["text"] == "Ann ran. Bob sat."
    assert pair["text_tree"] == "(ROOT (S (A b)) (S (C d)))"
    assert pair["hypothesis_tree"] == "(ROOT (S (E f)))"
    assert pair["text_sentences"] == "2"
    counts = {name: 1 for name in ROWS if name.startswith("rte")}
    assert Corpora(tmp_path, counts).entailment["rte2"][0].entailed.tolist() == [True]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<all><pair", "is not XML"),
        ('<all><pair id="3" value="PERHAPS"><t>a</t><h>b</h></pair></all>', "pair 3 has the class 'PERHAPS'"),
        ('<all><pair id="3" value="TRUE"><t>a</t></pair></all>', "pair 3 lacks its text <t>"),
    ],
)
def test_pairs_that_are_not_as_they_should_be_are_refused(tmp_path, content, message):
    folder = written(tmp_path / "in", RTE | {"rte1_dev.xml": content})
    with pytest.raises(SourceError, match=message):
        prepare("rte", [folder], tmp_path)


def test_titles_and_initials_do_not_end_a_sentence():
    text = 'Dr. A. Lum of the U.S. Army climbed Mt. Lum. "Good." He said no. 12 times he left!'
    assert sentences(text) == [
        "Dr. A. Lum of the U.S. Army climbed Mt. Lum.",
        '"Good."',
        "He said no. 12 times he left!",
    ]


def test_treebanks_lose_annotation_that_parsers_do_not_make(tmp_path):
    raw = "( (S (NP-SBJ-1 (NNP Ann)) (VP (VBZ sings) (S (-NONE- *T*-1))) (-RRB- -RRB-)) )\n"
    folder = written(tmp_path / "in", {"combined/wsj_0123.mrg": raw, "penn/99.tree": raw})
    (found,) = prepared("ptb", folder, tmp_path)["ptb_sample"]
    assert found["id"] == "wsj_0123.0"
    assert found["section"] == "01"
    assert found["text"] == "Ann sings -RRB-"
    assert found["tree"] == "(ROOT (S (NP (NNP Ann)) (VP (VBZ sings)) (-RRB- -RRB-)))"
    assert found["tree_raw"].startswith("(ROOT (S (NP-SBJ-1 ")
    assert prepared("craft", folder, tmp_path)["craft"][0]["tree"] == found["tree"]
    assert cleaned(Tree.parse("(S (-NONE- *))")) is None


def test_only_permissive_genres_of_gum_are_taken(tmp_path):
    files = {
        f"const/GUM_{genre}_x.ptb": "(ROOT\n (A a))\n" for genre in ("academic", "bio", "court", "interview")
    }
    files |= {
        f"const/GUM_{genre}_x.ptb": "(ROOT (A a))\n\n(ROOT (B b))" for genre in ("news", "voyage", "reddit")
    }
    splits = "# Splits\n\n## dev\n\n  * GUM_news_x\n\n## train\n\n"
    splits += "".join(f"  * GUM_{genre}_x\n" for genre in ("academic", "bio", "court", "interview", "voyage"))
    folder = written(tmp_path / "in", files | {"splits.md": splits})
    found = prepared("gum", folder, tmp_path)["gum_permissive"]
    assert len(found) == 8
    assert {row["split"] for row in found if row["genre"] == "news"} == {"dev"}
    (folder / "splits.md").write_text("## dev\n")
    with pytest.raises(SourceError, match="does not list GUM_academic_x"):
        prepared("gum", folder, tmp_path)


def test_the_slips_of_questionbank_are_put_right(tmp_path):
    line = "(SBARQ (WHNP-1 (WP What))(SQ (VBZ <s)(PRN ( -LRB-)(NN lum)( -RRB-)))(? ?))\n"
    (found,) = prepared("questionbank", written(tmp_path / "in", {"4000qs.txt": line}), tmp_path)[
        "questionbank"
    ]
    assert found["tree"] == (
        "(ROOT (SBARQ (WHNP (WP What)) (SQ (VBZ 's) (PRN (-LRB- -LRB-) (NN lum) (-RRB- -RRB-))) (. ?)))"
    )


def test_sentiments_are_the_roots(tmp_path):
    files = {f"trees/{part}.txt": "(3 (2 A) (4 (3 fine) (2 film)))\n" for part in ("train", "dev", "test")}
    folder = written(tmp_path / "in", files)
    found = prepared("sst", folder, tmp_path)
    assert found["sst_dev"] == [
        {"id": "dev-0", "label": "3", "text": "A fine film", "tree": "(3 (2 A) (4 (3 fine) (2 film)))"}
    ]
    (folder / "trees/dev.txt").write_text("(S (NP a))\n")
    with pytest.raises(SourceError, match="the root 'S' is not a sentiment"):
        prepared("sst", folder, tmp_path)


def test_glycans_of_one_kingdom_are_read_from_a_wheel(tmp_path):
    names = {
        "Man(a1-6)[Man(a1-3)]Man(b1-4)GlcNAc": "Fungi",
        "Gal(b1-4)Glc": "Fungi",  # too small
        "Gal(b1-4)Glc(b1-3)Rha": "Virus",
        "{Gal(b1-4)}Glc(b1-3)Rha(a1-2)Man": "Fungi",  # a part without a place
        "Gal(b1-4)]Glc(b1-3)Rha": "Fungi",  # a slip
    }
    species = "glycan,Species,Class,Kingdom\n" + "".join(
        f"{name},{kind}_{k},Class_{k},{kind}\n" for name, kind in names.items() for k in range(2)
    )
    cells = [[{"value": name}, {"value": "N"}] for name in names]
    sugars = lzma.compress(json.dumps({"columns": ["glycan", "glycan_type"], "data": cells}).encode())
    wheel = tmp_path / "glycowork-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("glycowork/glycan_data/v12_df_species.csv", species)
        archive.writestr("glycowork/glycan_data/v12_sugarbase.json.xz", sugars)
    (found,) = prepared("glycans", wheel, tmp_path)["glycans"]
    assert found == {
        "kingdom": "Fungi",
        "class": "",
        "glycan_type": "N",
        "fold": str(fold("Man(a1-6)[Man(a1-3)]Man(b1-4)GlcNAc")),
        "n_species": "2",
        "iupac": "Man(a1-6)[Man(a1-3)]Man(b1-4)GlcNAc",
        "tree": "(ROOT (GlcNAc (b1-4 (Man (a1-3 Man) (a1-6 Man)))))",
    }


@pytest.mark.parametrize("name", ["", "Gal(b1-4)", "[Gal]Glc", "Gal(b1-4)]Glc", "Gal Glc]"])
def test_a_name_that_is_no_glycan_is_refused(name):
    with pytest.raises(SourceError, match="the glycan"):
        glycan_tree(name)


def test_paired_bases_are_nodes_above_what_they_enclose(tmp_path):
    table = 'id,sequence,structure,base_pairs,len\ntRNA_x,GAUCA,(<>).,"[[1, 4]]",5\n5s_y,GC,(),,2\n'
    (found,) = prepared("rna", written(tmp_path / "in", {"ArchiveII.csv": table}), tmp_path)["rna_archive2"]
    assert found["family"] == "trna"
    assert found["tree"] == "(ROOT (PGC A U) A)"
    for structure in ("(", ")", ".."):
        with pytest.raises(SourceError, match="the structure"):
            rna_tree("G", structure)


def test_clones_are_joined_into_classes_and_their_trees_written_in_brackets(tmp_path):
    header = (
        "function_one_type,function_one_name,function_one_startline,function_one_endline,function_two_type,"
        "function_two_name,function_two_startline,function_two_endline,syntactic_type,similarity_line,similarity_token\n"
    )
    files = {
        "T1-clones-selected-columns.txt": header + "s,1.java,1,2,s,2.java,3,4,1,1,1\n",
        "T2-clones-selected-columns.txt": header + "s,2.java,3,4,s,3.java,5,6,2,1,1\n",
        "ST3-VST3-clones-simline-selected-columns.txt": header + "s,1.java,1,2,s,9.java,9,9,3,0.88888,0.9\n",
        "0/1_1_2.java": "(Unit(Name:a)(Block))",
        "0/2_3_4.java": "(Unit(Char:'(')(Block))",
        "0/3_5_6.java": "(Unit(Op:==)(Block))",
    }
    found = prepared("bcb", written(tmp_path / "in", files), tmp_path)
    assert [row["clone_class"] for row in found["bcb_functions"]] == ["c0"] * 3
    assert found["bcb_functions"][0]["tree"] == "(Unit (Name a) (Block -))"
    assert [(row["a"], row["type"]) for row in found["bcb_pairs"]] == [("1_1_2", "T1"), ("2_3_4", "T2")]


def test_what_is_prepared_can_be_read_as_trees(tmp_path):
    files = {
        f"trees/{part}.txt": "(3 (2 A) (4 film))\n(1 (2 A) (0 bore))\n" for part in ("train", "dev", "test")
    }
    path, *_ = prepare("sst", [written(tmp_path / "in", files)], tmp_path, say=lambda line: None)
    forest = read_trees(path)
    assert forest.columns["label"] == ["3", "1"]
    assert SubsetTreeKernel().gram(forest).shape == (2, 2)


def test_missing_and_doubtful_files_are_named(tmp_path, capsys):
    assert main(["ptb", str(tmp_path / "nowhere"), "-o", str(tmp_path)]) == 1
    assert "nowhere does not exist" in capsys.readouterr().err
    assert main(["rna", str(tmp_path), "-o", str(tmp_path)]) == 1
    assert "no file ArchiveII.csv in" in capsys.readouterr().err
    written(tmp_path, {"a/ArchiveII.csv": "id\nx\n", "b/ArchiveII.csv": "id\nx\n", "bad.zip": "no"})
    assert main(["rna", str(tmp_path), "-o", str(tmp_path)]) == 1
    assert "ArchiveII.csv is there 2 times" in capsys.readouterr().err
    assert main(["rna", str(tmp_path / "a"), "-o", str(tmp_path)]) == 1
    assert "lacks the column" in capsys.readouterr().err
    assert main(["rna", str(tmp_path / "bad.zip"), "-o", str(tmp_path)]) == 1
    assert "cannot unpack" in capsys.readouterr().err
    with pytest.raises(ParameterError, match="no corpus 'wsj'"):
        prepare("wsj", [tmp_path], tmp_path)


def test_a_table_that_would_be_broken_is_not_written(tmp_path):
    sound = Table("sst_dev", ("id", "tree"), [("1", "(A a)")])
    with pytest.raises(SourceError, match="a field with a tab"):
        write_tables([sound, Table("sst_test", ("id", "tree"), [("1", "(A\tb)")])], tmp_path)
    with pytest.raises(SourceError, match="no rows for sst_test"):
        write_tables([Table("sst_test", ("id",), [])], tmp_path)
    assert not list(tmp_path.iterdir())
