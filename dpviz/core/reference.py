"""A paper as a mechanism names it, with its BibTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Reference:
    """One paper.

    Attributes
    ----------
    key : str
        Of the entry: first author's name and year.
    kind : str
        ``inproceedings`` or ``article``.
    fields : tuple of (str, str)
    """

    key: str
    kind: str
    fields: tuple[tuple[str, str], ...]

    @property
    def names(self) -> tuple[str, str]:
        """First author and year, as a source names them."""
        found = re.fullmatch(r"(\D+)(\d{4})", self.key)
        assert found is not None
        return found[1], found[2]

    @property
    def bibtex(self) -> str:
        """The entry."""
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in self.fields)
        return f"@{self.kind}{{{self.key.lower()},\n{lines}\n}}"


def paper(
    key: str, author: str, title: str, where: str, year: int, *, journal: str = "", **more: str
) -> Reference:
    """Return a paper of some proceedings, or of a journal.

    Parameters
    ----------
    key : str
        First author's name and year, as a mechanism's ``info.paper`` names them: ``Jiang2016``.
    author, title, where : str
        As BibTeX has them; ``where`` are the proceedings.
    year : int
    journal : str
        In the place of proceedings.
    **more : str
        Further fields, such as ``eprint`` or ``doi``.
    """
    kind, place = ("article", "journal") if journal else ("inproceedings", "booktitle")
    fields = [
        ("author", author), ("title", title), (place, journal or where), ("year", str(year)),
        *more.items(),
    ]  # fmt: skip
    return Reference(key, kind, tuple(fields))
