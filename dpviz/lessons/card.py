"""A stakeholder's card as HTML: one page to print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from dpviz.core.number_text import numeral, of_hundred
from dpviz.core.release import VERDICT_WORDS
from dpviz.lessons import words
from dpviz.lessons.decide import Card, Offer
from dpviz.lessons.risk import Risk
from dpviz.report.figures.svg import hundred

STYLE = """
.dp-card { font-family: inherit; font-size: 15px; line-height: 1.45; }
.dp-card h1 { font-size: 22px; margin: 0 0 4px; }
.dp-card .dp-no { border-left: 6px solid #b8001d; background: #b8001d14; padding: 12px 16px; }
.dp-card h2 { font-size: 16px; margin: 18px 0 6px; }
.dp-card p { margin: 4px 0; }
.dp-card table { border-collapse: collapse; width: 100%; }
.dp-card th, .dp-card td {
  text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid #8a93a055;
  vertical-align: top;
}
.dp-card .dp-worlds { display: flex; flex-wrap: wrap; gap: 12px 36px; }
.dp-card .dp-worlds > div { display: flex; gap: 12px; align-items: center; flex: 1 1 280px; }
.dp-card .dp-worlds p { max-width: 22em; }
.dp-card code { font-size: 14px; overflow-wrap: anywhere; }
.dp-card ul { margin: 4px 0; padding-left: 20px; }
.dp-card .dp-scroll { overflow-x: auto; }
@media print { .dp-card { font-size: 11pt; } .dp-card h2 { break-after: avoid; } }
"""


def _worlds(risk: Risk) -> str:
    out = f"she is not in: {of_hundred(risk.worlds.out)} of 100 guesses are wrong"
    within = f"she is in: {of_hundred(risk.worlds.within)} of 100 guesses are right"
    return (
        '<div class="dp-worlds">'
        f"<div>{hundred(round(100 * risk.worlds.out), out)}<p>{escape(out)}</p></div>"
        f"<div>{hundred(round(100 * risk.worlds.within), within)}"
        f"<p>{escape(within)}</p></div></div>"
    )


def _offers(card: Card, offers: Sequence[Offer]) -> str:
    rows = "".join(
        "<tr>"
        f"<td>{escape(offer.mechanism.label)}</td>"
        f"<td>{escape(words.epsilon_words(offer))}</td>"
        f"<td>{'none' if offer.pure else numeral(words.budget_of(card, offer).delta, 1)}</td>"
        f"<td>{escape(_status(offer))}</td>"
        f"<td>{escape(words.people_words(card, offer))}</td>"
        "</tr>"
        for offer in offers
    )
    return (
        '<div class="dp-scroll"><table><thead><tr><th>Mechanism</th><th>Least epsilon</th>'
        "<th>Delta</th><th>Claim there</th><th>People to halve epsilon</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _status(offer: Offer) -> str:
    return "" if offer.target.status is None else VERDICT_WORDS[offer.target.status.verdict]


def card_html(card: Card, risk: Risk | None, command: str, link: str) -> str:
    """Return the card as one HTML element with its style.

    Parameters
    ----------
    card : Card
    risk : Risk or None
        Of the best offer; None where there is none.
    command, link : str
        What reproduces the numbers.
    """
    # no number stands beside a no: it would read as a price
    if card.answers.shows_rows:
        said = "".join(f"<p>{escape(sentence)}</p>" for sentence in words.REFUSED)
        return (
            f'<style>{STYLE}</style><div class="dp-card"><div class="dp-no"><h1>✗ '
            f"{escape(words.headline(card))}</h1>{said}</div></div>"
        )
    best = card.best
    parts = [
        f"<h1>{escape(words.headline(card))}</h1>",
        f"<p>{escape(words.by_whom(card))}</p>",
        f"<p>{escape(card.measured.name)}: {card.measured.n:,} people, {card.measured.d} "
        f"features, k {card.settings.k}. {escape(words.chance_words(card.answers))}</p>",
    ]
    if card.offers:
        parts += ["<h2>Least epsilon of each mechanism whose claim holds there</h2>"]
        parts += [_offers(card, card.offers)]
    if best is not None and risk is not None:
        parts += [
            f"<h2>Risk for one person, {escape(best.mechanism.label)}</h2>",
            f"<p>{escape(words.risk_words(best, card.answers, risk))}</p>",
            _worlds(risk),
            f"<p>{escape(words.belief_words(card.answers, risk))}</p>",
        ]
    label = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(said)}</td></tr>"
        for name, said in words.label(card)
    )
    left = "".join(f"<li>{escape(item)}</li>" for item in words.left_to_decide(card))
    parts += [
        f"<h2>Consequences</h2><table><tbody>{label}</tbody></table>",
        f"<h2>Left to decide</h2><ul>{left}</ul>",
        f"<h2>The same again</h2><p><code>{escape(command)}</code></p>",
        # a notebook has no address to come back to
        f"<p><code>{escape(link)}</code></p>" if link else "",
    ]
    return f'<style>{STYLE}</style><div class="dp-card">{"".join(parts)}</div>'


def card_page(card: Card, risk: Risk | None, command: str, link: str) -> str:
    """Return the card as a page of its own, to print or to mail."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>dpviz: decide</title>'
        "<style>body { font-family: system-ui, sans-serif; max-width: 56em; margin: 24px auto; "
        "padding: 0 16px; color: #1c2530; }"
        f"</style></head><body>{card_html(card, risk, command, link)}</body></html>"
    )
