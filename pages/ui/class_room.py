"""A class's phones beside Streamlit: one light page, bets, and streams of questions.

Phones open no session of the dashboard. ``dpviz class`` opens the room and passes its name and key
in the environment; without this command there is no room.
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
"""Maximum size of a bet in bytes."""

_LONGEST = 64
"""Maximum length of the number that a phone chooses."""

_LOOKS = 0.1
"""Seconds between two checks of a room; a stream sends only changes."""

_BEATS = 15.0
"""Seconds after which a silent stream sends an empty message, so that no proxy closes it."""


def _of_room(
    answer: Callable[[Request, Room], Awaitable[Response]], *, needs_key: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint of the open room; with ``keyed``, requests need the room's key."""

    async def endpoint(request: Request) -> Response:
        here = room()
        key = request.query_params.get("key") or request.headers.get("x-room-key", "")
        there = here is not None and request.path_params["room"].upper() == here.name
        if here is None or not there or (needs_key and not here.knows(key)):
            return PlainTextResponse("There is no such room.\n", 404)
        return await answer(request, here)

    return endpoint


async def _phone(request: Request, here: Room) -> Response:
    return HTMLResponse(_page("phone").replace("ROOM", here.name))


@cache
def _page(name: str) -> str:
    return (Path(__file__).parent / f"class_{name}.html").read_text(encoding="utf-8")


async def _wall(request: Request, here: Room) -> Response:
    """Play and show the round of "in or out" that the address names, as a lesson's round."""
    query = request.query_params
    language = query.get("language", "en")
    try:
        require(language)
        game = Round(
            here.key, _number(query, "epsilon", float), _number(query, "round", int), language
        )
    except InvalidSetting as error:
        return PlainTextResponse(f"{error}\n", 400)
    here.play(game, phone_words(language))
    data = {
        **entrance(here),
        "step": game.step,
        "language": language,
        "words": wall_words(language),
        "epsilons": [[str(one), numeral(one)] for one in EPSILONS],
        "at": EPSILONS.index(game.epsilon),
        "round": game.number,
        "mechanism": game.mechanism.label,
        "people": table().n,
        "picture": game.picture,
        "ask": game.question.ask,
    }
    # Escape the character <, so that no text can end the script element that contains it.
    return HTMLResponse(_page("wall").replace("TOLD", json.dumps(data).replace("<", "\\u003c")))


def _number(query: QueryParams, name: str, kind: Callable[[str], _N]) -> _N:
    text = query.get(name, "1")
    try:
        return kind(text)
    except ValueError:
        rule = "a whole number" if kind is int else "a number"
        raise InvalidSetting(name, rule, text) from None


async def _bet(request: Request, here: Room) -> Response:
    body = b""
    try:
        async for part in request.stream():
            body += part
            if len(body) > _MOST:
                return PlainTextResponse("Too long.", 413)
    except ClientDisconnect:
        return PlainTextResponse("Lost.", 400)
    try:
        message = strict_json(body.decode())
        step, phone, value = str(message["step"]), str(message["phone"]), float(message["value"])
    except (ValueError, KeyError, TypeError):
        return PlainTextResponse("Not a bet.", 400)
    try:
        here.bet(step, phone, value)
    except RoomClosed as error:
        return PlainTextResponse(str(error), 409)
    return PlainTextResponse("sent")


async def _show(request: Request, here: Room) -> Response:
    here.show()
    return PlainTextResponse("shown")


async def _events(request: Request, here: Room) -> Response:
    # Tell the projector about every bet, and a phone only about a new question and the end.
    wall = here.knows(request.query_params.get("key", ""))
    phone = request.query_params.get("phone", "")[:_LONGEST]

    async def stream() -> AsyncIterator[str]:
        last, silent = None, 0.0
        while True:
            now = (here.version, here.ended, (here.count, here.dealt) if wall else 0)
            if now != last:
                last, silent = now, 0.0
                view = here.for_wall() if wall else here.for_phones(phone)
                yield f"data: {json.dumps(view)}\n\n"
                if here.ended:
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
    Route("/c/{room}/wall", _of_room(_wall, needs_key=True)),
    Route("/c/{room}/bet", _of_room(_bet), methods=["POST"]),
    Route("/c/{room}/show", _of_room(_show, needs_key=True), methods=["POST"]),
    Route("/c/{room}/events", _of_room(_events)),
]
"""Return the routes of a class; without a room each route reports that there is none."""
