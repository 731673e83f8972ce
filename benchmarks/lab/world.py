"""A lab with real agents, together with captures and the emulator's record."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from benchmarks.lab.capture import Capture, Seen
from lab import lab as labs
from lab.conditions import Conditions, Emulator
from lab.emulation.queue import QueueEmulation
from lab.plan import CORE, WAN, LabPlan
from seaway.application.ports.agent import Reported
from seaway.domain.gateways import ProbeConfig
from seaway.domain.network import Ends
from seaway.wire.network_in import network_text

SETTLE_S = 0.3
"""Time after the last answer until no packet is in transit, apart from those that a link holds."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Emulator's record of one direction of a link.

    Attributes
    ----------
    lost
        Number of dropped packets.
    holds_ns
        Hold time of each other packet, in the order of release.
    """

    lost: int
    holds_ns: list[int]


@dataclass(frozen=True, slots=True)
class Account:
    """All records of some rounds.

    Attributes
    ----------
    reported
        Reports of agents, by gateway.
    leaving, left, came
        Captures of packets from gateways, at departure and at the far end of their wire; and of packets to them.
    passed
        Record of the emulator, by direction.
    """

    plan: LabPlan
    reported: Mapping[str, list[Reported]]
    leaving: list[Seen]
    left: list[Seen]
    came: list[Seen]
    passed: Mapping[Ends, Passed]


def measure(links: Mapping[Ends, Conditions], gateways: int, how: ProbeConfig, rounds: int) -> Account:
    """Create a lab, run an agent on each gateway for some rounds, and remove the lab.

    Raises
    ------
    RejectedError
        If this machine cannot run a lab.
    RuntimeError
        If an agent ends early.
    """
    with _lab(LabPlan(f"bench-{os.getpid()}", gateways), links) as lab, ExitStack() as stack:
        names = [spot.gateway for spot in lab.plan.spots]
        core = lab.plan.namespace(CORE)
        inner = [stack.enter_context(closing(Capture(core, name))) for name in names]
        outer = [stack.enter_context(closing(Capture(lab.plan.namespace(name), WAN))) for name in names]
        folder = Path(stack.enter_context(TemporaryDirectory()))
        file = folder / "network.yaml"
        file.write_text(yaml.safe_dump(network_text(replace(lab.plan.config(), probe=how, pairs=()))))
        with ThreadPoolExecutor(gateways) as pool:
            reported = list(pool.map(lambda name: _agent(lab.plan, name, file, rounds), names))
        time.sleep(SETTLE_S)
        emulation = lab.emulation
        assert isinstance(emulation, QueueEmulation)
        passed = {
            each.ends: Passed(
                each.counts.lost + each.counts.overflowed, [held for _, held in emulation.holds(each.ends)]
            )
            for each in emulation.read().links
        }
        at_gateways = [each for capture in outer for each in capture.read()]
        return Account(
            lab.plan,
            dict(zip(names, reported, strict=True)),
            [each for each in at_gateways if each.pending_commands],
            [each for capture in inner for each in capture.read() if not each.pending_commands],
            [each for each in at_gateways if not each.pending_commands],
            passed,
        )


@contextmanager
def _lab(plan: LabPlan, links: Mapping[Ends, Conditions]) -> Iterator[labs.Lab]:
    made = labs.up(plan, links, emulator=Emulator.QUEUE)
    try:
        yield made
    finally:
        labs.down(plan.name)


def _agent(plan: LabPlan, gateway: str, network: Path, rounds: int) -> list[Reported]:
    """Run a gateway's agent for some rounds, and stop it before the next one."""
    lines = rounds * (plan.gateways - 1)
    command = [sys.executable, "-m", "seaway", "agent", "--gateway", gateway, "--netns", plan.namespace(gateway)]
    log = network.parent / f"{gateway}.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [*command, "-f", str(network), "-o", "json"],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("SEAWAY_")},
        ) as process,
    ):
        assert process.stdout is not None
        found = [Reported(**json.loads(line)) for line in islice(process.stdout, lines)]
        process.send_signal(signal.SIGTERM)
        process.stdout.read()
    if len(found) < lines:
        raise RuntimeError(f"the agent of {gateway} ended: {log.read_text().strip()[-500:]}")
    return found
