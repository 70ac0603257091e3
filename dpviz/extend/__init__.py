"""Imports for authors of mechanisms, measures and tables.

These names are stable: a `DeprecationWarning` and the changelog announce each removal or change one
minor version ahead. Every other module of dpviz may change at any time.

A mechanism is a class, or a function::

    from dpviz.extend import mechanism

    @mechanism(claim="pure", release="subspace")
    def mine(rows, epsilon, delta, k, rng):
        ...
        return V

In a notebook, pass `mine` to `dpviz.compare` and the other functions. Load a file with ``--plugin
mine.py``, and a package through an entry point in the group ``dpviz.mechanisms``. Measures
(`metric` above a function of an `Outcome`) and tables (`BuiltIn`) are added in the same way, by
``--plugin`` and the groups ``dpviz.metrics`` and ``dpviz.datasets``.
"""

from dpviz.accounting.accounting import Spent
from dpviz.accounting.gaussian import noise_std
from dpviz.accounting.sensitivity import (
    frobenius,
    frobenius_attained,
    l1_upper,
)
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import CannotRun, InvalidSetting
from dpviz.core.metrics._base import Metric, Outcome, metric, one, unlimited
from dpviz.core.moments import SecondMoment
from dpviz.core.params import choice, integer, number
from dpviz.core.parts import GaussianPart, LaplacePart
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.release import Calibration, Release, Verdict
from dpviz.core.seeding import Draws, generator
from dpviz.datasets.builtin import BuiltIn
from dpviz.datasets.table import Table
from dpviz.mechanisms import Mechanism
from dpviz.mechanisms._base import AdditiveMechanism, MechanismInfo
from dpviz.mechanisms._function import mechanism

__all__ = [
    "AdditiveMechanism",
    "Budget",
    "BuiltIn",
    "Calibration",
    "CannotRun",
    "Domain",
    "Draws",
    "FloatArray",
    "GaussianPart",
    "InvalidSetting",
    "LaplacePart",
    "Mechanism",
    "MechanismInfo",
    "Metric",
    "Outcome",
    "Problem",
    "Relation",
    "Release",
    "SecondMoment",
    "Spent",
    "Table",
    "Verdict",
    "choice",
    "frobenius",
    "frobenius_attained",
    "generator",
    "integer",
    "l1_upper",
    "mechanism",
    "metric",
    "noise_std",
    "number",
    "one",
    "unlimited",
]
