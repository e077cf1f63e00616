"""Specs of either kind: written down, read back, and never mixed."""

import json

import numpy as np
import pytest

from treedot.errors import ParameterError, SpecMismatchError
from treedot.vectors import DenseSpec, SparseSpec
from treedot.vectors.spec import spec_from_dict

SPECS = [
    DenseSpec(),
    DenseSpec(512, 0.3, "product", 7, False, "float64"),
    DenseSpec(kernel="partial"),
    DenseSpec(kernel="partial", mu=0.3),
    DenseSpec(kernel="partial", gaps="span", max_length=5),
    DenseSpec(kernel="smoothed", similarity="a1e57f0891413b80"),
    DenseSpec(kernel="smoothed", mu=0.3, similarity="1ae3531873e2704e"),
    SparseSpec(),
    SparseSpec(None, 0.2, None, seed=3, normalize=False),
    SparseSpec(2**10, 0.5, 2, "linear", "dense", 512),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_is_read_back_from_its_description(spec):
    written = json.loads(json.dumps(spec.to_dict()))
    for description in (written, {**written, "fingerprint": spec.fingerprint}):
        assert spec_from_dict(description) == spec == type(spec).from_dict(description)


def test_dense_and_sparse_specs_agree_on_what_they_share():
    dense, sparse = DenseSpec().to_dict(), SparseSpec().to_dict()
    shared = [name for name in dense if name in sparse and name != "kind"]
    assert shared == ["decay", "seed", "normalize", "dtype", "version"]
    assert all(dense[name] == sparse[name] for name in shared)


def test_fingerprints_are_frozen():
    assert DenseSpec().fingerprint == "dbae8a7e8f829a1b"
    assert SparseSpec().fingerprint == "276e94b48e073e3e"
    assert DenseSpec(kernel="partial").fingerprint == "52641439ef38cf01"


def test_vectors_of_fragments_are_described_as_before_there_were_partial_trees():
    names = ["kind", "n_components", "decay", "composition", "seed", "normalize", "dtype", "version"]
    assert list(DenseSpec().to_dict()) == names


def test_vectors_of_fragments_and_of_partial_trees_do_not_mix():
    with pytest.raises(SpecMismatchError, match=r"kernel 'subset' and 'partial'$"):
        DenseSpec().require_same(DenseSpec(kernel="partial"))
    with pytest.raises(SpecMismatchError, match=r"mu 0\.4 and 0\.3, gaps 'toolkit' and 'span'$"):
        DenseSpec(kernel="partial").require_same(DenseSpec(kernel="partial", mu=0.3, gaps="span"))
    one, other = (DenseSpec(kernel="smoothed", similarity=name) for name in ("a1", "b2"))
    with pytest.raises(SpecMismatchError, match=r"similarity 'a1' and 'b2'$"):
        one.require_same(other)


def test_all_specs_have_fingerprints_of_their_own():
    assert len({spec.fingerprint for spec in SPECS}) == len(SPECS)


@pytest.mark.parametrize(
    ("description", "complaint"),
    [
        ({}, "its kind is None, not 'dense' or 'sparse'"),
        ({"kind": ["dense"]}, "its kind is"),
        ({"kind": "dense", "budget": 4}, "does not describe a treedot spec"),
        ({**DenseSpec().to_dict(), "fingerprint": "0123456789abcdef"}, "was changed"),
        ({**SparseSpec().to_dict(), "fingerprint": DenseSpec().fingerprint}, "was changed"),
        ({**SparseSpec().to_dict(), "version": 99}, "format 1, not 99"),
    ],
)
def test_other_descriptions_are_refused(description, complaint):
    with pytest.raises(SpecMismatchError, match=complaint):
        spec_from_dict(description)


@pytest.mark.parametrize("dtype", ["float16", ",", ": 0,t32", "float\ud800", ")", [], object()])
@pytest.mark.parametrize("kind", [DenseSpec, SparseSpec])
def test_types_that_numpy_cannot_even_read_are_refused(kind, dtype):
    with pytest.raises(ParameterError, match="dtype must be one of float32, float64"):
        kind(dtype=dtype)


@pytest.mark.parametrize("size", [2**24 + 256, 2**60])
def test_vectors_that_no_memory_holds_are_refused(size):
    with pytest.raises(ParameterError, match=f"16777216, not {size}"):
        DenseSpec(n_components=size)
    with pytest.raises(ParameterError, match=f"16777216, not {size}"):
        SparseSpec(damping="linear", rest="dense", rest_size=size)


def test_a_description_of_the_other_kind_is_refused():
    with pytest.raises(SpecMismatchError, match="describes sparse vectors, not dense ones"):
        DenseSpec.from_dict(SparseSpec().to_dict())
    with pytest.raises(SpecMismatchError, match="kind 'dense' and 'sparse'"):
        DenseSpec().require_same(SparseSpec())


@pytest.mark.parametrize("spec", [DenseSpec, SparseSpec])
@pytest.mark.parametrize("decay", ["0.4", b"0.4", None, 0.4 + 0j, [0.4], np.str_("0.4")])
def test_a_decay_that_is_not_a_number_is_refused(spec, decay):
    with pytest.raises(ParameterError, match="must be a number from 0 to 1, not"):
        spec(decay=decay)


@pytest.mark.parametrize("spec", [DenseSpec, SparseSpec])
def test_a_decay_that_no_float_can_hold_is_refused(spec):
    with pytest.raises(ParameterError, match="from 0 to 1"):
        spec(decay=10**400)


@pytest.mark.parametrize("decay", [1, np.float32(0.5), np.int64(1)])
def test_all_number_types_are_accepted(decay):
    assert SparseSpec(decay=decay).decay == float(decay)
