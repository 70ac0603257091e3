"""The question `check`: whether a custom mechanism meets the contract."""

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
    """Objects and progress of a check."""

    mechanism: str | Declared = text(  # noqa: RUF009, a declaration
        None, label="Mechanism", flag="MECHANISM", required=True, objects=True,
        help="A Python file with mechanisms, or a variant such as mvg[theorem=3].",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Checked(Answer):
    """Results of every check of every variant of every mechanism.

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
        Column("asks", type=str, show=NUMBERS, help="The requirement."),
        Column("seen", type=str, show=NUMBERS),
        Column("mend", of=lambda one: "" if one.passed else one.mend, type=str, show=NUMBERS,
               help="How to meet the requirement; empty if the check passes."),
    )  # fmt: skip

    findings: tuple[Finding, ...]

    @property
    def status(self) -> int:
        """Exit status: 1 if a check fails, as for a test runner."""
        return 0 if all(one.passed for one in self.findings) else 1

    def summary(self) -> str:
        """Return the report: the failures, and how to fix them."""
        by_key: dict[str, list[Finding]] = {}
        for one in self.findings:
            by_key.setdefault(one.mechanism.partition("[")[0], []).append(one)
        return "\n".join(report(findings) for findings in by_key.values())


@asks(
    "run the contract suite on your own mechanism",
    CheckOptions,
    hints={"mechanism": str | Mechanism | type[Mechanism]},
    prints_to_out=True,
)
def check(
    mechanism: str | PathLike[str] | Mechanism | type[Mechanism],
    *,
    progress: Callable[[str], None] | None = None,
) -> Checked:
    """Run the contract suite on a mechanism, and report how to fix failures.

    Parameters
    ----------
    mechanism : str, path or Mechanism
        A Python file, all of whose mechanisms are checked; a variant; or a mechanism.
    progress : callable, optional
        Function that is called with the name of each check before it runs.

    Returns
    -------
    Checked
        ``summary()`` lists the checks that pass and that fail; ``status`` is 1 if a check fails.

    Raises
    ------
    WrongArgument, InvalidSetting
        If there is no such file or mechanism, or the file defines no mechanism.

    See Also
    --------
    audit : A longer attack, in any setting.

    Notes
    -----
    The contract tests of the repository run the same checks. A search over neighbouring tables and
    a short audit look for false claims; to find no false claim is not a proof.

    Examples
    --------
    >>> import dpviz
    >>> print(dpviz.check("gaussian").summary())
    gaussian: 27 of 27 checks pass.
    """
    findings = [finding for one in _mechanisms_of(mechanism) for finding in
             check_mechanism(one, progress=progress).findings]  # fmt: skip
    return Checked(tuple(findings))


def _mechanisms_of(item: Any) -> list[Mechanism | type[Mechanism]]:
    """Return the mechanisms that the checks will test."""
    if isinstance(item, Mechanism):
        return [item]
    if not isinstance(item, (str, PathLike)):
        kind = type(item).__name__[:40]
        raise WrongArgument(f"mechanism must be a Python file or a mechanism; got {kind}.")
    path = fspath(item)
    if not path.endswith(".py"):
        return [parse_variant(path)]
    mechanisms = mechanisms_among(of_module(plugin_module(str(Path(path).resolve()))))
    if not mechanisms:
        rule = "a Python file that defines a mechanism"
        raise InvalidSetting("mechanism", rule, Path(path).name, "MECHANISM")
    return list(mechanisms)
