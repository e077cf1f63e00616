"""Type aliases of NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.signedinteger[Any]]
WordArray = npt.NDArray[np.uint64]
HalfWordArray = npt.NDArray[np.uint32]
SignWords = npt.NDArray[np.uint16]  # sixteen signs per word
ComplexArray = npt.NDArray[np.complex128]
Row = npt.NDArray[np.floating[Any]]
Label = SignWords | Row  # a row of numbers, or of signs, sixteen per word
Matrix = npt.NDArray[np.floating[Any]]
