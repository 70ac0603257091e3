"""Preview a release's privacy statement from the stated options alone; no row is read."""

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


def html(texts: Mapping[str, str], schema: Schema | None, rows_a_person: int | None) -> str:
    """Return the preview of a privacy statement as one HTML element with its style.

    Parameters
    ----------
    texts : mapping of str to str
        Text of each form field; a field that cannot be parsed is shown as not yet stated.
    schema : Schema or None
        The declared schema; None while the schema is incomplete.
    rows_a_person : int or None
        Maximum number of rows of one person; None while not yet stated.
    """
    values = _read(texts)
    # If the number of rows per person is not stated, the release protects only single rows.
    unknown = "? " if rows_a_person is None else "✓ "
    lines = {
        "Protects": f"{unknown}This {protects(rows_a_person)}.",
        "Will be published": _leaves(values),
        "Limits": _limits(schema),
        "Rows": _rows(values),
        "Noise": _noise(values),
        "Purpose": _entry(values, "purpose", "same as in the ledger"),
        "By": _entry(values, "by", "not named"),
    }
    body = "".join(f"<dt>{name}</dt><dd>{escape(words)}</dd>" for name, words in lines.items())
    return (
        f'<style>{_STYLE}</style><div class="dp-receipt"><h2>The privacy card of this release</h2>'
        "<p>This is a plan. No budget has been used and no noise was generated.</p>"
        f'<dl>{body}</dl><p class="dp-sum">{escape(_claim(values))}</p>'
        "<p>Loadings and their bars appear after the release.</p></div>"
    )


def risk_html(texts: Mapping[str, str]) -> str:
    """Return a box with what an attacker can learn about one person at the stated epsilon."""
    return f"<style>{_STYLE}</style><div class='dp-risk'>{_risk(_read(texts))}</div>"


def _read(texts: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, text in texts.items():
        # A form is often invalid while somebody fills it in, so treat invalid fields as empty.
        with suppress(DpvizError):
            values[name] = params_of(ReleaseOptions)[name].parse(text)
    return values


def _entry(values: Mapping[str, Any], name: str, otherwise: str) -> str:
    return str(values.get(name) or otherwise)


def _leaves(values: Mapping[str, Any]) -> str:
    if "k" not in values:
        return f"{_OPEN}: k"
    k = values["k"]
    share = values.get("picture", 0.0)
    picture = (
        f", and a chart of noisy counts with {numeral(share, 3)} of the budget" if share else ""
    )
    return f"{k} component{'s' * (k != 1)}, the spectrum with its noise edge{picture}"


def _limits(schema: Schema | None) -> str:
    if schema is None:
        return f"{_OPEN}: the schema"
    words = f"lower and upper limits of {len(schema.used)} columns"
    if schema.from_data:
        return f"? {words}, taken from this table: not private"
    return f"✓ {words}, known before anybody saw the data"


def _rows(values: Mapping[str, Any]) -> str:
    around = {PRIVATE: "a private mean", "none": "zero"}.get(
        values.get("center", ""), "the stated centre"
    )
    scaling = "features divided by half the width of their limits, rows " * (
        values.get("scale") == "limits"
    )
    if values.get("rows") == UNIT:
        return f"{scaling}scaled to length one around {around}"
    try:
        bound = float(stated_row_bound(values["row_bound"]))
    except DpvizError:
        return f"{_OPEN}: the row-norm bound"
    return f"{scaling}clipped to {numeral(bound, 4)} around {around}"


def _noise(values: Mapping[str, Any]) -> str:
    if values.get("delta") is None:
        return f"{_OPEN}: delta"
    # A release uses this distribution of noise unless somebody names a mechanism.
    law = "Gaussian" if values["delta"] else "Laplace"
    return f"discrete {law} noise, by OpenDP from the system's entropy"


def _claim(values: Mapping[str, Any]) -> str:
    budget = {"ε": values.get("epsilon"), "δ": values.get("delta")}
    return " ".join(
        f"{sign} {'?' if value is None else numeral(value, 3)}" for sign, value in budget.items()
    )


def _risk(values: Mapping[str, Any]) -> str:
    if values.get("epsilon") is None:
        return ""
    after = posterior_bound(PRIOR, values["epsilon"])
    hardly = " <b>Hardly protection.</b>" if after >= HARDLY else ""
    # Use one decimal below 10 and above 99, as the page Decide does.
    words = suspicion_words({"before": PRIOR, "after": after}, int(after < 0.1 or after > 0.99))
    # This form is about one release alone; it knows no earlier releases of the ledger.
    return f"<p>{escape(f'By this release alone: {words[0].lower()}{words[1:]}')}{hardly}</p>"
