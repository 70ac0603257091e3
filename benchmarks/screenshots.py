"""Take the README's screenshots from a dashboard that this script starts itself.

Run ``python -m benchmarks.screenshots docs``. Writes ``explore-light.png`` and
``explore-dark.png``, 1400 pixels wide, and ``explore-phone.png``, 420 wide. Each is reduced to a
palette of 128 colours, which keeps it below `MOST_BYTES`.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from dpviz.core.paths import app_path
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_page, open_app, problems_of, wait_idle

MOST_BYTES = 300_000
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


def main() -> None:
    """Take all screenshots and say how large they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go, such as docs")
    folder: Path = parser.parse_args().folder
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
        for name, width, height, scheme in SHOTS:
            picture = smaller(take(browser, server.url, width, height, scheme))
            if len(picture) > MOST_BYTES:
                parser.exit(1, f"{name} has {len(picture)} bytes, more than {MOST_BYTES}\n")
            (folder / f"{name}.png").write_bytes(picture)
            print(f"{folder / name}.png: {width} x {height}, {len(picture) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
