"""Pictures and reports; matplotlib is loaded only when one is drawn."""

from tacit.report.curves import draw_curves
from tacit.report.style import figure, save_figure

__all__ = ["draw_curves", "figure", "save_figure"]
