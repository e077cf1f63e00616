"""Examples as columns, from everything that has columns."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from treedot import Forest, Tree, read_trees
from treedot.errors import ParameterError, SourceError
from treedot.models.inputs.table import Columns, read_table

PAIRS = {
    "text": ["(S (A a) (B b))", "(S (A a))", "(T (C c))"],
    "hypothesis": ["(S (A a))", "(S (B b))", "(T (C d))"],
    "overlap": [0.5, 1.0, 0.25],
    "note": ["one", "", "three"],
}
COLUMNS = Columns(("text", "hypothesis"), ("overlap",), ("note",))


def sources(folder):
    """Return the same examples in every form."""
    frame = pd.DataFrame(PAIRS)
    frame.to_csv(folder / "pairs.tsv", sep="\t", index=False)
    frame.to_json(folder / "pairs.jsonl", orient="records", lines=True)
    forest = read_trees(PAIRS["text"])
    forest.columns.update({name: PAIRS[name] for name in ("hypothesis", "overlap", "note")})
    return {
        "dictionary": PAIRS,
        "frame": frame,
        "arrow": pa.table(PAIRS),
        "forest": forest,
        "other trees": read_trees(folder / "pairs.tsv", column="hypothesis"),
        "tsv": folder / "pairs.tsv",
        "jsonl": str(folder / "pairs.jsonl"),
        "objects": PAIRS | {"text": [Tree.parse(text) for text in PAIRS["text"]]},
        "arrays": {name: np.array(values) for name, values in PAIRS.items()},
    }


@pytest.mark.parametrize(
    "name",
    ["dictionary", "frame", "arrow", "forest", "other trees", "tsv", "jsonl", "objects", "arrays"],
)
def test_every_form_of_a_table_is_read_alike(name, tmp_path):
    found, forest = sources(tmp_path)[name], read_trees(PAIRS["text"])
    if name == "other trees":  # which are not the first tree column, so that its name is looked up
        assert found == read_trees(PAIRS["hypothesis"])
        found.columns["hypothesis"] = PAIRS["hypothesis"]
    table = read_table(found, COLUMNS)
    assert len(table) == 3
    assert table["text"] == forest
    assert table["hypothesis"] == read_trees(PAIRS["hypothesis"])
    assert table["overlap"].tolist() == PAIRS["overlap"]
    assert table["note"] == PAIRS["note"]
    some = table.take(np.array([2, 0]))
    assert some["text"] == forest[[2, 0]]
    assert some["overlap"].tolist() == [0.25, 0.5]
    assert some["note"] == ["three", "one"]


def test_without_names_examples_are_trees():
    table = read_table(["(A b)", "(B c)"], Columns())
    assert isinstance(table[None], Forest)
    assert len(table) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"overlap": [1, float("nan"), 2]}, "row 2, column 'overlap': nan is not a finite number"),
        ({"overlap": ["1", "x", "2"]}, "row 2, column 'overlap': 'x' is not a finite number"),
        ({"overlap": [1, None, 2]}, "row 2, column 'overlap': None is not a finite number"),
        ({"overlap": [1, 2, "inf"]}, "row 3, column 'overlap': 'inf' is not a finite number"),
        ({"overlap": [1, 2, [3]]}, r"row 3, column 'overlap': \[3\] is not a finite number"),
        ({"overlap": [1, 2, 10**400]}, "row 3, column 'overlap': 10+ is not a finite number"),
        ({"note": ["a", None, "b"]}, "row 2, column 'note': expected a text, found None"),
        ({"hypothesis": ["(A b)", None, "(A b)"]}, "row 2, column 'hypothesis': expected a tree, found None"),
        ({"hypothesis": ["(A b)", np.nan, "(A b)"]}, "row 2, column 'hypothesis': expected a tree"),
        ({"hypothesis": ["(A b)", "(A", "(A b)"]}, "row 2, column 'hypothesis'"),
        ({"hypothesis": ["Ann", "Bob", "Eve"]}, "row 1, column 'hypothesis'"),
        ({"hypothesis": ["(a)"]}, "the columns differ in length"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_row_and_column(change, message):
    with pytest.raises((ParameterError, SourceError), match=message):
        read_table(PAIRS | change, COLUMNS)


def test_rows_are_counted_through_batches():
    with pytest.raises(ParameterError, match="row 102, column 'overlap'"):
        read_table(PAIRS | {"overlap": [1, "x", 2]}, COLUMNS, first_row=100)


def test_a_missing_column_and_what_has_no_columns_are_told():
    with pytest.raises(ParameterError, match="no column 'hypothesis'; the columns are 'text'"):
        read_table({"text": ["(A b)"]}, COLUMNS)
    with pytest.raises(ParameterError, match=r"no column 'w'; the columns are 'c0', .*'c4' and 15 more$"):
        read_table({f"c{k}": [1] for k in range(20)}, Columns(("w",)))
    with pytest.raises(
        ParameterError, match="a dictionary of columns, a Forest with columns, or a file, not"
    ):
        read_table(["(A b)"], COLUMNS)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("text", None, None), "tree_columns must be a list of column names"),
        ((["text", 3], None, None), "3 is not a text"),
        ((["text"], ["text"], None), "'text' is named twice"),
        (([], ["x"], None), "at least one column"),
    ],
)
def test_names_are_checked(names, message):
    with pytest.raises(ParameterError, match=message):
        Columns.make(*names)


def test_trees_are_in_the_column_tree_unless_another_is_named():
    assert Columns.make(None, None, ["note"]) == Columns(("tree",), (), ("note",))
    assert Columns.make(None, [], []) == Columns()
    assert Columns.make(["a"], None, None) == Columns(("a",))
