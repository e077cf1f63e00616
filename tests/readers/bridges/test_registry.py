import subprocess
import sys
from pathlib import Path
from xml.etree.ElementTree import Element

import pandas as pd
import pytest

from treedot import FragmentVectorizer, Tree, TreeClassifier, iter_trees, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.readers import read_objects

LIBRARIES = ("spacy", "stanza", "torch", "nltk", "lxml", "bs4", "xml.etree.ElementTree", "ast")


def element(label, *children):
    made = Element(label)
    made.extend(element(child) for child in children)
    return made


class Own(Element):
    """A class of a user, derived from one of a library."""


class Doc:
    """It has the name of a class of spaCy, but is not of its package."""


def test_derived_classes_are_recognised_and_namesakes_are_not():
    assert read_trees([Own("a")])[0] == Tree("a")
    with pytest.raises(SourceError, match="tree 1: cannot make a tree of Doc"):
        read_trees([Doc()])


def test_objects_may_be_among_other_items():
    items = ["(a b)", element("a", "b"), Tree("a", ["b"]), ["a", "b"]]
    assert list(read_trees(items)) == [Tree("a", ["b"])] * 4
    errors = []
    assert len(read_objects([*items, Doc(), None, Element(3)], on_bad=errors.append)) == 4
    assert [str(error).partition(":")[0] for error in errors] == ["tree 5", "tree 6", "tree 7"]
    assert [len(batch) for batch in iter_trees((item for item in items), batch_size=3)] == [3, 1]


def test_what_is_not_a_list_of_objects_is_refused():
    for source in ("(a b)", b"(a b)", Path("trees.mrg"), {"tree": []}, pd.DataFrame({"a": [1], "b": [2]}), 3):
        with pytest.raises(ParameterError, match="objects must be a list of objects"):
            read_objects(source)


def test_columns_of_objects_are_columns_of_trees():
    trees = [element("a", *"bcd"[: 1 + k % 3]) for k in range(30)]
    frame = pd.DataFrame({"tree": trees, "other": trees[::-1]})
    classes = [k % 3 for k in range(30)]
    found = TreeClassifier(decay=0.4, C=1, tree_columns=["tree", "other"]).fit(frame, classes)
    assert found.score(frame, classes) == 1.0
    assert (
        FragmentVectorizer().fit_transform(frame[["tree"]]) != FragmentVectorizer().fit_transform(trees)
    ).nnz == 0


@pytest.mark.slow
def test_no_library_is_imported_to_read_other_trees():
    code = f"""
import sys, treedot
treedot.read_trees(["(a b)", ["a", "b"]])
print(*(name for name in {LIBRARIES} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() in ([], ["ast"])  # which dataclasses imports
