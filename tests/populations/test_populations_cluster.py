"""Populations in partitions on a real small cluster: the bits of one process, and a machine that is lost."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import tacit
from tacit.diffusion import ChangingTruth, OutsiderPrivateDiffusion
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.engines import Cluster
from tacit.graphs import barabasi_albert, watts_strogatz

pytest.importorskip("ray", reason="Ray is not installed: pip install 'tacit[ray]'")

#: Two machines, for Ray, that notice each other's death within a second or two.
WATCHFUL = {
    "health_check_initial_delay_ms": 500,
    "health_check_period_ms": 300,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}
RUNS = {
    "diffusion": (
        OutsiderPrivateDiffusion(n_states=5, epsilon=0.5),
        ChangingTruth(network=barabasi_albert(300, 2, seed=3), flip_prob=0.1),
    ),
    "dynamics": (
        LearningDynamics(
            n_options=4,
            n_agents=60,
            epsilon=1.0,
            engine="endpoints",
            tokens=9,
            walk_length=3,
            delay=1,
        ),
        SocialOptions(qualities=(0.9, 0.6, 0.3, 0.1), network=watts_strogatz(60, 4, 0.2, seed=1)),
    ),
}


@pytest.fixture(scope="module")
def machines():
    """A cluster of two machines with one core each, and how to lose the second."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster as Machines

    cluster = Machines(
        initialize_head=True, head_node_args={"num_cpus": 1, "_system_config": WATCHFUL}
    )
    cluster.add_node(num_cpus=1)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
    ray.init(
        address=cluster.address,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": paths}},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def play(name, **settings):
    policy, environment = RUNS[name]
    result = tacit.simulate(policy, environment, horizon=30, seed=4, checkpoints=5, **settings)
    return [result.measures[each].tobytes() for each in sorted(result.measures)] + [
        result.noise_draws.tobytes()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_actors_have_the_bits_of_one_process(name, machines):
    assert play(name, partitions=3, engine=Cluster()) == play(name)


@pytest.mark.slow
def test_a_machine_that_is_lost_in_the_middle_changes_nothing(machines, tmp_path):
    told = []

    def lose(rounds):
        told.append(rounds)
        if sum(told) == 17:
            machines.remove_node(next(iter(machines.worker_nodes)), allow_graceful=False)

    again = play(
        "diffusion",
        partitions=3,
        engine=Cluster(),
        snapshot_dir=tmp_path,
        snapshot_every=5,
        progress=lose,
    )
    assert again == play("diffusion")
    assert sum(told) == 30
    assert list(tmp_path.iterdir()) == []
