"""Paper 002 (Lu et al.): GAP against its rivals, Figures 1 to 3."""

from tacit.papers.p002.regret import REPRODUCTIONS

__all__ = ["REPRODUCTIONS"]
