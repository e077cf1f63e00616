"""Compile functions by Numba where it is installed; run them as plain Python where it is not.

Nothing is compiled either where ``NUMBA_DISABLE_JIT`` is set, as debuggers and coverage need it.

Numba keeps compiled code on disk: in ``NUMBA_CACHE_DIR``, beside the package, or in the user's cache folder,
whichever is the first that can be written to.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

PACKAGE = Path(__file__).parent.parent

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
        try:
            compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
        except RuntimeError:  # there is no folder that the compiled code could be kept in
            compiled = numba.njit(nogil=True, error_model="numpy")(function)
        if hasattr(compiled, "_cache"):  # private to Numba, which has no other way in
            compiled._cache = _Cache(compiled._cache)
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


class _Cache:
    """Numba's cache of a function, except that a damaged file counts as none, and compiling is announced."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._damaged = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled code for a signature, None where it has to be compiled."""
        try:
            found = self._cache.load_overload(signature, context)
        except Exception:  # half a file, as a full disk leaves it, fails in as many ways as unpickling can
            found = None
            try:
                self._cache.flush()
            except OSError:  # nor can it be replaced
                self._damaged = True
        if found is None:
            _announce(self._cache.cache_path)
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep compiled code, where it can be written."""
        if not self._damaged:
            with contextlib.suppress(OSError):
                self._cache.save_overload(signature, compiled)


def cache_folder() -> Path | None:
    """Return the folder that compiled code is kept in, which can be written to; None where there is none."""
    path = njit(_nothing).stats.cache_path if COMPILED else None  # type: ignore[attr-defined]
    if path is None:
        return None
    # Beside the package, every folder of modules has its own; elsewhere they are all in one.
    return PACKAGE if PACKAGE in Path(path).parents else Path(path).parent


def _nothing() -> None:
    pass


_announced = False


def _announce(folder: str | None) -> None:
    """Say once in a process that it takes a while, to people: not into files, pipelines and test reports."""
    global _announced
    if _announced or not _someone_watches():
        return
    _announced = True
    kept = (
        "once per installation"
        if folder is not None
        else "at every start: no folder to keep it in, set NUMBA_CACHE_DIR to one"
    )
    print(
        f"treedot: the first call of each kind compiles its code (5 to 20 seconds, {kept})", file=sys.stderr
    )


def _someone_watches() -> bool:
    if sys.stderr is None:
        return False
    ipython = sys.modules.get("IPython")  # the stderr of a notebook is no terminal
    return sys.stderr.isatty() or (ipython is not None and ipython.get_ipython() is not None)
