import io
import random
import re
from xml.etree import ElementTree

import pytest
from fuzz.seeds import read_seeds

from treedot import read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_html, read_objects, read_xml

pytest.importorskip("lxml")
pytest.importorskip("bs4")
from bs4 import BeautifulSoup
from lxml import etree, html

POLICIES = [
    ("blur", "blur", "drop"),
    ("keep", "keep", "keep"),
    ("drop", "keep", "blur"),
    ("keep", "drop", "drop"),
]
TEXTS = ("One", " ", "two &amp; three", "\n  ", "été", "<!-- a note -->", "x<!---->y")


def elements(source, tags, attributes, depth=4):
    """Return the source of an element with random content."""
    tag = source.choice(tags)
    chosen = source.sample(attributes, source.randint(0, min(2, len(attributes))))
    start = " ".join([tag, *(f'{name}="{source.choice(["a", "b c", "", "&lt;"])}"' for name in chosen)])
    parts = [
        elements(source, tags, attributes, depth - 1)
        if depth and source.random() < 0.5
        else source.choice(TEXTS)
        for _ in range(source.randint(0, 4))
    ]
    return f"<{start}>{''.join(parts)}</{tag}>"


def pages(count, seed):
    source = random.Random(seed)
    tags, attributes = ["div", "ul", "section", "em"], ["id", "class", "lang", "data-x"]
    for _ in range(count):
        body = elements(source, tags, attributes)
        yield f"<!DOCTYPE html>\n<html><head><title>A</title></head><body>{body}</body></html>"


def documents(count, seed):
    source = random.Random(seed)
    tags, attributes = ["f:a", "b", "g:c"], ["x", "f:y", "xml:lang", "g:x"]
    for _ in range(count):
        inner = elements(source, tags, attributes) + source.choice(
            ["", "<?go on?>tail", "<![CDATA[<]]>", "<!--c-->"]
        )
        again = source.choice(["", ' xmlns:f="urn:other"', ' xmlns=""'])
        spaces = 'xmlns:f="urn:f" xmlns:g="urn:g" xmlns="urn:d"'
        yield f'<?xml version="1.0"?><f:r {spaces}><b{again}>{inner}</b></f:r>'


def read_texts(read, texts, folder, suffix, **policies):
    """Return the trees of texts by the reader of their format."""
    for k, text in enumerate(texts):
        (folder / f"{k:04}.{suffix}").write_text(text, encoding="utf-8")
    return read(folder, **policies)


@pytest.mark.slow
@pytest.mark.parametrize("policies", POLICIES)
def test_pages_are_the_trees_of_their_texts(policies, tmp_path):
    settings = dict(zip(("attributes", "text", "comments"), policies, strict=True))
    texts = list(pages(250, POLICIES.index(policies)))
    wanted = read_texts(read_html, texts, tmp_path, "html", **settings)
    for parse in (etree.HTML, html.document_fromstring, lambda text: BeautifulSoup(text, "lxml")):
        assert read_objects(list(map(parse, texts)), **settings) == wanted
    soups = [BeautifulSoup(text, "html.parser") for text in texts]
    assert read_objects(soups, **settings) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("policies", POLICIES)
def test_documents_are_the_trees_of_their_texts(policies, tmp_path):
    settings = dict(zip(("attributes", "text", "comments"), policies, strict=True))
    texts = list(documents(250, POLICIES.index(policies)))
    wanted = read_texts(read_xml, texts, tmp_path, "xml", **settings)
    assert read_objects(map(etree.fromstring, texts), **settings) == wanted
    assert read_objects([etree.ElementTree(etree.fromstring(text)) for text in texts], **settings) == wanted


@pytest.mark.slow
def test_soups_of_xml_and_elements_of_the_standard_library(tmp_path):
    source = random.Random(2)
    texts = [f"<r>{elements(source, ['a', 'b'], ['x', 'y'])}</r>" for _ in range(1000)]
    texts = [re.sub("<!--.*?-->", "", text) for text in texts]  # ElementTree drops comments
    wanted = read_texts(read_xml, texts, tmp_path, "xml", text="keep", attributes="keep")
    for parse in (ElementTree.fromstring, lambda text: ElementTree.parse(io.StringIO(text)), soup_of_xml):
        assert read_objects(map(parse, texts), text="keep", attributes="keep") == wanted


def soup_of_xml(text):
    return BeautifulSoup(text, "xml")


def test_pages_that_need_repair_are_repaired_alike():
    for raw in read_seeds("html"):
        wanted = read_trees(io.BytesIO(raw), "html")
        assert read_trees([html.document_fromstring(raw)]) == wanted
        assert read_trees([BeautifulSoup(raw, "lxml")]) == wanted


def test_a_part_of_a_page_is_a_tree_without_the_text_after_it():
    page = "<body><ul class=menu><li>Home<li><a href=/about>About</a></ul>after</body>"
    wanted = "(ul @class (li #text) (li (a @href #text)))"
    assert str(read_trees([html.fromstring(page).find(".//ul")])[0]) == wanted
    assert str(read_trees([BeautifulSoup(page, "lxml").ul])[0]) == wanted
    feed = '<p:feed xmlns:p="urn:p"><p:entry p:id="1">One</p:entry></p:feed>'
    assert str(read_trees([etree.fromstring(feed)[0]])[0]) == "(p:entry @p:id #text)"
    assert str(read_trees([BeautifulSoup(feed, "xml").entry])[0]) == "(p:entry @p:id #text)"
    assert str(read_trees([ElementTree.fromstring(feed)[0]])[0]) == "({urn:p}entry @{urn:p}id #text)"


def test_entities_that_lxml_keeps_are_texts():
    text = '<!DOCTYPE r [<!ENTITY e "expanded">]><r>a &e; b<s>&e;</s></r>'
    kept = etree.fromstring(text, etree.XMLParser(resolve_entities=False))
    assert str(read_objects([kept], text="keep")[0]) == r"(r (#text a\x20&e;\x20b) (s (#text &e;)))"


def test_objects_that_are_no_single_element_are_refused():
    fragment = BeautifulSoup("<p>a</p><p>b</p>", "html.parser")
    for thing, message in (
        (fragment, "the BeautifulSoup has 2 elements at its top"),
        (BeautifulSoup("text<p>a</p>", "html.parser"), "or text beside them"),
        (BeautifulSoup("", "lxml"), "has 0 elements"),
        (etree.Comment("note"), "the _Comment is not an element"),
        (etree.ElementTree(), "has no root"),
        (ElementTree.Element(3), "the Element is damaged, reading it raised AttributeError"),
        (ElementTree.Element("a", {"x": 3}), "the Element is damaged, reading it raised TypeError"),
        (ElementTree.Element("a", {"x": "\ud800"}), "a label contains the lone surrogate"),
    ):
        with pytest.raises(SourceError, match=f"tree 1: .*({message})"):
            read_objects([thing], attributes="keep")
    assert str(read_trees([fragment.p])[0]) == "(p #text)"
    for thing in (fragment, etree.fromstring("<a/>"), ElementTree.Element("a")):
        with pytest.raises(ParameterError, match="which is one tree: pass a list"):
            read_trees(thing)
        with pytest.raises(ParameterError, match="has no unit 'record': remove the unit"):
            read_trees([thing], unit="record")


@pytest.mark.slow
def test_an_element_that_contains_itself_is_refused_and_depth_is_not_limited():
    cyclic = ElementTree.Element("a")
    cyclic.append(cyclic)
    shared = ElementTree.Element("a")
    for _ in range(40):
        above = ElementTree.Element("a")
        above.extend([shared, shared])
        shared = above
    for thing, message in ((cyclic, "contains itself"), (shared, "a tree of .* nodes")):
        with pytest.raises(SourceError, match=f"tree 1: .*{message}"):
            read_trees([thing])
    deep = top = ElementTree.Element("a")
    for _ in range(70_000):
        deep = ElementTree.SubElement(deep, "a")
    assert read_trees([top]).sizes.tolist() == [70_001]
