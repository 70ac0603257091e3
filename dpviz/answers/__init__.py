"""What the front door hands back: one file an answer, each with the same five ways to read it.

`Answer.summary` says it in words, `Answer.table` in numbers, `Answer.figure` draws it,
`Answer.to_json` writes it as the command line does, and a notebook shows all of it.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, ClassVar

import pandas as pd

from dpviz.base.json_text import json_text
from dpviz.base.number_text import numeral
from dpviz.errors import InvalidSetting

_STYLE = "font-variant-numeric:tabular-nums;margin:0.4em 0"


class Answer(ABC):
    """One answer: words, a table, figures and JSON.

    Attributes
    ----------
    figures : tuple of str
        Names that `figure` takes; the first is drawn when none is said.
    """

    figures: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def summary(self) -> str:
        """Return the answer in a few sentences."""

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the answer as a table."""

    @abstractmethod
    def data(self) -> Any:
        """Return the answer as JSON data: dictionaries, lists, texts and numbers."""

    def to_json(self) -> str:
        """Return `data` as text; NaN and infinities, which JSON lacks, are null."""
        return json_text(self.data())

    def figure(self, name: str | None = None) -> Any:
        """Return a Plotly figure.

        Parameters
        ----------
        name : str, optional
            One of `figures`; the first if not said.

        Raises
        ------
        InvalidSetting
            If there is no figure of that name.
        """
        raise InvalidSetting("figure", "left out: this answer has none", name)

    def _named(self, name: str | None) -> str:
        """Return the name of a figure, checked."""
        if name is None:
            return self.figures[0]
        if name not in self.figures:
            raise InvalidSetting("figure", f"one of {', '.join(self.figures)}", name)
        return name

    def _shown(self) -> pd.DataFrame:
        """Return the columns that a notebook shows of the table."""
        return self.table()

    def _picture(self) -> str:
        """Return the HTML of the picture that a notebook shows; empty for none."""
        return ""

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the words, the table and the picture."""
        first, *rest = self.summary().splitlines()
        words = f"<p><strong>{html.escape(first)}</strong></p>"
        words += "".join(f"<p>{html.escape(line)}</p>" for line in rest if line)
        numbers = self._shown().to_html(
            index=False, border=0, na_rep="-", float_format=partial(numeral, digits=4)
        )
        return f'<div style="{_STYLE}">{words}{numbers}{self._picture()}</div>'
