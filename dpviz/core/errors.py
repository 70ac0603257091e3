"""Errors that a user can cause; any other exception is a bug.

A message is one sentence that names the input, the allowed range and the given value. The message
never contains a value or statistic of the data: line and column numbers, names and shapes are fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

QUOTED = 60
"""Maximum number of quoted characters of a file, a link or a setting in a message."""


# Markdown and HTML interpret these characters as markup, unless a blank follows.
_LIVE = re.compile(r"\](?=[(\[:])|:(?=//)|<(?=[A-Za-z/!])|\bwww(?=\.)", re.IGNORECASE)


def printable(text: object, most: int | None = QUOTED) -> str:
    """Return a text as one line of printable characters, shortened to a length.

    Line ends, control characters and marks that change the writing direction become blanks, so a
    quoted text can neither forge nor hide a line. A blank splits marks from which a browser would
    make a link, an image or a tag.

    Parameters
    ----------
    text : object
        Any value, shown as by `str`.
    most : int or None
        Maximum number of characters; a longer text ends in three dots. With None, nothing is cut.
    """
    try:
        whole = str(text)
    except ValueError:  # Python refuses to write integers of over 4,300 digits.
        whole = f"a {type(text).__name__} too long to be written"
    if most is not None:
        whole = whole[: 16 * most]  # A pasted text may be long, so do not search all of it.
    if not whole.isprintable():  # This test saves time: a search creates many messages.
        whole = "".join(c if c.isprintable() else " " for c in whole)
    line = " ".join(whole.split())
    if most is not None:
        line = _LIVE.sub(lambda found: found[0] + " ", line)
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return the allowed word nearest to a mistyped one, in brackets; empty if none is near.

    Parameters
    ----------
    given : object
        The mistyped word.
    known : iterable of str
        The allowed words.
    """
    near = get_close_matches(str(given)[:QUOTED], list(known), 1, 0.7)
    return f" (did you mean {near[0]}?)" if near and near[0] != given else ""


class DpvizError(ValueError):
    """Base of every error that the input causes, shown without a traceback."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence, None))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error so that workers return it unchanged, whatever its class's arguments."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[DpvizError], words: tuple[Any, ...], state: dict[str, Any]) -> DpvizError:
    # Do not call __init__, because the arguments differ from class to class.
    error = kind.__new__(kind)
    error.args = words
    error.__dict__.update(state)
    return error


class InvalidSetting(DpvizError):
    """A setting, mechanism parameter or budget lies outside its allowed range.

    Parameters
    ----------
    name : str
        Field name, as in ``Settings``.
    allowed : str
        The allowed range in words, to complete "must be ...".
    given : object
        The given value, shown as text.
    flag : str, optional
        Command-line spelling, which the command line shows instead of the name.
    """

    def __init__(self, name: str, allowed: str, given: object, flag: str | None = None) -> None:
        self.name = name
        self.allowed = allowed
        self.given = given
        self.flag = flag or name
        super().__init__(self._sentence(name))

    def _sentence(self, subject: str) -> str:
        # Suggest a spelling only if the setting is a choice among words.
        _, some, words = self.allowed.partition("one of ")
        hint = did_you_mean(self.given, words.split(", ")) if some else ""
        return f"{subject} must be {self.allowed}; got {printable(self.given)!r}{hint}."

    def as_option(self) -> str:
        """Return the message with the command-line spelling of the setting."""
        return printable(self._sentence(self.flag), None)


class WrongArgument(DpvizError, TypeError):
    """A Python function was called with an argument that it does not take."""


class InvalidTable(DpvizError):
    """A table cannot be read or used; the message never shows a cell."""


class OtherEncoding(InvalidTable):
    """A text has another encoding than expected; `encoding` names a likely encoding."""

    def __init__(self, message: str, encoding: str = "") -> None:
        super().__init__(message)
        self.encoding = encoding


class CannotWrite(DpvizError):
    """A file cannot be written; the message gives the reason, and no partial file is left."""


class NotAvailable(DpvizError):
    """Something is not available, such as a remote data set; the message explains how to get it."""


class CannotRun(DpvizError):
    """A mechanism cannot run on this problem and budget.

    Parameters
    ----------
    mechanism : str
        Text of the mechanism's variant.
    reason : str
        The reason and the requirement, as a sentence fragment.
    """

    def __init__(self, mechanism: str, reason: str) -> None:
        self.mechanism = mechanism
        self.reason = reason
        super().__init__(f"{mechanism} cannot run: {reason}")
