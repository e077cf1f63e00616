"""Dense vectors on a GPU, and what is done with them there."""

from treedot.gpu.encoder import GpuEncoder
from treedot.gpu.neighbours import nearest_tensors

__all__ = ["GpuEncoder", "nearest_tensors"]
