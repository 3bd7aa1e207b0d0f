"""The one way to compile a kernel.

Kernels are numba functions at module level, cached on disk, free of the interpreter lock and
without ``fastmath``. Four things that numba does by default are mended here, without a change to numba:

- It counts references to every array of every tuple that is passed, atomically: ten times the cost
  of a round of UCB1. A kernel that allocates no array needs none of it, so by default a kernel may
  not allocate ("NRT required but not enabled" is numba's way of saying that one does), and is
  inlined where it is called. A kernel that must allocate says ``@kernel(allocates=True)``.
- It invalidates a cached kernel when its own file changes, but not when a kernel it calls, in
  another file, does. The cache is stamped with the contents of every file involved.
- It compiles a kernel anew in every process that needs it at the same time, and for each number that is
  written where it is called. Here one process compiles, for the types, and the others wait.
- It fails where the cache names a type that the code no longer has, was cut short, or has no place. Such
  a cache counts as empty; and there is always a place.

`tacit.core._numba_speedups` is a faster way to compile, for the processes that Tacit owns.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import stat
import tempfile
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar, cast, overload

try:
    import fcntl
except ImportError:  # not on this system: processes may then compile the same side by side
    fcntl = None  # type: ignore[assignment]

from numba import extending
from numba import types as kinds
from numba.core import caching, config, serialize, sigutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from tacit.core.compile_notice import notice

F = TypeVar("F", bound=Callable[..., Any])

#: True when numba is switched off (``NUMBA_DISABLE_JIT=1``) and kernels run as plain Python.
INTERPRETED: bool = bool(vars(config)["DISABLE_JIT"])

_addressed: dict[Any, Callable[..., Any]] = {}


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(*, allocates: bool = False, inlined: bool = True) -> Callable[[F], F]: ...


def kernel(
    function: F | None = None, *, allocates: bool = False, inlined: bool = True
) -> F | Callable[[F], F]:
    """Compile a module-level function, cached until it or a kernel it calls changes.

    Parameters
    ----------
    function : callable
        A function numba can compile. Other kernels must be referred to by their own names, or be what a
        function is given that makes kernels.
    allocates : bool, default False
        Whether it makes arrays. If not, it is free of reference counting and inlined.
    inlined : bool, default True
        False for a long kernel that several others call, which would be compiled into each.

    Returns
    -------
    callable
        The dispatcher, or `function` itself when numba is switched off.

    Examples
    --------
    >>> @kernel
    ... def double(x):
    ...     return 2 * x
    >>> double(21)
    42
    >>> def twice(once):
    ...     @kernel
    ...     def twice(x):
    ...         return once(once(x))
    ...     return twice
    >>> twice(double)(21)
    84
    """
    options = {"_nrt": True} if allocates else {"_nrt": False, "forceinline": inlined}
    if function is None:
        return lambda later: _compile(later, nogil=True, **options)
    return _compile(function, nogil=True, **options)


def specialise(function: F, *examples: Any) -> F:
    """Return the machine code of a kernel for arguments of the types of `examples`.

    It skips the look-up of types, which costs more than a step of a policy; the caller must never
    change the types.
    """
    return function if INTERPRETED else cast(F, _code(function, examples).entry_point)


def address_of(function: Callable[..., Any], *examples: Any) -> Any:
    """Return where the machine code of a kernel for arguments of the types of `examples` begins.

    It is meant for `call` or, where the kernel returns a float, for `evaluate`.
    """
    if INTERPRETED:
        return function
    code = _code(function, examples)
    if code.signature.return_type not in (kinds.none, kinds.float64):
        raise TypeError(
            f"address_of: expected a kernel that returns nothing or a float: {function}"
        )
    address = code.library.get_pointer_to_function(code.fndesc.llvm_func_name)
    _addressed[address] = function
    return address


def call(address: Any, arguments: tuple[Any, ...]) -> None:
    """Call, from a kernel, the kernel whose `address_of` was taken for these types of arguments.

    A loop that is handed what it calls is compiled in a fraction of the time of one that calls it
    by name, and runs the very machine code that others run.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def add(x, total):
    ...     total[0] += x
    >>> @kernel
    ... def often(address, arguments, times):
    ...     for _ in range(times):
    ...         call(address, arguments)
    >>> arguments = (0.5, np.zeros(1))
    >>> often(address_of(add, *arguments), arguments, 10)
    >>> arguments[1]
    array([5.])
    """
    address(*arguments)


def evaluate(address: Any, arguments: tuple[Any, ...]) -> Any:
    """Call a kernel as `call` does, and return the float that it returns."""
    return address(*arguments)


def interpreted(
    function: Callable[..., Any], instead: Mapping[Any, Callable[..., Any]]
) -> Callable[..., Any]:
    """Return a kernel as plain Python, and with it all it calls, some of them exchanged.

    Parameters
    ----------
    function : callable
        A kernel.
    instead : mapping from kernels to functions
        What is called instead of a kernel, by whatever kernel calls it.

    Examples
    --------
    >>> @kernel
    ... def half(x):
    ...     return x / 2
    >>> @kernel
    ... def quarter(x):
    ...     return half(half(x))
    >>> interpreted(quarter, {half: lambda x: f"half of {x}"})("a cake")
    'half of half of a cake'
    """
    twins: dict[int, Callable[..., Any]] = {id(old): new for old, new in instead.items()}

    def through(address: Any, arguments: tuple[Any, ...]) -> Any:
        return twin(_addressed.get(address, address))(*arguments)

    twins[id(call)] = twins[id(evaluate)] = through

    def twin(old: Any) -> Callable[..., Any]:
        if id(old) not in twins:
            plain = getattr(old, "py_func", old)
            names = dict(plain.__globals__)
            given = [types.CellType(value) for value in _closure(plain)]
            twins[id(old)] = made = types.FunctionType(
                plain.__code__, names, plain.__name__, plain.__defaults__, tuple(given)
            )
            for name in _names(plain.__code__):
                value = names.get(name)
                if exchangeable(value):
                    names[name] = twin(value)
            for cell in given:
                if exchangeable(cell.cell_contents):
                    cell.cell_contents = twin(cell.cell_contents)
            return made
        return twins[id(old)]

    def exchangeable(value: Any) -> bool:
        return id(value) in twins or isinstance(value, _Kernel | types.FunctionType)

    return twin(function)


def _names(code: types.CodeType) -> frozenset[str]:
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))


def _lower_call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    convention, given = context.call_conv, tuple(signature.args[1])
    returned = signature.return_type
    pointer = convention.get_function_type(returned, given).as_pointer()
    function = builder.inttoptr(values[0], pointer)
    arguments = [builder.extract_value(values[1], i) for i in range(len(given))]
    status, result = convention.call_function(builder, function, returned, given, arguments)
    with builder.if_then(status.is_error, likely=False):
        convention.return_status_propagate(builder, status)
    return context.get_dummy_value() if returned == kinds.none else result


_numba: Any = extending
_numba.type_callable(call)(lambda context: lambda address, arguments: kinds.none)
_numba.type_callable(evaluate)(lambda context: lambda address, arguments: kinds.float64)
for _function in (call, evaluate):
    _numba.lower_builtin(_function, kinds.Integer, kinds.BaseTuple)(_lower_call)


def _code(function: Callable[..., Any], examples: tuple[Any, ...]) -> Any:
    dispatcher: Any = function
    signature = tuple(dispatcher.typeof_pyval(example) for example in examples)
    dispatcher.compile(signature)
    return dispatcher.overloads[signature]


def _compile(function: F, **options: bool) -> F:
    if INTERPRETED:
        return function
    if parts := [_name(part) for part in _closure(function) if isinstance(part, _Kernel)]:
        # It is kept, and linked, by the names of what it was made of.
        function.__qualname__ = "_of_".join([function.__name__, *parts])
    return cast(F, _new_kernel(function, options))


def _new_kernel(function: Any, options: dict[str, bool], *, within: bool = False) -> Any:
    targets = {"nopython": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": within}
    made = _Kernel(py_func=function, targetoptions=targets | options)
    made.within, made.options = within, options
    return made


class _Plain:
    """How kernels are compiled: by numba as it is. `tacit.core._numba_speedups.Fast` is the other way."""

    def callee(self, kernel: Any) -> Any:
        """Return what other kernels call."""
        return kernel

    def wrap_files(self, impl: Any) -> Any:
        """Return how kernels are written to disk, given how numba does."""
        return impl

    @contextmanager
    def compiling(self, kernel: Any) -> Iterator[None]:
        """Compile `kernel` inside."""
        yield

    def finish(self, kernel: Any, code: Any) -> None:
        """Do what is left to do for a kernel that was compiled."""


_ways: list[Any] = []
"""How this process compiles; the last one counts."""
_here = threading.local()


def _way() -> Any:
    """Return how this process compiles: chosen before it compiles for the first time."""
    with _one_compiler:  # which a thread that compiles for a caller has already
        if not _ways:
            _ways.append(_Plain())
            if os.environ.get("TACIT_PLAIN_NUMBA") == "0":
                from tacit.core._numba_speedups import install

                install(_new_uncached, _ways)
        return _ways[-1]


def _new_uncached(function: Any, options: dict[str, bool]) -> Any:
    made = _new_kernel(function, options)
    made._ready = True
    return made


_one_compiler: Any = global_compiler_lock
_Base: Any = CPUDispatcher
_dumps: Any = serialize.dumps
_signature: Any = sigutils.normalize_signature


class _Kernel(CPUDispatcher):
    """A function for Python and other kernels.

    Its cache, and the twin that it may have within other kernels, are made when they are first needed: most
    kernels of a process never are.
    """

    within = False
    options: dict[str, bool]
    part: Any = None
    _ready = False

    def make_part(self: Any) -> Any:
        """Return a twin without the wrapper for Python."""
        part = _new_kernel(self.py_func, self.options, within=True)
        part._ready = self._ready and not isinstance(self._cache, caching.FunctionCache)
        return part

    def get_call_template(self: Any, args: Any, kws: Any) -> Any:
        # Numba would compile a kernel anew for each number that is written where it is called.
        args = tuple(_plain(kind) for kind in args)
        kws = {name: _plain(kind) for name, kind in kws.items()}
        return _Base.get_call_template(_way().callee(self), args, kws)

    def get_overload(self: Any, sig: Any) -> Any:
        return _Base.get_overload(_way().callee(self), sig)

    def compile(self: Any, sig: Any) -> Any:
        """Compile, unless another process does so already: then wait for it and load what it made."""
        args, _ = _signature(sig)
        self._attach_cache()
        if tuple(args) in self.overloads or self._is_cached(sig):
            return _Base.compile(self, sig)
        lacking: list[str] | None = getattr(_here, "lacking", None)
        if lacking is not None:
            lacking.append(self.py_func.__qualname__)
            raise RuntimeError(f"{lacking[-1]}: expected a kernel that was compiled before")
        with notice:
            way = _way()
            with self._alone(tuple(args)), way.compiling(self):
                code = _Base.compile(self, sig)
        way.finish(self, self.overloads[tuple(args)])
        return code

    def _attach_cache(self: Any) -> None:
        """Keep what is compiled on disk, but for a function typed at a prompt: it has no file."""
        if self._ready:
            return
        self._ready = True
        function = self.py_func
        if not Path(inspect.getsourcefile(function) or "").is_file():
            return
        try:
            kept: Any = cast(Any, _Cache)(function)
        except RuntimeError:  # not even a place for temporary files
            return
        if self.within:
            kept._impl = _way().wrap_files(kept._impl)
        name = kept._impl.filename_base + (".part" if self.within else "")
        kept._cache_file = _Index(kept._cache_path, name, function)
        self._cache = kept

    def _is_cached(self: Any, sig: Any) -> bool:
        if not isinstance(self._cache, caching.FunctionCache):
            return False
        kept: Any = self._cache
        return kept._index_key(sig, self.targetctx.codegen()) in kept._cache_file._load_index()

    @contextmanager
    def _alone(self: Any, args: tuple[Any, ...]) -> Iterator[None]:
        if fcntl is None or not isinstance(self._cache, caching.FunctionCache):
            yield
            return
        # Kernels never call each other in a circle, so processes never wait in one.
        what = f"{self._cache._cache_file._index_path} {args}"
        name = hashlib.sha256(what.encode()).hexdigest()[:32]
        if name in _held:
            yield
            return
        with (_own_folder("compiling") / name).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _held.add(name)
            try:
                yield
            finally:
                _held.discard(name)


def _plain(kind: Any) -> Any:
    is_number = isinstance(kind, kinds.IntegerLiteral | kinds.BooleanLiteral)
    return kinds.unliteral(kind) if is_number else kind  # type: ignore[no-untyped-call]


_held: set[str] = set()


@cache
def _own_folder(purpose: str) -> Path:
    """Return a folder among temporary files that only this user can write to."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = Path(tempfile.gettempdir()) / f"tacit-{purpose}-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    mine = not hasattr(os, "getuid") or (found.st_uid == user and not found.st_mode & 0o022)
    if mine and stat.S_ISDIR(found.st_mode):
        return folder
    return Path(tempfile.mkdtemp(prefix=f"tacit-{purpose}-"))


def ensure_cache_folder(otherwise: Path) -> Path | None:
    """Make a folder for compiled kernels, for this process and those it starts, if numba finds none.

    Numba keeps them beside the package, in the user's home or in ``NUMBA_CACHE_DIR``. A service of a user
    without a home, on a package that only others may write to, has none of these.

    Parameters
    ----------
    otherwise : path
        The folder. Only its owner may write there, because what is loaded from it is run.

    Returns
    -------
    path or None
        The folder if it was needed.
    """
    if INTERPRETED or _has_cache_folder():
        return None
    otherwise = otherwise.absolute()
    try:
        otherwise.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"{otherwise}: compiled kernels cannot be kept there ({error.strerror}); "
            "set NUMBA_CACHE_DIR to a folder that can be written"
        ) from None
    os.environ["NUMBA_CACHE_DIR"] = vars(config)["CACHE_DIR"] = str(otherwise)
    if not _has_cache_folder():
        raise ValueError(f"{otherwise}: expected a folder that can be written, got one that cannot")
    return otherwise


def _has_cache_folder() -> bool:
    try:
        cast(Any, caching.CompileResultCacheImpl)(ensure_cache_folder)
    except RuntimeError:
        return False
    return True


@contextmanager
def cached_only() -> Iterator[list[str]]:
    """Compile nothing in this thread: a kernel that is neither loaded nor on disk raises ``RuntimeError``.

    Returns
    -------
    list of str
        The kernels that were lacking, whatever became of the error.
    """
    before, _here.lacking = getattr(_here, "lacking", None), list[str]()
    try:
        yield _here.lacking
    finally:
        _here.lacking = before


class _TemporaryPlace(caching._CacheLocator):
    """The last place for a cache: among temporary files, where only this user can write."""

    def __init__(self, function: Any, file: str) -> None:
        self._line = function.__code__.co_firstlineno
        below: Any = self.get_suitable_cache_subpath
        self._path = str(_own_folder("kernels") / below(file))

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self._path

    def get_source_stamp(self) -> str:
        """Return nothing: the index has a stamp of its own."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the line, which tells apart kernels of one name in one file."""
        return str(self._line)

    @classmethod
    def from_function(cls, function: Any, file: str) -> _TemporaryPlace | None:
        """Return the place of a function, None where it cannot be written."""
        try:
            place = cls(function, file)
            place.ensure_cache_path()  # type: ignore[no-untyped-call]
        except OSError:
            return None
        return place


class _CacheFiles(caching.CompileResultCacheImpl):
    _locator_classes: Any = (*caching.CompileResultCacheImpl._locator_classes, _TemporaryPlace)


class _Cache(caching.FunctionCache):
    _impl_class = _CacheFiles

    def _index_key(self, sig: Any, generator: Any) -> Any:
        """Return what a signature is found by; kernels that a kernel was given count by their names."""
        function: Any = cast(Any, self)._py_func
        given = [_name(each) if isinstance(each, _Kernel) else each for each in _closure(function)]
        parts = (function.__code__.co_code, _dumps(given))
        hashes = tuple(hashlib.sha256(part).hexdigest() for part in parts)
        return sig, generator.magic_tuple(), hashes


#: The files that say how kernels are compiled, whichever way: both have one cache.
_COMPILERS = {__file__, str(Path(__file__).with_name("_numba_speedups.py"))}


class _Index(caching.IndexDataCacheFile):
    def __init__(self, cache_path: str, filename_base: str, function: Any) -> None:
        super().__init__(cache_path, filename_base, None)  # type: ignore[no-untyped-call]
        del self._source_stamp
        self._function = function

    @cached_property
    def _source_stamp(self) -> str:
        """Of all files involved, known once the kernels exist that this one calls, which it may precede."""
        digest = hashlib.sha256()
        for file in sorted(_files_of(self._function) | _COMPILERS):
            digest.update(f"{Path(file).name}:{_hash_file(file)};".encode())
        return digest.hexdigest()

    def _load_index(self) -> Any:
        try:
            return super()._load_index()  # type: ignore[no-untyped-call]
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}


@cache
def _hash_file(file: str) -> str:
    """Return a hash of what a file says: a copy of the package, elsewhere or later, finds its kernels."""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _files_of(function: Callable[..., Any]) -> set[str]:
    """Return the files of a kernel, and of every kernel and module of this package it depends on."""
    files, seen, left = set(), {function}, [function]
    while left:
        each = left.pop()
        files.add(inspect.getsourcefile(each) or "")
        named = [each.__globals__.get(name) for name in each.__code__.co_names]
        for value in named + _closure(each):
            if isinstance(value, _Kernel) and value.py_func not in seen:
                seen.add(value.py_func)
                left.append(value.py_func)
            elif isinstance(value, types.ModuleType) and value.__name__.startswith("tacit."):
                files.add(str(value.__file__))
    return {file for file in files if Path(file).is_file()}


def _closure(function: Callable[..., Any]) -> list[Any]:
    """Return what a function was given by the function that made it."""
    return [cell.cell_contents for cell in cast(Any, function).__closure__ or ()]


def _name(part: Any) -> str:
    function = part.py_func
    return f"{function.__module__}_{function.__qualname__}".replace(".", "_")
