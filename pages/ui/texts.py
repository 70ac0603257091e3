"""Texts from links and files, made harmless here and shown as plain text.

Streamlit reads most strings as Markdown. Every text from outside (a file, a link, a text box) goes
through `plain` before it is drawn, alone or inside a sentence.
"""

from __future__ import annotations

import re

# This invisible character separates letters that a browser would turn into a link or an icon.
_JOINER = "\u2060"
_LIVE = re.compile(r"([\\`*\[\]<>$~|^]|(?<!\w)_|_(?!\w)|&(?=#|\w+;))")
_ADDRESS = re.compile(r"(?<=:)(?=//|\w)|(?<=@)(?=\w)|(?<=\bwww)(?=\.)", re.IGNORECASE)
# At the start of a text, Markdown turns these characters into lists, headings and rules.
_START = re.compile(r"\A(?:(\d+)(?=[.)])|(?=[#+=-]))")


def plain(text: object) -> str:
    """Return a text that Markdown shows letter by letter: no link, image, formula or icon.

    Sentences without such marks are returned unchanged.

    Parameters
    ----------
    text : object
        Text or object to show, converted by `str`; line ends become spaces.
    """
    line = " ".join(str(text).split())
    parts = _ADDRESS.sub(_JOINER, line)
    safe = _LIVE.sub(r"\\\1", parts)
    return _START.sub(lambda match: (match[1] or "") + _JOINER, safe)
