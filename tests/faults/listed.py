"""The planted faults that `faults.toml` lists."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

KINDS = (
    "noise", "sensitivity", "composition", "rounding", "verdict", "metric", "seed", "reading",
    "preparation", "release", "ledger", "verify", "page", "cache", "answer", "publishable",
    "board", "command line", "plug-in",
)  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes
    ----------
    name : str
        The mistake, in words.
    kind : str
        One of `KINDS`.
    path : str
        Path of the file, below the project's root.
    before, after : str
        Text that occurs exactly once in the file, and its replacement.
    tests : tuple of str
        Arguments for pytest: files, and perhaps ``-k`` and a word.
    """

    name: str
    kind: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """Kind and name of the fault."""
        return f"{self.kind}: {self.name}"

    def applied(self, text: str) -> str:
        """Return the file's text with the fault.

        Raises
        ------
        LookupError
            If the file does not have the text exactly once.
        """
        times = text.count(self.before)
        if times != 1:
            raise LookupError(f"{self.full_name}: its text stands {times} times in {self.path}")
        return text.replace(self.before, self.after)


_LISTED = tomllib.loads((Path(__file__).parent / "faults.toml").read_text("utf-8"))["fault"]
FAULTS = tuple(Fault(**{**one, "tests": tuple(one["tests"])}) for one in _LISTED)
