"""Errors a user can cause; everything else is a bug and stays loud.

A message is one sentence that names the input, the allowed range and what was
given. It never carries a value or statistic of the data: line and column
numbers, names and shapes are fine.
"""

from __future__ import annotations


class DpvizError(ValueError):
    """Base of every error that is the input's fault, shown without a traceback."""


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
        shown = str(self.given)
        if len(shown) > 60:  # a pasted file must not become the message
            shown = shown[:57] + "..."
        return f"{subject} must be {self.allowed}; got {shown!r}."

    def as_option(self) -> str:
        """Return the sentence with the command-line spelling of the setting."""
        return self._sentence(self.flag)


class WrongArgument(DpvizError, TypeError):
    """A Python function was called with an argument that it does not take."""


class InvalidTable(DpvizError):
    """A table cannot be read or used; the message never shows a cell."""


class NotAvailable(DpvizError):
    """A remote data set is not at hand and cannot be got; the message says how to place it."""


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
