"""A gateway that follows a control plane: the kernel gets the wanted routes, and keeps them when it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import Pair
from seaway.steering.difference import difference
from seaway.steering.state import desired
from seaway.wire.network_in import network_text
from tests.fakes.gateways import make_network, make_path
from tests.integration.gateway_world import World
from tests.integration.served import Served, serving
from tests.missing import skip_or_fail

pytestmark = pytest.mark.slow

TIMEOUT_S = 30
NETWORK = make_network(3, [Pair("gw-1", "gw-3", (make_path("direct", 3, weight=2), make_path("via-2", 2, 3)))])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Create three gateways without any SRv6."""
    made = World(tmp_path)
    try:
        made.build()
        yield made
    except RejectedError as error:
        skip_or_fail(error)
    finally:
        made.destroy()


def asked(served: Served, verb: str, path: str, body: object = None) -> Any:  # noqa: ANN401  # any JSON
    """Send a request to the API as an admin."""
    headers = {"Authorization": f"Bearer {served.rig.tokens['admin']}"}
    answer = httpx.request(verb, f"{served.url}/api/v1{path}", json=body, headers=headers, timeout=30)
    assert answer.is_success, answer.text
    return answer.json() if answer.content else None


def until(done: Callable[[], object]) -> None:
    """Wait until a condition is met."""
    ends_s = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < ends_s, "waited too long"
        time.sleep(0.05)


def has(world: World, active: Mapping[str, str]) -> bool:
    """Report whether the first gateway has exactly the configuration for these active paths."""
    return not difference(desired(NETWORK, "gw-1", active), world.machine("gw-1").read()).changes


def test_gateway_follows(world: World, tmp_path: Path) -> None:
    """A chosen path is soon in the kernel and confirmed, and stays there when the follower ends."""
    log = tmp_path / "log"
    with serving() as served:
        asked(served, "PUT", "/network", network_text(NETWORK))
        token = asked(served, "POST", "/tokens", {"name": "gw-1", "role": "agent", "gateway": "gw-1", "tenant": ""})
        command = [sys.executable, "-m", "seaway", "gateway", "follow", "--gateway", "gw-1", "--server", served.url]
        command += ["--netns", world.name("gw-1"), "--state", str(world.folder)]
        with log.open("w") as written:
            environment = {**os.environ, "SEAWAY_TOKEN": token["secret"]}
            process = subprocess.Popen(command, stderr=written, env=environment)
        try:
            paths = {"gw-2": "direct", "gw-3": "direct"}
            until(lambda: asked(served, "GET", "/network/gateways/gw-1")["applied"] == paths)
            assert has(world, paths)
            served.rig.plane.network.active.choose("gw-1", "gw-3", "via-2", "a job needs it")
            paths["gw-3"] = "via-2"
            until(lambda: asked(served, "GET", "/network/gateways/gw-1")["applied"] == paths)
            assert has(world, paths)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(5) == 0, log.read_text()
    assert has(world, paths)
    assert "gw-3 by via-2" in log.read_text()
