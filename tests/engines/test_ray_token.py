"""A cluster that is started here asks for a token, and reports nothing home; where none is, one is told."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from engines import working
from tacit.engines import Cluster

pytest.importorskip("ray", reason="Ray is not installed: pip install 'tacit[ray]'")

ASK = """
import os
from tacit.engines.cluster import load_ray
ray = load_ray(starts={starts})
from ray._raylet import AuthenticationMode, get_authentication_mode
print(get_authentication_mode() == AuthenticationMode.TOKEN, os.environ["RAY_USAGE_STATS_ENABLED"])
"""


@pytest.mark.parametrize(
    ("starts", "said", "wanted"),
    [("True", None, "True 0"), ("True", "disabled", "False 0"), ("False", None, "False 0")],
    ids=["started", "told not to", "running"],
)
def test_a_cluster_that_is_started_here_asks_for_a_token(starts, said, wanted):
    pytest.importorskip("ray._private.authentication", reason="this version of Ray has no tokens")
    environment = {k: v for k, v in os.environ.items() if k != "RAY_AUTH_MODE"}
    if said is not None:
        environment["RAY_AUTH_MODE"] = said
    told = subprocess.run(
        [sys.executable, "-c", ASK.format(starts=starts)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == wanted


def test_where_no_cluster_is_one_is_told_so_at_once():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    for place in (f"127.0.0.1:{port}", f"ray://127.0.0.1:{port}"):
        with pytest.raises(ValueError, match=f"no Ray cluster at {place}: .*refused"):
            Cluster(place).run(working.square, [(1.0,)], lambda *_: None)
