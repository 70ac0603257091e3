"""Risk first: what survives under a ceiling on what a suspicion may become.

Everything is predicted from the rows for exactly the pipeline that a release runs: a working view,
for whoever may see them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from html import escape

import numpy as np

from dpviz.accounting.accounting import Spent
from dpviz.auditing.attack import excess_probability, posterior_bound
from dpviz.core.entries import PRIVATE
from dpviz.core.errors import CannotRun
from dpviz.core.number_text import decimals, numeral, rows_words, towards
from dpviz.core.problem import Budget, Relation, protects
from dpviz.lessons.questions import Answers
from dpviz.lessons.words import REFUSED
from dpviz.releasing.grid import bits_for
from dpviz.releasing.noise import Law
from dpviz.releasing.options import ReleaseOptions
from dpviz.releasing.picture import counting
from dpviz.releasing.predicting import LOUD, Outlook, SchemaRows
from dpviz.report.figures.svg import hundred, picture
from dpviz.report.privacy_card import CARD_FORMAT, PLAN, of_million
from dpviz.report.sentences.phrases import capital, risk_words
from dpviz.simulation.picture.account import SHARE

PRIOR = 0.01
EPSILONS: tuple[float, ...] = tuple(np.geomspace(0.05, 9.2, 14).tolist())
LEVELS = (0.8, 0.9, 0.95)
HARDLY = 0.5
"""What a suspicion of 1 % may become from which on there is hardly protection."""


def epsilon_under(ceiling: float) -> float:
    """Return the largest epsilon of three digits under which 1 % becomes at most the ceiling.

    With two, 25 in 100 would be answered by 24.

    Parameters
    ----------
    ceiling : float
        Of 100, above 1 and below 100.
    """
    share = ceiling / 100
    exact = math.log(share / (1 - share)) - math.log(PRIOR / (1 - PRIOR))
    return towards(exact, 3, -1)


def becomes(epsilon: float) -> float:
    """Return how many of 100 suspicions that were right once may be right after a release."""
    return 100 * posterior_bound(PRIOR, epsilon)


def of_hundred(count: float) -> str:
    """Return a count of 100 with three digits at most, rounded up."""
    # above 99 a decimal is kept, as 100 would be certainty
    digits = 1 if count < 10 or count > 99 else 0
    return numeral(math.ceil(count * 10**digits - 1e-6) / 10**digits, 3)


@dataclass(frozen=True, eq=False)
class Prospect:
    """What every pipeline keeps by epsilon: computed once for a table and its schema.

    Attributes
    ----------
    name : str
    rows : SchemaRows
    options : ReleaseOptions
        k, delta and relation; the rest is chosen.
    """

    name: str
    rows: SchemaRows
    options: ReleaseOptions

    @cached_property
    def curves(self) -> list[tuple[ReleaseOptions, list[float]]]:
        """Recovery of each pipeline at `EPSILONS`."""
        # many features average out within one draw
        draws = max(2, min(12, 20_000 // len(self.rows.schema.used) ** 2))
        return [
            (each, self.rows.recoveries(each, EPSILONS, draws=draws))
            for each in self.rows.pipelines(self.options)
        ]

    @cached_property
    def best(self) -> Callable[[float], Outlook]:
        """To the outlook of the pipeline that keeps most at an epsilon, computed once for each."""
        return cache(self._best)

    def _best(self, epsilon: float) -> Outlook:
        at = math.log(epsilon)
        grid = np.log(EPSILONS)
        chosen, _ = max(self.curves, key=lambda pair: float(np.interp(at, grid, pair[1])))
        return self.rows.outlook(replace(chosen, epsilon=epsilon))

    @cached_property
    def without_noise(self) -> float:
        """What the best pipeline keeps before any noise."""
        return max(map(self.rows.without_noise, self.rows.pipelines(self.options)))

    @cached_property
    def needed(self) -> Callable[[float], float | None]:
        """To about the least epsilon, of 100 at most, at which some pipeline keeps a recovery."""
        return cache(self._needed)

    def _needed(self, recovery: float) -> float | None:
        found = [
            epsilon for _, kept in self.curves if (epsilon := _crossing(kept, recovery)) is not None
        ]
        if not found:  # beyond the curves
            return self._least(self.options, recovery, self.rows.n)
        # upwards: what is said to be enough must be
        return towards(min(found), 2, 1)

    @cached_property
    def helps(self) -> Callable[[float], list[tuple[str, float | None]]]:
        """To what would help, and the epsilon needed then, computed once for each recovery."""
        return cache(self._helps)

    def _helps(self, recovery: float) -> list[tuple[str, float | None]]:
        found = [
            ("three times as many people", self._least(self.options, recovery, 3 * self.rows.n))
        ]
        if self.options.k > 1:
            one = replace(self.options, k=1)
            found.append(("one component alone", self._least(one, recovery, self.rows.n)))
        return found

    def _least(self, options: ReleaseOptions, recovery: float, n: int) -> float | None:
        # what bounds alone have lost no epsilon brings back
        few = [
            each
            for each in self.rows.pipelines(options)
            if self.rows.without_noise(each) >= recovery
        ]
        found = [self.rows.least_epsilon(each, recovery, n=n) for each in few]
        return min((each for each in found if each is not None), default=None)


def _crossing(kept: Sequence[float], wanted: float) -> float | None:
    if kept[-1] < wanted:
        return None
    at = max((place for place, value in enumerate(kept) if value < wanted), default=-1)
    if at < 0:
        return EPSILONS[0]
    low, high = math.log(EPSILONS[at]), math.log(EPSILONS[at + 1])
    # recovery is nearly straight along the logarithm between two points of the grid
    part = (wanted - kept[at]) / (kept[at + 1] - kept[at])
    return math.exp(low + part * (high - low))


@dataclass(frozen=True, eq=False)
class CeilingCard:
    """The live card under one ceiling.

    Attributes
    ----------
    prospect : Prospect
    answers : Answers
    epsilon : float
        That is claimed under the ceiling.
    outlook : Outlook
    needed : float or None
        Epsilon that the wanted recovery needs; None where 100 is not enough.
    """

    prospect: Prospect
    answers: Answers
    epsilon: float
    outlook: Outlook
    needed: float | None

    @property
    def kept(self) -> int:
        """Parts of 100 that survive, rounded down."""
        return max(0, math.floor(100 * self.outlook.recovery + 1e-9))

    @property
    def counts(self) -> tuple[str, str]:
        """Whether a picture of counts can be had at this epsilon, and what it takes of it."""
        rows, options = self.prospect.rows, self.outlook.options
        law = Law.NORMAL if options.stated_delta > 0 else Law.LAPLACE
        try:
            counting(
                options.picture or SHARE, law, Budget(self.epsilon, options.stated_delta),
                Relation(options.relation), rows.n, options.k, rows.schema.kinds,
                bits_for(rows.n, options.grid), rows.schema.rows_a_person or 1,
            )  # fmt: skip
        except CannotRun:
            # by the program that a release asks, so that both refuse the same
            return "✗", "would drown under this ceiling"
        return "✓", "is counted in above" if options.picture else "takes a part of ε"

    @property
    def drowns(self) -> bool:
        """Whether a picture is asked for that a release would refuse to pay for."""
        return self.outlook.options.picture > 0 and self.counts[0] == "✗"

    @property
    def short(self) -> bool:
        """Whether less survives than was asked for."""
        return self.outlook.recovery < self.answers.recovery

    @property
    def verdict(self) -> str:
        """``yes``, ``no``, or ``look`` where the limits are not public."""
        if self.answers.shows_rows or self.drowns or self.short:
            return "no"
        return "look" if self.prospect.rows.schema.from_data else "yes"

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        if self.answers.shows_rows:
            return "No. A picture of the people cannot be published, at any ceiling."
        if self.drowns:
            return "Not with a picture of counts: it would drown under your ceiling."
        if self.verdict != "no":
            return (
                f"{'Yes' if self.verdict == 'yes' else 'It could be'}. About {self.kept} of 100 "
                "parts survive at your ceiling."
            )
        # the questions ask in parts of 100, so the answer does
        wanted = self.answers.survive
        if self.needed is None and self.prospect.without_noise < self.answers.recovery:
            return f"No. Under these limits no ε keeps {wanted} of 100 parts."
        if self.needed is None:
            return f"No. {wanted} of 100 parts need an ε above 100."
        return f"Not under your ceiling. {wanted} of 100 parts need ε {numeral(self.needed, 2)}."

    @property
    def under(self) -> str:
        """What stands under the answer."""
        if self.answers.shows_rows:
            return REFUSED[0]
        if self.drowns:
            return "Release would refuse it. Leave the picture out, or raise the ceiling."
        if self.short:
            if self.needed is None:
                return f"Without any noise they keep {_parts(self.prospect.without_noise)} of 100."
            after = becomes(self.needed)
            hardly = ": <b>hardly protection</b>" if after >= 100 * HARDLY else ""
            return (
                "Then a suspicion that is right 1 time in 100 may become right at most "
                f"{of_hundred(after)} times{hardly}."
            )
        low = max(0, math.floor(100 * self.outlook.low + 1e-9))
        asked = f"In 95 of 100 releases at least {low} do. You asked for {self.answers.survive}."
        if self.verdict == "look":
            return (
                f"{asked} But the limits are taken from this table, which is not public: state "
                "those that were known before."
            )
        return asked


def card(prospect: Prospect, answers: Answers) -> CeilingCard:
    """Return the live card of the answers."""
    epsilon = epsilon_under(answers.ceiling)
    return CeilingCard(
        prospect, answers, epsilon, prospect.best(epsilon), prospect.needed(answers.recovery)
    )


def _parts(share: float) -> str:
    return str(max(0, math.floor(100 * share + 1e-9)))


_STYLE = """
.dp-ceiling { font-size: 14.5px; line-height: 1.35; border: 1px solid #8a93a066;
  border-radius: 6px; }
.dp-ceiling .dp-head { padding: 8px 18px; border-left: 6px solid; border-radius: 6px 6px 0 0; }
.dp-ceiling .yes { border-color: #21796e; background: #21796e1f; }
.dp-ceiling .no { border-color: #b8001d; background: #b8001d1f; }
.dp-ceiling .look { border-color: #846300; background: #8463001f; }
.dp-ceiling h2 { font-size: 20px !important; margin: 0; padding: 0; }
.dp-ceiling h3 { font-size: 15.5px !important; margin: 8px 0 2px; padding: 0; }
.dp-ceiling p { margin: 2px 0; }
.dp-ceiling .dp-two { display: grid; grid-template-columns: 1fr 1fr; gap: 4px 28px;
  padding: 2px 18px 12px; }
.dp-ceiling .dp-dots { display: flex; gap: 18px; }
.dp-ceiling figure { margin: 0; } .dp-ceiling small { font-size: 13.5px; opacity: .8; }
.dp-ceiling table { border-collapse: collapse; width: 100%; font-size: 14px; }
.dp-ceiling td, .dp-ceiling th { padding: 2px 8px 2px 0; border-bottom: 1px solid #8a93a044;
  text-align: left; }
.dp-ceiling .dp-tag { border: 1px solid #8a93a0; border-radius: 9px; padding: 0 8px;
  font-size: 13px; }
.dp-ceiling img { max-width: 100%; border-radius: 4px; }
.dp-ceiling.dp-plan::after { content: "PLAN"; position: absolute; left: 30%; top: 40%;
  font-size: 120px; font-weight: 700; opacity: .1; transform: rotate(-24deg);
  pointer-events: none; }
.dp-ceiling.dp-plan { position: relative; }
@media (max-width: 900px) { .dp-ceiling .dp-two { grid-template-columns: 1fr; } }
"""
_MARK = {"yes": "✓", "no": "✗", "look": "?"}


def html(found: CeilingCard, *, plan: bool = False) -> str:
    """Return the live card as one HTML element with its style.

    Parameters
    ----------
    found : CeilingCard
    plan : bool
        Whether it is marked as a plan: nothing was released.
    """
    verdict = found.verdict
    head = (
        f'<div class="dp-head {verdict}"><h2>{_MARK[verdict]} {escape(found.headline)}</h2>'
        f"<p>{found.under}</p></div>"
    )
    if found.answers.shows_rows:
        body = f'<div class="dp-two"><div><p>{escape(REFUSED[1])}</p></div>{_publish(found)}</div>'
    else:
        middle = _helps(found) if found.short else _loadings(found)
        body = f'<div class="dp-two">{_risk(found)}{middle}{_curve(found)}{_publish(found)}</div>'
    foot = (
        '<p style="padding:0 18px 6px"><small>Nothing has been spent. Predicted from the rows, '
        'for exactly what Release runs. <span class="dp-tag">working view, stays in the house'
        "</span></small></p>"
    )
    mark = " dp-plan" if plan else ""
    return f'<style>{_STYLE}</style><div class="dp-ceiling{mark}">{head}{body}{foot}</div>'


def short(found: CeilingCard) -> str:
    """Return the answer in a line: what is said, what a suspicion becomes, what survives."""
    word = {"yes": "Yes", "no": "No", "look": "It could be"}[found.verdict]
    after = of_hundred(becomes(found.epsilon))
    return (
        f'<span class="dp-short"><b>{_MARK[found.verdict]} {word}</b> · 1 → {after} in 100 · '
        f"{found.kept} of 100</span>"
    )


def plan(found: CeilingCard) -> str:
    """Return the card as JSON, marked as the plan that it is; `dpviz verify` takes it for no card.

    It holds predictions from the rows: a working view.
    """
    options, seen, rows = found.outlook.options, found.outlook, found.prospect.rows
    written = {
        "dpviz_card": CARD_FORMAT,
        "status": PLAN,
        "copy": "working view, stays in the house",
        "title": found.prospect.name,
        "n": rows.n,
        "d": len(rows.schema.used),
        "k": options.k,
        "verdict": found.verdict,
        "said": found.headline,
        "claim": {
            "epsilon": found.epsilon,
            "delta": options.stated_delta,
            "suspicions": [{"before": PRIOR, "after": becomes(found.epsilon) / 100}],
        },
        "unit": {
            "protected": str(rows.schema.unit),
            "rows": rows.schema.rows_a_person or 1,
            "person": rows.schema.person or None,
            "neighbours": options.relation,
        },
        "release": {
            name: getattr(options, name)
            for name in ("rows", "row_bound", "center", "scale", "picture")
        },
        "limits_taken_from_the_table": rows.schema.from_data,
        "predicted": {
            "recovery": seen.recovery,
            "in_95_of_100": seen.low,
            "without_noise": seen.without_noise,
        },
    }
    return f"{json.dumps(written, indent=1, allow_nan=False)}\n"


def page(found: CeilingCard) -> str:
    """Return the card as a page to print: a plan, for nothing was released."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>dpviz: plan</title>'
        "<style>@page { size: A4; margin: 12mm; } body { font-family: system-ui, sans-serif; "
        "max-width: 60em; margin: 16px auto; color: #1c2530; }</style></head><body><h1>Plan of a "
        f"release: {escape(found.prospect.name)}</h1>{html(found, plan=True)}</body></html>\n"
    )


def _risk(found: CeilingCard) -> str:
    refused = found.short and not found.drowns and found.needed is not None
    # refused, it tells what the recovery that was asked for would cost
    epsilon = found.needed if refused and found.needed is not None else found.epsilon
    after, delta = becomes(epsilon), found.outlook.options.stated_delta
    shown = of_hundred(after)
    rows = found.prospect.rows.schema.rows_a_person
    unit = "row" if rows is None else "person"
    who = f"{'? ' * (rows is None)}This {protects(rows)}."
    said = (
        "she is in the table"
        if found.outlook.options.relation == "zero-out"
        else ("this record is hers")
    )
    beyond = excess_probability(epsilon, delta, math.log(2)) if delta else 0.0
    odds = (
        f" In at most {of_million(beyond)} releases the odds grow by more than twice as much."
        if beyond
        else ""
    )
    title = "The risk it would take" if refused else "The risk"
    spent = Spent(epsilon, delta, False, "claim")
    phrase = capital(risk_words("this release", spent, epsilon))
    return (
        f"<div><h3>{title}, for each {unit} in {found.prospect.rows.n:,} rows</h3>"
        f'<div class="dp-dots"><figure>{hundred(1, "before: 1 of 100", 92)}<figcaption>'
        f"<small>before: 1 of 100 suspicions<br>“{said}” is right</small></figcaption></figure>"
        f"<figure>{hundred(math.ceil(after - 1e-9), f'after: at most {shown}', 92)}<figcaption>"
        f"<small>after: at most <b>{shown}</b>,<br>whatever else is known</small></figcaption>"
        f"</figure></div><p><b>{who}</b> {phrase}. That is ε {numeral(epsilon, 3)}."
        f"<small>{odds}</small></p></div>"
    )


def _ceiling(epsilon: float) -> str:
    """Return the ceiling that an epsilon keeps to, as it is asked for."""
    return f"{of_hundred(becomes(epsilon))} in 100"


_ALL = {1: "it", 2: "both components"}


def _loadings(found: CeilingCard) -> str:
    seen, names = found.outlook, found.prospect.rows.schema.names_used
    first = seen.truth[:, 0]
    # stable, so that equal loadings keep the order of the columns
    order = np.argsort(-np.abs(first), kind="stable")[: min(5, len(first))]
    # the largest loading, which a reader would name
    top = int(order[0])
    low, high = seen.low_bars[:, 0], seen.high_bars[:, 0]
    still = bool(low[top] > 0 if first[top] > 0 else high[top] < 0)
    wide, left, row = 400, 130, 19
    unit = (wide - left - 20) / 2
    middle = left + unit
    parts = [f'<path d="M{middle} 4V{8 + row * len(order)}" stroke="#8a93a0"/>']
    for at, j in enumerate(order):
        y = 14 + row * at
        # a bar across zero leaves even the sign open
        clear = low[j] > 0 or high[j] < 0
        colour = "var(--mark)" if clear else "#8a93a0"
        ends = [decimals(float(middle + unit * value), 1) for value in (low[j], high[j], first[j])]
        name = names[j] if len(names[j]) <= 18 else f"{names[j][:10]}…{names[j][-7:]}"
        parts.append(
            f'<text x="{left - 8}" y="{y + 4}" text-anchor="end" font-size="13">{escape(name)}'
            f'</text><path d="M{ends[0]} {y}H{ends[1]}" stroke="{colour}" stroke-width="7" '
            f'stroke-opacity=".45"/><circle cx="{ends[2]}" cy="{y}" r="4" fill="currentColor"/>'
        )
    svg = _svg(wide, 12 + row * len(order), "".join(parts))
    words = "Loadings of component 1, the largest first, and where 95 of 100 releases put them"
    return (
        f"<div><h3>Would you still say “{escape(names[top][:60])} drives component 1”? "
        f"{'Yes.' if still else 'No.'}</h3>"
        f"{picture(svg, words, wide, 12 + row * len(order))}<p><small>Dot: the table’s own "
        f"loading. Bar: where 95 of 100 releases put it. In {_parts(seen.readable)} of 100 "
        f"releases {_ALL.get(seen.options.k, f'all {seen.options.k} components')} can be told from "
        "noise and from each other.</small></p>"
        f"{_lost(found)}{_far(found)}</div>"
    )


def _far(found: CeilingCard) -> str:
    """Return a warning where the length of the centre would be what a release finds."""
    seen = found.outlook
    if seen.centre_share <= LOUD or seen.options.center == PRIVATE:
        return ""
    return (
        "<p><b>? The stated centre is far from the rows</b>: component 1 would be their mean. "
        "State typical values that are nearer.</p>"
    )


def _lost(found: CeilingCard) -> str:
    """Return what the limits cost without any noise, and what the noise costs, as two bars."""
    seen = found.outlook
    # the limits cost next to nothing: noise alone is worth a word
    if seen.without_noise >= 0.95:
        return ""
    # of the rounded parts, so that the bars add up to what is said above
    limits = 100 - int(_parts(seen.without_noise))
    bars = "".join(
        f'<tr><td>lost to {what}</td><td style="white-space:nowrap">{count} of 100</td>'
        f'<td style="width:35%"><div style="height:10px;width:{count}%;background:{colour}">'
        "</div></td></tr>"
        for what, count, colour in (
            ("the stated limits, with no noise", limits, "#846300"),
            ("noise", max(0, 100 - limits - found.kept), "#1f5fa8"),
        )
    )
    tails = "; ".join(
        f"“{escape(name)}” is cut in {math.ceil(100 * share)} of 100 rows"
        for name, share in found.prospect.rows.tails.items()
    )
    offer = (
        f"<p>{tails}. A wide limit and its logarithm, one tick in the schema, keep a long tail.</p>"
        if tails
        else ""
    )
    return f"<table>{bars}</table>{offer}"


_INK = (
    "<style>svg{color:#1c2530;--mark:#1f5fa8;--false:#b8001d;--quiet:#55616d}"
    "@media (prefers-color-scheme:dark){"
    "svg{color:#dce2e9;--mark:#6fb1ea;--false:#ff8f86;--quiet:#a3afbb}}</style>"
)


def _svg(wide: int, high: int, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" '
        f'height="{high}" font-family="sans-serif" fill="currentColor">{_INK}{body}</svg>'
    )


def _helps(found: CeilingCard) -> str:
    # a change that asks for more than doing nothing is no help
    most = math.inf if found.needed is None else found.needed
    rows = [
        *(
            (words, e)
            for words, e in found.prospect.helps(found.answers.recovery)
            if e is not None and e < most
        ),
        ("nothing", found.needed),
    ]
    body = "".join(
        f"<tr><td>{escape(words)}</td><td>{'not enough' if e is None else _ceiling(e)}"
        f"</td><td>{'' if e is None else 'ε ' + numeral(e, 2)}</td></tr>"
        for words, e in rows
    )
    limits = (
        "<p>State the limits that were known before: wide ones cost noise, narrow ones cut.</p>"
    )
    return (
        f"<div><h3>What is left under your ceiling: {found.kept} of 100 parts</h3>"
        "<h3>What would help</h3><table><tr><th>change one thing</th><th>ceiling</th>"
        f"<th></th></tr>{body}</table>{limits}{_lost(found)}{_far(found)}</div>"
    )


def _curve(found: CeilingCard) -> str:
    """Return what survives by ceiling, and what risk each recovery needs."""
    # at each epsilon the pipeline that keeps most, as the answer takes it
    best = [max(kept[at] for _, kept in found.prospect.curves) for at in range(len(EPSILONS))]
    wide, high, left, top = 400, 146, 34, 10
    across, down = wide - left - 12, high - top - 36

    def x(epsilon: float) -> float:
        return left + across * min(epsilon, EPSILONS[-1]) / EPSILONS[-1]

    def y(recovery: float) -> float:
        return top + down * (1 - max(0.0, min(1.0, recovery)))

    line = "L".join(
        f"{decimals(x(e), 1)} {decimals(y(v), 1)}" for e, v in zip(EPSILONS, best, strict=True)
    )
    # the epsilon whose odds take the suspicion as far
    half = math.log(HARDLY / (1 - HARDLY)) - math.log(PRIOR / (1 - PRIOR))
    ticks = "".join(
        f'<text x="{decimals(x(math.log(c / (100 - c) * 99)), 1)}" y="{high - 22}" '
        f'text-anchor="middle" font-size="12">{c}</text>'
        for c in (2, 5, 10, 25, 50, 75, 90, 98)
    )
    sides = "".join(
        f'<text x="{left - 6}" y="{decimals(y(v) + 4, 1)}" text-anchor="end" font-size="12">'
        f"{round(100 * v)}</text>"
        for v in (0.0, 0.5, 1.0)
    )
    at, wanted = x(found.epsilon), y(found.answers.recovery)
    body = (
        f'<rect x="{decimals(x(half), 1)}" y="{top}" width="{decimals(x(9.2) - x(half), 1)}" '
        f'height="{down}" fill="var(--false)" fill-opacity=".1"/><text x="{decimals(x(6.9), 1)}" '
        f'y="{top + down - 12}" text-anchor="middle" font-size="13" fill="var(--false)">hardly '
        f'protection</text><path d="M{left} {decimals(wanted, 1)}H{wide - 12}" '
        f'stroke="var(--quiet)" stroke-dasharray="2 3"/><path d="M{line}" fill="none" '
        'stroke="currentColor" stroke-width="2.4"/>'
        f'<path d="M{decimals(at, 1)} {top}V{top + down}" stroke="var(--mark)" stroke-width="2"/>'
        f'<circle cx="{decimals(at, 1)}" '
        f'cy="{decimals(y(found.outlook.recovery), 1)}" r="5" fill="var(--mark)"/>{ticks}{sides}'
        f'<text x="{left + across / 2}" y="{high - 5}" text-anchor="middle" font-size="12">'
        "ceiling, … in 100</text>"
    )
    words = f"Parts of 100 that survive by ceiling: {found.kept} at yours"
    rows = "".join(
        f"<tr><td>{_parts(level)} of 100</td>"
        + (
            "<td>not reached</td><td></td>"
            if (e := found.prospect.needed(level)) is None
            else f"<td>{_ceiling(e)}</td><td>{numeral(e, 2)}</td>"
        )
        + "</tr>"
        for level in LEVELS
    )
    return (
        f"<div><h3>Parts of 100 that survive, by ceiling</h3>"
        f"{picture(_svg(wide, high, body), words, wide, high)}"
        "<table><tr><th>must survive</th><th>ceiling</th><th>ε</th></tr>"
        f"{rows}</table></div>"
    )


def _publish(found: CeilingCard) -> str:
    k = found.prospect.options.k
    items: Mapping[str, tuple[str, str]] = {
        f"the {k} components (loadings)": ("✓", "what ε pays for"),
        "the spectrum, with its noise edge": ("✓", "costs nothing more"),
        "points drawn from these": ("✓", "cost nothing more"),
        "a picture of counts": found.counts,
        "the picture of the people": ("✗", "at no ε"),
    }
    rows = "".join(
        f"<tr><td>{mark} {escape(what)}</td><td><small>{escape(words)}</small></td></tr>"
        for what, (mark, words) in items.items()
    )
    schema = found.prospect.rows.schema
    unit = (
        f"more than {rows_words(schema.rows_a_person)} of a person"
        if schema.rows_a_person is not None
        else "who has more than one row: how many a person has was not said"
    )
    return (
        f"<div><h3>May I publish …</h3><table>{rows}</table><h3>Not protected, whatever ε is</h3>"
        f"<p><small>What is true of everybody; a family together; {unit}; that the table has "
        f"{found.prospect.rows.n:,} rows and these columns.</small></p></div>"
    )
