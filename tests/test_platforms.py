"""What needs POSIX says so in one sentence; simulations need none of it."""

from __future__ import annotations

import subprocess
import sys

import tacit

WINDOWS = """
import os, signal, sys
import multiprocessing.connection, multiprocessing.resource_tracker, numba, numpy, scipy.special
from numba.core import caching, codegen, serialize
import concurrent.futures.thread, importlib.metadata, tempfile, tomllib, zipfile

for name in ("fork", "register_at_fork", "getuid"):
    delattr(os, name)
for name in ("pthread_sigmask", "pthread_kill", "SIGKILL", "SIGSTOP"):
    delattr(signal, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # importing it fails
sys.platform = "win32"

import tacit
from tacit.arms import Bernoulli, UCB1
from tacit.core.processes import block_sigint, install_sigint_handler

install_sigint_handler()
with block_sigint():
    found = tacit.simulate(UCB1(n_arms=2), Bernoulli(means=(0.3, 0.7)), horizon=50, repetitions=2)
print(found.measures["regret"].shape)
try:
    tacit.Learner
except ImportError as error:
    print(error)
"""


def test_simulations_run_on_windows_and_a_learner_is_refused_in_one_sentence():
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    shape, refusal = done.stdout.splitlines()
    assert shape == "(2, 50)"
    assert refusal.startswith("tacit.Learner cannot run on Windows, because its stores need locks")


def test_public_names_are_listed_before_they_are_imported():
    script = "import sys, tacit; print(*dir(tacit)); print('numba' in sys.modules)"
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert set(tacit.__all__) <= set(out[0].split())
    assert out[1] == "False"
