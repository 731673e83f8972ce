"""Asking the API in a visitor's name."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message, Receive, Scope, Send

from seaway.client.calls import service as access
from seaway.client.calls.jobs import exec_session
from seaway.client.errors import UnauthenticatedError
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.api_client import ApiClient
from seaway.web.session import QUEUED


async def api(scope: Scope, _: Receive, send: Send) -> None:
    """Answer with what came as a token."""
    token = dict(scope["headers"]).get(b"authorization", b"none")
    body = b'{"type":"about:blank","title":"Actor","status":401,"detail":"%b"}' % token
    await send({"type": "http.response.start", "status": 401, "headers": [(b"content-type", b"application/json")]})
    await send({"type": "http.response.body", "body": body})


def said(token: str) -> str:
    """Return what the API observed."""
    with pytest.raises(SeawayError) as caught:
        asyncio.run(ApiClient(api, token, "192.0.2.1").ask(access.me()))
    return str(caught.value)


def test_no_one_is_who_the_server_itself_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in the environment of the server's process is no visitor's who has none."""
    monkeypatch.setenv("SEAWAY_TOKEN", "sw_servers_own")
    assert "servers" not in said("")
    assert "none" in said("")


def test_a_visitor_s_token_is_sent() -> None:
    """In his name, as by any other client."""
    assert "Bearer sw_his_own" in said("sw_his_own")


def test_what_can_be_no_token_is_refused_before_it_is_sent() -> None:
    """A cookie may hold anything."""
    with pytest.raises(RejectedError):
        ApiClient(api, "a b", "192.0.2.1")


def test_a_session_that_the_api_refuses_is_an_error_of_the_api() -> None:
    """A visitor without a token reads the same reason as any other client."""

    async def refuse(scope: Scope, receive: Receive, send: Send) -> None:
        assert (scope["type"], scope["path"], (await receive())["type"]) == (
            "websocket",
            "/api/v1/jobs/train/exec",
            "websocket.connect",
        )

        async def answer(message: Message) -> None:
            await send({**message, "type": f"websocket.{message['type']}"})

        await api(scope, receive, answer)

    async def run() -> None:
        async with ApiClient(refuse, "sw_own", "192.0.2.1").session(exec_session("train")):
            raise AssertionError("it has begun")

    with pytest.raises(UnauthenticatedError, match="Bearer sw_own"):
        asyncio.run(run())


def test_frames_pass_between_a_page_and_the_api_until_either_ends() -> None:
    """The API sees that the page leaves. Frames before its own end are not lost."""
    seen: list[Message] = []

    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "x", "headers": []})
        try:
            while (message := await receive())["bytes"] != b"end":
                seen.append(message)
                await send({"type": "websocket.send", "bytes": message["bytes"].upper()})
            for _ in range(2 * QUEUED):
                await send({"type": "websocket.send", "bytes": b"last"})
        finally:
            seen.append({"type": "left"})

    async def run() -> list[bytes]:
        async with ApiClient(echo, "", "192.0.2.1").session(exec_session("train")) as session:
            await session.send(b"one")
            found = [await session.receive()]
        assert seen[-1] == {"type": "left"}
        async with ApiClient(echo, "", "192.0.2.1").session(exec_session("train")) as session:
            await session.send(b"end")
            while frame := await session.receive():
                found.append(frame)
        return found

    assert asyncio.run(run()) == [b"ONE", *[b"last"] * 2 * QUEUED]
