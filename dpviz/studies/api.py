"""The front door for Python: what the command line does, for what a notebook has at hand.

Keywords are the fields of `dpviz.core.settings.Settings`, with the same names, ranges and defaults
as on the command line, which calls these functions too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Unpack

from dpviz.auditing import AuditOptions
from dpviz.auditing.table import listing_rows
from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting, WrongArgument
from dpviz.core.settings import Settings
from dpviz.datasets import dataset_rows, remote
from dpviz.mechanisms import Mechanism
from dpviz.preparation.plan import PREFIX, plan_of, planned, whole_people
from dpviz.report.tables.predicted import expectations
from dpviz.simulation.cells import variants_of
from dpviz.simulation.compare import compare as compare_prepared
from dpviz.simulation.jobs import Pool, Progress
from dpviz.simulation.least import targets
from dpviz.simulation.store import Store
from dpviz.simulation.sweep import sweep as sweep_prepared
from dpviz.studies.asked import (
    GOAL_METRICS,
    AuditKeywords,
    GoalOptions,
    Goals,
    Options,
    PlanOptions,
    SearchOptions,
    asks,
    audit_options,
    axes_of,
    goal_of,
    numbers_of,
    ready,
)
from dpviz.studies.audited import Audited
from dpviz.studies.compared import Compared
from dpviz.studies.listing import Listing
from dpviz.studies.needed import Needed
from dpviz.studies.predicted import Predictions
from dpviz.studies.swept import Swept

__all__ = ["audit", "compare", "least", "list_datasets", "list_mechanisms", "predict", "sweep"]


@asks("run mechanisms side by side on one table", Settings)
def compare(
    table: Any = "digits",
    *,
    progress: Callable[[int, int, str], None] | None = None,
    foretell: Callable[[float], None] | None = None,
    memory: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Compared:
    """Run mechanisms side by side on one table.

    Parameters
    ----------
    table : str, path, DataFrame, array of shape (n, d) or plan
        A built-in or remote key (see `list_datasets`); the path of a CSV or Parquet file; a frame
        of pandas, polars (a lazy one too) or any library that speaks Arrow, or of Dask; an array,
        one row a person, of NumPy, Dask or anything with ``__array__``, or a list of rows; a Bunch
        of scikit-learn, whose target is the label ``target``; or a plan without a table,
        ``plan:n=1e5,spectrum=power:d=50,exponent=1.5,total=0.5``.
    progress : callable, optional
        Called with (done, total, what comes next) before each mechanism.
    foretell : callable, optional
        Called once with the seconds that a long run is expected to take.
    memory : callable, optional
        Called once, before anything is drawn, with about the most bytes that the run takes beside
        the table. A mechanism that would take more than is free is skipped, or refused if named.
    **options
        Fields of `dpviz.core.settings.Settings`. ``mechanisms`` is one variant such as
        ``"mvg[theorem=3]"`` or several, all that apply if not said; ``bounds`` may be a mapping of
        feature to (low, high), and ``allocation`` a mapping of feature to share.

    Returns
    -------
    Compared
        ``summary()``, ``table()``, ``draws()``, ``figure(name)`` and ``to_json()``, which writes
        the bytes of ``dpviz compare --format json``.

    Raises
    ------
    WrongArgument
        If an argument is none of these, or is given by position.
    InvalidSetting
        If an option is out of its range.
    InvalidTable
        If the table cannot be read or used.
    CannotRun
        If a mechanism that was named cannot run on this problem and budget.

    See Also
    --------
    sweep : The same along epsilon, delta, k, n or the row bound.
    least : The least epsilon for a goal.
    predict : The same without a draw.

    Notes
    -----
    Results are compared with the exact components, so nothing here is a release. Metrics and
    their units are in `dpviz.metrics.METRICS`; eigenvalues are in squared row bounds. Each
    mechanism's source is in its ``info.paper``.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.compare("iris", epsilon=1, delta=1e-4, k=2, trials=20, mechanisms="gaussian")
    >>> found.table()[["mechanism", "status"]].to_dict("records")
    [{'mechanism': 'gaussian', 'status': 'holds'}]
    >>> print(found.summary())
    At epsilon 1 and delta 0.0001, Gaussian, exact recovers ...
    iris: 150 people (rows), 4 features; row norms up to R = 3.839. ...
    Assumed public: the number of rows n and the features' names; ...
    >>> figure = found.figure("spectrum")

    A data frame, and bounds that are public:

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"age": [31, 44, 57, 62], "visits": [2, 0, 5, 3]})
    >>> bounds = {"age": (0, 120), "visits": (0, 50)}
    >>> found = dpviz.compare(frame, k=1, domain="box", bounds=bounds, mechanisms="laplace")
    >>> found.comparison.prepared.assumed_public
    ("the number of rows n and the features' names",)
    """
    prepared, settings = ready(table, options)
    return Compared(compare_prepared(prepared, settings, progress, foretell, memory))


@asks("run mechanisms over a grid of settings", Settings, noun="cell")
def sweep(
    table: Any = "digits",
    *,
    over: str | Sequence[str] | Mapping[str, Any] = "epsilon",
    values: Any = None,
    workers: int = 1,
    backend: str | None = None,
    scheduler: str | None = None,
    cache: str | PathLike[str] | Store | None = None,
    progress: Callable[[Progress], None] | None = None,
    foretell: Callable[[float], None] | None = None,
    **options: Unpack[Options],
) -> Swept:
    """Run mechanisms over a grid of settings.

    Parameters
    ----------
    table
        As in `compare`.
    over : str, sequence of str or mapping
        What to vary: epsilon, delta, k, n or row_bound. A mapping gives the values too.
    values : str or sequence, optional
        ``"0.1:10:9"`` (nine values, equally spaced on a logarithmic scale), ``"0.1,1,10"`` or
        numbers; one such item for each axis when ``over`` is a sequence.
    workers : int
        Processes that run cells, from 1.
    backend : str, optional
        loky (the default), threading, multiprocessing or dask.
    scheduler : str, optional
        Address of a Dask scheduler.
    cache : path or Store, optional
        Where finished cells are kept and found again; nowhere if not said. The files hold
        measurements of the data that are not private.
    progress : callable, optional
        Called with a `dpviz.simulation.jobs.Progress` after each finished cell.
    foretell : callable, optional
        As in `compare`.
    **options
        As in `compare`.

    Returns
    -------
    Swept
        ``table()`` has one row per cell, trial and metric; ``figure(metric)`` draws one metric.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where an axis or a value is not legal.

    See Also
    --------
    compare : One setting, with every figure.
    least : Where a curve crosses a goal.

    Notes
    -----
    Below the table's n a cell has a random subsample, above it the same second moments with more
    people; results are always compared with the whole table. The same seed draws along each axis,
    so curves are smooth.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.sweep(
    ...     "iris", over="epsilon", values="0.1:10:3", k=1, trials=5, mechanisms="gaussian"
    ... )
    >>> found.table()["epsilon"].unique().tolist()
    [0.1, 1.0, 10.0]
    >>> figure = found.figure("captured_share")
    """
    axes = axes_of(over, values)
    dask = scheduler is not None and backend is None
    pool = Pool(workers, "dask" if dask else backend or "loky", scheduler)
    store = cache if isinstance(cache, Store) or cache is None else Store(Path(cache))
    prepared, settings = ready(table, options)
    found = sweep_prepared(
        prepared, axes, settings, pool=pool, store=store, progress=progress, foretell=foretell
    )
    return Swept(found, prepared, settings, axes)


@asks("the least epsilon, or the fewest people, for a goal", GoalOptions, SearchOptions, Settings)
def least(
    table: Any = "digits",
    *,
    over: Literal["epsilon", "n"] = "epsilon",
    of_draws: float | None = None,
    confidence: float = 0.95,
    most_draws: int = 256,
    **options: Unpack[Goals],
) -> Needed:
    """Find the least epsilon, or the fewest people, at which each mechanism reaches a goal.

    Parameters
    ----------
    table
        As in `compare`.
    over : {"epsilon", "n"}
        What to find. For n the same population has more or fewer people.
    of_draws : float, optional
        The share of releases, above 0 and below 1, that must reach the goal; if not said, their
        mean must. Metrics without an upper limit need it.
    confidence : float
        With which each interval holds, above 0 and below 1.
    most_draws : int
        Most draws at each value tried at first. Ends that are still more than 15 % apart are
        brought closer by up to 32 times as many.
    **options
        One goal, a metric of `dpviz.metrics.METRICS` and the value to reach, such as
        ``recovery=0.9``; the rest as in `compare`. An epsilon is read for n alone.

    Returns
    -------
    Needed
        Each answer as an interval, with the status of the claim at that answer: those whose claim
        is one to rely on there come first and ``counts`` is true for them.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable, CannotRun
        As in `compare`, and where there is no goal, more than one, or one out of its range.

    See Also
    --------
    sweep : The whole curve.
    predict : Without draws.

    Notes
    -----
    A sequential test by betting decides at each value tried, so the interval holds at the stated
    confidence however long the search runs (Waudby-Smith and Ramdas 2024).

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.least("iris", recovery=0.9, k=1, mechanisms=["gaussian", "laplace"])
    >>> found.table()["mechanism"].tolist()
    ['gaussian', 'laplace']
    >>> bool(found.table()["least"].is_monotonic_increasing)
    True
    """
    asked: dict[str, Any] = dict(options)
    named = {name: asked.pop(name) for name in GOAL_METRICS if name in asked}
    named = {name: value for name, value in named.items() if value is not None}
    if len(named) != 1:
        allowed = f"one of {', '.join(GOAL_METRICS)}, with the value to reach"
        raise InvalidSetting("the goal", allowed, ", ".join(named) or "none")
    ((metric, value),) = named.items()
    if over not in ("epsilon", "n"):
        raise InvalidSetting("over", "epsilon or n", over)
    if not (isinstance(confidence, (int, float)) and 0 < confidence < 1):
        raise InvalidSetting("confidence", "above 0 and below 1", confidence)
    prepared, settings = ready(table, asked)
    goal = goal_of(metric, value, of_draws, prepared, settings.k)
    found = targets(prepared, settings, goal, over, confidence=confidence, most_draws=most_draws)
    return Needed(found, (metric, float(value)), goal, over, prepared, settings)


@asks("what mechanisms are expected to do, without a draw", PlanOptions, Settings)
def predict(
    table: Any = None,
    *,
    n: float | None = None,
    spectrum: str | PathLike[str] | Sequence[float] | FloatArray | None = None,
    **options: Unpack[Options],
) -> Predictions:
    """Say what mechanisms are expected to do, without a single draw.

    Parameters
    ----------
    table : optional
        As in `compare`; or nothing, and ``n`` and ``spectrum`` in its place.
    n : int, optional
        People, from 2 to 1e15. Beside a table: the same population with that many people.
    spectrum : str, path or sequence of float, optional
        Eigenvalues of A = X'X/n in squared row bounds, of sum above 0 and at most 1: the numbers, a
        file with one a line, or a text of `dpviz.preparation.spectrum.spectrum_of` such as
        ``power:d=50,exponent=1.5,total=0.5``.
    **options
        As in `compare`; ``trials`` and ``seed`` are not used.

    Returns
    -------
    Predictions
        Expected shares, distances, noise and spectra of the mechanisms whose noise has a limiting
        law; the others are in ``skipped`` with the reason.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        As in `compare`, and where neither or both of table and spectrum are given.

    See Also
    --------
    compare : The same with draws.

    Notes
    -----
    Free additive convolution (Biane 1997) of the spectrum with the noise's limiting law; exact as d
    grows. The error at small d is listed in docs/prediction.md.

    Examples
    --------
    >>> import dpviz
    >>> spectrum = "power:d=50,exponent=1.5,total=0.5"
    >>> found = dpviz.predict(n=100_000, spectrum=spectrum, epsilon=1, mechanisms="gaussian")
    >>> found.table()["captured_share"].round(2).tolist()
    [1.0]
    >>> len(found.data()["results"][0]["eigenvalues"])
    50
    """
    if (table is None) == (spectrum is None):
        given = "none" if table is None else "both"
        raise InvalidSetting("table", "given, or n and spectrum in its place", given)
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, float))):
        raise InvalidSetting("n", "a whole number from 2 to 1e15", n)
    if table is None:
        if n is None:
            raise InvalidSetting("n", "given beside a spectrum", "none")
        if isinstance(spectrum, (str, PathLike)):
            table = plan_of(f"{PREFIX}n={n},spectrum={spectrum}")
        else:
            table = planned(numbers_of(spectrum), whole_people(str(n)))
        n = None
    prepared, settings = ready(table, options)
    measured = prepared if n is None else prepared.with_n(whole_people(str(n)), settings.seed)
    found, skipped = expectations(measured, settings, variants_of(settings))
    return Predictions(found, skipped, measured, settings)


@asks("bound what a mechanism really costs, by attack", AuditOptions)
def audit(
    mechanism: str | Mechanism,
    *,
    progress: Callable[[str], None] | None = None,
    **options: Unpack[AuditKeywords],
) -> Audited:
    """Bound what a mechanism really costs, by attack on made-up worst neighbours.

    Parameters
    ----------
    mechanism : str or Mechanism
        A variant such as ``"wishart"`` or ``"mvg[theorem=3]"``.
    progress : callable, optional
        Told the name of each step.
    **options
        ``epsilon`` and ``delta`` that are claimed (delta 0 for pure claims and 1e-5 for others, if
        not said); ``dimension``, ``k`` and ``rows`` of the made-up tables; ``relation`` of the
        neighbours, replace or zero-out; their ``domain``, ball or box; ``trials`` releases of each
        table to choose events on, and as many to count them on; ``confidence`` of all bounds
        together; ``seed``.

    Returns
    -------
    Audited
        ``verdict`` is refuted, consistent or tight; ``epsilon_lower`` and ``delta_lower`` are
        bounds from below. ``to_json()`` writes the bytes of ``dpviz audit --format json``.

    Raises
    ------
    WrongArgument
        If an argument is none of these, or is given by position.
    InvalidSetting
        If an option is out of its range, or there is no such mechanism.
    CannotRun
        If the mechanism cannot run on this problem and budget.

    See Also
    --------
    list_mechanisms : What is known of each claim by proof.

    Notes
    -----
    Events are chosen on one half of the draws and counted on the other, with limits of Clopper and
    Pearson (1934). An audit cannot see a factor of two, and no number of draws proves a claim.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.audit("wishart", epsilon=1.0, trials=1000)
    >>> str(found.verdict)
    'refuted'
    >>> found.epsilon_lower >= 0
    True
    """
    if not isinstance(mechanism, (str, Mechanism)):
        raise WrongArgument(
            "mechanism must be a variant such as mvg[theorem=3], or a Mechanism; got "
            f"{type(mechanism).__name__[:40]}."
        )
    return Audited(audit_options(mechanism, options).run(progress=progress))


@asks("list every mechanism and what holds of it", command="mechanisms")
def list_mechanisms() -> Listing:
    """List every mechanism under both relations, and what holds of its claim.

    Returns
    -------
    Listing
        One row per key and relation: key, label, paper, relation, release (matrix, subspace or
        data), guarantee (pure, approximate or none), status and evidence, at epsilon 1, delta
        1e-6, n 1000, d 10 and k 2. ``to_json()`` writes the bytes of
        ``dpviz mechanisms --format json``.

    See Also
    --------
    compare : Run them.
    audit : Attack one.

    Examples
    --------
    >>> import dpviz
    >>> "wishart_difference" in dpviz.list_mechanisms().keys
    True
    >>> table = dpviz.list_mechanisms().table()
    >>> row = table[(table["key"] == "gaussian") & (table["relation"] == "replace")]
    >>> row["status"].item()
    'holds'
    """
    columns = ("key", "relation", "release", "guarantee", "status", "paper")
    return Listing(listing_rows(), "mechanisms", columns)


@asks("list the built-in and the remote tables", command="datasets")
def list_datasets() -> Listing:
    """List the built-in tables, and the papers' data sets that can be fetched.

    Returns
    -------
    Listing
        One row per table: key, label, description, n and d as loaded, labels, source, licence,
        origin (built-in or remote) and whether it is at hand. ``to_json()`` writes the bytes of
        ``dpviz datasets --format json``.

    See Also
    --------
    compare : Takes a key as its table.

    Examples
    --------
    >>> import dpviz
    >>> dpviz.list_datasets().keys[:2]
    ['digits', 'breast_cancer']
    """
    rows: list[dict[str, Any]] = [
        {**row, "origin": "built-in", "at_hand": True} for row in dataset_rows()
    ]
    rows += remote.dataset_rows()
    columns = ("key", "origin", "at_hand", "n", "d", "labels", "licence")
    return Listing(rows, "tables", columns)
