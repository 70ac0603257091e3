"""The question `release`: one real release, with noise that is safe on a computer."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypedDict, cast

import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.core.problem import protects
from dpviz.datasets import Table
from dpviz.releasing.ledger import Ledger, ledger_at
from dpviz.releasing.making import RealRelease, make, table_input
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.schema import Schema
from dpviz.studies import Answer
from dpviz.studies.options import asks


class ReleaseFile(TypedDict):
    """One real release: `dpviz.release`, the file that is handed out.

    Attributes
    ----------
    declared : How columns were read and bounded, all public.
    proved, opendp : What it spends, by the proof and by OpenDP's own account.
    beside : What was released beside the matrix under the same account.
    mean : Private mean of the rows; null where they were centred on public numbers.
    components : k rows of length d.
    picture : Whole-number counts of people in cells along the components; null where none was made.
    """

    dpviz_release: int
    name: str
    made: str
    purpose: str
    by: str
    mechanism: str
    relation: str
    unit: dict[str, str | int | None]
    n: int
    d: int
    k: int
    declared: dict[str, Any]
    assumed_public: list[str]
    claimed: dict[str, float]
    proved: dict[str, float | str | None]
    opendp: dict[str, float | str | None]
    noise: dict[str, Any]
    beside: list[dict[str, Any]]
    mean: list[float] | None
    components: list[list[float]]
    eigenvalues: list[float] | None
    matrix: list[list[float]] | None
    picture: dict[str, Any] | None
    settings: dict[str, str]
    settings_hash: str
    ledger: dict[str, Any]
    versions: dict[str, str]


@dataclass(frozen=True, eq=False, repr=False)
class Released(Answer):
    """What was released, and what a reader needs to judge it: nothing else of the table.

    Attributes
    ----------
    release : dpviz.releasing.making.RealRelease
    """

    release: RealRelease

    def summary(self) -> str:
        """Return what was released, what is proved of it, and what the ledger says."""
        made = self.release
        proved, mapped = made.plan.noise.proved, made.plan.noise.mapped
        n, some = made.plan.records.n, ""
        if made.counted is not None:
            some = f"; about {made.counted:,} of {n:,} rows count, and all is of those"
        return (
            f"{made.plan.mechanism} released: proved epsilon {numeral(proved.epsilon, 6)} at delta "
            f"{numeral(proved.delta, 6)} (OpenDP's map: {numeral(mapped.epsilon, 6)}); it "
            f"{protects(made.plan.schema.rows_a_person)}{some}\n{made.said}"
        )

    def table(self) -> pd.DataFrame:
        """Return the released components: a row for each feature, a column for each component."""
        found = pd.DataFrame(self.release.components)
        found.columns = pd.Index([f"component {j + 1}" for j in range(found.shape[1])])
        found.insert(0, "feature", list(self.release.declared.bounds.value.names))
        return found

    def data(self) -> ReleaseFile:
        """Return the release as its file holds it."""
        return cast(ReleaseFile, self.release.to_json())

    def to_json(self) -> str:
        """Return the text of the release's file, without the end of its last line."""
        return self.release.to_text().decode().rstrip("\n")


@asks("make one real release, with noise that is safe on a computer", ReleaseOptions, once=True)
def release(
    table: str | PathLike[str] | Table,
    *,
    ledger: str | PathLike[str] | Ledger,
    out: str | PathLike[str] | None = None,
    schema: str | PathLike[str] | Schema | None = None,
    schema_from_data: bool = False,
    sheet: str = "",
    **options: Any,
) -> Released:
    """Make one real release: the spend is written first, then the rows are looked at.

    Parameters
    ----------
    table : str, path or Table
        A built-in table, or a file: each cell is parsed by itself under the schema.
    ledger : path or Ledger
        Where the spend is written down before anything else; `ledger` makes it. The release is
        kept beside it.
    out : path, optional
        A new file for the release.
    schema : path or Schema, optional
        How the table is read; by default the public schema of a built-in table.
    schema_from_data : bool
        Whether a schema that is still marked as taken from the data may be used.
    sheet : str
        Of a workbook, by name; its only one if empty.
    **options
        What is released. The row bound and delta have no default: somebody must state them.

    Returns
    -------
    Released
        ``to_json()`` writes the bytes of the release's file.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is none of these, or is out of its range.
    DpvizError
        If anything is missing, does not fit or cannot be written; nothing is then spent.

    See Also
    --------
    ledger : What releases have spent.
    schema : Drafts how a table is read.
    PrivatePCA : One private PCA in a pipeline, in floating point.

    Notes
    -----
    Whole-number rows and OpenDP's discrete Gaussian or Laplace noise, with entropy from the system:
    no two releases are the same, and none is asked again. What made it names no digest of the rows.

    Examples
    --------
    >>> import dpviz, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = dpviz.ledger(f"{folder}/mine.jsonl", limit=(3, 1e-5)).ledger
    ...     found = dpviz.release("digits", ledger=book, row_bound=60, delta=1e-6)
    >>> found.data()["ledger"]["spends"]
    1
    """
    if "row_bound" in options:
        # a number is a legal row bound, and the option is read as a text
        options["row_bound"] = str(options["row_bound"])
    chosen = ReleaseOptions(**options)
    # one that is open is used as it stands; a path is looked at first, for it must be there
    book = ledger if isinstance(ledger, Ledger) else ledger_at(fspath(ledger))
    # None is the public schema of a built-in table, and an error for any other
    stated = schema if schema is None or isinstance(schema, Schema) else Schema.read(Path(schema))
    made = make(
        chosen,
        table if isinstance(table, Table) else table_input(fspath(table), sheet),
        stated,
        from_data=schema_from_data,
        ledger=book,
        out=None if out is None else Path(out),
    )
    return Released(made)
