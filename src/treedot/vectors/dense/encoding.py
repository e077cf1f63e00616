"""Turn trees into dense vectors, given settings, word vectors and a device, without scikit-learn."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from treedot._runtime.array_types import Matrix
from treedot.kernels.word_vectors import WordVectors
from treedot.trees import Forest
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.encoder_cache import kept_encoder, trim_encoders
from treedot.vectors.spec import DenseSpec


class DenseEncoding(NamedTuple):
    """Everything that determines dense vectors, and the device that makes them.

    ``words`` are the word vectors that the spec names.
    """

    spec: DenseSpec
    words: WordVectors | None = None
    device: str = "cpu"

    def transform(self, forest: Forest, n_jobs: int | None = None, out: Matrix | None = None) -> Matrix:
        """Return the vectors of trees; the encoder is kept for the next call."""
        try:
            if self.device != "cpu":
                from treedot.vectors.gpu.encoder import GpuEncoder

                make = partial(GpuEncoder, self.spec, self.device)
                return kept_encoder(self.spec, (self.device,), make).transform(forest, out, n_jobs)
            encoder = kept_encoder(self.spec, (), partial(DenseEncoder, self.spec, self.words))
            return encoder.encode(forest, out, n_jobs)
        finally:
            trim_encoders()
