"""Log-in and log-out at an OpenID Connect provider: authorization code with PKCE.

The provider issues an ordinary token of the API, which checks its signature, issuer and audience.

References
----------
OpenID Connect Core 1.0, sections 3.1 and 12; OpenID Connect Discovery 1.0; OpenID Connect RP-Initiated Logout 1.0;
RFC 7636 (PKCE); RFC 9700, section 4.14 (refresh tokens for one use).
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx
import jwt
import orjson
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from seaway.client.config import is_loopback
from seaway.domain.errors import RejectedError, UnauthenticatedError, UnavailableError
from seaway.web.addresses import LEFT, LOGIN, LOGIN_CALLBACK
from seaway.web.cookies import LONGEST, PART

DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT_S = 10.0
VERIFIER_LETTERS = 64

SHARED_S = 30.0
"""Time in seconds for which equal refresh tokens get the same answer.

Many providers accept a refresh token only once, and a browser has many tabs.
"""

UNKNOWN = "-"
"""Placeholder for an ID token that is too long to store."""


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Settings of the identity provider.

    Attributes
    ----------
    issuer
        Address of the provider.
    audience
        Audience of tokens that the API accepts.
    client_id, client_secret
        Credentials of Seaway. Without a secret, Seaway is a public client.
    redirect
        Redirect URI: this server's `/login/callback`, as registered at the provider.
    scopes
        Requested scopes, separated by spaces.
    """

    issuer: str
    audience: str
    client_id: str
    client_secret: str
    redirect: str
    scopes: str


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """Log-in in progress. The browser stores it until it returns from the provider.

    Attributes
    ----------
    state, nonce, verifier
        Secrets that bind the answer to this browser, the token to this log-in, and the exchange to this server.
    wanted
        Address to open after the log-in.
    """

    state: str
    nonce: str
    verifier: str
    wanted: str

    def text(self) -> str:
        """Encode the log-in for a cookie."""
        return orjson.dumps([self.state, self.nonce, self.verifier, self.wanted]).hex()

    @classmethod
    def read(cls, text: str) -> Self:
        """Decode a cookie.

        Raises
        ------
        UnauthenticatedError
            When the cookie is malformed.
        """
        try:
            state, nonce, verifier, wanted = orjson.loads(bytes.fromhex(text))
            return cls(str(state), str(nonce), str(verifier), str(wanted))
        except (ValueError, TypeError):
            raise UnauthenticatedError("the log-in took too long or began in another browser; try again") from None


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """Tokens from a provider.

    Attributes
    ----------
    tokens
        Tokens for the API, the access token first.
    renewal
        Refresh token; empty for none.
    hint
        ID token for the provider's log-out; empty for none, None if the answer has no new one.
    """

    tokens: tuple[str, ...]
    renewal: str = ""
    hint: str | None = ""


class Provider:
    """Client of an identity provider.

    Parameters
    ----------
    settings
        Settings of the provider.
    transport
        Replacement for the network in tests.
    """

    def __init__(self, settings: ProviderSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self._transport = transport
        self._found: Mapping[str, Any] = {}
        self._renewing: dict[bytes, asyncio.Task[ProviderTokens]] = {}

    async def begin(self, wanted: str) -> tuple[str, PendingLogin]:
        """Return the provider's address for a log-in, and the state to store until the user returns.

        Raises
        ------
        UnavailableError
            When the provider does not answer.
        """
        client = WebApplicationClient(self.settings.client_id)
        verifier = client.create_code_verifier(VERIFIER_LETTERS)
        begun = PendingLogin(secrets.token_urlsafe(24), secrets.token_urlsafe(24), verifier, wanted)
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": self.settings.redirect,
            "scope": self.settings.scopes,
            "state": begun.state,
            "nonce": begun.nonce,
            "code_challenge": client.create_code_challenge(verifier, "S256"),
            "code_challenge_method": "S256",
        }
        address = await self._address("authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}", begun

    async def finish(self, query: str, begun: PendingLogin) -> ProviderTokens:
        """Exchange the provider's answer for tokens.

        Parameters
        ----------
        query
            Query string of the redirect.

        Raises
        ------
        UnauthenticatedError
            When the provider refused, the answer belongs to another log-in, or no token is for the API.
        UnavailableError
            When the provider does not answer.
        """
        client = WebApplicationClient(self.settings.client_id)
        try:
            code = client.parse_request_uri_response(f"https://seaway/?{query}", begun.state)["code"]
        except OAuth2Error as error:
            raise UnauthenticatedError(f"the provider refused: {error.description or error.error}") from None
        body = client.prepare_request_body(
            code=code, redirect_uri=self.settings.redirect, code_verifier=begun.verifier, include_client_id=True
        )
        answer = await self._exchanged(body)
        if self._claims(str(answer.get("id_token", ""))).get("nonce") != begun.nonce:
            raise UnauthenticatedError("the provider's answer belongs to another log-in; try again")
        return self._tokens(answer)

    async def renew(self, renewal: str) -> ProviderTokens:
        """Exchange a refresh token. Concurrent calls with the same token share a request.

        Raises
        ------
        UnauthenticatedError
            When the provider refuses, so that the user has to log in again.
        UnavailableError
            When the provider does not answer.
        """
        key = hashlib.sha256(renewal.encode()).digest()
        task = self._renewing.get(key)
        if task is None:
            task = self._renewing[key] = asyncio.create_task(self._renew(renewal), name="renew a token")
            task.add_done_callback(partial(self._share, key))
        return await asyncio.shield(task)

    def _share(self, key: bytes, task: asyncio.Task[ProviderTokens]) -> None:
        """Cache a result for `SHARED_S`, and drop an error immediately."""
        given = not task.cancelled() and task.exception() is None
        asyncio.get_running_loop().call_later(SHARED_S if given else 0, self._renewing.pop, key, None)

    async def _renew(self, renewal: str) -> ProviderTokens:
        body = urlencode(
            {"grant_type": "refresh_token", "refresh_token": renewal, "client_id": self.settings.client_id}
        )
        answer = await self._exchanged(body)
        if "id_token" in answer:
            self._claims(str(answer["id_token"]))
        return self._tokens({"refresh_token": renewal, **answer})

    async def leave(self, hint: str) -> str:
        """Return the provider's log-out address, which redirects back; empty if the provider has none."""
        try:
            address = await self._address("end_session_endpoint")
        except UnavailableError:
            return ""
        asked = {
            "client_id": self.settings.client_id,
            "post_logout_redirect_uri": self.settings.redirect.removesuffix(LOGIN_CALLBACK) + LOGIN,
            "state": LEFT,
        }
        if hint != UNKNOWN:
            asked["id_token_hint"] = hint
        return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"

    def _tokens(self, answer: Mapping[str, Any]) -> ProviderTokens:
        """Return the tokens that fit into cookies."""
        both = [str(answer[name]) for name in ("access_token", "id_token") if answer.get(name)]
        ours = [each for each in both if self.settings.audience in _audiences(each)]
        if not ours:
            raise UnauthenticatedError(
                f"the provider gave no token for {self.settings.audience!r}: its access token or its ID token must be"
                " for that audience"
            )
        tokens = tuple(each for each in ours if len(each) <= LONGEST)
        if not tokens:
            raise UnauthenticatedError(
                f"the provider's token has {len(ours[0])} characters, and a browser stores {LONGEST}: "
                "configure the provider to include less, for example fewer groups"
            )
        renewal, hint = str(answer.get("refresh_token") or ""), answer.get("id_token")
        if hint is not None and len(hint := str(hint)) > PART:
            hint = UNKNOWN
        return ProviderTokens(tokens, renewal if len(renewal) <= LONGEST else "", hint)

    def _claims(self, token: str) -> Mapping[str, Any]:
        """Read an ID token. It comes directly from the provider over TLS, so its signature is not checked.

        Raises
        ------
        UnauthenticatedError
            When it is invalid or for another client.

        References
        ----------
        OpenID Connect Core 1.0, section 3.1.3.7.
        """
        checked: Any = {"verify_signature": False, "verify_aud": True, "verify_iss": True, "require": ["iss", "aud"]}
        try:
            return dict(
                jwt.decode(token, options=checked, audience=self.settings.client_id, issuer=str(self._found["issuer"]))
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise UnauthenticatedError(f"the provider gave no ID token that could be taken: {error}") from None

    async def _exchanged(self, body: str) -> Mapping[str, Any]:
        address, secret = await self._address("token_endpoint"), self.settings.client_secret
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        async with self._http(httpx.BasicAuth(self.settings.client_id, secret) if secret else None) as http:
            try:
                answer = await http.post(address, content=body, headers=headers)
            except httpx.HTTPError as error:
                raise UnavailableError(f"{self.settings.issuer} does not answer: {error}") from None
        if answer.status_code >= 500:
            raise UnavailableError(f"{self.settings.issuer} does not answer: {answer.status_code}")
        try:
            return dict(WebApplicationClient(self.settings.client_id).parse_request_body_response(answer.text))
        except OAuth2Error as error:
            raise UnauthenticatedError(f"the provider refused: {error.description or error.error}") from None
        except (ValueError, TypeError, AttributeError):
            raise UnavailableError(f"{self.settings.issuer} does not answer as a provider") from None

    async def _address(self, name: str) -> str:
        if not self._found:
            self._found = await self._discovered()
        try:
            return str(self._found[name])
        except KeyError:
            raise UnavailableError(f"{self.settings.issuer} does not say its {name}") from None

    async def _discovered(self) -> Mapping[str, Any]:
        issuer = self.settings.issuer
        async with self._http() as http:
            try:
                answer = await http.get(issuer.rstrip("/") + DISCOVERY)
                found = orjson.loads(answer.raise_for_status().content)
                said = str(found["issuer"])
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                raise UnavailableError(f"{issuer} does not answer as a provider: {error}") from None
        if said.rstrip("/") != issuer.rstrip("/"):
            raise UnavailableError(f"{issuer} calls itself {said}")
        return dict(found)

    def _http(self, auth: httpx.Auth | None = None) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, transport=self._transport, auth=auth)


def require_whole(settings: ProviderSettings) -> None:
    """Check the settings for log-ins at a provider.

    Raises
    ------
    RejectedError
        When a setting is missing or invalid.
    """
    for name, also in (("issuer", ""), ("redirect", ", or server.public_url")):
        if not getattr(settings, name):
            raise RejectedError(f"is needed for people to log in at the provider{also}", where=f"oidc.{name}")
    parts = urlsplit(settings.issuer)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise RejectedError("has to begin with https:// for people to log in there", where="oidc.issuer")
    if urlsplit(settings.redirect).path != LOGIN_CALLBACK:
        raise RejectedError(f"must be this server's address with {LOGIN_CALLBACK}", where="oidc.redirect")
    if "openid" not in settings.scopes.split():
        raise RejectedError("must have openid among them for people to log in there", where="oidc.scopes")


def _audiences(token: str) -> list[str]:
    """Read the audiences of a token without verification, which the API performs; empty for none."""
    try:
        said = jwt.decode(token, options={"verify_signature": False}).get("aud", [])
    except (jwt.PyJWTError, ValueError, TypeError):
        return []
    return [said] if isinstance(said, str) else said if isinstance(said, list) else []
