"""The command ``lesson check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dpviz.cli.options import Commands
from dpviz.core.errors import DpvizError, InvalidSetting


def add(commands: Commands) -> None:
    """Add the parser of the command ``lesson check``."""
    lesson = commands.add_parser("lesson", help="check or export lessons")
    actions = lesson.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="compute every number of a lesson and report mistakes")
    check.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="files or folders of lessons; default: the built-in lessons",
    )
    check.set_defaults(run=_check)
    export = actions.add_parser("export", help="write the slides and images of a lesson")
    export.add_argument("number", metavar="N", type=int, help="number of the lesson, from 1")
    export.add_argument("--out", metavar="FOLDER", required=True, help="folder for the files")
    export.add_argument(
        "--language", default="en", help="language of the lesson: en or de (default en)"
    )
    export.set_defaults(run=_export)


def _export(arguments: argparse.Namespace) -> int:
    from dpviz.lessons import lessons
    from dpviz.lessons.slides import export

    by_number = {lesson.number: lesson for lesson in lessons(arguments.language)}
    if arguments.number not in by_number:
        raise InvalidSetting("lesson", f"from 1 to {max(by_number)}", arguments.number, "N")
    for path in export(by_number[arguments.number], Path(arguments.out)):
        print(path)
    return 0


def _check(arguments: argparse.Namespace) -> int:
    from dpviz.lessons import course
    from dpviz.lessons.script import FOLDER, problems, read, read_folder

    # Only the built-in lessons have translations to check.
    wrong = 0 if arguments.paths else _check_languages()
    for path in map(Path, arguments.paths or [FOLDER]):
        try:
            if path == FOLDER:
                each = course()  # The course is already computed for translations.
            else:
                each = read_folder(path) if path.is_dir() else (read(path),)
        except DpvizError as error:
            print(f"dpviz: {error}", file=sys.stderr)
            wrong += 1
            continue
        for lesson in each:
            faults = problems(lesson)
            wrong += len(faults)
            words = "holds" if not faults else f"{len(faults)} wrong"
            counts = f"{len(lesson.steps)} steps, {len(lesson.numbers)} numbers"
            print(f"{lesson.number} {lesson.title}: {counts}, {words}")
            for sentence in faults:
                print(f"dpviz: {lesson.title}: {sentence}", file=sys.stderr)
    # A lesson with a wrong number must not be shown, so exit with 2, as for wrong usage.
    return 2 if wrong else 0


def _check_languages() -> int:
    """Print the missing and wrong texts of translations; return the number of faults."""
    from dpviz.lessons import course, lessons
    from dpviz.lessons.languages import gaps, messages, names, texts
    from dpviz.lessons.script import problems

    wrong = 0
    # Skip the first language: the lessons are written in it.
    for language in list(names())[1:]:
        faults = gaps(course(), language)
        faults += [f"{one.title}: {fault}" for one in lessons(language) for fault in problems(one)]
        wrong += len(faults)
        count = sum(len(texts(one)) for one in course()) + len(messages())
        words = "holds" if not faults else f"{len(faults)} wrong"
        print(f"{names()[language]}: {count} texts, {words}")
        for sentence in faults:
            print(f"dpviz: {language}: {sentence}", file=sys.stderr)
    return wrong
