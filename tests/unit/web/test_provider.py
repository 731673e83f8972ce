"""Anything that a provider of identities says, and what is made of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest

from seaway.application.access import LONGEST_CREDENTIAL
from seaway.domain.errors import RejectedError, SeawayError, UnauthenticatedError, UnavailableError
from seaway.web.cookies import LONGEST, PART
from seaway.web.provider import UNKNOWN, PendingLogin, Provider, ProviderSettings, ProviderTokens, require_whole

ISSUER = "https://id.example"
BEGUN = PendingLogin("a-state", "a-nonce", "a-verifier", "/jobs?state=running")
BACK = "code=a-code&state=a-state"
SECRET = "0123456789abcdef0123456789abcdef"


def settings(**changes: str) -> ProviderSettings:
    """Say how people log in."""
    fields = {
        "issuer": ISSUER,
        "audience": "seaway",
        "client_id": "pages",
        "client_secret": "",
        "redirect": "https://seaway.example/login/callback",
        "scopes": "openid profile",
    }
    return ProviderSettings(**{**fields, **changes})


def token(**claims: object) -> str:
    """Make a token; a claim that is None is left out."""
    merged = {"iss": ISSUER, "aud": "pages", "sub": "ada", "nonce": BEGUN.nonce, **claims}
    return jwt.encode({name: value for name, value in merged.items() if value is not None}, SECRET, "HS256")


class World:
    """A provider that answers what it is asked to.

    Attributes
    ----------
    answer
        What it says when it is asked for tokens; bytes as they are.
    asked
        What it was asked with.
    """

    def __init__(self, answer: Mapping[str, Any] | bytes, **itself: object) -> None:
        self.answer, self.asked = answer, list[dict[str, list[str]]]()
        endpoints = {name: f"{ISSUER}/{name}" for name in ("authorization_endpoint", "token_endpoint")}
        self._itself = {"issuer": ISSUER, **endpoints, **itself}

    def provider(self, **changes: str) -> Provider:
        """Return what speaks to it."""
        return Provider(settings(**changes), httpx.MockTransport(self._handle))

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json=self._itself)
        self.asked.append(parse_qs(request.content.decode()))
        content = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return httpx.Response(400 if b'"error"' in content else 200, content=content)


def given(answer: Mapping[str, Any] | bytes, **changes: str) -> ProviderTokens:
    """Return what is made of an answer to a log-in."""
    return asyncio.run(World(answer).provider(**changes).finish(BACK, BEGUN))


def answer(**changes: object) -> dict[str, object]:
    """Make an answer."""
    return {"token_type": "Bearer", "access_token": token(aud="seaway"), "id_token": token(), **changes}


def test_a_browser_stores_the_tokens_that_the_api_accepts() -> None:
    """A token is either accepted everywhere, or nowhere."""
    assert LONGEST == LONGEST_CREDENTIAL


def test_of_what_a_provider_gives_that_for_the_api_is_taken() -> None:
    """A token that the API would refuse is not even tried there: that would count as a failed log-in."""
    assert given(answer()).tokens == (token(aud="seaway"),)
    assert given(answer(access_token="opaque", id_token=token(aud=["pages", "seaway"]))).tokens == (
        token(aud=["pages", "seaway"]),
    )
    assert given(answer(), audience="pages").tokens == (token(),)
    with pytest.raises(UnauthenticatedError, match="no token for 'else'"):
        given(answer(), audience="else")


@pytest.mark.parametrize(
    "id_token",
    [
        "",
        "a.b.c",
        token(nonce=None),
        token(nonce="another"),
        token(aud="another"),
        token(iss="https://evil.example"),
        token(iss=None),
    ],
    ids=["none", "nonsense", "no nonce", "another log-in's", "another client's", "another provider's", "no one's"],
)
def test_without_an_id_token_of_this_log_in_no_one_is_let_in(id_token: str) -> None:
    """However good the other token is: it may be another user's."""
    answered = answer(id_token=id_token)
    with pytest.raises(UnauthenticatedError):
        given(answered)
    del answered["id_token"]
    with pytest.raises(UnauthenticatedError, match="ID token"):
        given(answered)


def test_what_a_browser_cannot_keep_is_refused_or_left_out_but_never_cut() -> None:
    """A token that is too long is reported to be.

    Without what renews it, and without the hint, one can be logged in.
    """
    long = "x" * LONGEST
    with pytest.raises(
        UnauthenticatedError, match=f"a browser stores {LONGEST}: configure the provider to include less"
    ):
        given(answer(access_token=token(aud="seaway", groups=long)))
    assert given(answer(refresh_token=long)).renewal == long
    assert given(answer(refresh_token=long + "x")).renewal == ""
    assert given(answer(id_token=token(groups="x" * PART))).hint == UNKNOWN


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"[1]", b"5", b"null", b'"text"', b"<html>", b"\xff", b'{"access_token": 5}', b"[[1, 2]]"]
)
def test_an_answer_that_is_none_is_no_fault_of_ours(content: bytes) -> None:
    """Whatever a provider says, people read what is wrong."""
    with pytest.raises(SeawayError):
        given(content)


def test_the_provider_s_refusal_is_reported_in_its_words() -> None:
    """It knows why."""
    with pytest.raises(UnauthenticatedError, match="not today"):
        given({"error": "access_denied", "error_description": "not today"})


@pytest.mark.parametrize("text", ["", "zz", "5b", *(each.encode().hex() for each in ("5", "null", "{}", '["a"]'))])
def test_a_cookie_that_is_no_log_in_is_refused(text: str) -> None:
    """A cookie may hold anything."""
    with pytest.raises(UnauthenticatedError, match="try again"):
        PendingLogin.read(text)
    assert PendingLogin.read(BEGUN.text()) == BEGUN


def renewed(world: World, *renewals: str) -> list[ProviderTokens]:
    """Renew, all at once."""

    async def all_at_once() -> list[ProviderTokens]:
        provider = world.provider()
        return await asyncio.gather(*(provider.renew(each) for each in renewals))

    return asyncio.run(all_at_once())


def test_tabs_that_renew_at_once_ask_once() -> None:
    """Where a provider takes what renews once, the second tab would be thrown out."""
    world = World(answer(id_token=token(nonce=None), refresh_token="next"))
    first, second, other = renewed(world, "one", "one", "two")
    assert first is second
    assert other is not first
    assert [each["refresh_token"] for each in world.asked] == [["one"], ["two"]]
    assert (first.renewal, first.tokens) == ("next", (token(aud="seaway"),))


def test_a_renewal_that_failed_is_asked_for_again() -> None:
    """A refused request does not tell whether the token is valid."""
    world = World(b"[1]")

    async def test() -> ProviderTokens:
        provider = world.provider()
        with pytest.raises(UnavailableError):
            await provider.renew("one")
        await asyncio.sleep(0)
        world.answer = answer()
        return await provider.renew("one")

    assert asyncio.run(test()).tokens == (token(aud="seaway"),)


def test_what_renews_is_stored_where_the_provider_gives_no_other() -> None:
    """Some hold again and again; and not all say again who it is."""
    answered = answer()
    del answered["id_token"]
    (made,) = renewed(World(answered), "one")
    assert (made.renewal, made.hint) == ("one", None)


def test_who_may_not_be_renewed_logs_in_again() -> None:
    """As when the provider ended his session, or says that he is a user of another client."""
    with pytest.raises(UnauthenticatedError, match="expired"):
        renewed(World({"error": "invalid_grant", "error_description": "expired"}), "one")
    with pytest.raises(UnauthenticatedError):
        renewed(World(answer(id_token=token(aud="another"))), "one")


def left(world: World, hint: str) -> str:
    """Return where who logs out is sent."""
    return asyncio.run(world.provider().leave(hint))


def test_who_logs_out_is_sent_to_the_provider_and_back() -> None:
    """Where it has a place for that; it is reported whom to log out unless no one knows."""
    world = World({}, end_session_endpoint=f"{ISSUER}/out?a=b")
    asked = parse_qs(urlsplit(left(world, "a.hint.x")).query)
    assert asked["post_logout_redirect_uri"] == ["https://seaway.example/login"]
    assert (asked["a"], asked["state"], asked["id_token_hint"]) == (["b"], ["left"], ["a.hint.x"])
    assert "id_token_hint" not in left(world, UNKNOWN)
    assert left(World({}), "a.hint.x") == ""


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"issuer": ""}, "oidc.issuer"),
        ({"issuer": "http://id.example"}, "oidc.issuer"),
        ({"redirect": ""}, "oidc.redirect"),
        ({"redirect": "https://seaway.example/else"}, "oidc.redirect"),
        ({"scopes": "profile"}, "oidc.scopes"),
    ],
)
def test_what_no_one_could_log_in_with_is_reported_at_the_start(changes: dict[str, str], where: str) -> None:
    """Without the scope ``openid`` there is no ID token, without the address no one returns."""
    with pytest.raises(RejectedError) as caught:
        require_whole(settings(**changes))
    assert caught.value.where == where


def test_a_provider_that_is_away_is_reported_to_be() -> None:
    """Then it is no fault of a user who logs in."""
    provider = Provider(settings(), httpx.MockTransport(lambda _: httpx.Response(503)))
    with pytest.raises(UnavailableError):
        asyncio.run(provider.begin("/"))
