"""The reflector of an agent, and the port that it needs."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from ipaddress import IPv6Address

import pytest

from seaway.adapters.privileges import find_account
from seaway.application.agent.settings import AgentSettings
from seaway.application.ports.agent import Assignment, Target
from seaway.bootstrap import agent as reflecting
from seaway.bootstrap.agent import AGAIN_S, Agent, Known, Opened, Reflecting
from seaway.domain.gateways import Method, ProbeConfig
from seaway.probing.rounds import Round

HERE = IPv6Address("::1")


def taken() -> tuple[socket.socket, Assignment]:
    """Have another program on a port, and what wants that port."""
    other = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    other.bind((str(HERE), 0))
    port = other.getsockname()[1]
    return other, Assignment("1", ProbeConfig(), (Target("gw-2", HERE, Method.UDP, port),), port)


def test_a_taken_port_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    """While another program has the port, it is tried every 30 s; the error is logged once."""
    now_s = 100.0
    made = Reflecting(HERE, "", lambda: now_s)
    other, todo = taken()
    with other:
        assert made.apply_assignment(todo) == AGAIN_S
        now_s += 20
        assert made.apply_assignment(todo) == AGAIN_S - 20
        now_s += 10
        assert made.apply_assignment(todo) == AGAIN_S
    assert len(caplog.records) == 1
    now_s += AGAIN_S - 1
    assert made.apply_assignment(todo) == 1
    now_s += 1
    assert made.apply_assignment(todo) is None
    made.close()


def test_an_agent_without_a_server_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no one says anything new, the reflector is there soon after the port is free."""
    monkeypatch.setattr(reflecting, "AGAIN_S", 0.01)
    other, todo = taken()
    stopping, answering = threading.Event(), threading.Event()

    class Unreachable:
        """Probes no one."""

        def probe(self, targets: Sequence[Target], *_: object) -> Sequence[Round]:
            return [Round(0, ()) for _ in targets]

        def close(self) -> None:
            """Have nothing to close."""

    class Watched(Reflecting):
        """Says when it answers."""

        def apply_assignment(self, assignment: Assignment | None) -> float | None:
            again = super().apply_assignment(assignment)
            if again is None:
                answering.set()
            else:
                other.close()
            return again

    account = find_account("nobody")
    agent = Agent(
        AgentSettings(gateway="gw-1"),
        Known(account, None, todo, HERE),
        Opened(Unreachable(), Watched(HERE, ""), HERE),
        lambda _: None,
    )
    runs = threading.Thread(target=agent.run, args=(stopping,))
    runs.start()
    try:
        assert answering.wait(10)
    finally:
        stopping.set()
        runs.join()
