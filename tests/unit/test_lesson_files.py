"""Lessons as files: valid content, refusals in one sentence, a teacher's own folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpviz import lessons as package
from dpviz.lessons.lesson import Lesson
from dpviz.lessons.script import InvalidLesson, problems, read

pytestmark = pytest.mark.long

MINE = """
number = 1
title = "Mine"
question = "How many?"

[opens]
table = "iris"
epsilon = 2
k = 1
mechanisms = ["gaussian"]

[numbers]
here = "epsilon"
half = { of = "share", value = 0.5 }
there = { where = "recovery", reaches = "half" }

[[steps]]
title = "Look"
say = "Epsilon is {here}."
control = "epsilon"
move = { epsilon = "at:there" }
moved = "Move to {there}"
why = "{half} is reached at {there}."

[steps.question]
ask = "At which epsilon is {half} recovered?"
right = "there"
axis = { low = 0.001, high = 10 }
then = "at {there}."
"""


def written(folder: Path, text: str = MINE, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_a_lesson(tmp_path: Path) -> None:
    lesson = read(written(tmp_path))
    assert problems(lesson) == []
    question = lesson.question_at(0)
    assert question is not None
    assert lesson.filled(lesson.steps[0].say) == "Epsilon is 2."
    assert lesson.state(0, 1).settings.epsilon == question.right
    assert not question.possible(11)
    assert question.possible(0.001)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 1", "number = 1\nnumbr = 2", "the lesson has no 'numbr'"),
        ("epsilon = 2\n", "epsilon = -2\n", "epsilon must be"),
        ('"epsilon"\n', '"__import__"\n', "must name one of the quantities"),
        ('"epsilon"\n', '"compute(1)"\n', "must name one of the quantities"),
        ('of = "share", value = 0.5', 'of = "share"', "needs value"),
        ('reaches = "half"', 'reaches = "later"', "the name of an earlier number"),
        ('where = "recovery", reaches = "half"', 'where = "recovery"', "needs `reaches`"),
        ("{here}", "{nowhere}", "uses {nowhere}, which the section [numbers] does not define"),
        ("{here}", "{here", "a brace without its closing brace"),
        ("{here}", "{here.__class__}", "which the section [numbers] does not define"),
        ('right = "there"', 'right = "gone"', "lacks 'gone', named by key `right`"),
        ("low = 0.001", "low = 0", "`low` and `high`, both above 0"),
        ("axis = ", "options = []\naxis = ", "either the key `options` or the key `axis`"),
        ('control = "epsilon"', 'scene = "moon"', "the scene of step 1 must be one of"),
        ('"at:there"', '"at:moon"', "the section [numbers] lacks 'moon'"),
        ('["gaussian"]', '["part:villain"]', "is not a part"),
        ("[[steps]]", "[[step]]", "the lesson has no 'step'"),
        ("title = ", "title == ", "not a TOML file"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in MINE
    with pytest.raises(InvalidLesson) as error:
        read(written(tmp_path, MINE.replace(old, new, 1)))
    assert said in str(error.value)
    assert str(error.value).startswith("mine.toml: ")


def test_a_teachers_own_lessons_follow_the_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setenv(package.OWN, str(tmp_path))
    package.lessons.cache_clear()
    try:
        lessons = package.lessons()
        assert [one.number for one in lessons] == list(range(1, len(lessons) + 1))
        assert lessons[:-1] == package.course()
        assert isinstance(lessons[-1], Lesson)
        assert lessons[-1].title == "Mine"
        written(tmp_path, name="second.toml")  # A second lesson has the same number.
        package.lessons.cache_clear()
        with pytest.raises(InvalidLesson, match="numbered from 1 to 2, each once; got 1, 1"):
            package.lessons()
        monkeypatch.setenv(package.OWN, str(tmp_path / "empty"))
        with pytest.raises(InvalidLesson, match="the folder has no lesson"):
            package.lessons()
    finally:
        package.lessons.cache_clear()
