"""Parts of numba that are not public, changed so that kernels load and compile faster (decision 019)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from llvmlite.binding import parse_bitcode
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CR_FIELDS, Compiler, CompileResult
from numba.core.runtime import rtsys


class KernelCache(FunctionCache):  # type: ignore[misc]
    """numba's cache of machine code, which a process that compiles nothing reads without numba's compiler."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load what was compiled; numba would first import all that it can compile, SciPy included, which takes 0.6 s."""
        rtsys.initialize(target_context)  # what machine code calls to allocate memory
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled; set the environments of inner functions, as loading it would."""
        for environment in data._find_referenced_environments():
            data.codegen.set_env(environment.env_name, environment)
        super().save_overload(sig, data)


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that is only part of others: optimised and made machine code with each of them, not alone."""

    def finalize(self) -> None:
        """Link to what it calls."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, _name: str) -> int:
        """There is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> InnerLibrary:
        """What sets environments: they are in the code of the functions that this one is part of."""
        return self

    def set_env(self, _name: str, _environment: Any) -> None:
        """Leave it to KernelCache."""

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """Return what InnerCacheImpl loads: code that is not machine code yet."""
        self._ensure_finalized()
        return self.name, self._final_module.as_bitcode()

    def load(self, bitcode: bytes) -> None:
        """Take the code of another process."""
        self._final_module, self._finalized = parse_bitcode(bitcode), True


class InnerCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    """How inner functions are read from the cache."""

    def rebuild(self, target_context: Any, payload: Any) -> CompileResult:
        """Return what compiling the function would return."""
        (name, bitcode), fndesc, environment, signature, *_ = payload
        library = InnerLibrary(target_context.codegen(), name)
        library.load(bitcode)
        known = {
            "target_context": target_context,
            "typing_context": target_context.typing_context,
            "library": library,
            "environment": environment,
            "entry_point": target_context.get_executable(library, fndesc, environment),
            "fndesc": fndesc,
            "signature": signature,
            "objectmode": False,
            "lifted": (),
            "reload_init": [],
        }
        return CompileResult(**dict.fromkeys(CR_FIELDS) | known)


class InnerCache(FunctionCache):  # type: ignore[misc]
    """The cache of inner functions, for processes that compile functions which have them in common."""

    _impl_class = InnerCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a function, or compile it again where the cache was written by another version of this module."""
        with suppress(LookupError, RuntimeError, TypeError, ValueError):
            return super().load_overload(sig, target_context)
        return None


class InnerCompiler(Compiler):  # type: ignore[misc]
    """numba's compiler with another library."""

    def __init__(self, typingctx: Any, targetctx: Any, _library: Any, *others: Any) -> None:
        super().__init__(typingctx, targetctx, InnerLibrary(targetctx.codegen(), "inner"), *others)
