"""Read two trees back from their vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from treedot.errors import LimitError
from treedot.serve.comparing import Pair
from treedot.serve.fields import Value
from treedot.trees import Forest
from treedot.vectors.decoding.decoder import DecodedTree, Decoder
from treedot.vectors.decoding.productions import Productions
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.dense.label_table import small_tables
from treedot.vectors.encoder_cache import clear_encoders
from treedot.vectors.spec import DenseSpec

TABLE_BYTES = 1 << 26  # of label vectors that an encoder keeps
MAX_NODES = 1000  # of a tree that is read back


class ReadBack(NamedTuple):
    """Two trees, and what the productions of both and the vector of each give."""

    pair: Pair
    found: list[DecodedTree]

    @classmethod
    def of(cls, pair: Pair, fields: Mapping[str, Value]) -> Self:
        """Read the trees of a request back from vectors with its settings."""
        both = Forest.concat([pair.a, pair.b])
        if both.sizes.max() > MAX_NODES:
            raise LimitError(f"trees of more than {MAX_NODES:,} nodes are not read back: give parts of them")
        spec = DenseSpec(int(fields["components"]), float(fields["decay"]), str(fields["composition"]))
        with small_tables(TABLE_BYTES):
            vectors = DenseEncoder(spec).encode(both)
            try:
                return cls(pair, list(Decoder(spec, Productions.of(both)).decode(vectors)))
            finally:
                clear_encoders()  # requests with many settings would fill the memory

    @property
    def is_same(self) -> list[bool]:
        """Whether each tree was found again."""
        return [one.tree == tree[0] for one, tree in zip(self.found, self.pair[:2], strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """Return the trees as JSON values."""
        return {
            name: {
                "tree": None if one.tree is None else str(one.tree),
                "is_same": same,
                "is_certified": one.is_certified,
                "distance": one.distance,
            }
            for name, one, same in zip("ab", self.found, self.is_same, strict=True)
        }
