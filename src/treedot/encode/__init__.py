"""Forests in, vectors out: the paper's recursion as its definition and as fast stack machines, and sparse rows."""

from treedot.encode.encoder import Encoder
from treedot.encode.postings import sparse_gram
from treedot.encode.rows import FragmentEncoder
from treedot.encode.spec import FragmentSpec, Spec

__all__ = ["Encoder", "FragmentEncoder", "FragmentSpec", "Spec", "sparse_gram"]
