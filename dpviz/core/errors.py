"""Errors that a user can cause; any other exception is a bug.

A message is one sentence that names the input, the allowed range and what was
given. It never carries a value or statistic of the data: line and column
numbers, names and shapes are fine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

QUOTED = 60
"""Most characters of a file, a link or a setting that a message quotes at a time."""


# what Markdown and HTML make live; a blank behind it keeps it text
_LIVE = re.compile(r"\](?=[(\[:])|:(?=//)|<(?=[A-Za-z/!])|\bwww(?=\.)", re.IGNORECASE)


def printable(text: object, most: int | None = QUOTED) -> str:
    """Return a text as one line of printable characters, cut to a length.

    Line ends, control characters and marks that turn the direction of writing
    become blanks: what is quoted can neither forge a line nor hide one. Where a
    browser would make a link, a picture or a tag of it, a blank parts the marks.

    Parameters
    ----------
    text : object
        Shown as `str` shows it.
    most : int or None
        Characters that stay; a longer text ends in three dots. None cuts nothing.
    """
    try:
        whole = str(text)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        whole = f"a {type(text).__name__} too long to be written"
    if most is not None:
        whole = whole[: 16 * most]  # a pasted file need not be walked through
    if not whole.isprintable():  # a search asks for thousands of reasons
        whole = "".join(c if c.isprintable() else " " for c in whole)
    line = " ".join(whole.split())
    if most is not None:
        line = _LIVE.sub(lambda found: found[0] + " ", line)
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return the word nearest to a mistyped one, as a phrase in brackets; empty if none is near.

    Parameters
    ----------
    given : object
        What was typed.
    known : iterable of str
        What may stand there.
    """
    near = get_close_matches(str(given)[:QUOTED], list(known), 1, 0.7)
    return f" (did you mean {near[0]}?)" if near and near[0] != given else ""


class DpvizError(ValueError):
    """Base of every error that is the input's fault, shown without a traceback."""

    def __init__(self, sentence: str) -> None:
        super().__init__(printable(sentence, None))

    def __reduce__(self) -> tuple[Any, ...]:
        """Let it come back from a worker as it was, whatever its class is made from."""
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[DpvizError], words: tuple[Any, ...], state: dict[str, Any]) -> DpvizError:
    # not through __init__: each class asks for arguments of its own
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
        The allowed range in words, completing "must be ...".
    given : object
        What was given, shown as text.
    flag : str, optional
        Command-line spelling; the command line shows it in place of the name.
    """

    def __init__(self, name: str, allowed: str, given: object, flag: str | None = None) -> None:
        self.name = name
        self.allowed = allowed
        self.given = given
        self.flag = flag or name
        super().__init__(self._sentence(name))

    def _sentence(self, subject: str) -> str:
        # a choice among words is where a typing error can be guessed
        _, some, words = self.allowed.partition("one of ")
        hint = did_you_mean(self.given, words.split(", ")) if some else ""
        return f"{subject} must be {self.allowed}; got {printable(self.given)!r}{hint}."

    def as_option(self) -> str:
        """Return the sentence with the command-line spelling of the setting."""
        return printable(self._sentence(self.flag), None)


class WrongArgument(DpvizError, TypeError):
    """A Python function was called with an argument that it does not take."""


class InvalidTable(DpvizError):
    """A table cannot be read or used; the message never shows a cell."""


class OtherEncoding(InvalidTable):
    """A text has another encoding than it was read with; `encoding` names a likely one."""

    def __init__(self, message: str, encoding: str = "") -> None:
        super().__init__(message)
        self.encoding = encoding


class CannotWrite(DpvizError):
    """A file cannot be written; the message says why, and nothing half-written is left."""


class NotAvailable(DpvizError):
    """Something is not available, such as a remote data set; the message says how to get it."""


class CannotRun(DpvizError):
    """A mechanism cannot run on this problem and budget.

    Parameters
    ----------
    mechanism : str
        Text of the variant.
    reason : str
        Sentence fragment saying why and what would be needed.
    """

    def __init__(self, mechanism: str, reason: str) -> None:
        self.mechanism = mechanism
        self.reason = reason
        super().__init__(f"{mechanism} cannot run: {reason}")
