"""The whole system on one machine: a lab, an agent on each gateway, a control plane, and jobs with network needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from tests.integration.running import Running, running
from tests.missing import skip_or_fail
from tests.servers.lab import TestLab, lab
from tests.servers.missing import MissingError

pytestmark = pytest.mark.slow

TIMEOUT_S = 60
ROUND = {"interval": "500ms", "count": 5, "timeout": "400ms"}
USERS = "gw-4"
LINKS = {
    "links": [
        {"from": USERS, "to": "gw-1", "delay": "2ms"},
        {"from": USERS, "to": "gw-2", "delay": "10ms"},
        {"from": USERS, "to": "gw-3", "delay": "30ms"},
    ]
}
SMOOTHED = """
[network.links]
half_life_s = 0.5
"""
"""Settings that follow links within seconds, so that tests do not wait for half a minute."""

Found = TypeVar("Found")


@dataclass
class World:
    """A lab with its agents and its control plane."""

    made: TestLab
    plane: Running
    data: Path
    agents: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def agent(self, gateway: str) -> None:
        """Start the agent of a gateway."""
        self.agents[gateway] = self.start("agent", gateway)

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start `seaway ...` for the gateway in the last argument, in its namespace and with its token."""
        *words, gateway = command
        token = self.data / f"{gateway}.token"
        if not token.exists():
            made = self.post("/tokens", {"name": f"agent-{gateway}", "role": "agent", "gateway": gateway})
            token.write_text(made["secret"], encoding="utf-8")
        where = ["--netns", self.made.namespace(gateway), "--server", self.url, "--token-file", str(token)]
        return subprocess.Popen(
            [sys.executable, "-m", "seaway", *words, "--gateway", gateway, *where],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def url(self) -> str:
        """URL of the control plane."""
        return str(self.plane.client.base_url).rstrip("/")

    def get(self, path: str) -> Any:  # noqa: ANN401  # any JSON
        """Send a GET request to the API."""
        answer = self.plane.client.get(f"/api/v1{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: object) -> Any:  # noqa: ANN401  # any JSON
        """Send a POST request to the API."""
        answer = self.plane.client.post(f"/api/v1{path}", json=body)
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    def link(self, source: str, target: str) -> dict[str, Any]:
        """Return the values of a link that decisions use."""
        found = [
            each for each in self.get("/fleet/links")["links"] if (each["source"], each["target"]) == (source, target)
        ]
        return dict(found[0]) if found else {}

    def states(self) -> dict[str, str]:
        """Return the states of agents by gateway."""
        return {each["gateway"]: each["state"] for each in self.get("/network/agents")["agents"]}

    def submit(self, **need: object) -> str:
        """Submit a small job of a user behind the users' gateway."""
        resources = {"cpu": 1, "gpus": 1, "gpu_memory": "1GB"}
        return self.plane.submit(name="near", gateway=USERS, network=need, resources=resources)

    def submit_to(self, cluster: str, need: dict[str, str]) -> str:
        """Submit such a job that may go to one cluster only."""
        resources = {"cpu": 1, "gpus": 1, "gpu_memory": "1GB"}
        place = {"clusters": [cluster]}
        return self.plane.submit(name="there", gateway=USERS, network=need, resources=resources, placement=place)

    def first_event(self, kind: str) -> str:
        """Return the text of the first event of a kind."""
        with self.plane.client.stream("GET", "/api/v1/events", headers={"last-event-id": "0"}) as answer:
            for line in answer.iter_lines():
                if line.startswith("data:") and (reported := json.loads(line.removeprefix("data:")))["kind"] == kind:
                    return str(reported["message"])
        raise AssertionError(f"no event of kind {kind}")

    def routes(self, gateway: str) -> str:
        """Return the routes of a gateway from the kernel."""
        return self.made.run(gateway, "ip", "-6", "route", "show")

    def where(self, job_id: str) -> str:
        """Return the cluster of a job; empty while it waits."""
        return ",".join(self.get(f"/jobs/{job_id}")["clusters"])

    def why(self, job_id: str) -> str:
        """Return all reasons for a job's place, or its wait."""
        return str(self.get(f"/jobs/{job_id}/explain"))


def until(look: Callable[[], Found], good: Callable[[Found], object]) -> Found:
    """Call a function until its result is good."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        found = look()
        if good(found):
            return found
        assert time.monotonic() < deadline, found
        time.sleep(0.1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Run a lab of three clusters and a user site with all its agents, and a control plane that knows all links."""
    data = tmp_path_factory.mktemp("plane")
    (data / "seaway.toml").write_text(SMOOTHED, encoding="utf-8")
    try:
        with lab(4, LINKS) as made, running(data, "--config", str(data / "seaway.toml")) as plane:
            found = World(made, plane, data)
            network = yaml.safe_load(made.network.read_text(encoding="utf-8")) | {"probe": ROUND}
            answer = plane.client.put("/api/v1/network", json=network)
            assert answer.status_code == 200, answer.text
            for number in range(1, 5):
                found.agent(f"gw-{number}")
            until(
                lambda: [each for each in found.get("/fleet/links")["links"] if each["latency_ns"]],
                lambda links: len(links) == 12,
            )
            yield found
            for each in found.agents.values():
                each.send_signal(signal.SIGTERM)
            for each in found.agents.values():
                each.communicate(timeout=TIMEOUT_S)
    except MissingError as error:
        skip_or_fail(error)


def test_jobs_go_where_links_are_good_enough_and_follow_when_they_change(world: World) -> None:
    """A job runs only where the measured link meets its needs; after the link degrades the next goes elsewhere."""
    near = world.submit(max_latency="8ms")
    assert until(lambda: world.where(near), bool) == "cluster-1"

    world.made.link(USERS, "gw-1", delay="40ms")
    until(lambda: world.link(USERS, "gw-1"), lambda link: (link["latency_ns"] or 0) > 70_000_000)
    second = world.submit(max_latency="30ms")
    assert until(lambda: world.where(second), bool) == "cluster-2"
    waits = world.submit(max_latency="8ms")
    said = until(lambda: world.why(waits), lambda text: "latency" in text)
    assert world.where(waits) == ""
    assert "gw-4 to gw-1" in said or "latency above the bound" in said

    world.made.link(USERS, "gw-1", delay="2ms")
    assert until(lambda: world.where(waits), bool) == "cluster-1"


def test_loss_one_way_counts_for_both_who_look(world: World) -> None:
    """A direction that loses a third of its packets shows as loss at both ends, as an echo uses both directions."""
    world.made.link(USERS, "gw-3", loss="33%", one_way=True)
    for ends in ((USERS, "gw-3"), ("gw-3", USERS)):
        until(lambda ends=ends: world.link(*ends), lambda link: 150_000 < link["loss_ppm"] < 550_000)  # type: ignore[misc]
    until(lambda: world.link(USERS, "gw-2"), lambda link: link["loss_ppm"] == 0)
    job = world.submit(max_loss="1%", max_latency="100ms")
    assert until(lambda: world.where(job), bool) in {"cluster-1", "cluster-2"}
    world.made.link(USERS, "gw-3", loss="0%", one_way=True)


def test_a_gateway_that_dies_is_reported_and_gets_nothing(world: World) -> None:
    """A gateway that does not answer gets no jobs with network needs, and its agent is silent, until it returns."""
    world.agents["gw-2"].kill()
    world.agents.pop("gw-2").communicate()
    others = ("gw-1", "gw-3", USERS)
    for other in others:
        world.made.link("gw-2", other, loss="100%")
    until(lambda: world.link(USERS, "gw-2"), lambda link: link["latency_ns"] is None)
    assert world.link(USERS, "gw-2")["loss_ppm"] == 1_000_000
    until(world.states, lambda states: (states["gw-1"], states["gw-2"]) == ("reporting", "lost"))
    job = world.submit(max_loss="50%", max_latency="1s")
    assert until(lambda: world.where(job), bool) != "cluster-2"

    for other in others:
        world.made.link("gw-2", other, loss="0%")
    world.agent("gw-2")
    until(lambda: world.link("gw-2", "gw-1"), lambda link: link["latency_ns"] is not None)


def test_agents_are_no_one(world: World) -> None:
    """The permanent processes on a gateway have no privileges."""
    for each in world.agents.values():
        status = Path(f"/proc/{each.pid}/status")
        until(partial(status.read_text, encoding="utf-8"), lambda text: "CapEff:\t0000000000000000" in text)
        assert Path(f"/proc/{each.pid}").stat().st_uid != os.geteuid()


def test_traffic_is_steered_to_where_a_job_needs_it(world: World) -> None:
    """A job that its link does not serve gets a path that does: the route is written, then the job runs."""
    world.made.link(USERS, "gw-1", delay="60ms", one_way=True)
    until(lambda: world.link(USERS, "gw-1"), lambda link: (link["latency_ns"] or 0) > 50_000_000)
    needs = {"max_latency": "30ms"}
    waits = world.submit_to("cluster-1", needs)
    assert "fd00:51d:2::e" not in world.routes(USERS)
    until(lambda: world.why(waits), lambda text: "latency" in text)
    follower = world.start("gateway", "follow", USERS)
    try:
        assert until(lambda: world.where(waits), bool) == "cluster-1"
        assert "fd00:51d:2::e" in world.routes(USERS)
        until(
            lambda: world.link(USERS, "gw-1"), lambda link: link["path"] == "via-2" and link["latency_ns"] < 30_000_000
        )
        assert waits in world.first_event("path")
    finally:
        follower.send_signal(signal.SIGTERM)
        follower.communicate(timeout=TIMEOUT_S)
        world.made.link(USERS, "gw-1", delay="2ms", one_way=True)
