"""What the next visit need not compile: bytecode of the modules in use, and quick shared libraries.

The worker (worker.js) keeps what `library` and `modules` return in the browser's storage, under a
name that changes with every file of the edition, and puts it back before Python imports anything.
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
_UNCHECKED = (1).to_bytes(4, "little")  # of the flags of PEP 552: valid whatever the source's date
_ENOUGH = 20  # modules more than were kept, to keep them again

_plain = ExtensionFileLoader.create_module


def _create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
    """Link the library by the worker first: by itself it would search all symbols there are."""
    js.loadLibrary(spec.origin)
    return _plain(self, spec)


ExtensionFileLoader.create_module = _create_module  # type: ignore[method-assign]
sys.dont_write_bytecode = False  # Pyodide's own setting is True


def _bytecode(code: CodeType) -> bytes:
    import marshal

    return util.MAGIC_NUMBER + _UNCHECKED + bytes(8) + marshal.dumps(code)


async def library() -> Any:
    """Return the standard library's archive with the bytecode of what has been imported of it.

    Compiles while no script runs, a file at a time.
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
    """Return the bytecode of the modules in use, or None where most of it has been kept."""
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
    """Take note that as many modules came from the browser's storage."""
    _Kept.count = count
