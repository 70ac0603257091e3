"""The question `decide`: the least epsilon that keeps what must survive, and what it risks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpviz.core.number_text import numeral
from dpviz.core.params import Declared, inherit, params_of
from dpviz.core.settings import Settings
from dpviz.lessons import words
from dpviz.lessons.decide import Card, NextStep, Offer, card
from dpviz.lessons.questions import Answers
from dpviz.lessons.risk import Risk, risk
from dpviz.preparation.load import without_paths
from dpviz.preparation.prepared import Measured
from dpviz.report.sentences.phrases import text_table
from dpviz.report.sentences.tradeoffs import outwards
from dpviz.studies import Answer
from dpviz.studies.options import YOUR_FILE, asks, ready

COLUMNS = (
    "mechanism", "epsilon", "low", "delta", "status", "evidence", "people_at_half",
)  # fmt: skip


@dataclass(frozen=True)
class DecideOptions(Declared):
    """What a stakeholder answers."""

    survive: str = inherit(Answers, "survive")
    delta_allowed: str = inherit(Answers, "delta_allowed")
    hand_out: str = inherit(Answers, "hand_out")
    prior: float = inherit(Answers, "prior")
    releases: int = inherit(Answers, "releases")


class Decision(Answer):
    """What a release costs a person, for what must survive.

    Attributes
    ----------
    card : dpviz.lessons.decide.Card
        The offers, least epsilon first, and who is left out.
    risk : dpviz.lessons.risk.Risk or None
        Of the best offer; None where there is none.
    """

    def __init__(self, found: Card) -> None:
        self.card = found
        best = found.best
        self.risk: Risk | None = None if best is None else risk(found, best)

    def _looked_at(self) -> Measured:
        return self.card.measured

    def summary(self) -> str:
        """Return the answer, who gives it, and what an attacker can make of it."""
        said = [words.headline(self.card), words.by_whom(self.card)]
        if self.risk is not None:
            best = self.card.best
            assert best is not None  # whose risk it is
            said.append(words.risk_words(best, self.card.answers, self.risk))
            said.append(words.belief_words(self.card.answers, self.risk))
        if not self.card.answers.shows_rows:  # there is no release to say anything of
            said += [f"{heading}: {text}" for heading, text in words.label(self.card)]
        return "\n".join(line for line in said if line)

    def printed(self) -> str:
        """Return the summary and a line for each offer, as the command prints them."""
        rows = [
            [row["mechanism"], _short(row["epsilon"], 1), _short(row["low"], -1),
             _short(row["delta"]), str(row["status"]), _short(row["people_at_half"])]
            for row in self.table().to_dict("records")
        ]  # fmt: skip
        header = ("mechanism", "epsilon", "from", "delta", "status", "people at half of it")
        return f"{self.summary()}\n\n{text_table(header, rows)}" if rows else self.summary()

    def table(self) -> pd.DataFrame:
        """Return one row per offer, the least epsilon first.

        ``low`` is the epsilon below which the goal is shown to be missed, and ``people_at_half``
        how many people are predicted to reach the same at half the epsilon.
        """
        rows = [self._row(offer) for offer in self.card.offers]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def _row(self, offer: Offer) -> dict[str, Any]:
        budget, status = words.budget_of(self.card, offer), offer.target.status
        assert status is not None  # an offer's claim is one to rely on
        values = (
            offer.mechanism.text, offer.epsilon, offer.target.low, budget.delta,
            str(status.verdict), status.evidence, offer.people,
        )  # fmt: skip
        return dict(zip(COLUMNS, values, strict=True))

    def data(self) -> dict[str, Any]:
        """Return the object that ``dpviz decide --format json`` prints."""
        found, seen = self.card, self.risk
        answers = {name: getattr(found.answers, name) for name in params_of(DecideOptions)}
        return {
            "answers": answers,
            "headline": words.headline(found),
            "settings": without_paths(found.settings).to_json(),
            "offers": [self._row(offer) for offer in found.offers],
            "risk": seen
            and {
                "spent": seen.spent.to_json(),
                "believed_before": found.answers.prior / 100,
                "believed_at_most": seen.most,
                "beyond": seen.beyond,
            },
            "left_out": [
                {"mechanism": item.mechanism.text, "reason": item.reason} for item in found.left_out
            ],
            "assumed_public": list(found.assumed_public),
        }

    def html(self) -> str:
        """Return the card as a page to print or mail, as Decide hands it out."""
        from dpviz.lessons.card import card_page

        command = without_paths(self.card.settings, YOUR_FILE).command()
        return card_page(self.card, self.risk, command, "")


def _short(value: float | None, side: int = 0) -> str:
    """Return three digits; with a side as the sentences round what a goal is reached at."""
    if value is None or math.isnan(value):
        return "-"
    return outwards(value, side) if side else numeral(value, 3)


@asks("the least epsilon that keeps what must survive, and what it risks", DecideOptions, Settings)
def decide(
    table: Any = "digits",
    *,
    progress: Callable[[int, int, str], None] | None = None,
    **options: Any,
) -> Decision:
    """Say at which epsilon what must survive does, by whom, and what an attacker gains.

    Parameters
    ----------
    table
        As in `compare`; a plan where there is no data yet.
    progress : callable, optional
        Told (done, total, what comes next) before each step.
    **options
        ``survive``: how many percent of the structure must; ``delta_allowed``; ``hand_out``: what;
        ``prior``: with how many percent somebody believed before that a person is in the table;
        ``releases`` of the same people; the rest as in `compare`. Epsilon, mechanisms and trials
        are not read: they are the answer.

    Returns
    -------
    Decision
        ``table()`` has one row per offer, the least epsilon first; ``html()`` is the card;
        ``to_json()`` writes the bytes of ``dpviz decide --format json``.

    Raises
    ------
    WrongArgument, InvalidSetting, InvalidTable
        As in `compare`.

    See Also
    --------
    least : The same search for any metric and mechanism.

    Notes
    -----
    Mechanisms are tried first by prediction; the five with the least epsilon are searched by a
    sequential test, and only claims that hold at the answer are offered.

    Examples
    --------
    >>> import dpviz
    >>> found = dpviz.decide("plan:n=1e5,spectrum=0.3,0.1,0.01", k=1, survive="90")
    >>> bool(found.table()["epsilon"].is_monotonic_increasing)
    True
    >>> found.risk.most < 1
    True
    """
    # a stakeholder's answers are no settings: they are told apart here
    own: Mapping[str, Any] = {name: options.pop(name) for name in params_of(DecideOptions)
                              if name in options}  # fmt: skip
    prepared, settings = ready(table, options)
    # not asked: it is seen from what was given
    source = "table" if prepared.has_rows else "plan"

    def tell(step: NextStep) -> None:
        if progress is not None:
            progress(step.place, step.total, step.words)

    return Decision(card(prepared, settings, Answers(source=source, **own), tell))
