"""Asking the API in a visitor's name."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from seaway.client.calls import service as access
from seaway.domain.errors import RejectedError, SeawayError
from seaway.web.api_client import ApiClient


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
