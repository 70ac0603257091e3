"""One real release, from declared bounds to a file; the ledger is written first."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
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
from dpviz.releasing.ledger import RELEASE, Ledger, Receipt, Spend
from dpviz.releasing.noise import Law, Noise, calibrated, opendp_version, released
from dpviz.releasing.options import BOUNDS_ALLOWED, NO_BOUNDS, ReleaseOptions, require_words
from dpviz.releasing.outputs import Outputs, telling
from dpviz.values.bounds_text import pair_of
from dpviz.values.problem import Budget, Relation

# Scales above this could leave 64 bits with their noise; the grid is then made coarser.
_LARGEST_SCALE = 2.0**55
_LONGEST_NUMBER = 24  # -2.2250738585072014e-308
_RECEIPT_BYTES = 1_024


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
    receipt : Receipt or None
        What the ledger says of it; None without one.
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
    receipt: Receipt | None

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
            "ledger": None if self.receipt is None else self.receipt.to_json(),
            "versions": {
                "dpviz": __version__,
                "opendp": opendp_version(),
                "numpy": version("numpy"),
                "python": platform.python_version(),
            },
        }

    def to_text(self) -> bytes:
        """Return the release's file."""
        return f"{json.dumps(self.to_json(), indent=1, allow_nan=False)}\n".encode()

    @property
    def said(self) -> str:
        """What the ledger says after this release, in one sentence; empty without one."""
        if self.receipt is None:
            return ""
        (epsilon, delta), left = self.receipt.total, self.receipt.left
        return (
            f"This is spend number {self.receipt.number} in the ledger, which stands at epsilon "
            f"{epsilon:.6g} and delta {numeral(delta, 3)} now and has {left[0]:.6g} and "
            f"{numeral(left[1], 3)} left."
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
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
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


@dataclass(frozen=True, eq=False)
class Plan:
    """A release that could be made: all that is public about it, and what it would cost.

    Attributes
    ----------
    options : ReleaseOptions
    table : Table
    mechanism : str
    relation : Relation
    declared : Declared
    bits : int
    noise : Noise
    claimed : Budget
    settings : mapping
        Every option, as text.
    """

    options: ReleaseOptions
    table: Table
    mechanism: str
    relation: Relation
    declared: Declared
    bits: int
    noise: Noise
    claimed: Budget
    settings: Mapping[str, str]

    def spend(self, table: str = "", token: str = "") -> Spend:
        """Return what a ledger would write down.

        Parameters
        ----------
        table : str
            Fingerprint by the ledger.
        token : str
            Of the form that asks.
        """
        noise = self.noise
        return Spend(
            mechanism=self.mechanism,
            epsilon=noise.proved.epsilon,
            delta=noise.proved.delta,
            rho=noise.rho,
            purpose=RELEASE,
            settings=digest(self.settings),
            schema=schema_digest(self.declared),
            table=table,
            token=token,
        )

    def released(
        self, matrix: FloatArray, pairs: tuple[FloatArray, FloatArray], receipt: Receipt | None
    ) -> RealRelease:
        """Return the release of a noisy matrix with these eigenpairs, ascending."""
        values, vectors = pairs
        n, d = self.table.rows.shape
        return RealRelease(
            mechanism=self.mechanism,
            problem=(n, d, self.options.k),
            relation=self.relation,
            declared=self.declared,
            bits=self.bits,
            noise=self.noise,
            claimed=self.claimed,
            matrix=matrix,
            eigenvalues=values[::-1].copy(),
            components=fix_signs(vectors[:, ::-1][:, : self.options.k]),
            settings=self.settings,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            receipt=receipt,
        )

    @property
    def largest_file(self) -> int:
        """Most bytes that the release's file can have."""
        d, k = len(self.declared.columns), self.options.k
        zeros = np.zeros((d, d))
        empty = self.released(zeros, (zeros[0], zeros), None)
        return len(empty.to_text()) + (d * d + d * k + d) * _LONGEST_NUMBER + _RECEIPT_BYTES


def plan(options: ReleaseOptions, table: Table | None = None) -> Plan:
    """Check everything that is public about a release, and calibrate its noise; spend nothing.

    Parameters
    ----------
    options : ReleaseOptions
    table : Table, optional
        In place of the one that the options name.

    Raises
    ------
    DpvizError
        If anything is missing or does not fit.
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
    claimed = Budget(options.epsilon, 0.0 if law is Law.LAPLACE else options.stated_delta)
    require_words(claimed.epsilon, claimed.delta, n, options.accept)
    bits = bits_for(n, options.grid)
    noise = calibrated(law, claimed, relation, d, bits)
    while noise.scale > _LARGEST_SCALE and options.grid is None and bits > 8:
        bits -= 2
        noise = calibrated(law, claimed, relation, d, bits)
    written = options.texts() | {"grid": str(bits), "mechanism": mechanism.text}
    settings = {**written, "n": str(n), "d": str(d)}
    return Plan(options, found, mechanism.text, relation, declared, bits, noise, claimed, settings)


def make(
    options: ReleaseOptions,
    *,
    ledger: Ledger | None = None,
    table: Table | None = None,
    content: Iterable[bytes] | None = None,
    out: Path | None = None,
    token: str = "",
) -> RealRelease:
    """Make one release: check what is public, take room for its files, spend, look at the rows.

    Parameters
    ----------
    options : ReleaseOptions
    ledger : Ledger, optional
        Where the spend is written before the rows are used. The release is kept beside it, for its
        owner only.
    table : Table, optional
        In place of the one that the options name.
    content : iterable of bytes, optional
        The table as it came, by which the ledger knows it again; otherwise the file that the
        options name, or the rows of a table without one.
    out : Path, optional
        A new file for the release.
    token : str
        Of the form that asks: a ledger spends on it once.

    Raises
    ------
    SpentWithoutFile
        If a file cannot be written although room was taken for it; the spend is in the ledger.
    DpvizError
        If anything is missing, does not fit or cannot be written; nothing is then spent.
    """
    planned = plan(options, table)
    spend = planned.spend(token=token)
    if ledger is not None:
        seen = content_of(options.table if table is None else table) if content is None else content
        spend = planned.spend(ledger.fingerprint(seen), token)
        ledger.check(spend, planned.relation)
    outputs = Outputs(ledger, out, planned.largest_file)
    try:
        receipt = None if ledger is None else ledger.spend(spend, planned.relation)
        with telling(ledger, receipt), one_blas_thread():
            moment = second_moment(
                quantised(planned.table.rows, planned.declared, planned.bits), planned.bits
            )
            estimate = released(moment, planned.noise, len(planned.table.rows), planned.bits)
            estimate *= planned.declared.row_bound**2
            made = planned.released(estimate, np.linalg.eigh(estimate), receipt)
            outputs.write(made.to_text(), receipt)
    finally:
        outputs.drop()
    return made


def content_of(table: str | Table) -> Iterator[bytes]:
    """Yield the bytes by which a ledger knows a table: a file's own, or names and rows."""
    if isinstance(table, str):
        path = Path(table)
        if table not in builtin_tables() and path.is_file():
            with path.open("rb") as file:
                while piece := file.read(2**20):
                    yield piece
            return
        table = load(table)
    yield json.dumps(list(table.columns)).encode()
    yield np.ascontiguousarray(table.rows, dtype="<f8").tobytes()


def schema_digest(declared: Declared) -> str:
    """Return a digest of everything that was declared of a table."""
    found = dataclasses.asdict(declared)
    return digest({name: json.dumps(value) for name, value in found.items()})


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
