import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DATA = Path(os.environ.get("TACIT_DATA", REPOSITORY.parent / "shared" / "data"))


@pytest.fixture
def data():
    """Return the path of a file of the real data sets, or skip the test."""

    def find(name):
        file = DATA / name
        if not file.is_file():
            pytest.skip(f"{name} is not in the folder that TACIT_DATA names")
        return file

    return find
