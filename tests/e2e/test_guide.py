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
from playwright.sync_api import Browser, Page, expect

from dpviz.core.moments import SecondMoment
from dpviz.core.problem import Budget
from dpviz.core.seeding import Draws
from dpviz.lessons import Lesson, ShownQuestion, lessons
from dpviz.lessons.glossary import TERMS
from dpviz.lessons.person import EPSILONS, directional, person_payload, table
from dpviz.mechanisms import parse_variant
from tests.e2e.harness import (
    Server,
    new_page,
    open_app,
    problems_of,
    rerun,
    travel,
    wait_idle,
    watch_of,
)
from tests.person_page import person_page

EXAMPLE = Path(__file__).resolve().parents[2] / "data" / "example.csv"
WIDE, PHONE = {"width": 1400, "height": 900}, {"width": 420, "height": 800}


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


def stage_text(page: Page) -> str:
    """What stands on the stage, once the step that the address names is drawn."""
    expect(page.locator(".dps[data-ready]")).to_be_visible()
    return plain_text(page.locator(".dps").inner_text())


def bet_wrong(page: Page, asked: ShownQuestion) -> float:
    """Bet by keyboard, wrongly, and return the bet."""
    if asked.axis is None:
        bet = (asked.right + 1) % len(asked.options)
        page.keyboard.press(str(int(bet) + 1))
        return bet
    low, high = asked.axis
    flag = page.locator(".dps-flag")
    expect(flag).to_have_attribute("aria-valuetext", "not placed")
    flag.focus()
    page.keyboard.press("End" if asked.right < high / 3 else "Home")
    page.keyboard.press("m")
    return high if asked.right < high / 3 else low


def take(page: Page, lesson: Lesson) -> None:
    """Go through a lesson by keyboard, bet wrong where one can, and read every reveal."""
    for place, step in enumerate(lesson.steps):
        where = page.locator(".dps-where")
        expect(where).to_contain_text(f"{place + 1} of {len(lesson.steps)}")
        expect(where.locator("select")).to_have_value(str(lesson.number))
        said, why = plain_text(lesson.filled(step.say)), plain_text(lesson.filled(step.why))
        assert said in stage_text(page)
        asked = lesson.question_at(place)
        if asked is not None:
            assert why not in stage_text(page)
            bet = bet_wrong(page, asked)
            then = page.locator(".dps-then")
            expect(then).not_to_be_empty()
            told = plain_text(asked.says(bet))
            assert told.startswith("Not so: ")
            assert plain_text(then.inner_text()).lower() == told.removeprefix("Not so: ").lower()
            assert "Not so" in page.locator(".dps h1").inner_text()
            assert plain_text(page.locator(".dps-why").inner_text()) == why
            if asked.axis is None:  # all options stay, the right one ticked
                ticked = page.locator(".dps-options button[data-right]")
                assert ticked.inner_text() == asked.right_text
                assert page.locator(".dps-options button").count() == len(asked.options)
        if step.extreme or (asked is None and step.move):
            page.keyboard.press("m")
        expect(page.locator(".dps-film li")).to_have_count(len(lesson.moves(place)) + 1)
        if (lesson.number, place) != (len(lessons()), len(lesson.steps) - 1):
            press(page, "n")


def test_a_shared_step_is_the_first_visit_of_a_server(
    page: Page, fresh_server: Callable[[], Server]
) -> None:
    """The link tells the step, the bet, the move and that it is presented; keys do the rest."""
    server = fresh_server()
    question = lessons()[-1].question_at(2)
    assert question is not None
    open_app(
        page, f"{server.url}/guide?v=1&lesson={len(lessons())}&step=3&bet=1&moved=yes&present=yes"
    )
    assert plain_text(question.then[0])[1:] in stage_text(page)
    expect(page.locator(".dp-sentence")).to_contain_text("at most 73 right")
    assert page.locator(".dp-worlds circle.sure").count() == 0
    expect(page.locator(".dps-foot")).to_be_hidden()
    whole = page.locator(".dps").bounding_box()
    assert whole == {"x": 0, "y": 0, **page.viewport_size}  # type: ignore[dict-item]
    press(page, "b")  # the stepper works while it is presented
    expect(page.locator(".dp-sentence")).to_contain_text("whoever sees one of these is certain")
    assert page.locator(".dp-worlds circle.sure").count() > 20
    assert "bet=" not in page.url
    page.locator(".dps-flag").focus()
    page.keyboard.press("End")
    with rerun(page):
        page.keyboard.press("m")
    expect(page.locator(".dps-then")).not_to_be_empty()
    wait_idle(page)
    assert "bet=10" in page.url
    assert "moved=yes" in page.url
    press(page, "Escape")
    expect(page.get_by_test_id("stHeader")).to_be_visible()
    assert "present=" not in page.url
    assert page.locator(".dps").bounding_box()["y"] > 20  # type: ignore[index]


def test_every_lesson_by_keyboard_alone(page: Page, server: Server) -> None:
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    sent: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda one: sent.append(str(one))))
    open_app(page, f"{server.url}/guide?v=1")
    for lesson in lessons():
        take(page, lesson)
    # Wrong bets, and where to read on.
    asked = {
        f"{one.number}.{place + 1}"
        for one in lessons()
        for place in range(len(one.steps))
        if one.question_at(place) is not None
    }
    count = len(asked)
    expect(page.locator(".dps-score")).to_contain_text(f"You bet right 0 of {count}. Read next")
    # A busy server reads the last of what waits for it: the way on says the bet again.
    onward = [one for one in sent if '"go"' in one]
    last = f"{len(lessons())}.{len(lessons()[-1].steps)}"
    for step in asked - {last}:
        assert any(f'"{step}"' in one and '"bet"' in one for one in onward), step


def test_a_flag_is_dragged_and_the_reveal_shows_before_it_speaks(
    browser: Browser, server: Server
) -> None:
    """By a finger on a phone: the picture moves where it is seen, rests, and then words come."""
    context = browser.new_context(viewport=PHONE, has_touch=True)  # type: ignore[arg-type]
    page = new_page(context)
    question = lessons()[2].question_at(1)
    assert question is not None
    open_app(page, f"{server.url}/guide?v=1&lesson=3&step=2")
    assert "you bet" not in stage_text(page).lower()
    flag, axis = page.locator(".dps-flag i"), page.locator(".dps-axis").bounding_box()
    start = flag.bounding_box()
    assert start is not None
    assert axis is not None
    page.mouse.move(start["x"] + 40, start["y"] + 40)
    page.mouse.down()
    page.mouse.move(axis["x"] + axis["width"] / 2, axis["y"] + 40, steps=6)
    page.mouse.up()
    button = page.locator(".dps-do")
    expect(button).to_have_text("Bet on 0.3")
    # nor is it there before its words are
    assert not button.evaluate("""node => {
      const bare = node.parentElement.appendChild(node.cloneNode());
      const seen = bare.checkVisibility();
      bare.remove();
      return seen;
    }""")
    picture = page.locator(".dpv-col:not([data-key=exact]) canvas").first
    drawn, runs = picture.evaluate("node => node.toDataURL()"), watch_of(page).runs
    assert watch_of(page).runs == runs  # a drag says nothing to the server
    button.click()
    seen = page.evaluate(
        """async () => {
          const root = [...document.querySelectorAll("*")].map((node) => node.shadowRoot)
            .find((one) => one?.querySelector(".dps"));
          const stage = root.querySelector(".dps");
          const state = () => {
            const box = root.querySelector(".dps-pic").getBoundingClientRect();
            const inside = box.top >= 0 && box.bottom <= innerHeight;
            const then = root.querySelector(".dps-then").textContent;
            const tall = box.height > 0.39 * innerHeight;
            const count = root.querySelector(".dps-hundred b").textContent;
            return { arrived: stage.dataset.arrived, then, count, inside: inside && tall };
          };
          const seen = [];
          while (!root.querySelector(".dps-then").textContent) {
            seen.push(state());
            await new Promise((done) => setTimeout(done, 50));
          }
          seen.push(state());
          return seen;
        }"""
    )
    assert all(one["inside"] for one in seen)
    assert not seen[0].get("arrived")
    rests = [one for one in seen if one.get("arrived") and not one["then"]]
    assert len(rests) >= 10  # a second of stillness, looked at every 50 ms
    assert seen[-1]["then"]
    assert picture.evaluate("node => node.toDataURL()") != drawn
    assert {one["count"] for one in rests} == {seen[-1]["count"]} != {seen[0]["count"]}
    verdict = page.locator(".dps h1")
    assert "Right: 0.22. You said 0.3." in verdict.inner_text()
    wait_idle(page)
    button.click()
    expect(button).to_be_hidden()  # on to the extreme, and the verdict stays
    assert "Right: 0.22. You said 0.3." in verdict.inner_text()
    assert problems_of(page) == ""
    context.close()


def _leave_for(page: Page, address: str) -> None:
    """Open what the lesson is about, and wait for it."""
    before = watch_of(page).runs
    page.keyboard.press("e")
    page.wait_for_url(re.compile(address))
    wait_idle(page, after=before + 1)


def test_the_same_on_explore(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/guide?v=1&lesson=3&step=2&bet=0.3&moved=yes")
    assert "0.22" in stage_text(page)
    _leave_for(page, r"/\?")
    assert "epsilon=0.22" in page.url
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
    # What is about a person or about a printed mean is on Claims, in the same words.
    page.keyboard.press("Escape")
    travel(page, f"{server.url}/guide?v=1&lesson=1&step=2&language=de")
    assert "Was verrät der gedruckte Mittelwert?" in stage_text(page)
    _leave_for(page, r"/claims\?")
    assert "part=exploring" in page.url
    assert "table=iris" not in page.url


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
    expect(sentence).to_contain_text(": 50 right, 50 wrong")
    assert arrays.count() == 100
    handle = page.locator(".dp-handle")
    handle.focus()
    for _ in range(20):
        handle.press("ArrowRight")
    expect(sentence).to_contain_text("at most 73 right")
    assert arrays.count() == 100  # so many say "in" in both worlds together, whatever the row
    assert filled == 100
    assert ": 50 right" not in sentence.inner_text()
    assert watch_of(page).runs == runs


def test_a_released_direction_follows_its_law(browser: Browser) -> None:
    """The page's own laws on the circle against a quadrature and against the mechanisms."""
    keys = directional(table())
    assert len(keys) >= 3
    payload = person_payload([parse_variant(key) for key in keys], 1e-5, draws=4_000)
    view = browser.new_page()
    view.set_content(person_page(payload))
    row, rest = np.array([0.8, -0.5]), np.array(payload["others"])
    without = rest.T @ rest
    within = without + np.outer(row, row)
    place = EPSILONS.index(3.0)
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
        mechanism, n = parse_variant(key), len(rest) + 1
        axis = np.linalg.eigh(within)[1][:, -1]
        nearness = np.cos(np.array(seen["angles"]) - math.atan2(axis[1], axis[0])) ** 2
        calibration = mechanism.calibrate(table(), Budget(3.0, 1e-5))
        streams = Draws.batch(np.random.default_rng(0), 40_000)
        released = mechanism.release_many(SecondMoment(within / n, n), calibration, streams)
        cosines = released.components[:, :, 0] @ axis
        # a mean of values in [0, 1]: six standard errors of both, false alarm below 2e-9
        error = 6 * math.sqrt(0.25 / 4_000 + 0.25 / 40_000)
        assert abs(nearness.mean() - (cosines**2).mean()) <= error
        # Negative control: neither the table's own direction nor pure chance passes for it.
        assert 0.5 + error < (cosines**2).mean() < 1 - error
        if law["law"] == "bingham":
            turns = np.linspace(0, math.pi, 100_000, endpoint=False)
            units = np.stack([np.cos(turns), np.sin(turns)], axis=1)
            weight = calibration.scale / n
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
    live = page.locator(".dp-ceiling")
    expect(live).to_contain_text("parts")  # which limits are not public, or what it would take
    with rerun(page):
        page.get_by_role("button", name="Ask every mechanism", exact=True).click()
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

    def taken(name: str) -> str:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        return Path(waiting.value.path()).read_text(encoding="utf-8")

    assert "Consequences" in taken("to print or mail")
    assert "Consequences" not in taken("Report with this card")  # its numbers are the rows' own
    with rerun(page):
        page.get_by_text("With real rows and the truth: not to be shown around").click()
    report = taken("Report with this card")
    assert "Consequences" in report
    assert "Assumed public" in report


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
    view.get_by_role("button", name="leave").click()  # the stage has pictures alone
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


def test_the_class_turns_until_its_picture_stands(page: Page, server: Server) -> None:
    """The cloud turns by itself and by hand, stops at its widest side, and stays there."""
    page.emulate_media(reduced_motion="no-preference")
    page.set_viewport_size(WIDE)
    open_app(page, f"{server.url}/guide?v=1&lesson=1&step=1")
    expect(page.locator(".dps[data-ready]")).to_be_visible()
    cloud = page.get_by_role("img", name="A cloud of 30 people")
    drawn = "node => node.toDataURL()"
    moves = "([node, seen]) => node.toDataURL() !== seen"
    seen = cloud.evaluate(drawn)
    page.wait_for_function(moves, arg=[cloud.element_handle(), seen])
    with rerun(page):
        page.get_by_role("button", name="Turn it to its widest side").click()
    still = cloud.evaluate(drawn)
    assert still != seen
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert cloud.evaluate(drawn) == still
    # who asked for stillness gets it, and turns the cloud by hand
    page.emulate_media(reduced_motion="reduce")
    open_app(page, f"{server.url}/guide?v=1&lesson=1&step=1")
    expect(page.locator(".dps[data-ready]")).to_be_visible()
    seen = cloud.evaluate(drawn)
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")
    assert cloud.evaluate(drawn) == seen
    box = cloud.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 420, box["y"] + 300)
    page.mouse.up()
    assert cloud.evaluate(drawn) != seen


def test_a_step_is_saved_as_pictures_and_its_lesson_as_slides(page: Page, server: Server) -> None:
    open_app(page, f"{server.url}/guide?v=1&lesson=1&step=2")
    expect(page.locator(".dps[data-ready]")).to_be_visible()
    with rerun(page):
        page.get_by_role("button", name="Save", exact=True).click()
    offered = page.get_by_role("dialog")
    begins = {"png": b"\x89PNG", "svg": b"<svg", "gif": b"GIF89a", "pdf": b"%PDF"}
    for name in ("1.2.1.png", "1.2.2.svg", "1.2.gif", "1.pdf"):
        with page.expect_download() as told:
            offered.get_by_role("button", name=name).click()
        assert told.value.suggested_filename == name
        assert told.value.path().read_bytes().startswith(begins[name.rpartition(".")[2]])
    offered.get_by_role("button", name="Close").click()
    expect(offered).to_be_hidden()
