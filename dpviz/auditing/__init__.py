"""Check privacy claims: accounting, exhibits, attacks and audits."""

from dpviz.auditing.result import Audit, AuditVerdict
from dpviz.auditing.run import (
    DEFAULT_CONFIDENCE,
    DEFAULT_D,
    DEFAULT_K,
    DEFAULT_N,
    DEFAULT_TRIALS,
    AuditOptions,
    audit,
    default_budget,
)

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_D",
    "DEFAULT_K",
    "DEFAULT_N",
    "DEFAULT_TRIALS",
    "Audit",
    "AuditOptions",
    "AuditVerdict",
    "audit",
    "default_budget",
]
