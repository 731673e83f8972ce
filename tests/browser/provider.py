"""An OpenID Connect provider on this machine, which knows one person and asks no password."""

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
        What it says that the person is; empty refuses him.
    asked
        What came with each request of a browser.
    """

    def __init__(self) -> None:
        self.role = "operator"
        self.asked: list[dict[str, str]] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/authorize":
                    self.send_response(303)
                    self.send_header("location", provider.authorize(_flat(parts.query)))
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
        """Say where what is."""
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
        }

    def keys(self) -> dict[str, Any]:
        """Hand out the public key."""
        return {"keys": [{**RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True), "kid": "k", "use": "sig"}]}

    def authorize(self, asked: dict[str, str]) -> str:
        """Send somebody back, with a code or a refusal."""
        self.asked.append(asked)
        answer = {"code": CODE} if self.role else {"error": "access_denied", "error_description": "not today"}
        return f"{asked['redirect_uri']}?{urlencode({**answer, 'state': asked['state']})}"

    def exchange(self, asked: dict[str, str]) -> dict[str, Any]:
        """Give tokens for a code to who began."""
        began = self.asked[-1]
        challenge = urlsafe_b64encode(hashlib.sha256(asked["code_verifier"].encode()).digest()).decode().rstrip("=")
        if asked["code"] != CODE or challenge != began["code_challenge"]:
            return {"error": "invalid_grant"}
        claims = {"iss": self.url, "aud": CLIENT, "sub": "ada", "iat": time.time(), "exp": time.time() + 600}
        claims |= {"seaway_role": self.role, "nonce": began["nonce"]}
        token = jwt.encode(claims, KEY, "RS256", {"kid": "k"})
        return {"access_token": "opaque", "token_type": "Bearer", "id_token": token}


def _flat(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}
