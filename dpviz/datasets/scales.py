"""Answers in words that everybody orders alike, as questionnaires print them."""

from __future__ import annotations

from collections.abc import Collection

_SCALES = (
    # how often
    "never, almost never, hardly ever, rarely, seldom, occasionally, sometimes, often, frequently, "
    "usually, mostly, very often, almost always, always",
    "nie, niemals, fast nie, selten, gelegentlich, manchmal, häufig, oft, meistens, sehr häufig, "
    "sehr oft, fast immer, immer",
    "never, yearly, monthly, weekly, daily",
    "nie, jährlich, monatlich, wöchentlich, täglich",
    # how far one agrees
    "strongly disagree, disagree, somewhat disagree, slightly disagree, "
    "neither agree nor disagree, neither, neutral, undecided, slightly agree, somewhat agree, "
    "agree, strongly agree",
    "stimme überhaupt nicht zu, stimme gar nicht zu, stimme nicht zu, stimme eher nicht zu, "
    "weder noch, neutral, teils teils, teils-teils, teils/teils, unentschieden, stimme eher zu, "
    "stimme zu, stimme voll zu, stimme völlig zu, stimme voll und ganz zu",
    "trifft überhaupt nicht zu, trifft gar nicht zu, trifft nicht zu, trifft eher nicht zu, "
    "teils teils, teils-teils, teils/teils, trifft eher zu, trifft zu, trifft voll zu, "
    "trifft völlig zu, trifft voll und ganz zu",
    # how good
    "terrible, very poor, very bad, poor, bad, fair, average, okay, good, very good, excellent",
    "sehr schlecht, schlecht, mäßig, mittel, mittelmäßig, gut, sehr gut, ausgezeichnet",
    "ungenügend, mangelhaft, ausreichend, befriedigend, gut, sehr gut",
    "very dissatisfied, dissatisfied, somewhat dissatisfied, neutral, somewhat satisfied, "
    "satisfied, very satisfied",
    "sehr unzufrieden, unzufrieden, eher unzufrieden, neutral, weder noch, teils teils, "
    "eher zufrieden, zufrieden, sehr zufrieden",
    # how much
    "none, very low, low, rather low, medium, moderate, rather high, high, very high",
    "sehr niedrig, niedrig, eher niedrig, mittel, eher hoch, hoch, sehr hoch",
    "sehr gering, gering, mittel, groß, sehr groß",
    "not at all, a little, slightly, somewhat, moderately, quite, very, extremely",
    "gar nicht, überhaupt nicht, kaum, wenig, etwas, mittelmäßig, ziemlich, stark, sehr, "
    "sehr stark, äußerst",
    "none, minimal, mild, light, moderate, severe, very severe",
    "keine, leicht, mittel, mäßig, schwer, sehr schwer",
    "very small, small, medium, large, very large",
    "sehr klein, klein, mittel, groß, sehr groß",
    "very unlikely, unlikely, possible, neutral, likely, very likely",
    "very easy, easy, medium, difficult, hard, very difficult, very hard",
)
_ORDERS = tuple(tuple(scale.split(", ")) for scale in _SCALES)


def in_order(words: Collection[str]) -> tuple[str, ...]:
    """Return the words of a column from the least to the most; empty where no scale has them all.

    Parameters
    ----------
    words : collection of str
        In lower case, as `RawTable.words` gives them.
    """
    for order in _ORDERS:
        if words and set(words) <= set(order):
            return tuple(word for word in order if word in words)
    return ()
