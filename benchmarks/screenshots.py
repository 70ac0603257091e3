"""Take the README's screenshots from a dashboard that this script starts itself.

Run ``python -m benchmarks.screenshots docs``. The command writes ``explore-light.png`` and
``explore-dark.png``, 1400 pixels wide, and ``explore-phone.png``, 420 wide, each reduced to a
palette of 128 colours. It also writes ``scrub.gif``, which shows the Explore figure dragged along
epsilon; ``--scrub`` writes only this file. ``--edition`` writes only the images of docs/browser.md:
a shell's output while the folder is made and pushed into a local repository, and the folder's first
page. No image has more than `MOST_BYTES`.
"""

from __future__ import annotations

import argparse
import functools
import html
import http.server
import io
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import dpviz
from dpviz.core.files import app_path
from tests.e2e.browser import CHROMIUM_FLAGS, NO_BROWSER, find_chromium
from tests.e2e.harness import Server, new_page, open_app, problems_of, wait_idle
from tools.edition import fetch

MOST_BYTES = 300_000
SCRUB = (1200, 740)  # pixels
# Each screenshot has a name, a width and height in pixels, and a colour scheme.
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
    """Return the Explore figure of digits, dragged from least to largest epsilon, as a GIF."""
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "board.html"
        dpviz.board("digits").write(file)
        page = browser.new_page(viewport={"width": SCRUB[0], "height": SCRUB[1]})
        page.goto(file.as_uri())
        page.keyboard.press("Escape")  # The file opens on the stage, which shows two columns.
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
            frames.append(shot.resize(half))
            page.keyboard.press("ArrowRight")
        page.close()
    sink, shared = io.BytesIO(), frames[-1].quantize(64)  # One palette lets most pixels stay.
    first, *rest = (one.quantize(palette=shared, dither=Image.Dither.NONE) for one in frames)
    lasts = [120] * len(rest) + [2_000]
    first.save(
        sink, "GIF", save_all=True, append_images=rest, duration=lasts, loop=0, optimize=True
    )
    return sink.getvalue()


_SHELL = """<body style="margin:0;background:#111827;color:#f3f4f6"><pre
  style="margin:0;padding:14px 18px;font:14px/1.45 monospace;white-space:pre-wrap">{}</pre>"""
_SETTING = """<body style="margin:0;font:15px sans-serif;color:#111827;background:#fff">
  <div style="padding:16px 22px"><p>Settings &rsaquo; <b>Pages</b></p><p>Build and deployment</p>
  <p>Source <span style="border:1px solid #6b7280;border-radius:6px;padding:5px 10px">
  <b>GitHub Actions</b> &#9662;</span></p><p style="color:#4b5563">then .github/workflows/pages.yml
  publishes each push to <b>main</b></p></div>"""
_MAKE = "python -m dpviz export-browser mine --embed data/example.csv --workflow"
_PUSH = (
    "git init -q -b main",
    "git add .",
    "git commit -q -m 'Our page'",
    "git remote add origin ../pages.git",
    "git push -q -u origin main",
    "git status -sb",
)


def _output(command: str, folder: Path, more: str = "") -> str:
    """Return a command as typed, and its output."""
    who = {
        f"GIT_{role}_{what}": "dpviz"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    python = Path(sys.executable).parent
    answer = subprocess.run(
        ["bash", "-c", command + more], cwd=folder, check=True, capture_output=True, text=True,
        env={**os.environ, **who, "PATH": f"{python}:{os.environ['PATH']}"},
    )  # fmt: skip
    return f"$ {command}\n{answer.stdout}"


def editions(browser: Browser) -> dict[str, bytes]:
    """Return the images for the five steps of docs/browser.md, by name."""
    with tempfile.TemporaryDirectory() as scratch:
        top, root = Path(scratch), app_path().parent
        (top / "data").mkdir()
        (top / "data" / "example.csv").write_bytes((root / "data" / "example.csv").read_bytes())
        subprocess.run(["git", "init", "-q", "--bare", "pages.git"], cwd=top, check=True)
        os.environ["PYTHONPATH"] = str(root)
        listing = _output(_MAKE, top, f" --libraries {fetch()}") + _output("ls -A mine", top)
        output = "".join(_output(line, top / "mine") for line in _PUSH)
        texts = {"folder": _SHELL.format(html.escape(listing)),
                 "repository": _SHELL.format(html.escape(output)), "setting": _SETTING}  # fmt: skip
        images = {}
        page = browser.new_page(viewport={"width": 720, "height": 100})
        for name, text in texts.items():
            page.set_content(text)
            images[name] = page.locator("body").screenshot()
        page.close()
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=top / "mine")
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever).start()
            for name, width, height in (("first", 1200, 640), ("phone", 420, 640)):
                page = browser.new_page(viewport={"width": width, "height": height})
                page.goto(f"http://127.0.0.1:{server.server_port}/")
                board = page.frame_locator("iframe").first
                board.get_by_label("Epsilon", exact=True).wait_for()
                page.evaluate("() => document.fonts.ready")
                shot = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
                sink = io.BytesIO()
                size = (shot.width * 6 // 10, shot.height * 6 // 10) if width > 720 else shot.size
                shot.resize(size).save(sink, "PNG")
                images[name] = sink.getvalue()
                page.close()
            server.shutdown()
    return {f"browser-{name}": smaller(picture) for name, picture in images.items()}


def main() -> None:
    """Take all screenshots and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files go, such as docs")
    parser.add_argument("--scrub", action="store_true", help="only the moving picture")
    parser.add_argument("--edition", action="store_true", help="only those of docs/browser.md")
    options = parser.parse_args()
    folder: Path = options.folder
    path = find_chromium()
    if path is None:
        parser.exit(2, NO_BROWSER + "\n")
    folder.mkdir(parents=True, exist_ok=True)
    if options.edition:
        with sync_playwright() as driver:
            chromium = driver.chromium.launch(executable_path=path, args=[*CHROMIUM_FLAGS])
            for name, picture in editions(chromium).items():
                (folder / f"{name}.png").write_bytes(picture)
                print(f"{folder / name}.png: {len(picture) / 1000:.0f} kB")
            chromium.close()
        return
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
