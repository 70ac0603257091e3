"""One real release, from declared bounds to a file; the ledger is written first."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dpviz import __version__
from dpviz.base.arrays import FloatArray, fix_signs
from dpviz.base.blas import one_blas_thread
from dpviz.base.number_text import numeral
from dpviz.datasets import Table, builtin_tables, load, read_bounds, read_raw
from dpviz.errors import CannotRun, DpvizError, InvalidSetting
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.releasing.grid import Declared, bits_for, quantised, second_moment
from dpviz.releasing.ledger import Ledger
from dpviz.releasing.noise import Law, Noise, calibrated, opendp_version, released
from dpviz.releasing.options import BOUNDS_ALLOWED, NO_BOUNDS, ReleaseOptions
from dpviz.values.bounds_text import pair_of
from dpviz.values.problem import Budget, Relation

# Scales above this could leave 64 bits with their noise; the grid is then made coarser.
_LARGEST_SCALE = 2.0**55


@dataclass(frozen=True, eq=False)
class RealRelease:
    """What was released, and everything a reader needs to judge it.

    Attributes
    ----------
    mechanism : str
    problem : (n, d, k)
    relation : Relation
    declared : Declared
    bits : int
    noise : Noise
    claimed : Budget
    matrix : ndarray of shape (d, d)
        The noisy estimate of X'X/n, in squared units of the table.
    eigenvalues : ndarray of shape (d,)
        Of it, descending.
    components : ndarray of shape (d, k)
    settings : mapping
        Every option, as text.
    made : str
        Date and time, UTC.
    spends : int or None
        How many spends the ledger now has; None without a ledger.
    total : (float, float) or None
        Epsilon and delta of all of them.
    """

    mechanism: str
    problem: tuple[int, int, int]
    relation: Relation
    declared: Declared
    bits: int
    noise: Noise
    claimed: Budget
    matrix: FloatArray
    eigenvalues: FloatArray
    components: FloatArray
    settings: Mapping[str, str]
    made: str
    spends: int | None
    total: tuple[float, float] | None

    def to_json(self) -> dict[str, Any]:
        """Return the release as its file holds it."""
        n, d, k = self.problem
        declared, noise = self.declared, self.noise
        return {
            "dpviz_release": 1,
            "made": self.made,
            "mechanism": self.mechanism,
            "relation": str(self.relation),
            "n": n,
            "d": d,
            "k": k,
            "declared": {
                "columns": list(declared.columns),
                "low": [_finite(value) for value in declared.low],
                "high": [_finite(value) for value in declared.high],
                "center": list(declared.center),
                "row_bound": declared.row_bound,
            },
            "assumed_public": list(ASSUMED_PUBLIC),
            "claimed": {"epsilon": self.claimed.epsilon, "delta": self.claimed.delta},
            "proved": {
                "epsilon": noise.proved.epsilon,
                "delta": noise.proved.delta,
                "rho": noise.rho,
                "source": "privacy map of OpenDP for discrete noise on whole numbers",
            },
            "idealised": {
                "epsilon": noise.idealised.epsilon,
                "delta": noise.idealised.delta,
                "source": "continuous noise of the same scale in exact arithmetic; not claimed",
            },
            "noise": {
                "law": str(noise.law),
                "scale": noise.scale,
                "sensitivity": noise.sensitivity,
                "grid_bits": self.bits,
                "weights": [70, 99] if noise.law is Law.NORMAL else [1, 1],
            },
            "components": self.components.T.tolist(),
            "eigenvalues": self.eigenvalues.tolist(),
            "matrix": self.matrix.tolist(),
            "settings": dict(self.settings),
            "settings_hash": digest(self.settings),
            "ledger": None
            if self.spends is None or self.total is None
            else {
                "spends": self.spends,
                "epsilon": self.total[0],
                "delta": self.total[1],
            },
            "versions": {
                "dpviz": __version__,
                "opendp": opendp_version(),
                "numpy": version("numpy"),
                "python": platform.python_version(),
            },
        }

    @property
    def said(self) -> str:
        """What the ledger says after this release, in one sentence; empty without one."""
        if self.spends is None or self.total is None:
            return ""
        epsilon, delta = self.total
        return (
            f"This is spend number {self.spends} in the ledger, which stands at epsilon "
            f"{epsilon:.6g} and delta {numeral(delta, 3)} now."
        )


ASSUMED_PUBLIC = (
    "the number of rows n",
    "the names and number of the columns",
    "the declared bounds and row bound, which nobody took from the data",
)


def float_safe() -> dict[str, Law]:
    """Return the mechanisms with a sampler that is safe on a computer, and its law."""
    return {
        key: Law(cls.info.discrete) for key, cls in all_mechanisms().items() if cls.info.discrete
    }


def chosen(options: ReleaseOptions) -> tuple[Mechanism, Law]:
    """Return the mechanism to release by.

    Raises
    ------
    CannotRun
        If it has no sampler that is safe on a computer.
    """
    safe = float_safe()
    if options.mechanism is None:
        law = Law.NORMAL if options.delta > 0 else Law.LAPLACE
        key = next(key for key, found in safe.items() if found is law)
        return parse_variant(key), law
    mechanism = parse_variant(options.mechanism)
    if mechanism.key not in safe:
        raise CannotRun(
            mechanism.text,
            "no sampler of its noise is known that is safe against attacks on floating point, so "
            f"it is for teaching only; a release can be made by {' or '.join(safe)}",
        )
    return mechanism, safe[mechanism.key]


def declare(options: ReleaseOptions, table: Table) -> Declared:
    """Return what is public about each row; of the table only its column names are read."""
    options.require()
    columns = table.columns
    d = len(columns)
    written = options.bounds
    if written == NO_BOUNDS:
        limits = np.tile([-np.inf, np.inf], (d, 1))
    else:
        limits = stated_bounds(written, table)
    middle = np.zeros(d)
    if options.center == "midpoint" and written != NO_BOUNDS:
        middle = limits.mean(axis=1)
    return Declared(
        columns,
        tuple(limits[:, 0].tolist()),
        tuple(limits[:, 1].tolist()),
        tuple(middle.tolist()),
        float(options.row_bound),
    )


def stated_bounds(written: str, table: Table) -> FloatArray:
    """Return the public bounds that a text states, shape (d, 2); nothing of the rows is read.

    Parameters
    ----------
    written : str
        ``LOW:HIGH``, ``known`` or the path of a file with feature, low, high.
    table : Table
    """
    pair = pair_of(written)
    if pair is not None:
        return np.tile(pair, (len(table.columns), 1))
    if written == "known":
        if table.bounds is None:
            raise InvalidSetting(
                "bounds",
                "LOW:HIGH or a file, as this table has no known ones",
                written,
                "--bounds",
            )
        return table.bounds
    if not Path(written).is_file():
        raise InvalidSetting("bounds", BOUNDS_ALLOWED, written, "--bounds")
    given = read_bounds(written)
    missing = [name for name in table.columns if name not in given]
    if missing:
        raise InvalidSetting(
            "bounds", f"given for every feature; {missing[0]!r} is missing", written, "--bounds"
        )
    return np.array([given[name] for name in table.columns], dtype=np.float64)


def make(
    options: ReleaseOptions,
    *,
    ledger: Ledger | None = None,
    table: Table | None = None,
) -> RealRelease:
    """Make one release: check everything that is public, spend, then look at the rows.

    Parameters
    ----------
    options : ReleaseOptions
    ledger : Ledger, optional
        Where the spend is written before the rows are used.
    table : Table, optional
        In place of the one that the options name.

    Raises
    ------
    DpvizError
        If anything is missing or does not fit; nothing is then spent.
    """
    options.require()
    mechanism, law = chosen(options)
    found = _load(options) if table is None else table
    declared = declare(options, found)
    n, d = found.rows.shape
    relation = Relation(options.relation)
    if options.k > d:
        raise InvalidSetting("k", f"a whole number from 1 to {d}", options.k, "--k")
    if not np.isfinite(found.rows).all():
        raise DpvizError(
            f"{found.name} has missing or infinite values: fill or remove them first, as leaving "
            "rows out would show who has gaps; nothing was spent."
        )
    claimed = Budget(options.epsilon, 0.0 if law is Law.LAPLACE else options.delta)
    bits = bits_for(n, options.grid)
    noise = calibrated(law, claimed, relation, d, bits)
    while noise.scale > _LARGEST_SCALE and options.grid is None and bits > 8:
        bits -= 2
        noise = calibrated(law, claimed, relation, d, bits)
    written = options.texts() | {"grid": str(bits), "mechanism": mechanism.text}
    settings = {**written, "n": str(n), "d": str(d)}
    spends = total = None
    if ledger is not None:
        ledger.spend(
            mechanism.text,
            noise.proved,
            rho=noise.rho,
            purpose="release",
            settings=digest(settings),
        )
        contents = ledger.read()
        spends, total = len(contents.spends), contents.total
    with one_blas_thread():
        moment = second_moment(quantised(found.rows, declared, bits), bits)
        estimate = released(moment, noise, n, bits) * declared.row_bound**2
        values, vectors = np.linalg.eigh(estimate)
    return RealRelease(
        mechanism=mechanism.text,
        problem=(n, d, options.k),
        relation=relation,
        declared=declared,
        bits=bits,
        noise=noise,
        claimed=claimed,
        matrix=estimate,
        eigenvalues=values[::-1].copy(),
        components=fix_signs(vectors[:, ::-1][:, : options.k]),
        settings=settings,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        spends=spends,
        total=total,
    )


def check_out(out: Path) -> None:
    """Raise `DpvizError` if a release could not be written there; call it before spending."""
    if out.exists():
        raise DpvizError(f"--out must name a new file; {out.name!r} is there; nothing was spent.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise DpvizError(f"{out.name} cannot be written in that folder; nothing was spent.")


def write(release: RealRelease, out: Path) -> None:
    """Write the release's file, whole or not at all."""
    text = json.dumps(release.to_json(), indent=1, allow_nan=False)
    handle, temporary = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, out)


def digest(settings: Mapping[str, str]) -> str:
    """Return a digest of settings that does not depend on their order."""
    text = json.dumps(dict(sorted(settings.items())))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _load(options: ReleaseOptions) -> Table:
    """Return the table; a file with gaps is refused rather than repaired."""
    path = Path(options.table)
    if options.table in builtin_tables() or not path.is_file():
        return load(options.table, label=options.label)
    raw = read_raw(path, name=path.name)
    if raw.missing:
        raise DpvizError(
            f"{raw.name} has missing values: fill or remove them first, as leaving rows out would "
            "show who has gaps; nothing was spent."
        )
    return raw.to_table(label=options.label)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
