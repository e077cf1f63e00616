"""Choose between functions compiled by Numba and the same functions in plain Python.

Loading compiled code takes about half a second, compiling it several. For small work, plain Python is faster
than that. So a function decorated with ``njit`` runs uncompiled until the process has enough work. Then Numba
is imported, and compiled functions replace the plain ones for good. The results are the same, to the byte
where bytes are promised.

``TREEDOT_COMPILE`` overrides the decision: ``always`` or ``never``. Nothing is compiled if Numba is not
installed, or if ``NUMBA_DISABLE_JIT`` is set, as for debuggers and coverage.

Numba stores compiled code on disk: in ``NUMBA_CACHE_DIR``, beside the package, or in the user's cache folder,
whichever is the first writable one.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from treedot.errors import ParameterError

PACKAGE = Path(__file__).parent.parent
USED_FIRST = PACKAGE / "readers" / "brackets" / "scanner.py"  # held while compiling
RATE = 1e6  # steps per second in plain Python
LOADING = 0.5  # seconds to load compiled code
COMPILING = 4.0  # seconds to compile it, at least

P = ParamSpec("P")
R = TypeVar("R")

CHOICE = os.environ.get("TREEDOT_COMPILE", "")
if CHOICE not in ("", "always", "never"):
    raise ParameterError(f"TREEDOT_COMPILE must be 'always' or 'never', not {CHOICE!r}: change or unset it")

COMPILED = (
    CHOICE != "never"
    and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
    and sys.modules.get("numba", find_spec) is not None
    and find_spec("numba") is not None
)


def njit(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function once that pays, store the code on disk, and release the GIL while it runs.

    Its work is estimated as the number of elements in its arrays.
    """
    return _switch.add(function, _compiled)


def njit_borrowing(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate like ``njit``, for a function that neither allocates nor returns arrays.

    References to its array arguments are not counted, so there is less to compile and calls are faster.
    """
    return _switch.add(function, _borrowing)


def njit_inside(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like ``njit_borrowing``, for a function that only compiled functions call.

    Calls from Python run the plain function.
    """
    return _switch.add(function, _inside_others)


def njit_of_steps(
    steps: Callable[..., float], *, borrowing: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate like ``njit`` or ``njit_borrowing``, with an estimate of the work from the arguments.

    A step is one or two statements of plain Python, about a microsecond.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _switch.add(function, _borrowing if borrowing else _compiled, steps)

    return decorate


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Inline a function into its compiled callers, if a call would cost a tenth of their time."""
    return _switch.add(function, _inlined)


def in_compiled_code(module: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let compiled functions call the function of the same name in ``module``, which may need Numba."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return _switch.replace(function, module)

    return decorate


def compiles(steps: float) -> bool:
    """Return whether compiled code runs from now on; ``steps`` is the work ahead."""
    return _switch.compiles(steps)


def compile_all(saving: Callable[[], contextlib.AbstractContextManager[None]]) -> None:
    """Run compiled code from now on, without a message; save each function inside the context ``saving``.

    Numba mixes up functions that several processes save at the same time, so the context should be a lock.
    """
    global _announced
    _announced, _Cache.saving = True, staticmethod(saving)
    _switch.compiles(math.inf)


class Function:
    """A function that may be replaced by its compiled form."""

    def __init__(
        self, function: Callable[..., Any], compile_it: Callable[..., Any], steps: Callable[..., float]
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.compile_it = compile_it
        self.steps = steps
        self.made: Any = None  # the compiled function, for functions compiled after it
        self.compiled: Any = None  # the compiled function, once it may be called

    def __call__(self, *arguments: Any) -> Any:
        if self.compile_it is _inside_others or (self.compiled is None and _inside.plain):
            return self.py_func(*arguments)
        if self.compiled is None and not _switch.turns_on(self.py_func, self.steps(*arguments), enter=True):
            with _switch.plain():
                return self.py_func(*arguments)
        return self.compiled(*arguments)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @property
    def replacement(self) -> Any:
        """Return the function for modules with compiled code: itself if only compiled code calls it."""
        return self if self.compile_it is _inside_others else self.made

    @property
    def _numba_type_(self) -> Any:
        return self.made._numba_type_


class _Inside(threading.local):
    plain = False  # whether a plain function runs in this thread


class _Switch:
    """The single switch of a process from plain Python to compiled code."""

    def __init__(self) -> None:
        self._functions: list[Function] = []
        self._replaced: list[tuple[Callable[..., Any], str]] = []
        self._free = threading.Condition()
        self._running = 0  # running plain functions, in all threads
        self._spent = 0.0  # processor time of plain functions, in seconds
        self.on = False

    def add(
        self,
        function: Callable[..., Any],
        compile_it: Callable[..., Any],
        steps: Callable[..., float] = lambda *arguments: _size(arguments),
    ) -> Any:
        if not COMPILED:
            return function
        made = Function(function, compile_it, steps)
        if self.on:
            made.made = made.compiled = compile_it(function)
            return made.replacement
        self._functions.append(made)
        return made

    def replace(self, function: Callable[..., Any], module: str) -> Any:
        if not COMPILED:
            return function
        if self.on:
            return getattr(import_module(module), function.__name__)
        self._replaced.append((function, module))
        return function

    def compiles(self, steps: float) -> bool:
        if _inside.plain or not COMPILED:
            return False
        return self.turns_on(None, steps)

    def turns_on(self, function: Callable[..., Any] | None, steps: float, *, enter: bool = False) -> bool:
        """Switch to compiled code if it pays; return whether it runs.

        If it does not pay and ``enter`` is set, the switch is blocked until ``plain`` has finished: a plain
        function must not call compiled ones.
        """
        with self._free:
            if not self.on and self._stays_plain(function, steps):
                self._running += enter
                return False
            self._free.wait_for(lambda: not self._running)
            if not self.on:
                self._turn_on()
        return True

    def _stays_plain(self, function: Callable[..., Any] | None, steps: float) -> bool:
        seconds = self._spent + steps / RATE
        return CHOICE != "always" and (seconds < LOADING or (seconds < COMPILING and not _is_kept(function)))

    @contextlib.contextmanager
    def plain(self) -> Iterator[None]:
        start = time.thread_time()
        _inside.plain = True
        try:
            with np.errstate(all="ignore"):  # as compiled code
                yield
        finally:
            _inside.plain = False
            with self._free:
                self._running -= 1
                self._spent += time.thread_time() - start
                self._free.notify_all()

    def after_fork(self) -> None:
        """Reset the count of threads, which belong to the parent process."""
        self._free = threading.Condition()
        self._running = int(_inside.plain)

    def _turn_on(self) -> None:
        """Replace the plain functions, in an order in which other threads may call any of them meanwhile."""
        _shorten_collections()
        for function in self._functions:
            function.made = function.compile_it(function.py_func)
        intrinsics = {id(f): getattr(import_module(module), f.__name__) for f, module in self._replaced}
        spaces = [function.py_func.__globals__ for function in self._functions]
        spaces += [vars(module) for name, module in list(sys.modules.items()) if name.startswith("treedot.")]
        _rebind(spaces, intrinsics)
        _rebind(spaces, {id(function): function.replacement for function in self._functions})
        for function in self._functions:
            function.compiled = function.made
        self.on = True


def _rebind(spaces: list[dict[str, Any]], new: dict[int, Any]) -> None:
    """Replace objects in namespaces."""
    for space in spaces:
        for name, value in list(space.items()):
            if id(value) in new:
                space[name] = new[id(value)]


_inside = _Inside()
_switch = _Switch()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switch.after_fork)


def _size(arguments: Any) -> int:
    """Return the number of elements in arrays, and in tuples of arrays."""
    size = 0
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            size += argument.size
        elif isinstance(argument, tuple):
            size += _size(argument)
    return size


def _import_numba() -> Any:
    """Import Numba without SciPy's linear algebra, which takes half as long to load as Numba itself.

    Numba imports it only to check that it exists. Compiled code that uses it still loads it.
    """
    import numba

    with contextlib.suppress(ImportError, AttributeError):  # another Numba may lack any of this
        from numba.np import linalg

        check, loading = linalg._check_lapack_int_width, linalg.ensure_blas  # skips SciPy's version
        if "numba.np.arraymath" not in sys.modules:
            linalg.ensure_blas = check
            try:
                import_module("numba.np.arraymath")
            finally:
                linalg.ensure_blas = loading
    return numba


def _shorten_collections() -> None:
    """Make the garbage collector skip older objects while Numba compiles, which saves a tenth of the time.

    New garbage is still collected. Objects that the program has frozen stay frozen.
    """
    _import_numba()
    try:
        from numba.core import event

        listener: Any = event.Listener
    except (ImportError, AttributeError):  # another Numba
        return

    class Freezing(listener):
        """Freezes objects during compilations, which are nested and run in one thread at a time."""

        depth, frozen = 0, False

        def on_start(self, event: Any) -> None:
            if self.depth == 0 and gc.get_freeze_count() == 0:
                self.frozen = True
                gc.freeze()
            self.depth += 1

        def on_end(self, event: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.frozen:
                self.frozen = False
                gc.unfreeze()

    event.register("numba:compile", Freezing())


@functools.cache
def why_not_ours() -> str:
    """Return why Numba's own compiler is used; "" if treedot's pipeline is."""
    try:
        import_module("treedot._runtime.pipeline")
    except Exception as error:  # another Numba may raise anything where its internals differ
        return str(error)
    return ""


def in_pipeline(**options: bool) -> dict[str, Any]:
    """Return Numba's private options, and treedot's pipeline; nothing if Numba's own compiler is used."""
    if why_not_ours():
        return {}
    return {**options, "pipeline_class": import_module("treedot._runtime.pipeline").Pipeline}


def _compiled(function: Callable[P, R], **private: bool) -> Callable[P, R]:
    numba = _import_numba()
    options = {"nogil": True, "error_model": "numpy", **in_pipeline(no_cfunc_wrapper=True, **private)}
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to store compiled code in
        compiled = numba.njit(**options)(function)
    if hasattr(compiled, "_cache"):  # private to Numba, which offers no other way
        compiled._cache = _Cache(compiled._cache)
    return compiled


def _borrowing(function: Callable[P, R]) -> Callable[P, R]:
    return _compiled(function, _nrt=False)


def _inside_others(function: Callable[P, R]) -> Callable[P, R]:
    return _compiled(function, _nrt=False, no_cpython_wrapper=True)


def _inlined(function: Callable[P, R]) -> Callable[P, R]:
    compiled: Callable[P, R] = _import_numba().njit(inline="always", error_model="numpy")(function)
    return compiled


class _Cache:
    """Numba's cache of a function, but it ignores damaged files and announces compilations."""

    saving: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext

    def __init__(self, cache: Any) -> None:
        self._cache = cache
        self._damaged = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled code for a signature; None if it must be compiled."""
        try:
            found = self._cache.load_overload(signature, context)
        except Exception:  # a truncated file, as after a full disk, can raise any error of unpickling
            found = None
            try:
                self._cache.flush()
            except OSError:  # it cannot be replaced either
                self._damaged = True
        if found is None:
            _announce(self._cache.cache_path)
        return found

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store compiled code, if it can be written."""
        if not self._damaged:
            with contextlib.suppress(OSError), self.saving():
                self._cache.save_overload(signature, compiled)


def _is_kept(function: Callable[..., Any] | None) -> bool:
    """Return whether compiled code of a function (or of any) is probably on disk, without using Numba."""
    source = Path(function.__code__.co_filename).absolute() if function else USED_FIRST
    beside = f"{source.parent.name}_{hashlib.sha1(os.fsencode(source.parent)).hexdigest()}"
    given = os.environ.get("NUMBA_CACHE_DIR")
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folders = [Path(given, beside)] if given else [source.parent / "__pycache__", Path(home, "numba", beside)]
    return any(next(folder.glob(f"{source.stem}.*.nbi"), None) is not None for folder in folders)


def cache_folder() -> Path | None:
    """Return the writable folder for compiled code; None if there is none."""
    path = _compiled(_nothing).stats.cache_path if COMPILED else None  # type: ignore[attr-defined]
    if path is None:
        return None
    # Beside the package, every folder of modules has its own cache; elsewhere all share one.
    return PACKAGE if PACKAGE in Path(path).parents else Path(path).parent


def _nothing() -> None:
    pass


_announced = False


def _announce(folder: str | None) -> None:
    """Announce once per process that compiling takes a while, only on terminals and in notebooks."""
    global _announced
    if _announced or not _someone_watches():
        return
    _announced = True
    kept = (
        "once per installation"
        if folder is not None
        else "at every start: no folder to keep it in, set NUMBA_CACHE_DIR to one"
    )
    print(f"treedot: the first call of each kind compiles its code (some seconds, {kept})", file=sys.stderr)


def _someone_watches() -> bool:
    if sys.stderr is None:
        return False
    ipython = sys.modules.get("IPython")  # the stderr of a notebook is not a terminal
    return sys.stderr.isatty() or (ipython is not None and ipython.get_ipython() is not None)
