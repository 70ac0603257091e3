"""Allocations as people write them: on the command line, in links and in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dpviz.core.allocation import (
    ALLOCATION_ALLOWED,
    DEFAULT_SHARE,
    DIRECTIONS_ALLOWED,
    Allocation,
    refused,
)
from dpviz.core.errors import InvalidSetting
from dpviz.core.params import format_number

LONGEST_IN_LINK = 20
"""Most shares that a link carries; more travel in a file."""
_FILE_ENDINGS = (".csv", ".csv.gz", ".parquet", ".pq")


# --- the two settings texts -------------------------------------------------------------------


def check_allocation(text: str) -> str:
    """Return an allocation's text in canonical form, before the table is known.

    Names of features stay as they are; `numbered` turns them into numbers.

    Raises
    ------
    InvalidSetting
        If the text is none of `ALLOCATION_ALLOWED`.
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
        if tokens and all(token.isdecimal() for token in tokens):
            chosen = tuple(int(token) for token in tokens)
            return Allocation("binary", chosen=chosen, tau=tau).text[0]
        Allocation("binary", chosen=(1,), tau=tau)  # checks the share alone
        return f"binary:{columns}:{format_number(tau)}"
    raise refused(ALLOCATION_ALLOWED, text)


def check_directions(text: str) -> str:
    """Return the text of the directions in canonical form, or raise InvalidSetting.

    Whether the named mechanism exists is not known here.
    """
    directions, share, supplier = _parse_directions(text)
    return Allocation(directions=directions, share=share, supplier=supplier).text[1]


@lru_cache(maxsize=256)
def parse_allocation(allocation: str, directions: str = "features") -> Allocation:
    """Return the allocation that two settings texts state.

    Raises
    ------
    InvalidSetting
        If a text is not legal, or still names features or a file.
    """
    allocation = check_allocation(allocation)
    basis, share, supplier = _parse_directions(directions)
    of: dict[str, Any] = {"share": share, "supplier": supplier}
    if not is_numbered(allocation):
        raise refused(
            "written with numbers here, or resolved with the table's features", allocation
        )
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
    """Return whether a canonical text may stand in a link: no names, no file, not too long."""
    short = not text.startswith("custom:") or text.count(",") < LONGEST_IN_LINK
    return is_numbered(text) and short


def numbered(text: str, columns: Sequence[str], directions: str = "features") -> str:
    """Return an allocation's text with the names of features replaced by their numbers.

    Parameters
    ----------
    text : str
        Canonical, and not a file.
    columns : sequence of str
        The features in use, in order.
    directions : str
        The setting of the directions: principal directions have numbers only.

    Raises
    ------
    InvalidSetting
        If a name is not among the columns, or directions that are not features are named.
    """
    if is_numbered(text) or is_file(text):
        return text
    listed, tau = _parse_binary(text)
    if directions != "features":
        raise refused("a choice of direction numbers when directions are not features", text)
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
        The setting of the directions.

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
            known = "a feature of the table" if names == list(columns) else f"1 to {len(columns)}"
            raise refused(f"a file whose directions are each {known}", name)
    missing = [name for name in names if name not in theta]
    if missing:
        raise refused(
            f"a file with a share for each of {len(names)} directions; {missing[0]!r} is missing",
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
        return kind, float(share), supplier.strip()
    except ValueError:
        raise wrong from None


def _parse_binary(text: str) -> tuple[str, float]:
    """Return the listed columns and tau of ``binary:COLUMNS:TAU``."""
    columns, colon, tau = text.partition(":")[2].rpartition(":")  # a name may hold a colon
    try:
        share = float(tau)
    except ValueError:
        raise refused(ALLOCATION_ALLOWED, text) from None
    if not columns.strip():
        if not colon:
            raise refused(ALLOCATION_ALLOWED, text)
        raise refused("a choice of at least one direction, numbered from 1", text)
    return columns.strip(), share


def _parse_shares(text: str, whole: str) -> tuple[float, ...]:
    try:
        return tuple(float(token) for token in _tokens(text))
    except ValueError:
        raise refused(ALLOCATION_ALLOWED, whole) from None


def _tokens(text: str, separators: str = ",+") -> list[str]:
    for separator in separators[1:]:
        text = text.replace(separator, separators[0])
    return [token.strip() for token in text.split(separators[0]) if token.strip()]


def _numbers_of(listed: str, columns: Sequence[str], text: str) -> tuple[int, ...]:
    """Return the numbers of features given by number or name; a number is never a name."""
    known = {str(number): number for number in range(1, len(columns) + 1)}
    for number, name in enumerate(columns, start=1):
        known.setdefault(name, number)
    # A name may hold one separator: try the whole, then commas, then both.
    for tokens in ([listed], _tokens(listed, ","), _tokens(listed)):
        if all(token in known for token in tokens):
            return tuple(known[token] for token in tokens)
    unknown = next(token for token in _tokens(listed) if token not in known)
    raise refused(
        f"a choice of features by name or number from 1 to {len(columns)}; {unknown!r} is neither",
        text,
    )
