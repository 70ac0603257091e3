"""The privacy card as one page of A4, computed only from its data."""

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
"""Stamps of a privacy card, in print and in JSON."""
_PICTURE = 190
"""Height of a chart in pixels."""
_FEATURES, _COMPONENTS = 12, 3
"""Maximum numbers of features and components on the page; the file holds all of them."""
_SHEET = 1_110.0
"""Usable height of a sheet of A4 in pixels."""
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
    """Return whether a page matches its own digest: SHA-256 with 64 zeros in its place."""
    match = _SEAL.search(page)
    if match is None:
        return False
    zeros = page[: match.start(1)] + _OPEN.encode() + page[match.end(1) :]
    return hashlib.sha256(zeros).hexdigest().encode() == match[1]


def suspicion_words(suspicion: Mapping[str, Any], places: int = 0) -> str:
    """Return how large a suspicion may become, in natural frequencies, rounded up."""
    before = _bound(suspicion["before"]).of_hundred()
    return (
        f"A suspicion that is right {before} time{'s' * (before != '1')} in 100 may become right "
        f"{Kind.UPPER_BOUND.prefix}{_bound(suspicion['after']).of_hundred(places)} times in 100."
    )


def promise(card: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the main claim of a privacy card: the ledger's total, or else the release."""
    claim: Mapping[str, Any] = card["ledger"] or card["claim"]
    return claim


def promise_words(card: Mapping[str, Any]) -> str:
    """Describe how far all releases until now, not only the last one, may raise a suspicion."""
    words, ledger = suspicion_words(promise(card)["suspicions"][0]), card["ledger"]
    if ledger is None or ledger["number"] == 1:
        return words
    return (
        f"After all {ledger['number']:,} releases of this ledger together: "
        f"{words[0].lower()}{words[1:]}"
    )


def _bound(share: float) -> Quantity:
    return Quantity(share, Kind.UPPER_BOUND)


def to_html(card: Mapping[str, Any]) -> str:
    """Return a privacy card as a page that needs no other file.

    Parameters
    ----------
    card : mapping
        Data of the privacy card, as in its file.
    """
    title = escape(card["title"])
    parts = [
        _head(card),
        _lead(card),
        _section(
            "All that is published",
            _left_words(card),
            _loadings(card["use"]) + _picture(card),
        ),
        *(
            _section(f"{at}&ensp;{name}", small, body)
            for at, (name, small, body) in enumerate(_layers(card), start=1)
        ),
        _exclusions(card["not_covered"]),
        _checks(card),
    ]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}: privacy card'
        f'</title><meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><main{_fit(card)}>{''.join(parts)}</main></body></html>\n"
    )
    digest = hashlib.sha256(page.encode()).hexdigest()
    # Texts by users are escaped, so that they cannot imitate a second seal.
    return page.replace(f"<code id=seal>{_OPEN}<", f"<code id=seal>{digest}<")


def _fit(card: Mapping[str, Any]) -> str:
    """Return the style that keeps a privacy card of long names and many lines on one sheet."""
    length = sum(len(card[key]) for key in ("controller", "purpose", "by", "recipients")) + 60
    lines = math.ceil(len(card["title"]) / 60) + math.ceil(length / 70)
    for one in card["assumptions"]:
        by = ("what", 54), ("source", 25), ("confirmed_by", 14)
        lines += max(math.ceil(len(one[key]) / wide) for key, wide in by)
    # Estimate the page height in pixels from text lines and features, as Chromium draws them.
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
    facts = [
        f"{word}: {_or_open(card[key])}"
        for key, word in (
            ("controller", "controller"), ("purpose", "purpose"), ("by", "released by"),
            ("recipients", "recipients"),
        )
    ]  # fmt: skip
    # Never use green for a release that gives hardly any protection.
    look = " look" * (promise(card)["suspicions"][0]["after"] >= 0.5)
    number = "" if card["ledger"] is None else f" · release {card['ledger']['number']}"
    return (
        f"<header><div><h1>Privacy card</h1><p><b>{escape(card['title'])}</b>{number}</p>"
        f"<p>{' · '.join(facts)}</p></div><div class='stamp{look}'>{card['status']}<small>"
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
        f" In at most {of_million(beyond)} releases the odds grow by more than twice what ε allows."
        if beyond
        else ""
    )
    claim = card["claim"]
    loss = Spent(claim["epsilon"], claim["delta"], False, "claim")
    unit = card["unit"]
    relation, protected_unit = Relation(unit["neighbours"]), Unit(unit["protected"])
    risk = risk_words("this release", loss, claim["epsilon"], relation, protected_unit)
    warning = ' <b class="open">? Hardly protection.</b>' if first["after"] >= 0.5 else ""
    return (
        f'<div class="lead">{grids}<div><strong>{promise_words(card)}</strong>{warning}<p>This '
        f"limit holds for each {protected_unit}, whatever else the suspicious reader knows. "
        f"{more}. {capital(risk)}.{odds}</p></div></div>"
    )


def of_million(share: float) -> str:
    """Return a small share as a count, rounded up, such as 1 of 1,600,000."""
    count = 1e6 * share
    # Write a share below one in a million as "1 of" a larger number.
    if count >= 1:
        return f"{math.ceil(count - 1e-6):,} of 1,000,000"
    many = math.floor((1 + 1e-12) / share)
    step = 10 ** (len(str(many)) - 2)
    return f"1 of {many // step * step:,}"


def _section(name: str, small: str, body: str) -> str:
    return f"<section><div><h2>{name}</h2><small>{small}</small></div><div>{body}</div></section>"


def _left_words(card: Mapping[str, Any]) -> str:
    use = card["use"]
    hollow = "" if use["readable_components"] == card["k"] else "; a hollow mark may be 0"
    return (
        f"{card['d'] * card['k']:,} loadings with {percent(use['confidence'])} error bars, "
        f"{card['d']:,} variances, and the noisy matrix from which they were "
        f"computed{hollow}{'; a picture of counts' * (card['picture'] is not None)}"
    )


def _loadings(use: Mapping[str, Any]) -> str:
    """Return the loadings, and a note on features and components that only the file holds."""
    more = [
        f"{count:,} more {what} in the file"
        for count, what in (
            (len(use["features"]) - _FEATURES, "features"),
            (len(use["loadings"]) - _COMPONENTS, "components"),
        )
        if count > 0
    ]
    note = f"<p>{'; '.join(more)}</p>" if more else ""
    # Without Matplotlib, leave out the chart of loadings. The card's file has their numbers.
    return f"{inline(loadings(use))}{note}" if find_spec("matplotlib") else note


def _picture(card: Mapping[str, Any]) -> str:
    """Return the published map, if there is one, and its quality."""
    picture = card.get("picture")
    if picture is None:
        return ""
    image = inline(published(picture)) if find_spec("matplotlib") else ""
    return f"<div>{image}<p>{escape(picture_words(picture))}</p></div>"


def noise_words(error: float) -> str:
    """Describe how far noise distorts the shape of a published map."""
    return (
        f"In 95 of 100 maps, noise changes the shape by at most {percent(min(error, 1.0))} (one "
        f"dot for everybody: {percent(1.0)}). The map does not show how people lie within a grid "
        "cell."
    )


def picture_words(picture: Mapping[str, Any]) -> str:
    """Describe what a published map shows and how far noise distorts it.

    Parameters
    ----------
    picture : mapping
        The ``picture`` entry of a privacy card.
    """
    parts = ["Noisy counts of people in grid cells along the components; ε covers the counts too."]
    if picture["frame"] == "disk":
        parts.append("The map shows directions, not lengths.")
    hidden = [name for name in picture["drowned"] if name != OTHER]
    if picture["labels_drown"]:
        parts.append("Labels are left out, because noise would hide the labels.")
    elif hidden:
        parts.append(f"{' and '.join(hidden)} cannot be distinguished at this ε.")
    parts.append(noise_words(picture["error"]))
    return " ".join(parts)


def _layers(card: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        ("ε, δ and the total", "how much a release may reveal", _claims(card)),
        ("Unit of privacy", "who is protected", _unit(card["unit"])),
        ("Mechanism and proof", "why the promise holds", _mechanism(card["mechanism"])),
        ("Use and bias", "what the result can be used for", use_words(card["use"], card["k"])),
        ("Assumed public", "fails if taken from the data", _assumptions(card["assumptions"])),
        ("Trust and security", "who must be trusted", _trust(card["mechanism"])),
        ("The data", "how the table was read and changed", _data(card)),
    ]


def _claims(card: Mapping[str, Any]) -> str:
    claim, ledger = card["claim"], card["ledger"]
    rows = [("this release", claim, f"ρ {numeral(claim['rho'], 3)}")]
    if ledger is not None:
        limit = ledger.get("limit")
        account = {"zcdp": "rho values add up", "basic": "epsilons and deltas add up"}
        words = account.get(ledger.get("account", ""), "")
        if limit is not None:
            words += f"; limit ε {numeral(limit['epsilon'], 4)}, fixed when the ledger was made"
        rows.append((f"all {ledger['number']} releases of this ledger", ledger, words))
    body = "".join(
        f"<tr><td>{name}</td><td class=n><b>{numeral(one['epsilon'], 4)}</b></td><td "
        f"class=n>{_delta(one['delta'])}</td><td>at most "
        f"{_bound(one['suspicions'][0]['after']).of_hundred()}</td><td>{escape(words)}</td></tr>"
        for name, one, words in rows
    )
    unknown = '<p class="open">? No ledger: other releases of this table are not known.</p>'
    return (
        "<table><tr><th></th><th>ε</th><th>δ</th><th>1 in 100 becomes</th><th>account</th></tr>"
        f"{body}</table>{'' if ledger else unknown}"
    )


def _delta(delta: float) -> str:
    return f"{of_million(delta).replace(' of ', ' in ')}" if delta else "none"


def _unit(unit: Mapping[str, Any]) -> str:
    if unit["protected"] == "row":
        who = (
            '<b class="open">? This release protects one ROW.</b> We do not know how many rows '
            "a person has. A person with several rows is protected less."
        )
    elif unit["person"]:
        who = f"<b>A person</b>, by the column “{escape(unit['person'])}”; " + (
            "the first row of each person counts."
            if unit["rows"] == 1
            else f"the first {unit['rows']} rows of each person count."
        )
    else:
        who = f"<b>A person</b>, who is stated to have at most {rows_words(unit['rows'])}."
    change = {"replace": "replaced by any other values", "zero-out": "removed, with n unchanged"}
    whose = "one row" if unit["protected"] == "row" else "all rows of one person"
    return f"{who} Neighbours: {whose} {change[unit['neighbours']]}."


_BOUNDED = {
    "bound": "rows are clipped to the stated limits and lengths",
    "unit": "each row is clipped to the stated limits and scaled to length one",
}


def _mechanism(mechanism: Mapping[str, Any]) -> str:
    mean = ", around a private mean that the same ε covers" * (
        mechanism["center"] == "private mean"
    )
    scaling = "features are divided by half the width of their limits, " * ("scale" in mechanism)
    return (
        f"<b>{escape(mechanism['name'])}</b>: {scaling}{_BOUNDED[mechanism['rows']]}{mean}, so "
        f"that one row moves the matrix by at most a known amount. {escape(mechanism['noise'])} "
        "noise is scaled to this amount. "
        f"{escape(mechanism['proof'][:1].upper() + mechanism['proof'][1:])}. Components and "
        "variances are computed from the noisy matrix at no further privacy cost."
    )


def use_words(use: Mapping[str, Any], k: int) -> str:
    """Describe how much structure is kept, and which of k components differ from noise."""
    recovery, readable = use["recovery"], use["readable_components"]
    if use.get("centre_unknown"):
        return (
            "The centre is a released mean. The error of this mean shifted all rows before "
            "clipping, and no released number shows how this turned the components. The first "
            "component may be the error of the mean, so do not interpret a component by itself. "
            "How much structure is kept is unknown."
        )
    if recovery is not None:
        sentence = (
            f"About {round(100 * recovery)} % of the structure is kept. This share is estimated "
            "from the released numbers alone, so the share may be published."
        )
    elif k == len(use["features"]):
        sentence = "The table has no structure to keep: all directions are equally good."
    else:
        sentence = "How much structure is kept is unknown, because noise hides part of it."
    parts = [sentence]
    if readable < k:
        parts.append(
            f"The eigengap after component {readable + 1} is smaller than the noise edge. Do not "
            "interpret a later component by itself."
        )
    else:
        every = {1: "The component", 2: "Both components"}.get(k, f"All {k} components")
        parts.append(f"{every} can be distinguished from noise.")
    return " ".join(parts)


def _assumptions(assumptions: Sequence[Mapping[str, str]]) -> str:
    rows = "".join(
        f"<tr><td>{at}. {escape(one['what'])}</td><td>{_or_open(one['source'])}</td>"
        f"<td>{_or_open(one['confirmed_by'])}</td></tr>"
        for at, one in enumerate(assumptions, start=1)
    )
    head = "<tr><th>assumption</th><th>source</th><th>confirmed by</th></tr>"
    return f"<table class=assumed>{head}{rows}</table>"


def _or_open(words: str) -> str:
    return escape(words) or '<span class="open">? not said</span>'


def _trust(mechanism: Mapping[str, Any]) -> str:
    return (
        "The holder of the rows is trusted with the rows (central model). Noise: "
        f"{mechanism['sampler']}; floating point: {mechanism['floating_point']}. The promise does "
        "not cover how long the computation took."
    )


def _data(card: Mapping[str, Any]) -> str:
    n, d = card["n"], card["d"]
    some = f", of which about {card['counted']:,} are used," if card["counted"] is not None else ""
    words = f"{n:,} rows{some} and {d:,} columns used."
    if card["copy"] == "file":
        counts = card["data"]
        columns = ", ".join(
            f"{escape(name)} {cells:,}" for name, cells in counts["filled_by_column"].items()
        )
        words += (
            f" In <b>{counts['rows_changed']:,} of {counts['rows']:,}</b> rows "
            f"{counts['cells_filled']:,} cells held no number and were set to the typical "
            f"value{columns and f' ({columns})'}. {counts['cells_cut']:,} cells were clipped to "
            'the limits. <span class="tag">counts taken from the rows: file copy only</span>'
        )
    else:
        words += (
            " The card withholds counts of filled or clipped cells, because they reveal "
            "facts about rows."
        )
    return words


def _exclusions(topics: Mapping[str, str]) -> str:
    boxes = "".join(
        f"<div><b>{escape(name.replace('_', ' ').capitalize())}</b>{escape(words)}</div>"
        for name, words in topics.items()
    )
    return (
        '<section style="display:block"><h2>Not covered at any ε</h2>'
        f'<div class="not">{boxes}</div></section>'
    )


def _checks(card: Mapping[str, Any]) -> str:
    release, book = card["release"], card["ledger"]
    name = book.get("file", "LEDGER") if book else "LEDGER"
    versions = ", ".join(f"{what} {which}" for what, which in card["versions"].items())
    lines = [
        ("Release", f"{release['file']}, SHA-256 {release['sha256']}"),
        *([("Ledger", f"{name}, spend {book['number']}, head {book['head']}")] if book else []),
        ("Check", f"dpviz release verify CARD.json {release['file']} {name}"),
        ("Versions", f"{versions} · card format {card['dpviz_card']}"),
    ]
    rows = "".join(
        f"<tr><td>{what}</td><td><code>{escape(value)}</code></td></tr>" for what, value in lines
    )
    rows += (
        f"<tr><td>This page</td><td>SHA-256 <code id=seal>{_OPEN}</code>, computed with zeros in "
        "place of these 64 digits</td></tr>"
    )
    signers = "".join(
        f"<div><span>For the {escape(one['role'])}: name, signature</span><span>date</span></div>"
        for one in card["signatures"]
    )
    return (
        f'<section style="display:block"><table>{rows}</table></section><div class="sign">{signers}'
        "</div>"
    )
