"""The Guide and Decide as a class and a data officer use them, and the board opened from a disk."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget, Domain, Problem, Relation
from dpviz.core.seeding import Draws
from dpviz.lessons import Lesson, lessons
from dpviz.lessons.directions import directional
from dpviz.lessons.glossary import TERMS
from dpviz.lessons.person import EPSILONS, person_payload
from dpviz.mechanisms import parse_variant
from tests.e2e.harness import Server, new_page, open_app, problems_of, rerun, wait_idle, watch_of
from tests.person_page import person_page

EXAMPLE = Path(__file__).resolve().parents[2] / "data" / "example.csv"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 420, "height": 800}


def main_text(page: Page) -> str:
    return page.get_by_test_id("stMain").inner_text()


def plain_text(text: str) -> str:
    """A text without what Markdown or line breaks do to it."""
    return re.sub(r"\s+", " ", text)


def press(pages: Page | list[Page], key: str) -> None:
    """Press a key on one page, or on several at a time, and wait for what it set off."""
    pages = pages if isinstance(pages, list) else [pages]
    before = [watch_of(page).runs for page in pages]
    for page in pages:
        page.keyboard.press(key)
    for page, runs in zip(pages, before, strict=True):
        wait_idle(page, after=runs + 1)


PHONE_BETS = (2, 3)  # a board and a person; elsewhere a bet is a bet whatever the width


def take(wide: Page, phone: Page, lesson: Lesson) -> None:
    """Go through a lesson by keyboard, bet wrong where one can, and read every reveal."""
    both = [wide, phone]
    betting = both if lesson.number in PHONE_BETS else [wide]

    def shown(pages: list[Page]) -> list[str]:
        return [plain_text(main_text(page)) for page in pages]

    for place, step in enumerate(lesson.steps):
        heading = f"Lesson {lesson.number}, step {place + 1} of"
        said = plain_text(lesson.filled(step.say))
        assert all(heading in text and said in text for text in shown(both))
        asked = lesson.asked(place)
        if asked is not None:
            why = plain_text(lesson.filled(step.why))
            assert not any(why in text for text in shown(both))
            if asked.axis is None:
                bet = (asked.right + 1) % len(asked.options)
                press(betting, str(int(bet) + 1))
            else:
                flag = f"guide.flag.{lesson.number}.{place + 1}".replace(".", "-")
                for page in betting:
                    with rerun(page):
                        slider = page.locator(f".st-key-{flag}").get_by_role("slider")
                        slider.press("End" if asked.right < asked.axis[1] / 2 else "Home")
                for page in betting:
                    with rerun(page):
                        page.get_by_role("button", name="Drop the flag").click()
                bet = asked.axis[1] if asked.right < asked.axis[1] / 2 else asked.axis[0]
            if step.move:
                assert not any(why in text for text in shown(betting))
                press(betting, "m")
            answer = plain_text(asked.says(bet))
            assert "Not so" in answer
            assert all(why in text and answer in text for text in shown(betting))
        for page in both:
            assert not page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
        if (lesson.number, place) != (len(lessons()), len(lesson.steps) - 1):
            press(both, "n")


def test_a_shared_step_is_the_first_visit_of_a_server(
    page: Page, fresh_server: Callable[[], Server]
) -> None:
    """The link tells the step, the bet, the move and that it is presented; keys do the rest."""
    server = fresh_server()
    lesson = lessons()[7]
    question = lesson.asked(2)
    assert question is not None
    open_app(page, f"{server.url}/guide?v=1&lesson=8&step=3&bet=1&moved=yes&present=yes")
    expect(page.get_by_text("Lesson 8, step 3 of 3")).to_be_visible()
    assert plain_text(question.says(0)) in plain_text(main_text(page))
    expect(page.locator(".dp-sentence")).to_contain_text("no guesser gets beyond 27 and 73")
    assert page.locator(".dp-worlds circle.sure").count() == 0
    header = page.get_by_test_id("stHeader")
    type_size = (
        "parseFloat(getComputedStyle(document.querySelector('[data-testid=stMain] p')).fontSize)"
    )
    expect(header).to_be_hidden()
    large = page.evaluate(type_size)
    press(page, "b")  # the stepper works while it is presented
    expect(page.locator(".dp-sentence")).to_contain_text("whoever sees one of these is certain")
    assert page.locator(".dp-worlds circle.sure").count() > 20
    expect(header).to_be_hidden()
    assert "bet=" not in page.url
    press(page, "1")
    assert "bet=1" in page.url  # the flag where it stood
    assert "moved=" not in page.url
    press(page, "m")
    assert "moved=yes" in page.url
    with rerun(page):
        page.go_back()  # the browser's own way back: what was revealed is hidden again
    assert "moved=" not in page.url
    assert "bet=1" in page.url
    press(page, "m")
    press(page, "Escape")
    expect(header).to_be_visible()
    assert "present=" not in page.url
    assert large == pytest.approx(1.5 * page.evaluate(type_size))


def test_every_lesson_by_keyboard_alone_at_both_widths(
    page: Page, context: BrowserContext, server: Server
) -> None:
    narrow = new_page(context)
    pages = [page, narrow]
    for one, size in zip(pages, (WIDE, PHONE), strict=True):
        one.set_viewport_size(size)  # type: ignore[arg-type]
        open_app(one, f"{server.url}/guide?v=1")
    for lesson in lessons():
        take(page, narrow, lesson)
    press(pages, "b")
    assert all(f"lesson={len(lessons())}" in one.url for one in pages)
    assert problems_of(narrow) == ""


def test_a_right_bet_the_move_by_hand_and_the_same_on_explore(page: Page, server: Server) -> None:
    lesson = lessons()[2]
    open_app(page, f"{server.url}/guide?v=1&lesson=3&step=2")
    question = lesson.asked(1)
    assert question is not None
    scrubber = page.locator(".dpv-scrub")
    assert scrubber.count() == 0  # nothing moves before the bet
    press(page, "1")  # the flag stands in the middle of the axis, which is near enough
    expect(page.locator("[data-highlight] .dpv-scrub")).to_be_visible()
    press(page, "m")
    assert plain_text(question.says(0.3)) in plain_text(main_text(page))
    assert "Right" in main_text(page)
    before = watch_of(page).runs
    page.keyboard.press("e")
    page.wait_for_url(re.compile(r"/\?"))
    wait_idle(page, after=before + 1)
    assert "epsilon=0.35" in page.url
    assert "m=gaussian" in page.url
    # Each term has one mark, which opens the glossary at that term and runs nothing else.
    marks = page.locator(".dp-term")
    expect(marks.nth(2)).to_be_attached()  # they are set when the page has been still for a moment
    terms = marks.evaluate_all("all => all.map(one => one.dataset.term)")
    assert len(terms) == len(set(terms)) > 2
    assert set(terms) <= {one.key for one in TERMS}
    chosen = next(one for one in TERMS if one.key == terms[-1])
    marks.last.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(plain_text(chosen.said))
    expect(dialog.locator("img")).to_be_visible()
    with rerun(page):
        dialog.get_by_role("radio", name="recovery").or_(
            dialog.get_by_role("button", name="recovery")
        ).first.click()
    expect(dialog).to_contain_text("How much of the structure survives")


def test_a_person_is_dragged_without_the_server(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/guide?v=1&lesson=2&step=1")
    sentence = page.locator(".dp-sentence")
    arrays = page.locator(".dp-worlds circle.on")
    before, runs = sentence.inner_text(), watch_of(page).runs
    filled = arrays.count()
    disk = page.locator(".dp-disk").bounding_box()
    assert disk is not None
    middle = (disk["x"] + disk["width"] / 2, disk["y"] + disk["height"] / 2)
    page.mouse.move(middle[0] + 0.3 * disk["width"], middle[1])
    page.mouse.down()
    page.mouse.move(*middle, steps=8)
    page.mouse.up()
    expect(sentence).not_to_have_text(before)
    expect(sentence).to_contain_text("50 of 100 releases without her and for 50 of 100")
    assert arrays.count() == 100
    handle = page.locator(".dp-handle")
    handle.focus()
    for _ in range(20):
        handle.press("ArrowRight")
    expect(sentence).to_contain_text("no guesser gets beyond 27 and 73")
    assert arrays.count() == 100  # so many say "in" in both worlds together, whatever the row
    assert filled == 100
    assert "50 of 100 releases without" not in sentence.inner_text()
    assert watch_of(page).runs == runs


def test_a_released_direction_follows_its_law(browser: Browser) -> None:
    """The page's own laws on the circle against a quadrature and against the mechanisms."""
    keys = directional(Problem(41, 2, 1, Relation.ZERO_OUT, Domain.ball(2)))
    assert len(keys) >= 3
    payload = person_payload([parse_variant(key) for key in keys], 1e-5, draws=4_000)
    view = browser.new_page()
    view.set_content(person_page(payload))
    row, rest = np.array([0.8, -0.5]), np.array(payload["others"])
    without = rest.T @ rest
    within = without + np.outer(row, row)
    place = EPSILONS.index(1.0)
    asked = {"payload": payload, "place": place, "row": row.tolist()}
    found = view.evaluate(
        """({ payload, place, row }) => payload.mechanisms.map((one) => {
          const alarm = (now) => DpvizDirections.alarm(
            one, now, payload.others, row, Math.atan2(row[1], row[0]));
          const sums = DpvizDirections.moment(payload.others, row);
          return { alarm: alarm(one.at[place]),
                   angles: DpvizDirections.draws(one, one.at[place], sums) };
        })""",
        asked,
    )
    for key, law, seen in zip(keys, payload["mechanisms"], found, strict=True):
        mechanism, problem = parse_variant(key), Problem(
            41, 2, 1, Relation.ZERO_OUT, Domain.ball(2)
        )  # fmt: skip
        axis = np.linalg.eigh(within)[1][:, -1]
        nearness = np.cos(np.array(seen["angles"]) - math.atan2(axis[1], axis[0])) ** 2
        calibration = mechanism.calibrate(problem, Budget(1.0, 1e-5))
        streams = Draws.batch(np.random.default_rng(0), 40_000)
        released = mechanism.release_many(SecondMoment(within / 41, 41), calibration, streams)
        cosines = released.components[:, :, 0] @ axis
        # a mean of values in [0, 1]: six standard errors of both, false alarm below 2e-9
        error = 6 * math.sqrt(0.25 / 4_000 + 0.25 / 40_000)
        assert abs(nearness.mean() - (cosines**2).mean()) <= error
        # Negative control: neither the table's own direction nor pure chance passes for it.
        assert 0.5 + error < (cosines**2).mean() < 1 - error
        if law["law"] == "bingham":
            turns = np.linspace(0, math.pi, 100_000, endpoint=False)
            units = np.stack([np.cos(turns), np.sin(turns)], axis=1)
            weight = calibration.scale / problem.n
            shares = [
                np.exp(weight * np.einsum("ni,ij,nj->n", units, sums, units))
                for sums in (without, within)
            ]
            out, inside = (share / share.sum() for share in shares)
            order = np.argsort(-inside / out)  # no test of this size does better
            said, missed = np.cumsum(out[order]), 1 - np.cumsum(inside[order])
            best = said[np.abs(said - missed).argmin()]
            assert seen["alarm"] == pytest.approx(best, abs=1e-4)
    sentence = view.locator(".dp-sentence")
    before = sentence.inner_text()
    for _ in range(12):
        view.locator(".dp-handle").press("ArrowDown")
    expect(sentence).not_to_have_text(before)
    expect(view.locator(".dp-key")).to_contain_text("one released direction")
    view.close()


def test_decide_from_an_upload_to_a_printed_card(
    page: Page, server: Server, tmp_path: Path
) -> None:
    # A search that takes a while says how far it is, ends at once when it is told to, and keeps
    # what it has found.
    page.goto(f"{server.url}/decide?v=1&about=plan&people=100000&features=100&ask=card")
    expect(page.get_by_test_id("stProgress")).to_contain_text("Searching")
    page.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    expect(page.get_by_text("There is no card before all were asked.")).to_be_visible()
    expect(page.get_by_role("button", name="Go on")).to_be_visible()
    assert page.locator(".dp-card").count() == 0
    open_app(page, f"{server.url}/decide?v=1")
    uploader = page.locator('input[type="file"]')
    if uploader.count() == 0:
        page.get_by_role("button", name="Upload").first.click()
    with rerun(page):
        uploader.first.set_input_files(
            {"name": "people.csv", "mimeType": "text/csv", "buffer": EXAMPLE.read_bytes()}
        )
    page.keyboard.press("Escape")
    for name in ("Next", "Next", "Next", "Show the card"):
        with rerun(page):
            page.get_by_role("button", name=name, exact=True).click()
    card = page.locator(".dp-card")
    expect(card.get_by_role("heading", level=1)).to_contain_text(
        "of the structure survives from an epsilon of about"
    )
    expect(card).to_contain_text("Least epsilon of each mechanism whose claim holds there")
    assert card.locator("img").count() == 2
    assert "people.csv" not in page.url
    page.emulate_media(media="print")
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    expect(card).to_be_visible()
    sheet = tmp_path / "card.pdf"
    page.pdf(path=sheet)
    assert sheet.read_bytes().startswith(b"%PDF")
    page.emulate_media(media="screen")
    files = []
    for name in ("to print or mail", "Report with this card"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        files.append(Path(waiting.value.path()).read_text(encoding="utf-8"))
    for text in files:
        assert "Consequences" in text
    assert "Assumed public" in files[1]


def test_the_board_file_works_with_the_network_off(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "board.html"
    words = ["board", "digits", "--trials", "8", "--delta", "1e-6", "--out", str(path)]
    words += ["--mechanism", "gaussian", "--mechanism", "wishart_difference"]
    subprocess.run([sys.executable, "-m", "dpviz", *words], check=True, capture_output=True)
    assert path.stat().st_size < 8_000_000
    context = browser.new_context(offline=True, viewport=WIDE, reduced_motion="reduce")  # type: ignore[arg-type]
    seen: list[str] = []
    view = context.new_page()
    view.on("request", lambda request: seen.append(request.url))
    view.on("pageerror", lambda error: seen.append(f"http error {error}"))
    view.goto(path.as_uri())
    slider = view.get_by_role("slider").first
    slider.focus()

    measures = ("picture", "spectrum", "distance")

    def shown() -> dict[str, list[str]]:
        view.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => "
            "requestAnimationFrame(() => done(null))))"
        )
        found = {"recovery": view.locator(".dpv-value").all_inner_texts()}
        for measure in measures:
            found[measure] = view.locator(f"canvas.dpv-{measure}").evaluate_all(
                "all => all.map(node => node.toDataURL())"
            )
        return {name: values[-2:] for name, values in found.items()} | {
            "exact": [found["picture"][0], found["recovery"][0]],
            "words": view.locator(".dpv-words").all_inner_texts(),
        }

    slider.press("End")
    before = shown()
    slider.press("Home")
    after = shown()
    for name in ("recovery", *measures):  # of both mechanisms
        assert len(before[name]) == 2
        changed = [one != other for one, other in zip(before[name], after[name], strict=True)]
        assert all(changed), name
    assert before["exact"] == after["exact"]
    assert "nearly all" in before["words"]
    assert "mere chance" in after["words"]
    assert [url for url in seen if url.startswith("http")] == []
    context.close()
