"""A command imports only its own file, and every command is listed with its file."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

import dpviz.cli as cli
from dpviz.studies.options import asking_functions


def commands_of(parser: object) -> set[str]:
    (actions,) = (a for a in parser._actions if a.dest == "command")  # type: ignore[attr-defined]
    return set(actions.choices)


def test_each_file_adds_the_commands_it_is_listed_with() -> None:
    commands = [command for added in cli._FILES.values() for command in added]
    assert len(set(commands)) == len(commands)
    assert commands_of(cli.build_parser()) == {*commands, *cli.questions()}
    for names in cli._FILES.values():
        for command in names:
            assert commands_of(cli.build_parser(command)) == set(names)
    folder = Path(cli.__file__).parent
    with_add = {
        path.stem
        for path in (*folder.glob("[!_]*.py"), *folder.glob("*/"))
        if path.stem != "__pycache__" and hasattr(import_module(f"dpviz.cli.{path.stem}"), "add")
    }
    assert with_add == {*cli._FILES, "asking"}


def test_a_question_is_a_command_by_its_function_alone() -> None:
    assert {"account", "compare", "datasets", "predict", "account steps"} <= set(cli.questions())
    assert set(cli.questions().values()) <= set(asking_functions().values())
    for name in cli.questions():
        assert commands_of(cli.build_parser(name)) == {name}


@pytest.mark.parametrize("word", ["nonsense", "--help", "-h"])
def test_other_words_see_every_command(word: str) -> None:
    assert len(commands_of(cli.build_parser(word))) > 10
