"""What tests in several folders share."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Files that take ten seconds or more, the longest first: begun first, they do not run alone at the end.
LONGEST = (
    "battery/test_privacy.py",
    "battery/test_checks.py",
    "service/test_cluster.py",
    "arms/test_private_blocks.py",
    "test_docs.py",
    "battery/test_service.py",
    "service/test_dashboard.py",
    "test_cli.py",
    "test_cli_help.py",
    "simulation/test_pieces_cluster.py",
    "simulation/test_pieces.py",
    "service/test_kill.py",
    "simulation/test_audits.py",
    "clients/test_in_chromium.py",
    "engines/test_stopping.py",
    "dynamics/test_dynamics_regret.py",
    "battery/test_repeatability.py",
    "users/test_users_reports.py",
    "privacy/test_l2_laplace.py",
    "clients/test_client_audit.py",
    "engines/test_ray.py",
    "battery/test_learning.py",
    "service/test_demo.py",
    "serving/test_peers_example.py",
    "users/test_users_oracle.py",
    "test_examples.py",
    "privacy/test_audit.py",
    "service/test_service_audit.py",
    "privacy/test_channels.py",
    "dynamics/test_dynamics_neighbours.py",
    "privacy/test_audit_docs.py",
    "clients/test_typescript.py",
    "serving/test_stores.py",
    "dynamics/test_dynamics.py",
)


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    place = {here / name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


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
