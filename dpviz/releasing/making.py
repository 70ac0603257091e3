"""Make one real release, from a declared schema to a file; the ledger is written first."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dpviz.core import VERSION
from dpviz.core.arrays import FloatArray, fix_signs
from dpviz.core.entries import PRIVATE, UNIT, Entries, FeatureBounds, Private, Public
from dpviz.core.errors import CannotRun, DpvizError, InvalidSetting, InvalidTable, printable
from dpviz.core.number_text import rows_words
from dpviz.core.platform import server_options
from dpviz.core.problem import (
    Budget,
    Relation,
)
from dpviz.core.resources import one_blas_thread
from dpviz.datasets import Table, builtin_tables, is_remote, load
from dpviz.datasets.sheet import SheetText, is_workbook, sheet_text
from dpviz.datasets.source import Source
from dpviz.mechanisms import Mechanism, all_mechanisms, parse_variant
from dpviz.releasing.declared import PrivacyWarning
from dpviz.releasing.grid import (
    IntArray,
    bits_for,
    center_at,
    quantised,
    row_bound_in,
    second_moment,
    transform_of,
    within_limits,
)
from dpviz.releasing.ledger import RELEASE, Ledger, LedgerError, Receipt, Spend
from dpviz.releasing.noise import (
    BY_MAP,
    COUNT,
    MEAN,
    Law,
    Noise,
    calibrated,
    count_side,
    installed,
    mean_side,
    opendp_version,
    released,
    released_count,
    released_mean,
)
from dpviz.releasing.options import ReleaseOptions, require_words
from dpviz.releasing.outputs import Outputs, telling
from dpviz.releasing.picture import Counting, counting, pictured
from dpviz.releasing.records import Records, TableInput, open_records
from dpviz.releasing.schema import (
    FROM_DATA,
    SCHEMA_PUBLIC,
    Schema,
    SchemaError,
    public_schema,
)

_LARGEST_SCALE = 2.0**55
_LONGEST_NUMBER = 24  # -2.2250738585072014e-308
_RECEIPT_BYTES = 1_024


ROWS_PUBLIC = "the number of rows n"
SCHEMA_FROM_DATA = (
    "the schema (names, bounds, typical values, how the table is written), TAKEN FROM THE TABLE "
    "without protection"
)
ONE_ROW = (
    "that nobody has a second row: this protects ONE ROW, and a person with several "
    "rows is protected less"
)
ROWS_A_PERSON = "that nobody has more than {}"
PERSON_COLUMN = "that column {!r} names the person of each row rightly"
COLUMNS_PUBLIC = "the names and types of the table's columns"
FORMULAS_PUBLIC = (
    "which cells of the sheet hold formulas and which rows are empty; a cell with a formula "
    "counts as missing"
)
BOUND_PUBLIC = "the row-norm bound, which nobody took from the data"
CATEGORIES_PUBLIC = (
    "the list of categories of column {!r}, agreed before the table was read; the picture "
    "names these categories and counts every other label as other"
)
TIME_PUBLIC = "how long the release took"
ASKED_PUBLIC = (
    "the options (k, the mechanism, how rows are bounded, centred and scaled), chosen "
    "without a look at the rows; a prediction from the rows is such a look"
)


def float_safe() -> dict[str, Law]:
    """Return the mechanisms with a floating-point-safe sampler, each with its noise law."""
    return {
        key: Law(cls.info.discrete) for key, cls in all_mechanisms().items() if cls.info.discrete
    }


def chosen(options: ReleaseOptions) -> tuple[Mechanism, Law]:
    """Return the mechanism of the release, and the distribution of its noise.

    Raises
    ------
    CannotRun
        If the mechanism has no floating-point-safe sampler.
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
            "this mechanism is for teaching only: its noise is not safe against attacks on "
            f"floating-point numbers. Release with {' or '.join(safe)}",
        )
    if not mechanism.central:
        raise CannotRun(
            mechanism.text,
            "each person would have to add noise to their own row, but this table holds all "
            f"rows; use {mechanism.key}",
        )
    return mechanism, safe[mechanism.key]


def table_input(table: str, sheet: str = "") -> TableInput:
    """Return the table that a command-line word names: a built-in table, a remote set or a file.

    For a workbook, return the text of a sheet: the named sheet or the only sheet.
    """
    name = Path(table).name
    if table in builtin_tables() or is_remote(table) or not Path(table).is_file():
        if sheet:
            raise InvalidTable(f"{printable(name)} is not a workbook, so it has no sheets.")
        return load(table)
    return sheet_text(table, printable(name), sheet) if is_workbook(name, sheet) else Path(table)


def declare(options: ReleaseOptions, schema: Schema) -> Entries:
    """Return the public declarations about each row."""
    options.require()
    schema.require()
    low, high, typical = schema.limits_used.T
    # Each limit is halved before the addition, because the sum of two large limits may overflow.
    middle = low / 2 + high / 2
    centers = {
        "typical": typical,
        "midpoint": middle,
        "none": np.zeros(len(low)),
        PRIVATE: middle,  # The middle is used until the mean is released.
    }
    center = tuple(centers[options.center].tolist())
    width = tuple((high / 2 - low / 2).tolist()) if options.scale == "limits" else None
    paid = options.center == PRIVATE
    stated = Entries(
        Public(FeatureBounds(tuple(low.tolist()), tuple(high.tolist()), schema.names_used)),
        Private(options.mean_share, center) if paid else Public(center),
        Public(width),
        Public(UNIT if options.rows == "unit" else float(options.row_bound)),
    )
    transform_of(stated)  # This call raises an error if rows cannot be prepared.
    return stated


def in_force(table: TableInput, schema: Schema | None, *, from_data: bool) -> Schema:
    """Return the schema of a release, or raise if no schema may be used.

    Parameters
    ----------
    table : Table, Path, bytes-like or binary file
    schema : Schema or None
        Schema of the caller. None takes the table's public schema, if the table has one.
    from_data : bool
        Whether a schema that was taken from the data may be used as if it were public.
    """
    if schema is None and isinstance(table, Table):
        schema = public_schema(table)
    if schema is None:
        raise InvalidSetting(
            "schema",
            "given, because no public limits of this table are known; dpviz schema drafts a schema",
            "nothing",
            "--schema",
        )
    if schema.from_data and not from_data:
        raise SchemaError(
            f"the schema is still marked {FROM_DATA!r}. Enter limits that were known before "
            "anybody looked at the table, and mark the schema public. Or give "
            "--schema-from-data; the release then says so. Nothing was spent."
        )
    return schema


@dataclass(frozen=True, eq=False)
class Plan:
    """A planned release: all its public properties, and its privacy cost.

    Attributes
    ----------
    options : ReleaseOptions
    name : str
        Name of the table.
    schema : Schema
    records : Records
        The rows, which are not read yet.
    assumed_public : tuple of str
    mechanism : str
    relation : Relation
    declared : Entries
    bits : int
    noise : Noise
    claimed : Budget
    settings : mapping
        Every option of the release, as text.
    counting : Counting or None
        How the published map is counted, if a map is requested.
    """

    options: ReleaseOptions
    name: str
    schema: Schema
    records: Records
    assumed_public: tuple[str, ...]
    mechanism: str
    relation: Relation
    declared: Entries
    bits: int
    noise: Noise
    claimed: Budget
    settings: Mapping[str, str]
    counting: Counting | None = None

    def spend(self, table: str = "", token: str = "") -> Spend:
        """Return the spend that a ledger would record for the release.

        Parameters
        ----------
        table : str
            The table's fingerprint, computed by the ledger.
        token : str
            Token of the submitted form that requests the release.
        """
        noise, d = self.noise, len(self.schema.used)
        coordinates = d * (d + 1) // 2 + sum(side.entries for side in noise.sides)
        return Spend(
            mechanism=self.mechanism,
            epsilon=noise.proved.epsilon,
            delta=noise.proved.delta,
            rho=noise.rho,
            purpose=RELEASE,
            settings=digest(self.settings),
            schema=self.schema.digest,
            table=table,
            token=token,
            stated_purpose=self.options.purpose,
            by=self.options.by,
            rows=0 if self.schema.person else self.schema.rows_a_person or 0,
            noise=(noise.scale, noise.sensitivity, coordinates)
            if noise.law is Law.NORMAL
            else None,
        )

    def count(self) -> int:
        """Return the number of rows that the release uses; this reads the person column."""
        return sum(len(block) for block in self.records.blocks())

    def total(self) -> IntArray:
        """Return the sum of the rows for a private mean, in whole numbers."""
        how = within_limits(transform_of(self.declared))
        found = np.zeros(len(how.center), dtype=np.int64)
        for block in self.records.blocks():
            rows = quantised(self.schema.filled(block), how, self.bits)
            found += rows.sum(0)
        return found

    def moment(self, declared: Entries | None = None) -> IntArray:
        """Return X'X of the certified rows, in whole numbers; this reads the rows.

        Parameters
        ----------
        declared : Entries, optional
            Entries with the released centre; by default the plan's own.
        """
        how = transform_of(declared or self.declared)
        found = np.zeros((len(how.center), len(how.center)), dtype=np.int64)
        for block in self.records.blocks():
            rows = quantised(self.schema.filled(block), how, self.bits)
            found += second_moment(rows, self.bits)
        return found

    def pictured(
        self, declared: Entries, matrix: FloatArray, components: FloatArray, n: int
    ) -> dict[str, Any] | None:
        """Return the map along released components, or None if no map is requested.

        This method reads the rows once more, and samples the noise once.

        Parameters
        ----------
        declared : Entries
            Entries with the released centre.
        matrix : ndarray of shape (d, d)
            Released matrix, in units of the squared row-norm bound.
        components : ndarray of shape (d, k)
            Released.
        n : int
            Number of rows, or the noisy number of used rows.
        """
        if self.counting is None:
            return None
        return pictured(
            ((self.schema.filled(block), codes) for block, codes in self.records.labelled()),
            transform_of(declared),
            components,
            np.asarray(np.linalg.eigvalsh(matrix)[::-1], dtype=np.float64),
            self.counting.among(n),
            self.noise,
            self.schema.label,
        )

    def centred(self, mean: FloatArray | None) -> Entries:
        """Return the entries around a released mean, which is in units of `total`'s rows."""
        if mean is None:
            return self.declared
        center = tuple(center_at(mean, transform_of(self.declared)).tolist())
        return replace(self.declared, center=replace(self.declared.center, value=center))

    def released(
        self,
        matrix: FloatArray,
        pairs: tuple[FloatArray, FloatArray],
        made: str,
        receipt: Receipt | None,
        declared: Entries | None = None,
        picture: dict[str, Any] | None = None,
        counted: int | None = None,
    ) -> RealRelease:
        """Return the release of a noisy matrix, given its eigenpairs in ascending order.

        ``declared`` holds the released centre; ``counted`` is the released number of used rows, or
        None.
        """
        values, vectors = pairs
        return RealRelease(
            self,
            declared or self.declared,
            matrix,
            values[::-1].copy(),
            self.components(vectors),
            made,
            receipt,
            picture,
            counted,
        )

    def components(self, vectors: FloatArray) -> FloatArray:
        """Return a release's components from its ascending eigenvectors; shape (d, k)."""
        found: FloatArray = fix_signs(vectors[:, ::-1][:, : self.options.k])
        return found

    @property
    def largest_file(self) -> int:
        """Largest possible size of the release's file, in bytes."""
        d, k = len(self.schema.used), self.options.k
        zeros = np.zeros((d, d))
        empty = self.released(zeros, (zeros[0], zeros), _now(), None, counted=self.records.n)
        numbers = d * d + d * k + 3 * d
        # A zero is the shortest number, but each number may grow to `_LONGEST_NUMBER`.
        size = len(empty.to_text()) + _RECEIPT_BYTES
        if self.counting is not None:  # The released chart adds numbers and category names.
            made = self.counting
            numbers += 2 * math.prod(made.plan.shape) + 64
            size += _RECEIPT_BYTES + sum(len(json.dumps(name)) + 8 for name in made.kinds)
        return size + numbers * _LONGEST_NUMBER


@dataclass(frozen=True, eq=False)
class RealRelease:
    """A release, and all facts that a reader needs to judge it.

    Attributes
    ----------
    plan : Plan
        The public plan, known before the release.
    declared : Entries
        Declared entries; the centre is the private mean, if there is one.
    matrix : ndarray of shape (d, d)
        The noisy estimate of X'X/n, in squared units of the table (or of the scaled table; without
        unit for rows of length one).
    eigenvalues : ndarray of shape (d,)
        Eigenvalues of ``matrix``, descending.
    components : ndarray of shape (d, k)
    made : str
        Date and time of the release, UTC.
    receipt : Receipt or None
        The ledger's receipt; None without a ledger.
    picture : dict or None
        The published map in the form of the file.
    counted : int or None
        The released, noisy number of used rows, if there is one; it then replaces n as the divisor.
    """

    plan: Plan
    declared: Entries
    matrix: FloatArray
    eigenvalues: FloatArray
    components: FloatArray
    made: str
    receipt: Receipt | None
    picture: dict[str, Any] | None = None
    counted: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the release in the form of its file."""
        plan, declared, noise, schema = self.plan, self.declared, self.plan.noise, self.plan.schema
        (d, k), claimed, mean = self.components.shape, plan.claimed, noise.side(MEAN)
        return {
            "dpviz_release": 1,
            "name": plan.name,
            "made": self.made,
            "purpose": plan.settings.get("purpose", ""),
            "by": plan.settings.get("by", ""),
            "mechanism": plan.mechanism,
            "relation": str(plan.relation),
            "unit": {
                "protected": str(schema.unit),
                "rows": schema.rows_a_person or 1,
                "person": schema.person or None,
            },
            "n": plan.records.n,
            **({} if self.counted is None else {"counted": self.counted}),
            "d": d,
            "k": k,
            "declared": {
                "columns": list(declared.bounds.value.names),
                "low": list(declared.bounds.value.low),
                "high": list(declared.bounds.value.high),
                "typical": schema.limits_used.T[2].tolist(),
                "log": [column.name for column in schema.used if column.log],
                "missing": [list(column.missing) for column in schema.used],
                **schema.scales,
                "center": list(declared.center.value),
                "scale": list(declared.scale.value or ()),
                "rows": "unit" if declared.row_bound.value == UNIT else "bound",
                "row_bound": row_bound_in(declared),
                "schema": schema.digest,
            },
            "assumed_public": list(plan.assumed_public),
            "claimed": {"epsilon": claimed.epsilon, "delta": claimed.delta},
            "proved": {
                "epsilon": noise.proved.epsilon,
                "delta": noise.proved.delta,
                "rho": noise.rho,
                "source": noise.source,
            },
            "opendp": {
                "epsilon": noise.mapped.epsilon,
                "delta": noise.mapped.delta,
                "source": BY_MAP,
            },
            "noise": {
                "law": str(noise.law),
                "scale": noise.scale,
                "sensitivity": noise.sensitivity,
                "grid_bits": plan.bits,
                "weights": [70, 99] if noise.law is Law.NORMAL else [1, 1],
            },
            "beside": [asdict(side) for side in noise.sides],
            "mean": None if mean is None else list(declared.center.value),
            "components": self.components.T.tolist(),
            "eigenvalues": self.eigenvalues.tolist(),
            "matrix": self.matrix.tolist(),
            "picture": self.picture,
            "settings": dict(plan.settings),
            "settings_hash": digest(plan.settings),
            "ledger": None if self.receipt is None else self.receipt.to_json(),
            "versions": {
                "dpviz": VERSION,
                "opendp": opendp_version(),
                "numpy": installed("numpy"),
                "python": platform.python_version(),
            },
        }

    def to_text(self) -> bytes:
        """Return the content of the release's file."""
        return f"{json.dumps(self.to_json(), indent=1, allow_nan=False)}\n".encode()

    @property
    def said(self) -> str:
        """A sentence on the ledger after this release; empty if there is no ledger."""
        return "" if self.receipt is None else self.receipt.said


def plan(
    options: ReleaseOptions,
    table: TableInput,
    schema: Schema | None = None,
    *,
    from_data: bool = False,
) -> Plan:
    """Check all public properties of a release and calibrate its noise, without using budget.

    Parameters
    ----------
    options : ReleaseOptions
    table : Table, Path, bytes-like or binary file
        The table to release.
    schema : Schema, optional
        Schema for reading the table; by default the public schema of a built-in table.
    from_data : bool
        Whether a schema that was taken from the data may be used as if it were public.

    Raises
    ------
    DpvizError
        If an option is missing or does not fit. The error never depends on a row.
    """
    options.require()
    mechanism, law = chosen(options)
    schema = in_force(table, schema, from_data=from_data)
    declared = declare(options, schema)
    records = open_records(table, schema)
    n, d = records.n, len(schema.used)
    if n < 2:
        raise DpvizError(f"the table must have at least 2 rows; it has {n}.")
    relation = Relation(options.relation)
    if options.k > d:
        raise InvalidSetting("k", f"a whole number from 1 to {d}", options.k, "--k")
    # Laplace noise uses no delta, so the claimed delta is 0 whatever was stated.
    claimed = Budget(options.epsilon, 0.0 if law is Law.LAPLACE else options.stated_delta)
    require_words(claimed.epsilon, claimed.delta, n, options.accept)
    bits = bits_for(n, options.grid)
    rows = schema.rows_a_person or 1

    def with_noise(bits: int) -> tuple[Noise, Counting | None]:
        share = options.mean_share
        paid = options.center == PRIVATE
        sides = [mean_side(law, relation, d, bits, rows, share=share)] if paid else []
        if schema.person:
            # The number of used rows depends on the rows, so it is released with noise. Otherwise a
            # mean of fewer than n rows would be wrong by the missing share.
            sides.append(count_side(bits, rows))
        made = None
        if options.picture:
            made = counting(
                options.picture, law, claimed, relation, n, options.k, schema.kinds, bits, rows
            )
            sides += made.sides
        return calibrated(law, claimed, relation, d, bits, rows, sides), made

    noise, made = with_noise(bits)
    # If noise comes near the limit of 64 bits, the grid becomes coarser, unless it was requested.
    while noise.scale > _LARGEST_SCALE and options.grid is None and bits > 8:
        bits -= 2
        noise, made = with_noise(bits)
    name = options.name or _public_name(table)
    written = options.texts() | {"grid": str(bits), "mechanism": mechanism.text, "name": name}
    return Plan(
        options,
        name,
        schema,
        records,
        _assumed_public(table, schema, options),
        mechanism.text,
        relation,
        declared,
        bits,
        noise,
        claimed,
        {**written, "schema": schema.digest, "n": str(n), "d": str(d)},
        made,
    )


def make(
    options: ReleaseOptions,
    table: TableInput,
    schema: Schema | None = None,
    *,
    from_data: bool = False,
    ledger: Ledger | None = None,
    out: Path | None = None,
    token: str = "",
) -> RealRelease:
    """Make one release: check, reserve disk space, record the spend, then read the rows.

    Parameters
    ----------
    options, table, schema, from_data
        Arguments of `plan`.
    ledger : Ledger, optional
        Ledger in which the spend is written before the rows are used. The release is stored beside
        the ledger, readable only by its owner.
    out : Path, optional
        Path of a new file for the release.
    token : str
        Token of the submitted form; a ledger accepts one spend for it.

    Raises
    ------
    SpentWithoutFile
        If a file cannot be written despite its reserved space; the spend is in the ledger.
    DpvizError
        If an option is missing, does not fit or a file cannot be written; then no budget is used.
    """
    if ledger is not None and not options.purpose:
        options = replace(options, purpose=ledger.read().purpose)
    planned = plan(options, table, schema, from_data=from_data)
    counts = planned.relation, planned.schema.unit
    spend = planned.spend(token=token)
    if ledger is not None:
        spend = planned.spend(ledger.fingerprint(content_of(table)), token)
        # Too large a cost is refused before files are reserved. `spend` checks again in its lock.
        ledger.check(spend, *counts)
        if elsewhere := paid_elsewhere(table, ledger):
            warnings.warn(elsewhere, PrivacyWarning, stacklevel=2)
    outputs = Outputs(ledger, out, planned.largest_file)
    try:
        receipt = None if ledger is None else ledger.spend(spend, *counts)
        now = _now()  # The clock is read before the rows: reading them takes a varying time.
        with telling(ledger, receipt), one_blas_thread():
            noise, n, bits = planned.noise, planned.records.n, planned.bits
            counted = None
            if noise.side(COUNT) is not None:
                n = counted = released_count(planned.count(), noise, n, bits)
            side = noise.side(MEAN)
            mean = None if side is None else released_mean(planned.total(), noise, n, bits)
            declared = planned.centred(mean)
            estimate = released(planned.moment(declared), noise, n, bits)
            matrix = estimate * row_bound_in(declared) ** 2
            pairs = np.linalg.eigh(matrix)
            picture = planned.pictured(declared, estimate, planned.components(pairs[1]), n)
            made = planned.released(matrix, pairs, now, receipt, declared, picture, counted)
            outputs.write(made.to_text(), receipt)
    finally:
        outputs.drop()
    return made


def paid_elsewhere(table: TableInput, ledger: Ledger) -> str:
    """Return a sentence if other ledgers in this folder record the table too, else an empty text.

    Raises
    ------
    LedgerError
        If there are such ledgers, and the machine's administrator has set ``DPVIZ_ONE_LEDGER=on``.
    """
    found = ledger.others(lambda: content_of(table))
    if not found:
        return ""
    said = (
        f"{' and '.join(found)} in the same folder {'records' if len(found) == 1 else 'record'} "
        "this table too. Their costs add up for the same people, and no limit covers them all"
    )
    if server_options().one_ledger:
        raise LedgerError(f"{said}; this machine allows one ledger a table; nothing was spent.")
    return f"{said}."


def content_of(table: TableInput) -> Iterator[bytes]:
    """Yield the bytes for a table's fingerprint: from its file, or names and rows in memory.

    Raises
    ------
    InvalidTable
        If the table cannot be read.
    """
    if isinstance(table, Table):
        yield json.dumps(list(table.columns)).encode()
        # Numbers are little-endian, so that a table has the same fingerprint on every computer.
        yield np.ascontiguousarray(table.rows, dtype="<f8").tobytes()
    else:
        yield from Source(table, "the table").chunks()


def digest(settings: Mapping[str, str]) -> str:
    """Return a digest of settings that does not depend on their order."""
    text = json.dumps(dict(sorted(settings.items())))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _assumed_public(table: TableInput, schema: Schema, options: ReleaseOptions) -> tuple[str, ...]:
    """Return phrases for everything that the release does not protect."""
    own = table.assumed_public if isinstance(table, Table) else ()
    said = SCHEMA_FROM_DATA if schema.from_data else SCHEMA_PUBLIC
    if schema.person:
        unit = PERSON_COLUMN.format(schema.person)
    elif schema.rows_a_person:
        unit = ROWS_A_PERSON.format(rows_words(schema.rows_a_person))
    else:
        unit = ONE_ROW
    bound = () if options.rows == "unit" else (BOUND_PUBLIC,)
    told = options.picture and schema.label
    names = (CATEGORIES_PUBLIC.format(schema.label),) if told else ()
    return (
        *(ROWS_PUBLIC, unit, said, COLUMNS_PUBLIC),
        *((FORMULAS_PUBLIC,) if isinstance(table, SheetText) else ()),
        *(*bound, *names, ASKED_PUBLIC, TIME_PUBLIC, *own),
    )


def _public_name(table: TableInput) -> str:
    """Return the public name of a table without a stated name, never the name of a file."""
    return table.name if isinstance(table, Table) and table.name in builtin_tables() else "table"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
