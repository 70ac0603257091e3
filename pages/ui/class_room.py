"""A class's phones beside Streamlit: one light page, bets, and streams of what is asked.

Phones open no session of the dashboard. The room is opened by ``dpviz class``, which names it and
its key in the environment; without that there is none.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

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


def _of_room(
    answer: Callable[[Request, Room], Awaitable[Response]], *, keyed: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint of the open room; where it is keyed, of whoever has the room's key."""

    async def endpoint(request: Request) -> Response:
        opened = room()
        key = request.query_params.get("key") or request.headers.get("x-room-key", "")
        there = opened is not None and request.path_params["room"].upper() == opened.name
        if opened is None or not there or (keyed and not opened.knows(key)):
            return PlainTextResponse("There is no such room.\n", 404)
        return await answer(request, opened)

    return endpoint


async def _phone(request: Request, opened: Room) -> Response:
    return HTMLResponse(_page("phone").replace("ROOM", opened.name))


@cache
def _page(name: str) -> str:
    return (Path(__file__).parent / f"class_{name}.html").read_text(encoding="utf-8")


async def _wall(request: Request, opened: Room) -> Response:
    """Play a round of in or out and show it: the address says which, as a lesson's does."""
    asked = request.query_params
    language = asked.get("language", "en")
    try:
        require(language)
        played = Round(
            opened.key, _number(asked, "epsilon", float), _number(asked, "round", int), language
        )
    except InvalidSetting as error:
        return PlainTextResponse(f"{error}\n", 400)
    opened.play(played, phone_words(language))
    told = {
        **entrance(opened),
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


async def _bet(request: Request, opened: Room) -> Response:
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
        opened.bet(step, phone, value)
    except RoomClosed as error:
        return PlainTextResponse(str(error), 409)
    return PlainTextResponse("sent")


async def _show(request: Request, opened: Room) -> Response:
    opened.show()
    return PlainTextResponse("shown")


async def _events(request: Request, opened: Room) -> Response:
    # The projector hears of every bet; a phone only of a new question, and of the end.
    wall = opened.knows(request.query_params.get("key", ""))
    phone = request.query_params.get("phone", "")[:_LONGEST]

    async def stream() -> AsyncIterator[str]:
        seen, silent = None, 0.0
        while True:
            now = (opened.version, opened.ended, (opened.count, opened.dealt) if wall else 0)
            if now != seen:
                seen, silent = now, 0.0
                told = opened.for_wall() if wall else opened.for_phones(phone)
                yield f"data: {json.dumps(told)}\n\n"
                if opened.ended:
                    return
            elif silent >= _BEATS:
                silent = 0.0
                yield ": here\n\n"
            await asyncio.sleep(_LOOKS)
            silent += _LOOKS

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


ROUTES = [
    Route("/c/{room}", _of_room(_phone)),
    Route("/c/{room}/wall", _of_room(_wall, keyed=True)),
    Route("/c/{room}/bet", _of_room(_bet), methods=["POST"]),
    Route("/c/{room}/show", _of_room(_show, keyed=True), methods=["POST"]),
    Route("/c/{room}/events", _of_room(_events)),
]
"""Of a class; each says that there is no such room where there is none."""
