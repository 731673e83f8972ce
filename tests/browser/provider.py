"""An OpenID Connect provider on this machine, with one user and no password."""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

KEY = rsa.generate_private_key(65_537, 2048)
CLIENT = "seaway-pages"
CODE = "a-code"


class Provider:
    """The provider.

    Attributes
    ----------
    url
        Its address.
    role
        The user's role in its tokens; empty rejects the user.
    lasts_s
        Lifetime of its tokens.
    asked
        Parameters of each browser request.
    renewed
        Number of refreshed tokens.
    left
        Parameters of each log-out.
    """

    def __init__(self) -> None:
        self.role = "operator"
        self.lasts_s = 600.0
        self.renewed = 0
        self.left: list[dict[str, str]] = []
        self.asked: list[dict[str, str]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                ways = {"/authorize": provider.authorize, "/leave": provider.leave}
                if way := ways.get(parts.path):
                    self.send_response(303)
                    self.send_header("location", way(_flat(parts.query)))
                    self.end_headers()
                else:
                    self._say(provider.keys() if parts.path == "/keys" else provider.itself())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                self._say(provider.exchange(_flat(body)))

            def _say(self, body: dict[str, Any]) -> None:
                self.send_response(400 if "error" in body else 200)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def itself(self) -> dict[str, Any]:
        """Return the discovery document."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "end_session_endpoint": f"{self.url}/leave",
            "jwks_uri": f"{self.url}/keys",
        }

    def keys(self) -> dict[str, Any]:
        """Return the public key."""
        return {"keys": [{**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k", "use": "sig"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Redirect a user back, with a code or an error."""
        self.asked.append(asked)
        answer = {"code": CODE} if self.role else {"error": "access_denied", "error_description": "not today"}
        return f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}"

    def leave(self, asked: dict[str, str]) -> str:
        """Log a user out, and redirect the browser back."""
        self.left.append(asked)
        return f"{asked['post_logout_redirect_uri']}?{urlencode({'state': asked['state']})}"

    def exchange(self, asked: dict[str, str]) -> dict[str, Any]:
        """Exchange a code or a refresh token for tokens; each works once."""
        if asked["grant_type"] == "refresh_token":
            if asked["refresh_token"] != f"renewal-{self.renewed}":
                return {"error": "invalid_grant"}
            self.renewed += 1
            return self._tokens()
        began = self.asked[-1]
        challenge = urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked["code"] != CODE or challenge != began["code_challenge"]:
            return {"error": "invalid_grant"}
        return self._tokens(nonce=began["nonce"])

    def _tokens(self, **claims: str) -> dict[str, Any]:
        now_s = time.time()
        claimed = {"iss": self.url, "aud": CLIENT, "sub": "ada", "iat": now_s, "exp": now_s + self.lasts_s, **claims}
        token = jwt.encode({**claimed, "seaway_role": self.role}, KEY, "RS256", {"kid": "k"})
        renewal = f"renewal-{self.renewed}"
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": token, "refresh_token": renewal}


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
