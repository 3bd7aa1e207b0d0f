"""Peers in lock-step are the simulator; they bear losses, lies and restarts without repeating noise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tacit.core.tapes import seeded_tape
from tacit.diffusion import (
    ChangingTruth,
    DiffusionBandit,
    OutsiderPrivateDiffusion,
    SpyPrivateDiffusion,
)
from tacit.diffusion.table import loss_at, signal_at, write_truth
from tacit.dynamics import LearningDynamics, SocialOptions
from tacit.dynamics.table import signal
from tacit.graphs import erdos_renyi
from tacit.serving.peers import DiffusionPeer, DynamicsPeer

ROUNDS = 24
GRAPH = erdos_renyi(7, 0.5, seed=4)
TRUTH = ChangingTruth(n_states=4, dominance=0.7, network=GRAPH, flip_prob=0.1)
OPTIONS = SocialOptions(qualities=(0.9, 0.5, 0.2), network=GRAPH)
TRACKING = {
    "open": DiffusionBandit(n_states=4, rates="adaptive"),
    "outsiders": OutsiderPrivateDiffusion(n_states=4, epsilon=1.0),
    "outsiders, blocks": OutsiderPrivateDiffusion(n_states=4, epsilon=0.5, block=3),
    "spies": SpyPrivateDiffusion(n_states=4, epsilon=1.5, signal_epsilon=0.8),
    "spies, laplace": SpyPrivateDiffusion(n_states=4, epsilon=1.0, mechanism="laplace", block=2),
}
COPYING = {
    "bits": {},
    "sleepy": {"wake_prob": 0.7},
    "smoothed subsets": {"encoding": "subset", "smoothed": True, "rho": 0.3},
}


def copying(**changes):
    settings = {"epsilon": 2.0, "beta": 0.9, "mu": 0.05, "tokens": 6, "walk_length": 3}
    return LearningDynamics(
        n_options=3, n_agents=GRAPH.n_nodes, engine="tokens", **{**settings, **changes}
    )


def tracking_peer(policy, k, table, *, seed=None, path=None):
    columns = TRUTH.mixing_matrix.columns
    first, last = columns.indptr[k], columns.indptr[k + 1]
    hears = dict(
        zip(columns.senders[first:last].tolist(), columns.weights[first:last].tolist(), strict=True)
    )
    tells = [
        j
        for j in range(TRUTH.n_agents)
        if k in columns.senders[columns.indptr[j] : columns.indptr[j + 1]]
    ]
    truth = np.zeros(1, np.int64)

    def at(t):
        write_truth(table, t, truth)
        return truth[0]

    return DiffusionPeer(
        policy,
        k,
        hears,
        tells,
        lambda t: signal_at(table, t, k, at(t)),
        lambda t, state: loss_at(table, t, k, state, at(t)),
        seed=seed,
        path=path,
    )


def copying_peer(policy, k, table, *, seed=None, path=None):
    near = {int(j): GRAPH.neighbours(int(j)).size for j in GRAPH.neighbours(k)}
    return DynamicsPeer(
        policy, k, near, lambda t, option: bool(signal(table, t, option)), seed=seed, path=path
    )


def exchange(peers, steps, *, keep=lambda message: True, seen=None):
    """Hand messages over in lock-step; yield after every step."""
    boxes = [[] for _ in peers]
    for _ in range(steps):
        arriving, boxes = boxes, [[] for _ in peers]
        for peer in peers:
            for to, message in peer.step(arriving[peer.number]):
                if seen is not None:
                    seen.append((peer.number, message))
                if keep(message):
                    boxes[to].append(message)
        yield


@pytest.mark.parametrize("name", TRACKING)
def test_peers_who_track_a_truth_are_the_simulator(name):
    policy, table = TRACKING[name], TRUTH.table(2, 0, ROUNDS)
    trace = TRUTH.trace(ROUNDS, np.arange(1, ROUNDS + 1), record=True)
    policy.play(policy.start(table), table, seeded_tape(3), trace, 0, ROUNDS)
    peers = [tracking_peer(policy, k, table, seed=3) for k in range(TRUTH.n_agents)]
    for t, _ in enumerate(exchange(peers, ROUNDS + 1)):
        if t > 0:
            assert [peer.choice for peer in peers] == trace.decisions[t - 1].tolist()
            beliefs = np.array([peer.belief for peer in peers])
            assert beliefs.tobytes() == trace.beliefs[t - 1].tobytes()
    assert all(peer.refused == 0 for peer in peers)


@pytest.mark.parametrize("name", COPYING)
def test_peers_who_copy_are_the_simulator(name):
    policy, table, rounds = copying(**COPYING[name]), OPTIONS.table(2, 0, 12), 12
    state, trace = policy.start(table), OPTIONS.trace(rounds, np.array([rounds]))
    adoptions = []
    for t in range(rounds):
        policy.play(state, table, seeded_tape(3), trace, t, t + 1)
        adoptions.append(state.adoption.tolist())
    peers = [copying_peer(policy, k, table, seed=3) for k in range(GRAPH.n_nodes)]
    for step, _ in enumerate(exchange(peers, rounds * policy.hops + 1)):
        if step > 0 and step % policy.hops == 0:
            mine = [-1 if peer.adoption is None else peer.adoption for peer in peers]
            assert mine == adoptions[step // policy.hops - 1], step
    memory = np.concatenate([peer._state.memory for peer in peers])
    if policy.smoothed:
        assert memory.tobytes() == state.memory.tobytes()


def test_another_seed_is_another_run():
    policy, table = TRACKING["spies"], TRUTH.table(2, 0, ROUNDS)
    beliefs = []
    for seed in (3, 4):
        peers = [tracking_peer(policy, k, table, seed=seed) for k in range(TRUTH.n_agents)]
        for _ in exchange(peers, ROUNDS):
            pass
        beliefs.append([peer.belief for peer in peers])
    assert beliefs[0] != beliefs[1]


def test_messages_may_be_lost_late_and_doubled():
    rng = np.random.default_rng(1)
    table = TRUTH.table(2, 0, 600)
    peers = [tracking_peer(TRACKING["open"], k, table) for k in range(TRUTH.n_agents)]
    late: list[tuple[int, bytes]] = []
    boxes: list[list[bytes]] = [[] for _ in peers]
    for _ in range(600):
        arriving, boxes = boxes, [[] for _ in peers]
        late, due = [], late
        for to, message in due:
            boxes[to] += [message, message]
        for peer in peers:
            for to, message in peer.step(arriving[peer.number]):
                luck = rng.random()
                if luck < 0.3:
                    late.append((to, message))
                elif luck < 0.7:
                    boxes[to].append(message)
    dominant = table.dominant[0, 0]
    assert min(peer.belief[dominant] for peer in peers) > 0.9
    assert all(peer.refused == 0 for peer in peers)


def test_tokens_may_be_lost():
    rng = np.random.default_rng(1)
    table = OPTIONS.table(2, 0, 200)
    policy = copying(epsilon=8.0, tokens=20)
    peers = [copying_peer(policy, k, table) for k in range(GRAPH.n_nodes)]
    for _ in exchange(peers, 200 * policy.hops, keep=lambda message: rng.random() < 0.7):
        pass
    adopted = [peer.adoption for peer in peers]
    assert adopted.count(0) >= adopted.count(1) + adopted.count(2)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"kind": "tacit-diffusion/2", "from": 1, "round": 0, "p": [1, 0, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": "1", "round": 0, "p": [1, 0, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": 0, "round": 0, "p": [1, 0, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": 99, "round": 0, "p": [1, 0, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0.5, "p": [1, 0, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0, "p": [1, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0, "p": [NaN, 0, 0, 1]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0, "p": [2, -1, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0, "p": [1, 1, 0, 0]}',
        b'{"kind": "tacit-diffusion/1", "from": NEAR, "round": 0, "p": [[1], 0, 0, 0]}',
    ],
)
def test_a_bad_message_is_counted_and_changes_nothing(message):
    near = str(int(GRAPH.neighbours(0)[0])).encode()
    table = TRUTH.table(2, 0, ROUNDS)
    clean, told = (tracking_peer(TRACKING["spies"], 0, table, seed=1) for _ in range(2))
    clean.step()
    told.step([message.replace(b"NEAR", near)])
    assert (clean.refused, told.refused) == (0, 1)
    clean.step()
    told.step()
    assert clean.belief == told.belief


@pytest.mark.parametrize(
    "token",
    [
        [0, 1, 0, 1],
        [0, 1, 0, 0, 1],
        [0, 1, 0, 4, 1],
        [0, 99, 0, 1, 1],
        [0, 1, 6, 1, 1],
        [0, 1, 0, 1, 8],
        [0, -1, 0, 1, 1],
        [0, 1, 0, 1, 0.5],
        "token",
        [2**70, 1, 0, 1, 1],
    ],
)
def test_a_bad_token_is_counted_and_not_passed_on(token):
    peer = copying_peer(copying(), 0, OPTIONS.table(2, 0, 5), seed=1)
    sender = int(GRAPH.neighbours(0)[0])
    content = {"kind": peer.kind, "from": sender, "tokens": [token]}
    plain = copying_peer(copying(), 0, OPTIONS.table(2, 0, 5), seed=1)
    assert peer.step([json.dumps(content).encode()]) == plain.step()
    assert peer.refused == 1


def crash_and_restore(make, steps, tmp_path, hops=1):
    """Play with a crash after every step, each time before or after sending; return what was sent."""
    peers = {k: make(k, tmp_path / f"{k}.npz") for k in range(GRAPH.n_nodes)}
    boxes = {k: [] for k in peers}
    sent, rng = [], np.random.default_rng(5)
    for _ in range(steps):
        arriving, boxes = boxes, {k: [] for k in peers}
        for k, peer in peers.items():
            out = peer.step(arriving[k])
            for again in range(int(rng.integers(3))):  # dies and starts again, perhaps twice
                restarted = make(k, tmp_path / f"{k}.npz")
                assert restarted.outbox == out, again
                peers[k] = restarted
            for to, message in out:
                sent.append((k, message))
                boxes[to].append(message)
    return sent


@pytest.mark.parametrize("name", ["spies", "outsiders, blocks"])
def test_after_a_restart_no_round_is_told_twice_with_other_noise(name, tmp_path):
    table = TRUTH.table(2, 0, 40)

    def make(k, path):
        return tracking_peer(TRACKING[name], k, table, path=path)

    told: dict[tuple[int, int], set[str]] = {}
    for k, message in crash_and_restore(make, 15, tmp_path):
        content = json.loads(message)
        told.setdefault((k, content["round"]), set()).add(str(content["p"]))
    assert len(told) >= 15 * GRAPH.n_nodes // TRACKING[name].params.block
    assert all(len(each) == 1 for each in told.values())


def test_after_a_restart_no_adoption_is_perturbed_twice(tmp_path):
    table, policy = OPTIONS.table(2, 0, 40), copying()

    def make(k, path):
        return copying_peer(policy, k, table, path=path)

    told: dict[tuple[int, int], set[int]] = {}
    for _, message in crash_and_restore(make, 5 * policy.hops, tmp_path):
        for t, origin, _, _, bits in json.loads(message)["tokens"]:
            told.setdefault((t, origin), set()).add(bits)
    assert len(told) == 5 * GRAPH.n_nodes
    assert all(len(each) == 1 for each in told.values())


def test_a_peer_that_forgets_would_be_caught(tmp_path):
    """The same crashes without a file: other noise for the same round."""
    table = TRUTH.table(2, 0, 40)
    p = [
        json.loads(tracking_peer(TRACKING["spies"], 0, table).step()[0][1])["p"] for _ in range(40)
    ]
    assert len({str(each) for each in p}) > 1


def test_a_saved_peer_goes_on_as_if_nothing_had_happened(tmp_path):
    table, path = TRUTH.table(2, 0, 40), tmp_path / "peer.npz"
    whole = tracking_peer(TRACKING["spies"], 0, table, seed=2)
    for t in range(10):
        saved = tracking_peer(TRACKING["spies"], 0, table, seed=2, path=path)
        assert saved.round == max(0, t - 1)
        assert saved.step() == whole.step()
    assert saved.belief == whole.belief
    assert (path.stat().st_mode & 0o077) == 0


def test_a_file_of_another_peer_is_refused(tmp_path):
    path = tmp_path / "peer.npz"

    def peer(number, policy):
        silence = (lambda t: 0.0), (lambda t, state: 0.0)
        return DiffusionPeer(policy, number, {number: 1.0}, [], *silence, path=path)

    peer(0, TRACKING["spies"]).step()
    with pytest.raises(ValueError, match="expected number the saved 0"):
        peer(1, TRACKING["spies"])
    with pytest.raises(ValueError, match="expected policy the saved"):
        peer(0, TRACKING["outsiders"])


def test_what_a_peer_cannot_be_is_refused():
    published = SpyPrivateDiffusion(n_states=4, epsilon=1.0, variant="published", horizon=9)
    table = TRUTH.table(2, 0, 4)
    with pytest.raises(ValueError, match="DiffusionPeer: expected policy corrected"):
        tracking_peer(published, 0, table)
    with pytest.raises(ValueError, match="hears weights that add up to 1"):
        DiffusionPeer(TRACKING["open"], 0, {0: 0.5}, [], lambda t: 0.0, lambda t, s: 0.0)
    with pytest.raises(ValueError, match="DynamicsPeer: expected number below 7, got 7"):
        DynamicsPeer(copying(), 7, {0: 1}, lambda t, option: True)
    with pytest.raises(ValueError, match="DynamicsPeer: expected policy corrected, of the engine"):
        copying_peer(copying(delay=1), 0, OPTIONS.table(2, 0, 4))
    peer = DiffusionPeer(TRACKING["open"], 0, {0: 1.0}, [], lambda t: 0.0, lambda t, s: 2.0)
    peer.step()
    with pytest.raises(ValueError, match=r"expected loss in \[0, 1\], got 2.0"):
        peer.step()


def test_messages_fit_the_published_schema():
    jsonschema = pytest.importorskip("jsonschema")
    path = Path(__file__).parents[2] / "schemas" / "peer-message.schema.json"
    check = jsonschema.Draft202012Validator(json.loads(path.read_text())).validate
    seen: list[tuple[int, bytes]] = []
    table = TRUTH.table(2, 0, ROUNDS)
    for _ in exchange([tracking_peer(TRACKING["spies"], k, table) for k in range(7)], 3, seen=seen):
        pass
    options = OPTIONS.table(2, 0, ROUNDS)
    for _ in exchange([copying_peer(copying(), k, options) for k in range(7)], 3, seen=seen):
        pass
    assert len({json.loads(message)["kind"] for _, message in seen}) == 2
    for _, message in seen:
        check(json.loads(message))
    with pytest.raises(jsonschema.ValidationError):
        check({"kind": "tacit-diffusion/1", "from": 0, "round": 0})


def test_the_page_about_peers_runs(capsys):
    text = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
    code = text.partition("```python\n")[2].partition("```")[0]
    exec(compile(code, "peers.md", "exec"), {})
    assert capsys.readouterr().out.count("[") == 2
