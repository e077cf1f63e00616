"""Turn trees into dense vectors, given settings, word vectors and a device, without scikit-learn."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from treedot._runtime.array_types import Matrix
from treedot.kernels.word_vectors import WordVectors
from treedot.trees import Forest
from treedot.vectors.dense.encoder import DenseEncoder
from treedot.vectors.encoder_cache import kept_encoder, trim_encoders
from treedot.vectors.spec import DenseSpec

if TYPE_CHECKING:
    from treedot.vectors.gpu.encoder import GpuEncoder


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
                return self._gpu_encoder.transform(forest, out, n_jobs)
            encoder = kept_encoder(self.spec, (), partial(DenseEncoder, self.spec, self.words))
            return encoder.encode(forest, out, n_jobs)
        finally:
            trim_encoders()

    def to_gpu(self, forest: Forest, n_jobs: int | None = None) -> Any:
        """Return the vectors of trees as a tensor on the GPU that ``device`` names, which makes them."""
        try:
            return self._gpu_encoder.encode(forest, n_jobs=n_jobs)
        finally:
            trim_encoders()

    @property
    def _gpu_encoder(self) -> GpuEncoder:
        from treedot.vectors.gpu.encoder import GpuEncoder

        return kept_encoder(self.spec, (self.device,), partial(GpuEncoder, self.spec, self.device))
