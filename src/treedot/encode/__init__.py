"""Forests in, vectors out: dense ones by the paper's recursion, and sparse rows of fragments."""

from treedot.encode.encoder import Encoder
from treedot.encode.postings import sparse_gram
from treedot.encode.rows import FragmentEncoder
from treedot.encode.spec import FragmentSpec, Spec

__all__ = ["Encoder", "FragmentEncoder", "FragmentSpec", "Spec", "sparse_gram"]
