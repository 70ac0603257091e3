"""A class's phones beside Streamlit: one light page, bets, and streams of what is asked.

Phones open no session of the dashboard. The room is opened by ``dpviz class``, which names it and
its key in the environment; without that there is none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from dpviz.core.errors import InvalidSetting
from dpviz.core.files import strict_json
from dpviz.core.number_text import numeral
from dpviz.lessons.in_or_out import Round
from dpviz.lessons.languages import phone_words, require, wall_words
from dpviz.lessons.person import EPSILONS, table
from dpviz.lessons.room import Room, RoomClosed, entrance, room

_N = TypeVar("_N", int, float)

_MOST = 300
"""Bytes of a bet."""

_LONGEST = 64
"""Letters of the number that a phone made up itself."""

_LOOKS = 0.1
"""Seconds between two looks at a room; a stream says nothing that is not new."""

_BEATS = 15.0
"""Seconds after which a stream says that it is there, so that no box on the way closes it."""


def _here(request: Request) -> Room | None:
    found = room()
    given = request.path_params["room"].upper()
    return found if found is not None and given == found.name else None


def _none() -> Response:
    return PlainTextResponse("There is no such room.\n", 404)


async def _phone(request: Request) -> Response:
    found = _here(request)
    return _none() if found is None else HTMLResponse(_page("phone").replace("ROOM", found.name))


@cache
def _page(name: str) -> str:
    return (Path(__file__).parent / f"class_{name}.html").read_text(encoding="utf-8")


async def _wall(request: Request) -> Response:
    """Play a round of in or out and show it: the address says which, as a lesson's does."""
    found, asked = _here(request), request.query_params
    if found is None or not found.knows(asked.get("key", "")):
        return _none()
    language = asked.get("language", "en")
    try:
        require(language)
        played = Round(
            found.key, _number(asked, "epsilon", float), _number(asked, "round", int), language
        )
    except InvalidSetting as error:
        return PlainTextResponse(f"{error}\n", 400)
    found.play(played, phone_words(language))
    told = {
        **entrance(found),
        "step": played.step,
        "language": language,
        "words": wall_words(language),
        "epsilons": [[str(one), numeral(one)] for one in EPSILONS],
        "at": EPSILONS.index(played.epsilon),
        "round": played.number,
        "mechanism": played.mechanism.label,
        "people": table().n,
        "picture": played.picture,
        "ask": played.question.ask,
    }
    # nothing in it can end the script that it stands in
    return HTMLResponse(_page("wall").replace("TOLD", json.dumps(told).replace("<", "\\u003c")))


def _number(asked: QueryParams, name: str, kind: Callable[[str], _N]) -> _N:
    given = asked.get(name, "1")
    try:
        return kind(given)
    except ValueError:
        allowed = "a whole number" if kind is int else "a number"
        raise InvalidSetting(name, allowed, given) from None


async def _bet(request: Request) -> Response:
    found = _here(request)
    if found is None:
        return _none()
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST:
                return PlainTextResponse("Too long.", 413)
    except ClientDisconnect:
        return PlainTextResponse("Lost.", 400)
    try:
        said = strict_json(body.decode())
        step, phone, value = str(said["step"]), str(said["phone"]), float(said["value"])
    except (ValueError, KeyError, TypeError):
        return PlainTextResponse("Not a bet.", 400)
    try:
        found.bet(step, phone, value)
    except RoomClosed as error:
        return PlainTextResponse(str(error), 409)
    return PlainTextResponse("sent")


async def _show(request: Request) -> Response:
    found = _here(request)
    if found is None or not found.knows(request.headers.get("x-room-key", "")):
        return _none()
    found.show()
    return PlainTextResponse("shown")


async def _events(request: Request) -> Response:
    found = _here(request)
    if found is None:
        return _none()
    # The projector hears of every bet; a phone only of a new question, and of the end.
    wall = found.knows(request.query_params.get("key", ""))

    phone = request.query_params.get("phone", "")[:_LONGEST]

    def mark() -> Any:
        return (found.version, found.ended, (found.count, found.dealt) if wall else 0)

    return StreamingResponse(
        _stream(
            mark,
            found.for_wall if wall else partial(found.for_phones, phone),
            lambda: found.ended,
        ),
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def _stream(
    mark: Callable[[], Any], tell: Callable[[], dict[str, Any]], over: Callable[[], bool]
) -> AsyncIterator[str]:
    seen, silent = None, 0.0
    while True:
        now = mark()
        if now != seen:
            seen, silent = now, 0.0
            yield f"data: {json.dumps(tell())}\n\n"
            if over():
                return
        elif silent >= _BEATS:
            silent = 0.0
            yield ": here\n\n"
        await asyncio.sleep(_LOOKS)
        silent += _LOOKS


ROUTES = [
    Route("/c/{room}", _phone),
    Route("/c/{room}/wall", _wall),
    Route("/c/{room}/bet", _bet, methods=["POST"]),
    Route("/c/{room}/show", _show, methods=["POST"]),
    Route("/c/{room}/events", _events),
]
"""Of a class; each says that there is no such room where there is none."""
