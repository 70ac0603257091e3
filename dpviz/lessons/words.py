"""The sentences of a stakeholder's card."""

from __future__ import annotations

import math

from dpviz.core.number_text import numeral, per_cent, percent
from dpviz.core.problem import Budget
from dpviz.lessons.decide import Card, Offer, rounded_up
from dpviz.lessons.questions import Answers
from dpviz.lessons.risk import Risk
from dpviz.mechanisms import Mechanism
from dpviz.report.sentences import phrases
from dpviz.report.sentences.phrases import capital, join_words
from dpviz.report.sentences.tradeoffs import range_words


def epsilon_words(offer: Offer) -> str:
    """Return an offer's least epsilon with its interval."""
    # none where the search began below the answer: only an upper end is known
    low = offer.target.low
    if low is None:
        return f"at most {numeral(rounded_up(offer.epsilon), 3)}"
    return range_words(low, offer.epsilon, "epsilon")


def headline(card: Card) -> str:
    """Return the answer in one sentence."""
    if card.answers.shows_rows:
        return "No. A picture of the people cannot be published: no promise covers it."
    wanted = f"{per_cent(str(card.answers.survive))} of the structure"
    if card.best is None:
        return f"No mechanism whose claim holds keeps {wanted} here."
    return f"{wanted} survives from an epsilon of {epsilon_words(card.best)}."


def by_whom(card: Card) -> str:
    """Return which mechanisms the answer is of, with a delta and without."""
    best, pure = card.best, card.best_pure
    if best is None:
        return ""
    words = f"By {best.mechanism.label}"
    words += ", without a delta" if best.pure else f", with delta {numeral(_delta(card))}"
    if pure is not None and not best.pure:
        words += f"; without a delta from {epsilon_words(pure)}, by {pure.mechanism.label}"
    return words + "."


def _delta(card: Card) -> float:
    return card.measured.budget(card.settings).delta


def people_words(card: Card, offer: Offer) -> str:
    """Return how many more people would halve an offer's epsilon."""
    if offer.people is None:
        return "not predicted"
    more = math.ceil(offer.people) - card.measured.n
    if more <= 0:
        return "fewer than there are"
    return f"{more:,} more ({numeral(offer.people / card.measured.n)} times as many)"


def belief_words(answers: Answers, risk: Risk) -> str:
    """Return what becomes of an attacker's prior."""
    times = "one release" if answers.releases == 1 else f"{answers.releases} releases"
    words = f"{capital(phrases.belief_words(answers.prior / 100, risk.spent))} after {times}"
    if risk.spent.delta > 0:
        words += (
            "; odds more than twice as high come up with a probability of at most "
            f"{numeral(risk.beyond, 1)}"
        )
    return words + "."


def risk_words(offer: Offer, answers: Answers, risk: Risk) -> str:
    """Return the one phrase for risk, of all releases together."""
    place = offer.mechanism.label
    if answers.releases > 1:
        place += f", {answers.releases} releases"
    return f"{capital(phrases.risk_words(place, risk.spent, rounded_up(offer.epsilon)))}."


def label(card: Card) -> list[tuple[str, str]]:
    """Return the consequences label: heading and sentence."""
    answers, best = card.answers, card.best
    rows = [
        (
            "Who sees raw data",
            "Only whoever computes the release; nobody else gets a row.",
        ),
        (
            "What is protected",
            "One person's whole row, whatever it is and whatever others know, in what is handed "
            "out: " + _HANDED[answers.hand_out] + "." + _uncovered(card),
        ),
        (
            "What is not protected",
            "Taken as public: " + "; ".join(card.measured.assumed_public) + ".",
        ),
    ]
    if best is not None and not best.pure:
        rows.append(("What delta allows", delta_words(card)))
    else:
        rows.append(("Delta", "None: the promise has no exceptions."))
    return rows


def _uncovered(card: Card) -> str:
    """Return whom the promise leaves out because their own row set a bound, or nothing."""
    settings = card.settings
    # a plan has no rows that could set a bound
    if card.answers.source == "plan":
        return ""
    if card.measured.domain.kind == "box":
        # stated bounds come from nobody's row
        if settings.bounds != "max":
            return ""
        return (
            " Not covered: whoever has the least or largest value of a feature, for these are its "
            "bounds, taken from the data."
        )
    use = [offer.mechanism for offer in card.offers if offer.mechanism.needs_row_bound]
    if card.offers and not use:
        return ""
    # mechanisms that bound rows by themselves leave nobody out
    some = len(use) < len(card.offers)
    start = f"{join_words(one.label for one in use)}: not covered is" if some else "Not covered:"
    if settings.row_bound == "max":
        return (
            f" {start} the person with the longest row, whose length is the row bound, taken "
            "from the data."
        )
    if settings.row_bound.startswith("quantile"):
        start = start.replace("covered is", "covered are")
        return f" {start} the people whose rows set the row bound, a quantile taken from the data."
    return ""


REFUSED = (
    "Noise turns the axes of such a picture; each point on it stays one person's own row.",
    "What can be handed out instead: the directions, their variances, and points drawn from these, "
    "a normal law with the released covariance. Such a point is nobody's row.",
)
"""Why there is no card for a picture of the people, and what there is instead."""


_HANDED = {
    "directions": "the directions",
    "variances": "the directions and their variances",
    "drawn": "the directions, their variances, and points drawn from a normal law with the "
    "released covariance, which are nobody's rows",
}


def delta_words(card: Card) -> str:
    """Return what delta means, without calling it the probability that the limit fails."""
    delta = _delta(card)
    return (
        f"Delta {numeral(delta, 1)} bounds what may go beyond epsilon: odds may grow by more than "
        f"twice e to the epsilon in at most {numeral(2 * delta, 1)} of releases."
    )


def left_to_decide(card: Card) -> list[str]:
    """Return what the answers do not settle."""
    items = [
        "Fix bounds, centre and scales from public knowledge, or spend budget on them.",
        f"How often the same people are released; {card.answers.releases} here.",
        "Who keeps the account of all releases, and what happens when it is spent.",
        "This card compares with the exact result and is not itself private: made from private "
        "data, it stays with whoever may see that.",
    ]
    if card.answers.source == "plan":
        # first, as all the other numbers hang on the guess
        items.insert(0, "Check the guessed structure once data is there.")
    return items


def why_not(mechanism: Mechanism, reason: str) -> str:
    """Return one mechanism that is not offered, with its reason."""
    return f"{mechanism.label}: {reason}"


def budget_of(card: Card, offer: Offer) -> Budget:
    """Return what an offer claims."""
    return Budget(offer.epsilon, 0.0 if offer.pure else _delta(card))


def chance_words(answers: Answers) -> str:
    """Return what the recovery means."""
    return (
        f"Recovery {percent(answers.recovery)}: from 0 for a random picture to 100 % for the exact "
        "one."
    )
