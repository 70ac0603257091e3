"""The contract suite for custom mechanisms: `check_mechanism`, and its report.

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
    """Result of one check on one variant.

    Attributes
    ----------
    mechanism : str
        Text of the variant.
    check, asks, mend : str
        Name of the check, its requirement and its advice for a failure.
    seen : str
        The failures, empty if the check passed.
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
    """Results of all checks of every variant of a mechanism."""

    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(one.passed for one in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """Findings that did not pass."""
        return tuple(one for one in self.findings if not one.passed)

    def __str__(self) -> str:
        """Return the report as lines: the failures, and ways to fix them."""
        return report(self.findings)


def report(findings: Sequence[Finding]) -> str:
    """Return the findings as lines: each cause once, the failed checks, and a fix."""
    names = ", ".join(dict.fromkeys(one.mechanism for one in findings))
    failures = [one for one in findings if not one.passed]
    lines = [f"{names}: {len(findings) - len(failures)} of {len(findings)} checks pass."]
    causes: dict[str, list[Finding]] = {}
    for one in failures:
        causes.setdefault(one.seen, []).append(one)
    for cause, finds in causes.items():
        checks = list(dict.fromkeys(one.check for one in finds))
        asks, mend = finds[0].asks, finds[0].mend
        if len(checks) > 1:  # If one cause fails several checks, report this cause first.
            asks = f"one cause fails these {len(checks)} checks."
            mend = "Mend this first, and check again."
        variants = ", ".join(dict.fromkeys(one.mechanism for one in finds))
        lines += [
            "",
            f"✗ {', '.join(checks)} ({variants}): {asks}",
            f"  seen: {cause}",
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
        A function that is called with the name of each check before it runs.

    Returns
    -------
    Report
        The report, which prints as lines; ``passed`` is true if every check passed.

    Raises
    ------
    WrongArgument
        If the argument is not a mechanism, or Python runs with assertions off.
    AssertionError
        If a check fails and ``raises`` is true.

    Examples
    --------
    >>> from dpviz.extend.testing import check_mechanism
    >>> from dpviz.mechanisms.gaussian import Gaussian
    >>> print(check_mechanism(Gaussian()))
    gaussian: 27 of 27 checks pass.
    """
    if sys.flags.optimize:
        raise WrongArgument("The checks are assertions, which -O removes: run Python without -O.")
    if inspect.isclass(mechanism) and issubclass(mechanism, Mechanism):
        if inspect.isabstract(mechanism):
            abstract = ", ".join(sorted(mechanism.__abstractmethods__))
            raise WrongArgument(f"{mechanism.__name__} cannot run: it must define {abstract}.")
        variants = variants_of(mechanism)
    elif isinstance(mechanism, Mechanism):
        variants = [mechanism]
    else:
        kind = type(mechanism).__name__
        raise WrongArgument(f"mechanism must be a Mechanism or a class of them; got {kind}.")
    result = Report(
        tuple(
            Finding(variant.text, name, check.asks, check.mend, _seen(variant, name, progress))
            for variant in variants
            for name, check in CHECKS.items()
        )
    )
    if raises and not result.passed:
        raise AssertionError(str(result))
    return result


def _seen(mechanism: Mechanism, name: str, progress: Callable[[str], None] | None) -> str:
    """Return the failure in one line, or an empty text if the check passes."""
    if progress is not None:
        progress(f"{mechanism.text}: {name}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Numerical overflow counts as a failure too.
            CHECKS[name](mechanism)
    except Exception as raised:  # Report any error of an author's mechanism.
        error: BaseException = raised
        if isinstance(raised, CannotRun):
            if raised.__cause__ is None:
                return printable(raised, _MOST)
            error = raised.__cause__  # This error may be shown: the rows are synthetic.
        words = str(error).strip()
        if isinstance(error, AssertionError):
            # An assertion without a message is reported by its source line.
            line = traceback.extract_tb(error.__traceback__)[-1].line or name
            return printable(words or line.removeprefix("assert "), _MOST)
        last = traceback.extract_tb(error.__traceback__)[-1]
        return printable(f"{type(error).__name__}: {words} (line {last.lineno})", _MOST)
    return ""
