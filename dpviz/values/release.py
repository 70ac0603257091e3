"""Value types that pass between mechanisms and the code that uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from dpviz.base.arrays import FloatArray, fix_signs
from dpviz.base.eigen import top_eigen
from dpviz.values.parts import Part
from dpviz.values.problem import Budget, Problem


class Verdict(StrEnum):
    """What is known of a claim in one setting."""

    HOLDS = "holds"
    LOOSE = "loose"
    REFUTED = "refuted"
    APPROXIMATE = "approximate"
    BASELINE = "baseline"


VERDICT_WORDS = {
    Verdict.HOLDS: "claim holds",
    Verdict.LOOSE: "holds, spends less",
    Verdict.REFUTED: "claim is false",
    Verdict.APPROXIMATE: "right law, approximate draws",
    Verdict.BASELINE: "baseline",
}

VERDICT_MARKS = {
    Verdict.HOLDS: "✓",
    Verdict.LOOSE: "✓",
    Verdict.REFUTED: "✗",
    Verdict.APPROXIMATE: "≈",
    Verdict.BASELINE: "",
}


NOT_PROVED = "claim is not proved"
"""Said of a claim whose proof does not carry over here, while no attack on it is known."""


@dataclass(frozen=True)
class Status:
    """A verdict on a claim and one sentence of evidence.

    Attributes
    ----------
    verdict : Verdict
    evidence : str
    settled : bool
        False where a claim counts as refuted because its proof does not carry
        over to this setting, although nothing is known that breaks it.
    """

    verdict: Verdict
    evidence: str
    settled: bool = True

    @property
    def words(self) -> str:
        """The verdict in words."""
        return VERDICT_WORDS[self.verdict] if self.settled else NOT_PROVED

    @property
    def mark(self) -> str:
        """A mark that goes with the words."""
        return VERDICT_MARKS[self.verdict] if self.settled else "?"

    @property
    def marked(self) -> str:
        """The mark and the words."""
        return f"{self.mark} {self.words}".strip()


@dataclass(frozen=True)
class Calibration:
    """How a mechanism will run: derived from shapes and budget, never from data.

    Attributes
    ----------
    problem : Problem
    budget : Budget
    scale : float
        Noise scale in units of A, or the concentration of a sampler.
    parts : tuple of Part
        What the mechanism says it does, for accounting by other code.
    values : mapping of str to float
        Further numbers a reader may want, by name.
    """

    problem: Problem
    budget: Budget
    scale: float
    parts: tuple[Part, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Release:
    """A batch of releases.

    Attributes
    ----------
    raw : ndarray of shape (size, ...)
        The whole privatised object: what an attacker sees.
    components : ndarray of shape (size, d, k)
        Orthonormal columns, descending, largest entry of each positive.
    matrix : ndarray of shape (size, d, d) or None
        The symmetric estimate of A, where one is released.
    eigenvalues : ndarray of shape (size, d) or None
        Its eigenvalues, descending.
    trace : ndarray of shape (size, steps) or None
        The score along each draw's chain, for samplers that only converge.
    variances : ndarray of shape (size, d) or None
        Noisy eigenvalues of A, descending, released beside a subspace.
    """

    raw: FloatArray
    components: FloatArray
    matrix: FloatArray | None = None
    eigenvalues: FloatArray | None = None
    trace: FloatArray | None = None
    variances: FloatArray | None = None

    @classmethod
    def of_matrices(cls, matrices: FloatArray, k: int, raw: FloatArray | None = None) -> Self:
        """Return the release whose components are the top k of each matrix.

        Parameters
        ----------
        matrices : ndarray of shape (size, d, d)
            Symmetric; only the lower triangles are read for the components.
        k : int
        raw : ndarray, optional
            What was published, where it is not the symmetric matrix itself.
        """
        values, vectors = top_eigen(matrices, k)
        return cls(
            raw=matrices if raw is None else raw,
            components=fix_signs(vectors),
            matrix=matrices,
            eigenvalues=values,
        )

    @classmethod
    def of_frames(cls, frames: FloatArray, trace: FloatArray | None = None) -> Self:
        """Return the release of subspaces given by orthonormal frames (size, d, k)."""
        return cls(raw=frames, components=fix_signs(frames), trace=trace)
