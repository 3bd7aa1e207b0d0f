"""The command line, and Python itself, in processes of their own that need not import everything anew.

A server, one for each process that runs tests, has imported what commands need; for each command it forks.
The command is then a process like any other: its own folder, environment, standard streams, process id and
exit code, and signals find it. What a process reads only while it imports, the directory of numba's cache
say, or does at its very beginning, asks for ``afresh``.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from functools import cache
from pathlib import Path
from subprocess import PIPE, TimeoutExpired

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
    "tacit.cli.demo",
    "tacit.privacy.accounting",
    "tacit.service",
    "tacit.simulation.audits",
    "tacit.simulation.exact_audits",
    "tacit.simulation.plots",
    "tacit_studies.command",
    "tacit_studies.runner",
    "typer.rich_utils",
)
_SERVED = {
    "name": "any",
    "policy": {"name": "klucb-cf", "epsilon": 1.0},
    "options": ["red", "green", "blue"],
    "reward": {"kind": "binary", "report_after": 3600},
}


def tacit(*words, cwd):
    """Run a command to its end; return what ``subprocess.run`` does."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        with out.open("w") as stdout, err.open("w") as stderr:
            code = start(*words, cwd=cwd, stdout=stdout, stderr=stderr).wait()
        return subprocess.CompletedProcess(words, code, out.read_text(), err.read_text())


def start(*words, **how):
    """Start a command; return what ``subprocess.Popen`` does."""
    return Started("tacit", words, **how)


def start_python(*words, **how):
    """Start ``python -c CODE ...`` or ``python FILE ...``; return what ``subprocess.Popen`` does."""
    return Started("python", words, **how)


def start_afresh(*words, **how):
    """Start a command that imports everything itself."""
    return subprocess.Popen([sys.executable, "-m", "tacit", *map(str, words)], text=True, **how)


class Started:
    """A process that the server forked: the part of ``subprocess.Popen`` that tests use."""

    def __init__(
        self, what, words, cwd=None, stdout=None, stderr=None, env=None, start_new_session=False
    ):
        self.args, self.returncode = words, None
        self.stdout, out = _stream(stdout, 1)
        self.stderr, err = _stream(stderr, 2)
        self._keeper, theirs = socket.socketpair()
        request = {
            "what": what,
            "words": [str(word) for word in words],
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ if env is None else env),
            "session": start_new_session,
        }
        server = _server()
        with theirs:
            socket.send_fds(server, [b"\n"], [out, err, theirs.fileno()])
        server.sendall(json.dumps(request).encode() + b"\n")
        for file, given in ((out, stdout), (err, stderr)):
            if given == PIPE:
                os.close(file)
        self.pid = _hear(self._keeper)

    def poll(self):
        with contextlib.suppress(TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self._keeper], [], [], timeout)[0]:
                raise TimeoutExpired(self.args, timeout)
            with self._keeper:
                self.returncode = _hear(self._keeper)
                self._keeper.shutdown(socket.SHUT_WR)
                self._keeper.recv(1)  # the end: its number may be another's from now on
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout=None):
        """Return what it writes, once it and whoever shares its streams has ended."""
        said = ["", ""]

        def read(number, stream):
            with stream:
                said[number] = stream.read()

        readers = [
            threading.Thread(target=read, args=(number, stream), daemon=True)
            for number, stream in enumerate((self.stdout, self.stderr))
            if stream is not None and not stream.closed
        ]
        for each in readers:
            each.start()
        for each in readers:
            each.join(timeout)
            if each.is_alive():
                raise TimeoutExpired(self.args, timeout)
        self.wait(timeout)
        return tuple(said)


def _hear(keeper):
    """Return a number that the keeper of a process tells."""
    return int.from_bytes(keeper.recv(8, socket.MSG_WAITALL), "big", signed=True)


def _stream(given, number):
    """Return what this process reads, and the file that the other one writes to."""
    if given == PIPE:
        read, write = os.pipe()
        return os.fdopen(read), write
    return None, number if given is None else given.fileno()


@cache
def _server():
    here = str(Path(__file__).parent)
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    mine, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )

    def end():
        mine.close()
        server.wait()

    atexit.register(end)
    return mine


def serve():
    """Start what each line of the standard input, a socket, asks for; its streams come before it."""
    get_ready()
    wire = socket.socket(fileno=0)
    lines = wire.makefile()
    while True:
        news, streams, _, _ = socket.recv_fds(wire, 1, 3)
        if not news:
            return
        wanted = json.loads(lines.readline())
        if wanted["what"] == "tacit" and wanted["words"][:1] in (["serve"], ["demo"]):
            get_ready_to_serve()
        if os.fork() == 0:
            _keep(wanted, *streams)
        for each in streams:
            os.close(each)
        _bury()


def get_ready():
    """Do once what every command would do first: import, know the registry, ready numba."""
    import gc
    import importlib

    import typer.main

    import tacit.cli
    from tacit.core import registry
    from tacit.core.generator import to_unit

    for name in _IMPORTED:
        importlib.import_module(name)
    typer.main.get_command(tacit.cli.app)
    registry.policies()
    registry.environments()
    to_unit(1)
    gc.freeze()  # what a child's collector does not look at, the child need not copy


@cache
def get_ready_to_serve():
    """Load the kernels of the experiment that most services of the tests have."""
    import gc

    from tacit.service.warm_up import warm_up
    from tacit.serving.description import read_request

    warm_up(read_request(_SERVED))
    gc.freeze()


def _bury():
    """Let go of the keepers of processes that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(wanted, out, err, asker):
    """Start a process and tell its number, then its exit code; let go of it when that is known."""
    child = os.fork()
    if child == 0:
        os.close(asker)
        _become(wanted, out, err)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.close(out)
    os.close(err)
    with socket.socket(fileno=asker) as asking:
        asking.sendall(child.to_bytes(8, "big"))
        end = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        code = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        asking.sendall(code.to_bytes(8, "big", signed=True))
        asking.recv(1)
        os.waitpid(child, 0)
    os._exit(0)


def _become(wanted, out, err):
    for number, file in enumerate((os.open(os.devnull, os.O_RDWR), out, err)):
        os.dup2(file, number)
        os.close(file)
    if wanted["session"]:
        os.setsid()
    os.environ.clear()
    os.environ.update(wanted["env"])
    os.chdir(wanted["cwd"])
    code = 0
    try:
        _run(wanted["what"], wanted["words"], wanted["cwd"])
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(what, words, cwd):
    import runpy

    import tacit.cli

    sys.path[0] = cwd
    if what == "tacit":
        sys.argv = ["tacit", *words]
        tacit.cli.main()
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).parent)
        runpy.run_path(words[0], run_name="__main__")
