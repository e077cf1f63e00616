"""One switch for compiled code: Numba where it is installed, plain Python where it is not.

Nothing is compiled either where ``NUMBA_DISABLE_JIT`` is set, as debuggers and coverage need it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

PACKAGE = Path(__file__).parent

P = ParamSpec("P")
R = TypeVar("R")

try:
    import numba
except ModuleNotFoundError:  # a source checkout on a machine that allows no installs
    COMPILED = False
else:
    COMPILED = not numba.config.DISABLE_JIT

if COMPILED:

    def njit(function: Callable[P, R]) -> Callable[P, R]:
        """Compile a function on first use, keep it on disk, and release the GIL while it runs."""
        compiled: Callable[P, R]
        try:
            compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError:  # there is no folder that the compiled code could be kept in
            compiled = numba.njit(nogil=True, error_model="numpy")(function)
        return compiled

    def inlined(function: Callable[P, R]) -> Callable[P, R]:
        """Compile a function into each of its callers, where a call would cost a tenth of their time."""
        compiled: Callable[P, R] = numba.njit(inline="always", error_model="numpy")(function)
        return compiled

else:

    def njit(function: Callable[P, R]) -> Callable[P, R]:
        """Return the function itself: the same results, slowly."""
        return function

    inlined = njit


def already_compiled() -> bool:
    """Return whether compiled code is kept beside the package, where Numba puts it if it can."""
    return any(PACKAGE.rglob("*.nbi"))
