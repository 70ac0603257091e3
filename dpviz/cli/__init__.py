"""The command line: ``dpviz COMMAND`` or ``python -m dpviz COMMAND``.

Most commands are generated from the public function that they call (see `asking`). Each other
command is defined in a file of this folder, whose ``add`` adds the parsers.
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
"""The files of this folder and the commands that each file adds, in the order of the help."""

UNDER = {
    "claims": "audit all",
    "waterfall": "account steps",
    "least": "decide least",
    "card": "release card",
    "verify": "release verify",
}
"""Public functions whose command is a subcommand; each was once a command without a parent."""


_AT_ONCE = ("--version", *_FILES["dashboard"])  # These options need no settings.


def load(words: Sequence[str]) -> None:
    """Import what most commands need, unless the first word is a command that does not need it."""
    if not words or words[0] not in _AT_ONCE:
        import_module("dpviz.studies.options")


def questions() -> dict[str, Any]:
    """Return the public functions whose commands are generated from declarations, by command."""
    from dpviz.studies.options import asking_functions, question_of

    own = {command for commands in _FILES.values() for command in commands}
    words = {question_of(function).word: function for function in asking_functions().values()}
    return {word: function for word, function in words.items() if word not in own}


def _question(command: str | None) -> Any:
    """Return the function of one command without importing other functions, or None."""
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
"""Messages for operating-system errors that can occur in any command while it writes."""


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
    """Print the version, which is read only on request."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"dpviz {import_module('dpviz').__version__}")
        parser.exit()


def build_parser(command: str | None = None) -> OneLineParser:
    """Return the parser of one command, or of all commands if the name is missing or unknown.

    Each command's file has its own imports, so only the file that is needed is imported.
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
    mine = [file for file, commands in _FILES.items() if command in commands]
    function = None if mine else _question(command)
    for file in mine or ([] if function else _FILES):
        import_module(f"dpviz.cli.{file}").add(commands)
    functions = [function] if function else [] if mine else questions().values()
    for one in functions:
        import_module("dpviz.cli.asking").add(commands, one)
    return parser


def _join_command(words: Sequence[str]) -> list[str]:
    """Return the words after joining a two-word command into one word.

    Raises
    ------
    DpvizError
        If the words use the old name of a command that now has two words.
    """
    if words[0] in UNDER:
        raise DpvizError(f"{words[0]} is now dpviz {UNDER[words[0]]}, with the same options.")
    both = " ".join(words[:2])
    return [both, *words[2:]] if both in UNDER.values() else list(words)


def _is_command(word: str) -> bool:
    return any(word in commands for commands in _FILES.values()) or _question(word) is not None


def _is_table(word: str) -> bool:
    """Return whether the first word names a table instead of a command."""
    if word.startswith("-") or _is_command(word):
        return False
    from dpviz.datasets import builtin_tables

    return Path(word).is_file() or word.startswith("plan:") or word in builtin_tables()


def _refuse_unknown(word: str) -> None:
    """Raise if the first word is unknown; the parser's own message would list commands only."""
    if word.startswith("-") or _is_command(word):
        return
    if Path(word).is_dir():
        raise InvalidTable(
            f"{printable(word)} is a folder; the first word must be a command or a table."
        )
    from dpviz.datasets import builtin_tables

    commands = [*(c for names in _FILES.values() for c in names), *questions()]
    hint = did_you_mean(word, [*commands, *builtin_tables()])
    raise InvalidTable(
        f"Unknown command, table or file: {printable(word)}{hint}. dpviz --help lists the commands."
    )


def _run(words: Sequence[str]) -> int:
    """Run the command that the words name."""
    if not words:
        build_parser().print_help()
        return 0
    words = _join_command(words)
    first = words[0]
    # Without a command, as in `dpviz mine.csv`, print an overview of the table.
    if _is_table(first):
        look = import_module("dpviz.cli.look")
        arguments = build_parser("compare").parse_args(with_negative_numbers(["compare", *words]))
        code: int = look.look(with_defaults(arguments))
        return code
    _refuse_unknown(first)
    parser = build_parser(first)
    arguments = with_defaults(parser.parse_args(with_negative_numbers(words)))
    status: int = arguments.run(arguments)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if sys.stdout is None:  # Python sets stdout to None if it was closed before the start.
        print(f"dpviz: {FULL_OR_CLOSED[errno.EBADF]}", file=sys.stderr)
        return 2
    try:
        with ExitStack() as after:
            # Flush here, even after --help, so that a full disk or closed pipe is reported below.
            after.callback(sys.stdout.flush)
            # Load plugins before parsing, so that the help and the choices include their additions.
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
        message = FULL_OR_CLOSED.get(error.errno or 0)
        if message is None and not isinstance(error, BrokenPipeError):
            raise
        # Send stdout to the null device: Python would otherwise write the rest again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if message is None:  # The program that reads this output has ended, so print nothing.
            return 1
        print(f"dpviz: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("dpviz: interrupted", file=sys.stderr)
        return 130
    return status
