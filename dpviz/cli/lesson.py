"""The command ``lesson check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpviz.cli.options import Commands
from dpviz.core.errors import DpvizError, InvalidSetting


def add(commands: Commands) -> None:
    """Add the parser of the command."""
    lesson = commands.add_parser("lesson", help="check or export lessons")
    actions = lesson.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="compute every number and report mistakes")
    check.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="lessons, or folders of lessons; default: the built-in ones",
    )
    check.set_defaults(run=_check)
    export = actions.add_parser("export", help="write slides and images")
    export.add_argument("number", metavar="N", type=int, help="number of the lesson, from 1")
    export.add_argument("--out", metavar="FOLDER", required=True, help="folder for the files")
    export.add_argument(
        "--language", default="en", help="language of the lesson: en or de (default en)"
    )
    export.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    from dpviz.lessons import lessons
    from dpviz.lessons.slides import export

    found = {lesson.number: lesson for lesson in lessons(arguments.language)}
    if arguments.number not in found:
        raise InvalidSetting("lesson", f"from 1 to {max(found)}", arguments.number, "N")
    for path in export(found[arguments.number], Path(arguments.out)):
        print(path)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from dpviz.lessons import course
    from dpviz.lessons.script import FOLDER, problems, read, read_folder

    # translations are of the lessons that come along
    wrong = 0 if arguments.paths else _check_languages()
    for path in map(Path, arguments.paths or [FOLDER]):
        try:
            if path == FOLDER:
                found = course()  # whose numbers the translations have had computed
            else:
                found = read_folder(path) if path.is_dir() else (read(path),)
        except DpvizError as error:
            print(f"dpviz: {error}", file=sys.stderr)
            wrong += 1
            continue
        for lesson in found:
            said = problems(lesson)
            wrong += len(said)
            words = "holds" if not said else f"{len(said)} wrong"
            counts = f"{len(lesson.steps)} steps, {len(lesson.numbers)} numbers"
            print(f"{lesson.number} {lesson.title}: {counts}, {words}")
            for sentence in said:
                print(f"dpviz: {lesson.title}: {sentence}", file=sys.stderr)
    # as wrong use: a lesson that says a wrong number is not to be shown
    return 2 if wrong else 0


def _check_languages() -> int:
    """Say what the course's translations leave out or get wrong; return how much."""
    from dpviz.lessons import course, lessons
    from dpviz.lessons.languages import gaps, messages, names, texts
    from dpviz.lessons.script import problems

    wrong = 0
    # the first is the one that lessons are written in
    for language in list(names())[1:]:
        found = gaps(course(), language)
        found += [f"{one.title}: {said}" for one in lessons(language) for said in problems(one)]
        wrong += len(found)
        count = sum(len(texts(one)) for one in course()) + len(messages())
        words = "holds" if not found else f"{len(found)} wrong"
        print(f"{names()[language]}: {count} texts, {words}")
        for sentence in found:
            print(f"dpviz: {language}: {sentence}", file=sys.stderr)
    return wrong
