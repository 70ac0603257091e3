"""The planted faults, as `faults.toml` has them."""

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
    """One mistake.

    Attributes
    ----------
    name : str
        What goes wrong.
    kind : str
        One of `KINDS`.
    path : str
        The file, below the root.
    before, after : str
        Text that stands there exactly once, and what is put in its place.
    tests : tuple of str
        What pytest is given: the files, and perhaps ``-k`` and a word.
    """

    name: str
    kind: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The kind and the name."""
        return f"{self.kind}: {self.name}"

    def applied(self, text: str) -> str:
        """Return the file's text with the fault.

        Raises
        ------
        LookupError
            If the line is not there exactly once.
        """
        times = text.count(self.before)
        if times != 1:
            raise LookupError(f"{self.full_name}: its text stands {times} times in {self.path}")
        return text.replace(self.before, self.after)


_LISTED = tomllib.loads((Path(__file__).parent / "faults.toml").read_text("utf-8"))["fault"]
FAULTS = tuple(Fault(**{**one, "tests": tuple(one["tests"])}) for one in _LISTED)
