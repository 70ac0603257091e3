"""Write the JSON Schemas of dpviz's outputs, and the types for the Explore figure's script.

``python -m tools.payload`` writes docs/board.schema.json and
dpviz/report/figures/board/payload.d.ts from the classes of `dpviz.report.tables.payload`, and
docs/results.schema.json from the classes of answers and their columns. The schema has one
definition for each question's answer. ``--check`` only reports whether the files are up to date.
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
    """Return a class's JSON fields and their types."""
    if is_typeddict(kind):
        return get_type_hints(kind, include_extras=True)
    hints = {one.name: one.type for one in getattr(kind, "written", ())} or fields_of(kind)
    if getattr(kind, "listed", "") in hints and kind.columns:
        hints = hints | {kind.listed: Annotated[list[Any], kind.columns]}
    return hints


def classes(*kinds: Any) -> Iterator[Any]:
    """Yield every class with fields that types contain, each class once, in order of use."""
    result: list[Any] = []
    waiting = list(kinds)
    while waiting:
        one = waiting.pop(0)
        if one in result:
            continue
        columns = columns_in(one)
        if columns is not None and not isinstance(columns, tuple):
            waiting.append(columns)
            continue
        if columns is not None:
            waiting += [column.type for column in columns]
            continue
        if is_typeddict(one) or (is_dataclass(one) and not _declares(one)):
            result.append(one)
            yield one
            waiting += hints_of(one).values()
        else:
            waiting += get_args(one)


def notes(kind: Any) -> dict[str, str]:
    """Return the description of fields from a class's docstring, or from a column's help."""
    by_name = {}
    for names, text in _NOTE.findall(inspect.cleandoc(kind.__doc__ or "")):
        # In a dataclass's docstring, a field's description follows its type, if a type is given.
        body = text.partition("\n")[2] if is_dataclass(kind) else text
        for name in names.split(","):
            by_name[name.strip()] = " ".join(body.split())
    by_name |= {one.name: one.help for one in getattr(kind, "written", ()) if one.help}
    return {name: text for name, text in by_name.items() if text}


def _object(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the schema of a table row with these columns."""
    visible = [column for column in columns if "json" in column.show]
    return {
        "type": "object",
        "properties": {
            column.name: schema_of(column.type)
            | ({"description": column.help} if column.help else {})
            for column in visible
        },
        "required": [c.name for c in visible if get_origin(c.type) is not NotRequired],
        "additionalProperties": False,
    }


def _rows(columns: Sequence[Column]) -> dict[str, Any]:
    return {"type": "array", "items": _object(columns)}


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; declared options give their own schemas.

    Raises
    ------
    TypeError
        If JSON has no equivalent type.
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
    """Return an option's schema as settings write it: optional values may be null."""
    kind = str if param.kind == "choice" else type_of(param)
    return schema_of(kind)  # The reference already has the option's help text.


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
    texts, hints = notes(kind), hints_of(kind)
    shapes = {name: schema_of(hint) for name, hint in hints.items()}
    if issubclass(kind, Answer) and kind.alone:
        return shapes[kind.listed]
    properties = {
        key_of(name): shape | ({"description": texts[name]} if name in texts else {})
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
    """Return the JSON type of each question's answer: its class, or its data's declared type.

    The answers of `dpviz.schema` and `dpviz.board` have their own schemas.
    """
    types = {}
    for name, function in asking_functions().items():
        kind = get_type_hints(function)["return"]
        data = getattr(kind, "data", Answer.data)
        hint = get_type_hints(data, include_extras=True)["return"]
        # An answer that is a JSON file by itself declares its content by a type.
        if is_typeddict(hint) or columns_in(hint) is not None:
            types[name] = hint
        elif data is Answer.data and all(map(is_dataclass, get_args(kind) or [kind])):
            types[name] = kind
    return types


def answers() -> str:
    """Return the schema of every question's answer: a definition under the question's name."""
    kinds = answer_types()
    shapes = {kind.__name__: _definition(kind) for kind in classes(*kinds.values())}
    shapes[Settings.__name__] = _settings(Settings)
    schemas = {name: schema_of(kind) for name, kind in kinds.items()}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What the functions and commands of dpviz answer, as JSON",
        "description": "An answer of compare is held against #/$defs/compare, and so on.",
        "$defs": schemas | shapes,
    }
    return json.dumps(whole, indent=1) + "\n"


def schema() -> str:
    """Return the published schema of the Explore figure."""
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The payload of a dpviz board",
        "$ref": f"#/$defs/{Payload.__name__}",
        "$defs": {kind.__name__: _definition(kind) for kind in classes(Payload)},
    }
    return json.dumps(whole, indent=1) + "\n"


def script_type(kind: Any) -> str:
    """Return a type of the payload in the notation of the script's type checker."""
    origin, inside = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        return str(kind.__name__)
    if kind in _PLAIN:
        return "number" if kind is int else _PLAIN[kind]
    if origin in (Union, types.UnionType):
        return " | ".join(script_type(one) for one in inside)
    if origin is list:
        item = script_type(inside[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is tuple:
        return f"[{', '.join(script_type(one) for one in inside)}]"
    if origin is dict:
        return f"Record<string, {script_type(inside[1])}>"
    raise TypeError(f"the script has no {kind}")


def script_types() -> str:
    """Return the types of the payload for the script."""
    lines = ["// Written by python -m tools.payload from dpviz/report/tables/payload.py."]
    for kind in classes(Payload):
        texts = notes(kind)
        lines += ["", f"/** {(kind.__doc__ or '').partition(chr(10))[0]} */"]
        lines.append(f"export interface {kind.__name__} {{")
        for name, hint in get_type_hints(kind).items():
            if name in texts:
                lines.append(f"  /** {texts[name]} */")
            mark = "" if name in kind.__required_keys__ else "?"
            lines.append(f"  {name}{mark}: {script_type(hint)};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, or compare them with the existing files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    texts = {SCHEMA: schema(), TYPES: script_types(), ANSWERS: answers()}
    if parser.parse_args().check:
        old = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in texts}
        return int(old != texts)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
