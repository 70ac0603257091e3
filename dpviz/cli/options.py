"""Flags of the command line, written from the declared settings.

Every command imports this file, so what takes long is imported where it is used.
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
"""What a command's ``add`` adds its parser to."""


_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")


class OneLineParser(argparse.ArgumentParser):
    """Errors in one line, exit status 2.

    Attributes
    ----------
    actions : tuple of str
        What the first word of a command may be, if it has actions; the first of them is meant
        where none is named.
    """

    actions: tuple[str, ...] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, with the action that is meant."""
        # `ledger FILE` is short for `ledger show FILE`
        if self.actions and args and args[0] not in (*self.actions, "-h", "--help"):
            args = [self.actions[0], *args]
        return super().parse_known_args(args, namespace)

    def print_help(self, file: Any = None) -> None:
        """Print the help; argparse keeps still where it cannot be written."""
        print(self.format_help(), end="", file=file)

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and what may have been meant, and end."""
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
        # options of every command: one typed before its command is a common slip
        known = {o for one in [self, *parsers] for a in one._actions for o in a.option_strings}
        return did_you_mean(words.split()[0], sorted(known))


def add_table(parser: argparse.ArgumentParser) -> None:
    """Add the table of a command that reads its bytes and no settings."""
    words = "built-in table, or the path of a CSV, Parquet or xlsx file"
    parser.add_argument("table", metavar="TABLE", help=words)
    add_sheet(parser)


def add_sheet(parser: argparse.ArgumentParser) -> None:
    """Add the sheet of a table that may be a workbook."""
    words = "sheet of a workbook; its only one if not given"
    parser.add_argument("--sheet", metavar="NAME", default="", help=words)


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Declared] = Settings,
    base: Declared | None = None,
) -> None:
    """Add one option for every declared setting; the help names the defaults of the base."""
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
            # argparse formats helps with %, and shares are written with it
            help=f"{param.help}{_default(param, getattr(base, name))}".replace("%", "%%"),
        )


def _default(param: Param, value: Any) -> str:
    if param.required:
        return " Required."
    text = param.format(value) or ("none" if param.choices else "")
    # what is empty unless given says in its own words what that means, if it means anything
    return f" Default: {text}." if text else ""


def add_cache(parser: argparse.ArgumentParser) -> None:
    """Add ``--cache``, the folder of `store_from`."""
    from dpviz.simulation.store import default_folder

    words = (
        "folder of finished cells; the same command, run again, continues from them (default "
        f"{default_folder()}; none keeps nothing). The files hold measurements of the data that "
        "are not private."
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
    """Return the values of declared options that parsed arguments state."""
    values: dict[str, Any] = {}
    for name, param in params_of(cls).items():
        written = getattr(arguments, name)
        if written is None:
            continue
        if param.kind == "list":
            values[name] = tuple(item for text in written for item in param.parse(text))
        else:
            values[name] = param.parse(written)
    return values


def settings_from(arguments: argparse.Namespace, base: Settings | None = None) -> Settings:
    """Return the settings that parsed arguments state; the base says what they leave out."""
    base = Settings() if base is None else base
    values = stated(arguments, type(base))
    for assignment in getattr(arguments, "assignments", ()):
        from dpviz.mechanisms import with_parameter

        values["mechanisms"] = with_parameter(values.get("mechanisms", ()), assignment)
    return replace(base, **values)


DEFAULTS = "dpviz.toml"
"""The file of a folder whose settings are the defaults there."""


def with_defaults(arguments: argparse.Namespace) -> argparse.Namespace:
    """Return parsed arguments with what `DEFAULTS` says where they say nothing.

    Raises
    ------
    InvalidSetting
        If the file cannot be read, or names what is no setting.
    """
    try:
        with open(DEFAULTS, "rb") as file:
            given = tomllib.load(file)
    except FileNotFoundError:
        return arguments
    except (OSError, ValueError) as error:
        raise InvalidSetting(DEFAULTS, "a TOML file", str(error), DEFAULTS) from None
    params = params_of(Settings)
    taken = []
    for name, value in given.items():
        key = name.replace("-", "_")
        if key not in params or key == "table":
            known = ", ".join(one for one in params if one != "table")
            raise InvalidSetting("the name", f"one of {known}", name, f"a name in {DEFAULTS}")
        # what is typed comes before the file, and another command's option says nothing here
        if not hasattr(arguments, key) or getattr(arguments, key) is not None:
            continue
        texts = [str(one) for one in value] if isinstance(value, list) else [str(value)]
        setattr(arguments, key, texts if params[key].kind == "list" else ",".join(texts))
        taken.append(key)
    if taken:
        print(f"dpviz: from {DEFAULTS}: {', '.join(taken)}", file=sys.stderr)
    return arguments


STDIN = "standard_input"
"""What a table is called that came by ``-``."""


def with_stdin(words: Sequence[str], after: ExitStack) -> list[str]:
    """Return the words with a file in the place of ``-``: the table that stdin brings.

    Parameters
    ----------
    words : sequence of str
    after : ExitStack
        Removes the file.
    """
    if "-" not in words:
        return list(words)
    read = sys.stdin.buffer.read()
    folder = after.enter_context(TemporaryDirectory())
    # by its first bytes, as a pipe has no name to end in .parquet
    path = Path(folder) / f"{STDIN}.{'parquet' if read.startswith(b'PAR1') else 'csv'}"
    path.write_bytes(read)
    return [str(path) if word == "-" else word for word in words]


def with_negative_numbers(words: Sequence[str]) -> list[str]:
    """Return the words with every negative number tied to the option before it.

    argparse takes -1 for a number but -1e-3 and -inf for options, and would then
    complain of a missing value instead of showing the range.
    """
    tied: list[str] = []
    for word in words:
        option = tied[-1] if tied else ""
        if _is_negative(word) and option.startswith("--") and "=" not in option:
            tied[-1] = f"{option}={word}"
        else:
            tied.append(word)
    return tied


def _is_negative(word: str) -> bool:
    if not word.startswith("-"):
        return False
    try:
        float(word)
    except ValueError:
        return False
    return True


def whole_number(name: str, text: str, low: int, high: int) -> int:
    """Return the whole number that an option states; its flag is the name with two dashes."""
    flag = f"--{name}"
    param = Param(name, "integer", None, name, "", flag, low=low, high=high)
    value: int = param.parse(text)
    return value


def store_from(folder: str | None) -> Store | None:
    """Return where to keep finished cells; a default folder that cannot be written is none."""
    from dpviz.simulation.store import Store, default_folder

    if folder == "none":
        return None
    if folder is not None:
        return Store(Path(folder))
    try:
        return Store(default_folder())
    except InvalidSetting:
        print(
            "dpviz: finished cells are not kept, as the default folder for them cannot be "
            "written; --cache names another",
            file=sys.stderr,
        )
        return None
