"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``.

Most commands are written from the function of the front door that they call (`asking`); of the
rest a file of this folder holds one, or a few that belong together, and adds their parsers by
``add``.
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from dpviz.cli.options import OneLineParser, with_defaults, with_negative_numbers, with_stdin
from dpviz.core.errors import (
    CannotRun,
    DpvizError,
    InvalidSetting,
    InvalidTable,
    did_you_mean,
    printable,
)
from dpviz.core.plugins import with_plugins

_FILES = {
    "data": ("fetch",),
    "sweep": ("sweep",),
    "board": ("board",),
    "reproduce": ("reproduce",),
    "release": ("schema", "release", "ledger", "release card", "release verify"),
    "dashboard": ("app", "class"),
    "lesson": ("lesson",),
    "browser_edition": ("export-browser",),
    "completion": ("completion",),
}
"""The files of this folder and the commands each adds, in the order of the help."""

UNDER = {
    "claims": "audit all",
    "waterfall": "account steps",
    "least": "decide least",
    "card": "release card",
    "verify": "release verify",
}
"""Functions of the front door whose command stands under another one; each was one by itself."""


_AT_ONCE = ("--version", *_FILES["dashboard"])  # the dashboard is another process


def load(words: Sequence[str]) -> None:
    """Import what most commands need, unless the first word is one that needs none of it."""
    if not words or words[0] not in _AT_ONCE:
        import_module("dpviz.studies.options")


def questions() -> dict[str, Any]:
    """Return the functions of the front door that are commands as they are declared, by command."""
    from dpviz.studies.options import asking_functions, question_of

    own = {command for added in _FILES.values() for command in added}
    words = {question_of(function).word: function for function in asking_functions().values()}
    return {word: function for word, function in words.items() if word not in own}


def _question(command: str | None) -> Any:
    """Return the function of one command, importing no other; None where there is none."""
    from dpviz.studies.options import function_named, question_of

    names = {under: name for name, under in UNDER.items()}
    for name in (command, f"list_{command}", names.get(command or "")):
        function = function_named(name or "")
        if function is not None and question_of(function).word == command:
            return function
    return None


FULL_OR_CLOSED = {
    errno.ENOSPC: "nothing can be written: no space is left on the disk",
    errno.EDQUOT: "nothing can be written: the disk quota is used up",
    errno.EROFS: "nothing can be written: the file system is read-only",
    errno.EBADF: "nothing can be printed: the output is closed",
}
"""Sentences on the errors of the system that any command can meet while it writes."""


_EXAMPLES = """examples:
  dpviz digits                              a first look at a table
  dpviz mine.csv --epsilon 0.5              the same for your file; - reads standard input
  dpviz app                                 the dashboard
  dpviz compare wine --format csv           every measure of every mechanism
  dpviz audit wishart --epsilon 1           test a privacy claim by attack
  dpviz check mine.py                       test your own mechanism

Any command takes --plugin FILE.py, repeatable, which adds your own mechanisms to every page and
list. The file dpviz.toml of this folder sets defaults, such as epsilon = 0.5. NO_COLOR is honoured.
dpviz COMMAND --help explains a command."""


class _Version(argparse.Action):
    """Prints the version, read when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"dpviz {import_module('dpviz').__version__}")
        parser.exit()


def build_parser(command: str | None = None) -> OneLineParser:
    """Return the parser of one command, or of all where it is none of them.

    A command's file brings its own imports, so only the one that is needed is imported.
    """
    parser = OneLineParser(
        prog="dpviz",
        description="See what differential privacy costs a PCA.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    if command == "--version":
        return parser
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    # a command waits for its own imports alone
    mine = [file for file, added in _FILES.items() if command in added]
    function = None if mine else _question(command)
    for file in mine or ([] if function else _FILES):
        import_module(f"dpviz.cli.{file}").add(commands)
    asked = [function] if function else [] if mine else questions().values()
    for one in asked:
        import_module("dpviz.cli.asking").add(commands, one)
    return parser


def _joined(words: Sequence[str]) -> list[str]:
    """Return words with a command of two of them as one.

    Raises
    ------
    DpvizError
        If the command was one word before.
    """
    if words[0] in UNDER:
        raise DpvizError(f"{words[0]} is now dpviz {UNDER[words[0]]}, with the same options.")
    both = " ".join(words[:2])
    return [both, *words[2:]] if both in UNDER.values() else list(words)


def _is_command(word: str) -> bool:
    return any(word in added for added in _FILES.values()) or _question(word) is not None


def _is_table(word: str) -> bool:
    """Return whether a first word is no command and names a table."""
    if word.startswith("-") or _is_command(word):
        return False
    from dpviz.datasets import builtin_tables

    return Path(word).is_file() or word.startswith("plan:") or word in builtin_tables()


def _refuse_unknown(word: str) -> None:
    """Raise where a first word is nothing: the parser would know of commands alone."""
    if word.startswith("-") or _is_command(word):
        return
    if Path(word).is_dir():
        raise InvalidTable(
            f"{printable(word)} is a folder; dpviz takes a command or a table first."
        )
    from dpviz.datasets import builtin_tables

    commands = [*(c for added in _FILES.values() for c in added), *questions()]
    hint = did_you_mean(word, [*commands, *builtin_tables()])
    raise InvalidTable(
        f"Unknown command, table or file: {printable(word)}{hint}. dpviz --help lists the commands."
    )


def _run(words: Sequence[str]) -> int:
    """Run the command that words state."""
    if not words:
        build_parser().print_help()
        return 0
    words = _joined(words)
    first = words[0]
    # no command: `dpviz mine.csv` is a first look at a table
    if _is_table(first):
        look = import_module("dpviz.cli.look")
        arguments = build_parser("compare").parse_args(with_negative_numbers(["compare", *words]))
        found: int = look.look(with_defaults(arguments))
        return found
    _refuse_unknown(first)
    parser = build_parser(first)
    arguments = with_defaults(parser.parse_args(with_negative_numbers(words)))
    status: int = arguments.run(arguments)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # closed before the start: Python opens nothing for it
        print(f"dpviz: {FULL_OR_CLOSED[errno.EBADF]}", file=sys.stderr)
        return 2
    try:
        with ExitStack() as after:
            # here, so that a full disk or a closed pipe is met where it can be said; help too
            after.callback(sys.stdout.flush)
            # plugins before anything is parsed: what they bring is in help and among the choices
            status = _run(with_stdin(with_plugins(words), after))
    except InvalidSetting as error:
        print(f"dpviz: {error.as_option()}", file=sys.stderr)
        return 2
    except CannotRun as error:
        print(f"dpviz: --mechanism {error}", file=sys.stderr)
        return 2
    except DpvizError as error:
        print(f"dpviz: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        said = FULL_OR_CLOSED.get(error.errno or 0)
        if said is None and not isinstance(error, BrokenPipeError):
            raise
        # what could not be written would be tried once more at the exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if said is None:  # the reader (head, less) has gone: nobody is left to tell
            return 1
        print(f"dpviz: {said}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return status
