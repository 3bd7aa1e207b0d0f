"""Both kinds of stores."""

from __future__ import annotations

import pytest

from serving.places import DatabasePlace, FilePlace


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    """Where a store lies; the test runs on each kind."""
    if request.param == "sqlite":
        return FilePlace(tmp_path)
    return DatabasePlace(tmp_path, request.getfixturevalue("postgres"))


@pytest.fixture
def database(tmp_path, postgres):
    """A schema of a PostgreSQL database."""
    return DatabasePlace(tmp_path, postgres)
