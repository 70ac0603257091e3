"""Flags of the command line, written from the declared settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

from dpviz.base.params import Declared, Param, params_of
from dpviz.errors import InvalidSetting
from dpviz.mechanisms import with_parameter
from dpviz.run.store import Store, default_folder
from dpviz.settings import Settings

CACHE_HELP = (
    "where finished cells are kept, so that the same command goes on where it was interrupted "
    f"(default {default_folder()}; none keeps nothing). The files hold measurements of the data "
    "that are not private."
)


Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"
"""What a command's ``add`` adds its parser to."""


class OneLineParser(argparse.ArgumentParser):
    """Errors in one line, exit status 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(2, f"dpviz: {message}\n")


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type[Declared] = Settings,
    base: Declared | None = None,
) -> None:
    """Add one option for every declared setting; the help names the defaults of the base."""
    base = cls() if base is None else base
    for name, param in params_of(cls).items():
        if not param.flag.startswith("-"):
            parser.add_argument(name, metavar=param.flag, help=param.help)
            continue
        parser.add_argument(
            param.flag,
            dest=name,
            metavar=_metavar(param),
            action="append" if param.kind == "list" else "store",
            default=None,
            help=f"{param.help} Default: {param.format(getattr(base, name)) or 'all'}.".replace(
                "%", "%%"
            ),
        )


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
    if param.kind == "choice":
        return "|".join(param.choices)
    return {"number": "NUMBER", "integer": "INTEGER", "list": "VARIANT"}.get(param.kind, "TEXT")


def settings_from(arguments: argparse.Namespace, base: Settings | None = None) -> Settings:
    """Return the settings that parsed arguments state; the base says what they leave out."""
    base = Settings() if base is None else base
    values: dict[str, Any] = {}
    for name, param in params_of(type(base)).items():
        written = getattr(arguments, name)
        if written is None:
            continue
        if param.kind == "list":
            values[name] = tuple(item for text in written for item in param.parse(text))
        else:
            values[name] = param.parse(written)
    for assignment in getattr(arguments, "assignments", ()):
        values["mechanisms"] = with_parameter(values.get("mechanisms", ()), assignment)
    return replace(base, **values)


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
