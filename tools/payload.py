"""Write the JSON Schemas of what dpviz hands out, and the types that the board's script is held to.

``python -m tools.payload`` writes docs/board.schema.json and
dpviz/report/figures/board/payload.d.ts from the classes of `dpviz.report.tables.payload`, and
docs/results.schema.json from those of `dpviz.studies.results`: one definition for each question's
answer. With ``--check`` it only says whether they are as written.
"""

from __future__ import annotations

import argparse
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from dpviz.core.params import Declared, Param, params_of
from dpviz.core.settings import Settings
from dpviz.report.figures import board
from dpviz.report.tables.payload import Payload
from dpviz.studies.options import type_of
from dpviz.studies.results import RESULTS

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "docs" / "board.schema.json"
ANSWERS = ROOT / "docs" / "results.schema.json"
TYPES = Path(board.__file__).parent / "payload.d.ts"
_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", type(None): "null"}
_NOTE = re.compile(r"^    ([\w, ]+) : (.*(?:\n        .*)*)$", re.MULTILINE)


def _declares(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Declared)


def typed_dicts(*kinds: Any) -> Iterator[Any]:
    """Yield every TypedDict that types are made of, each once, in the order of their use."""
    seen: list[Any] = []
    waiting = list(kinds)
    while waiting:
        one = waiting.pop(0)
        if one in seen:
            continue
        if is_typeddict(one):
            seen.append(one)
            yield one
            waiting += get_type_hints(one).values()
        else:
            waiting += get_args(one)


def notes(kind: Any) -> dict[str, str]:
    """Return what the docstring of a TypedDict says of its fields."""
    found = {}
    for names, text in _NOTE.findall(kind.__doc__ or ""):
        for name in names.split(","):
            found[name.strip()] = " ".join(text.split())
    return found


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; declared options say their own.

    Raises
    ------
    TypeError
        If JSON has no such type.
    """
    origin, inside = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if is_typeddict(kind) or _declares(kind):
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inside]}
    if origin is list:
        return {"type": "array", "items": schema_of(inside[0])}
    if origin is Literal:
        return {"enum": list(inside)}
    if origin is tuple and inside[1:] == (...,):
        return {"type": "array", "items": schema_of(inside[0])}
    if origin is tuple:
        count = len(inside)
        items = [schema_of(one) for one in inside]
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(inside[1])}
    raise TypeError(f"JSON has no {kind}")


def _option(param: Param) -> dict[str, Any]:
    """Return the schema of an option as settings write it: what is optional may be null."""
    kind = str if param.kind == "choice" else type_of(param)
    return schema_of(kind)  # its help stands in the reference


def _settings(kind: type[Declared]) -> dict[str, Any]:
    properties = {name: _option(param) for name, param in params_of(kind).items()}
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _definition(kind: Any) -> dict[str, Any]:
    said = notes(kind)
    properties = {
        name: schema_of(hint) | ({"description": said[name]} if name in said else {})
        for name, hint in get_type_hints(kind).items()
    }
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": [name for name in properties if name in kind.__required_keys__],
        "additionalProperties": False,
    }


def answers() -> str:
    """Return the schema of every question's answer: a definition under the question's name."""
    shapes = {kind.__name__: _definition(kind) for kind in typed_dicts(*RESULTS.values())}
    shapes[Settings.__name__] = _settings(Settings)
    named = {name: schema_of(kind) for name, kind in RESULTS.items()}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the functions and commands of dpviz answer, as JSON",
        "description": "An answer of compare is held against #/$defs/compare, and so on.",
        "$defs": named | shapes,
    }
    return json.dumps(whole, indent=1) + "\n"


def schema() -> str:
    """Return the schema as it is published."""
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The payload of a dpviz board",
        "$ref": f"#/$defs/{Payload.__name__}",
        "$defs": {kind.__name__: _definition(kind) for kind in typed_dicts(Payload)},
    }
    return json.dumps(whole, indent=1) + "\n"


def script_type(kind: Any) -> str:
    """Return a type of the payload as the script's checker writes it."""
    origin, inside = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return str(kind.__name__)
    if kind in _PLAIN:
        return "number" if kind is int else _PLAIN[kind]
    if origin in (Union, types.UnionType):
        return " | ".join(script_type(one) for one in inside)
    if origin is list:
        written = script_type(inside[0])
        return f"({written})[]" if " | " in written else f"{written}[]"
    if origin is tuple:
        return f"[{', '.join(script_type(one) for one in inside)}]"
    if origin is dict:
        return f"Record<string, {script_type(inside[1])}>"
    raise TypeError(f"the script has no {kind}")


def script_types() -> str:
    """Return the types of the payload for the script."""
    lines = ["// Written by python -m tools.payload from dpviz/report/tables/payload.py."]
    for kind in typed_dicts(Payload):
        said = notes(kind)
        lines += ["", f"/** {(kind.__doc__ or '').partition(chr(10))[0]} */"]
        lines.append(f"export interface {kind.__name__} {{")
        for name, hint in get_type_hints(kind).items():
            if name in said:
                lines.append(f"  /** {said[name]} */")
            mark = "" if name in kind.__required_keys__ else "?"
            lines.append(f"  {name}{mark}: {script_type(hint)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, or compare them with what is there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    made = {SCHEMA: schema(), TYPES: script_types(), ANSWERS: answers()}
    if parser.parse_args().check:
        kept = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in made}
        return int(kept != made)
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
