"""Tokens of an OpenID Connect provider, whose keys a server on this machine serves."""

# ruff: noqa: ANN401  # keys of either kind, and claims of any

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from seaway.adapters.oidc import BETWEEN_READS_S, OidcBearer, OidcSettings
from seaway.application.access import Access, Caller
from seaway.application.login_limit import MAX_FAILURES, TooManyFailuresError
from seaway.application.records import Role
from seaway.application.writer import Writer
from seaway.domain.errors import RejectedError, UnauthenticatedError
from seaway.testing.clocks import START_NS, VirtualClock
from tests.fakes.memory_store import MemoryStore

NOW_S = START_NS // 10**9
CLAIMS = {
    "iss": "https://id.example",
    "aud": "seaway",
    "sub": "alice",
    "exp": NOW_S + 600,
    "iat": NOW_S,
    "seaway_role": "user",
    "seaway_tenant": "default",
}
RSA_KEY = rsa.generate_private_key(65_537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65_537, 2048)
SHORT_RSA_KEY = rsa.generate_private_key(65_537, 1024)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
SECRET = "0123456789abcdef0123456789abcdef"


def public(key: Any, kid: str) -> dict[str, Any]:
    """Write a public key as a provider does."""
    kind = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**kind.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


class Provider:
    """Serves keys over HTTP, and counts its requests."""

    def __init__(self) -> None:
        self.keys = [public(RSA_KEY, "r1"), public(EC_KEY, "e1"), public(SHORT_RSA_KEY, "short")]
        self.keys.append(
            {"kty": "oct", "kid": "shared", "k": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY", "alg": "HS256"}
        )
        self.asked = 0
        self.body: bytes | None = None
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += 1
                body = provider.body or json.dumps({"keys": provider.keys}).encode()
                self.send_response(200)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        self.thread = Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        """Stop serving."""
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """Create a provider."""
    made = Provider()
    yield made
    made.stop()


@pytest.fixture
def clock() -> VirtualClock:
    """Create a clock."""
    return VirtualClock()


@pytest.fixture
def bearer(provider: Provider, clock: VirtualClock) -> OidcBearer:
    """Create the verifier of its tokens."""
    return OidcBearer(OidcSettings(CLAIMS["iss"], "seaway", provider.url), clock)  # type: ignore[arg-type]


def token(key: Any = RSA_KEY, algorithm: str = "RS256", kid: str = "r1", **claims: Any) -> str:
    """Sign a token; a claim that is None is left out."""
    merged = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return jwt.encode(merged, key, algorithm, headers={"kid": kid})


def test_a_token_says_who_has_it(bearer: OidcBearer) -> None:
    """Name, role and tenant come from the claims, with either kind of signature."""
    alice = Caller("alice", Role.USER, "default", expires_ns=(NOW_S + 630) * 10**9, issuer="https://id.example")
    assert bearer.verify(token()) == alice
    assert bearer.verify(token(EC_KEY, "ES256", "e1")) == alice
    assert bearer.verify(token(aud=["x", "seaway"])) == alice


def test_the_most_powerful_role_counts(bearer: OidcBearer) -> None:
    """Of several roles the most powerful counts, and an operator has no tenant."""
    who = bearer.verify(token(seaway_role=["viewer", "operator", "else"]))
    assert (who.role, who.tenant) == (Role.OPERATOR, "")


def test_a_provider_s_own_words_are_understood(provider: Provider, clock: VirtualClock) -> None:
    """Claims and role names can be mapped to the provider's own."""
    settings = OidcSettings(
        "https://id.example", "seaway", provider.url, "email", "groups", "team", {"gpu-admins": "admin"}
    )
    bearer = OidcBearer(settings, clock)
    who = bearer.verify(token(email="a@b.example", groups=["x", "gpu-admins"]))
    assert (who.name, who.role) == ("a@b.example", Role.ADMIN)
    with pytest.raises(UnauthenticatedError, match="names no role"):
        bearer.verify(token(email="a@b.example", groups=["admin"]))


def test_keys_may_are_in_a_file(tmp_path: Path, clock: VirtualClock) -> None:
    """If no provider is reachable, its keys are read from a file."""
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public(RSA_KEY, "r1")]}))
    bearer = OidcBearer(OidcSettings("https://id.example", "seaway", str(path)), clock)
    assert bearer.verify(token()).name == "alice"


def unsigned() -> str:
    """Create a token without a signature."""
    return jwt.encode(CLAIMS, "", "none", headers={"kid": "r1"})


BAD: dict[str, Any] = {
    "expired": lambda: token(exp=NOW_S - 31),
    "without end": lambda: token(exp=None),
    "end is not a number": lambda: token(exp="x"),
    "endless": lambda: token(exp=float("inf")),
    "not yet": lambda: token(nbf=NOW_S + 31),
    "issued later": lambda: token(iat=NOW_S + 31),
    "other issuer": lambda: token(iss="https://evil.example"),
    "other audience": lambda: token(aud="else"),
    "without audience": lambda: token(aud=None),
    "without name": lambda: token(sub=None),
    "odd name": lambda: token(sub="a\nb"),
    "long name": lambda: token(sub="a" * 64),
    "no one's name": lambda: token(sub="anonymous"),
    "the loop's name": lambda: token(sub="scheduler"),
    "without role": lambda: token(seaway_role=None),
    "an agent's role": lambda: token(seaway_role="agent"),
    "without tenant": lambda: token(seaway_tenant=None),
    "odd tenant": lambda: token(seaway_tenant="A B"),
    "other key": lambda: token(OTHER_RSA_KEY),
    "unknown key": lambda: token(OTHER_RSA_KEY, kid="r9"),
    "short key": lambda: token(SHORT_RSA_KEY, kid="short"),
    "shared secret": lambda: token(SECRET, "HS256", "shared"),
    "shared secret under a public key's id": lambda: token(SECRET, "HS256", "r1"),
    "other kind of key": lambda: token(RSA_KEY, "RS256", "e1"),
    "longer digest": lambda: token(RSA_KEY, "RS512"),
    "unsigned": unsigned,
    "cut": lambda: token()[:-5],
    "dots": lambda: "..",
    "nonsense": lambda: "a.b.c",
}


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_what_does_not_hold_lets_no_one_in(bearer: OidcBearer, make: Any) -> None:
    """A token with any single error is rejected."""
    with pytest.raises(UnauthenticatedError):
        bearer.verify(make())


def test_clocks_may_differ_a_little(bearer: OidcBearer) -> None:
    """Clocks may differ by half a minute in either direction."""
    assert bearer.verify(token(exp=NOW_S - 29, iat=NOW_S + 29)).name


def test_new_keys_are_read_but_not_all_the_time(provider: Provider, bearer: OidcBearer, clock: VirtualClock) -> None:
    """An unknown key causes another read, once a minute at most; a removed key is no longer valid."""
    assert bearer.verify(token()).name
    assert provider.asked == 1
    provider.keys = [public(OTHER_RSA_KEY, "r2")]
    for _ in range(5):
        with pytest.raises(UnauthenticatedError):
            bearer.verify(token(OTHER_RSA_KEY, kid="r2"))
    assert provider.asked == 1
    clock.advance_s(BETWEEN_READS_S)
    assert bearer.verify(token(OTHER_RSA_KEY, kid="r2")).name
    assert provider.asked == 2
    with pytest.raises(UnauthenticatedError):
        bearer.verify(token())


@pytest.mark.parametrize("body", [b"", b"[]", b'{"keys":5}', b"x" * 2**20, b'{"keys":[{"kty":"RSA","kid":"r1"}]}'])
def test_keys_that_cannot_be_read_let_no_one_in(provider: Provider, bearer: OidcBearer, body: bytes) -> None:
    """An invalid or endless answer of the provider rejects all tokens and does no harm."""
    provider.body = body or b" "
    with pytest.raises(UnauthenticatedError):
        bearer.verify(token())


def test_a_token_is_verified_once_and_known_until_it_ends(bearer: OidcBearer, clock: VirtualClock) -> None:
    """A verified token is cached until it expires."""
    assert bearer.known(token()) is None
    who = bearer.verify(token())
    assert bearer.known(token()) == who
    clock.advance_s(630)
    assert bearer.known(token()) is None


@pytest.mark.parametrize("jwks", ["http://id.example/keys", "ftp://id.example/keys", "http://127.0.0.1.evil.example/"])
def test_keys_are_read_from_safe_places_only(clock: VirtualClock, jwks: str) -> None:
    """Keys come from an encrypted URL, from this machine, or from a file."""
    with pytest.raises(RejectedError, match="https"):
        OidcBearer(OidcSettings("i", "a", jwks), clock)


@pytest.mark.parametrize("wrong", [{"issuer": ""}, {"audience": ""}, {"jwks": ""}, {"leeway_s": 301}])
def test_settings_are_whole(wrong: dict[str, Any]) -> None:
    """Issuer, audience and keys are required."""
    with pytest.raises(RejectedError):
        OidcSettings(**{"issuer": "i", "audience": "a", "jwks": "k", **wrong})


def test_access_takes_a_provider_s_tokens_beside_its_own(bearer: OidcBearer, clock: VirtualClock) -> None:
    """A token that needs a verification is reported as such, and failures count for the limit."""
    store = MemoryStore()
    store.lead("test")
    access = Access(store, Writer(store), clock, bearer=bearer)
    assert access.known(f"Bearer {token()}", "::1") is None
    assert access.verify(f"Bearer {token()}", "::1").name == "alice"
    who = access.known(f"Bearer {token()}", "::1")
    assert who is not None
    assert access.holds(who)
    for _ in range(MAX_FAILURES):
        with pytest.raises(UnauthenticatedError):
            access.verify(f"Bearer {token(aud='x')}", "::1")
    with pytest.raises(TooManyFailuresError):
        access.known(f"Bearer {token(aud='y')}", "::1")
    assert access.known(f"Bearer {token()}", "::1") == who
