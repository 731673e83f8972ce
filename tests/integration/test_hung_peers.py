"""A kubelet or an identity provider that accepts connections and never responds slows nothing else."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from seaway.adapters.oidc import OidcBearer, OidcSettings
from seaway.api.http.pipeline import ISSUER
from seaway.application.records import Role
from seaway.testing.clocks import VirtualClock
from tests.integration.served import TIMEOUT_S, Served, serving
from tests.unit.api.rig import JOB

PROMPT_S = 1.0
"""Maximum duration of a request that has nothing to do with the hung peer, seconds."""

CALLERS = 6
ASKED = 20
"""Number of log reads of each caller at once."""


def require_prompt(served: Served, *paths: str, token: str = "operator") -> None:
    """Check that requests are answered at once."""
    with served.client(token) as client:
        for path in ("/readyz", "/api/v1/jobs", "/api/v1/queues", "/api/v1/fleet/nodes", "/metrics", *paths):
            began = time.monotonic()
            assert client.get(path).status_code == 200, path
            assert time.monotonic() - began < PROMPT_S, path
        began = time.monotonic()
        assert client.post("/api/v1/jobs", json=JOB).status_code == 201
        assert time.monotonic() - began < PROMPT_S


def test_hung_kubelet_slows_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """While reads of logs hang, everything else is answered, also logs of other clusters, and queues are bounded."""
    go_on = Event()
    with serving() as served, ThreadPoolExecutor(CALLERS * ASKED) as pool:
        plane, rig = served.rig.plane, served.rig
        jobs: dict[str, str] = {}
        with served.client() as client:
            for cluster in ("a", "b"):
                made = client.post("/api/v1/jobs", json={**JOB, "name": cluster, "placement": {"clusters": [cluster]}})
                assert made.status_code == 201, made.text
                jobs[cluster] = made.json()["id"]
        rig.step(3)
        hung = plane.overview._backend("a")  # noqa: SLF001

        def logs(*_: object, **__: object) -> Iterator[str]:
            go_on.wait(TIMEOUT_S)
            return iter(["late"])

        monkeypatch.setattr(hung, "logs", logs)
        tokens = [plane.access.create(f"u{number}", Role.OPERATOR, "", None, "test")[1] for number in range(CALLERS)]

        def read(token: str, job: str) -> httpx.Response:
            headers = {"authorization": f"Bearer {token}"}
            return httpx.get(f"{served.url}/api/v1/jobs/{job}/logs", headers=headers, timeout=TIMEOUT_S)

        asked = [pool.submit(read, token, jobs["a"]) for token in tokens for _ in range(ASKED)]
        try:
            time.sleep(0.5)
            require_prompt(served, f"/api/v1/jobs/{jobs['b']}/logs", f"/api/v1/jobs/{jobs['a']}/events")
            refused = [each.result() for each in asked if each.done()]
            assert refused
            assert {each.status_code for each in refused} == {503}
            assert all("retry-after" in each.headers for each in refused)
        finally:
            go_on.set()
        answers = [each.result() for each in asked]
        assert {each.text for each in answers if each.status_code == 200} == {"late\n"}
        assert sum(each.status_code == 200 for each in answers) == len(asked) - len(refused)


@contextmanager
def hung_provider() -> Iterator[str]:
    """Listen at the address of an identity provider that never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/keys"


@pytest.mark.parametrize("times", [1, 4 * ISSUER])
def test_hung_provider_slows_nothing_else(times: int) -> None:
    """While tokens wait for the provider's keys, all other requests are answered."""
    with hung_provider() as address, ThreadPoolExecutor(times) as pool:
        bearer = OidcBearer(OidcSettings("https://issuer", "seaway", address), VirtualClock())
        with serving(bearer=bearer) as served:
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            token = jwt.encode({"sub": "ada"}, key, algorithm="RS256", headers={"kid": "1"})
            url, headers = f"{served.url}/api/v1/me", {"authorization": f"Bearer {token}"}

            def ask() -> int:
                return httpx.get(url, headers=headers, timeout=TIMEOUT_S).status_code

            asked: list[Future[int]] = [pool.submit(ask) for _ in range(times)]
            time.sleep(0.3)
            assert not any(each.done() for each in asked)
            require_prompt(served)
            assert {each.result() for each in asked} <= {401, 429}


def test_hung_provider_holds_up_one_token_with_an_unknown_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """When some keys are known, tokens with other keys do not queue behind a read of the provider's keys."""
    from seaway.adapters import oidc
    from seaway.domain.errors import UnavailableError

    reading, go_on = Event(), Event()
    clock = VirtualClock()

    def fetched(_: str) -> bytes:
        reading.set()
        go_on.wait(TIMEOUT_S)
        raise TimeoutError

    keys = oidc.KeySet("https://issuer/keys", clock)
    known: dict[str, object] = {"1": object()}
    monkeypatch.setattr(keys, "_keys", known)
    monkeypatch.setattr(oidc, "_fetched", fetched)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(keys.find, "2")
        assert reading.wait(TIMEOUT_S)
        assert keys.find("1") is known["1"]
        with pytest.raises(UnavailableError):
            keys.find("3")
        go_on.set()
        assert first.result() is None
    assert keys.find("3") is None
