"""The precision allocation: the share of the precision that each direction gets.

An allocation is public. It gives each of d directions a share theta of the precision, and states
the kind of directions: the features, private principal directions released with a share of the
budget, or (for teaching, and not private) the true ones. Directions are numbered from 1: features
in the order of the table in use, principal directions by descending variance.

Source
------
Chanyaswad, Dytso, Poor and Mittal 2018, sections 6 and 7. The least share is an addition of dpviz:
without a share the noise along a direction is infinite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpviz.core.arrays import FloatArray
from dpviz.core.errors import InvalidSetting
from dpviz.core.number_text import number_in, numeral
from dpviz.core.params import format_number

SMALLEST_SHARE = 1e-6
"""Least share that a user may give a direction."""

DEFAULT_SHARE = 0.2
"""Share of the budget that releases private directions, as in the paper's experiments."""

SHARE_RANGE = (0.01, 0.95)

ALLOCATION_ALLOWED = (
    "uniform, binary:COLUMNS:TAU, max-pnr, custom:SHARES or a CSV file with the columns feature "
    "(or direction) and theta"
)
DIRECTIONS_ALLOWED = (
    "features, private:SHARE or private:SHARE:MECHANISM with SHARE from "
    f"{numeral(SHARE_RANGE[0], 6)} to {numeral(SHARE_RANGE[1], 6)}, or true"
)

SUM_TOLERANCE = 1e-6  # Users type shares with few digits, so the sum may differ from 1.


def refused(allowed: str, given: object) -> InvalidSetting:
    """Return the error for an allocation that is not allowed."""
    return InvalidSetting("allocation", allowed, given, "--allocation")


@dataclass(frozen=True)
class Allocation:
    """How precision is shared among directions, and the kind of directions.

    Attributes
    ----------
    strategy : {"uniform", "binary", "max-pnr", "custom"}
    directions : {"features", "private", "true"}
    chosen : tuple of int
        For ``binary``: numbers of the chosen directions, from 1, ascending.
    tau : float
        For ``binary``: the share that the chosen directions divide equally, in (0, 1); else 0.
    theta : tuple of float
        For ``custom``: one share for each direction, with sum 1.
    share : float
        For ``private``: the share of the budget that releases the directions; else 0.
    supplier : str
        For ``private``: text of the variant that supplies the directions; empty for the default.
    """

    strategy: str = "uniform"
    directions: str = "features"
    chosen: tuple[int, ...] = ()
    tau: float = 0.0
    theta: tuple[float, ...] = ()
    share: float = 0.0
    supplier: str = ""

    def __post_init__(self) -> None:
        if self.strategy not in ("uniform", "binary", "max-pnr", "custom"):
            raise refused(ALLOCATION_ALLOWED, self.strategy)
        if self.directions not in ("features", "private", "true"):
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.directions, "--directions")
        low, high = SHARE_RANGE
        if self.directions == "private" and not low <= self.share <= high:
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.text[1], "--directions")
        if self.supplier and self.directions != "private":
            raise InvalidSetting("directions", DIRECTIONS_ALLOWED, self.directions, "--directions")
        if self.strategy == "binary":
            if not self.chosen or min(self.chosen) < 1:
                raise refused("a choice of at least one direction, numbered from 1", self.text[0])
            if not SMALLEST_SHARE <= self.tau <= 1 - SMALLEST_SHARE:
                raise refused("a binary allocation with a TAU above 0 and below 1", self.text[0])
            object.__setattr__(self, "chosen", tuple(sorted(set(self.chosen))))
        if self.strategy == "custom":
            _check_shares(self.theta)

    @property
    def text(self) -> tuple[str, str]:
        """Texts of the allocation and of the directions, as settings store them."""
        if self.strategy == "binary":
            written = f"binary:{_joined(self.chosen)}:{format_number(self.tau)}"
        elif self.strategy == "custom":
            written = "custom:" + ",".join(format_number(share) for share in self.theta)
        else:
            written = self.strategy
        if self.directions != "private":
            return written, self.directions
        named = f":{self.supplier}" if self.supplier else ""
        return written, f"private:{format_number(self.share)}{named}"

    @property
    def needs_spectrum(self) -> bool:
        """Whether the shares follow from the variances along the directions."""
        return self.strategy == "max-pnr"

    def check_dimension(self, d: int) -> None:
        """Raise InvalidSetting if the allocation does not fit d directions."""
        if self.strategy == "binary":
            if self.chosen[-1] > d:
                raise refused(f"a choice of direction numbers from 1 to {d}", self.text[0])
            if len(self.chosen) == d:
                raise refused(f"a choice of at most {d - 1} of the {d} directions", self.text[0])
        elif self.strategy == "custom" and len(self.theta) != d:
            raise refused(f"{d} shares, one per direction", f"{len(self.theta)} shares")

    def shares(self, d: int) -> FloatArray:
        """Return theta of shape (d,), positive and summing to 1.

        Raises
        ------
        InvalidSetting
            If the allocation does not fit d directions, or needs a spectrum.
        """
        self.check_dimension(d)
        if self.strategy == "uniform":
            return np.full(d, 1.0 / d)
        if self.strategy == "binary":
            theta = np.full(d, (1.0 - self.tau) / (d - len(self.chosen)))
            # Users number directions from 1, but arrays start at 0.
            theta[np.array(self.chosen) - 1] = self.tau / len(self.chosen)
            return theta
        if self.strategy == "custom":
            return np.array(self.theta) / math.fsum(self.theta)
        raise refused("an allocation that does not depend on a spectrum", self.strategy)


UNIFORM = Allocation()


def _check_shares(theta: Sequence[float]) -> None:
    if len(theta) < 2:
        raise refused("at least 2 shares", f"{len(theta)} shares")
    if not all(share >= SMALLEST_SHARE for share in theta):  # This condition also catches NaN.
        raise refused(
            f"shares that are all at least {numeral(SMALLEST_SHARE, 6)}", format_number(min(theta))
        )
    total = math.fsum(theta)
    if abs(total - 1) > SUM_TOLERANCE:
        raise refused(
            "shares that sum to 1", f"{len(theta)} shares that sum to {numeral(total, 7)}"
        )


def _joined(items: Sequence[object]) -> str:
    return ",".join(str(item) for item in items)


# --- as people write them: on the command line, in links and in files -----------------------------


LONGEST_IN_LINK = 20
"""Maximum number of shares in a link; more shares need a file."""
_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


# --- the two settings texts -------------------------------------------------------------------


def check_allocation(text: str) -> str:
    """Return an allocation's text in canonical form, before the table is known.

    Names of features are kept; `numbered` replaces them by numbers.

    Raises
    ------
    InvalidSetting
        If the text has none of the forms in `ALLOCATION_ALLOWED`.
    """
    text = text.strip()
    if text in ("uniform", "max-pnr") or is_file(text):
        return text
    kind, colon, rest = text.partition(":")
    if kind == "custom" and colon:
        return Allocation("custom", theta=_parse_shares(rest, text)).text[0]
    if kind == "binary" and colon:
        columns, tau = _parse_binary(text)
        tokens = _tokens(columns)
        # Numbers need no table, but names can be resolved only with the table's columns.
        if tokens and all(token.isdecimal() for token in tokens):
            chosen = tuple(int(token) for token in tokens)
            return Allocation("binary", chosen=chosen, tau=tau).text[0]
        Allocation("binary", chosen=(1,), tau=tau)  # This call only checks that the share is valid.
        return f"binary:{columns}:{format_number(tau)}"
    raise refused(ALLOCATION_ALLOWED, text)


def check_directions(text: str) -> str:
    """Return the text of the directions in canonical form, or raise InvalidSetting.

    The function does not check whether the named mechanism exists.
    """
    directions, share, supplier = _parse_directions(text)
    return Allocation(directions=directions, share=share, supplier=supplier).text[1]


@lru_cache(maxsize=256)
def parse_allocation(allocation: str, directions: str = "features") -> Allocation:
    """Return the allocation that two settings texts describe.

    Raises
    ------
    InvalidSetting
        If a text is not legal, or still names features or a file.
    """
    allocation = check_allocation(allocation)
    basis, share, supplier = _parse_directions(directions)
    of: dict[str, Any] = {"share": share, "supplier": supplier}
    if not is_numbered(allocation):
        raise refused("an allocation that numbers its features or directions", allocation)
    kind, _, rest = allocation.partition(":")
    if kind == "binary":
        columns, tau = _parse_binary(allocation)
        chosen = tuple(int(token) for token in _tokens(columns))
        return Allocation(kind, basis, chosen=chosen, tau=tau, **of)
    if kind == "custom":
        return Allocation(kind, basis, theta=_parse_shares(rest, allocation), **of)
    return Allocation(kind, basis, **of)


def is_file(text: str) -> bool:
    """Return whether an allocation's text is the path of a file."""
    return text.lower().endswith(_FILE_ENDINGS) and not text.startswith(("binary:", "custom:"))


def is_numbered(text: str) -> bool:
    """Return whether a canonical text names neither a feature nor a file."""
    if is_file(text):
        return False
    if text.startswith("binary:"):
        return all(token.isdecimal() for token in _tokens(_parse_binary(text)[0]))
    return True


def travels(text: str) -> bool:
    """Return whether a canonical text may be part of a link: no names, no file, not too long."""
    short = not text.startswith("custom:") or text.count(",") < LONGEST_IN_LINK
    return is_numbered(text) and short


def numbered(text: str, columns: Sequence[str], directions: str = "features") -> str:
    """Return an allocation's text with the names of features replaced by their numbers.

    Parameters
    ----------
    text : str
        An allocation's text in canonical form, and not a file.
    columns : sequence of str
        The features in use, in order.
    directions : str
        The setting of the directions; principal directions have numbers but no names.

    Raises
    ------
    InvalidSetting
        If a name is not among the columns, or directions that are not features are named.
    """
    if is_numbered(text) or is_file(text):
        return text
    listed, tau = _parse_binary(text)
    if directions != "features":
        raise refused("a choice of numbers, because the directions are not features", text)
    chosen = _numbers_of(listed, columns, text)
    return replace(Allocation("binary", chosen=chosen, tau=tau)).text[0]


def of_mapping(theta: Mapping[str, float], columns: Sequence[str], directions: str) -> str:
    """Return the text of a custom allocation read from a file.

    Parameters
    ----------
    theta : mapping of str to float
        Share by the name or number of a feature, or by the number of a direction.
    columns : sequence of str
        The features in use, in order.
    directions : str
        The setting that states the directions.

    Raises
    ------
    InvalidSetting
        If a direction is missing or unknown, or the shares do not sum to 1.
    """
    names = [str(number) for number in range(1, len(columns) + 1)]
    if directions == "features" and not set(theta) <= set(names):
        names = list(columns)
    for name in theta:
        if name not in names:
            accepted_names = (
                "its feature" if names == list(columns) else f"a number from 1 to {len(columns)}"
            )
            raise refused(f"a file that names each direction by {accepted_names}", name)
    missing = [name for name in names if name not in theta]
    if missing:
        raise refused(
            f"a file with a share for all {len(names)} directions; {missing[0]!r} has no share",
            f"{len(theta)} shares",
        )
    return Allocation("custom", theta=tuple(theta[name] for name in names)).text[0]


def _parse_directions(text: str) -> tuple[str, float, str]:
    kind, colon, rest = text.strip().partition(":")
    wrong = InvalidSetting("directions", DIRECTIONS_ALLOWED, text, "--directions")
    if kind != "private":
        if colon or kind not in ("features", "true"):
            raise wrong
        return kind, 0.0, ""
    if not colon:
        return kind, DEFAULT_SHARE, ""
    share, colon, supplier = rest.partition(":")
    if colon and not supplier.strip():
        raise wrong
    try:
        return kind, number_in(share), supplier.strip()
    except ValueError:
        raise wrong from None


def _parse_binary(text: str) -> tuple[str, float]:
    """Return the listed columns and tau of ``binary:COLUMNS:TAU``."""
    columns, colon, tau = text.partition(":")[2].rpartition(":")  # Names may contain colons.
    try:
        share = number_in(tau)
    except ValueError:
        raise refused(ALLOCATION_ALLOWED, text) from None
    if not columns.strip():
        if not colon:
            raise refused(ALLOCATION_ALLOWED, text)
        raise refused("a choice of at least one direction, numbered from 1", text)
    return columns.strip(), share


def _parse_shares(text: str, whole: str) -> tuple[float, ...]:
    try:
        return tuple(number_in(token) for token in _tokens(text))
    except ValueError:
        raise refused(ALLOCATION_ALLOWED, whole) from None


def _tokens(text: str, separators: str = ",+") -> list[str]:
    for separator in separators[1:]:
        text = text.replace(separator, separators[0])
    return [token.strip() for token in text.split(separators[0]) if token.strip()]


def _numbers_of(listed: str, columns: Sequence[str], text: str) -> tuple[int, ...]:
    """Return the numbers of features given by number or name; a number is not read as a name."""
    number_of_name = {str(number): number for number in range(1, len(columns) + 1)}
    for number, name in enumerate(columns, start=1):
        number_of_name.setdefault(name, number)
    # A name may contain separators, so try the whole text, then commas, then all separators.
    for tokens in ([listed], _tokens(listed, ","), _tokens(listed)):
        if all(token in number_of_name for token in tokens):
            return tuple(number_of_name[token] for token in tokens)
    unknown = next(token for token in _tokens(listed) if token not in number_of_name)
    raise refused(
        f"a choice of feature names or numbers from 1 to {len(columns)}; {unknown!r} is unknown",
        text,
    )
