"""What a link says: the one parser of every text in it, with limits, and no session.

A link comes from anywhere. Each value is read by its declaration, what cannot be read is replaced
and said in one sentence, and nothing long is looked at.
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
"""Most letters of one value."""
MOST_VARIANTS = 40
_MOST_NOTICES = 8
_MOST_PINNED = 100  # parameters of a pinned setting


@dataclass(frozen=True)
class Link:
    """What a link says, made legal.

    Attributes
    ----------
    settings : Settings
    views : dict
        The options of pages, by their key in `VIEWS`.
    label_index : int or None
        Which of a file's possible label columns.
    pin : Settings or None
        The setting that is pinned for comparison.
    notices : tuple of str
        One sentence for each thing that was replaced.
    """

    settings: Settings
    views: dict[str, Declared]
    label_index: int | None
    pin: Settings | None
    notices: tuple[str, ...]


def read(query: Mapping[str, str]) -> Link:
    """Return what the parameters of a link say."""
    notices: list[str] = []
    kept = {}
    for key, value in query.items():
        if len(value) <= LONGEST:
            kept[key] = value
        else:
            notices.append(
                f"In the link, {printable(key)!r} must have at most {LONGEST} letters; it has "
                f"{len(value)} and was left out."
            )
    settings, more = Settings.from_query(kept, page_defaults())
    settings, unknown = _with_known_mechanisms(settings)
    notices += more + unknown
    known = Settings.url_keys() | OWN_KEYS
    views = {}
    for store, cls in VIEWS.items():
        views[store], more = cls.from_query(kept, cls())
        notices += more
        known |= cls.url_keys()
    strange = [key for key in kept if key not in known]
    if strange:
        others = "" if len(strange) == 1 else f" nor {len(strange) - 1} more"
        notices.append(
            f"In the link, {printable(strange[0])!r} is not a setting{others} and was left out."
        )
    version = kept.get("v", LINK_VERSION)
    if version != LINK_VERSION:
        notices.append(
            f"The link's version must be {LINK_VERSION}; got {printable(version, 20)!r}. It was "
            "read all the same."
        )
    label = kept.get("label")
    index = _column_number(label) if label is not None else None
    if label is not None and index is None:
        notices.append(
            f"In the link, label must be a column number; got {printable(label)!r}. It was left "
            "out."
        )
    pin, more = _pinned(kept.get("pin"))
    notices += more
    if len(notices) > _MOST_NOTICES:
        rest = len(notices) - _MOST_NOTICES + 1
        notices = [*notices[: _MOST_NOTICES - 1], f"{rest} more values of the link were replaced."]
    return Link(settings, views, index, pin, tuple(notices))


def _pinned(written: str | None) -> tuple[Settings | None, list[str]]:
    """Return the pinned setting of a link, and what had to be replaced in it."""
    if written is None:
        return None, []
    try:
        query = dict(parse_qsl(written, keep_blank_values=True, max_num_fields=_MOST_PINNED))
    except ValueError:
        return None, [f"In the link, pin must have at most {_MOST_PINNED} values. It was left out."]
    settings, notices = Settings.from_query(query, page_defaults())
    settings, unknown = _with_known_mechanisms(settings)
    strange = sorted(set(query) - Settings.url_keys() - {"v"})
    if strange:
        notices.append(
            f"In the pinned setting, {printable(strange[0])!r} is not a setting and was left out."
        )
    return settings, notices + unknown


def _column_number(written: str) -> int | None:
    """Return the whole number from 0 to 99999 that a text is, in plain digits."""
    plain_digits = written.isascii() and written.isdigit() and len(written) < 6
    return int(written) if plain_digits else None


def _with_known_mechanisms(settings: Settings) -> tuple[Settings, list[str]]:
    """Return settings whose mechanisms and supplier exist, and sentences on those that do not."""
    notices = []
    kept: list[str] = []
    for text in dict.fromkeys(settings.mechanisms):
        try:
            parse_variant(text)
        except InvalidSetting as error:
            notices.append(f"In the link, {error} It was left out.")
            continue
        if len(kept) < MOST_VARIANTS:
            kept.append(text)
        elif len(kept) == MOST_VARIANTS and not notices:
            notices.append(f"In the link, mechanisms must be at most {MOST_VARIANTS}; the first "
                           "ones were taken.")  # fmt: skip
    try:
        check_supplier(settings.directions)
    except InvalidSetting as error:
        notices.append(f"In the link, {error} Showing {page_defaults().directions}.")
        settings = replace(settings, directions=page_defaults().directions)
    if kept == list(settings.mechanisms):
        return settings, notices
    return replace(settings, mechanisms=tuple(kept) or page_defaults().mechanisms), notices
