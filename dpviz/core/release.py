"""Value types that pass between mechanisms and the code that uses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Self

import numpy as np

from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.eigen import top_eigen
from dpviz.core.parts import Part
from dpviz.core.problem import Budget, Problem


class Verdict(StrEnum):
    """The verdict on a claim in one setting.

    ``REFUTED``: false on its own terms, by exact accounting or an attack. ``OUT_OF_SCOPE``: fails
    in this setting by exact accounting, but its source does not promise it: other neighbours, or an
    epsilon outside its proof. ``UNPROVEN``: no proof covers this release, and nothing known breaks
    the claim; this includes an upper bound above the claim.
    """

    HOLDS = "holds"
    LOOSE = "loose"
    APPROXIMATE = "approximate"
    REFUTED = "refuted"
    OUT_OF_SCOPE = "out_of_scope"
    UNPROVEN = "unproven"
    BASELINE = "baseline"

    @property
    def fails(self) -> bool:
        """Whether a claim exists and does not hold in this setting."""
        return self in (Verdict.REFUTED, Verdict.OUT_OF_SCOPE, Verdict.UNPROVEN)

    @property
    def counts(self) -> bool:
        """Whether a claim exists and holds in this setting."""
        return not self.fails and self is not Verdict.BASELINE


VERDICT_WORDS = {
    Verdict.HOLDS: "claim holds",
    Verdict.LOOSE: "holds, spends less",
    Verdict.APPROXIMATE: "approximate draws",
    Verdict.REFUTED: "claim is false",
    Verdict.OUT_OF_SCOPE: "fails outside its scope",
    Verdict.UNPROVEN: "not proved for this release",
    Verdict.BASELINE: "baseline",
}

VERDICT_MARKS = {
    Verdict.HOLDS: "✓",
    Verdict.LOOSE: "✓",
    Verdict.APPROXIMATE: "≈",
    Verdict.REFUTED: "✗",
    Verdict.OUT_OF_SCOPE: "⊘",
    Verdict.UNPROVEN: "?",
    Verdict.BASELINE: "",
}


class Aim(StrEnum):
    """The quantity that a release estimates; without noise the release equals it.

    The leading components of A itself (``COMPONENTS``), of the rows' unit vectors (``DIRECTIONS``),
    or of rows clipped to a radius that the mechanism finds (``CLIPPED``). ``NOTHING`` does not
    depend on the rows.
    """

    COMPONENTS = "components of A"
    DIRECTIONS = "the directions of rows"
    CLIPPED = "clipped rows"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Status:
    """A verdict on a claim and one sentence of evidence."""

    verdict: Verdict
    evidence: str

    @property
    def words(self) -> str:
        """The verdict in words."""
        return VERDICT_WORDS[self.verdict]

    @property
    def mark(self) -> str:
        """The symbol of the verdict."""
        return VERDICT_MARKS[self.verdict]

    @property
    def marked(self) -> str:
        """The symbol and the words."""
        return f"{self.mark} {self.words}".strip()


@dataclass(frozen=True)
class Calibration:
    """How a mechanism runs, derived from shapes and budget, never from data.

    Attributes
    ----------
    problem : Problem
    budget : Budget
    scale : float
        Noise scale in units of A, or the concentration of a sampler.
    parts : tuple of Part
        Randomness that the mechanism declares, for independent accounting.
    values : mapping of str to float
        Further numbers for readers, keyed by name.
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
        The whole private release, as an attacker sees it.
    components : ndarray of shape (size, d, k)
        Components as orthonormal columns, in descending order, the largest entry of each positive.
    matrix : ndarray of shape (size, d, d) or None
        The symmetric estimate of A, if released.
    eigenvalues : ndarray of shape (size, d) or None
        Eigenvalues of ``matrix``, descending.
    trace : ndarray of shape (size, steps) or None
        The score along each release's Markov chain, for samplers that only converge.
    variances : ndarray of shape (size, d) or None
        Noisy eigenvalues of A, descending, released in addition to a subspace.
    exact : bool
        Whether the matrix is the exact moment without noise, and is therefore left out.
    radius : ndarray of shape (size,) or None
        Length at which rows were clipped, in units of the rows, if the mechanism found such a
        length; it is released too.
    """

    raw: FloatArray
    components: FloatArray
    matrix: FloatArray | None = None
    eigenvalues: FloatArray | None = None
    trace: FloatArray | None = None
    variances: FloatArray | None = None
    exact: bool = False
    radius: FloatArray | None = None

    @classmethod
    def of_matrices(cls, matrices: FloatArray, k: int, raw: FloatArray | None = None) -> Self:
        """Return the release whose components are the top k of each matrix.

        Parameters
        ----------
        matrices : ndarray of shape (size, d, d)
            Symmetric; only the lower triangles are read for the components.
        k : int
        raw : ndarray, optional
            The published object, if it is not the symmetric matrix itself.
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

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return several batches of one kind as one batch, without fields that some lack."""

        def together(name: str) -> FloatArray | None:
            parts = [getattr(batch, name) for batch in batches]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        # Join all fields by name, so that a new field needs no change here.
        names = [each.name for each in fields(cls) if each.name != "exact"]
        exact = all(batch.exact for batch in batches)
        return cls(**{name: together(name) for name in names}, exact=exact)  # type: ignore[arg-type]

    def with_components(self, components: FloatArray) -> Self:
        """Return the release with other components, computed from the released values."""
        return replace(self, components=components)

    def times(self, factors: FloatArray) -> Self:
        """Return the releases in other units: matrices and variances each times a positive factor.

        The published object (``raw``) and the components do not change.

        Parameters
        ----------
        factors : ndarray of shape (size,)
        """

        def scaled(values: FloatArray | None, factors: FloatArray = factors) -> FloatArray | None:
            if values is None:
                return None
            return values * factors.reshape(-1, *[1] * (values.ndim - 1))

        return replace(
            self,
            matrix=scaled(self.matrix),
            eigenvalues=scaled(self.eigenvalues),
            variances=scaled(self.variances),
            radius=scaled(self.radius, np.sqrt(factors)),
        )
