"""The privacy card as one page of A4, from the card's data alone."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from typing import Any

from dpviz.accounting.accounting import Spent
from dpviz.core.entries import OTHER
from dpviz.core.number_text import decimals, numeral, percent, rows_words
from dpviz.core.problem import Relation, Unit
from dpviz.core.quantity import Kind, Quantity
from dpviz.report.figures.svg import hundred
from dpviz.report.print import inline, loadings, published
from dpviz.report.sentences.phrases import capital, risk_words

CARD_FORMAT = 1
RELEASED, PLAN = "RELEASED", "PLAN"
"""What a card stamps on itself, in print and in JSON."""
_PICTURE = 190
"""Pixels of a picture on the page."""
_FEATURES, _COMPONENTS = 12, 3
"""Loadings that the page has room for; the file holds all."""
_SHEET = 1_110.0
"""Pixels of a sheet of A4, and some room."""
_BLUE, _PALE = "#1f5fa8", "#8a93a0"
_STYLE = """
@page { size: A4; margin: 0; }
* { box-sizing: border-box; }
body { margin: 0; background: #e8ebee; color: #1c2530;
  font: 11.4px/1.32 "Source Sans 3", "Source Sans Pro", "Helvetica Neue", Arial, "Liberation Sans",
  sans-serif; }
main { position: relative; width: 210mm; min-height: 297mm; margin: 0 auto; padding: 9mm 13mm 7mm;
  background: #fff; overflow-wrap: anywhere; }
header { display: flex; justify-content: space-between; gap: 16px;
  border-bottom: 2px solid #1c2530; padding-bottom: 8px; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 12.6px; margin: 0; } p { margin: 2px 0; }
.stamp { border: 2px solid #21796e; color: #21796e; border-radius: 4px; padding: 5px 14px;
  text-align: center; font-weight: 700; align-self: start; white-space: nowrap; }
.stamp.look { border-color: #846300; color: #846300; }
.stamp small, .lead small { display: block; font-weight: 400; font-size: 11px; }
.lead { display: flex; gap: 18px; align-items: center; padding: 6px 0; }
.lead figure { margin: 0; text-align: center; color: #55616d; font-size: 11px; }
.lead strong { font-size: 19px; line-height: 1.25; }
section { display: grid; grid-template-columns: 42mm 1fr; gap: 12px; padding: 4px 0;
  border-top: 1px solid #c6ccd3; break-inside: avoid; }
section > div:first-child small { display: block; color: #55616d; font-size: 11px; }
table { border-collapse: collapse; width: 100%; }
.n { white-space: nowrap; }
th { text-align: left; color: #55616d; font-weight: 600; font-size: 11px; }
th, td { padding: 1px 10px 1px 0; vertical-align: top; border-bottom: 1px solid #e3e7eb; }
.assumed { table-layout: fixed; } .assumed th:first-child { width: 54%; }
.assumed th:nth-child(2) { width: 29%; }
.open { color: #846300; font-weight: 600; }
.tag { border: 1px solid #55616d; border-radius: 3px; padding: 0 5px; font-size: 10.6px; }
.not { display: grid; grid-template-columns: repeat(4, 1fr); gap: 7px; margin: 4px 0 6px; }
.not div { border: 1px solid #846300; border-radius: 3px; padding: 3px 6px; font-size: 10.8px; }
.not b { color: #846300; display: block; }
code { font-size: 10.4px; overflow-wrap: anywhere; }
.sign { display: flex; gap: 24px; margin-top: 26px; }
.sign div { flex: 1; border-top: 1px solid #1c2530; display: flex; justify-content: space-between; }
@media (max-width: 700px) { section { display: block; }
  main { width: auto !important; zoom: 1 !important; padding: 16px; }
  .lead, .sign, header { flex-wrap: wrap; } .not { grid-template-columns: 1fr 1fr; } }
@media print { body { background: #fff; } }
"""


_OPEN = "0" * 64
_SEAL = re.compile(rb"<code id=seal>([0-9a-f]{64})</code>")


def sealed(page: bytes) -> bool:
    """Return whether a page carries its own digest: SHA-256 of it with 64 zeros for the digest."""
    found = _SEAL.search(page)
    if found is None:
        return False
    zeros = page[: found.start(1)] + _OPEN.encode() + page[found.end(1) :]
    return hashlib.sha256(zeros).hexdigest().encode() == found[1]


def suspicion_words(suspicion: Mapping[str, Any], places: int = 0) -> str:
    """Return what a suspicion may become, in natural frequencies, rounded up."""
    before = _bound(suspicion["before"]).of_hundred()
    return (
        f"A suspicion that is right {before} time{'s' * (before != '1')} in 100 may become right "
        f"{Kind.UPPER_BOUND.prefix}{_bound(suspicion['after']).of_hundred(places)} times in 100."
    )


def promise(card: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a card says first: its ledger's total, or the release that has no ledger."""
    claim: Mapping[str, Any] = card["ledger"] or card["claim"]
    return claim


def promise_words(card: Mapping[str, Any]) -> str:
    """Return what a suspicion may become by all that was released so far, not by the last alone."""
    words, paid = suspicion_words(promise(card)["suspicions"][0]), card["ledger"]
    if paid is None or paid["number"] == 1:
        return words
    return (
        f"By all {paid['number']:,} releases of this ledger together: {words[0].lower()}{words[1:]}"
    )


def _bound(share: float) -> Quantity:
    return Quantity(share, Kind.UPPER_BOUND)


def to_html(card: Mapping[str, Any]) -> str:
    """Return a card as a page that needs no other file.

    Parameters
    ----------
    card : mapping
        As its file holds it.
    """
    title = escape(card["title"])
    parts = [
        _head(card),
        _lead(card),
        _section(
            "All that left the house", _left_words(card), _loadings(card["use"]) + _picture(card)
        ),
        *(
            _section(f"{at}&ensp;{name}", small, body)
            for at, (name, small, body) in enumerate(_layers(card), start=1)
        ),
        _not_covered(card["not_covered"]),
        _checks(card),
    ]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: privacy card'
        f'</title><meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main{_fit(card)}>{''.join(parts)}</main></body></html>\n"
    )
    digest = hashlib.sha256(page.encode()).hexdigest()
    # what people wrote is escaped, so that the one seal is the page's own
    return page.replace(f"<code id=seal>{_OPEN}<", f"<code id=seal>{digest}<")


def _fit(card: Mapping[str, Any]) -> str:
    """Return the style that keeps a card of long names and many lines on one sheet."""
    said = sum(len(card[key]) for key in ("controller", "purpose", "by", "recipients")) + 60
    lines = math.ceil(len(card["title"]) / 60) + math.ceil(said / 70)
    for one in card["assumptions"]:
        by = ("what", 54), ("source", 25), ("confirmed_by", 14)
        lines += max(math.ceil(len(one[key]) / wide) for key, wide in by)
    # pixels of what is always there, of a line, and of a feature, as Chromium draws them
    high = (
        920
        + _PICTURE * (bool(card.get("picture")))
        + 14.5 * lines
        + 12 * min(len(card["use"]["features"]), _FEATURES)
    )
    if high <= _SHEET:
        return ""
    zoom = decimals(_SHEET / high, 3)
    return f' style="zoom:{zoom};width:calc(210mm / {zoom});min-height:0"'


def _head(card: Mapping[str, Any]) -> str:
    said = [
        f"{word}: {_or_open(card[key])}"
        for key, word in (
            ("controller", "controller"), ("purpose", "purpose"), ("by", "released by"),
            ("recipients", "recipients"),
        )
    ]  # fmt: skip
    # never green where there is hardly protection
    look = " look" * (promise(card)["suspicions"][0]["after"] >= 0.5)
    number = "" if card["ledger"] is None else f" · release {card['ledger']['number']}"
    return (
        f"<header><div><h1>Privacy card</h1><p><b>{escape(card['title'])}</b>{number}</p>"
        f"<p>{' · '.join(said)}</p></div><div class='stamp{look}'>{card['status']}<small>"
        f"{escape(card['released'][:16].replace('T', ' '))} UTC</small></div></header>"
    )


def _lead(card: Mapping[str, Any]) -> str:
    first, *others = promise(card)["suspicions"]
    grids = "".join(
        f"<figure>{hundred(math.ceil(100 * share - 1e-9), words, 84)}<figcaption>{words}"
        "</figcaption></figure>"
        for share, words in ((first["before"], "before"), (first["after"], "after, at most"))
    )
    more = ", ".join(
        f"{round(100 * one['before'])} in 100 become {Kind.UPPER_BOUND.prefix}"
        f"{_bound(one['after']).of_hundred()}"
        for one in others
    )
    beyond = card["claim"]["odds_more_than_doubled"]
    odds = (
        f" In at most {of_million(beyond)} releases the odds grow by more than twice as much."
        if beyond
        else ""
    )
    claim = card["claim"]
    spent = Spent(claim["epsilon"], claim["delta"], False, "claim")
    unit = card["unit"]
    relation, protected = Relation(unit["neighbours"]), Unit(unit["protected"])
    risk = risk_words("this release", spent, claim["epsilon"], relation, protected)
    warning = ' <b class="open">? Hardly protection.</b>' if first["after"] >= 0.5 else ""
    return (
        f'<div class="lead">{grids}<div><strong>{promise_words(card)}</strong>{warning}<p>For '
        f"each {protected}, whatever else the suspicious reader knows. {more}. "
        f"{capital(risk)}.{odds}</p></div></div>"
    )


def of_million(share: float) -> str:
    """Return a small share as a count of many, never below it: 1 of 1,600,000."""
    count = 1e6 * share
    # a share below one of a million is said the other way round
    if count >= 1:
        return f"{math.ceil(count - 1e-6):,} of 1,000,000"
    many = math.floor((1 + 1e-12) / share)
    step = 10 ** (len(str(many)) - 2)
    return f"1 of {many // step * step:,}"


def _section(name: str, small: str, body: str) -> str:
    return f"<section><div><h2>{name}</h2><small>{small}</small></div><div>{body}</div></section>"


def _left_words(card: Mapping[str, Any]) -> str:
    use = card["use"]
    hollow = "" if use["readable_components"] == card["k"] else "; hollow: cannot be told from 0"
    return (
        f"{card['d'] * card['k']:,} loadings with {percent(use['confidence'])} bars, "
        f"{card['d']:,} variances and the noisy matrix they come from{hollow}"
        f"{'; a picture of counts' * (card['picture'] is not None)}"
    )


def _loadings(use: Mapping[str, Any]) -> str:
    """Return the loadings, and what of them only the file holds."""
    more = [
        f"{count:,} more {what} in the file"
        for count, what in (
            (len(use["features"]) - _FEATURES, "features"),
            (len(use["loadings"]) - _COMPONENTS, "components"),
        )
        if count > 0
    ]
    said = f"<p>{'; '.join(more)}</p>" if more else ""
    # an installation without what draws files the card all the same; the file has the numbers
    return f"{inline(loadings(use))}{said}" if find_spec("matplotlib") else said


def _picture(card: Mapping[str, Any]) -> str:
    """Return the published picture, where there is one, and how good it is."""
    shown = card.get("picture")
    if shown is None:
        return ""
    drawn = inline(published(shown)) if find_spec("matplotlib") else ""
    return f"<div>{drawn}<p>{escape(picture_words(shown))}</p></div>"


def noise_words(error: float) -> str:
    """Return how far noise put the shape of a published picture off, as a sentence."""
    return (
        f"In 95 of 100 pictures noise puts the shape off by at most {percent(min(error, 1.0))} "
        f"(one dot for all: {percent(1.0)}); how people lie within a cell is not shown."
    )


def picture_words(shown: Mapping[str, Any]) -> str:
    """Return what a published picture shows, and how far noise put it off.

    Parameters
    ----------
    shown : mapping
        What a card holds of its picture.
    """
    said = ["Counts of people in cells along the components, with noise, paid for by the same ε."]
    if shown["frame"] == "disk":
        said.append("It shows directions, not lengths.")
    hidden = [name for name in shown["drowned"] if name != OTHER]
    if shown["labels_drown"]:
        said.append("Labels would drown.")
    elif hidden:
        said.append(f"{' and '.join(hidden)} cannot be told apart at this ε.")
    said.append(noise_words(shown["error"]))
    return " ".join(said)


def _layers(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        ("ε, δ and the total", "how much may leak", _claims(card)),
        ("Unit of privacy", "whose secret it is", _unit(card["unit"])),
        ("Mechanism and proof", "why that is true", _mechanism(card["mechanism"])),
        ("Use and bias", "what it is still good for", use_words(card["use"], card["k"])),
        ("Assumed public", "false if taken from the data", _assumptions(card["assumptions"])),
        ("Trust and security", "who must be trusted", _trust(card["mechanism"])),
        ("The data", "how it came, what was done", _data(card)),
    ]


def _claims(card: Mapping[str, Any]) -> str:
    claim, paid = card["claim"], card["ledger"]
    rows = [("this release", claim, f"ρ {numeral(claim['rho'], 3)}")]
    if paid is not None:
        limit = paid.get("limit")
        account = {"zcdp": "rhos add up", "basic": "epsilons and deltas add up"}
        words = account.get(paid.get("account", ""), "")
        if limit is not None:
            words += f"; limit ε {numeral(limit['epsilon'], 4)}, fixed when the ledger was made"
        rows.append((f"all {paid['number']} of this ledger", paid, words))
    body = "".join(
        f"<tr><td>{name}</td><td class=n><b>{numeral(one['epsilon'], 4)}</b></td>"
        f"<td class=n>{_delta(one['delta'])}</td>"
        f"<td>at most {_bound(one['suspicions'][0]['after']).of_hundred()}</td>"
        f"<td>{escape(words)}</td></tr>"
        for name, one, words in rows
    )
    unknown = '<p class="open">? No ledger: what else was released is not known.</p>'
    return (
        "<table><tr><th></th><th>ε</th><th>δ</th><th>1 in 100 becomes</th><th>account</th></tr>"
        f"{body}</table>{'' if paid else unknown}"
    )


def _delta(delta: float) -> str:
    return f"{of_million(delta).replace(' of ', ' in ')}" if delta else "none"


def _unit(unit: Mapping[str, Any]) -> str:
    if unit["protected"] == "row":
        who = (
            '<b class="open">? Protects one ROW.</b> We do not know how many rows a person has: '
            "who has more than one is protected less."
        )
    elif unit["person"]:
        who = f"<b>A person</b>, by the column “{escape(unit['person'])}”; " + (
            "the first row of each counts."
            if unit["rows"] == 1
            else f"the first {unit['rows']} rows of each count."
        )
    else:
        who = f"<b>A person</b>, who is said to have at most {rows_words(unit['rows'])}."
    changed = {"replace": "replaced by any other", "zero-out": "taken away, the number staying"}
    whose = "one row" if unit["protected"] == "row" else "all rows of one person"
    return f"{who} Neighbours: {whose} {changed[unit['neighbours']]}."


_BOUNDED = {
    "bound": "rows are cut to the stated limits and lengths",
    "unit": "each row is cut to the stated limits and scaled to length one by itself",
}


def _mechanism(mechanism: Mapping[str, Any]) -> str:
    mean = ", around a private mean paid for by the same ε" * (
        mechanism["center"] == "private mean"
    )
    scaled = "features are divided by half the width of their limits, " * ("scale" in mechanism)
    return (
        f"<b>{escape(mechanism['name'])}</b>: {scaled}{_BOUNDED[mechanism['rows']]}{mean}, so that "
        f"one moves the matrix by a known amount; {escape(mechanism['noise'])} noise covers "
        f"it. {escape(mechanism['proof'][:1].upper() + mechanism['proof'][1:])}. Components and "
        "variances follow from the noisy matrix and cost nothing."
    )


def use_words(use: Mapping[str, Any], k: int) -> str:
    """Return what is left of the structure, and which of k components can be told from noise."""
    kept, readable = use["recovery"], use["readable_components"]
    if use.get("centre_unknown"):
        return (
            "The centre is a released mean. Its error moved all rows alike before they were cut to "
            "a length, and no released number tells how that turned the components: the first may "
            "be that error. Do not interpret a component by itself; how much survives cannot be "
            "told."
        )
    if kept is not None:
        said = (
            f"About {round(100 * kept)} of 100 parts of the structure survive, judged by "
            "the released numbers alone, so it may be printed."
        )
    elif k == len(use["features"]):
        said = "No structure to keep: any directions are as good."
    else:
        said = "How much survives cannot be told, as not all of it stands out of the noise."
    parts = [said]
    if readable < k:
        parts.append(
            f"The step after component {readable + 1} is shorter than the noise edge: from there "
            "on do not interpret a component by itself."
        )
    else:
        every = {1: "The component", 2: "Both components"}.get(k, f"All {k} components")
        parts.append(f"{every} can be told from noise.")
    return " ".join(parts)


def _assumptions(listed: Sequence[Mapping[str, str]]) -> str:
    rows = "".join(
        f"<tr><td>{at}. {escape(one['what'])}</td><td>{_or_open(one['source'])}</td>"
        f"<td>{_or_open(one['confirmed_by'])}</td></tr>"
        for at, one in enumerate(listed, start=1)
    )
    head = "<tr><th>what</th><th>from where</th><th>confirmed by</th></tr>"
    return f"<table class=assumed>{head}{rows}</table>"


def _or_open(words: str) -> str:
    return escape(words) or '<span class="open">? not said</span>'


def _trust(mechanism: Mapping[str, Any]) -> str:
    return (
        f"Who holds the rows is trusted with them (central model). Noise: {mechanism['sampler']}; "
        f"floating point is {mechanism['floating_point']}. How long the computation took is not "
        "covered."
    )


def _data(card: Mapping[str, Any]) -> str:
    n, d = card["n"], card["d"]
    some = f", of which about {card['counted']:,} count," if card["counted"] is not None else ""
    words = f"{n:,} rows{some} and {d:,} columns used."
    if card["copy"] == "file":
        counts = card["data"]
        columns = ", ".join(
            f"{escape(name)} {cells:,}" for name, cells in counts["filled_by_column"].items()
        )
        words += (
            f" In <b>{counts['rows_changed']:,} of {counts['rows']:,}</b> rows "
            f"{counts['cells_filled']:,} cells held no number and became the typical value"
            f"{columns and f' ({columns})'}; "
            f"{counts['cells_cut']:,} were cut to the limits. "
            '<span class="tag">counts from the rows: file copy only</span>'
        )
    else:
        words += " Counts of cells that were filled or cut are withheld: they tell of the rows."
    return words


def _not_covered(listed: Mapping[str, str]) -> str:
    boxes = "".join(
        f"<div><b>{escape(name.replace('_', ' ').capitalize())}</b>{escape(words)}</div>"
        for name, words in listed.items()
    )
    return (
        '<section style="display:block"><h2>Not covered, whatever ε is</h2>'
        f'<div class="not">{boxes}</div></section>'
    )


def _checks(card: Mapping[str, Any]) -> str:
    release, paid = card["release"], card["ledger"]
    name = paid.get("file", "LEDGER") if paid else "LEDGER"
    versions = ", ".join(f"{what} {which}" for what, which in card["versions"].items())
    lines = [
        ("Release", f"{release['file']}, SHA-256 {release['sha256']}"),
        *([("Ledger", f"{name}, spend {paid['number']}, head {paid['head']}")] if paid else []),
        ("Check", f"dpviz release verify CARD.json {release['file']} {name}"),
        ("Versions", f"{versions} · card format {card['dpviz_card']}"),
    ]
    rows = "".join(
        f"<tr><td>{what}</td><td><code>{escape(said)}</code></td></tr>" for what, said in lines
    )
    rows += (
        f"<tr><td>This page</td><td>SHA-256 <code id=seal>{_OPEN}</code>, of the page with zeros "
        "for these 64 digits</td></tr>"
    )
    signed = "".join(
        f"<div><span>For the {escape(one['role'])}: name, signature</span><span>date</span></div>"
        for one in card["signatures"]
    )
    return (
        f'<section style="display:block"><table>{rows}</table></section><div class="sign">{signed}'
        "</div>"
    )
