"""Links emulated by a process of the lab, which receives their packets from the kernel (NFQUEUE)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from itertools import islice
from pathlib import Path
from typing import Any

from lab.conditions import Conditions
from lab.emulation.control import ask
from lab.emulation.start import InCore, start
from lab.holding import Counts, LinkReading, Readings
from seaway.domain.errors import UnavailableError
from seaway.domain.network import Ends

CONDITIONS = [field.name for field in fields(Conditions)]
COUNTS = [field.name for field in fields(Counts)]
SEED = 1
"""Seed of loss and jitter, the same in every lab. The result still depends on the timing of packets."""

CHANGES_AT_ONCE = 100
"""Maximum number of links in one request, so that no packet waits long for it."""


class QueueEmulation:
    """Client of the emulator's control socket.

    Parameters
    ----------
    in_core
        Wraps commands to run in the core's namespace.
    folder
        Folder of its socket and its log.
    """

    def __init__(self, in_core: InCore, folder: Path) -> None:
        self._in_core = in_core
        self._control = folder / "emulator.sock"
        self._log = folder / "emulator.log"

    def start(self, links: Mapping[Ends, Conditions]) -> None:
        """Start the emulator; it ends with the processes of its namespace.

        Raises
        ------
        UnavailableError
            If it does not start; names the reason.
        """
        start(self._in_core, self._control, self._log, SEED)
        self.change(links)

    def change(self, links: Mapping[Ends, Conditions]) -> None:
        """Change the conditions of links."""
        changes = ({"ends": ends, **asdict(conditions)} for ends, conditions in links.items())
        while some := list(islice(changes, CHANGES_AT_ONCE)):
            self._ask({"change": some})

    def read(self) -> Readings:
        """Return conditions and counters of every link."""
        *links, last = self._ask({"read": True})
        return Readings(tuple(map(_reading, links)), last["missed"])

    def holds(self, ends: Ends) -> list[tuple[int, int]]:
        """Return the arrival and the hold time of the latest packets that a link released.

        Both are in nanoseconds; arrivals are on the clock of `time.monotonic_ns`.
        """
        return [(came, held) for came, held in self._ask({"holds": ends})[0]["holds"]]

    def _ask(self, question: dict[str, object]) -> list[dict[str, Any]]:
        try:
            return ask(self._control, question)
        except OSError as error:
            raise UnavailableError(
                f"the lab's emulator does not answer ({error.strerror or error}), so that its gateways do not reach "
                f"each other: `script/lab up --replace` makes the lab again; {self._log} may say what happened"
            ) from None


def _reading(reported: dict[str, Any]) -> LinkReading:
    conditions = Conditions(**{name: reported[name] for name in CONDITIONS})
    counts = Counts(**{name: reported[name] for name in COUNTS})
    return LinkReading((reported["ends"][0], reported["ends"][1]), conditions, counts)
