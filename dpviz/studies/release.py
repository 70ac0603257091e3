"""The question `release`: one real release, with noise that is exact on a computer."""

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
    """The answer of `dpviz.release`: one real release and its file.

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
    """The release and the facts that a reader needs to judge it, without other facts on the table.

    Attributes
    ----------
    release : dpviz.releasing.making.RealRelease
    """

    release: RealRelease

    def summary(self) -> str:
        """Return what was released, what is proved about it, and what the ledger records."""
        result = self.release
        budget, mapping = result.plan.noise.proved, result.plan.noise.mapped
        n, some = result.plan.records.n, ""
        if result.counted is not None:
            some = f"; about {result.counted:,} of {n:,} rows are used"
        return (
            f"{result.plan.mechanism} released: proved epsilon {numeral(budget.epsilon, 6)} at "
            f"delta {numeral(budget.delta, 6)} (OpenDP's map: {numeral(mapping.epsilon, 6)}); it "
            f"{protects(result.plan.schema.rows_a_person)}{some}\n{result.said}"
        )

    def table(self) -> pd.DataFrame:
        """Return the released components, with a row per feature and a column per component."""
        table = pd.DataFrame(self.release.components)
        table.columns = pd.Index([f"component {j + 1}" for j in range(table.shape[1])])
        table.insert(0, "feature", list(self.release.declared.bounds.value.names))
        return table

    def data(self) -> ReleaseFile:
        """Return the release in the form of its file."""
        return cast(ReleaseFile, self.release.to_json())

    def to_json(self) -> str:
        """Return the text of the release's file, without the final line break."""
        return self.release.to_text().decode().rstrip("\n")


@asks("make one real release, with noise that is exact on a computer", ReleaseOptions, once=True)
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
    """Make one real release: record its cost first, then look at the rows.

    Parameters
    ----------
    table : str, path or Table
        A built-in table, or a file; the schema decides how each cell is parsed by itself.
    ledger : path or Ledger
        Ledger that records the cost before anything else; `ledger` creates such a ledger. The
        release is saved beside the ledger.
    out : path, optional
        Path of a new file for the release.
    schema : path or Schema, optional
        Schema for reading the table; by default the public schema of a built-in table.
    schema_from_data : bool
        Whether to accept a schema that is still marked as taken from the data.
    sheet : str
        Sheet of a workbook; if empty, the only sheet.
    **options
        Options of the release. The row-norm bound and delta have no default and must be stated.

    Returns
    -------
    Released
        ``to_json()`` writes the bytes of the release's file.

    Raises
    ------
    WrongArgument, InvalidSetting
        If an argument is unknown, or is out of its range.
    DpvizError
        If an argument is missing, does not fit or a file cannot be written; then no budget is used.

    See Also
    --------
    ledger : What releases have spent.
    schema : Drafts how a table is read.
    PrivatePCA : One private PCA in a pipeline, in floating point.

    Notes
    -----
    Rows are whole numbers, and the noise is OpenDP's discrete Gaussian or Laplace noise, with
    entropy from the system. No two releases are the same, and `rerun` refuses to repeat a release.
    ``made`` has no digest of the rows.

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
        # A row-norm bound may be given as a number, but the option expects a text.
        options["row_bound"] = str(options["row_bound"])
    choices = ReleaseOptions(**options)
    # A ledger object is used as it is. For a path, check first that the ledger exists.
    book = ledger if isinstance(ledger, Ledger) else ledger_at(fspath(ledger))
    # None means the public schema of a built-in table. Other tables then raise an error.
    rules = schema if schema is None or isinstance(schema, Schema) else Schema.read(Path(schema))
    result = make(
        choices,
        table if isinstance(table, Table) else table_input(fspath(table), sheet),
        rules,
        from_data=schema_from_data,
        ledger=book,
        out=None if out is None else Path(out),
    )
    return Released(result)
