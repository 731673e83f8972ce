"""A server that answers again wakes all tasks that wait to retry."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from seaway.adapters.kubernetes.collect.health import SOURCE, Health, ping
from seaway.adapters.kubernetes.collect.reflector import reflect
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff, WakeSignal
from seaway.adapters.kubernetes.connection.credentials import Credentials, Identity
from tests.fakes.kubernetes import ApiServer
from tests.unit.adapters.kubernetes.collect.test_reflector import THINGS, WAIT_S, Sink

HOUR_S = 3600.0


def test_the_first_answer_after_a_silence_wakes_those_who_wait(tmp_path: Path) -> None:
    """A task with an hour left retries as soon as a ping is answered."""
    with ApiServer("alpha", controllers=()) as server:
        server.kubeconfig(tmp_path / "alpha")
        server.faults.error(503)
        health = Health([SOURCE, THINGS.path])

        async def follow() -> None:
            api = Api("alpha", Credentials(tmp_path / "alpha", "alpha"))
            bell = WakeSignal()
            backoff = Backoff(Random(1), HOUR_S, HOUR_S, bell)
            async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as tasks:
                following = [
                    tasks.create_task(reflect(api, THINGS, Sink(), health, backoff)),
                    tasks.create_task(ping(api, health, Random(1), 0.02, bell)),
                ]
                while len([each for each in health.failing().values() if each]) < 2:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.faults.clear)
                while not health.complete:
                    await asyncio.sleep(0.01)
                for each in following:
                    each.cancel()
            await api.close()

        asyncio.run(follow())
        assert not health.failing_s


def test_a_ring_counts_once_and_never_before_the_time_that_a_server_asked_for() -> None:
    """A wake-up during a try ends the next wait, and not the one after; Retry-After is respected."""

    async def wait() -> None:
        bell = WakeSignal()
        backoff = Backoff(Random(1), HOUR_S, HOUR_S, bell)
        bell.notify()
        began_s = monotonic()
        async with asyncio.timeout(WAIT_S):
            await backoff.pause(0.2)
        assert monotonic() - began_s >= 0.19
        waits = asyncio.create_task(backoff.pause())
        await asyncio.sleep(0.05)
        assert not waits.done()
        bell.notify()
        async with asyncio.timeout(WAIT_S):
            await waits

    asyncio.run(wait())


def test_a_server_that_does_not_know_who_requests_is_unreachable(tmp_path: Path) -> None:
    """Open watches may outlast a rejected token, yet nothing can be written: the cluster counts as not reporting."""
    with ApiServer("alpha", controllers=()) as server:
        server.kubeconfig(tmp_path / "alpha")
        health = Health([SOURCE])

        async def ask() -> None:
            api = Api("alpha", Credentials(tmp_path / "alpha", "alpha"))
            bell = WakeSignal()
            rung = bell.subscribe()
            requesting = asyncio.create_task(ping(api, health, Random(1), 0.02, bell))
            async with asyncio.timeout(WAIT_S):
                while not health.complete:
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.new_token, only=True)
                while not health.failing_s:
                    await asyncio.sleep(0.01)
                assert "credentials are not accepted" in health.unreachable_reason(0)
                await asyncio.to_thread(server.kubeconfig, tmp_path / "alpha")
                await rung.wait()
            assert not health.failing_s
            requesting.cancel()
            await api.close()

        asyncio.run(ask())


class Gated(Credentials):
    """Credentials that load as slowly as a test wants."""

    def __init__(self, file: Path, context: str) -> None:
        super().__init__(file, context)
        self.begun, self.gate = threading.Event(), threading.Event()

    def load(self) -> Identity:
        """Wait, then load them."""
        self.begun.set()
        assert self.gate.wait(WAIT_S)
        return super().load()


def test_a_server_is_unreachable_from_when_it_was_asked_and_not_before_it_is_known_as_whom(tmp_path: Path) -> None:
    """A slow program of a kubeconfig does not count as an outage of its servers."""
    now_s = [100.0]
    with ApiServer("alpha", controllers=()) as server:
        server.kubeconfig(tmp_path / "alpha")
        hung = server.faults.hang(SOURCE)
        health = Health([SOURCE], lambda: now_s[0])
        credentials = Gated(tmp_path / "alpha", "alpha")

        async def ask() -> None:
            api = Api("alpha", credentials)
            requesting = asyncio.create_task(ping(api, health, Random(1), 0.02, WakeSignal()))
            assert await asyncio.to_thread(credentials.begun.wait, WAIT_S)
            now_s[0] += 20
            assert health.age_s == 0
            credentials.gate.set()
            async with asyncio.timeout(WAIT_S):
                while not hung.hits:
                    await asyncio.sleep(0.01)
            now_s[0] += 2
            assert health.age_s == 2
            requesting.cancel()
            await api.close()

        asyncio.run(ask())


def test_a_server_that_refuses_to_say_how_it_is_answers(tmp_path: Path) -> None:
    """A server that denies the health path is still reachable."""
    with ApiServer("alpha", controllers=()) as server:
        server.kubeconfig(tmp_path / "alpha")
        refused = server.faults.error(403, SOURCE)
        health = Health([SOURCE])

        async def ask() -> None:
            api = Api("alpha", Credentials(tmp_path / "alpha", "alpha"))
            requesting = asyncio.create_task(ping(api, health, Random(1), 0.02, WakeSignal()))
            async with asyncio.timeout(WAIT_S):
                while refused.hits < 3:
                    await asyncio.sleep(0.01)
            requesting.cancel()
            await api.close()

        asyncio.run(ask())
        assert health.complete
        assert not health.failing_s


@pytest.mark.parametrize(
    ("path", "code", "unreachable"),
    [
        ("/readyz", 500, False),
        ("/livez", 500, True),
        ("*", 502, True),
        ("*", 503, True),
        ("*", 504, True),
    ],
)
def test_a_server_that_is_about_to_end_answers_and_one_that_is_not_reached_does_not(
    path: str, code: int, unreachable: bool, tmp_path: Path
) -> None:
    """A server that is draining still serves; an error page of a proxy does not count as an answer."""
    with ApiServer("alpha", controllers=()) as server:
        server.kubeconfig(tmp_path / "alpha")
        server.faults.error(code, path)
        health = Health([SOURCE])

        async def ask() -> None:
            api = Api("alpha", Credentials(tmp_path / "alpha", "alpha"))
            requesting = asyncio.create_task(ping(api, health, Random(1), 0.02, WakeSignal()))
            async with asyncio.timeout(WAIT_S):
                while not (health.complete or health.failing_s):
                    await asyncio.sleep(0.01)
            requesting.cancel()
            await api.close()

        asyncio.run(ask())
        assert bool(health.unreachable_reason(0)) is unreachable
