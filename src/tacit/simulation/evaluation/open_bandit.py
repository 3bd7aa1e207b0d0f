"""The Open Bandit data set: what visitors of a fashion shop clicked (Saito et al. 2020, arXiv 2008.07146).

Its small version has 10,000 decisions of each of two policies in each of three campaigns: one that showed
items at random and one by Thompson sampling. Apache-2.0.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from pathlib import Path

import numpy as np

from tacit.core.constraints import require
from tacit.simulation.evaluation.log import Log

FOLDER = "open-bandit-small"
SOURCE = "https://github.com/st-tech/zr-obp (folder obd)"
_N_ARMS = {"all": 80, "men": 34, "women": 46}
_SHA256 = {
    ("random", "all"): "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1",
    ("random", "men"): "ede6d08c6877f99cd3770f7d09e26c738e6aa6de4445ccccfb1356ba5d06b1eb",
    ("random", "women"): "e65f3bd3beb17664fa69cc129bf7bf852a775f8ffa630506e505fc905315bb34",
    ("bts", "all"): "0ad874e4dbf6902f0845dd478ad8dde5ef6903583d3ffaace78411bdad064106",
    ("bts", "men"): "db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527",
    ("bts", "women"): "e5d1b49a39b608585a2f3014a3f54970430cd37a495c1b73fceb85cdf428a5b8",
}


def open_bandit(
    campaign: str = "all", behaviour: str = "random", *, directory: str | Path = ""
) -> Log:
    """Return the decisions of one campaign.

    Parameters
    ----------
    campaign : {"all", "men", "women"}
    behaviour : {"random", "bts"}
        Which policy made the decisions: at random, or Bernoulli Thompson sampling.
    directory : path
        The folder that has ``open-bandit-small``; if empty, what TACIT_DATA names.

    Raises
    ------
    FileNotFoundError
        If the data set is not there; the message says where it comes from.
    ValueError
        If it is there and its content is not the one that is known.
    """
    require("open_bandit", "campaign", "all, men or women", campaign in _N_ARMS, campaign)
    known = behaviour in ("random", "bts")
    require("open_bandit", "behaviour", "random or bts", known, behaviour)
    folder = Path(directory or os.environ.get("TACIT_DATA", "")) / FOLDER
    plain = folder / behaviour / campaign / f"{campaign}.csv"
    packed = plain.with_name(plain.name + ".gz")
    if packed.is_file():
        content = gzip.decompress(packed.read_bytes())
    elif plain.is_file():
        content = plain.read_bytes()
    else:
        raise FileNotFoundError(
            f"{FOLDER}: expected {packed}; the data set comes from {SOURCE}, and the variable "
            "TACIT_DATA names the folder it is in"
        )
    wanted, found = _SHA256[behaviour, campaign], hashlib.sha256(content).hexdigest()
    if found != wanted:
        raise ValueError(f"{plain.name}: expected the content with sha256 {wanted}, got {found}")
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8") as lines:
        names = lines.readline().rstrip("\n").split(",")
        at = [names.index(name) for name in ("item_id", "click", "propensity_score")]
        columns = np.loadtxt(lines, delimiter=",", usecols=at, ndmin=2)
    return Log(
        arms=columns[:, 0],
        rewards=columns[:, 1],
        propensities=columns[:, 2],
        n_arms=_N_ARMS[campaign],
        source=f"{FOLDER}/{behaviour}/{campaign}",
    )
