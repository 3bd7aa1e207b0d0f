"""Pictures of beliefs: they are drawn, repeat, and refuse what was not recorded."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import tacit
from tacit.diffusion import ChangingTruth, DiffusionBandit
from tacit.graphs import erdos_renyi, ring

pytest.importorskip("matplotlib")
from tacit.simulation.bands import Band
from tacit.simulation.plots import draw_beliefs, draw_network_beliefs, draw_privacy_cost


def simulated(network=None, *, record=True):
    settings = {} if network is None else {"network": network}
    return tacit.simulate(
        DiffusionBandit(n_states=3),
        ChangingTruth(n_states=3, **settings),
        horizon=20,
        checkpoints=20,
        record=record,
    )


def sizes(files):
    return [path.stat().st_size for path in files]


def test_curves_for_few_and_for_many_agents(tmp_path):
    few = draw_beliefs(simulated(), tmp_path / "few")
    many = draw_beliefs(simulated(ring(12)), tmp_path / "many")
    assert min(sizes(few + many)) > 5000
    again = draw_beliefs(simulated(), tmp_path / "again")
    assert few[1].read_text() == again[1].read_text()
    assert few[1].read_text() != many[1].read_text()


def test_networks_small_and_large(tmp_path):
    for name, network in (
        ("three", None),
        ("some", ring(12)),
        ("many", erdos_renyi(80, 0.1, seed=3)),
    ):
        files = draw_network_beliefs(simulated(network), tmp_path / name, rounds=(1, 20))
        assert min(sizes(files)) > 5000
    other = draw_network_beliefs(simulated(), tmp_path / "state", rounds=(1, 20), state=0)
    default = int(simulated().traces[0].beliefs[-1].mean(axis=0).argmax())
    same = (tmp_path / "three.svg").read_text() == other[1].read_text()
    assert same == (default == 0)


def test_privacy_cost(tmp_path):
    band = [Band(*(np.array([x]) for x in (3.0, 2.0, 4.0)))]
    files = draw_privacy_cost(
        (0.1, 1.0), {"open": band, "private": band * 2}, tmp_path / "cost", uniform=100.0
    )
    assert [path.suffix for path in files] == [".png", ".svg"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": (7, 21)}, "among the checkpoints, got"),
        ({"rounds": ()}, "not empty"),
        ({"rounds": (1,), "state": 3}, "expected state in 0..2, got 3"),
    ],
)
def test_what_cannot_be_drawn_is_named(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        draw_network_beliefs(simulated(), tmp_path / "x", **settings)


def test_beliefs_must_have_been_recorded(tmp_path):
    with pytest.raises(ValueError, match="record=True"):
        draw_beliefs(simulated(record=False), tmp_path / "x")


def test_matplotlib_is_loaded_late():
    import subprocess

    code = "import sys, tacit.simulation.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
