"""Activities at a hundred times their usual rate: ``python -m benchmarks.soak.load URL CLUSTERS-URL SECONDS``.

The program prints a line of JSON at the end: the number of each activity, and of unexpected responses.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import cycle
from random import Random

import httpx

from benchmarks.web.viewers import Viewer

SPEED = 100
"""Compression of time: a minute stands for 100 minutes."""

FOLLOW_S = 5.0
LOOK_S = 3.0
FLAP_S = 3.0
"""Duration of an event stream, of a visit to a page, and of the outage of a cluster, seconds."""

LATE_S = 1.0
"""Delay after which an activity is skipped, because the machine lacks CPU time, seconds."""

LAST_S = 30.0
"""Time for the last activities to end, seconds."""

EXPECTED = frozenset({200, 201, 204, 404, 409, 412, 503})
"""Statuses of responses, among them those about jobs that have just ended, and clusters that cannot be reached."""

REFUSED = frozenset({401, 429})
"""Statuses of responses to invalid tokens."""

PAGES = ("/", "/jobs", "/submit", "/fleet", "/queues", "/network", "/policies", "/settings")


class Users:
    """Users, operators and programs of a server.

    Parameters
    ----------
    client
        Client of an admin.
    clusters
        Client of the simulated clusters.
    """

    def __init__(self, client: httpx.AsyncClient, clusters: httpx.AsyncClient, token: str, names: list[str]) -> None:
        self._client, self._clusters, self._token = client, clusters, token
        self._names = names
        self._random = Random(0)
        self._jobs: deque[str] = deque(maxlen=200)
        self._pages = cycle(PAGES)
        self._count = 0
        self.unexpected: Counter[str] = Counter()

    async def submit(self) -> None:
        """Submit a job, now and then one that fits nowhere at present."""
        body = {
            "name": "soak",
            "replicas": self._random.choice([1, 1, 1, 2]),
            "expected_duration": f"{self._random.choice([1, 2, 5])}s",
            "labels": {"team": f"team-{self._random.randrange(20)}"},
            "resources": {"gpus": 1, "gpu_memory": f"{self._random.choice([2, 4, 8])}GB", "gpu_cores": "10%"},
        }
        headers = {"idempotency-key": f"soak-{self._next()}"}
        if answer := await self._ask("POST", "/jobs", json=body, headers=headers):
            self._jobs.append(answer["id"])

    async def change(self) -> None:
        """Cancel, suspend and resume, change, or delete a job."""
        if not self._jobs:
            return
        path = f"/jobs/{self._random.choice(self._jobs)}"
        match self._random.randrange(4):
            case 0:
                await self._ask("POST", f"{path}/cancel", json={"reason": "soak"})
            case 1:
                await self._ask("POST", f"{path}/suspend", json={})
                await self._ask("POST", f"{path}/resume", json={})
            case 2:
                await self._ask("PATCH", path, json={"priority": self._random.randrange(10)})
            case _:
                await self._ask("DELETE", path)

    async def look_up(self) -> None:
        """List and explain jobs."""
        await self._ask("GET", f"/jobs?limit=25&label=team%3Dteam-{self._random.randrange(20)}")
        if self._jobs:
            await self._ask("GET", f"/jobs/{self._random.choice(self._jobs)}/explain")

    async def read_log(self) -> None:
        """Read the log of a job, whose cluster may have removed it (422)."""
        if self._jobs:
            await self._ask("GET", f"/jobs/{self._random.choice(self._jobs)}/logs", expected=EXPECTED | {422})

    async def follow(self) -> None:
        """Follow events for some seconds."""
        with_end = asyncio.get_running_loop().time() + FOLLOW_S
        try:
            async with asyncio.timeout_at(with_end), self._client.stream("GET", "/events") as answer:
                async for _ in answer.aiter_raw():
                    pass
        except TimeoutError:
            return
        self.unexpected["an event stream ended"] += 1

    async def use_token(self) -> None:
        """Create a token, use it, revoke it, and use it again."""
        made = await self._ask("POST", "/tokens", json={"name": f"soak-{self._next()}", "role": "operator"})
        if not made:
            return
        headers = {"authorization": f"Bearer {made['secret']}"}
        await self._ask("GET", "/me", headers=headers)
        await self._ask("DELETE", f"/tokens/{made['id']}")
        await self._ask("GET", "/me", headers=headers, expected=REFUSED)

    async def fail_login(self) -> None:
        """Send an invalid token."""
        await self._ask("GET", "/jobs", headers={"authorization": f"Bearer sw_{self._next()}_x"}, expected=REFUSED)

    async def visit(self) -> None:
        """Load a page, keep its web socket for some seconds, and leave."""
        viewer = Viewer(next(self._pages), self._token)
        try:
            await viewer.look(str(self._client.base_url).partition("/api")[0], asyncio.Semaphore())
            await asyncio.sleep(LOOK_S)
        finally:
            path, received = await viewer.leave()
        if received is None:
            self.unexpected[f"a socket of {path} closed"] += 1

    async def scrape(self) -> None:
        """Read all metrics."""
        await self._ask("GET", str(self._client.base_url).partition("/api")[0] + "/metrics")

    async def administer(self) -> None:
        """Create and remove a queue, a tenant and a cordon."""
        name, cluster = f"soak-{self._next()}", self._random.choice(self._names)
        await self._ask("PUT", f"/tenants/{name}", json={})
        await self._ask("PUT", f"/queues/{name}", json={"tenant": name})
        await self._ask("POST", "/cordons", json={"cluster": cluster, "reason": "soak"})
        await asyncio.sleep(1.0)
        await self._ask("DELETE", f"/cordons?cluster={cluster}")
        await self._ask("DELETE", f"/queues/{name}")
        await self._ask("DELETE", f"/tenants/{name}")

    async def flap(self) -> None:
        """Cut a cluster off for some seconds."""
        path, body = f"/clusters/{self._random.choice(self._names)}/faults", {"kind": "cut", "for_s": FLAP_S}
        (await self._clusters.post(path, json=body)).raise_for_status()

    async def _ask(
        self, method: str, path: str, *, expected: frozenset[int] = EXPECTED, **given: object
    ) -> dict[str, str] | None:
        """Send a request; return the body of a successful response."""
        answer = await self._client.request(method, path, **given)  # type: ignore[arg-type]
        if answer.status_code not in expected:
            self.unexpected[f"{method} {path.partition('?')[0].split('/')[1]}: {answer.status_code}"] += 1
        kind = answer.headers.get("content-type", "")
        found: dict[str, str] | None = answer.json() if answer.is_success and kind == "application/json" else None
        return found

    def _next(self) -> int:
        self._count += 1
        return self._count


@dataclass(frozen=True, slots=True)
class Activity:
    """An activity with its usual rate in a fleet of a few dozen users."""

    name: str
    per_minute: float
    do: Callable[[Users], Awaitable[None]]


ACTIVITIES = (
    Activity("submits", 10, Users.submit),
    Activity("changes of jobs", 1, Users.change),
    Activity("lists and explanations", 3, Users.look_up),
    Activity("reads of logs", 1, Users.read_log),
    Activity("event streams", 1, Users.follow),
    Activity("tokens", 0.1, Users.use_token),
    Activity("failed logins", 1, Users.fail_login),
    Activity("visits of pages", 0.5, Users.visit),
    Activity("scrapes of metrics", 2, Users.scrape),
    Activity("queues, tenants and cordons", 0.05, Users.administer),
    Activity("outages of a cluster", 0.1, Users.flap),
)
"""Activities of a usual minute. An outage of some cluster every ten minutes is much."""


class Load:
    """Activities at their rates, each attempt in a task of its own."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._tasks: set[asyncio.Task[None]] = set()
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Run all activities for some time."""
        until_s = time.monotonic() + seconds
        await asyncio.gather(*(self._repeat(each, until_s) for each in ACTIVITIES))
        tasks = list(self._tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_S)
        for task in tasks:
            task.cancel()

    async def _repeat(self, activity: Activity, until_s: float) -> None:
        due_s = time.monotonic()
        while time.monotonic() < until_s:
            await asyncio.sleep(due_s - time.monotonic())
            if time.monotonic() - due_s > LATE_S:
                self.skipped[activity.name] += 1
            else:
                task = asyncio.create_task(self._once(activity))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            due_s += 60 / (SPEED * activity.per_minute)

    async def _once(self, activity: Activity) -> None:
        try:
            await activity.do(self._users)
        except Exception as error:  # noqa: BLE001  # counted, whatever it is
            why = str(error).partition("\n")[0].partition(" for url")[0]
            self._users.unexpected[f"{activity.name}: {type(error).__name__}: {why}"] += 1
        self.done[activity.name] += 1


async def main() -> None:
    """Run the activities, and print their numbers."""
    url, clusters_url, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    token = os.environ["SEAWAY_TOKEN"]
    headers = {"authorization": f"Bearer {token}"}
    async with (
        httpx.AsyncClient(base_url=f"{url}/api/v1", headers=headers, timeout=60) as client,
        httpx.AsyncClient(base_url=clusters_url, timeout=60) as clusters,
    ):
        fleet = (await client.get("/fleet/clusters")).raise_for_status().json()["clusters"]
        users = Users(client, clusters, token, [each["name"] for each in fleet])
        load = Load(users)
        await load.run(seconds)
    print(json.dumps({"done": load.done, "skipped": load.skipped, "unexpected": users.unexpected}))


if __name__ == "__main__":
    asyncio.run(main())
