"""What tests in several folders share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# The processes of the tests are Tacit's own; `make plain` says otherwise.
os.environ.setdefault("TACIT_PLAIN_NUMBA", "0")

#: Files that take five seconds or more: those that wait (for services, browsers, clusters) among those that
#: compute, the longest of either first. Begun first, none runs alone at the end, and the cores rarely wait.
LONGEST = (
    "engines/test_ray.py",
    "battery/test_privacy.py",
    "battery/test_checks.py",
    "service/test_cluster.py",
    "test_docs.py",
    "populations/test_populations_cluster.py",
    "battery/test_service.py",
    "service/test_service_audit.py",
    "populations/test_populations.py",
    "clients/test_in_chromium.py",
    "test_cli_help.py",
    "clients/test_client_audit.py",
    "test_cli.py",
    "simulation/test_audits.py",
    "service/test_dashboard.py",
    "test_kernels.py",
    "simulation/test_exact_audits.py",
    "serving/test_peers_example.py",
    "arms/test_private_blocks.py",
    "privacy/test_audit.py",
    "serving/test_forks.py",
    "dynamics/test_dynamics_regret.py",
    "contextual/test_users_reports.py",
    "service/test_demo.py",
    "privacy/test_channels.py",
    "test_examples.py",
    "service/test_http.py",
    "battery/test_repeatability.py",
    "privacy/test_l2_laplace.py",
    "arms/test_changing_policies.py",
    "service/test_warm_up.py",
    "contextual/test_learned_priors.py",
    "contextual/test_restarting_linucb.py",
    "clients/test_typescript.py",
    "dynamics/test_dynamics.py",
    "diffusion/test_diffusion_neighbours.py",
    "test_bad_input.py",
    "serving/test_faults.py",
    "privacy/test_samplers.py",
    "dynamics/test_dynamics_neighbours.py",
    "serving/test_stores.py",
    "arms/test_graph_policies.py",
    "contextual/test_users_worlds.py",
    "engines/test_engines.py",
    "privacy/test_audit_docs.py",
    "arms/test_identification.py",
    "engines/test_stopping.py",
    "privacy/test_ledger.py",
    "arms/test_graph_privacy.py",
    "privacy/test_ledger_kill.py",
    "contextual/test_users_oracle.py",
    "simulation/test_grid.py",
    "service/test_patience.py",
    "arms/test_graph_regret.py",
    "privacy/test_guarantees.py",
    "diffusion/test_diffusion_pictures.py",
    "clients/test_openfeature.py",
    "arms/test_timed_corruption.py",
    "arms/test_arms_oracles.py",
    "service/test_kill.py",
    "serving/test_people.py",
    "together/test_combinations.py",
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
