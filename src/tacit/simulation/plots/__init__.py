"""Pictures in one style; matplotlib is loaded only when one is drawn."""

from tacit.simulation.plots.beliefs import draw_beliefs, draw_network_beliefs, draw_privacy_cost
from tacit.simulation.plots.curves import draw_curves
from tacit.simulation.plots.style import COLOURS, DASHES, MAP_COLOURS, figure, save_figure

__all__ = [
    "COLOURS",
    "DASHES",
    "MAP_COLOURS",
    "draw_beliefs",
    "draw_curves",
    "draw_network_beliefs",
    "draw_privacy_cost",
    "figure",
    "save_figure",
]
