"""Types of the payload that `dpviz.report.tables.board` fills.

Numbers to read are sent as text, so that the renderer formats none. Numbers to draw are packed as
base64 of little-endian bytes. ``python -m tools.payload`` writes the JSON Schema
(docs/board.schema.json) and the renderer's types (dpviz/report/figures/board/payload.d.ts) from
this file.
"""

from typing import NotRequired, TypedDict

Line = tuple[str, str]
"""Name and text of a line beside a chart."""

Told = tuple[float, str, str]
"""A recovery as a number, its text and its words."""


class TableFacts(TypedDict):
    """Facts about the figure's table and setting.

    Attributes
    ----------
    draws : releases drawn of each mechanism
    """

    name: str
    n: int
    d: int
    k: int
    delta: float
    relation: str
    draws: int


class Truth(TypedDict):
    """Results of exact PCA.

    Attributes
    ----------
    eigenvalues : all d, descending
    picture : int16 pairs in units of limits.scale/32767; numbers alone where k = 1
    heights : float32 in -1 to 1 where k = 1, which keep points apart and mean nothing
    text : the largest eigenvalue, written
    """

    eigenvalues: list[float]
    picture: str
    heights: str | None
    text: str


class LabelCodes(TypedDict):
    """Labels of the rows in a projection; None without labels.

    Attributes
    ----------
    kinds : names of kinds; None where labels are numbers
    codes : uint8, a kind's place or a number's share of 255
    ends : least and largest number, written
    public : whether a picture that is published may tell kinds by name
    """

    name: str | None
    kinds: list[str] | None
    marks: list[str] | None
    codes: str | None
    ends: tuple[str, str] | None
    public: bool


class Heights(TypedDict):
    """An axis of variances.

    Attributes
    ----------
    count : components across
    linear : up to where it is linear; logarithmic beyond. None: linear all over
    marks : levels and their texts
    """

    count: int
    low: float
    high: float
    linear: float | None
    marks: list[tuple[float, str]]


class SpectrumLimits(TypedDict):
    """The axes of a spectrum: one for the first components, one for all components."""

    first: Heights
    all: Heights


class BoardLimits(TypedDict):
    """Limits of axes that all columns share.

    Attributes
    ----------
    picture : half the width and the height of a picture
    scale : what 32767 stands for in a picture
    distance : the farthest that two spaces can lie apart
    lines : what the two lines of a spectrum mean
    """

    picture: tuple[float, float]
    scale: float
    spectrum: SpectrumLimits
    distance: float
    lines: str


class Chance(TypedDict):
    """Values of a random subspace.

    Attributes
    ----------
    share : captured of the optimum, written
    text : the distance, written
    """

    share: str
    distance: float
    text: str


class Palette(TypedDict):
    """Colours of labels.

    Attributes
    ----------
    labels : a colour for each kind, in turn
    ramp : red, green and blue from the least number to the largest
    """

    labels: list[str]
    ramp: list[tuple[int, int, int]]


class Level(TypedDict):
    """A level of recovery, drawn as a line.

    Attributes
    ----------
    dotted : whether it is a goal and no end of the scale
    """

    share: float
    text: str
    dotted: bool


class BoardColumn(TypedDict):
    """Content of the column head of a mechanism.

    Attributes
    ----------
    redraws : whether its draws are other ones at each epsilon
    colour : as #rrggbb
    """

    key: str
    label: str
    summary: str
    paper: str
    guarantee: str
    release: str
    redraws: bool
    colour: str


class ClaimFacts(TypedDict):
    """Facts about a claim at one epsilon.

    Attributes
    ----------
    counts : whether a claim is made that stands
    state : the verdict, or "false" for a claim that an exact account or an attack breaks
    """

    verdict: str
    mark: str
    words: str
    evidence: str
    counts: bool
    state: str


class Spectrum(TypedDict):
    """Eigenvalues of simulated releases.

    Attributes
    ----------
    released : whether they are published, or variances along published directions
    count : how many are sent
    text : the median of the first, written
    lines : float32: count medians, as many least ones, as many largest ones
    """

    released: bool
    count: int
    text: str
    lines: str


class Texts(TypedDict):
    """Readable texts on one mechanism at one epsilon.

    Attributes
    ----------
    said : the words, that the claim does not count where it does not, and how far the aim leads
    range : the least and the most that a draw recovers
    before : what was recovered before post-processing; empty where nothing was done
    aim : what it aims at instead of A and how far that leads, empty where that is all the way
    risk : what a guesser gains from its release
    claim, found : lines
    """

    recovery: str
    words: str
    said: str
    range: list[str]
    before: str
    aim: str
    risk: str
    distance: str
    claim: list[Line]
    found: list[Line]


class Published(TypedDict):
    """Points that stand for the rows, from released numbers alone.

    Attributes
    ----------
    places : int16 pairs in units of reach/32767 along each axis; numbers alone where k = 1
    reach : half the width and the height of the frame; the width alone where k = 1
    codes : uint8, the place of the label that a point's cell shows, 255 where noise hides which
    said : what is to be read beside it, in lines
    scree : int16 pairs in units of 1/32767, the share of the variance of each component and half a
        bar of 95 % about it, then texts of the first shares; empty if noise hides them
    """

    places: str
    reach: list[float]
    codes: str | None
    said: list[str]
    scree: tuple[str, list[str]]


class BoardCell(TypedDict):
    """Results of one mechanism at one epsilon.

    Attributes
    ----------
    recovery : mean, the central 95 % of the draws and the mean's standard error, 0 for a single
        release; None if k = d
    before : the mean recovery as released, where recovery is after post-processing
    distances : one a draw
    distance : median and the central 95 % of the draws
    edges : of the noise's own spectrum
    threshold : variance below which the noise hides a lone component
    picture : as truth.picture, of one draw
    published : a picture with its directions at this epsilon in all; None where there is none
    predicted : float32, the noisy eigenvalues expected without a draw, where they are shown
    """

    status: ClaimFacts
    recovery: tuple[float, float, float, float] | None
    before: float | None
    distances: list[float]
    distance: tuple[float, float, float]
    spectrum: Spectrum
    edges: tuple[float, float] | None
    threshold: float | None
    picture: str
    published: Published | None
    predicted: NotRequired[str]
    texts: Texts


class Headline(TypedDict):
    """The answer at one epsilon, in words.

    Attributes
    ----------
    recovery : who recovers most, and who is tied
    risk : what a guesser gains from that release; None where no claim holds
    """

    recovery: str
    risk: str | None


class Frame(TypedDict):
    """The data of the figure at one epsilon.

    Attributes
    ----------
    draws : how many it holds
    cells : by mechanism
    skipped : why a mechanism cannot run, by mechanism
    lines : by mechanism, and of the exact one, A, B and C of a straight line Ax + By = C
        in the projection, if a lesson draws a line
    counted : by mechanism, how many components are found and how many variances lie above the
        threshold, if a lesson counts both
    """

    epsilon: float
    draws: int
    cells: dict[str, BoardCell]
    skipped: dict[str, str]
    answer: Headline
    lines: NotRequired[dict[str, list[float]]]
    counted: NotRequired[dict[str, list[int]]]


class Payload(TypedDict):
    """All data that the comparison figure needs for one table and setting.

    Attributes
    ----------
    now : the current epsilon
    ribbon : what pictures of the rows carry, or None where the rows are public
    publishable : whether what is paid for may be shown to anybody
    columns : one for each mechanism, in the order of the board
    epsilons : every epsilon that frames are planned for, ascending
    texts : the same, written
    ticks : of an axis of epsilon: value, text, whether it is a power of ten
    beyond : where an axis goes on at either end: value and text
    steps : how many epsilons a table gets for which draws are cheap; None: no fewer are shown
    caution : what the answer must not be read without
    predicted : recovery expected without a draw, by mechanism, at each epsilon
    least : from where 90 % is recovered, in words
    frames : those that are computed so far
    draws : pictures of the first draws, by mechanism
    marked : which dots of a picture of rows a lesson follows, the last of them by name
    """

    version: int
    table: TableFacts
    now: float
    truth: Truth
    labels: LabelCodes
    limits: BoardLimits
    palette: Palette
    levels: list[Level]
    chance: Chance
    ribbon: str | None
    publishable: bool
    columns: list[BoardColumn]
    epsilons: list[float]
    texts: list[str]
    ticks: list[tuple[float, str, bool]]
    beyond: tuple[tuple[float, str] | None, tuple[float, str] | None]
    steps: int | None
    caution: str | None
    predicted: dict[str, list[Told | None]]
    least: str | None
    frames: list[Frame]
    draws: NotRequired[dict[str, list[str]] | None]
    marked: NotRequired[list[int]]
