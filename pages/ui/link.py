"""Links: the only parser of every text in a link, with limits and without a session.

A link may come from anywhere. Each value is read by its declaration. Unreadable values are replaced
and reported in one sentence, and long values are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from dpviz.core.errors import InvalidSetting, printable
from dpviz.core.params import Declared
from dpviz.core.settings import Settings
from dpviz.mechanisms import parse_variant
from dpviz.mechanisms._suppliers import check_supplier
from pages.ui.page_options import VIEWS, page_defaults

LINK_VERSION = "1"
OWN_KEYS = frozenset({"v", "label", "pin"})
LONGEST = 2_000
"""Maximum length of one value."""
MOST_VARIANTS = 40
_MOST_NOTICES = 8
_MOST_PINNED = 100  # A link may have at most 100 parameters for a pinned setting.


@dataclass(frozen=True)
class Link:
    """The contents of a link, limited to allowed values.

    Attributes
    ----------
    settings : Settings
    views : dict
        The options of single pages, by their key in `VIEWS`.
    label_index : int or None
        Index of the label column among a file's possible label columns.
    pin : Settings or None
        The setting that the link pins for comparison.
    notices : tuple of str
        One sentence for each value that was replaced.
    """

    settings: Settings
    views: dict[str, Declared]
    label_index: int | None
    pin: Settings | None
    notices: tuple[str, ...]


def read(query: Mapping[str, str]) -> Link:
    """Return the contents of a link's parameters."""
    notices: list[str] = []
    values = {}
    for key, value in query.items():
        if len(value) <= LONGEST:
            values[key] = value
        else:
            notices.append(
                f"In the link, {printable(key)!r} must have at most {LONGEST} letters; it has "
                f"{len(value)} and was left out."
            )
    settings, more = Settings.from_query(values, page_defaults())
    settings, unknown = _with_known_mechanisms(settings)
    notices += more + unknown
    keys = Settings.url_keys() | OWN_KEYS
    views = {}
    for store, cls in VIEWS.items():
        views[store], more = cls.from_query(values, cls())
        notices += more
        keys |= cls.url_keys()
    strange = [key for key in values if key not in keys]
    if strange:
        others = "" if len(strange) == 1 else f" nor {len(strange) - 1} more"
        notices.append(
            f"In the link, {printable(strange[0])!r} is not a setting{others} and was left out."
        )
    version = values.get("v", LINK_VERSION)
    if version != LINK_VERSION:
        notices.append(
            f"The link's version must be {LINK_VERSION}; got {printable(version, 20)!r}. dpviz "
            "still read the link."
        )
    label = values.get("label")
    index = _column_number(label) if label is not None else None
    if label is not None and index is None:
        notices.append(
            f"In the link, label must be a column number; got {printable(label)!r}. The label was "
            "left out."
        )
    pin, more = _pinned_setting(values.get("pin"))
    notices += more
    if len(notices) > _MOST_NOTICES:
        rest = len(notices) - _MOST_NOTICES + 1
        notices = [*notices[: _MOST_NOTICES - 1], f"{rest} more values of the link were replaced."]
    return Link(settings, views, index, pin, tuple(notices))


def _pinned_setting(text: str | None) -> tuple[Settings | None, list[str]]:
    """Return the pinned setting of a link, and sentences on its replaced values."""
    if text is None:
        return None, []
    try:
        query = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_PINNED))
    except ValueError:
        return None, [f"In links, pin must have at most {_MOST_PINNED} values. Pin was left out."]
    settings, notices = Settings.from_query(query, page_defaults())
    settings, unknown = _with_known_mechanisms(settings)
    strange = sorted(set(query) - Settings.url_keys() - {"v"})
    if strange:
        notices.append(
            f"In the pinned setting, {printable(strange[0])!r} is not a setting and was left out."
        )
    return settings, notices + unknown


def _column_number(text: str) -> int | None:
    """Return a text of plain digits as a number from 0 to 99999, or None."""
    plain_digits = text.isascii() and text.isdigit() and len(text) < 6
    return int(text) if plain_digits else None


def _with_known_mechanisms(settings: Settings) -> tuple[Settings, list[str]]:
    """Return settings whose mechanisms and supplier exist, and sentences on the missing ones."""
    notices = []
    variants: list[str] = []
    for text in dict.fromkeys(settings.mechanisms):
        try:
            parse_variant(text)
        except InvalidSetting as error:
            notices.append(f"In the link, {error} The entry was left out.")
            continue
        if len(variants) < MOST_VARIANTS:
            variants.append(text)
        elif len(variants) == MOST_VARIANTS and not notices:
            notices.append(
                f"In the link, mechanisms must be at most {MOST_VARIANTS}. Showing the first "
                f"{MOST_VARIANTS} mechanisms."
            )
    try:
        check_supplier(settings.directions)
    except InvalidSetting as error:
        notices.append(f"In the link, {error} Showing {page_defaults().directions}.")
        settings = replace(settings, directions=page_defaults().directions)
    if variants == list(settings.mechanisms):
        return settings, notices
    return replace(settings, mechanisms=tuple(variants) or page_defaults().mechanisms), notices
