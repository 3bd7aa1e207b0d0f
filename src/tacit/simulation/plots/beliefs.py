"""Pictures of agents' beliefs: curves by state, the network in colour, and what privacy costs.

States and agents are numbered from 0, as in the arrays. The first two draw one repetition of a
simulation of the agents setting that recorded its traces (``simulate(..., record=True)``); beliefs are
known at its checkpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.core.constraints import require
from tacit.simulation.bands import Band
from tacit.simulation.plots.style import figure, looks, save_figure
from tacit.simulation.result import Result

_FEW_AGENTS = 6
_MOST_DRAWN = 3000
_MOST_ARROWS = 40


def draw_beliefs(result: Result, path: str | Path, *, repetition: int = 0) -> list[Path]:
    """Draw beliefs against rounds, one panel a state, and return the files written.

    Up to six agents have a line each; of more, the median and the middle 50% and 90% are drawn.

    Parameters
    ----------
    result : Result
        Of a policy of the agents setting, recorded.
    path : path
        Where to write, without ending.
    repetition : int, default 0
        Which of the result's repetitions, by position.
    """
    beliefs = _beliefs(result, repetition)
    n_agents, n_states = beliefs.shape[1:]
    rounds = np.concatenate(([0], result.checkpoints))
    start = np.full((1, n_agents, n_states), 1 / n_states)
    beliefs = np.concatenate((start, beliefs))
    columns = min(3, n_states)
    rows = -(-n_states // columns)
    with figure(
        3.2 * columns + 0.6,
        2.3 * rows + 0.5,
        nrows=rows,
        ncols=columns,
        squeeze=False,
        sharex=True,
        sharey=True,
    ) as (drawn, grid):
        for axes in grid.flat[n_states:]:
            axes.set_visible(False)
        for state in range(n_states):
            axes = grid.flat[state]
            _curves(axes, rounds, beliefs[:, :, state])
            axes.set_title(f"state {state}", loc="left", fontsize=10)
            axes.set_ylim(-0.03, 1.03)
            axes.margins(x=0)
            if state + columns >= n_states:
                axes.set_xlabel("rounds")
                axes.tick_params(labelbottom=True)
            if state % columns == 0:
                axes.set_ylabel("belief")
        grid.flat[0].legend(fontsize=8)
        drawn.supxlabel(_caption(result, repetition), fontsize=8, color="0.35")
        return save_figure(drawn, Path(path))


def draw_network_beliefs(
    result: Result,
    path: str | Path,
    *,
    rounds: Sequence[int],
    state: int | None = None,
    repetition: int = 0,
) -> list[Path]:
    """Draw the network at chosen rounds, agents coloured by their belief in one state.

    Parameters
    ----------
    result : Result
        Of a policy of the agents setting, recorded, with at most 3,000 agents.
    path : path
        Where to write, without ending.
    rounds : sequence of int
        Which checkpoints.
    state : int, optional
        Whose belief, from 0; by default the state believed in most at the end.
    repetition : int, default 0
        Which of the result's repetitions, by position.
    """
    beliefs = _beliefs(result, repetition)
    owner = "draw_network_beliefs"
    n_agents = beliefs.shape[1]
    require(owner, "n_agents", f"<= {_MOST_DRAWN}, to be seen", n_agents <= _MOST_DRAWN, n_agents)
    require(owner, "rounds", "not empty", len(rounds) > 0, rounds)
    at = np.searchsorted(result.checkpoints, rounds)
    known = bool(np.isin(rounds, result.checkpoints).all())
    require(owner, "rounds", "among the checkpoints", known, list(rounds))
    chosen = int(beliefs[-1].mean(axis=0).argmax()) if state is None else state
    inside = 0 <= chosen < beliefs.shape[2]
    require(owner, "state", f"in 0..{beliefs.shape[2] - 1}", inside, chosen)
    environment: Any = result.environment
    graph = environment.mixing_matrix.graph()
    place = _layout(graph)
    with figure(3.1 * len(rounds) + 0.9, 3.4, ncols=len(rounds), squeeze=False) as (drawn, grid):
        for axes, t, i in zip(grid.flat, rounds, at, strict=True):
            _edges(axes, graph, place)
            dots = axes.scatter(
                *place.T,
                c=beliefs[i, :, chosen],
                vmin=0,
                vmax=1,
                cmap="viridis",
                s=min(420.0, 6000.0 / n_agents + 6),
                edgecolors="0.2",
                linewidths=0.4,
                zorder=3,
            )
            axes.set_title(f"after {t:,} round{'s' if t > 1 else ''}", fontsize=10)
            if n_agents <= _FEW_AGENTS:
                for k in range(n_agents):
                    ink = "white" if beliefs[i, k, chosen] < 0.6 else "black"
                    axes.annotate(str(k), place[k], ha="center", va="center", color=ink, zorder=4)
            axes.set_axis_off()
            axes.set_aspect("equal")
            axes.margins(0.15)
        drawn.colorbar(dots, ax=grid[0, -1], shrink=0.8, label=f"belief in state {chosen}")
        drawn.supxlabel(_caption(result, repetition), fontsize=8, color="0.35")
        return save_figure(drawn, Path(path))


def draw_privacy_cost(
    epsilons: Sequence[float],
    bands: Mapping[str, Sequence[Band]],
    path: str | Path,
    *,
    uniform: float,
    note: str = "",
) -> list[Path]:
    """Draw final regret against epsilon, one line a policy, both scales logarithmic.

    Parameters
    ----------
    epsilons : sequence of float
        The levels; a policy with a single band, not private, is drawn across all of them.
    bands : mapping of label to sequence of Band
        The regret of each policy at each level, its last checkpoint counts.
    path : path
        Where to write, without ending.
    uniform : float
        The regret of a belief that never changes, for orientation.
    note : str
        What was run, for the caption.
    """
    levels = np.array(epsilons, np.float64)
    with figure(8.6, 4.2) as (drawn, axes):
        for (label, given), look in zip(bands.items(), looks(), strict=False):
            rows = list(given) * len(levels) if len(given) == 1 else given
            mean, low, high = (
                np.array([getattr(band, part)[-1] for band in rows])
                for part in ("mean", "low", "high")
            )
            axes.fill_between(levels, low, high, color=look["color"], alpha=0.2, linewidth=0)
            marker = "" if len(given) == 1 else "o"
            axes.plot(levels, mean, label=label, marker=marker, markersize=4, **look)
        axes.axhline(uniform, color="0.5", linewidth=1)
        axes.annotate(
            "uniform belief",
            (levels[-1], uniform),
            xytext=(0, 3),
            textcoords="offset points",
            ha="right",
            fontsize=8,
            color="0.35",
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("epsilon of one loss")
        axes.set_ylabel("weighted regret")
        axes.set_xticks(levels, [f"{e:g}" for e in levels])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda v, _: f"{v:,.0f}")
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        drawn.supxlabel(note, fontsize=8, color="0.35")
        return save_figure(drawn, Path(path))


def _beliefs(result: Result, repetition: int) -> NDArray[np.float64]:
    beliefs = getattr(result.traces[repetition], "beliefs", None) if result.traces else None
    recorded = beliefs is not None and beliefs.shape[0] == result.checkpoints.size
    rule = "with recorded beliefs (agents setting, record=True)"
    require("draw_beliefs", "result", rule, recorded, result.policy.name)
    return np.asarray(beliefs)


def _curves(axes: Any, rounds: NDArray[np.int64], values: NDArray[np.float64]) -> None:
    n_agents = values.shape[1]
    if n_agents <= _FEW_AGENTS:
        for k, look in zip(range(n_agents), looks(), strict=False):
            axes.plot(rounds, values[:, k], label=f"agent {k}", linewidth=1.3, **look)
        return
    colour = next(looks())["color"]
    for low, high, alpha in ((5, 95, 0.15), (25, 75, 0.3)):
        edges = np.percentile(values, (low, high), axis=1)
        label = f"middle {high - low}%"
        axes.fill_between(rounds, *edges, color=colour, alpha=alpha, linewidth=0, label=label)
    axes.plot(rounds, np.median(values, axis=1), color=colour, linewidth=1.5, label="median agent")


def _caption(result: Result, repetition: int) -> str:
    variant = getattr(result.policy, "variant", "")
    epsilon = getattr(result.policy, "epsilon", None)
    parts = [
        f"{result.policy.name}{', ' + variant if variant else ''}",
        "" if epsilon is None else f"epsilon {epsilon:g}",
        f"seed {result.seed}, repetition {result.repetitions[repetition]}",
        f"{result.numerics} numerics",
    ]
    return "; ".join(part for part in parts if part)


def _layout(graph: Any) -> NDArray[np.float64]:
    if graph.n_nodes <= _FEW_AGENTS:
        turn = np.pi / 2 + 2 * np.pi * np.arange(graph.n_nodes) / max(1, graph.n_nodes)
        return np.column_stack((np.cos(turn), np.sin(turn)))
    from tacit.graphs import to_networkx
    from tacit.graphs.graph import import_optional

    networkx = import_optional("networkx", needed_by="draw_network_beliefs")
    place = networkx.spring_layout(to_networkx(graph.undirected()), seed=1)
    return np.array([place[k] for k in range(graph.n_nodes)])


def _edges(axes: Any, graph: Any, place: NDArray[np.float64]) -> None:
    arcs = graph.edges()
    if graph.n_nodes > _MOST_ARROWS:
        from matplotlib.collections import LineCollection

        width = max(0.1, min(0.8, 400 / max(1, len(arcs))))
        axes.add_collection(LineCollection(place[arcs], colors="0.7", linewidths=width, zorder=1))
        return
    for (j, k), weight in zip(arcs, graph.edge_weights(), strict=True):
        axes.annotate(
            "",
            place[k],
            place[j],
            zorder=1,
            arrowprops={
                "arrowstyle": "-|>",
                "color": "0.55",
                "linewidth": 0.5 + 2 * weight,
                "shrinkA": 9,
                "shrinkB": 11,
                "connectionstyle": "arc3,rad=0.12",
            },
        )
