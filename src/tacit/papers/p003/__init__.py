"""Paper 003 (Gajane): SW-KLUCB-CF in changing environments."""

from tacit.papers.p003.regret import REPRODUCTIONS

__all__ = ["REPRODUCTIONS"]
