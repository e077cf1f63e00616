"""How similar are two sentences, two pages, two functions? Ask with the objects of your parser, as they are.

You learn: objects of spaCy, Stanza, NLTK, lxml and ast need no conversion, and a page shows what two of them
share. Sentences are parsed by hand here, since models are large. What is not installed is left out.

    python examples/parsers.py
    open pair.html
"""

import argparse
import ast
from importlib.util import find_spec
from pathlib import Path

from treedot import SubsetTreeKernel, explain_pair

SENTENCES = ("The brown fox sleeps", "The black fox sleeps")
TAGS, RELATIONS, HEADS = ("DT", "JJ", "NN", "VBZ"), ("det", "amod", "nsubj", "root"), (3, 3, 4, 0)
PAGES = ("<ul><li>Home<li><a href=/>About</a></ul>", "<ul><li>Start<li><a href=/>More</a><li>End</ul>")
FUNCTIONS = ("def area(w, h):\n    return w * h\n", "def area(w, h):\n    return w * h / 2\n")


def objects():
    """Yield two objects of every library that is installed."""
    if find_spec("spacy"):  # with a model: map(nlp, SENTENCES)
        from spacy.tokens import Doc
        from spacy.vocab import Vocab

        heads = [k if head == 0 else head - 1 for k, head in enumerate(HEADS)]
        yield [Doc(Vocab(), text.split(), tags=TAGS, heads=heads, deps=RELATIONS) for text in SENTENCES]
    if find_spec("stanza"):  # with a model: map(pipeline, SENTENCES)
        from stanza.models.common.doc import Document

        columns = [zip(text.split(), TAGS, HEADS, RELATIONS, strict=True) for text in SENTENCES]
        names = ("text", "xpos", "head", "deprel")
        yield [Document([[dict(zip(names, row, strict=True)) for row in rows]]) for rows in columns]
    if find_spec("nltk"):
        from nltk import Tree

        yield Tree.fromstring("(S (NP I) (VP run))"), Tree.fromstring("(S (NP you) (VP run))")
    if find_spec("lxml"):
        from lxml import html

        yield [html.document_fromstring(page) for page in PAGES]
    yield [ast.parse(source).body[0] for source in FUNCTIONS]


def main(arguments: list[str] | None = None) -> None:
    """Parse, compare, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", default=".", type=Path, help="folder of the page")
    options = parser.parse_args(arguments)
    kernel = SubsetTreeKernel(normalize=True)
    for a, b in objects():
        print(f"{type(a).__module__:30} {type(a).__name__:12} {kernel(a, b):.2f}")

    found = explain_pair(a, b, kernel)  # of the last two, which are functions
    print(f"\n{found}")
    (options.out / "pair.html").write_text(found.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
