"""Write the answers and links that must not change by the way: tests/golden/kept.

``python -m tools.kept`` asks ten questions and reads ten links; whoever means to change what users
get writes the files again and reads the difference. With ``--check`` it only says whether they are
as written.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import dpviz
from dpviz.core.files import json_text
from dpviz.core.settings import Settings
from dpviz.studies import Answer, versions
from pages.ui import link
from pages.ui.page_options import VIEWS, page_defaults

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "golden" / "kept"
LINKS = FOLDER / "links.json"
MADE_BY = FOLDER / "versions.json"
PLAN = "plan:n=1e5,spectrum=power:d=20,exponent=1.5,total=0.5"

# Mechanisms are named, so that a new one changes none of these; tables are small and draws few.
QUESTIONS: dict[str, Callable[[], Answer]] = {
    "ball": lambda: dpviz.compare(
        "iris",
        trials=4,
        mechanisms=["gaussian", "wishart_difference", "laplace", "ppca", "mvg[theorem=3]"],
    ),
    "pure": lambda: dpviz.compare(
        "iris",
        epsilon=0.5,
        delta=0,
        k=1,
        relation="zero-out",
        trials=4,
        mechanisms=["laplace_tight", "knorm", "laplace_output", "wishart", "non_private"],
    ),
    "box": lambda: dpviz.compare(
        ROOT / "data" / "example.csv",
        label="variety",
        domain="box",
        bounds="max",
        trials=4,
        post="free",
        allocation="binary:1:0.8",
        mechanisms=["gaussian", "directional_gaussian"],
    ),
    "private": lambda: dpviz.compare(
        "iris",
        epsilon=3,
        center="private",
        scale="private",
        row_bound="private:0.9",
        bounds="0:10",
        trials=3,
        mechanisms=["gaussian"],
    ),
    "plan": lambda: dpviz.compare(PLAN, trials=4, mechanisms=["gaussian", "wishart_difference"]),
    "sweep": lambda: dpviz.sweep(
        "wine", over=("epsilon", "k"), values=("0.1:10:2", "1,2"), trials=2, mechanisms="gaussian"
    ),
    "least": lambda: dpviz.least("iris", recovery=0.9, k=1, mechanisms=["gaussian", "laplace"]),
    "predict": lambda: dpviz.predict(PLAN, mechanisms=["gaussian", "wishart_difference"]),
    "audit": lambda: dpviz.audit("wishart", trials=500),
    "account": lambda: dpviz.account("gaussian", row_bound="private:0.9", releases="1,10"),
    "waterfall": lambda: dpviz.waterfall("iris", k=1, trials=4),
    "task": lambda: dpviz.task("iris", learner="k_means", epsilons="1", mechanisms="gaussian"),
}

ADDRESSES = (
    "v=1",
    "table=iris&epsilon=0.5&k=1&trials=5",
    "table=wine&delta=0&relation=zero-out&m=laplace,wishart",
    "table=iris&domain=box&bounds=0:10&center=midpoint",
    "table=digits&m=mvg[theorem=3,tail=tight],gaussian&seed=7",
    "table=iris&center=private&scale=private&row_bound=private:0.9&bounds=0:10",
    "table=wine&allocation=binary:1,2:0.8&post=free&scale=standardize",
    "table=upload&label=3&pin=epsilon%3D2%26table%3Dupload",
    "v=2&epsilon=-1&k=a&table=nowhere&strange=1",
    "spectrum=linear&axes=raw&draw=2&charts=all&part=audit",
)


def answer_text(name: str) -> str:
    """Return the JSON of one question's answer, as its command prints it."""
    return QUESTIONS[name]().to_json() + "\n"


def read_link(address: str) -> dict[str, Any]:
    """Return what a link is read as, and what the address bar says of that."""
    found = link.read(dict(parse_qsl(address, keep_blank_values=True)))
    query = {"v": link.LINK_VERSION} | found.settings.to_query(page_defaults())
    for store, cls in VIEWS.items():
        query |= found.views[store].to_query(cls())
    return {
        "settings": _changed(found.settings),
        "query": urlencode(query),
        "label": found.label_index,
        "pin": None if found.pin is None else _changed(found.pin),
        "notices": list(found.notices),
    }


def _changed(settings: Settings) -> dict[str, Any]:
    """Return the settings that are not a page's: which mechanisms those feature may change."""
    usual = page_defaults().to_json()
    return {name: value for name, value in settings.to_json().items() if value != usual[name]}


def links_text() -> str:
    """Return what every link is read as."""
    found = {address: read_link(address) for address in ADDRESSES}
    return json.dumps(found, indent=1) + "\n"


def numbers_by() -> dict[str, str]:
    """Return the versions on which the last digits of a number depend."""
    return {name: said for name, said in versions().items() if name in ("numpy", "scipy", "blas")}


def texts() -> dict[Path, str]:
    """Return every file and what is in it."""
    found = {FOLDER / f"{name}.json": answer_text(name) for name in QUESTIONS}
    return found | {LINKS: links_text(), MADE_BY: json_text(numbers_by()) + "\n"}


def main() -> int:
    """Write the files, or compare them with what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    made = texts()
    if check:
        return int(any(not p.exists() or p.read_text("utf-8") != t for p, t in made.items()))
    FOLDER.mkdir(exist_ok=True)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
