"""Claims in three groups: holding, using less budget than claimed, and broken."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from dpviz.auditing.exhibits import WITH, WITHOUT
from dpviz.core.number_text import decimals, numeral
from dpviz.core.quantity import Kind, Quantity
from dpviz.core.release import Verdict
from dpviz.report.figures.theme import colour_of_key

ROW = Mapping[str, Any]
_PIXELS = 1100  # This is the pixel width of the line on which names must not overlap.
_LETTER = 8.3
_LEVELS = 4  # Names have four levels: two above the line, two below it.


def shelves_html(claims: pd.DataFrame, pictures: Mapping[str, str], opens: Opens) -> str:
    """Return the groups as HTML; a click on an item opens its evidence below its group.

    Parameters
    ----------
    claims : DataFrame
        `dpviz.auditing.table.claims_now`.
    pictures : mapping of str to str
        SVG of how a claim breaks, by mechanism; other broken claims show promised and actual loss.
    opens : mapping of str to sequence of (str, dict)
        Buttons below the evidence, by mechanism: text, and the data that a click sends to the page.
    """
    rows: list[ROW] = [
        dict(zip(claims.columns, row, strict=True)) for row in claims.itertuples(index=False)
    ]
    kinds: dict[str, Callable[[Verdict], bool]] = {
        "hold": lambda v: v.counts and v is not Verdict.LOOSE,
        "spend less": lambda v: v is Verdict.LOOSE,
        "broken": lambda v: v.fails,
    }
    pairs = [(row, Verdict(row["verdict"])) for row in rows if row["verdict"]]
    by_kind = {
        name: [row for row, verdict in pairs if kind(verdict)] for name, kind in kinds.items()
    }
    verdicts = {verdict for _, verdict in pairs}
    hold, less, broken = by_kind.values()
    why = "or are not proved" if Verdict.UNPROVEN in verdicts else "one chart each"
    parts = [
        _shelf("hold", "", [_chip(row) for row in hold], hold, opens),
        _shelf("spend less", "more noise than needed", _line(less), less, opens),
        _shelf("broken", why, [_card(row, pictures) for row in broken], broken, opens),
    ]
    rest = [row for row in rows if not any(row in shelf for shelf in by_kind.values())]
    if rest:
        parts.append(_shelf("not judged", "", [_chip(row) for row in rest], rest, opens))
    return f'<div class="dp-shelves">{"".join(parts)}</div>'


Opens = Mapping[str, Sequence[tuple[str, Mapping[str, str]]]]


def _shelf(name: str, why: str, items: Sequence[str], rows: Sequence[ROW], opens: Opens) -> str:
    if not rows:
        return ""
    small = f"<small>{why}</small>" if why else ""
    kind = name.replace(" ", "-")
    evidence = "".join(_evidence(row, opens.get(row["key"], ())) for row in rows)
    return (
        f'<section class="dp-shelf" data-shelf="{kind}"><h2><b>{len(rows)}</b> {name}{small}</h2>'
        f'<div><div class="dp-items">{"".join(items)}</div>{evidence}</div></section>'
    )


def _button(row: ROW, css: str, inside: str) -> str:
    key = escape(row["key"])
    return (
        f'<button type="button" class="{css}" data-opens="{key}" aria-expanded="false" '
        f'aria-controls="claim-{key}" style="--c: {colour_of_key(row["key"])}">{inside}</button>'
    )


def _chip(row: ROW) -> str:
    notes = []
    if row["verdict"] and row["claimed_delta"] == 0:
        notes.append("no δ")
    if row["verdict"] == Verdict.APPROXIMATE:
        notes.append("≈ drawn")
    if row["verdict"] in ("", Verdict.BASELINE):
        notes.append(row["status"])
    small = "".join(f"<small>{escape(note)}</small>" for note in notes)
    return _button(row, "dp-chip", f"{escape(row['mechanism'])}{small}")


def _evidence(row: ROW, opens: Sequence[tuple[str, Mapping[str, str]]]) -> str:
    """Return the evidence that a click on an item opens below its group."""
    key = escape(row["key"])
    buttons = "".join(
        "<button type='button' class='dp-go' "
        + " ".join(f'data-{name}="{escape(value)}"' for name, value in data.items())
        + f">{escape(words)}</button>"
        for words, data in opens
    )
    return (
        f'<div class="dp-evidence" id="claim-{key}" '
        f"hidden><p><b>{escape(row['mechanism'])}</b> · {escape(row['status'])} · "
        f"{_account(row)}</p><p>{escape(row['evidence'])}</p><div "
        f'class="dp-copy"><pre><code>{escape(row["command"])}</code></pre><button '
        f'type="button" aria-live="polite">copy</button></div><p>{buttons}</p></div>'
    )


def _account(row: ROW) -> str:
    """Return the promised and the actual privacy loss."""
    if _none(row["claimed_epsilon"]):
        return "promises nothing"
    promise = f"ε {numeral(row['claimed_epsilon'], 3)}"
    if row["claimed_delta"]:
        promise += f", δ {numeral(row['claimed_delta'], 2)}"
    if not row["verdict"]:
        return f"promises {promise}"
    if _none(row["spent_epsilon"]):
        return f"promises {promise}; no finite epsilon bounds the privacy loss"
    return f"promises {promise}; actual privacy loss ε {_loss_text(row)}"


def _none(value: float | None) -> bool:
    return value is None or math.isnan(value)


def _loss_text(row: ROW) -> str:
    kind = Kind.MEASUREMENT if row["exact"] else Kind.UPPER_BOUND
    return Quantity(row["spent_epsilon"], kind).brief


# Line of actual privacy losses -----------------------------------------------------


def _line(rows: Sequence[ROW]) -> list[str]:
    """Return a logarithmic line of actual privacy losses, up to the promised loss."""
    if not rows:
        return []
    promise = float(rows[0]["claimed_epsilon"])
    some = sorted(
        (row for row in rows if row["spent_epsilon"] > 0), key=lambda row: row["spent_epsilon"]
    )
    low = math.log10(some[0]["spent_epsilon"]) - 0.5 if some else math.log10(promise) - 1
    width = max(math.log10(promise) - low, 1e-9)
    nothing = [row for row in rows if row["spent_epsilon"] == 0]
    # If too many mechanisms have privacy loss 0, list their names above the line.
    crowd = nothing if len(nothing) > _LEVELS else []
    chips = [
        _button(row, "dp-chip", f"{escape(row['mechanism'])}<small>privacy loss 0</small>")
        for row in crowd
    ]
    pins = [(row, 0.0) for row in nothing if not crowd]
    pins += [
        (row, 0.1 + 0.9 * min(max((math.log10(row["spent_epsilon"]) - low) / width, 0), 1))
        for row in some
    ]
    ends = [-math.inf] * _LEVELS
    parts = [f'<span class="dp-promised"><b>{numeral(promise, 6)}</b> promised</span>']
    for row, place in pins:
        words = f"{row['mechanism']} {_loss_text(row)}"
        size = _LETTER * len(words)
        # Shift each name to the left in proportion to the position of its dot on the line.
        start = place * (_PIXELS - size)
        level = next((at for at in range(_LEVELS) if ends[at] + 12 < start), _LEVELS - 1)
        ends[level] = max(start, ends[level]) + size
        inside = f"<i></i><b>{escape(row['mechanism'])}</b> {_loss_text(row)}"
        pin = _button(row, "dp-pin", inside)
        parts.append(
            pin.replace('style="', f'data-level="{level}" style="--x: {decimals(place, 4)}; ')
        )
    return [*chips, f'<div class="dp-line">{"".join(parts)}</div>'] if pins else chips


# Mechanisms whose privacy claims fail --------------------------------------------------


def _card(row: ROW, pictures: Mapping[str, str]) -> str:
    picture = pictures.get(row["key"]) or spending_picture(row)
    return _button(
        row,
        "dp-card",
        f"{picture}<b>{escape(row['mechanism'])}</b><em>{escape(row['status'])}</em>",
    )


def _picture(inside: Sequence[str], words: str) -> str:
    start = f'<svg viewBox="0 0 260 190" role="img" aria-label="{escape(words)}">'
    return f"{start}{''.join(inside)}</svg>"


def _bar(x: float, tall: float, css: str) -> str:
    tall = max(tall, 1)
    return f'<rect x="{x}" y="{165 - tall:.1f}" width="70" height="{tall:.1f}" class="{css}"/>'


def _text(x: float, y: float, words: str, css: str = "", anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" class="{css}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def spending_picture(row: ROW) -> str:
    """Return bars of the promised and the actual privacy loss; a dashed bar is a bound."""
    promise, loss = float(row["claimed_epsilon"]), row["spent_epsilon"]
    if _none(loss):
        text, tall, first, css = "no epsilon", 130.0, 40.0, "bound"
    else:
        most = max(loss, promise)
        text, tall, first = _loss_text(row), 130 * loss / most, 130 * promise / most
        css = "over" if row["exact"] else "bound"
    words = f"{numeral(promise, 3)} promised, {text} actual"
    inside = [
        _bar(30, first, "told"),
        _bar(150, tall, css),
        '<path d="M10 165H250" class="axis"/>',
        f'<path d="M140 {165 - first:.1f}H230" class="edge"/>',
        _text(65, 159 - first, f"{numeral(promise, 3)} promised"),
        _text(185, 157 - tall, text, "bad big"),
    ]
    delta, limit = row["true_delta"], row["claimed_delta"]
    if not _none(delta) and delta > limit:
        words += f"; delta {numeral(delta, 2)}, promised {numeral(limit, 2)}"
        inside.append(_text(130, 184, f"δ {numeral(delta, 2)}, promised {numeral(limit, 2)}"))
    return _picture(inside, words)


def cone_picture(table: pd.DataFrame, share: float) -> str:
    """Return releases without her, with marks on releases that are impossible with her.

    Parameters
    ----------
    table : DataFrame
        Table with `dpviz.auditing.exhibits.CONE_COLUMNS`; only the first mechanism is drawn.
    share : float
        Exact share of impossible releases.
    """
    mine = table[(table["mechanism"] == table["mechanism"].iloc[0]) & (table["table"] == WITHOUT)]
    least = (mine["half_trace"] - mine["radius"]).to_numpy()
    most = (mine["half_trace"] + mine["radius"]).to_numpy()
    x = np.sign(least) * np.sqrt(np.abs(least))
    y = np.sign(most) * np.sqrt(np.abs(most))
    start, end = min(float(x.min()), -0.4), max(float(x.max()), 0.4)
    low, high = float(y.min()), max(float(y.max()), float(y.min()) + 0.1)
    across = [12 + 236 * (value - start) / (end - start) for value in (*x, 0.0)]
    up = [150 - 118 * (value - low) / (high - low) for value in y]
    edge, outside = across[-1], mine["outside"].to_numpy()
    inside = [
        f'<rect x="{edge:.1f}" y="4" width="{256 - edge:.1f}" height="156" class="can"/>',
        f'<path d="M{edge:.1f} 4V160" class="edge"/>',
    ]
    marks: dict[bool, list[str]] = {True: [], False: []}
    for a, b, out in zip(across, up, outside, strict=False):
        marks[bool(out)].append(
            f"M{a - 4:.1f} {b - 4:.1f}l8 8m0-8l-8 8" if out else f"M{a:.1f} {b:.1f}h0"
        )
    inside += [
        f'<path d="{"".join(marks[False])}" class="dots"/>',
        f'<path d="{"".join(marks[True])}" class="crosses"/>',
    ]
    count, total = int(outside.sum()), len(mine)
    inside += [
        _text(edge - 5, 18, "never", "bad", "end"),
        _text(edge + 6, 18, f"possible {WITH}", "", "start"),
        f'<text x="10" y="184"><tspan class="bad">{count}</tspan> '
        f"of {total}, {decimals(share * total, 0)} expected</text>",
    ]
    return _picture(inside, f"{count} of {total} releases {WITHOUT} can never come {WITH}")


def turn_picture(table: pd.DataFrame) -> str:
    """Return the published directions with and without one row.

    Parameters
    ----------
    table : DataFrame
        `dpviz.auditing.exhibits.TURNING_COLUMNS`.
    """
    angles = table.groupby("table", sort=False)["angle"].mean()
    turn, draws = float(abs(angles[WITH] - angles[WITHOUT])), int(table["draw"].max())
    inside = []
    for name, css in ((WITH, "edge"), (WITHOUT, "turned")):
        angle = math.radians(float(angles[name]))
        x, y = 40 + 125 * math.cos(angle), 160 - 125 * math.sin(angle)
        inside.append(f'<path d="M40 160L{x:.1f} {y:.1f}" class="{css} arrow"/>')
        inside.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" class="{css} tip"/>')
        down, anchor = (-12, "middle") if name == WITH else (6, "start")
        inside.append(_text(x + 10, y + down, name, "", anchor))
    inside += [
        '<path d="M90 160A50 50 0 0 0 40 110" class="turn"/>',
        _text(100, 118, f"{decimals(turn, 0)}°", "bad big", "start"),
        _text(10, 184, f"{draws} identical releases: no noise", "", "start"),
    ]
    return _picture(inside, f"One row turns the published direction by {decimals(turn, 0)} degrees")
