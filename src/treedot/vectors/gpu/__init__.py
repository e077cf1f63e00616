"""Dense vectors on a GPU: encoders, dot products and nearest neighbours."""

from treedot.vectors.gpu.encoder import GpuEncoder
from treedot.vectors.gpu.neighbours import nearest_tensors

__all__ = ["GpuEncoder", "nearest_tensors"]
