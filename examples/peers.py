"""Twenty agents without a server: each a process of its own, talking over sockets on this machine.

    python examples/peers.py                 # twenty peers; one is killed half way and never comes back
    python examples/peers.py --restart       # it comes back, and goes on from its saved state

They track a truth that changes every round while one state dominates. Nobody waits for anybody: a
peer steps when its clock ticks, with whatever has arrived. Losses and signals leave a process only
through noise from the operating system.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from pathlib import Path

import numpy as np

from tacit.diffusion import ChangingTruth, SpyPrivateDiffusion
from tacit.diffusion.table import loss_at, signal_at, write_truth
from tacit.graphs import watts_strogatz
from tacit.serving.peers import DiffusionPeer

STATES, SEED, TICK = 4, 11, 0.03
POLICY = SpyPrivateDiffusion(n_states=STATES, epsilon=2.0, signal_epsilon=1.0)


def peer_of(world: ChangingTruth, rounds: int, k: int, path: Path | None) -> DiffusionPeer:
    """Return agent k; the table stands for what its own senses would tell it."""
    table, truth = world.table(SEED, 0, rounds + 2), np.zeros(1, np.int64)
    columns = world.mixing_matrix.columns
    hears = {}
    for i in range(columns.indptr[k], columns.indptr[k + 1]):
        hears[int(columns.senders[i])] = float(columns.weights[i])
    tells = [j for j in hears if j != k]  # friendship is mutual here

    def true_state(t: int) -> int:
        write_truth(table, t, truth)
        return int(truth[0])

    return DiffusionPeer(
        POLICY,
        k,
        hears,
        tells,
        signal=lambda t: signal_at(table, t, k, true_state(t)),
        loss=lambda t, state: loss_at(table, t, k, state, true_state(t)),
        path=path,
    )


class Line:
    """A connection to another peer that is made again whenever it breaks; what cannot go is lost."""

    def __init__(self, port: int) -> None:
        self.port, self.writer = port, None

    async def send(self, message: bytes) -> None:
        """Send one message, or lose it."""
        try:
            if self.writer is None:
                _, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            self.writer.write(message + b"\n")
            await self.writer.drain()
        except OSError:
            self.writer = None


async def live(peer: DiffusionPeer, listener: socket.socket, ports: list[int], rounds: int) -> None:
    """Step at every tick until all rounds are played."""
    inbox: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                inbox.append(line)
        except (OSError, asyncio.CancelledError):
            writer.close()

    server = await asyncio.start_server(listen, sock=listener)
    lines = [Line(port) for port in ports]
    outgoing = list(peer.outbox)  # after a restart: the same bytes again
    while peer.round < rounds:
        for to, message in outgoing:
            await lines[to].send(message)
        await asyncio.sleep(TICK)
        arrived, inbox[:] = list(inbox), []
        outgoing = peer.step(arrived)
    server.close()  # no waiting for the others to hang up: they would wait for this one


def process(world, rounds, k, listener, ports, path, result) -> None:
    """Be one peer, and say at the end what it believes."""
    peer = peer_of(world, rounds, k, path)
    asyncio.run(live(peer, listener, ports, rounds))
    result.send((peer.belief, peer.refused))


def main(peers: int, rounds: int, restart: bool) -> None:
    """Start all peers, kill one half way, and print what the others believe."""
    world = ChangingTruth(
        n_states=STATES, dominance=0.8, network=watts_strogatz(peers, 4, 0.2, seed=3)
    )
    dominant = int(world.table(SEED, 0, rounds).dominant[0, 0])
    warm = peer_of(world, rounds, 0, None)  # compile before there are many processes
    warm.step()
    warm.step()
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(peers)]
    ports = [each.getsockname()[1] for each in listeners]
    fork = multiprocessing.get_context("fork")
    results, running = {}, {}
    victim = peers // 2

    with tempfile.TemporaryDirectory() as folder:

        def begin(k: int) -> None:
            results[k], sending = fork.Pipe(duplex=False)
            path = Path(folder) / f"peer-{k}.npz"
            arguments = (world, rounds, k, listeners[k], ports, path, sending)
            running[k] = fork.Process(target=process, args=arguments)
            running[k].start()
            sending.close()

        print(f"{peers} peers on ports {ports[0]} to {ports[-1]}, {rounds} rounds", flush=True)
        for k in range(peers):
            begin(k)
        time.sleep(rounds * TICK / 2)
        os.kill(running[victim].pid, signal.SIGKILL)
        running[victim].join()
        print(f"peer {victim} was killed", flush=True)
        if restart:
            begin(victim)
            print(f"peer {victim} goes on from its saved state", flush=True)
        sure, ended, refused = 0, 0, 0
        for k in range(peers):
            try:
                belief, bad = results[k].recv()
            except EOFError:
                print(f"  peer {k:2d}: gone")
                continue
            ended, refused, sure = ended + 1, refused + bad, sure + (belief[dominant] > 0.9)
            shown = " ".join(f"{each:.3f}" for each in belief)
            print(f"  peer {k:2d}: {shown}")
        for each in running.values():
            each.join()
    print(f"{sure} of {ended} peers believe in state {dominant}; {refused} messages refused")
    print(POLICY.guarantee(rounds).sentence())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--restart", action="store_true")
    given = parser.parse_args()
    main(given.peers, given.rounds, given.restart)
