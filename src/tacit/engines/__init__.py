"""Where jobs run: in this process, in processes of this machine, on a cluster; the same bits everywhere.

A job is a function of its arguments and nothing else. `run_jobs` does those whose outcome is not yet in a
`Store`, one file each, so that a run that is stopped loses what was under way and nothing more.
"""

from tacit.engines.base import Engine, Here
from tacit.engines.cluster import Cluster
from tacit.engines.jobs import engine_named, run_jobs
from tacit.engines.processes import Processes
from tacit.engines.store import ARRAYS, JSON, Codec, Store, code_stamp, only_run

__all__ = [
    "ARRAYS",
    "JSON",
    "Cluster",
    "Codec",
    "Engine",
    "Here",
    "Processes",
    "Store",
    "code_stamp",
    "engine_named",
    "only_run",
    "run_jobs",
]
