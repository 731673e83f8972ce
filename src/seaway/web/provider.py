"""Logging in at an OpenID Connect provider: authorization code with PKCE.

What the provider gives out is a token like any that is sent to the API, which checks its signature, issuer and
audience.

References
----------
OpenID Connect Core 1.0, section 3.1; OpenID Connect Discovery 1.0; RFC 7636 (PKCE).
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlencode, urlsplit

import httpx
import jwt
import orjson
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient

from seaway.client.where import is_loopback
from seaway.domain.errors import RejectedError, UnauthenticatedError, UnavailableError
from seaway.web.addresses import LOGIN_CALLBACK

DISCOVERY = "/.well-known/openid-configuration"
TIMEOUT_S = 10.0
VERIFIER_LETTERS = 64


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """How people log in at a provider.

    Attributes
    ----------
    issuer
        The provider's address.
    client_id, client_secret
        What Seaway is to it; without a secret, a public client.
    redirect
        Where it sends people back to: this server's `/login/callback`, as the provider knows it.
    scopes
        What is asked for, in words apart.
    """

    issuer: str
    client_id: str
    client_secret: str
    redirect: str
    scopes: str


@dataclass(frozen=True, slots=True)
class Begun:
    """A log-in under way, which the browser keeps until it comes back.

    Attributes
    ----------
    state, nonce, verifier
        Secrets that tie the answer to this browser, the token to this log-in, and the exchange to this server.
    wanted
        Where the visitor wanted to.
    """

    state: str
    nonce: str
    verifier: str
    wanted: str

    def text(self) -> str:
        """Write it for a cookie."""
        return orjson.dumps([self.state, self.nonce, self.verifier, self.wanted]).hex()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read it back.

        Raises
        ------
        UnauthenticatedError
            When it is not one.
        """
        try:
            state, nonce, verifier, wanted = orjson.loads(bytes.fromhex(text))
            return cls(str(state), str(nonce), str(verifier), str(wanted))
        except ValueError:
            raise UnauthenticatedError("the log-in took too long or began in another browser; try again") from None


class Provider:
    """A provider.

    Parameters
    ----------
    settings
        How people log in there.
    transport
        Takes the place of the network, in tests.
    """

    def __init__(self, settings: ProviderSettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self.settings = settings
        self._transport = transport
        self._found: Mapping[str, Any] = {}

    async def begin(self, wanted: str) -> tuple[str, Begun]:
        """Return where to send somebody who logs in, and what to keep until he is back.

        Raises
        ------
        UnavailableError
            When the provider does not answer.
        """
        client = WebApplicationClient(self.settings.client_id)
        verifier = client.create_code_verifier(VERIFIER_LETTERS)
        begun = Begun(secrets.token_urlsafe(24), secrets.token_urlsafe(24), verifier, wanted)
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

    async def finish(self, query: str, begun: Begun) -> list[str]:
        """Return the tokens that a provider gives for what it answered, that for APIs first.

        Parameters
        ----------
        query
            What stood behind the question mark when the visitor came back.

        Raises
        ------
        UnauthenticatedError
            When the provider refused, or the answer is not to this log-in.
        UnavailableError
            When the provider does not answer.
        """
        client = WebApplicationClient(self.settings.client_id)
        try:
            code = client.parse_request_uri_response(f"https://seaway/?{query}", begun.state)["code"]
            body = client.prepare_request_body(
                code=code, redirect_uri=self.settings.redirect, code_verifier=begun.verifier, include_client_id=True
            )
            given = client.parse_request_body_response(await self._exchanged(body))
        except OAuth2Error as error:
            raise UnauthenticatedError(f"the provider refused: {error.description or error.error}") from None
        tokens = [str(given[name]) for name in ("access_token", "id_token") if given.get(name)]
        if "id_token" in given and _nonce(str(given["id_token"])) != begun.nonce:
            raise UnauthenticatedError("the provider's answer belongs to another log-in; try again")
        return [each for each in tokens if each.count(".") == 2]

    async def _exchanged(self, body: str) -> str:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        secret = self.settings.client_secret
        async with self._http(httpx.BasicAuth(self.settings.client_id, secret) if secret else None) as http:
            try:
                answer = await http.post(await self._address("token_endpoint"), content=body, headers=headers)
            except httpx.HTTPError as error:
                raise UnavailableError(f"{self.settings.issuer} does not answer: {error}") from None
        return answer.text

    async def _address(self, name: str) -> str:
        if not self._found:
            self._found = await self._discovered()
        try:
            return str(self._found[name])
        except KeyError:
            raise UnavailableError(f"{self.settings.issuer} does not say its {name}") from None

    async def _discovered(self) -> Mapping[str, Any]:
        """Read what a provider says of itself."""
        issuer = self.settings.issuer
        async with self._http() as http:
            try:
                answer = await http.get(issuer.rstrip("/") + DISCOVERY)
                found = orjson.loads(answer.raise_for_status().content)
                said = found["issuer"]
            except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
                raise UnavailableError(f"{issuer} does not answer as a provider: {error}") from None
        if said.rstrip("/") != issuer.rstrip("/"):
            raise UnavailableError(f"{issuer} calls itself {said}")
        return dict(found)

    def _http(self, auth: httpx.Auth | None = None) -> httpx.AsyncClient:
        return httpx.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False, transport=self._transport, auth=auth)


def require_whole(settings: ProviderSettings) -> None:
    """Check that people can be sent to a provider and back.

    Raises
    ------
    RejectedError
        When something is missing.
    """
    for name in ("issuer", "redirect"):
        if not getattr(settings, name):
            raise RejectedError("is needed for people to log in at the provider", where=f"oidc.{name}")
    parts = urlsplit(settings.issuer)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise RejectedError("has to begin with https:// for people to log in there", where="oidc.issuer")
    if urlsplit(settings.redirect).path != LOGIN_CALLBACK:
        raise RejectedError(f"has to be this server's address with {LOGIN_CALLBACK}", where="oidc.redirect")


def _nonce(token: str) -> str:
    """Read the nonce of a token whose signature the API checks."""
    try:
        return str(jwt.decode(token, options={"verify_signature": False}).get("nonce", ""))
    except jwt.PyJWTError:
        return ""
