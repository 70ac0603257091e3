"""What carries the board: ECharts with a timeline, or a component of our own, in one browser.

Both show the same payload, six mechanisms at every epsilon of the path: a picture of 300 rows, a
spectrum and a recovery each. Each is a page of its own on a server of its own, visited in turn.
Measured are the bytes that arrive over the websocket, the seconds from asking for the page until
the first frame is painted, and the time between animation frames while epsilon is dragged from one
end to the other. ECharts has it easier: one colour a picture, no sentence, no words that change.

Run ``python -m benchmarks.carriers``.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Browser, Page, WebSocket

from benchmarks.paint import START, STOP
from benchmarks.visits import chromium, visitor
from dpviz.core.files import app_path
from dpviz.core.settings import Settings
from dpviz.mechanisms import featured
from dpviz.preparation.load import load_prepared
from dpviz.report.figures.boardfile import full_payload
from dpviz.report.tables.payload import Frame, Payload
from tests.e2e.harness import Server, wait_idle

STEPS = 60  # of a drag
_HEAD = "import json, streamlit as st\nst.set_page_config(layout='wide')\n"
_APPS = {
    "ECharts timeline": "st.echarts_chart(json.load(open({data!r})), height=700)",
    "component": (
        "from pages.ui import board\n"
        "payload = json.load(open({data!r}))\n"
        "board._MOUNT(key='board', data=dict(payload=payload, token='t', shape='s', wanted=True, "
        "pin=None, draws=None))"
    ),
}
_PAINTED = """() => {
  const canvas = document.querySelector("[data-testid=stEChartsChart] canvas");
  if (!canvas || !canvas.width) return false;
  const seen = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  return seen.some((value) => value > 0);
}"""


def _await_paint(page: Page, name: str) -> None:
    if name == "component":
        page.locator(".dpv[data-complete] .dpv-col").first.wait_for()
    else:
        page.wait_for_function(_PAINTED)


def _unpacked(text: str, kind: str) -> Any:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def timeline(payload: Payload) -> dict[str, Any]:
    """Return the ECharts option that shows a payload: three grids a mechanism, one option a frame.

    Parameters
    ----------
    payload : Payload
        With every frame.
    """
    limits, columns = payload["limits"], payload["columns"]
    across, up = limits["picture"]
    low, high = (limits["spectrum"]["first"][end] for end in ("low", "high"))
    reach = ((-across, across, -up, up), (1, 15, low, high), (0, 1, -0.5, 0.5))
    heights = ((8, 38), (52, 22), (80, 8))  # top and height in percent
    grids, x_axes, y_axes, series = [], [], [], []
    width = 94 / len(columns)
    for place, column in enumerate(columns):
        for row, ((left, right, bottom, top), (start, tall)) in enumerate(
            zip(reach, heights, strict=True)
        ):
            number = 3 * place + row
            grids.append(
                {"left": f"{3 + place * width}%", "width": f"{width - 1.5}%",
                 "top": f"{start}%", "height": f"{tall}%"}
            )  # fmt: skip
            axis = {"type": "value", "gridIndex": number, "axisLabel": {"show": False}}
            x_axes.append({**axis, "min": left, "max": right})
            y_axes.append({**axis, "min": bottom, "max": top})
            series.append(
                {"type": "scatter" if row == 0 else "line", "symbolSize": 4, "xAxisIndex": number,
                 "yAxisIndex": number, "color": column["colour"]}
            )  # fmt: skip
    return {
        "baseOption": {
            "animation": False,
            "timeline": {
                "axisType": "category", "data": [f"{e:g}" for e in payload["epsilons"]],
                "currentIndex": len(payload["epsilons"]) - 1, "left": 40, "right": 40, "bottom": 5,
                "controlStyle": {"show": False}, "realtime": True,
            },
            "grid": grids, "xAxis": x_axes, "yAxis": y_axes, "series": series,
        },
        "options": [_option(frame, payload) for frame in payload["frames"]],
    }  # fmt: skip


def _option(frame: Frame, payload: Payload) -> dict[str, Any]:
    scale = payload["limits"]["scale"] / 32767
    drawn: list[dict[str, Any]] = []
    for column in payload["columns"]:
        cell = frame["cells"].get(column["key"])
        if cell is None:
            drawn += [{"data": []}] * 3
            continue
        places = _unpacked(cell["picture"], "<i2").reshape(-1, 2) * scale
        lines = _unpacked(cell["spectrum"]["lines"], "<f4").reshape(3, -1)[0][:15]
        recovery = cell["recovery"][0]
        drawn += [
            {"data": places.round(4).tolist()},
            {"data": [[place, round(float(v), 6)] for place, v in enumerate(lines, 1)]},
            {"data": [[0, 0], [recovery, 0]]},
        ]
    return {"series": drawn}


def _grip(page: Page, name: str) -> tuple[float, float, float]:
    """Return where a drag starts and ends, and its height on the page."""
    if name == "component":
        box = page.get_by_role("slider", name="Epsilon").bounding_box()
        assert box is not None
        y = box["y"] + box["height"] / 2
        return box["x"] + 0.98 * box["width"], box["x"] + 0.02 * box["width"], y
    box = page.locator("[data-testid=stEChartsChart] canvas").bounding_box()
    assert box is not None
    return box["x"] + box["width"] - 55, box["x"] + 60, box["y"] + box["height"] - 30


def visit(browser: Browser, url: str, name: str) -> tuple[int, float, list[float], int]:
    """Return bytes received, seconds to the first paint, times of a drag's frames, its messages."""
    received: list[int] = []
    sent: list[float] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: received.append(len(payload)))
        socket.on("framesent", lambda payload: sent.append(time.perf_counter()))

    with visitor(browser) as page:
        page.on("websocket", watch)
        started = time.perf_counter()
        page.goto(url)
        _await_paint(page, name)
        painted = time.perf_counter() - started
        wait_idle(page)
        total = sum(received)
        before = page.screenshot()
        left, right, y = _grip(page, name)
        page.mouse.move(left, y)
        page.mouse.down()
        dragged = time.perf_counter()
        page.evaluate(START)
        for step in range(1, STEPS + 1):
            page.mouse.move(left + (right - left) * step / STEPS, y)
            page.evaluate("() => new Promise(done => requestAnimationFrame(() => done(null)))")
        frames: list[float] = page.evaluate(STOP)
        messages = sum(when > dragged for when in sent)
        page.mouse.up()
        if page.screenshot() == before:
            raise RuntimeError(f"dragging changed nothing: {name}")
    return total, painted, frames, messages


def main() -> None:
    """Print one line a carrier."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--visits", type=int, default=3)
    parser.add_argument("--table", default="digits")
    arguments = parser.parse_args()
    settings = Settings(table=arguments.table, mechanisms=featured(), trials=20)
    payload = full_payload(load_prepared(settings), replace(settings, epsilon=10.0))
    del payload["draws"]
    given = {"ECharts timeline": timeline(payload), "component": payload}
    root = app_path().parent
    seen: dict[str, list[tuple[int, float, list[float], int]]] = {name: [] for name in given}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = {}
        for number, (name, shown) in enumerate(given.items()):
            data, script = folder / f"{number}.json", folder / f"carrier{number}.py"
            data.write_text(json.dumps(shown, separators=(",", ":")), encoding="utf-8")
            script.write_text(_HEAD + _APPS[name].format(data=str(data)), encoding="utf-8")
            paths = os.pathsep.join(filter(None, [str(root), os.environ.get("PYTHONPATH")]))
            server = Server(script, folder / f"{number}.log", {"PYTHONPATH": paths}, root)
            urls[name] = stack.enter_context(server).url
        browser = stack.enter_context(chromium())
        for turn in range(arguments.visits + 1):
            for name, url in urls.items():
                found = visit(browser, url, name)
                if turn:  # the first visit warms the server
                    seen[name].append(found)
    print(f"{len(payload['columns'])} mechanisms x {len(payload['frames'])} frames on "
          f"{arguments.table}, {arguments.visits} visits in turn")  # fmt: skip
    for name, visits in seen.items():
        frames = sorted(value for _, _, times, _ in visits for value in times)
        print(
            f"{name:<17} {statistics.median(one[0] for one in visits) / 1e3:6.0f} kB, first paint "
            f"{statistics.median(one[1] for one in visits):5.2f} s, drag: median frame "
            f"{statistics.median(frames):5.1f} ms, p95 {frames[int(0.95 * len(frames))]:5.1f} ms, "
            f"{max(one[3] for one in visits)} messages to the server"
        )


if __name__ == "__main__":
    main()
