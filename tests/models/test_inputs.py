"""Inputs of models as JSON values and arrays: the same again, and refused where they make no sense."""

import copy
import json
import pickle

import numpy as np
import pytest
from paper.rivals.label_selection import LabelSelectionKernel

from treedot import SubsetTreeKernel, TreedotError, read_trees
from treedot.errors import ParameterError
from treedot.kernels import WordVectors
from treedot.models.inputs.inputs import columns_of, described, restored
from treedot.models.inputs.number_input import NumberInput
from treedot.models.inputs.table import Columns, Table
from treedot.models.inputs.text_input import TextInput
from treedot.models.inputs.tree_inputs import DenseInput, FragmentInput, KernelInput
from treedot.vectors import DenseSpec, SparseSpec
from treedot.vectors.sparse.fitted_rows import FittedRows

TREES = read_trees(["(S (A a) (B b))", "(S (A c))"])
TREES_OF_WORDS = read_trees(["(S (A a::n) (B b::n))", "(S (A c))"])
WORDS = WordVectors({"a": [1.0, 2.0], "b": [2.0, 1.0]})
TABLE = Table(
    {
        "t": TREES,
        "w": TREES_OF_WORDS,
        "n": np.array([1.0, 4.0]),
        "m": np.array([0.0, 1.0]),
        "q": ["one two", "two"],
    }
)
INPUTS = {
    "fragments": FragmentInput("t", FittedRows(SparseSpec(n_features=2**12))),
    "dense": DenseInput("t", DenseSpec(n_components=256)),
    "words": DenseInput("w", DenseSpec(256, kernel="smoothed", similarity=WORDS.fingerprint), WORDS),
    "kernel": KernelInput("t", SubsetTreeKernel(0.3, normalize=True, leaves=True), TREES),
    "numbers": NumberInput.make(["n", "m"]).fitted(TABLE)[0],
    "texts": TextInput("q").fitted(TABLE)[0],
}


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_is_the_same_after_it_was_written_down(kind):
    wanted = INPUTS[kind]
    inputs = [wanted] if wanted.reads.trees else [INPUTS["dense"], wanted]
    configs, arrays = described(inputs)
    found = restored(json.loads(json.dumps(configs)), arrays)[-1]
    assert found.reads == wanted.reads
    assert found.width == wanted.width
    a, b = found.transform(TABLE), wanted.transform(TABLE)
    assert abs(a - b).sum() == 0


@pytest.mark.parametrize("kind", INPUTS)
def test_an_input_is_copied_and_pickled_after_it_was_used(kind):
    wanted = INPUTS[kind].transform(TABLE)
    for again in (copy.deepcopy(INPUTS[kind]), pickle.loads(pickle.dumps(INPUTS[kind]))):
        assert abs(again.transform(TABLE) - wanted).sum() == 0


def test_the_columns_of_several_inputs_are_told():
    every = [INPUTS[name] for name in ("dense", "numbers", "texts")]
    assert columns_of(every) == Columns(("t",), ("n", "m"), ("q",))


def test_a_kernel_that_is_not_known_cannot_be_kept():
    with pytest.raises(ParameterError, match="cannot store a model with a LabelSelectionKernel"):
        KernelInput("t", LabelSelectionKernel(["S"]), TREES).config()


@pytest.mark.parametrize(
    ("kind", "config", "arrays", "message"),
    [
        ("dense", {"vectors": None}, {}, "an input lacks its vectors"),
        ("dense", {}, {"x": np.zeros(3)}, "expected no arrays"),
        ("words", {}, {"x": np.zeros(3)}, "words, units, x, not words and units"),
        ("words", {}, {"units": np.eye(2)}, "do not match their fingerprint"),
        ("kernel", {"kernel": "TreeKernel"}, {}, "unknown kernel"),
        ("kernel", {"parameters": {"max_pairs": 2**60}}, {}, "parameters that are never stored"),
        ("kernel", {"parameters": {"more": 1}}, {}, "unknown parameters"),
        ("kernel", {"parameters": {"decay": 2}}, {}, "from 0 to 1"),
        ("kernel", {}, {"label": np.zeros(3, np.int64)}, "wrong arrays or types"),
        ("kernel", {}, {"label": np.full(8, 99, np.int32)}, "a label index lies outside"),
        ("kernel", {}, {"arity": np.zeros(8, np.int32)}, "do not form one tree"),
        ("kernel", {}, {"label_offsets": np.array([0, 2**40])}, "their offsets do not match their length"),
        ("kernel", {}, {"label_text": np.full(6, 0xFF, np.uint8)}, "not UTF-8"),
        ("numbers", {"columns": []}, {}, "are not texts"),
        ("numbers", {"columns": ["n"]}, {}, "one mean and one scale for each"),
        ("numbers", {}, {"scale": np.array([1.0, 0.0])}, "not finite"),
        ("numbers", {}, {"mean": np.array([np.nan, 0.0])}, "not finite"),
        ("texts", {"version": 3}, {}, "does not have version 1 or 2"),
        ("texts", {"version": [2]}, {}, "does not have version 1 or 2"),
        ("texts", {"version": 1}, {}, "expected no arrays"),
        ("texts", {"column": None}, {}, "lacks its column"),
        ("texts", {}, {"columns": np.array([1.0, 2.0])}, "wrong arrays or types"),
        ("texts", {}, {"documents": np.array([9, 1, 1])}, "exceeds the number of trees"),
        ("fragments", {}, {"columns": np.arange(3)}, "fingerprint"),
        ("fragments", {"column": 3}, {}, "column is not a text"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, config, arrays, message):
    (own,), kept = described([INPUTS[kind]])
    kept |= {f"input0.{name}": array for name, array in arrays.items()}
    with pytest.raises(TreedotError, match=message):
        restored([own | config], kept)


def test_arrays_and_columns_belong_to_one_input():
    (own,), kept = described([INPUTS["dense"]])
    with pytest.raises(TreedotError, match="belong to no input: input7"):
        restored([own], kept | {"input7.x": np.zeros(1)})
    with pytest.raises(TreedotError, match="read no trees"):
        restored([{"kind": "texts", "column": "q", "version": 1}], {})
    with pytest.raises(TreedotError, match="found 1001"):
        restored([own] * 1001, kept)
