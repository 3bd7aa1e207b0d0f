"""The command ``tacit``, and ``python -m tacit``: Ctrl-C is heeded before anything large is imported."""

from __future__ import annotations

import os

from tacit.core.processes import exit_interrupted, install_sigint_handler


def main() -> None:
    """Run the command line; one that is stopped while it is imported ends with 130 and says nothing."""
    install_sigint_handler()
    # This process, and those that it starts, are Tacit's own: they may compile in the faster way.
    os.environ.setdefault("TACIT_PLAIN_NUMBA", "0")
    try:
        from tacit.cli import main as run
    except KeyboardInterrupt:
        exit_interrupted()
    run()


if __name__ == "__main__":
    main()
