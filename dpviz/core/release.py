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

    ``REFUTED``: false on its own terms, by an exact account or an attack. ``OUT_OF_SCOPE``: fails
    here by an exact account, where its source does not promise it: other neighbours, or an epsilon
    outside its proof. ``UNPROVEN``: no proof covers what is released here, and nothing known
    breaks it; an upper bound above the claim says no more than that.
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
        """Whether a claim is made that does not hold in this setting."""
        return self in (Verdict.REFUTED, Verdict.OUT_OF_SCOPE, Verdict.UNPROVEN)

    @property
    def counts(self) -> bool:
        """Whether a claim is made that holds in this setting."""
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
    """The quantity that a release estimates, and shows exactly without noise.

    ``COMPONENTS``: the leading components of A itself. ``DIRECTIONS``: those of the rows' unit
    vectors. ``CLIPPED``: those of rows shortened to a radius that the mechanism finds. ``NOTHING``:
    it does not look at the rows.
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
        """A mark that goes with the words."""
        return VERDICT_MARKS[self.verdict]

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
    exact : bool
        Whether the matrix is what the mechanism saw, without noise, and is left out.
    radius : ndarray of shape (size,) or None
        Length that rows were clipped at, in units of the rows, where the mechanism found one; it is
        released too.
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

    @classmethod
    def joined(cls, batches: Sequence[Self]) -> Self:
        """Return one batch of several of the same kind, in order, without fields that some lack."""

        def together(name: str) -> FloatArray | None:
            parts = [getattr(batch, name) for batch in batches]
            return None if any(part is None for part in parts) else np.concatenate(parts)

        # a new field is joined too, without being named here
        names = [each.name for each in fields(cls) if each.name != "exact"]
        exact = all(batch.exact for batch in batches)
        return cls(**{name: together(name) for name in names}, exact=exact)  # type: ignore[arg-type]

    def with_components(self, components: FloatArray) -> Self:
        """Return the release with other components, computed from the released values."""
        return replace(self, components=components)

    def times(self, factors: FloatArray) -> Self:
        """Return the releases in another unit: matrices and variances times a factor above 0 each.

        What was published (``raw``) and the components stay as they are.

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
