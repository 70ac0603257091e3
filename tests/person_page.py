"""One person dragged, on a page that needs no server: for tests of its script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dpviz.report.figures.person import MARKUP, script, style


def person_page(payload: Mapping[str, Any]) -> str:
    """Return a page that shows one payload of `dpviz.lessons.person` without any server."""
    # "</" would end the script element, wherever a label might hold it
    data = json.dumps(payload, separators=(",", ":")).replace("</", "<\\/")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Drag one person</title><style>{style()}"
        "body { margin: 16px; } @media (prefers-color-scheme: dark) "
        "{ body { background: #030508; --st-text-color: #dce2e9; "
        "--st-background-color: #030508; } }"
        f"</style>{MARKUP}<script>{script()}\n"
        f'dpvizPerson(document.querySelector(".dp-root"), {data}, null);</script></html>'
    )
