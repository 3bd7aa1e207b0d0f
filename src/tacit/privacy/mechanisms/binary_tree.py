"""Sums released by a binary tree over time: noise on every node, few nodes in a prefix.

References
----------
Dwork et al. (STOC 2010) and Chan et al. (TISSEC 2011): the tree. Honaker (2015): the online
combination of its nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np

from tacit.core.constraints import one_of, require
from tacit.core.kernels import kernel
from tacit.core.tapes import SECURE
from tacit.privacy.exact import secure_gaussian, secure_laplace
from tacit.privacy.mechanisms.base import VectorNoise
from tacit.privacy.mechanisms.continual_sums import (
    BALL,
    GAUSSIAN,
    LAPLACE,
    ContinualSum,
    Grid,
    Stream,
)
from tacit.privacy.mechanisms.gaussian import Gaussian, standard_normal
from tacit.privacy.mechanisms.l2_ball import BallRelease, L2Ball, ball_noise
from tacit.privacy.mechanisms.l2_laplace import L2CalibratedLaplace, L2CalibratedLaplaceRelease
from tacit.privacy.mechanisms.laplace import (
    Laplace,
    LaplaceRelease,
    laplace_steps,
    standard_laplace,
)
from tacit.privacy.releases import PureRelease, Release

_NORMS = {"laplace": "l1", "gaussian": "l2", "ball": "l2", "l2_laplace": "l2"}
_CODES = {"laplace": LAPLACE, "gaussian": GAUSSIAN, "ball": BALL, "l2_laplace": LAPLACE}


@dataclass(frozen=True, kw_only=True)
class BinaryTree(ContinualSum):
    """Every prefix sum of a sequence of vectors, by noise on the nodes of a binary tree.

    Guarantee: epsilon, with Gaussian noise at `delta`, for one item over the whole run. An item is in
    `levels` nodes, each of which is released once. On a secure tape a node is a whole number of
    steps: neighbours are s / step + sqrt(d) steps apart in each, and discrete Gaussian noise on all of
    them together is accounted for by `DiscreteGaussianRelease`; Laplace noise as `Laplace` has it.

    Parameters
    ----------
    horizon, epsilon, sensitivity, dimension, reach
        As in `ContinualSum`; an item touches floor(log2 T) + 1 nodes.
    delta : float
        Above 0 for Gaussian noise only.
    noise : {"laplace", "gaussian", "ball", "l2_laplace"}
        ``"l2_laplace"`` is what paper 004 publishes; it does not meet its epsilon, and `releases`
        says what it does meet.
    norm : {"l1", "l2"}
        Must be the one the noise needs: L1 for Laplace, L2 for the others.
    online : bool
        Combine a node with the nodes below it, which are noisy sums of the same items (Honaker).

    Examples
    --------
    >>> tree = BinaryTree(horizon=10_000, epsilon=2.0, noise="laplace", norm="l1", online=False)
    >>> tree.levels, tree.scale
    (14, 7.0)
    """

    name: ClassVar[str] = "binary-tree"
    summary: ClassVar[str] = "every prefix sum of a sequence, by noise on the nodes of a tree"

    delta: float = 0.0
    noise: Annotated[str, one_of(*_CODES)] = "laplace"
    norm: str = "l1"
    online: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        need = _NORMS[self.noise]
        require(self, "norm", f"== {need!r} for {self.noise} noise", self.norm == need, self.norm)
        gaussian = self.noise == "gaussian"
        rule = "in (0, 1)" if gaussian else f"== 0 for {self.noise} noise"
        fits = 0 < self.delta < 1 if gaussian else self.delta == 0
        require(self, "delta", rule, fits, self.delta)

    @property
    def levels(self) -> int:
        """The number of nodes that contain an item."""
        return self.horizon.bit_length()

    @property
    def _power(self) -> float:
        return 1.0 if self.norm == "l1" else 2.0

    @cached_property
    def node(self) -> VectorNoise:
        """What is added to a node: noise calibrated to all nodes of an item at once."""
        together = self.sensitivity * self.levels ** (0.5 if self.noise == "gaussian" else 1.0)
        kinds = {"laplace": Laplace, "ball": L2Ball, "l2_laplace": L2CalibratedLaplace}
        kind: Callable[..., VectorNoise] = kinds.get(
            self.noise, partial(Gaussian, delta=self.delta)
        )
        return kind(epsilon=self.epsilon, sensitivity=together, dimension=self.dimension)

    @property
    def scale(self) -> float:
        """The scale of a node's noise (its standard deviation, if Gaussian)."""
        return self.node.scale

    @property
    def releases(self) -> tuple[tuple[Release, int], ...]:
        """One node at every level; Gaussian and ``"l2_laplace"`` nodes are counted as one release."""
        if self.noise == "laplace":
            return ((LaplaceRelease(sensitivity=self.sensitivity, scale=self.scale), self.levels),)
        if self.noise == "ball":
            s, d = self.sensitivity, self.dimension
            return ((BallRelease(sensitivity=s, scale=self.scale, dimension=d), self.levels),)
        return ((self.release, 1),)

    @property
    def release(self) -> Release:
        """All nodes of an item as one release; of pure ones nothing but their epsilon is kept."""
        if self.noise == "gaussian":
            return self.node.release
        if self.noise == "l2_laplace":
            return L2CalibratedLaplaceRelease(
                sensitivity=self.sensitivity,
                scale=self.scale,
                dimension=self.dimension,
                nodes=self.levels,
            )
        return PureRelease(level=self.epsilon, what="binary tree")

    @property
    def secure_release(self) -> Release:
        """All nodes of an item as one release, with noise in whole steps."""
        self.require_secure()
        if self.noise == "gaussian":
            return self._whole_release(math.sqrt(self.levels), 0)
        _, steps, scale = self._laplace_steps
        return PureRelease(level=self.levels * int(steps) / int(scale), what="binary tree")

    @property
    def insecure_because(self) -> str:
        """Where its nodes have no exact sampler, or whole numbers would not reach far enough."""
        if self.noise != "gaussian" and not self.node.secure:
            return self.node.insecure_because
        return self.out_of_reach

    @cached_property
    def grid(self) -> Grid:
        """How sums are kept on a secure tape."""
        if self.noise == "gaussian":
            return self._gaussian_grid(self.epsilon, self.delta, math.sqrt(self.levels), 0)
        step, _, scale = self._laplace_steps
        return Grid(float(step), int(scale), self._reach)

    @property
    def _laplace_steps(self) -> tuple[float, int, int]:
        epsilon = self.epsilon / self.levels
        grid: tuple[float, int, int] = laplace_steps(self.sensitivity, epsilon, self.dimension)
        return grid

    @property
    def stream(self) -> Stream:
        """What `next_sum` must know."""
        return Stream(_CODES[self.noise], int(self.online), self.horizon)

    @property
    def depth(self) -> int:
        """For each level the node in use, its true sum and its noisy one."""
        return 2 * self.levels

    def variance_after(self, items: int) -> float:
        """Return the sum over the nodes of the prefix; an online node of height h has 1 / (2 - 2^-h)."""
        require(self, "items", f"in [0, {self.horizon}]", 0 <= items <= self.horizon, items)
        heights = [h for h in range(items.bit_length()) if items >> h & 1]
        parts = [1 / (2 - 2.0**-h) if self.online else 1.0 for h in heights]
        return self.node.variance * math.fsum(parts)


@kernel
def tree_step(
    tape: Any,
    t: Any,
    index: Any,
    purpose: Any,
    k: Any,
    stream: Any,
    scale: Any,
    grid: Any,
    item: Any,
    memory: Any,
    fresh: Any,
    out: Any,
) -> None:
    """Take in item k, counted from 1, and write the noisy sum of the first k items into `out`.

    `item` becomes the sum of the largest node that it ends; `fresh` is scratch. A node that k ends
    reads d indices; the second node of a round, if nodes are combined, the next d, and so on.
    """
    d, levels = out.size, memory.shape[1] // 2
    height = 0
    while (k >> height) & 1 == 0:
        height += 1
    first = 0 if stream.online == 1 else height
    for h in range(height + 1):
        for j in range(d):
            item[j] += memory[j, h - 1] if h > 0 else 0.0
        if h >= first:
            _draw(tape, t, index + (h - first) * d, purpose, stream.noise, scale, grid, fresh)
            # Inverse-variance weights: own noise 1, the two nodes below 2^h / (2^h - 1) together.
            own = 2.0**h / (2.0 ** (h + 1) - 1.0) if h > first else 1.0
            for j in range(d):
                below = memory[j, levels + h - 1] + out[j] if h > first else 0.0
                out[j] = own * (item[j] + fresh[j]) + (1.0 - own) * below
    for j in range(d):
        memory[j, height] = item[j]
        memory[j, levels + height] = out[j]
        for h in range(height + 1, levels):
            if (k >> h) & 1 == 1:
                out[j] += memory[j, levels + h]


@kernel
def _draw(
    tape: Any, t: Any, index: Any, purpose: Any, noise: Any, scale: Any, grid: Any, out: Any
) -> None:
    """Write the noise of one node into `out`, in steps on a secure tape."""
    if noise == BALL:
        ball_noise(tape, t, index, purpose, scale, out)
        return
    for j in range(out.size):
        if tape.kind == SECURE:
            if noise == LAPLACE:
                out[j] = secure_laplace(tape, t, index + j, purpose, np.int64(grid[1]))
            else:
                out[j] = secure_gaussian(tape, t, index + j, purpose, np.int64(grid[1]))
        elif noise == LAPLACE:
            out[j] = scale * standard_laplace(tape, t, index + j, purpose)
        else:
            out[j] = scale * standard_normal(tape, t, index + j, purpose)
