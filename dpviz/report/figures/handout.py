"""A report of one comparison: HTML that a browser can print without a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from dpviz.core import VERSION
from dpviz.core.number_text import numeral
from dpviz.core.params import Param, params_of
from dpviz.core.settings import Settings
from dpviz.mechanisms import Mechanism, all_mechanisms
from dpviz.mechanisms._base import Reference
from dpviz.preparation.bounding import Prepared
from dpviz.report.figures.board import assets, written
from dpviz.report.sentences import explore
from dpviz.report.sentences.phrases import account_words
from dpviz.report.tables.payload import Payload
from dpviz.simulation.compare import Comparison

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62em; margin: 24px auto; padding: 0 16px;
  color: #1c2530; background: #fff; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin: 26px 0 8px; break-after: avoid; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid #c3ccd6;
  vertical-align: top; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 14px; background: #f3f6f9;
  padding: 10px; }
@media print { body { margin: 0; max-width: none; font-size: 10.5pt; } pre { background: none;
  padding: 0; } section { break-inside: avoid; } }
"""


def report_page(
    comparison: Comparison,
    payload: Payload | None,
    *,
    command: str,
    link: str,
    card: str = "",
    private: bool = False,
) -> str:
    """Return the report of a comparison as one HTML page.

    Parameters
    ----------
    comparison : Comparison
        Results to report.
    payload : Payload or None
        Data of the comparison figure; only published charts if ``private``.
    command, link : str
        Command and link that reproduce the numbers; the link may be empty.
    card : str
        A stakeholder's privacy card as HTML; empty if there is none.
    private : bool
        Whether to leave out rows, comparisons with rows, and the privacy card.
    """
    prepared = comparison.prepared
    name = prepared.name
    answer = "" if private else _answer(comparison)
    script = "" if payload is None else _board_script(payload, exact=not private)
    last = "This report compares with the exact result and is not itself private."
    if private:
        last = "This report contains no row and no exact result."
        if payload is not None and isinstance(prepared, Prepared):
            last = explore.published_words(payload, prepared)
    sections = {
        "The board": "" if payload is None else '<div id="board"></div>',
        # A private report leaves out the statement too, because it compares with the exact result.
        "The answer": "" if private else card,
        "Claims": _claims(comparison),
        "Assumed public": _list(comparison.assumed_public),
        "Changes to the table": _list(prepared.notes) if prepared.notes and not private else "",
        "Settings": _settings(comparison, name),
        "How to repeat this report": _same_again(
            command, link, None if private else comparison.settings.seed
        ),
        "Papers": f"<pre>{escape(bibtex(one.mechanism for one in comparison.results))}</pre>",
    }
    body = "".join(
        f"<section><h2>{title}</h2>{inside}</section>"
        for title, inside in sections.items()
        if inside
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<title>dpviz: {escape(name)}</title><style>{assets().css}{_STYLE}</style></head>"
        f"<body><h1>{escape(name)}: what privacy costs this PCA</h1>{answer}{body}"
        f"<p>{escape(last)}</p>{script}</body></html>"
    )


def _answer(comparison: Comparison) -> str:
    return (
        f"<p><strong>{escape(explore.verdict(comparison))}</strong></p>"
        f"<p>{escape(explore.facts(comparison))}</p>"
    )


def _same_again(command: str, link: str, seed: int | None) -> str:
    """Describe how to reproduce the numbers, or state that they differ without a seed."""
    numbers = (
        "a repetition has other noise."
        if seed is None
        else f"seed {seed}: the same version and seed give the same numbers."
    )
    commands = [f"<pre>{escape(line)}</pre>" for line in (command, link) if line]
    return "".join(commands) + f"<p>dpviz {escape(VERSION)}, {numbers}</p>"


def _board_script(payload: Payload, *, exact: bool) -> str:
    options = {"controls": [], "strip": False, "answer": False, "exact": exact}
    return (
        f'<script id="payload" type="application/json">{written(payload)}</script>'
        f"<script>{assets().js}\nDpvizBoard.mount(document.getElementById('board'), "
        f"JSON.parse(document.getElementById('payload').textContent), {written(options)});</script>"
    )


def _list(items: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def _claims(comparison: Comparison) -> str:
    rows = "".join(
        f"<tr><td>{escape(result.mechanism.label)}</td><td>{escape(result.status.marked)}</td>"
        f"<td>{escape(account_words(result.claimed, result.spent))}</td>"
        f"<td>{escape(result.status.evidence)}</td></tr>"
        for result in comparison.results
    )
    failures = _list([f"{item.mechanism}: {item.reason}" for item in comparison.skipped])
    return (
        "<table><thead><tr><th>Mechanism</th><th>Claim</th><th>Account</th><th>Why</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
        + (f"<p>Not run:</p>{failures}" if comparison.skipped else "")
    )


def _settings(comparison: Comparison, name: str) -> str:
    settings = comparison.settings
    values = {param.label: param.format(getattr(settings, key)) for key, param in _params().items()}
    values["Table"] = name
    values["Delta"] = numeral(comparison.budget.delta, 6)
    values["Mechanisms"] = ", ".join(result.mechanism.text for result in comparison.results)
    rows = "".join(
        f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>"
        for label, value in values.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"


def _params() -> dict[str, Param]:
    return dict(params_of(Settings))


# The papers that a report cites -------------------------------------------------------------

# A source looks like "Jiang et al. 2016", "Balle and Wang 2018" or "Liu, Kong, Jain and Oh 2022".
_NAMED = re.compile(
    r"((?:d')?[A-Z][a-z]+)(?: et al\.|(?:, [A-Z][a-z]+)*(?: and [A-Z][a-z]+)?) (\d{4})"
)


def sources_of(mechanism: Mechanism) -> list[tuple[str, str]]:
    """Return first author and year of every paper that a mechanism names as its source."""
    return _NAMED.findall(mechanism.info.paper)


def references(mechanisms: Iterable[Mechanism]) -> tuple[Reference, ...]:
    """Return the papers that define the mechanisms, each once, in the order of names."""
    sources = {source for mechanism in mechanisms for source in sources_of(mechanism)}
    papers = [one for cls in all_mechanisms().values() for one in cls.info.references]
    return tuple(sorted((one for one in papers if one.names in sources), key=_by_name))


def _by_name(one: Reference) -> str:
    return one.key.lower().replace("'", "")


def bibtex(mechanisms: Iterable[Mechanism]) -> str:
    """Return the BibTeX entries of the papers that define the given mechanisms."""
    return "\n\n".join(one.bibtex for one in references(mechanisms))
