"""Texts of links and files, shown as text: the one place where they are made harmless.

Streamlit reads most strings as Markdown. Whatever came from outside (a file, a link, a text box)
goes through `plain` before it is drawn, alone or inside a sentence.
"""

from __future__ import annotations

import re

# Invisible: parts what a browser would join to an address, an icon or a list.
_JOINER = "\u2060"
_LIVE = re.compile(r"([\\`*\[\]<>$~|^]|(?<!\w)_|_(?!\w)|&(?=#|\w+;))")
_ADDRESS = re.compile(r"(?<=:)(?=//|\w)|(?<=@)(?=\w)|(?<=\bwww)(?=\.)", re.IGNORECASE)
# at the start of a block these make lists, headings and rules
_START = re.compile(r"\A(?:(\d+)(?=[.)])|(?=[#+=-]))")


def plain(text: object) -> str:
    """Return a text so that Markdown shows it letter by letter: no link, picture, formula or icon.

    Sentences without such marks come back as they are.

    Parameters
    ----------
    text : object
        Shown as `str` shows it; line ends become blanks.
    """
    line = " ".join(str(text).split())
    parted = _ADDRESS.sub(_JOINER, line)
    escaped = _LIVE.sub(r"\\\1", parted)
    return _START.sub(lambda found: (found[1] or "") + _JOINER, escaped)
