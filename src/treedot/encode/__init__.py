"""Forests in, vectors out: the paper's recursion as its definition and as fast stack machines."""

from treedot.encode.encoder import Encoder
from treedot.encode.postings import sparse_gram
from treedot.encode.rows import StratifiedEncoder
from treedot.encode.spec import Spec, StratifiedSpec

__all__ = ["Encoder", "Spec", "StratifiedEncoder", "StratifiedSpec", "sparse_gram"]
