"""The function of ``mixing`` whose compiled code depends on the type of a label."""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from treedot.vectors.dense.mixing import mix_plus, mix_signs_plus


def mix_label_plus(x: Any, shuffle: Any, plus: Any, edge: Any, out: Any) -> None:
    """Write ``4 b · signs ⊗ M°(x) + a · label`` to out for a label x."""


@overload(mix_label_plus)
def _mix_label_plus(x, shuffle, plus, edge, out):  # type: ignore[no-untyped-def]
    if x.dtype.bitwidth == 16:
        return lambda x, shuffle, plus, edge, out: mix_signs_plus(x, shuffle, plus, out)
    return lambda x, shuffle, plus, edge, out: mix_plus(x, shuffle, plus, edge, out)
