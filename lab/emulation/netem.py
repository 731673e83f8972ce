"""Links emulated by the kernel (netem): a class for each sender on the interface towards each receiver."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from itertools import permutations
from pathlib import Path
from typing import Any

from lab.conditions import Conditions
from lab.emulation.start import FILTERS, InCore, program
from lab.holding import Counts, LinkReading, Readings
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Ends

LONGEST_QUEUE = 100_000
"""Maximum number of packets in the queue of a link."""

OF_LEAVES = 0x100
"""Offset from the number of a sender to the handle of its netem."""

NO_LIMIT = "100gbit"
"""Rate of the classes; the rate of a link itself is set in netem."""


class NetemEmulation:
    """Links of a lab whose kernel has netem. It counts packets, but does not measure hold times.

    Parameters
    ----------
    in_core
        Wraps commands to run in the core's namespace.
    folder
        Folder of its record of conditions.
    gateways
        All gateways, in order; each is also the name of the core's interface towards it.
    """

    def __init__(self, in_core: InCore, folder: Path, gateways: Sequence[str]) -> None:
        self._in_core = in_core
        self._notes = folder / "links.json"
        self._numbers = {name: at for at, name in enumerate(gateways, 1)}

    def start(self, links: Mapping[Ends, Conditions]) -> None:
        """Set up all links; those not in `links` have no delay or loss.

        Raises
        ------
        UnavailableError
            If the kernel rejects the setup; names the reason.
        """
        whole = dict.fromkeys(permutations(self._numbers, 2), Conditions()) | dict(links)
        self._tc([*classes(self._numbers), *(leaf("add", each, how, self._numbers) for each, how in whole.items())])
        for name, number in self._numbers.items():
            self._classify(name, number)
        self._note(whole)

    def change(self, links: Mapping[Ends, Conditions]) -> None:
        """Change the conditions of links."""
        self._tc([leaf("change", ends, conditions, self._numbers) for ends, conditions in links.items()])
        self._note(self._noted() | dict(links))

    def read(self) -> Readings:
        """Return conditions and counters of every link."""
        counted = counts(json.loads(self._run([program("tc"), "-s", "-j", "qdisc", "show"])), list(self._numbers))
        links = self._noted().items()
        return Readings(tuple(LinkReading(ends, how, counted.get(ends, Counts())) for ends, how in links))

    def holds(self, ends: Ends) -> list[tuple[int, int]]:
        """Return nothing: the kernel does not report hold times."""
        return []

    def _note(self, links: Mapping[Ends, Conditions]) -> None:
        self._notes.write_text(json.dumps([[*ends, *astuple(how)] for ends, how in links.items()]))

    def _noted(self) -> dict[Ends, Conditions]:
        noted = json.loads(self._notes.read_text())
        return {(source, target): Conditions(*figures) for source, target, *figures in noted}

    def _classify(self, name: str, number: int) -> None:
        rule = ["-w", "-t", "mangle", "-A", "FORWARD", "-i", name, "-j", "CLASSIFY", "--set-class", f"1:{number:x}"]
        for each in FILTERS:
            if program(each):
                self._run([program(each), *rule])

    def _tc(self, lines: Sequence[str]) -> None:
        self._run([program("tc"), "-batch", "-"], "\n".join(lines) + "\n")

    def _run(self, command: Sequence[str], given: str = "") -> str:
        done = subprocess.run(self._in_core(command), input=given, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"{command[0]} cannot set up links: {done.stderr.strip()[-200:]}")
        return done.stdout


def available(in_core: InCore) -> bool:
    """Report whether the kernel has netem, by a trial, and `tc` is installed."""
    if not program("tc"):
        return False
    for action in ("add", "del"):
        command = in_core([program("tc"), "qdisc", action, "dev", "lo", "root", "netem", "delay", "1ms"])
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
    return True


def classes(numbers: Mapping[str, int]) -> Iterator[str]:
    """Yield the `tc` lines that create a class for each sender on each interface."""
    for target in numbers:
        yield f"qdisc add dev {target} root handle 1: htb"
        for source, number in numbers.items():
            if source != target:
                yield f"class add dev {target} parent 1: classid 1:{number:x} htb rate {NO_LIMIT} quantum 60000"


def leaf(action: str, ends: Ends, conditions: Conditions, numbers: Mapping[str, int]) -> str:
    """Return the `tc` line that sets the conditions of a link; ``change`` requires all figures, including zeros."""
    source, target = ends
    number = numbers[source]
    return (
        f"qdisc {action} dev {target} parent 1:{number:x} handle {OF_LEAVES + number:x}: netem limit {LONGEST_QUEUE} "
        f"delay {conditions.delay_ns / 1000:.3f}us {conditions.jitter_ns / 1000:.3f}us "
        f"loss {conditions.loss_ppm / 10_000:.4f}% rate {conditions.rate_mbps}mbit"
    )


def counts(said: Sequence[Mapping[str, Any]], gateways: Sequence[str]) -> dict[Ends, Counts]:
    """Return the counters of links from the output of ``tc -s -j qdisc show``."""
    found = {}
    for each in said:
        if each["kind"] == "netem":
            source = gateways[int(each["handle"].rstrip(":"), 16) - OF_LEAVES - 1]
            sent, lost = each["packets"], each["drops"]
            packets = sent + lost + each.get("qlen", 0)
            found[source, each["dev"]] = Counts(packets, each["bytes"], lost, released=sent)
    return found
