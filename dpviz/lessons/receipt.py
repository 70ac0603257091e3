"""What the card of a release will say, from what is stated of it alone: no row is read for it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from html import escape
from typing import Any

from dpviz.auditing.attack import posterior_bound
from dpviz.core.entries import PRIVATE, UNIT
from dpviz.core.errors import DpvizError
from dpviz.core.number_text import numeral
from dpviz.core.params import params_of
from dpviz.core.problem import protects
from dpviz.lessons.prospect import HARDLY, PRIOR
from dpviz.releasing.options import ReleaseOptions, stated_row_bound
from dpviz.releasing.schema import Schema
from dpviz.report.privacy_card import suspicion_words

_STYLE = """
.dp-receipt { font-size: 15px; line-height: 1.4; border: 1px solid #8a93a066; border-radius: 6px;
  padding: 10px 16px; }
.dp-receipt h2 { font-size: 17px !important; margin: 0; padding: 0; }
.dp-receipt p { margin: 4px 0; }
.dp-receipt dl { margin: 6px 0; } .dp-receipt dt { font-weight: 600; margin-top: 5px; }
.dp-receipt dd { margin: 0; overflow-wrap: anywhere; }
.dp-risk { border-left: 8px solid #b8001d; padding: 6px 12px; font-size: 16px;
  background: color-mix(in srgb, #b8001d 9%, transparent); }
.dp-risk p { margin: 0; }
.dp-receipt .dp-sum { border-top: 1px solid; padding-top: 6px; font-size: 16px; font-weight: 600; }
"""
_OPEN = "? to be stated"


def html(written: Mapping[str, str], schema: Schema | None, rows_a_person: int | None) -> str:
    """Return as one HTML element with its style what the card of a release will say.

    Parameters
    ----------
    written : mapping of str to str
        The form, field by field; what cannot be read is named as still to be stated.
    schema : Schema or None
        What is declared of the table; None while that is not complete.
    rows_a_person : int or None
        At most so many rows has one person; None while nobody said.
    """
    said = _read(written)
    # nobody said how many rows a person has: rows alone are protected
    unknown = "? " if rows_a_person is None else "✓ "
    lines = {
        "Protects": f"{unknown}This {protects(rows_a_person)}.",
        "Will be published": _leaves(said),
        "Limits": _limits(schema),
        "Rows": _rows(said),
        "Noise": _noise(said),
        "Purpose": _stated(said, "purpose", "same as the ledger"),
        "By": _stated(said, "by", "not named"),
    }
    body = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in lines.items())
    return (
        f'<style>{_STYLE}</style><div class="dp-receipt"><h2>The card of this release</h2>'
        "<p>This is a plan. Nothing has been spent and no noise was drawn.</p>"
        f'<dl>{body}</dl><p class="dp-sum">{escape(_claim(said))}</p>'
        "<p>Loadings and their bars appear after the release.</p></div>"
    )


def risk_html(written: Mapping[str, str]) -> str:
    """Return what an attacker can learn about one person at the stated epsilon, in a box."""
    return f"<style>{_STYLE}</style><div class='dp-risk'>{_risk(_read(written))}</div>"


def _read(written: Mapping[str, str]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name, text in written.items():
        # a form that is being filled in is wrong for a while: the field is then still open
        with suppress(DpvizError):
            said[name] = params_of(ReleaseOptions)[name].parse(text)
    return said


def _stated(said: Mapping[str, Any], name: str, otherwise: str) -> str:
    return str(said.get(name) or otherwise)


def _leaves(said: Mapping[str, Any]) -> str:
    if "k" not in said:
        return f"{_OPEN}: k"
    k = said["k"]
    share = said.get("picture", 0.0)
    picture = (
        f", and a chart of noisy counts with {numeral(share, 3)} of the budget" if share else ""
    )
    return f"{k} component{'s' * (k != 1)}, the spectrum with its noise edge{picture}"


def _limits(schema: Schema | None) -> str:
    if schema is None:
        return f"{_OPEN}: the schema"
    found = f"low and high of {len(schema.used)} columns"
    if schema.from_data:
        return f"? {found}, taken from this table: not private"
    return f"✓ {found}, known before anybody saw the data"


def _rows(said: Mapping[str, Any]) -> str:
    around = {PRIVATE: "a private mean", "none": "zero"}.get(
        said.get("center", ""), "the stated centre"
    )
    scaled = "features divided by half the width of their limits, rows " * (
        said.get("scale") == "limits"
    )
    if said.get("rows") == UNIT:
        return f"{scaled}scaled to length one around {around}"
    try:
        bound = float(stated_row_bound(said["row_bound"]))
    except DpvizError:
        return f"{_OPEN}: the row-norm bound"
    return f"{scaled}clipped to {numeral(bound, 4)} around {around}"


def _noise(said: Mapping[str, Any]) -> str:
    if said.get("delta") is None:
        return f"{_OPEN}: delta"
    # as a release chooses, where nobody names a mechanism
    law = "Gaussian" if said["delta"] else "Laplace"
    return f"discrete {law}, by OpenDP from the system's entropy"


def _claim(said: Mapping[str, Any]) -> str:
    stated = {"ε": said.get("epsilon"), "δ": said.get("delta")}
    return " ".join(
        f"{sign} {'?' if value is None else numeral(value, 3)}" for sign, value in stated.items()
    )


def _risk(said: Mapping[str, Any]) -> str:
    if said.get("epsilon") is None:
        return ""
    after = posterior_bound(PRIOR, said["epsilon"])
    hardly = " <b>Hardly protection.</b>" if after >= HARDLY else ""
    words = suspicion_words({"before": PRIOR, "after": after})
    # a form asks for one release: which ledger pays, and what it paid before, is another question
    return f"<p>{escape(f'By this release alone: {words[0].lower()}{words[1:]}')}{hardly}</p>"
