"""The question `check`: whether a mechanism of one's own keeps the contract of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, ClassVar

from dpviz.core.errors import InvalidSetting, WrongArgument
from dpviz.core.params import Declared, text
from dpviz.core.plugins import of_module, plugin_module
from dpviz.extend.testing import Finding, check_mechanism, report
from dpviz.mechanisms import Mechanism, mechanisms_among, parse_variant
from dpviz.studies import Answer
from dpviz.studies.columns import NUMBERS, Column
from dpviz.studies.options import asks


@dataclass(frozen=True)
class CheckOptions(Declared):
    """What is checked."""

    mechanism: str | Declared = text(  # noqa: RUF009, a declaration
        None, label="Mechanism", flag="MECHANISM", required=True, objects=True,
        help="A Python file with mechanisms, or a variant such as mvg[theorem=3].",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Checked(Answer):
    """What every check said, of every variant of every mechanism.

    Attributes
    ----------
    findings : tuple of dpviz.extend.testing.Finding
    """

    listed: ClassVar[str] = "findings"
    alone: ClassVar[bool] = True
    columns: ClassVar[tuple[Column, ...]] = (
        Column("mechanism", type=str, show=NUMBERS),
        Column("check", type=str, show=NUMBERS),
        Column("passed", type=bool, show=NUMBERS),
        Column("asks", type=str, show=NUMBERS, help="The requirement that is checked."),
        Column("seen", type=str, show=NUMBERS),
        Column("mend", of=lambda one: "" if one.passed else one.mend, type=str, show=NUMBERS,
               help="How to mend it; empty where it passes."),
    )  # fmt: skip

    findings: tuple[Finding, ...]

    @property
    def status(self) -> int:
        """1 where a check fails, as a test runner ends."""
        return 0 if all(one.passed for one in self.findings) else 1

    def summary(self) -> str:
        """Return the report: what fails, and how to mend it."""
        by_key: dict[str, list[Finding]] = {}
        for one in self.findings:
            by_key.setdefault(one.mechanism.partition("[")[0], []).append(one)
        return "\n".join(report(found) for found in by_key.values())


@asks(
    "run the contract suite over a mechanism of your own",
    CheckOptions,
    hints={"mechanism": str | Mechanism | type[Mechanism]},
    prints_to_out=True,
)
def check(
    mechanism: str | PathLike[str] | Mechanism | type[Mechanism],
    *,
    progress: Callable[[str], None] | None = None,
) -> Checked:
    """Run the contract suite over a mechanism, and say how to mend what fails.

    Parameters
    ----------
    mechanism : str, path or Mechanism
        The path of a Python file, whose every mechanism is checked; a variant; or a mechanism.
    progress : callable, optional
        Told the name of each check before it runs.

    Returns
    -------
    Checked
        ``summary()`` says what passes and what fails; ``status`` is 1 where a check fails.

    Raises
    ------
    WrongArgument, InvalidSetting
        If there is no such file or mechanism, or the file defines none.

    See Also
    --------
    audit : A longer attack, in any setting.

    Notes
    -----
    The contract tests of the repository run the same checks. They look for a claim that is false
    by a search over neighbours and by a short audit; that they find nothing is no proof.

    Examples
    --------
    >>> import dpviz
    >>> print(dpviz.check("gaussian").summary())
    gaussian: 27 of 27 checks pass.
    """
    found = [finding for one in _chosen(mechanism) for finding in
             check_mechanism(one, progress=progress).findings]  # fmt: skip
    return Checked(tuple(found))


def _chosen(given: Any) -> list[Mechanism | type[Mechanism]]:
    """Return what is to be checked."""
    if isinstance(given, Mechanism):
        return [given]
    if not isinstance(given, (str, PathLike)):
        kind = type(given).__name__[:40]
        raise WrongArgument(f"mechanism must be a Python file or a mechanism; got {kind}.")
    written = fspath(given)
    if not written.endswith(".py"):
        return [parse_variant(written)]
    found = mechanisms_among(of_module(plugin_module(str(Path(written).resolve()))))
    if not found:
        allowed = "a Python file that defines a mechanism"
        raise InvalidSetting("mechanism", allowed, Path(written).name, "MECHANISM")
    return list(found)
