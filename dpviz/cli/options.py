"""Options of the command line, generated from the declared settings.

Every command imports this file, so it imports slow modules inside functions.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from dpviz.core.errors import InvalidSetting, did_you_mean
from dpviz.core.params import Declared, Param, params_of
from dpviz.core.settings import Settings

if TYPE_CHECKING:
    from dpviz.simulation.store import Store

Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"
"""The object to which ``add`` of a command adds the command's parser."""


_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")


class OneLineParser(argparse.ArgumentParser):
    """A parser that prints one-line errors and exits with status 2.

    Attributes
    ----------
    actions : tuple of str
        Actions of a command that has actions; the first action is the default.
    """

    actions: tuple[str, ...] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, after inserting the default action."""
        # Insert the default action: `ledger FILE` is short for `ledger show FILE`.
        if self.actions and args and args[0] not in (*self.actions, "-h", "--help"):
            args = [self.actions[0], *args]
        return super().parse_known_args(args, namespace)

    def print_help(self, file: Any = None) -> None:
        """Print the help, and raise if that fails; argparse would stay silent."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Print a one-line error with a suggestion, and exit."""
        self.exit(2, f"dpviz: {message}{self._hint(message)}\n")

    def _hint(self, message: str) -> str:
        choice = _CHOICE.search(message)
        if choice is not None:
            return did_you_mean(choice[1], re.findall(r"[\w.-]+", choice[2]))
        _, unknown, words = message.partition("unrecognized arguments: ")
        if not unknown:
            return ""
        below = [one.choices for one in self._actions if one.dest == "command"]
        parsers = [parser for choices in below for parser in dict(choices or {}).values()]
        # Search the options of every command, as users often type an option before its command.
        options = {o for one in [self, *parsers] for a in one._actions for o in a.option_strings}
        return did_you_mean(words.split()[0], sorted(options))


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the table of a command that reads the file itself and has no settings."""
    words = "built-in table, or the path of a CSV, Parquet or xlsx file"
    parser.add_argument("table", metavar="TABLE", help=words)
    add_sheet(parser)


def add_sheet(parser: argparse.ArgumentParser) -> None:
    """Add ``--sheet``, for tables that may be workbooks."""
    words = "sheet of a workbook; default: the only sheet"
    parser.add_argument("--sheet", metavar="NAME", default="", help=words)


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Declared] = Settings,
    base: Declared | None = None,
) -> None:
    """Add one option for every declared setting; the help shows the defaults of ``base``."""
    base = cls() if base is None else base
    groups: dict[str, Any] = {"": parser}
    for name, param in params_of(cls).items():
        if not param.flag.startswith("-"):
            parser.add_argument(name, metavar=param.flag, help=param.help)
            continue
        if param.group not in groups:
            groups[param.group] = parser.add_argument_group(param.group)
        groups[param.group].add_argument(
            param.flag,
            dest=name,
            metavar=_metavar(param),
            action="append" if param.kind == "list" else "store",
            default=None,
            # argparse uses % as a special character in help texts, so double every percent sign.
            help=f"{param.help}{_default(param, getattr(base, name))}".replace("%", "%%"),
        )


def _default(param: Param, value: Any) -> str:
    if param.required:
        return " Required."
    text = param.format(value) or ("none" if param.choices else "")
    # If the default is empty, leave it out: the option's own help text explains it.
    return f" Default: {text}." if text else ""


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add ``--cache``, the folder that `store_from` opens."""
    from dpviz.simulation.store import default_folder

    words = (
        "folder for finished simulations, with which the same command continues (default "
        f"{default_folder()}; with the value none, nothing is saved). The saved files hold "
        "measurements of the data and are not private."
    )
    parser.add_argument("--cache", default=None, metavar="DIR|none", help=words)


def add_set(parser: argparse.ArgumentParser) -> None:
    """Add ``--set``, the shorthand for a parameter of a mechanism."""
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="MECHANISM.PARAMETER=VALUE",
        action="append",
        default=[],
        help="Change a parameter of a mechanism, such as ppca.sweeps=50; repeatable.",
    )


def _metavar(param: Param) -> str:
    if param.choices:
        return "|".join(param.choices)
    several = "VARIANT" if param.objects else "NAME"
    return {"number": "NUMBER", "integer": "INTEGER", "list": several}.get(param.kind, "TEXT")


def stated(arguments: argparse.Namespace, cls: type[Declared]) -> dict[str, Any]:
    """Return the values of the options that the user typed."""
    values: dict[str, Any] = {}
    for name, param in params_of(cls).items():
        entry = getattr(arguments, name)
        if entry is None:
            continue
        if param.kind == "list":
            values[name] = tuple(item for text in entry for item in param.parse(text))
        else:
            values[name] = param.parse(entry)
    return values


def settings_from(arguments: argparse.Namespace, base: Settings | None = None) -> Settings:
    """Return the settings from parsed arguments; ``base`` supplies settings not stated."""
    base = Settings() if base is None else base
    values = stated(arguments, type(base))
    for assignment in getattr(arguments, "assignments", ()):
        from dpviz.mechanisms import with_parameter

        values["mechanisms"] = with_parameter(values.get("mechanisms", ()), assignment)
    return replace(base, **values)


DEFAULTS = "dpviz.toml"
"""Name of a file with default settings for its folder."""


def with_defaults(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return parsed arguments; `DEFAULTS` supplies options that were not stated.

    Raises
    ------
    InvalidSetting
        If the defaults file cannot be read, or contains an unknown setting.
    """
    try:
        with open(DEFAULTS, "rb") as file:
            entries = tomllib.load(file)
    except FileNotFoundError:
        return arguments
    except (OSError, ValueError) as error:
        raise InvalidSetting(DEFAULTS, "a TOML file", str(error), DEFAULTS) from None
    params = params_of(Settings)
    keys = []
    for name, value in entries.items():
        key = name.replace("-", "_")
        if key not in params or key == "table":
            names = ", ".join(one for one in params if one != "table")
            raise InvalidSetting("the name", f"one of {names}", name, f"a name in {DEFAULTS}")
        # Typed options win over a file's values; ignore options that this command does not have.
        if not hasattr(arguments, key) or getattr(arguments, key) is not None:
            continue
        texts = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        setattr(arguments, key, texts if params[key].kind == "list" else ",".join(texts))
        keys.append(key)
    if keys:
        print(f"dpviz: from {DEFAULTS}: {', '.join(keys)}", file=sys.stderr)
    return arguments


STDIN = "standard_input"
"""Name of a table that was read from standard input (``-``)."""


def with_stdin(words: Sequence[str], after: ExitStack) -> list[str]:
    """Return the words after replacing ``-`` by a file that holds the table from stdin.

    Parameters
    ----------
    words : sequence of str
    after : ExitStack
        Function that removes the file.
    """
    if "-" not in words:
        return list(words)
    content = sys.stdin.buffer.read()
    folder = after.enter_context(TemporaryDirectory())
    # Recognise Parquet by its first bytes, because piped data has no file name.
    path = Path(folder) / f"{STDIN}.{'parquet' if content.startswith(b'PAR1') else 'csv'}"
    path.write_bytes(content)
    return [str(path) if word == "-" else word for word in words]


def with_negative_numbers(words: Sequence[str]) -> list[str]:
    """Return the words after joining every negative number to the option before it.

    argparse takes -1 for a number but -1e-3 and -inf for options. It would then report a missing
    value instead of showing the range.
    """
    words_out: list[str] = []
    for word in words:
        option = words_out[-1] if words_out else ""
        if _is_negative(word) and option.startswith("--") and "=" not in option:
            words_out[-1] = f"{option}={word}"
        else:
            words_out.append(word)
    return words_out


def _is_negative(word: str) -> bool:
    if not word.startswith("-"):
        return False
    try:
        float(word)
    except ValueError:
        return False
    return True


def whole_number(name: str, text: str, low: int, high: int) -> int:
    """Return the whole number that the user typed for ``--name``."""
    flag = f"--{name}"
    param = Param(name, "integer", None, name, "", flag, low=low, high=high)
    value: int = param.parse(text)
    return value


def store_from(folder: str | None) -> Store | None:
    """Return the store of finished results; None if the default folder cannot be written."""
    from dpviz.simulation.store import Store, default_folder

    if folder == "none":
        return None
    if folder is not None:
        return Store(Path(folder))
    try:
        return Store(default_folder())
    except InvalidSetting:
        print(
            "dpviz: finished simulations are not saved, because the default folder cannot be "
            "written; choose another folder with --cache",
            file=sys.stderr,
        )
        return None
