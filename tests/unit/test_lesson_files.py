"""Lessons as files: what one may say, what is refused in one sentence, a teacher's own folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from dpviz import lessons as package
from dpviz.cli import main
from dpviz.core.files import app_path
from dpviz.core.params import params_of
from dpviz.core.settings import Settings
from dpviz.lessons import languages
from dpviz.lessons.lesson import Lesson
from dpviz.lessons.script import VIEW, InvalidLesson, problems, read

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


def test_a_view_and_a_setting_never_share_a_name() -> None:
    assert set(VIEW) & set(params_of(Settings)) == {"mechanisms"}  # what a picture shows of them


def written(folder: Path, text: str = MINE, name: str = "mine.toml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_a_lesson(tmp_path: Path) -> None:
    lesson = read(written(tmp_path))
    assert problems(lesson) == []
    asked = lesson.question_at(0)
    assert asked is not None
    assert lesson.filled(lesson.steps[0].say) == "Epsilon is 2."
    assert lesson.state(0, 1).settings.epsilon == asked.right
    assert not asked.possible(11)
    assert asked.possible(0.001)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("number = 1", "number = 1\nnumbr = 2", "the lesson has no 'numbr'"),
        ("epsilon = 2\n", "epsilon = -2\n", "epsilon must be"),
        ('"epsilon"\n', '"__import__"\n', "is of no quantity"),
        ('"epsilon"\n', '"compute(1)"\n', "is of no quantity"),
        ('of = "share", value = 0.5', 'of = "share"', "needs value"),
        ('reaches = "half"', 'reaches = "later"', "a number that stands before"),
        ('where = "recovery", reaches = "half"', 'where = "recovery"', "reaches and a number"),
        ("{here}", "{nowhere}", "names {nowhere}, which [numbers] does not compute"),
        ("{here}", "{here", "a brace that is not closed"),
        ("{here}", "{here.__class__}", "which [numbers] does not compute"),
        ('right = "there"', 'right = "gone"', "right names 'gone'"),
        ("low = 0.001", "low = 0", "low and high, above 0"),
        ("axis = ", "options = []\naxis = ", "either options or an axis"),
        ('control = "epsilon"', 'scene = "moon"', "the scene of step 1 must be one of"),
        ('"at:there"', '"at:moon"', "[numbers] computes no 'moon'"),
        ('["gaussian"]', '["part:villain"]', "is no part"),
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Epsilon is {here}.", "Epsilon is 2.", "a number is typed"),
        ("Epsilon is {here}.", "Epsilon is small.", "the number 'here' is used nowhere"),
        ("Epsilon is", "One " * 14 + "is", "16 words, at most 14"),
        ("high = 10", "high = 0.0015", "is off the axis"),
        ("value = 0.5", "value = 5", "a number cannot be computed"),
        ('moved = "Move to {there}"\n', "", "a move without its button"),
    ],
)
def test_what_a_class_would_stumble_over(tmp_path: Path, old: str, new: str, said: str) -> None:
    found = problems(read(written(tmp_path, MINE.replace(old, new, 1))))
    assert any(said in one for one in found), found


def test_check_computes_all_and_fails_on_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = written(tmp_path)
    assert main(["lesson", "check", str(good)]) == 0
    assert "1 Mine: 1 steps, 3 numbers, holds" in capsys.readouterr().out
    written(
        tmp_path, MINE.replace("is {here}", "is 2").replace("number = 1", "number = 2"), "b.toml"
    )
    written(tmp_path, MINE.replace("number = 1", "number = 3"), "c.toml")
    assert main(["lesson", "check", str(tmp_path)]) == 2
    told = capsys.readouterr()
    assert "a number is typed" in told.err
    assert "3 Mine: 1 steps, 3 numbers, holds" in told.out
    assert main(["lesson", "check", str(tmp_path / "gone.toml")]) == 2
    assert "gone.toml: the file cannot be read." in capsys.readouterr().err


def test_a_teachers_own_lessons_follow_the_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path)
    monkeypatch.setenv(package.OWN, str(tmp_path))
    package.lessons.cache_clear()
    try:
        found = package.lessons()
        assert [one.number for one in found] == list(range(1, len(found) + 1))
        assert found[:-1] == package.course()
        assert isinstance(found[-1], Lesson)
        assert found[-1].title == "Mine"
        written(tmp_path, name="second.toml")  # two of one number
        package.lessons.cache_clear()
        with pytest.raises(InvalidLesson, match="numbered from 1 to 2, each once; got 1, 1"):
            package.lessons()
        monkeypatch.setenv(package.OWN, str(tmp_path / "empty"))
        with pytest.raises(InvalidLesson, match="there is no lesson"):
            package.lessons()
    finally:
        package.lessons.cache_clear()


def test_a_language_has_every_text_with_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = languages.names()
    assert known == {"en": "English", "de": "Deutsch"}
    for page, own in (("phone", languages.PHONE_WORDS), ("wall", languages.WALL_WORDS)):
        file = app_path().parent / f"pages/ui/class_{page}.html"
        said = re.findall(r'(?:data-says="|says\(")([^"]+)"', file.read_text(encoding="utf-8"))
        assert set(said) == set(own)
    for one, there in zip(package.course(), package.lessons("de"), strict=True):
        assert problems(there) == []
        shown, again = languages.texts(one), languages.texts(there)
        same = {place for place in shown if shown[place] == again[place]}
        assert not same, same
        for place in range(len(one.steps)):  # a link's bet is the same bet
            asked, here = one.question_at(place), there.question_at(place)
            assert (asked and asked.right) == (here and here.right)
        assert one.state(1).settings == there.state(1).settings
    assert package.lessons("de")[2].written("1,797") == "1\u202f797"
    # What is left out, too much, or of other numbers is named; English stands in its place.
    text = (languages.FOLDER / "de.toml").read_text(encoding="utf-8")
    for old, new in (
        ('moved = "Epsilon auf {crossing} setzen"\n', ""),
        ("{dots} Jugendliche", "Jugendliche"),
        ('"Next" = "Weiter"', '"Nexxt" = "Weiter"'),
    ):
        assert old in text
        text = text.replace(old, new, 1)
    written(tmp_path, text, "xx.toml")
    monkeypatch.setattr(languages, "FOLDER", tmp_path)
    for held in (languages.names, languages._file, package.lessons):
        held.cache_clear()
    try:
        assert main(["lesson", "check"]) == 2
        told = capsys.readouterr()
        assert "Deutsch:" in told.out
        for place in (
            "blur.2.moved is not there",
            "blur.1.say must have the numbers of the English text: dots",
            "words.Next is not there",
            "words.Nexxt is in no lesson",
        ):
            assert f"dpviz: xx: {place}." in told.err
        assert package.lessons("xx")[2].steps[1].moved == package.course()[2].steps[1].moved
    finally:
        monkeypatch.undo()
        for held in (languages.names, languages._file, package.lessons):
            held.cache_clear()


def test_a_lesson_is_written_as_slides_pictures_and_films(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lesson", "export", "1", "--out", str(tmp_path / "out"), "--language", "de"]) == 0
    lesson = package.lessons("de")[0]
    stops = [len(lesson.moves(place)) + 1 for place in range(len(lesson.steps))]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert set(capsys.readouterr().out.split()) == {str(tmp_path / "out" / one) for one in names}
    pages = (tmp_path / "out" / "1.pdf").read_bytes()
    assert pages.count(b"/Type /Page ") == sum(stops)
    for place, count in enumerate(stops, 1):
        with Image.open(tmp_path / "out" / f"1.{place}.gif") as film:
            assert film.n_frames == count  # type: ignore[attr-defined]
            assert film.info["loop"] == 0 or count == 1
        svg = [
            (tmp_path / "out" / f"1.{place}.{stop}.svg").read_text(encoding="utf-8")
            for stop in range(1, count + 1)
        ]
        assert len(set(svg)) == count  # each stop looks otherwise
        assert all(f"1 {lesson.title}" in one for one in svg)
        why = lesson.filled(lesson.steps[place - 1].why).split()[:2]
        if count > 1:  # what is revealed stands where the move ends, not before
            assert " ".join(why) in svg[-1]
            assert " ".join(why) not in svg[0]
    assert "Hausaufgaben" in svg[0]
    with Image.open(tmp_path / "out" / "1.2.2.png") as picture:
        assert picture.size == (1920, 1080)
        assert len(picture.getcolors(1 << 20) or ()) > 5
    assert main(["lesson", "export", "99", "--out", str(tmp_path)]) == 2
    assert main(["lesson", "export", "1", "--out", str(tmp_path), "--language", "qq"]) == 2
    assert "en, de" in capsys.readouterr().err
