"""Discovery of a package's modules and of plugins.

Plugins are files and modules that a user names, and packages with entry points. ``DPVIZ_PLUGINS``
lists files and modules, as ``--plugin`` does; every worker process inherits it. A package offers an
object under an entry point of ``dpviz.mechanisms``, ``dpviz.metrics`` or ``dpviz.datasets``. The
packages for such objects load plugins by `from_outside`.
"""

from __future__ import annotations

import ast
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from importlib.util import find_spec, module_from_spec, resolve_name, spec_from_file_location
from inspect import isabstract
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from dpviz.core.errors import DpvizError, InvalidSetting

VARIABLE = "DPVIZ_PLUGINS"
"""Files to load, and names of modules, separated as in ``PATH``."""

_NAMES = "dpviz_plugin_"

T = TypeVar("T")


def add_plugins(files: list[str]) -> None:
    """Load plugin files in this process and in every process that it starts.

    Raises
    ------
    InvalidSetting
        If a file is missing, or is not a Python file.
    """
    paths = _files()
    for file in files:
        path = Path(file)
        if path.suffix == ".py" and path.is_file():
            paths.append(str(path.resolve()))
        elif _is_module(file):
            paths.append(file)
        else:
            raise InvalidSetting("plugin", "a Python file that exists", path.name, "--plugin")
    os.environ[VARIABLE] = os.pathsep.join(dict.fromkeys(paths))


def with_plugins(words: Sequence[str]) -> list[str]:
    """Load the files that ``--plugin`` names for any command, and return the other arguments.

    The function runs before anything else is imported or parsed: names from a plugin appear in
    help, may be defaults, and have columns in every table.
    """
    rest: list[str] = []
    files: list[str] = []
    remaining = iter(words)
    for word in remaining:
        name, equals, file = word.partition("=")
        if name != "--plugin":
            rest.append(word)
            continue
        given = file if equals else next(remaining, None)
        if not given:
            raise InvalidSetting("plugin", "a Python file that exists", "none", "--plugin")
        files.append(given)
    if files:
        add_plugins(files)
    return rest


def shell_command(*words: str) -> str:
    """Return a shell command of dpviz that loads the same plugins as this process.

    The user must fill in the path of a plugin file.
    """
    named = ("YOUR_PLUGIN.py" if file.endswith(".py") else file for file in _files())
    plugins = (word for file in named for word in ("--plugin", file))
    return shlex.join(["python", "-m", "dpviz", *words, *plugins])


def kept_apart(ours: Mapping[str, T], brought: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return the objects of plugins by name.

    Raises
    ------
    InvalidSetting
        If a name is already used, by dpviz or another plugin.
    """
    by_name: dict[str, T] = {}
    for name, one in brought:
        taken = ours.get(name, by_name.get(name))
        if taken is not None and taken is not one:
            allowed = "one that brings names of its own"
            raise InvalidSetting("plugin", allowed, f"{name} twice", "--plugin")
        if taken is None:
            # An object may have two names, as when a file is listed twice; keep only one of them.
            by_name[name] = one
    return by_name


def from_outside(group: str) -> Iterator[Any]:
    """Yield the objects that plugins offer: each entry point and every name in a file.

    Parameters
    ----------
    group : str
        ``mechanisms``, ``metrics`` or ``datasets``.

    Raises
    ------
    InvalidSetting
        If a plugin cannot be loaded: skipping a requested plugin would be misleading.
    """
    for point in _offered(group, tuple(sys.path)):
        yield _loaded(point)
    for file in _files():
        yield from of_module(plugin_module(file))


def modules_of(package: str) -> Iterator[ModuleType]:
    """Yield the imported modules of a package.

    Skip its subfolders, and modules with a leading underscore, which hold shared code.
    """
    for found in iter_modules(import_module(package).__path__):
        if not found.ispkg and not found.name.startswith("_"):
            yield import_module(f"{package}.{found.name}")


def only_class(module: ModuleType, base: type[T], what: str) -> type[T]:
    """Return the only concrete class of a kind that a module defines.

    Raises
    ------
    TypeError
        If the module defines no such class or several: each file must define one.
    """
    classes = [
        one
        for one in of_module(module)
        if isinstance(one, type) and issubclass(one, base) and not isabstract(one)
    ]
    if len(classes) != 1:
        raise TypeError(f"{module.__name__} must define one {what}; it has {len(classes)}")
    return classes[0]


def of_module(module: ModuleType) -> list[Any]:
    """Return the objects that a module defines, in order, without imported classes."""
    members = [
        one
        for one in vars(module).values()
        if not isinstance(one, type) or one.__module__ == module.__name__
    ]
    return list({id(one): one for one in members}.values())


def code_digest(one: type | Callable[..., Any]) -> str:
    """Return a digest of a plugin's code.

    The digest covers its file and all the author's files imported there, the current numbers, texts
    and arrays in these modules, and versions of imported libraries. For code without a file, or
    inside a function, it covers the code itself. Data that code reads while it runs is not covered.
    """
    written = _written(one)
    digest = blake2b(written.digest, digest_size=16)
    loose = written.loose
    # One file may define two classes with the same name but different functions.
    for word, value in sorted(getattr(one, "__dict__", {}).items()):
        if not word.startswith("__"):
            made = getattr(value, "__func__", value)
            place = getattr(made, "__qualname__", "")
            line = getattr(getattr(made, "__code__", None), "co_firstlineno", 0)
            digest.update(f"{word} {place} {line}\0".encode() + _plain(value) + b"\0")
            loose |= "<locals>" in place
    if loose:
        from cloudpickle import dumps  # The browser edition lacks cloudpickle, as it has no cache.

        digest.update(dumps(one))
    for name, wanted in written.modules:
        names = vars(sys.modules[name]) if name in sys.modules else {}
        for word in sorted(names.keys() & wanted if wanted is not None else names):
            if not word.startswith("__"):
                digest.update(f"{name}.{word}\0".encode() + _plain(names[word]) + b"\0")
    return digest.hexdigest()


class _Written(NamedTuple):
    """Digest of files, the names that count in each module (None: all names), and a flag."""

    digest: bytes
    modules: tuple[tuple[str, frozenset[str] | None], ...]
    loose: bool


# Cache the digest per object, because the file may change after its code was loaded.
@cache
def _written(one: type | Callable[..., Any]) -> _Written:
    root = str(getattr(one, "__module__", ""))
    digest, libraries = blake2b(), set[str]()
    modules: dict[str, frozenset[str] | None] = {}
    visited, ahead = set[str](), [root]
    while ahead:
        name = ahead.pop()
        top = name.partition(".")[0]
        if name in visited or top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
            continue
        visited.add(name)
        file = _file_of(name)
        if file is None:
            continue
        installed = {"site-packages", "dist-packages"} & set(file.parts)
        if installed and top != root.partition(".")[0]:
            libraries.add(top)
            continue
        content = file.read_bytes()
        digest.update(f"{name}\0".encode() + content)
        modules[name] = None
        if file.suffix == ".py":
            tree = ast.parse(content)
            ahead += _imported(tree, name if file.stem == "__init__" else name.rpartition(".")[0])
            # From a script, count only names that its code uses; its other variables are data.
            modules[name] = _used(tree) if name == "__main__" else None
    packages = _distributions() if libraries else {}
    for wheel in sorted({wheel for top in libraries for wheel in packages.get(top, ())}):
        digest.update(f"{wheel} {version(wheel)}\0".encode())
    loose = root not in modules or "<locals>" in getattr(one, "__qualname__", "<locals>")
    return _Written(digest.digest(), tuple(modules.items()), loose)


def _file_of(name: str) -> Path | None:
    """Return the file of a module without importing it; None if there is no file."""
    if name in sys.modules:
        file = getattr(sys.modules[name], "__file__", None)
        return Path(file) if file and Path(file).is_file() else None
    words, spec, path = name.split("."), None, None
    for at in range(len(words)):
        if at and not path:
            return None
        spec = PathFinder.find_spec(".".join(words[: at + 1]), path)
        if spec is None:
            return None
        path = spec.submodule_search_locations
    return Path(spec.origin) if spec and spec.origin and Path(spec.origin).is_file() else None


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the modules that a module imports anywhere, with their parent packages."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):
                base = resolve_name("." * node.level + (node.module or ""), package)
                names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        for name in names:
            words = name.split(".")
            yield from (".".join(words[: at + 1]) for at in range(len(words)))


def _used(tree: ast.Module) -> frozenset[str]:
    """Return the names that functions and classes of a module use."""
    inside = ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda
    return frozenset(
        name.id
        for node in ast.walk(tree)
        if isinstance(node, inside)
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    )


def _plain(value: object) -> bytes:
    """Return the bytes of numbers, texts and arrays, and no bytes for other objects."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return (
            b""
            if array.dtype.hasobject
            else f"{array.dtype}{array.shape}".encode() + array.tobytes()
        )
    try:
        return value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    except (TypeError, ValueError, RecursionError):
        return b""


def from_plugin(cls: type) -> bool:
    """Return whether a class comes from a file that a user named."""
    return cls.__module__.startswith(_NAMES) or cls.__module__ in _files()


def _files() -> list[str]:
    return [file for file in os.environ.get(VARIABLE, "").split(os.pathsep) if file]


def _is_module(name: str) -> bool:
    """Return whether a module with a given name is installed, such as ``dpviz.extend``."""
    try:
        return not name.endswith(".py") and find_spec(name) is not None
    except (ImportError, ValueError):
        return False


@cache
def _offered(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return a group's entry points, cached because finding them reads every installed package."""
    del path  # The import path is the cache key: it determines which packages exist.
    return tuple(entry_points(group=f"dpviz.{group}"))


def _loaded(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        allowed = "a package whose entry points load, or one that is not installed"
        given = f"{point.group} {point.name} = {point.value}: {type(error).__name__}"
        raise InvalidSetting("plugin", allowed, given) from error


@cache
def _distributions() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def plugin_module(file: str) -> ModuleType:
    """Return the module of a plugin's file or name, run once in this process.

    Raises
    ------
    DpvizError
        If the plugin cannot be run; the message names the line.
    """
    if not file.endswith(".py"):
        return import_module(file)
    path = Path(file)
    name = f"{_NAMES}{path.stem}_{blake2b(file.encode(), digest_size=4).hexdigest()}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidSetting("plugin", "a Python file that exists", path.name, "--plugin")
    if name in sys.modules:  # A circular import finds the module already running.
        return sys.modules[name]
    module = module_from_spec(spec)
    sys.modules[name] = module  # Register the module, so that its classes can be found.
    try:
        spec.loader.exec_module(module)
    except DpvizError as error:  # This error already has a clear message for the author.
        del sys.modules[name]
        raise DpvizError(f"{path.name}{_line_of(error, path)}: {error}") from error
    except Exception as error:
        del sys.modules[name]
        given = f"{path.name}{_line_of(error, path)}: {type(error).__name__}: {error}"
        raise InvalidSetting("plugin", "a Python file that runs", given, "--plugin") from error
    with suppress(ImportError):  # The browser edition has no worker processes.
        # Send the plugin's code to workers, which cannot import the plugin by name.
        import_module("cloudpickle").register_pickle_by_value(module)
    return module


def _line_of(error: BaseException, path: Path) -> str:
    """Return words for the line of the file in which an error arose."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return "" if line is None else f", line {line}"
