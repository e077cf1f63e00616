"""Compile functions of treedot with Numba's own pipeline, without needless work.

Numba optimises every function and makes machine code of it, even if only compiled functions call it; they
take a copy of its intermediate code and optimise it again. Here such a function stays intermediate code.
Functions that count no references are compiled without the passes that only others need. The signature of an
operator for the same types is looked up once in a process.

All this is a ``pipeline_class``, Numba's own way to change its compiler, and concerns no function of others.
It uses Numba's internals. Where they differ, or the version is not one that it was tested with, importing
this module fails, and ``jit`` uses Numba's own compiler.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import compiler_machinery, typed_passes, types, untyped_passes
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.runtime import rtsys

TESTED = (0, 60), (0, 68)  # the oldest and the newest version of Numba
USED = (
    "_optimize_functions", "_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals",
    "_get_module_for_linking", "add_linking_library", "enable_object_caching", "get_pointer_to_function",
    "serialize_using_object_code",
)  # fmt: skip
if not TESTED[0] <= tuple(numba.version_info.short) <= TESTED[1]:
    oldest, newest = (".".join(map(str, version)) for version in TESTED)
    raise ImportError(
        f"treedot's compiler is tested with Numba {oldest} to {newest}, not with {numba.__version__}"
    )
if lacking := [name for name in USED if not hasattr(JITCodeLibrary, name)]:
    raise ImportError(f"Numba {numba.__version__} lacks JITCodeLibrary.{lacking[0]}")

# Numba 0.60 runs LLVM's passes in another way.
LEAN = hasattr(llvm, "create_new_module_pass_manager") and hasattr(CPUCodegen, "_pass_builder")
NEEDLESS = {  # in functions without arrays of their own: they fuse array expressions, and look for closures
    typed_passes.NopythonRewrites,
    untyped_passes.InlineClosureLikes,
    untyped_passes.WithLifting,
}


class _BorrowingLibrary(JITCodeLibrary):
    """The code of a function that counts no references, and of what it calls."""

    def add_linking_library(self, library: Any) -> None:
        if library is not rtsys.library:  # the counting of references
            super().add_linking_library(library)


class _InnerLibrary(JITCodeLibrary):
    """The intermediate code of a function that only compiled functions call; it has no machine code."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Remove what is not used, such as the addresses of other functions, which cannot be saved."""
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_dead_code_elimination_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(self._final_module, self._codegen._pass_builder())

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    @property
    def codegen(self) -> Any:
        return _WithoutEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()


class _WithoutEnvironments:
    """A code generator that stores no Python objects in functions: without machine code, they hold none."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, name: str, environment: Any) -> None:
        pass


class _Flags(Flags):
    """The settings of a compilation. Numba hashes and compares them thousands of times; these are faster."""

    _hash = hash(tuple(sorted(Flags.options)))  # Numba hashes the names, too, which are always the same

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Flags) and self._values == other._values) or super().__eq__(other)


class _RememberingContext:
    """A typing context that remembers the signatures of operators and NumPy functions."""

    _known: dict[Any, Any] = {}  # noqa: RUF012 (for all functions of a process)

    def __init__(self, context: Any, flags: Any) -> None:
        self._context = context
        self._flags = str(flags)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def resolve_function_type(self, function: Any, arguments: Any, keywords: Any) -> Any:
        if keywords or not isinstance(function, types.Function):
            return self._context.resolve_function_type(function, arguments, keywords)
        key = self._flags, function, len(function.templates), tuple(arguments)
        signature = self._known.get(key)
        if signature is None:
            signature = self._known[key] = self._context.resolve_function_type(function, arguments, keywords)
        return signature


@compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Inference(typed_passes.NopythonTypeInference):
    """Infers types with a context that caches the signatures of calls."""

    _name = "treedot_type_inference"

    def run_pass(self, state: Any) -> Any:
        context = state.typingctx
        state.typingctx = _RememberingContext(context, state.flags)
        try:
            return super().run_pass(state)
        finally:
            state.typingctx = context


class Pipeline(CompilerBase):
    """Numba's pipeline for functions of treedot."""

    def define_pipelines(self) -> list[Any]:
        flags = self.state.flags
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        chosen = compiler_machinery.PassManager("nopython")
        for kind, description in passes.passes:
            if flags.nrt or kind not in NEEDLESS:
                chosen.add_pass(
                    _Inference if kind is typed_passes.NopythonTypeInference else kind, description
                )
        chosen.finalize()
        return [chosen]

    def compile_extra(self, function: Any) -> Any:
        flags = self.state.flags = _Flags(self.state.flags)
        if LEAN and self.state.library is None and (flags.no_cpython_wrapper or not flags.nrt):
            library = _InnerLibrary if flags.no_cpython_wrapper else _BorrowingLibrary
            self.state.library = library(self.state.targetctx.codegen(), function.__qualname__)
            self.state.library.enable_object_caching()
        return super().compile_extra(function)
