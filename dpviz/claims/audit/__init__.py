"""Audits: lower bounds on what a mechanism really costs, from its own raw releases."""

from dpviz.claims.audit.options import AuditOptions
from dpviz.claims.audit.result import Audit, AuditVerdict
from dpviz.claims.audit.run import (
    DEFAULT_CONFIDENCE,
    DEFAULT_D,
    DEFAULT_K,
    DEFAULT_N,
    DEFAULT_TRIALS,
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
