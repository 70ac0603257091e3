"""Store bytecode and quickly loaded shared libraries, so that the next visit starts faster.

The worker (worker.js) stores the results of `library` and `modules` in the browser, under a name
that changes with every file of the edition. It restores them before any import in Python.
"""

from __future__ import annotations

import asyncio
import io
import json
import sys
import zipfile
from importlib import util
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import js
from pyodide.ffi import to_js

_HEADER = 16
_UNCHECKED = (1).to_bytes(4, "little")  # These PEP 552 flags make Python skip the date check.
_ENOUGH = 20  # Store compiled modules again only when this many are new.

_plain = ExtensionFileLoader.create_module


def _create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
    """Let the worker link the library first, because Python would search all symbols."""
    js.loadLibrary(spec.origin)
    return _plain(self, spec)


ExtensionFileLoader.create_module = _create_module  # type: ignore[method-assign]
sys.dont_write_bytecode = False  # Pyodide sets this value to True, so undo that.


def _bytecode(code: CodeType) -> bytes:
    import marshal

    return util.MAGIC_NUMBER + _UNCHECKED + bytes(8) + marshal.dumps(code)


async def library() -> Any:
    """Return the standard library's archive with the bytecode of its imported modules.

    The function compiles one file at a time, while no script runs.
    """
    archive = next(path for path in sys.path if path.endswith(".zip"))
    used = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    written = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(written, "w") as target:
        for entry in source.infolist():
            content, path = source.read(entry), f"{archive}/{entry.filename}"
            name = entry.filename
            if path in used:
                while js.isBusy():
                    await asyncio.sleep(0.2)
                content = _bytecode(compile(content, path, "exec", dont_inherit=True))
                name += "c"
                await asyncio.sleep(0)
            target.writestr(zipfile.ZipInfo(name), content)
    return to_js(written.getvalue())


class _Kept:
    count = 0


def modules() -> Any:
    """Return the bytecode of used modules, or None if most of it is stored already."""
    paths = set()
    for module in list(sys.modules.values()):
        cached = getattr(getattr(module, "__spec__", None), "cached", None)
        if cached and Path(cached).is_file():
            paths.add(cached)
    if len(paths) < _Kept.count + _ENOUGH:
        return None
    _Kept.count = len(paths)
    inside, parts, at = [], [], 0
    for path in sorted(paths):
        content = Path(path).read_bytes()
        parts.append(content[:4] + _UNCHECKED + bytes(8) + content[_HEADER:])
        inside.append([path[1:], at, at + len(content)])
        at += len(content)
    index = json.dumps(inside).encode()
    return to_js(b"".join([len(index).to_bytes(4, "little"), index, *parts]))


def restored(count: int) -> None:
    """Record how many modules came from the browser's storage."""
    _Kept.count = count
