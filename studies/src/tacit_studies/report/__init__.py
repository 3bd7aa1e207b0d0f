"""The report of the studies: figures, one HTML file, one table."""

__all__: list[str] = []
