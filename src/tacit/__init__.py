"""Differentially private bandits on networks: learn together without telling."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tacit.core.registry import build_pair as build
    from tacit.core.registry import register
    from tacit.serving import Learner
    from tacit.simulation import Comparison, Identified, Result, compare, identify, simulate

__all__ = [
    "Comparison",
    "Identified",
    "Learner",
    "Result",
    "__version__",
    "build",
    "compare",
    "identify",
    "register",
    "simulate",
]

__version__ = "0.3.0.dev0"


def __getattr__(name: str) -> Any:
    """Import what is public when it is asked for: the command line's help needs no compiler."""
    if name not in __all__:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    if name in ("build", "register"):
        from tacit.core import registry

        return registry.build_pair if name == "build" else registry.register
    if name == "Learner":
        if sys.platform == "win32":
            raise ImportError(
                "tacit.Learner cannot run on Windows, because its stores need locks of POSIX; "
                "use Linux, macOS or WSL (simulations run on Windows)"
            )
        from tacit import serving

        return serving.Learner
    from tacit import simulation

    return getattr(simulation, name)


def __dir__() -> list[str]:
    """List what is public, imported or not."""
    return sorted({*globals(), *__all__})
