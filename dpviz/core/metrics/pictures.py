"""Metrics of a published picture: absent where none is paid for, or its claim is broken."""

from __future__ import annotations

from dpviz.core.arrays import FloatArray
from dpviz.core.metrics._base import Outcome, metric, one


@metric("fidelity of the picture", place=110, better="higher", upper=one, needs="picture")
def fidelity(outcome: Outcome) -> FloatArray | None:
    """How like the true points the published ones are spread: 1 is alike, 0 is one single point."""
    return None if outcome.pictured is None else outcome.pictured.fidelity


@metric("labels told by the picture", place=120, better="higher", upper=one, needs="picture")
def class_picture(outcome: Outcome) -> FloatArray | None:
    """Labels right by nearest published points: 0 the largest label for all, 1 as exact."""
    return None if outcome.pictured is None else outcome.pictured.class_picture
