"""A faster way to compile kernels, for processes that Tacit owns; it replaces some of numba's own methods.

Numba optimises every kernel, makes it into machine code and gives it what a call from Python needs, which
is half of the time. Here a kernel that only other kernels call goes without (`_Part`). And numba tries the
overloads of a function one after the other until one fits, although ``array[int64]`` or
``float64 * int64`` was asked for a thousand times before; here the first answer holds for the life of a
process. Compiled so, kernels have the same bits, in about half of the time.

The command line, the service and the tests set ``TACIT_PLAIN_NUMBA=0`` and compile in this way. A process
that imports Tacit as a library does not, and keeps numba as it is; ``TACIT_PLAIN_NUMBA=1`` forbids it
everywhere. Before the first compilation a self-test tries it on small kernels: where a version of numba
has changed underneath, its methods are put back and the process goes on with plain numba.
"""

from __future__ import annotations

import gc
import logging
import pickle
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from llvmlite import binding as llvm
from numba.core import codegen, compiler, serialize, targetconfig
from numba.core.types import functions

_Function: Any = functions.BaseFunction
_Options: Any = targetconfig.TargetConfig
_Generator: Any = codegen.JITCPUCodegen
_find = _Function.get_call_type
_found: dict[Any, Any] = {}
_here = threading.local()
_log = logging.getLogger("tacit")


def install(make: Callable[..., Any], ways: list[Any]) -> None:
    """Replace numba's methods and add the faster way to compile to `ways`, if it passes its test.

    Where the test fails, numba is as it was, and a line in the log says why.

    Parameters
    ----------
    make : callable
        ``make(function, options)`` returns a kernel that is not kept on disk.
    ways : list
        Kernels are compiled by the last one.
    """
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in _REPLACED]
    ways.append(Fast())
    try:
        for owner, name, method in _REPLACED:
            setattr(owner, name, method)
        check(make)
    except Exception as error:
        for owner, name, method in before:
            setattr(owner, name, method)
        _found.clear()
        ways.pop()
        _log.warning("kernels are compiled by plain numba, because a self-test failed: %r", error)


class Fast:
    """Kernels in parts: one that other kernels call has a twin, which is compiled into its callers."""

    def callee(self, kernel: Any) -> Any:
        """Return what other kernels call: the twin without what Python needs."""
        if kernel.within:
            return kernel
        if kernel.part is None:
            kernel.part = kernel.make_part()
        return kernel.part

    def wrap_files(self, impl: Any) -> Any:
        """Return how twins are written to disk, given how numba writes kernels."""
        return _PartFiles(impl)

    @contextmanager
    def compiling(self, kernel: Any) -> Iterator[None]:
        """Compile `kernel` inside."""
        kernel._compiler.pipeline_class = _PartCompiler if kernel.within else _WholeCompiler
        _here.depth = _depth() + 1
        # The collector would look again and again at all that numba makes, and find nothing to free.
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            _here.depth -= 1
            if collects:
                gc.enable()

    def finish(self, kernel: Any, code: Any) -> None:
        """Let what a kernel consists of find its Python objects, as numba does when it loads one."""
        if not kernel.within:
            for environment in code._find_referenced_environments():
                code.library.codegen.set_env(environment.env_name, environment)


def _depth() -> int:
    """Return how many kernels this thread is compiling, each for the one before."""
    return getattr(_here, "depth", 0)


class _Part(codegen.JITCodeLibrary):
    """A kernel that others call: optimised and made into machine code only where it ends up.

    Numba would do both for every kernel and again for each that calls it: five calls deep, five times.
    A function that Python may call as well, which has a wrapper for that, is made whole at once.
    """

    _whole = False

    def _optimize_final_module(self) -> None:
        """Leave that to the kernel this becomes a part of."""

    def _finalize_final_module(self) -> None:
        part: Any = self
        part._finalize_dynamic_globals()
        part._verify_declare_only_symbols()
        part._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return where the machine code of a function that is defined here begins, else 0."""
        if not self._whole:
            if not self._defines(name):
                return 0
            self._whole = True
            whole: Any = super()
            whole._optimize_final_module()
            whole._finalize_final_module()
        return int(super().get_pointer_to_function(name))  # type: ignore[no-untyped-call]

    def _defines(self, name: str) -> bool:
        part: Any = self
        part._ensure_finalized()
        try:
            return not part._final_module.get_function(name).is_declaration
        except NameError:
            return False

    @property
    def codegen(self) -> Any:
        """Whom numba asks to `set_env` of machine code."""
        return super().codegen if self._whole else self

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: there is no machine code."""


class _WholeCompiler(compiler.Compiler):
    """Numba's compiler, of all that the function calls: numba's own functions become parts too."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        whole: Any = cast(Any, codegen.JITCodeLibrary)(target.codegen(), "kernel")
        whole.enable_object_caching()
        super().__init__(typing, target, whole, *rest)  # type: ignore[no-untyped-call]


class _PartCompiler(compiler.Compiler):
    """Numba's compiler, into a part."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
        super().__init__(typing, target, _new_part(target), *rest)  # type: ignore[no-untyped-call]


def _new_part(target: Any) -> Any:
    return cast(Any, _Part)(target.codegen(), "part")


class _PartFiles:
    """Keeps parts as what LLVM reads, since they have no machine code."""

    def __init__(self, impl: Any) -> None:
        self._impl = impl

    def __getattr__(self, name: str) -> Any:
        """Return what is the same for all kernels, such as where they are kept."""
        return getattr(self._impl, name)

    def reduce(self, cres: Any) -> Any:
        """Return what of a part can be written."""
        code = cres.library._get_module_for_linking().as_bitcode()
        cres.fndesc.typemap = cres.fndesc.calltypes = None
        return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the part that was written."""
        code, description, environment, signature, reload = payload
        for again in reload:
            again()
        part = _new_part(target_context)
        part._final_module = llvm.parse_bitcode(code)
        part._finalize_final_module()
        made: Any = compiler.compile_result
        return made(
            typing_context=target_context.typing_context,
            target_context=target_context,
            library=part,
            environment=environment,
            entry_point=target_context.get_executable(part, description, environment),
            fndesc=description,
            type_annotation="",
            signature=signature,
            objectmode=False,
            lifted=(),
            reload_init=reload,
            referenced_envs=(),
        )


def _create_library(generator: Any, name: str, **options: Any) -> Any:
    """Return what numba makes room in for a function: a part while a kernel is compiled."""
    kind = _Part if _depth() else generator._library_class
    return kind(generator, name, **options)


def _load_library(generator: Any, serialised: Any) -> Any:
    """Return a function that numba has kept, whole as it is."""
    depth, _here.depth = _depth(), 0
    try:
        return generator._library_class._unserialize(generator, serialised)
    finally:
        _here.depth = depth


def _find_signature(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a function for types of arguments, remembered while a kernel is compiled.

    What others compile in this process meets numba as it is.
    """
    if not _depth():
        return _find(function, context, args, kws)
    options: Any = targetconfig.ConfigStack.top_or_none()  # type: ignore[no-untyped-call]
    asked = function, context, tuple(args), tuple(kws.items())
    if (asked, options) not in _found:
        signature = _find(function, context, args, kws)
        options = options and options.copy()
        _found[asked, options] = signature, function.get_impl_key(signature)
        return signature
    signature, implementation = _found[asked, options]
    function._impl_keys[signature.args] = implementation
    return signature


def _are_equal(options: Any, other: Any) -> bool:
    """Compare the options that were set; numba would go through all fifty."""
    if type(options) is not type(other):
        return False
    names = options._values.keys() | other._values.keys()
    return all(getattr(options, name) == getattr(other, name) for name in names)


def _hash(options: Any) -> int:
    """Return the same for all of a kind, as numba does, which hashes the options' names."""
    return hash(type(options))


#: All that is replaced in numba: whose method, its name, and what takes its place.
_REPLACED: list[tuple[Any, str, Any]] = [
    (_Function, "get_call_type", _find_signature),
    (_Options, "__eq__", _are_equal),
    (_Options, "__hash__", _hash),
    (_Generator, "create_library", _create_library),
    (_Generator, "unserialize_library", _load_library),
]


def check(make: Callable[..., Any]) -> None:
    """Raise an error unless kernels of parts calculate, fail and are written to disk as they should."""
    options = {"nogil": True, "_nrt": False, "forceinline": True}

    def value_at(array: Any, i: Any) -> Any:
        if i >= array.size:
            raise IndexError("no such place")
        return array[i]

    def double(array: Any, i: Any) -> Any:
        return 2 * value(array, i) + array.sum()

    def add_up(array: Any, n: Any) -> Any:
        total = 0.0
        for i in range(n):
            total += twice(array, i)
        return total

    def read(array: Any) -> Any:
        return again(array, 2)

    value, again = make(value_at, options), make(value_at, options)
    twice, total, last = make(double, options), make(add_up, options), make(read, options)
    array = np.array([0.5, 1.0, 4.0])
    _require(total(array, 3) == 27.5, "what parts return")
    try:
        total(array, 4)
    except IndexError as error:
        _require(str(error) == "no such place", "what parts raise")
    else:
        _require(False, "that parts raise")
    _require(not value.overloads and len(value.part.overloads) == 1, "parts")
    (made,) = value.part.overloads.values()
    kept = _PartFiles(None)
    written = cast(Any, serialize.dumps)(kept.reduce(made))
    again.part = again.make_part()
    read_back = kept.rebuild(again.targetctx, pickle.loads(written))
    place = (read_back.entry_point, read_back.fndesc, [read_back.library])
    again.targetctx.insert_user_function(*place)
    again.part.add_overload(read_back)
    _require(last(array) == 4.0, "what parts from disk return")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise RuntimeError(f"numba: expected {what} to be as with plain numba")
