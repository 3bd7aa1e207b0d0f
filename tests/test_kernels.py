"""The kernel decorator: the cache is hit by a second process and missed when a callee changes."""

from __future__ import annotations

import importlib
import operator
import os
import pkgutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit import arms, contextual, diffusion, dynamics
from tacit.core import _numba_speedups
from tacit.core.kernels import INTERPRETED, address_of, call, kernel

PLAIN = os.environ["TACIT_PLAIN_NUMBA"] != "0"

compiled_only = pytest.mark.skipif(INTERPRETED, reason="numba is switched off")
speedups_only = pytest.mark.skipif(INTERPRETED or PLAIN, reason="numba is as it is")

CALLEE = """
from tacit.core.kernels import kernel

@kernel
def inner(x):
    return x + {constant}
"""

CALLER = """
from tacit.core.kernels import kernel
from callee import inner

@kernel
def outer(x):
    return 2 * inner(x)
"""

MAIN = """
import below, caller, made
for outer in (caller.outer, below.outer, made.four, made.same):
    value, stats = outer(1), outer.stats
    print(value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
print(made.exchanged)
"""

BELOW = """
from tacit.core.kernels import kernel
from callee import inner

@kernel
def outer(x):
    return 2 * between(x)

@kernel
def between(x):
    return inner(x)
"""

MAKER = """
from tacit.core.kernels import kernel

def twice(once):
    @kernel
    def both(x):
        return once(once(x))
    return both
"""

MADE = """
from tacit.core.kernels import interpreted, kernel
from callee import inner
from maker import twice

@kernel
def negative(x):
    return -x

four, same = twice(twice(inner)), twice(negative)
exchanged = interpreted(four, {inner: lambda x: x + 0.5})(1)
"""


def run(folder: Path, code: str, **environment: str | None) -> list[str]:
    known = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",  # Python takes files of one second and size for the same
        **environment,
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={name: value for name, value in known.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What three processes print, one after the other; before the last, `inner` is changed."""
    folder = tmp_path_factory.mktemp("kernels")
    files = {"caller": CALLER, "below": BELOW, "maker": MAKER, "made": MADE}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "callee.py").write_text(CALLEE.format(constant=1))
    found = [run(folder, MAIN), run(folder, MAIN)]
    (folder / "callee.py").write_text(CALLEE.format(constant=10))
    return [*found, run(folder, MAIN)]


HITS = [["0", "1"], ["1", "0"], ["0", "1"]]


@compiled_only
def test_the_cache_follows_what_a_kernel_calls(printed):
    assert [words[:1] for words in printed] == [["4"], ["4"], ["22"]]
    assert [words[1:3] for words in printed] == HITS


@compiled_only
def test_the_cache_follows_what_is_defined_below_its_caller(printed):
    assert [words[3:4] for words in printed] == [["4"], ["4"], ["22"]]
    assert [words[4:6] for words in printed] == HITS


@compiled_only
def test_kernels_made_of_kernels_are_cached_by_what_they_are_made_of(printed):
    assert [words[6] for words in printed] == ["5", "5", "41"]
    assert [words[7:9] for words in printed] == HITS
    assert [words[9:] for words in printed] == [
        ["1", "0", "1", "3.0"],
        ["1", "1", "0", "3.0"],
        ["1", "1", "0", "3.0"],
    ]


SHAPES = """
from typing import NamedTuple

class {name}(NamedTuple):
    x: float
"""

ANY_SHAPE = """
from tacit.core.kernels import kernel

@kernel
def double(shape):
    return 2 * shape.x
"""


@compiled_only
def test_a_cache_that_names_a_lost_type_counts_as_empty(tmp_path):
    (tmp_path / "any_shape.py").write_text(ANY_SHAPE)
    for name in ("Circle", "Square"):
        (tmp_path / "shapes.py").write_text(SHAPES.format(name=name))
        code = f"import shapes, any_shape; print(any_shape.double(shapes.{name}(1.5)))"
        assert run(tmp_path, code) == ["3.0"]


@pytest.mark.slow
@compiled_only
def test_kernels_and_the_loop_of_an_audit_are_cached_for_the_next_process():
    code = (
        "import tacit; from tacit.arms import UCB1, Bernoulli\n"
        "from tacit.simulation import audits\n"
        "policy, environment = UCB1(n_arms=2), Bernoulli(means=(0.2, 0.8))\n"
        "tacit.simulate(policy, environment, horizon=10)\n"
        "run = audits.PolicyRun(policy=policy, environment=environment, horizon=10, released=2)\n"
        "run(environment.table(0, 0, 10), 5, seed=0)\n"
        "for stats in (UCB1.kernels.run.stats, audits._play_all.stats):\n"
        "    print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    run(Path.cwd(), code, NUMBA_CACHE_DIR="")
    assert run(Path.cwd(), code, NUMBA_CACHE_DIR="") == ["1", "0", "1", "0"]


@kernel
def subtract(amount: Any, numbers: Any) -> None:
    if numbers[0] < amount:
        raise ValueError("not enough left")
    numbers[0] -= amount


@kernel
def subtract_often(address: Any, arguments: Any, times: Any) -> None:
    for _ in range(times):
        call(address, arguments)


def test_a_kernel_calls_what_it_is_handed_and_passes_errors_on():
    arguments = (2.0, np.array([7.0]))
    address = address_of(subtract, *arguments)
    subtract_often(address, arguments, 3)
    assert arguments[1][0] == 1.0
    with pytest.raises(ValueError, match="not enough left"):
        subtract_often(address, arguments, 1)
    assert arguments[1][0] == 1.0


@compiled_only
def test_only_a_kernel_that_returns_nothing_or_a_float_has_an_address():
    from tacit.arms.table import row_of

    with pytest.raises(TypeError, match="returns nothing or a float"):
        address_of(row_of, np.zeros(3, np.int64), 1, 0, 0)


WRITTEN = """
@kernel
def plus(x, written):
    return x + written

@kernel
def plus_several(x):
    return plus(plus(plus(x, 1), 2), written=True)
"""


@compiled_only
def test_a_kernel_is_not_compiled_for_each_number_that_is_written():
    made: dict[str, Any] = {"kernel": kernel}
    exec(WRITTEN, made)
    assert made["plus_several"](1.0) == 5.0
    callee = made["plus"] if PLAIN else made["plus"].part
    assert {str(kinds) for kinds in callee.overloads} == {
        "(float64, int64)",
        "(float64, bool)",
    }


@speedups_only
def test_types_are_found_once_for_the_same_options(monkeypatch):
    searched = []

    def find(function, *asked):
        searched.append(function.typing_key)
        return find_before(function, *asked)

    find_before = _numba_speedups._find
    monkeypatch.setattr(_numba_speedups, "_find", find)
    monkeypatch.setattr(_numba_speedups, "_found", {})
    made: dict[str, Any] = {"kernel": kernel}
    counts = []
    # What a kernel that may allocate is told is not told to one that may not.
    for how in ("kernel", "kernel", "kernel(allocates=True)"):
        exec(f"@{how}\ndef product(x, y):\n    return x * y", made)
        assert made["product"](2.0, 3) == 6.0
        counts.append(searched.count(operator.mul))
    assert 0 < counts[0] == counts[1] < counts[2]


@speedups_only
def test_what_others_compile_is_not_remembered(monkeypatch):
    import numba

    monkeypatch.setattr(_numba_speedups, "_found", {})
    made: dict[str, Any] = {"njit": numba.njit}
    exec("@njit\ndef product(x, y):\n    return x * y", made)
    assert made["product"](2.0, 3) == 6.0
    assert not _numba_speedups._found


@compiled_only
def test_options_are_equal_if_all_of_them_are():
    from numba.core.compiler import Flags

    plain, said, other = Flags(), Flags(), Flags()
    said.nrt, other.nrt = plain.nrt, not plain.nrt
    assert plain == said
    assert hash(plain) == hash(said)
    assert other not in (plain, said)
    assert plain != "options"


WHOSE = """
import sys
from numba.core import codegen, targetconfig
from numba.core.types import functions
import tacit.arms
{before}
from any_shape import double
from shapes import Shape

assert double(Shape(1.5)) == 3.0
methods = [
    functions.BaseFunction.get_call_type,
    targetconfig.TargetConfig.__eq__,
    targetconfig.TargetConfig.__hash__,
    codegen.JITCPUCodegen.create_library,
    codegen.JITCPUCodegen.unserialize_library,
]
print(*{{each.__module__.partition(".")[0] for each in methods}}, double.part is not None)
"""

TAKE_AWAY = """
from tacit.core import _numba_speedups
def fail(*_): raise AttributeError("numba has changed")
_numba_speedups._PartFiles.rebuild = fail
"""


@compiled_only
@pytest.mark.parametrize(
    ("switch", "before", "whose"),
    [
        (None, "", "numba"),
        ("1", "", "numba"),
        ("0", "", "tacit"),
        ("0", TAKE_AWAY, "numba"),
    ],
    ids=["library", "switched off", "own", "self-test fails"],
)
def test_numba_is_changed_only_where_tacit_owns_the_process(tmp_path, switch, before, whose):
    """Issue 29: never where somebody imports Tacit, and not where the self-test fails."""
    (tmp_path / "any_shape.py").write_text(ANY_SHAPE)
    (tmp_path / "shapes.py").write_text(SHAPES.format(name="Shape"))
    said = run(tmp_path, WHOSE.format(before=before), TACIT_PLAIN_NUMBA=switch)
    assert said == [whose, "False"]


@compiled_only
def test_the_command_line_compiles_in_the_faster_way():
    code = (
        "import os, sys; sys.argv = ['tacit', '--version']\n"
        "from tacit.__main__ import main\n"
        "try:\n    main()\nfinally:\n    print(os.environ['TACIT_PLAIN_NUMBA'])"
    )
    assert run(Path.cwd(), code, TACIT_PLAIN_NUMBA=None)[-1] == "0"
    assert run(Path.cwd(), code, TACIT_PLAIN_NUMBA="1")[-1] == "1"


NOWHERE = """
from tacit.core import kernels
kernels._CacheFiles._locator_classes = [kernels._TemporaryPlace]
from any_shape import double
from shapes import Shape
print(double(Shape(1.5)), sum(double.stats.cache_hits.values()))
"""


@compiled_only
def test_kernels_always_find_a_place(tmp_path):
    """Finding S1, without the service: no home, and a package that only others may write to."""
    (tmp_path / "any_shape.py").write_text(ANY_SHAPE)
    (tmp_path / "shapes.py").write_text(SHAPES.format(name="Shape"))
    place = tmp_path / "temporary"
    place.mkdir()
    there = {"TMPDIR": str(place), "NUMBA_CACHE_DIR": ""}
    assert [run(tmp_path, NOWHERE, **there) for _ in range(2)] == [["3.0", "0"], ["3.0", "1"]]
    folder = place / f"tacit-kernels-{os.getuid()}"
    assert folder.stat().st_mode & 0o777 == 0o700
    # What others can write to is not loaded.
    folder.chmod(0o777)
    assert run(tmp_path, NOWHERE, **there) == ["3.0", "0"]


def test_without_numba_a_kernel_is_the_function_itself():
    code = (
        "from tacit.core.kernels import INTERPRETED, kernel\n"
        "def f(x): return x\n"
        "print(INTERPRETED, kernel(f) is f, kernel(allocates=True)(f) is f)"
    )
    assert run(Path.cwd(), code, NUMBA_DISABLE_JIT="1") == ["True", "True", "True"]


@compiled_only
def test_a_kernel_that_allocates_must_say_so():
    def said(n):
        return np.zeros(n).sum()

    def unsaid(n):
        return np.ones(n).sum()

    assert kernel(allocates=True)(said)(3) == 0.0
    with pytest.raises(Exception, match=r"NRT|Only accept returning of array"):
        kernel(unsaid)(3)


@compiled_only
def test_kernels_release_the_interpreter_lock_and_keep_strict_arithmetic():
    from tacit.core.generator import philox

    assert philox.targetoptions["nogil"]
    assert not philox.targetoptions.get("fastmath", False)


SLOW = """
from tacit.core.compile_notice import on_compiling
from tacit.core.kernels import kernel
import sys

{functions}

@kernel
def outermost(x):
    return {calls}

on_compiling(lambda: print("compiling", file=sys.stderr))
print(outermost(1.0))
inner = (f0.part or f0).stats
print(sum(outermost.stats.cache_misses.values()), sum(inner.cache_misses.values()))
"""


def slow_module(n):
    functions = "\n".join(
        f"@kernel\ndef f{i}(x):\n    y = x\n"
        + "\n".join(f"    for j in range({k}): y = (y * x + {k}) % 7.0" for k in range(1, 6))
        + "\n    return y\n"
        for i in range(n)
    )
    return SLOW.format(functions=functions, calls=" + ".join(f"f{i}(x)" for i in range(n)))


@compiled_only
def test_two_processes_never_compile_the_same_and_say_that_they_compile(tmp_path):
    (tmp_path / "slow.py").write_text(slow_module(20))
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "slow.py"]
    started = [
        subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300) for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    values, misses = zip(*(out.splitlines() for out, _ in outputs), strict=True)
    assert len(set(values)) == 1
    assert sorted(misses) == ["0 0", "1 1"]
    for (_, complaint), missed in zip(outputs, misses, strict=True):
        if missed == "1 1":
            assert complaint == "compiling\n"
    again = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert again.stderr == ""


@compiled_only
def test_a_kernel_is_the_same_called_from_python_and_from_a_kernel():
    made: dict[str, Any] = {"kernel": kernel}  # typed in, so that no run finds it on disk
    exec("@kernel\ndef once(x):\n    return 3 * x", made)
    exec("@kernel\ndef twice(x):\n    return once(once(x))", made)
    once, twice = made["once"], made["twice"]
    assert twice(2) == 18
    assert once(2) == 6
    assert len(once.overloads) == 1
    if not PLAIN:
        assert len(once.part.overloads) == 1


def test_a_function_of_numba_serves_kernels_and_python():
    import numba

    @numba.njit
    def add(x, y):
        return x + y

    @kernel
    def thrice(x):
        return add(add(x, x), x)

    assert thrice(2) == 6
    assert add(3, 4) == 7


@compiled_only
def test_an_error_within_a_part_reaches_python():
    @kernel
    def at(array, i):
        if i >= array.size:
            raise ValueError("expected a place in the array")
        return array[i]

    @kernel(allocates=True)
    def product(left, right):
        return np.dot(left, right)[0, 0] + at(left[0], 0)

    assert product(np.ones((2, 2)), np.ones((2, 2))) == 3.0
    with pytest.raises(ValueError, match="incompatible array sizes"):
        product(np.ones((2, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="expected a place"):
        product(np.ones((1, 0)), np.ones((0, 1)))


def test_tuples_that_kernels_take_are_told_apart_by_their_names():
    """Numba knows a tuple by its name and its fields; a second one alike costs half a millisecond a call."""
    kinds = set()
    for package in (arms, contextual, diffusion, dynamics):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            held = vars(importlib.import_module(module.name)).values()
            kinds |= {kind for kind in held if isinstance(kind, type) and hasattr(kind, "_fields")}
    names = Counter((kind.__name__, kind._fields) for kind in kinds)
    assert len(names) > 30
    assert [name for name, count in names.items() if count > 1] == []
