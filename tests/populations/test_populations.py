"""Populations in partitions: the bits of one process, on every engine, from whatever point they go on."""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal

import numpy as np
import pytest

import tacit
from tacit.arms import UCB1, Bernoulli
from tacit.diffusion import (
    ChangingTruth,
    DiffusionBandit,
    DiffusionLearning,
    OutsiderPrivateDiffusion,
    RecordedTruth,
    SpyPrivateDiffusion,
)
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.engines import Processes, SerialEngine
from tacit.graphs import barabasi_albert, watts_strogatz
from tacit.populations import Run, make_population, split_agents
from tacit.simulation import Study, run_study
from tiers import tiered

NETWORK = barabasi_albert(61, 2, seed=3)
GROUPS = [k * 7 % 3 for k in range(61)]
TRUTHS = {
    "one": ChangingTruth(network=NETWORK, switches=2),
    "own losses": ChangingTruth(network=NETWORK, flip_prob=0.1, losses="distance"),
    "groups": ChangingTruth(network=NETWORK, weights="metropolis", groups=GROUPS, dominance=1.0),
    "recorded": RecordedTruth(
        network=NETWORK,
        states=np.arange(40) % 5,
        signals=np.random.default_rng(1).normal(2, 1, (40, 61)),
        losses=np.random.default_rng(2).uniform(size=(40, 61, 5)),
    ),
}
TRACKERS = {
    "diffusion": DiffusionLearning(n_states=5),
    "bandit": DiffusionBandit(n_states=5),
    "adaptive": DiffusionBandit(n_states=5, rates="adaptive"),
    "outsiders": OutsiderPrivateDiffusion(n_states=5, epsilon=0.5),
    "outsiders published": OutsiderPrivateDiffusion(
        n_states=5, epsilon=1.0, variant="published", horizon=40
    ),
    "spies": SpyPrivateDiffusion(n_states=5, epsilon=1.0),
    "spies published": SpyPrivateDiffusion(
        n_states=5, epsilon=1.0, variant="published", horizon=40
    ),
}
SOCIETY = SocialOptions(qualities=(0.9, 0.6, 0.3, 0.1), network=watts_strogatz(61, 4, 0.2, seed=1))
CROWD = SocialOptions(qualities=(0.9, 0.6, 0.3, 0.1), n_agents=1300)
LATE = {"delay": 2, "loss": 0.2, "wake_prob": 0.7}
COPIERS = {
    "moments": {"smoothed": True},
    "moments late": {"encoding": "subset", "memoised": True, **LATE},
    "moments published": {"variant": "published", **LATE},
    "dealt": {"tokens": 20},
    "dealt late": {"tokens": 20, "memoised": True, **LATE},
    "endpoints": {"engine": "endpoints", "tokens": 50, "walk_length": 3},
    "endpoints late": {"engine": "endpoints", "tokens": 3, "walk_length": 1, **LATE},
    "endpoints far": {"engine": "endpoints", "tokens": 9, "walk_length": 12},
}


def copier(name, n_agents=61):
    return LearningDynamics(n_options=4, n_agents=n_agents, epsilon=1.0, **COPIERS[name])


def bits(result):
    """Return everything a result holds, as bytes."""
    kept = [result.measures[name].tobytes() for name in sorted(result.measures)]
    for trace in result.traces:
        kept += [np.asarray(array).tobytes() for array in (trace.decisions, trace.measures)]
        kept.append(getattr(trace, "beliefs", trace.decisions).tobytes())
    return [*kept, result.noise_draws.tobytes()]


def play(policy, environment, **settings):
    return bits(
        tacit.simulate(
            policy, environment, horizon=40, seed=4, checkpoints=9, record=True, **settings
        )
    )


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("tracker", tiered(TRACKERS, ("outsiders", "spies").__contains__))
def test_agents_who_track_a_truth_have_the_bits_of_one_process(tracker, truth):
    assert_same_bits(TRACKERS[tracker], TRUTHS[truth], 1, 2, 7)


@pytest.mark.parametrize("name", COPIERS)
def test_agents_who_copy_have_the_bits_of_one_process(name):
    assert_same_bits(copier(name), SOCIETY, 1, 2, 7)


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("tracker", tiered(TRACKERS, lambda tracker: tracker == "spies"))
def test_each_agent_may_be_a_piece(tracker, truth):
    assert_same_bits(TRACKERS[tracker], TRUTHS[truth], 61)


@pytest.mark.parametrize("name", tiered(COPIERS, lambda name: name == "endpoints late"))
def test_each_who_copies_may_be_a_piece(name):
    assert_same_bits(copier(name), SOCIETY, 61)


def assert_same_bits(policy, environment, *sizes):
    whole = play(policy, environment)
    for partitions in sizes:
        assert play(policy, environment, partitions=partitions, engine=SerialEngine()) == whole


@pytest.mark.parametrize("name", ["moments", "moments late", "dealt"])
def test_so_have_crowds_whose_counts_are_perturbed(name):
    policy = copier(name, 1300)
    assert play(policy, CROWD, partitions=3, engine=SerialEngine()) == play(policy, CROWD)


@pytest.mark.parametrize(
    ("policy", "environment"),
    [(TRACKERS["outsiders"], TRUTHS["groups"]), (copier("endpoints late"), SOCIETY)],
    ids=["diffusion", "dynamics"],
)
def test_processes_have_them_too(policy, environment):
    whole = play(policy, environment)
    assert play(policy, environment, partitions=5, engine=Processes(2)) == whole


class StoppedError(Exception):
    pass


def stop_at(rounds):
    played = []

    def progress(count):
        played.append(count)
        if sum(played) >= rounds:
            raise StoppedError

    return progress


@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        (TRACKERS["diffusion"], TRUTHS["own losses"]),
        (TRACKERS["spies"], TRUTHS["groups"]),
        (TRACKERS["outsiders published"], TRUTHS["recorded"]),
        (copier("moments late"), SOCIETY),
        (copier("moments", 1300), CROWD),
        (copier("endpoints late"), SOCIETY),
    ],
    ids=["diffusion", "spies", "outsiders", "moments", "crowd", "endpoints"],
)
def test_a_run_that_was_broken_off_goes_on_from_what_was_kept(policy, environment, tmp_path):
    whole = play(policy, environment)
    settings = {
        "partitions": 3,
        "engine": SerialEngine(),
        "snapshot_dir": tmp_path,
        "snapshot_every": 4,
    }
    with pytest.raises(StoppedError):
        play(policy, environment, **settings, progress=stop_at(23))
    (folder,) = tmp_path.iterdir()
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["20.npz", "partition-0-20.npz", "partition-1-20.npz", "partition-2-20.npz"]
    told = []
    assert play(policy, environment, **settings, progress=told.append) == whole
    assert told == [20] + 20 * [1]
    assert list(tmp_path.iterdir()) == []


def test_another_run_does_not_go_on_from_it(tmp_path):
    environment = TRUTHS["one"]
    settings = {
        "partitions": 3,
        "engine": SerialEngine(),
        "snapshot_dir": tmp_path,
        "snapshot_every": 4,
    }
    with pytest.raises(StoppedError):
        play(TRACKERS["spies"], environment, **settings, progress=stop_at(9))
    whole = play(TRACKERS["bandit"], environment)
    assert play(TRACKERS["bandit"], environment, **settings) == whole
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "kept",
    [pytest.param(True, id="kept"), pytest.param(False, id="not kept", marks=pytest.mark.slow)],
)
def test_a_process_that_is_killed_changes_nothing(kept, tmp_path):
    policy, environment = TRACKERS["spies"], TRUTHS["one"]
    whole = play(policy, environment)
    told, killed = [], []

    def kill(count):
        told.append(count)
        if sum(told) in (10, 25):
            killed.append(multiprocessing.active_children()[0])
            os.kill(killed[-1].pid, signal.SIGKILL)

    keep = {"snapshot_dir": tmp_path, "snapshot_every": 3} if kept else {}
    again = play(policy, environment, partitions=4, engine=Processes(2), progress=kill, **keep)
    assert again == whole
    assert len(killed) == 2


@pytest.mark.parametrize(
    ("policy", "environment"),
    [
        (TRACKERS["spies published"], TRUTHS["own losses"]),
        (copier("dealt late"), SOCIETY),
        (copier("endpoints late"), SOCIETY),
    ],
    ids=["diffusion", "dealt", "endpoints"],
)
def test_a_step_that_is_asked_for_again_says_the_same_again(policy, environment):
    run = Run(seed=4, repetition=0, horizon=40, checkpoints=np.array([40]), record=False)
    population = make_population(policy, environment, split_agents(61, 2), run)
    partitions = [population.maker(i)() for i in range(2)]
    messages, shared = [[None, None], [None, None]], None

    def reduce(method, value):
        for partition in partitions:
            value = getattr(partition, method)(value)
        return value

    for t in range(population.first, 6):
        said = []
        for _ in range(2):
            said.append(
                [partition.step(t, shared, messages[i]) for i, partition in enumerate(partitions)]
            )
            said[-1].append(
                [(partition.recorded()[1], partition.arrays()) for partition in partitions]
            )
            said[-1] = copy.deepcopy(said[-1])
        np.testing.assert_equal(said[0], said[1])
        twice = said[1][:2]
        shared = population.after_begin(t, [each.begun for each in twice], reduce)
        messages = [[each.messages[i] for each in twice] for i in range(2)]


def test_what_cannot_be_says_so():
    arms = {"horizon": 10, "partitions": 2}
    with pytest.raises(
        ValueError, match=r"simulate: expected partitions in 1\.\.61, the agents, got 62"
    ):
        play(TRACKERS["bandit"], TRUTHS["one"], partitions=62)
    with pytest.raises(
        ValueError, match="bernoulli: expected no partitions, which are for populations"
    ):
        tacit.simulate(UCB1(n_arms=2), Bernoulli(means=(0.1, 0.9)), **arms | {"partitions": 1})
    with pytest.raises(ValueError, match="expected engine and snapshots with partitions only"):
        play(TRACKERS["bandit"], TRUTHS["one"], engine="ray")


def test_a_study_in_pieces_has_the_same_bytes(tmp_path):
    study = Study(
        name="small",
        environment={"name": "changing-truth", "network": {"name": "ring", "n_nodes": 12}},
        policies=({"name": "diffusion-spies", "epsilon": 1.0}, {"name": "diffusion"}),
        horizon=30,
        repetitions=3,
    )
    whole = run_study(study, tmp_path / "whole", engine="serial").path.read_bytes()
    parts = run_study(study, tmp_path / "parts", engine="serial", partitions=3).path.read_bytes()
    assert parts == whole
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["small.parquet"]
