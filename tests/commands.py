"""The command line in processes of its own that need not import it anew.

A server, one for each process that runs tests, has imported what commands need; for each command it forks.
The command is then a process like any other: its own folder, its own standard streams, its own exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path

_SERVER = "import commands; commands.serve()"
_IMPORTED = (
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "pandas",
    "PIL.Image",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pydantic.json_schema",
    "pydantic.type_adapter",
    "rich.markdown",
    "scipy.special",
    "tacit.papers.runner",
    "tacit.privacy.accounting",
    "tacit.report",
    "tacit.service",
    "tacit.simulation.audits",
    "tacit.simulation.exact_audits",
    "typer.rich_utils",
)


def tacit(*words, cwd):
    """Run a command to its end; return what ``subprocess.run`` does."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        told = {
            "words": [str(word) for word in words],
            "cwd": str(cwd),
            "out": str(out),
            "err": str(err),
        }
        server = _server()
        server.stdin.write(json.dumps(told) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())


@cache
def _server():
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    atexit.register(server.stdin.close)
    return server


def serve():
    """Answer each line of the standard input, a command, with its exit code."""
    import tacit.cli

    get_ready()
    for line in sys.stdin:
        told = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(told, tacit.cli.main)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def get_ready():
    """Do once what every command would do first: import, know the registry, ready numba."""
    import gc
    import importlib

    import typer.main

    import tacit.cli
    from tacit import registry
    from tacit.generator import to_unit

    for name in _IMPORTED:
        importlib.import_module(name)
    typer.main.get_command(tacit.cli.app)
    registry.policies()
    registry.environments()
    to_unit(1)
    gc.freeze()  # what a child's collector does not look at, the child need not copy


def _become(told, main):
    for number, file in enumerate((os.devnull, told["out"], told["err"])):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT), number)
    os.chdir(told["cwd"])
    sys.argv = ["tacit", *told["words"]]
    sys.path[0] = told["cwd"]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
