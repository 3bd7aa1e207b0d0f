"""Agents without a server: each runs on a device of its own and exchanges messages with its neighbours.

A peer owns no socket and no clock. ``messages = peer.step(received)`` takes the bytes that arrived and
returns the bytes to send, as pairs of a neighbour's number and a message; whoever owns the transport
moves them, and may lose, delay or repeat them. The kernels are those of the simulator: peers who are
handed each other's messages in lock-step are the simulator, bit for bit.
"""

from tacit.serving.peers.base import Peer
from tacit.serving.peers.diffusion import DiffusionPeer
from tacit.serving.peers.dynamics import DynamicsPeer

__all__ = ["DiffusionPeer", "DynamicsPeer", "Peer"]
