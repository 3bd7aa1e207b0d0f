"""Where jobs run: in this process, in processes of this machine, on a cluster; the same bits everywhere.

A job is a function of its arguments and nothing else. `run_jobs` does those whose outcome is not yet in a
`Store`, one file each, so that a run that is stopped loses what was under way and nothing more.
"""

from tacit.engines.base import Engine
from tacit.engines.cluster import Cluster
from tacit.engines.jobs import SerialEngine, engine_named, run_jobs
from tacit.engines.processes import Processes
from tacit.engines.store import ARRAYS, JSON, Codec, Store, code_stamp, lock_run

__all__ = [
    "ARRAYS",
    "JSON",
    "Cluster",
    "Codec",
    "Engine",
    "Processes",
    "SerialEngine",
    "Store",
    "code_stamp",
    "engine_named",
    "lock_run",
    "run_jobs",
]
