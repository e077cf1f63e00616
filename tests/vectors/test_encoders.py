"""What dense and sparse encoders have in common."""

import pytest

from treedot import Tree
from treedot.errors import ParameterError
from treedot.vectors import DenseEncoder, DenseSpec, SparseEncoder, SparseSpec

NO_FORESTS = ["(a b)", ["(a b)"], [Tree("a", ["b"])], Tree("a", ["b"]), None]


@pytest.mark.parametrize("source", NO_FORESTS)
@pytest.mark.parametrize(
    "encode",
    [
        DenseEncoder(DenseSpec(256)).encode,
        SparseEncoder(SparseSpec()).encode,
        SparseEncoder(SparseSpec()).bounded_fragments,
    ],
    ids=["dense", "sparse", "bounded fragments"],
)
def test_only_a_forest_is_encoded(encode, source):
    with pytest.raises(ParameterError, match=r"takes a Forest, not .*: call read_trees first"):
        encode(source)
