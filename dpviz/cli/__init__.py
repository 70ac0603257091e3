"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``.

Most commands are written from the function of the front door that they call (`asking`); of the
rest a file of this folder holds one, or a few that belong together, and adds their parsers by
``add``.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import dpviz
from dpviz.cli.options import OneLineParser, with_negative_numbers
from dpviz.errors import CannotRun, DpvizError, InvalidSetting

_FILES = {
    "data": ("datasets", "fetch"),
    "sweep": ("sweep",),
    "board": ("board",),
    "claims": ("mechanisms", "claims"),
    "reproduce": ("reproduce",),
    "schema": ("schema",),
    "release": ("release", "ledger"),
    "dashboard": ("app",),
    "export_browser": ("export-browser",),
}
"""The files of this folder and the commands each adds, in the order of the help."""


def questions() -> list[str]:
    """Return the commands that come from a function of the front door, as it is declared."""
    listed = {command for added in _FILES.values() for command in added}
    return [name for name in dpviz.__all__ if name not in listed and _asks(name)]


def _asks(name: str) -> bool:
    return hasattr(getattr(dpviz, name), "question")


FULL_OR_CLOSED = {
    errno.ENOSPC: "nothing can be written: no space is left on the disk",
    errno.EDQUOT: "nothing can be written: the disk quota is used up",
    errno.EROFS: "nothing can be written: the file system is read-only",
    errno.EBADF: "nothing can be printed: the output is closed",
}
"""What the system refuses wherever a command writes, in words."""


def build_parser(command: str | None = None) -> OneLineParser:
    """Return the parser of one command, or of all where it is none of them.

    A command's file brings its own imports, so only the one that is needed is imported.
    """
    parser = OneLineParser(prog="dpviz", description="See what differential privacy costs a PCA.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    mine = [file for file, added in _FILES.items() if command in added]
    asked = [command] if not mine and command in dpviz.__all__ and _asks(command) else []
    for file in mine or ([] if asked else _FILES):
        import_module(f"dpviz.cli.{file}").add(commands)
    for name in asked or ([] if mine else questions()):
        import_module("dpviz.cli.asking").add(commands, getattr(dpviz, name))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # closed before the start: Python opens nothing for it
        print(f"dpviz: {FULL_OR_CLOSED[errno.EBADF]}", file=sys.stderr)
        return 2
    parser = build_parser(words[0] if words else None)
    arguments = parser.parse_args(with_negative_numbers(words))
    try:
        status: int = arguments.run(arguments)
        sys.stdout.flush()
    except InvalidSetting as error:
        print(f"dpviz: {error.as_option()}", file=sys.stderr)
        return 2
    except CannotRun as error:
        print(f"dpviz: --mechanism {error}", file=sys.stderr)
        return 2
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has gone; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in FULL_OR_CLOSED:
            raise
        print(f"dpviz: {FULL_OR_CLOSED[error.errno]}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return status
