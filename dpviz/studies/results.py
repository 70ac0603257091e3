"""What each question's answer holds as JSON, typed: ``docs/results.schema.json`` is made of it.

``python -m tools.payload`` writes the schema, and a test holds real answers against it. A number
that JSON has no word for (infinite, or not a number) is null.
"""

from typing import Any, NotRequired, TypedDict

from dpviz.core.settings import Settings

Number = float | None


class PairData(TypedDict):
    """A privacy budget.

    Attributes
    ----------
    epsilon, delta : Both at least 0.
    """

    epsilon: Number
    delta: Number


class Sourced(TypedDict):
    """What is spent, and by which account.

    Attributes
    ----------
    source : How it was computed, in words.
    """

    epsilon: Number
    delta: Number
    source: str


class SpentData(Sourced):
    """What a mechanism spends.

    Attributes
    ----------
    exact : Whether it is no less either.
    delta_at_claimed_epsilon : Delta at the epsilon that is claimed, where it is known.
    """

    exact: bool
    delta_at_claimed_epsilon: Number


class Left(TypedDict):
    """A mechanism that was left out."""

    mechanism: str
    reason: str


class MeanData(TypedDict):
    """A metric over the draws.

    Attributes
    ----------
    se : Standard error of the mean; null with one draw.
    low, high : The central 95 % of the draws: a range, not an interval of the mean.
    """

    mean: float
    se: Number
    low: float
    high: float


# audit, account, claims --------------------------------------------------------------------------


class AuditResult(TypedDict):
    """What a mechanism costs at least: `dpviz.audit`.

    Attributes
    ----------
    verdict : refuted, consistent or tight.
    at_epsilon : Where delta_lower is stated.
    """

    mechanism: str
    claimed: PairData | None
    verdict: str
    epsilon_lower: float
    delta_lower: float
    at_epsilon: float
    confidence: float
    evidence: str


class Shape(TypedDict):
    """The problem that an account is of."""

    n: int
    d: int
    k: int
    relation: str
    domain: str


class Paid(TypedDict):
    """What a preparation takes of the budget, and what it leaves."""

    shares: dict[str, float]
    left: PairData


class Renyi(TypedDict):
    """Renyi divergence at an order."""

    order: float
    epsilon: float


class Errors(TypedDict):
    """The least false negatives beta of a test with false positives alpha."""

    alpha: float
    beta: float


class RepeatedData(TypedDict):
    """Epsilon of so many releases, by each account; null where an account has none."""

    releases: int
    delta: float
    basic: Number
    zcdp: Number
    exact: Number


class AccountResult(TypedDict):
    """What a mechanism costs, once and many times: `dpviz.account`."""

    mechanism: str
    problem: Shape
    preparation: Paid | None
    claimed: PairData
    spent: Sourced
    exact: bool
    curve: list[PairData]
    mu: Number
    rho: Number
    rdp: list[Renyi]
    trade_off: list[Errors]
    repeated: list[RepeatedData]


class Claimed(TypedDict):
    """One mechanism under one relation: what is promised, known and seen.

    Attributes
    ----------
    why : What the status rests on.
    found : What was measured, in words.
    """

    mechanism: str
    label: str
    paper: str
    relation: str
    claimed_epsilon: Number
    claimed_delta: Number
    status: str
    why: str
    evidence: str
    verdict: str | None
    epsilon_lower: Number
    delta_lower: Number
    at_epsilon: Number
    found: str | None
    command: str | None


# compare ---------------------------------------------------------------------------------------


class Looked(TypedDict):
    """The table that was looked at.

    Attributes
    ----------
    row_bound : The longest row in the data's units; null where none is bounded.
    """

    name: str
    n: int
    d: int
    row_bound: Number
    domain: str


class Exact(TypedDict):
    """The analysis without privacy.

    Attributes
    ----------
    eigenvalues : Of A, in squared row bounds, descending.
    captured : By the best k components.
    captured_total : The same as a share of all variance.
    """

    eigenvalues: list[float]
    captured: float
    captured_total: float


class ComparedData(TypedDict):
    """One mechanism.

    Attributes
    ----------
    bias : Recovery without noise; null where nothing is aimed at.
    components_found : How many components a noisy matrix is expected to show.
    account : Of preparation and release together, where the preparation is paid for.
    """

    mechanism: str
    status: str
    evidence: str
    claimed: PairData | None
    spent: SpentData | None
    metrics: dict[str, MeanData]
    diagnostics: dict[str, Any]
    aims_at: str
    bias: Number
    components_found: int | None
    account: NotRequired[AccountResult | None]


class CompareResult(TypedDict):
    """Mechanisms side by side in one setting: `dpviz.compare`.

    Attributes
    ----------
    assumed_public : What is taken for public, in words.
    """

    dataset: Looked
    assumed_public: list[str]
    notes: list[str]
    settings: Settings
    reference: Exact
    results: list[ComparedData]
    skipped: list[Left]


# sweep, least, predict, waterfall ----------------------------------------------------------------


class SweepResult(TypedDict):
    """Mechanisms along axes: `dpviz.sweep`.

    Attributes
    ----------
    over : The values of each axis.
    table : Columns of one row per cell, trial and metric.
    """

    settings: Settings
    over: dict[str, list[float | str | None]]
    table: dict[str, list[float | str | None]]
    skipped: list[dict[str, float | str | None]]


class GoalSet(TypedDict):
    """What is to be reached.

    Attributes
    ----------
    of_draws : The share of releases that must reach it; null where their mean must.
    """

    metric: str
    value: float
    of_draws: Number


class Enough(TypedDict):
    """What one mechanism needs.

    Attributes
    ----------
    least : The estimate, between low and high; null where none is enough.
    counts : Whether its claim holds there.
    """

    mechanism: str
    least: Number
    low: Number
    high: Number
    predicted: Number
    status: str | None
    counts: bool
    evidence: str
    reason: str | None


class LeastResult(TypedDict):
    """The least epsilon, or the fewest people, for a goal: `dpviz.least`."""

    goal: GoalSet
    what: str
    settings: Settings
    answers: list[Enough]


class Answered(TypedDict):
    """What a stakeholder answered: see the options of `dpviz.decide`."""

    survive: str
    delta_allowed: str
    hand_out: str
    prior: float
    releases: int


class Offered(TypedDict):
    """What one mechanism offers.

    Attributes
    ----------
    epsilon : The least at which the goal is shown to be reached.
    low : The largest at which it is shown to be missed.
    people_at_half : How many people are predicted to reach the same at half the epsilon.
    """

    mechanism: str
    epsilon: float
    low: Number
    delta: float
    status: str
    evidence: str
    people_at_half: Number


class Gained(TypedDict):
    """What an attacker gains from the best offer, after all releases.

    Attributes
    ----------
    beyond : At most how likely a release passes these odds by more than a factor of two.
    """

    spent: Sourced
    believed_before: float
    believed_at_most: float
    beyond: float


class DecideResult(TypedDict):
    """The least epsilon that keeps what must survive: `dpviz.decide`."""

    answers: Answered
    headline: str
    settings: Settings
    offers: list[Offered]
    risk: Gained | None
    left_out: list[Left]
    assumed_public: list[str]


class PredictResult(TypedDict):
    """What is expected without a draw: `dpviz.predict`.

    Attributes
    ----------
    results : Per mechanism the expected metrics, overlaps with the true directions and the
        spectrum.
    """

    n: int
    d: int
    settings: Settings
    results: list[dict[str, str | float | list[float] | None]]
    skipped: list[Left]


class Bar(TypedDict):
    """One more step of the preparation private.

    Attributes
    ----------
    change : Of recovery from the step before.
    """

    step: str
    recovery: float
    se: Number
    low: float
    high: float
    change: Number
    epsilon_left: float
    assumed_public: list[str]
    spent: Sourced | None


class WaterfallResult(TypedDict):
    """What a private preparation costs, step by step: `dpviz.waterfall`."""

    table: str
    settings: Settings
    steps: list[Bar]


class CheckData(TypedDict):
    """What one check of the contract found: `dpviz.check`.

    Attributes
    ----------
    asks : What the check asks for.
    mend : How to mend it; empty where it passes.
    """

    mechanism: str
    check: str
    passed: bool
    asks: str
    seen: str
    mend: str


# task, reproduce, rerun --------------------------------------------------------------------------


class ScoreData(TypedDict):
    """What is learned after one mechanism at one epsilon; null for the baselines' epsilon."""

    mechanism: str
    source: str
    epsilon: Number
    mean: Number
    low: Number
    high: Number
    rounds: int
    verdict: str | None


class TaskResult(TypedDict):
    """What can still be learned: `dpviz.task`."""

    settings: Settings
    task: dict[str, str | float | None]
    assumed_public: list[str]
    results: list[ScoreData]
    skipped: list[Left]


class Printed(TypedDict):
    """A claim that a paper prints, and our answer."""

    paper: str
    item: str
    verdict: str
    coverage: str
    reason: str
    place: str
    quote: str
    stated: str
    measured: str
    experiment: str
    key: str


class ExperimentResult(TypedDict):
    """One experiment of a paper: `dpviz.reproduce` with its key."""

    experiment: str
    effort: str
    seed: int
    claims: list[Printed]
    lines: list[dict[str, Any]]
    absent: list[str]


class ChangeData(TypedDict):
    """A value that is not what it was, by its place in the data."""

    where: str
    was: Any
    now: Any


class RerunResult(TypedDict):
    """Whether an answer comes out again: `dpviz.rerun`."""

    same: bool
    question: str
    command: str
    date: str
    causes: dict[str, Any]
    differences: list[ChangeData]


# lists -------------------------------------------------------------------------------------------


class MechanismRow(TypedDict):
    """One mechanism under one relation: `dpviz.list_mechanisms`."""

    key: str
    label: str
    paper: str
    relation: str
    release: str
    guarantee: str
    status: str
    evidence: str


class TableRow(TypedDict):
    """One table: `dpviz.list_datasets`. The last three stand at remote ones alone."""

    key: str
    label: str
    description: str
    n: int
    d: int
    labels: str
    source: str
    licence: str
    origin: str
    at_hand: bool
    page: NotRequired[str]
    openml: NotRequired[str]
    papers: NotRequired[str]


# ledger, release ---------------------------------------------------------------------------------


class LedgerResult(TypedDict):
    """What releases have spent: `dpviz.ledger`."""

    limit: PairData
    account: str
    relation: str
    unit: str
    schema: str
    purpose: str
    total: PairData
    left: PairData
    spends: list[dict[str, Any]]


class ReleaseResult(TypedDict):
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
    claimed: PairData
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


class Assumed(TypedDict):
    """What a release takes for public, from where it is known, and who confirmed it."""

    what: str
    source: str
    confirmed_by: str


class CardResult(TypedDict):
    """What a release is filed with: `dpviz.card`.

    Attributes
    ----------
    ledger : What paid for it; null for a release that no ledger paid for.
    picture : What is drawn and said of the release's picture; null without one.
    unconfirmed : Numbers of the assumptions, from 1, that nobody confirmed.
    data : Exact counts, in the copy for the file alone.
    counted : About how many of the n rows count, where a release told; else null.
    """

    dpviz_card: int
    status: str
    copy: str
    title: str
    purpose: str
    by: str
    recipients: str
    controller: str
    released: str
    made: str
    n: int
    counted: int | None
    d: int
    k: int
    claim: dict[str, Any]
    ledger: dict[str, Any] | None
    unit: dict[str, str | int | None]
    mechanism: dict[str, str]
    use: dict[str, Any]
    picture: dict[str, Any] | None
    assumptions: list[Assumed]
    unconfirmed: list[int]
    not_covered: dict[str, str]
    withheld: list[Any]
    release: dict[str, str]
    versions: dict[str, str]
    signatures: list[dict[str, str]]
    data: NotRequired[dict[str, Any]]


class VerifyResult(TypedDict):
    """Whether a card, a release and a ledger fit: `dpviz.verify`."""

    fits: bool
    problems: list[str]


class ReleasedPicture(TypedDict):
    """One picture, by its released numbers alone.

    Attributes
    ----------
    directions : One list of d numbers an axis.
    frame : The picture reaches from minus to plus this along each axis.
    directions_alone : Whether places are in units of each row's own length.
    counts : Noisy, by label and cell; of ellipses the noisy moments of each label.
    noise : Gaussian or Laplace.
    drowned : Labels that cannot be told apart.
    expected : By simulation from these numbers, from end to end; null for ellipses.
    """

    form: str
    directions: list[list[float]]
    frame: list[float]
    directions_alone: bool
    counts: list[Any]
    noise: str
    noise_std: float
    drowned: list[str]
    expected: dict[str, list[float] | None] | None


class PublishedData(TypedDict):
    """What one mechanism publishes.

    Attributes
    ----------
    picture : Null where no claim holds, or all of it would drown.
    """

    mechanism: str
    status: str
    evidence: str
    claimed: PairData | None
    spent: Sourced | None
    picture: ReleasedPicture | None


class PublishedResult(TypedDict):
    """Pictures that may be shown to anybody: `dpviz.published`."""

    table: str
    n: int
    columns: list[str]
    settings: Settings
    labels: list[str]
    assumed_public: list[str]
    results: list[PublishedData]


RESULTS: dict[str, Any] = {
    "account": AccountResult,
    "audit": AuditResult,
    "card": CardResult,
    "check": list[CheckData],
    "claims": list[Claimed],
    "compare": CompareResult,
    "decide": DecideResult,
    "least": LeastResult,
    "ledger": LedgerResult,
    "list_datasets": list[TableRow],
    "list_mechanisms": list[MechanismRow],
    "predict": PredictResult,
    "published": PublishedResult,
    "release": ReleaseResult,
    "reproduce": list[Printed] | ExperimentResult,
    "rerun": RerunResult,
    "sweep": SweepResult,
    "task": TaskResult,
    "verify": VerifyResult,
    "waterfall": WaterfallResult,
}
"""Of each question but `dpviz.schema` and `dpviz.board`, whose answers have schemas of their own:
docs/schema.json and docs/board.schema.json."""
