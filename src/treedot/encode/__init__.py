"""Forests in, vectors out: the paper's recursion as its definition and as fast stack machines."""

from treedot.encode.encoder import Encoder
from treedot.encode.spec import Spec

__all__ = ["Encoder", "Spec"]
