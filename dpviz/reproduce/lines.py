"""One line of a comparison: what the paper reports, what was measured, and why they differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from dpviz.base.arrays import FloatArray
from dpviz.reproduce.measurements import Mean


class Agreement(StrEnum):
    """How a measured number or order stands to the reported one."""

    AGREES = "agrees"
    DIFFERS = "differs"
    CANNOT_TELL = "cannot tell"
    READING = "another reading"
    ADDED = "not reported"
    NOT_MEASURED = "not measured"
    ABSENT = "data absent"
    PENDING = "not yet measured"


@dataclass(frozen=True)
class Stated:
    """A number as a paper prints it.

    Attributes
    ----------
    value : float
        In the unit of the measured quantity.
    error : float
        What the paper gives after its plus-minus sign; 0 where it gives none.
    rounding : float
        Half of the last printed digit.
    """

    value: float
    error: float = 0.0
    rounding: float = 0.0

    @property
    def text(self) -> str:
        """The number as text."""
        error = f" ± {self.error:.4g}" if self.error else ""
        return f"{_number(self.value)}{error}"


@dataclass(frozen=True)
class Line:
    """One reported number or statement beside what was measured.

    Attributes
    ----------
    panel, item : str
        Where it stands: the data set or theorem, and the row or statement.
    reported, measured : str
        As text; empty where there is none.
    agreement : Agreement
    note : str
        A sentence; never empty where the two differ or nothing was measured.
    stated : Stated or None
    mean : Mean or None
        The numbers behind the texts, where they are numbers.
    """

    panel: str
    item: str
    reported: str
    measured: str
    agreement: Agreement
    note: str = ""
    stated: Stated | None = None
    mean: Mean | None = None

    def __post_init__(self) -> None:
        silent = self.agreement in (Agreement.AGREES, Agreement.ADDED, Agreement.READING)
        if not self.note and not silent:
            raise ValueError(f"{self.panel}, {self.item}: {self.agreement} needs a sentence")


def _number(value: float) -> str:
    """Return a number as text: counts in full, anything else to four digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e12 else f"{value:.4g}"


def beside(
    panel: str,
    item: str,
    stated: Stated | None,
    values: FloatArray | None,
    why: str = "",
    note: str = "",
    *,
    fairest: bool = True,
) -> Line:
    """Return a number of the paper beside measured draws.

    They agree where the distance of the two means is at most the sum of the
    paper's error (taken as the half width of an interval of its mean), its
    rounding, and the half width of ours: a rule that is kind to the paper.

    Parameters
    ----------
    panel, item : str
    stated : Stated or None
        None where the paper reports nothing.
    values : ndarray of shape (draws,) or None
        None where the data is absent.
    why : str
        The sentence to show where they differ; only without ``stated`` may it be
        left out.
    note : str
        The sentence to show otherwise.
    fairest : bool
        Whether this is the paper's number on its fairest reading; another
        reading is shown beside it and not judged.
    """
    reported = "" if stated is None else stated.text
    if values is None:
        return Line(
            panel, item, reported, "", Agreement.ABSENT, "The data is not at hand.", stated, None
        )
    mean = Mean.of(values)
    half = 0.0 if math.isnan(mean.se) else mean.high - mean.value
    measured = _number(mean.value) + (f" ± {half:.2g}" if half else "")
    if stated is None:
        return Line(panel, item, "", measured, Agreement.ADDED, note, None, mean)
    if not fairest:
        return Line(panel, item, reported, measured, Agreement.READING, note, stated, mean)
    near = abs(mean.value - stated.value) <= stated.error + stated.rounding + half
    agreement = Agreement.AGREES if near else Agreement.DIFFERS
    return Line(panel, item, reported, measured, agreement, note if near else why, stated, mean)


def claim(
    panel: str, item: str, reported: str, held: int, asked: int, why: str, note: str = ""
) -> Line:
    """Return a statement of the paper beside how often it was seen to hold.

    Parameters
    ----------
    panel, item, reported : str
        ``reported`` is the statement in our words.
    held, asked : int
        At how many of the points looked at it held; 0 asked means that the
        data is absent.
    why : str
        The sentence to show where it failed anywhere.
    note : str
        The sentence to show otherwise.
    """
    if asked == 0:
        return Line(panel, item, reported, "", Agreement.ABSENT, "The data is not at hand.")
    agreement = Agreement.AGREES if held == asked else Agreement.DIFFERS
    measured = f"at {held} of {asked} points"
    return Line(panel, item, reported, measured, agreement, note if held == asked else why)


_SEPARATED = 3.0  # standard errors of the difference; by chance about once in 370 points


def above(
    panel: str,
    item: str,
    reported: str,
    upper: Mapping[float, FloatArray],
    lower: Mapping[float, FloatArray],
    why: str,
    note: str = "",
    untold_note: str = "",
) -> Line:
    """Return a stated order of two curves beside what the draws show.

    A point speaks for or against the order only where the two means lie more
    than three standard errors apart. One point against it is enough to differ;
    where no point is decided the order cannot be told.

    Parameters
    ----------
    panel, item, reported : str
    upper, lower : dict of float to ndarray of shape (draws,)
        Draws by x; points that only one curve has are left out.
    why, note : str
        As in `claim`.
    untold_note : str
        The sentence to show where no point is decided.
    """
    shared = [x for x in upper if x in lower]
    if not shared:
        return claim(panel, item, reported, 0, 0, why)
    held = against = 0
    for x in shared:
        one, two = Mean.of(upper[x]), Mean.of(lower[x])
        gap = one.value - two.value
        noise = _SEPARATED * math.hypot(one.se, two.se)
        held += bool(gap > noise)
        against += bool(gap < -noise)
    untold = len(shared) - held - against
    measured = f"at {held} of {len(shared)} points"
    if untold:
        measured += f", {untold} cannot tell"
    if against:
        measured += f", the other way at {against}"
    if against:
        return Line(panel, item, reported, measured, Agreement.DIFFERS, why)
    if not held:
        said = untold_note or "No two means lie three standard errors apart."
        return Line(panel, item, reported, measured, Agreement.CANNOT_TELL, said)
    return Line(panel, item, reported, measured, Agreement.AGREES, note)


def decided(
    panel: str,
    item: str,
    reported: str,
    greater: FloatArray | None,
    lesser: FloatArray | None,
    why: str,
    note: str = "",
    *,
    paired: bool = False,
) -> Line:
    """Return whether one mean lies above another by more than three standard errors.

    Parameters
    ----------
    panel, item, reported : str
    greater, lesser : ndarray of shape (draws,) or None
        Draws of what the paper calls the greater and the lesser; None where the
        data is absent.
    why, note : str
        As in `claim`.
    paired : bool
        Whether the two share their trials, so that the differences are what varies.
    """
    if greater is None or lesser is None:
        return claim(panel, item, reported, 0, 0, why)
    if paired:
        gap = Mean.of(greater - lesser)
        noise = _SEPARATED * gap.se
        value = gap.value
    else:
        one, two = Mean.of(greater), Mean.of(lesser)
        value, noise = one.value - two.value, _SEPARATED * math.hypot(one.se, two.se)
    measured = f"{_number(float(greater.mean()))} against {_number(float(lesser.mean()))}"
    if value > noise:
        return Line(panel, item, reported, measured, Agreement.AGREES, note)
    if value < -noise:
        return Line(panel, item, reported, measured, Agreement.DIFFERS, why)
    said = "The two means lie within three standard errors of each other."
    return Line(panel, item, reported, measured, Agreement.CANNOT_TELL, said)


def as_reading(line: Line, note: str = "") -> Line:
    """Return a judged line as one of another reading, which is shown and not judged.

    Parameters
    ----------
    line : Line
    note : str
        The sentence to show; default the line's own.
    """
    if line.agreement not in (Agreement.AGREES, Agreement.DIFFERS, Agreement.CANNOT_TELL):
        return line
    return replace(line, agreement=Agreement.READING, note=note or line.note)
