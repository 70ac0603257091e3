"""The contract suite for a mechanism of anybody's: `check_mechanism`, and a report of it.

The contract tests of the repository run the same checks over the mechanisms of this package.
"""

from __future__ import annotations

import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpviz.core.errors import CannotRun, WrongArgument, printable
from dpviz.extend.checks import CHECKS, variants_of
from dpviz.mechanisms import Mechanism

__all__ = ["Finding", "Report", "check_mechanism"]

_MOST = 300


@dataclass(frozen=True)
class Finding:
    """What one check said of one variant.

    Attributes
    ----------
    mechanism : str
        Text of the variant.
    check, asks, mend : str
        Its name, what it asks and how to mend what fails it.
    seen : str
        What failed; empty where the check passed.
    """

    mechanism: str
    check: str
    asks: str
    mend: str
    seen: str

    @property
    def passed(self) -> bool:
        """Whether the variant passed."""
        return not self.seen


@dataclass(frozen=True)
class Report:
    """What every check said of every variant of a mechanism."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(one.passed for one in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """What did not pass."""
        return tuple(one for one in self.findings if not one.passed)

    def __str__(self) -> str:
        """Return the report as lines: what fails, with how to mend it."""
        return report(self.findings)


def report(findings: Sequence[Finding]) -> str:
    """Return what was found as lines: each cause once, what it fails, and how to mend it."""
    names = ", ".join(dict.fromkeys(one.mechanism for one in findings))
    failed = [one for one in findings if not one.passed]
    lines = [f"{names}: {len(findings) - len(failed)} of {len(findings)} checks pass."]
    causes: dict[str, list[Finding]] = {}
    for one in failed:
        causes.setdefault(one.seen, []).append(one)
    for seen, found in causes.items():
        checks = list(dict.fromkeys(one.check for one in found))
        asks, mend = found[0].asks, found[0].mend
        if len(checks) > 1:  # what each asks cannot be told before what stops them all is gone
            asks = f"one cause fails these {len(checks)} checks."
            mend = "Mend this first, and check again."
        variants = ", ".join(dict.fromkeys(one.mechanism for one in found))
        lines += [
            "",
            f"✗ {', '.join(checks)} ({variants}): {asks}",
            f"  seen: {seen}",
            f"  mend: {mend}",
        ]
    return "\n".join(lines)


def check_mechanism(
    mechanism: object,
    *,
    raises: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Run the contract suite over a mechanism and every example of its parameters.

    Parameters
    ----------
    mechanism : Mechanism or class of them
        A class is checked with its defaults and each example that its parameters declare.
    raises : bool
        Whether a failure raises `AssertionError` with the report, as in a test of your own.
    progress : callable, optional
        Told the name of each check before it runs.

    Returns
    -------
    Report
        Prints as lines; ``passed`` says whether every check did.

    Raises
    ------
    WrongArgument
        If it is no mechanism, or Python runs with assertions off.
    AssertionError
        If a check fails and ``raises`` is said.

    Examples
    --------
    >>> from dpviz.extend.testing import check_mechanism
    >>> from dpviz.mechanisms.gaussian import Gaussian
    >>> print(check_mechanism(Gaussian()))
    gaussian: 27 of 27 checks pass.
    """
    if sys.flags.optimize:
        raise WrongArgument("Checks are assertions: run Python without -O.")
    if inspect.isclass(mechanism) and issubclass(mechanism, Mechanism):
        if inspect.isabstract(mechanism):
            left = ", ".join(sorted(mechanism.__abstractmethods__))
            raise WrongArgument(f"{mechanism.__name__} cannot run: it must define {left}.")
        variants = variants_of(mechanism)
    elif isinstance(mechanism, Mechanism):
        variants = [mechanism]
    else:
        kind = type(mechanism).__name__
        raise WrongArgument(f"mechanism must be a Mechanism or a class of them; got {kind}.")
    found = Report(
        tuple(
            Finding(variant.text, name, check.asks, check.mend, _seen(variant, name, progress))
            for variant in variants
            for name, check in CHECKS.items()
        )
    )
    if raises and not found.passed:
        raise AssertionError(str(found))
    return found


def _seen(mechanism: Mechanism, name: str, progress: Callable[[str], None] | None) -> str:
    """Return what fails, in a line; nothing where the check passes."""
    if progress is not None:
        progress(f"{mechanism.text}: {name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an overflow is a fault too
            CHECKS[name](mechanism)
    except Exception as raised:  # whatever an author's code raises is what was seen
        error: BaseException = raised
        if isinstance(raised, CannotRun):
            if raised.__cause__ is None:
                return printable(raised, _MOST)
            error = raised.__cause__  # whose words are safe here, where rows are made up
        words = str(error).strip()
        if isinstance(error, AssertionError):
            # a bare assertion says what it asks for in its own line
            line = traceback.extract_tb(error.__traceback__)[-1].line or name
            return printable(words or line.removeprefix("assert "), _MOST)
        last = traceback.extract_tb(error.__traceback__)[-1]
        return printable(f"{type(error).__name__}: {words} (line {last.lineno})", _MOST)
    return ""
