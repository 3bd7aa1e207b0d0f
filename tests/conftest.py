"""What tests in several folders share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server for this session, if one can run here."""
    try:
        from databases import Postgres

        server = Postgres()
    except Exception as error:
        pytest.skip(f"no PostgreSQL can be started here: {type(error).__name__}: {error}")
    yield server
    server.close()
