"""Try to break a privacy claim; this package knows no bandits."""

from tacit.privacy.auditing.bounds import (
    clopper_pearson,
    epsilon_lower_bound,
    one_run_epsilon,
    one_run_p_value,
)
from tacit.privacy.auditing.canaries import OneRunResult, audit_one_run
from tacit.privacy.auditing.core import AuditResult, Run, audit, derive_seed
from tacit.privacy.auditing.declared import DeclaredResult, check_declared
from tacit.privacy.auditing.search import SearchResult, search
from tacit.privacy.mechanisms.base import NeighbouringPair

__all__ = [
    "AuditResult",
    "DeclaredResult",
    "NeighbouringPair",
    "OneRunResult",
    "Run",
    "SearchResult",
    "audit",
    "audit_one_run",
    "check_declared",
    "clopper_pearson",
    "derive_seed",
    "epsilon_lower_bound",
    "one_run_epsilon",
    "one_run_p_value",
    "search",
]
