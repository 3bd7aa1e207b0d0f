"""The kernel decorator: the cache is hit by a second process and missed when a callee changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tacit.compiled import INTERPRETED, kernel

compiled_only = pytest.mark.skipif(INTERPRETED, reason="numba is switched off")

CALLEE = """
from tacit.compiled import kernel

@kernel
def inner(x):
    return x + {constant}
"""

CALLER = """
from tacit.compiled import kernel
from callee import inner

@kernel
def outer(x):
    return 2 * inner(x)
"""

MAIN = """
from caller import outer
value = outer(1)
stats = outer.stats
print(value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(folder: Path, code: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@compiled_only
def test_the_cache_follows_what_a_kernel_calls(tmp_path):
    (tmp_path / "callee.py").write_text(CALLEE.format(constant=1))
    (tmp_path / "caller.py").write_text(CALLER)
    assert run(tmp_path, MAIN) == ["4", "0", "1"]
    assert run(tmp_path, MAIN) == ["4", "1", "0"]
    (tmp_path / "callee.py").write_text(CALLEE.format(constant=10))
    assert run(tmp_path, MAIN) == ["22", "0", "1"]


@compiled_only
def test_the_kernels_of_a_policy_are_cached_for_the_next_process():
    code = (
        "import tacit; from tacit.arms import UCB1, Bernoulli\n"
        "tacit.simulate(UCB1(n_arms=2), Bernoulli(means=(0.2, 0.8)), horizon=10)\n"
        "stats = UCB1.run.stats\n"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    run(Path.cwd(), code, NUMBA_CACHE_DIR="")
    assert run(Path.cwd(), code, NUMBA_CACHE_DIR="") == ["1", "0"]


def test_without_numba_a_kernel_is_the_function_itself():
    code = (
        "from tacit.compiled import INTERPRETED, kernel\n"
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
    from tacit.generator import philox

    assert philox.targetoptions["nogil"]
    assert not philox.targetoptions.get("fastmath", False)
