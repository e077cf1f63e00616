import gzip
import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from treedot import Forest, iter_trees, read_trees
from treedot.errors import ParameterError, SourceError, TreeSyntaxError
from treedot.readers import read_html, read_json, read_xml
from treedot.readers.documents import markup
from treedot.readers.formats import read_stream
from treedot.readers.on_bad import OnBad
from treedot.readers.stream import TreeStream

DEEP = 100_000


def trees(source, kind, unit=None, on_bad=None, **policies):
    """Return the forest of a text or bytes, as a file of some kind."""
    raw = source.encode() if isinstance(source, str) else source
    options = policies if unit is None or kind == "html" else {**policies, "unit": unit}
    forests = read_stream(TreeStream(io.BytesIO(raw), "it", 1024, OnBad(on_bad)), kind, **options)
    return Forest.concat([Forest([], [], [0], []), *forests])


def texts(source, kind, unit=None, **policies):
    return [str(tree) for tree in trees(source, kind, unit, **policies)]


def page(source, **policies):
    pytest.importorskip("lxml")
    (found,) = texts(source, "html", **policies)
    return found


# HTML


def test_a_page_is_a_tree_of_its_tags_attributes_and_texts():
    source = "<p id=x class='a b'>One<!-- no --><br>two<p> \n <p>Three"
    assert page(source) == "(html (body (p @class @id #text br #text) (p) (p #text)))".replace("(p)", "p")


def test_texts_are_kept_blurred_or_dropped_by_kind():
    source = "<p id=x>One<!-- no -->"
    assert page(source, text="keep") == "(html (body (p @id (#text One))))"
    assert page(source, attributes="keep", text="drop") == "(html (body (p (@id x))))"
    assert page(source, attributes="drop", text="drop", comments="keep") == "(html (body (p (#comment no))))"
    assert page(source, comments="blur") == "(html (body (p @id #text #comment)))"


def test_the_order_of_attributes_does_not_matter():
    assert page("<p id=x class=y>a") == page("<p class=y id=x>a")


def test_what_is_missing_in_a_page_is_put_in():
    assert page("<ul><li>a<li>b</ul>") == page("<html><body><ul><li>a</li><li>b</li></ul></body></html>")
    assert page("<script>if (a<b) '</p>'</script>", text="drop") == "(html (head script))"


def test_what_follows_the_end_of_a_page_belongs_to_it():
    assert page("<html><body>a</body></html><b>x") == "(html (body #text (b #text)))"
    assert page("<body><p>a</body><!-- --><b>x") == "(html (body (p #text) (b #text)))"
    assert page("<html><p>a</html><html><body id=x><b>x") == "(html (body (p #text) (b #text)))"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<p>é".encode(), "é"),
        ("\ufeff<p>é".encode(), "é"),
        ("<p>é".encode("utf-16"), "é"),
        ("<p>é".encode("utf-16") + b"x", "é\ufffd"),
        ("<p>é€".encode("cp1252"), "é€"),
        ("<meta charset=koi8-r><p>ж".encode("koi8-r"), "ж"),
        (b"<meta charset=no-such><p>\xe9", "é"),
        (b"<meta charset=hex><p>\xe9", "é"),
        (b"<p>a\0b", "a\ufffdb"),
    ],
)
def test_a_page_may_have_any_encoding(raw, text):
    assert f"(p (#text {text}))" in page(raw, text="keep")


def test_pages_of_any_depth_are_read():
    pytest.importorskip("lxml")
    forest = trees(b"<div>" * DEEP + b"x", "html")
    assert forest.n_nodes == DEEP + 3
    assert forest.depth.max() == DEEP + 3


def test_a_page_that_would_take_too_long_is_refused_before_it_does(monkeypatch):
    pytest.importorskip("lxml")
    monkeypatch.setattr("treedot.readers.documents.markup.MAX_STEPS", 1 << 28)
    errors = []
    assert len(trees(b"<i>" * DEEP + b"</b>" * DEEP, "html", on_bad=errors.append)) == 0
    assert "elements are open" in str(errors[0])


def test_pages_that_are_hostile_are_read_or_refused(monkeypatch):
    pytest.importorskip("lxml")
    many = b"<p " + b" ".join(b"a%d=1" % k for k in range(20_000)) + b">x"
    assert trees(many, "html").n_nodes == 20_000 + 4
    formatting = b"".join(b"<p><b a=%d>x" % k for k in range(3000))
    assert trees(formatting, "html").n_nodes < 20_000
    monkeypatch.setattr("treedot.readers.packer.MAX_TEXT", 1000)
    long = b"<p title='" + b"x" * 2000 + b"'>a"
    assert len(trees(long, "html")) == 1
    with pytest.raises(SourceError, match=r"it: .* blur or drop"):
        trees(long, "html", attributes="keep")
    monkeypatch.setattr(markup, "MAX_BYTES", 1000)
    with pytest.raises(SourceError, match="limit"):
        trees(long, "html")


def test_a_page_has_columns_for_its_place(tmp_path):
    pytest.importorskip("lxml")
    (tmp_path / "a.html").write_text("<p>a\n<p>b\n")
    forest = read_trees(tmp_path / "a.html")
    assert forest.columns == {
        "file": [str(tmp_path / "a.html")],
        "start": [1],
        "end": [2],
        "name": [""],
        "language": ["html"],
    }


@pytest.mark.parametrize("raw", [b"", b"  \n", b"<!-- only -->"])
def test_a_file_without_elements_is_not_a_page(raw):
    pytest.importorskip("lxml")
    with pytest.raises(SourceError, match="not HTML"):
        trees(raw, "html")


# XML


def test_a_document_is_a_tree_or_each_of_its_records_is():
    source = "<a>\n<b x='1'>t</b> u\n<c>\n<d/></c></a>"
    assert texts(source, "xml") == ["(a (b @x #text) #text (c d))"]
    forest = trees(source, "xml", "record")
    assert [str(tree) for tree in forest] == ["(b @x #text)", "(c d)"]
    assert forest.columns["start"] == [2, 3]
    assert forest.columns["end"] == [2, 4]
    assert forest.columns["name"] == ["0", "1"]


def test_records_come_batch_by_batch(monkeypatch):
    monkeypatch.setattr(markup, "XML_CHUNK", 1 << 14)
    source = "<a>" + "<b><c/></b>" * 20_000 + "</a>"
    forests = list(iter_trees(io.BytesIO(source.encode()), "xml", unit="record", batch_size=1000))
    assert len(forests) > 2
    assert Forest.concat(forests) == trees(source, "xml", "record")
    names = [name for forest in forests for name in forest.columns["name"]]
    assert names == [str(k) for k in range(20_000)]


def test_entities_are_not_put_in_and_nothing_is_read_from_elsewhere(tmp_path):
    (tmp_path / "secret").write_text("secret")
    declared = f"<!DOCTYPE a [<!ENTITY e 'text'><!ENTITY f SYSTEM '{tmp_path / 'secret'}'>]>"
    assert texts(f"{declared}<a>x&e;&f;&lt;</a>", "xml", text="keep") == ["(a (#text x&e;&f;<))"]
    bomb = "<!DOCTYPE a [<!ENTITY e0 'ha'>" + "".join(
        f"<!ENTITY e{k} '{f'&e{k - 1};' * 10}'>" for k in range(1, 12)
    )
    assert texts(f"{bomb}]><a>&e11;</a>", "xml") == ["(a #text)"]
    with pytest.raises(SourceError, match="not XML"):  # expat limits what attributes grow to
        trees(f"{bomb}]><a x='&e11;'/>", "xml")


def test_documents_of_any_depth_are_read():
    forest = trees("<a>" * DEEP + "</a>" * DEEP, "xml")
    assert forest.n_nodes == forest.depth.max() == DEEP


def test_a_tag_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(markup, "MAX_TEXT", 1000)
    monkeypatch.setattr(markup, "XML_CHUNK", 100)
    with pytest.raises(SourceError, match="it:2: a tag or comment"):
        trees("<a>\n<b c='" + "x" * 3000 + "'/></a>", "xml")
    assert trees("<a>" + "x" * 3000 + "</a>", "xml").n_nodes == 2


def test_an_error_in_a_document_says_where_and_keeps_the_records_before():
    errors = []
    forest = trees("<a><b/>\n<c></a>", "xml", "record", on_bad=errors.append)
    assert [str(tree) for tree in forest] == ["(b)"]
    assert str(errors[0]).startswith("it:2:")
    assert "mismatched tag" in str(errors[0])
    assert len(trees("<a><b/>\n<c></a>", "xml", on_bad=errors.append)) == 0
    with pytest.raises(SourceError, match="encoding"):
        trees("<?xml version='1.0' encoding='no-such'?><a/>", "xml")


def test_documents_in_other_encodings_are_read():
    for encoding in ("utf-16", "latin-1", "utf-8-sig"):
        head = "" if encoding == "utf-8-sig" else f"<?xml version='1.0' encoding='{encoding}'?>"
        assert texts(f"{head}<a>é</a>".encode(encoding), "xml", text="keep") == ["(a (#text é))"]


# JSON


def as_tree(value):
    """Return what a value should become, by the definition, with values kept."""
    if isinstance(value, dict):
        return ["object", *([f"{key}:", as_tree(below)] for key, below in value.items())]
    if isinstance(value, list):
        return ["array", *map(as_tree, value)]
    if value is None:
        return ["null"]
    if isinstance(value, str):
        return ["string", [value]]
    return ["boolean" if isinstance(value, bool) else "number", [json.dumps(value)]]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below) | st.dictionaries(st.text('ab"\\\n{', max_size=3), below),
    max_leaves=12,
)


@given(st.lists(VALUES, min_size=1, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_values_are_read_as_the_definition_says(values, indent, ascii):
    lines = "\n".join(json.dumps(value, indent=indent, ensure_ascii=ascii) for value in values)
    expected = Forest.concat([read_trees([as_tree(value)]) for value in values])
    assert trees(lines, "json", values="keep") == expected
    array = json.dumps(values, indent=indent, ensure_ascii=ascii)
    assert trees(array, "json", "record", values="keep") == expected


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(1, 9))
def test_where_a_file_is_cut_into_chunks_does_not_matter(values, size):
    raw = json.dumps(values, ensure_ascii=False)
    whole = trees(raw, "json", values="keep")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treedot.readers.text_window.CHUNK_BYTES", size)
        assert trees(raw, "json", values="keep") == whole


def test_values_are_kept_blurred_or_dropped():
    source = '{"a": 1, "b": [true, null, "x y"], "c": {}}'
    assert texts(source, "json") == ["(object (a: number) (b: (array boolean null string)) (c: object))"]
    assert texts(source, "json", values="drop") == ["(object a: (b: array) (c: object))"]
    assert texts(source, "json", values="keep") == [
        r"(object (a: (number 1)) (b: (array (boolean true) null (string x\x20y))) (c: object))"
    ]
    assert texts("[1, []]", "json", "record", values="drop") == ["(number)", "(array)"]


def test_records_have_their_lines_and_numbers():
    forest = trees('[{"a": 1},\n {"b":\n 2}]\n{"c": 3}\n', "json", "record")
    assert [str(tree)[9:11] for tree in forest] == ["a:", "b:", "c:"]
    assert forest.columns["start"] == [1, 2, 4]
    assert forest.columns["end"] == [1, 3, 4]
    assert forest.columns["name"] == ["0", "1", "2"]


def test_values_of_any_depth_are_read():
    forest = trees("[" * DEEP + "]" * DEEP, "json")
    assert forest.n_nodes == forest.depth.max() == DEEP
    forest = trees('{"a":' * DEEP + "1" + "}" * DEEP, "json")
    assert forest.depth.max() == 2 * DEEP + 1


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("1e999", "1e999"),
        ("1" * 5000, "1" * 5000),
        (r'"\ud800a"', "\ufffda"),
        (r'"\ud83d\ude00"', "\U0001f600"),
        ('"a\tb"', r"a\x09b"),
    ],
)
def test_strange_values_are_kept_as_they_are_written(source, label):
    (found,) = texts(source, "json", values="keep")
    assert found.split(" ", 1)[1] == f"{label})"


def test_keys_that_occur_twice_are_there_twice():
    assert texts('{"a": 1, "a": {}}', "json") == ["(object (a: number) (a: object))"]


@pytest.mark.parametrize(
    ("source", "place", "says"),
    [
        ("[1,]", "it:1:4", "expected a value, found ']'"),
        ("[1\n 2]", "it:2:2", "expected ',' or ']', found '2'"),
        ('{"a" 1}', "it:1:2", "expected a key in double quotes and ':'"),
        ("{1: 2}", "it:1:2", "expected a key"),
        ('{"a": 1', "it:1:8", "found the end of the file"),
        ('{"a":', "it:1:6", "found the end of the file"),
        ('["a', "it:1:2", "a quote that is never closed"),
        ("[1}", "it:1:3", "expected ',' or ']'"),
        ("]", "it:1:1", "expected a value"),
        ("nul", "it:1:1", "expected a value"),
        (r'{"\x": 1}', "it:1:2", "escape"),
    ],
)
def test_an_error_in_a_value_says_where_and_what_was_expected(source, place, says):
    with pytest.raises(TreeSyntaxError) as found:
        trees(source, "json")
    assert str(found.value).startswith(f"{place}: ")
    assert says in str(found.value)


def test_reading_goes_on_with_the_next_line_that_begins_with_a_bracket():
    errors = []
    forest = trees('{"a": 1}\n{"b" 2}\n{"c": 3}\n{"d":\n', "json", on_bad=errors.append)
    assert [str(tree) for tree in forest] == ["(object (a: number))", "(object (c: number))"]
    assert len(errors) == 2


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(SourceError, match="it:2:8: the byte 0xff is not UTF-8"):
        trees(b'{"a": 1}\n{"b": "\xff"}', "json", on_bad=None)
    assert texts('["é"]'.encode("utf-16"), "json", values="keep") == ["(array (string é))"]
    assert texts('\ufeff["é"]'.encode(), "json", values="keep") == ["(array (string é))"]
    with pytest.raises(SourceError, match="binary"):
        trees(b"ab\0\0cd", "json")


# All of them

MUTATED = {
    "html": b"<!doctype html><html lang=en><body class='a'><table><tr><td>x&amp;<b>y</b></table><!-- c -->",
    "xml": b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e 'x'>]><a b='c'><d>&e;</d><![CDATA[x]]><!----></a>",
    "json": b'[{"a": 1.5e3, "b": [true, null, "x\\u00e9"]}, -0, {}]\n{"c": "\\ud800"}\n',
}


@pytest.mark.parametrize("kind", ["html", "xml", "json"])
def test_mutated_files_are_read_or_refused_with_an_error(kind):
    if kind == "html":
        pytest.importorskip("lxml")
    rng = random.Random(kind)
    source, pieces = MUTATED[kind], b'< > </ & " { [ ] , \\ \0 \xff <b> &e; \n'.split(b" ")
    for _ in range(1000):
        mutated = bytearray(source)
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(mutated))
            mutated[at : at + rng.choice((0, 1, 7))] = rng.choice(pieces)
        for unit in ("document", "record"):
            errors = []
            forest = trees(bytes(mutated), kind, unit, errors.append)
            Forest(forest.label, forest.arity, forest.offsets, forest.labels)  # raises where it is none
            assert all(isinstance(error, SourceError) for error in errors)


def test_formats_follow_from_suffixes_and_names(tmp_path):
    (tmp_path / "a.xml").write_text("<a><b/></a>")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": 1}'))
    assert [str(tree) for tree in read_trees(tmp_path / "a.xml")] == ["(a b)"]
    assert [str(tree) for tree in read_trees(tmp_path / "a.json.gz")] == ["(object (a: number))"]
    assert [str(tree) for tree in read_trees(io.StringIO("[1]"), "json", unit="record")] == ["(number)"]
    (tmp_path / "a.jsonl").write_text('{"tree": "(a b)"}\n')
    assert [str(tree) for tree in read_trees(tmp_path / "a.jsonl")] == ["(a b)"]
    assert [str(tree) for tree in read_trees(tmp_path / "a.jsonl", "json")] == ["(object (tree: string))"]


def test_folders_are_read_in_the_order_of_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.json").write_text("1")
    (tmp_path / "a.jsonl").write_text("{}\n[]\n")
    (tmp_path / "c.json").write_text("true")
    (tmp_path / ".gitignore").write_text("c.*\n")
    (tmp_path / "d.xml").write_text("<x/>")
    skipped = []
    forest = read_json(tmp_path, on_skip=lambda path, reason: skipped.append(reason))
    assert [str(tree) for tree in forest] == ["(object)", "(array)", "(number)"]
    assert skipped == ["ignored"]
    assert [str(tree) for tree in read_xml([tmp_path])] == ["(x)"]
    assert len(read_xml(tmp_path / "b")) == 0


def test_files_of_a_folder_that_cannot_be_read_are_left_out_and_named_ones_are_errors(tmp_path):
    (tmp_path / "bad.json").write_text("[1, 2")
    (tmp_path / "good.json").write_text("[1]")
    skipped, errors = [], []
    assert len(read_json(tmp_path, on_skip=lambda path, reason: skipped.append((path[-8:], reason)))) == 1
    assert skipped == [("bad.json", "syntax error")]
    assert len(read_json(tmp_path, on_bad=errors.append)) == len(errors) == 1
    with pytest.raises(TreeSyntaxError, match="end of the file"):
        read_json(tmp_path / "bad.json")


def test_settings_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="unit"):
        read_trees(io.StringIO("1"), "json", unit="page")
    with pytest.raises(ParameterError, match="has no unit 'record'"):
        read_trees(io.StringIO("(a b)"), unit="record")
    with pytest.raises(ParameterError, match="no column"):
        read_trees(io.StringIO("1"), "json", column="tree")
    with pytest.raises(ParameterError, match="values"):
        read_json(tmp_path, values="all")
    with pytest.raises(ParameterError, match="text"):
        read_html(tmp_path, text=True)


def test_a_missing_library_is_named_with_its_installation(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "lxml", None)
    with pytest.raises(ImportError, match=r"the extra 'html'"):
        trees("<p>", "html")
