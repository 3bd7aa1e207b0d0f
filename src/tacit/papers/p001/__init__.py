"""Paper 001 (Tao et al.): learning dynamics in a social network, Figs. 2 to 4."""

from tacit.papers.p001.regret import REPRODUCTIONS

__all__ = ["REPRODUCTIONS"]
