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
from dpviz.lessons.ceiling import HARDLY, PRIOR
from dpviz.releasing.options import ReleaseOptions, stated_row_bound
from dpviz.releasing.schema import Schema
from dpviz.report.privacy_card import suspicion_words

_STYLE = """
.dp-receipt { font-size: 14.5px; line-height: 1.4; border: 1px solid #8a93a066; border-radius: 6px;
  padding: 10px 16px; }
.dp-receipt h2 { font-size: 20px !important; margin: 0; padding: 0; }
.dp-receipt p { margin: 4px 0; }
.dp-receipt dl { margin: 6px 0; } .dp-receipt dt { font-weight: 600; margin-top: 5px; }
.dp-receipt dd { margin: 0; overflow-wrap: anywhere; }
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
    said: dict[str, Any] = {}
    for name, text in written.items():
        # a form that is being filled in is wrong for a while: the field is then still open
        with suppress(DpvizError):
            said[name] = params_of(ReleaseOptions)[name].parse(text)
    # nobody said how many rows a person has: rows alone are protected
    unknown = "? " if rows_a_person is None else "✓ "
    lines = {
        "Protects": f"{unknown}This {protects(rows_a_person)}.",
        "Leaves the house": _leaves(said),
        "Limits": _limits(schema),
        "Rows": _rows(said),
        "Noise": _noise(said),
        "Purpose": _stated(said, "purpose", "that of the ledger"),
        "By": _stated(said, "by", "nobody named"),
    }
    body = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in lines.items())
    return (
        f'<style>{_STYLE}</style><div class="dp-receipt"><h2>What the card will say</h2>'
        "<p>A plan: nothing has been spent, no noise is drawn.</p>"
        f'<dl>{body}</dl><p class="dp-sum">{escape(_claim(said))}</p>{_risk(said)}'
        "<p>Loadings, their bars and what survives are known only after it is paid for.</p></div>"
    )


def _stated(said: Mapping[str, Any], name: str, otherwise: str) -> str:
    return str(said.get(name) or otherwise)


def _leaves(said: Mapping[str, Any]) -> str:
    if "k" not in said:
        return f"{_OPEN}: k"
    k = said["k"]
    share = said.get("picture", 0.0)
    picture = f", and a picture of counts for {numeral(share, 3)} of the budget" if share else ""
    return f"{k} component{'s' * (k != 1)}, the spectrum with its noise edge{picture}"


def _limits(schema: Schema | None) -> str:
    if schema is None:
        return f"{_OPEN}: the schema"
    found = f"low and high of {len(schema.used)} columns"
    if schema.from_data:
        return f"? {found}, taken from this table: not private"
    return f"✓ {found}, known before anybody looked"


def _rows(said: Mapping[str, Any]) -> str:
    around = {PRIVATE: "a private mean", "none": "zero"}.get(
        said.get("center", ""), "the stated centre"
    )
    scaled = "features over half the width of their limits, rows " * (said.get("scale") == "limits")
    if said.get("rows") == UNIT:
        return f"{scaled}scaled to length one around {around}"
    try:
        bound = float(stated_row_bound(said["row_bound"]))
    except DpvizError:
        return f"{_OPEN}: the row bound"
    return f"{scaled}shortened to {numeral(bound, 4)} around {around}"


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
    return f"<p>{escape(words)}{hardly}</p>"
