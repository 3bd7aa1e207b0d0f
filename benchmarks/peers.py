"""Virtual environments for the libraries that Tacit is compared with, made on first use."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

CACHE = Path(__file__).parent.parent / ".cache" / "peers"
SCRIPTS = Path(__file__).parent / "peers"
PACKAGES = {
    "river": ("river==0.26.1",),
    # The last release of obp that does not need torch; its LinUCB is that of later ones.
    "obp": (
        "obp==0.3.3",
        "numpy<1.27",
        "scipy<1.12",
        "pandas<2.2",
        "scikit-learn<1.5",
        "matplotlib<3.9",
    ),
    # The last release of SMPyBandits is of 2020 and needs libraries of before NumPy 2.
    "smpybandits": (
        "SMPyBandits==0.9.7",
        "numpy<1.27",
        "scipy<1.11",
        "pandas<2.2",
        "matplotlib<3.9",
        "scikit-learn<1.5",
        "numba<0.61",
        "tqdm",
    ),
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def python_of(peer: str, cache: Path = CACHE) -> Path:
    """Return the interpreter of a peer's environment; make the environment if need be."""
    packages = PACKAGES[peer]
    mark = hashlib.sha256(repr((packages, sys.version_info[:2])).encode()).hexdigest()[:12]
    folder = cache / f"{peer}-{mark}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making an environment for {peer} in {folder} ...", file=sys.stderr, flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *packages], check=True)
        (folder / "complete").touch()
    return python


def measure(peer: str, script: str, *arguments: str, cache: Path = CACHE) -> Any:
    """Run a script of this folder inside the peer's environment; return the JSON it prints last."""
    command = [python_of(peer, cache), SCRIPTS / script, *arguments]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=os.environ | ONE_THREAD
    )
    return json.loads(done.stdout.splitlines()[-1])
