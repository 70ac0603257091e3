"""Write the JSON Schemas of what dpviz hands out, and the types that the board's script is held to.

``python -m tools.payload`` writes docs/board.schema.json and
dpviz/report/figures/board/payload.d.ts from the classes of `dpviz.report.tables.payload`, and
docs/results.schema.json from the classes of answers and their columns: one definition for each
question's answer. With ``--check`` it only says whether they are as written.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import types
from collections.abc import Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from dpviz.core.params import Declared, Param, params_of
from dpviz.core.settings import Settings
from dpviz.report.figures import board
from dpviz.report.tables.payload import Payload
from dpviz.studies import Answer
from dpviz.studies.columns import Column, columns_in, fields_of, key_of
from dpviz.studies.options import asking_functions, type_of

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "docs" / "board.schema.json"
ANSWERS = ROOT / "docs" / "results.schema.json"
TYPES = Path(board.__file__).parent / "payload.d.ts"
_PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", type(None): "null"}
_NOTE = re.compile(r"^([\w, ]+) : (.*(?:\n    .*)*)$", re.MULTILINE)


def _declares(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Declared)


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the fields that a class has in JSON, and their types."""
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    found = {one.name: one.type for one in getattr(kind, "written", ())} or fields_of(kind)
    if getattr(kind, "listed", "") in found and kind.columns:
        found = found | {kind.listed: Annotated[list[Any], kind.columns]}
    return found


def classes(*kinds: Any) -> Iterator[Any]:
    """Yield every class of fields that types are made of, each once, in the order of their use."""
    found: list[Any] = []
    waiting = list(kinds)
    while waiting:
        one = waiting.pop(0)
        if one in found:
            continue
        columns = columns_in(one)
        if columns is not None and not isinstance(columns, tuple):
            waiting.append(columns)
            continue
        if columns is not None:
            waiting += [column.type for column in columns]
            continue
        if is_typeddict(one) or (is_dataclass(one) and not _declares(one)):
            found.append(one)
            yield one
            waiting += hints_of(one).values()
        else:
            waiting += get_args(one)


def notes(kind: Any) -> dict[str, str]:
    """Return what the docstring of a class, or a column's help, says of its fields."""
    found = {}
    for names, text in _NOTE.findall(inspect.cleandoc(kind.__doc__ or "")):
        # behind the type, where the docstring of a dataclass says one
        said = text.partition("\n")[2] if is_dataclass(kind) else text
        for name in names.split(","):
            found[name.strip()] = " ".join(said.split())
    found |= {one.name: one.help for one in getattr(kind, "written", ()) if one.help}
    return {name: text for name, text in found.items() if text}


def _object(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the schema of a row under columns."""
    known = [column for column in columns if "json" in column.show]
    return {
        "type": "object",
        "properties": {
            column.name: schema_of(column.type)
            | ({"description": column.help} if column.help else {})
            for column in known
        },
        "required": [c.name for c in known if get_origin(c.type) is not NotRequired],
        "additionalProperties": False,
    }


def _rows(columns: Sequence[Column]) -> dict[str, Any]:
    return {"type": "array", "items": _object(columns)}


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
    if isinstance(kind, NewType):
        return schema_of(kind.__supertype__)
    columns = columns_in(kind)
    if columns is not None and not isinstance(columns, tuple):
        return schema_of(columns)
    if columns is not None:
        several = (get_origin(inside[0]) or inside[0]) in (list, tuple)
        return _rows(columns) if several else _object(columns)
    if origin is NotRequired:
        return schema_of(inside[0])
    if is_typeddict(kind) or is_dataclass(kind):
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
    said, hints = notes(kind), hints_of(kind)
    shapes = {name: schema_of(hint) for name, hint in hints.items()}
    if issubclass(kind, Answer) and kind.alone:
        return shapes[kind.listed]
    properties = {
        key_of(name): shape | ({"description": said[name]} if name in said else {})
        for name, shape in shapes.items()
    }
    return {
        "type": "object",
        "description": (kind.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": [
            name
            for name in map(key_of, hints)
            if get_origin(hints.get(name)) is not NotRequired
            and name in getattr(kind, "__required_keys__", properties)
        ],
        "additionalProperties": False,
    }


def answer_types() -> dict[str, Any]:
    """Return the type of each question's answer in JSON: its class, or what its data is said to be.

    Those of `dpviz.schema` and `dpviz.board` have schemas of their own.
    """
    found = {}
    for name, function in asking_functions().items():
        kind = get_type_hints(function)["return"]
        data = getattr(kind, "data", Answer.data)
        said = get_type_hints(data, include_extras=True)["return"]
        # an answer that is a file of its own says what is in it
        if is_typeddict(said) or columns_in(said) is not None:
            found[name] = said
        elif data is Answer.data and all(map(is_dataclass, get_args(kind) or [kind])):
            found[name] = kind
    return found


def answers() -> str:
    """Return the schema of every question's answer: a definition under the question's name."""
    kinds = answer_types()
    shapes = {kind.__name__: _definition(kind) for kind in classes(*kinds.values())}
    shapes[Settings.__name__] = _settings(Settings)
    named = {name: schema_of(kind) for name, kind in kinds.items()}
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
        "$defs": {kind.__name__: _definition(kind) for kind in classes(Payload)},
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
    for kind in classes(Payload):
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
