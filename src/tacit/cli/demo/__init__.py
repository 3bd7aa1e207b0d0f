"""A live demonstration: a service, a page, and a crowd whose clicks never leave their devices."""

from tacit.cli.demo.show import run

__all__ = ["run"]
