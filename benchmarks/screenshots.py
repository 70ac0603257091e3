"""Take the README's screenshots from a dashboard that this script starts itself.

Run ``python -m benchmarks.screenshots docs``. Writes ``explore-light.png`` and
``explore-dark.png``, 1400 pixels wide, and ``explore-phone.png``, 420 wide, each reduced to a
palette of 128 colours; and ``scrub.gif``, the board's file dragged along epsilon, which ``--scrub``
writes alone. None has more than `MOST_BYTES`.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import dpviz
from dpviz.core.paths import app_path
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_page, open_app, problems_of, wait_idle

MOST_BYTES = 300_000
SCRUB, SMALL = (1200, 600), (600, 300)  # pixels, looked at and kept
# Name, width and height in pixels, colour scheme.
SHOTS = (
    ("explore-light", 1400, 900, "light"),
    ("explore-dark", 1400, 900, "dark"),
    ("explore-phone", 420, 900, "light"),
)


def take(browser: Browser, url: str, width: int, height: int, scheme: str) -> bytes:
    """Return one screenshot as PNG."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if scheme == "dark" else "light",
        reduced_motion="reduce",
    )
    page = new_page(context)
    open_app(page, url)
    page.evaluate("() => document.fonts.ready")
    wait_idle(page)
    problems = problems_of(page)
    if problems:
        raise RuntimeError(f"the page has problems, so no screenshot of it:\n{problems}")
    picture = page.screenshot(animations="disabled", caret="hide")
    context.close()
    return picture


def smaller(picture: bytes) -> bytes:
    """Return the PNG with a palette of 128 colours."""
    sink = io.BytesIO()
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(128, dither=Image.Dither.NONE).save(sink, "PNG", optimize=True)
    return sink.getvalue()


def scrubbed(browser: Browser) -> bytes:
    """Return the board of digits, dragged from the least to the largest epsilon, as a GIF."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "board.html"
        dpviz.board("digits").write(file)
        page = browser.new_page(viewport={"width": SCRUB[0], "height": SCRUB[1]})
        page.goto(file.as_uri())
        slider = page.get_by_label("Epsilon", exact=True)
        slider.focus()
        page.keyboard.press("Home")
        frames = []
        for _ in range(int(slider.get_attribute("max") or 0) // 2 + 1):
            page.wait_for_function(
                "() => new Promise(done => requestAnimationFrame(() => done(true)))"
            )
            shot = Image.open(io.BytesIO(page.screenshot(caret="hide"))).convert("RGB")
            half = (shot.width // 2, shot.height // 2)
            frames.append(shot.resize(half).quantize(32, dither=Image.Dither.NONE))
            page.keyboard.press("ArrowRight")
        page.close()
    sink = io.BytesIO()
    first, *rest = frames
    lasts = [120] * len(rest) + [2_000]
    first.save(
        sink, "GIF", save_all=True, append_images=rest, duration=lasts, loop=0, optimize=True
    )
    return sink.getvalue()


def main() -> None:
    """Take all screenshots and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go, such as docs")
    parser.add_argument("--scrub", action="store_true", help="only the moving picture")
    options = parser.parse_args()
    folder: Path = options.folder
    path = find_chromium()
    if path is None:
        parser.exit(2, NO_BROWSER + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        Server(app_path(), Path(scratch) / "server.log") as server,
        sync_playwright() as driver,
    ):
        browser = driver.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS])
        moving = scrubbed(browser)
        if len(moving) > MOST_BYTES:
            parser.exit(1, f"scrub.gif has {len(moving)} bytes, more than {MOST_BYTES}\n")
        (folder / "scrub.gif").write_bytes(moving)
        print(f"{folder / 'scrub.gif'}: {len(moving) / 1000:.0f} kB")
        for name, width, height, scheme in () if options.scrub else SHOTS:
            picture = smaller(take(browser, server.url, width, height, scheme))
            if len(picture) > MOST_BYTES:
                parser.exit(1, f"{name} has {len(picture)} bytes, more than {MOST_BYTES}\n")
            (folder / f"{name}.png").write_bytes(picture)
            print(f"{folder / name}.png: {width} x {height}, {len(picture) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
