"""A lab (`script/lab`) for a test: real routers and hosts with emulated links, removed afterwards."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from tests.servers.missing import MissingError

NAMESPACES = Path("/run/netns")
CLONE_NEWNET = 0x40000000
LACKING = "error: a lab needs"
"""Start of the command's error where this machine lacks a requirement."""

Result = TypeVar("Result")

_numbers = count(1)


@dataclass(frozen=True, slots=True)
class TestLab:
    """A running lab.

    Attributes
    ----------
    name
        For `script/lab --name`; unique.
    network
        Path of its network document.
    """

    __test__ = False

    name: str
    network: Path

    def namespace(self, place: str) -> str:
        """Return the namespace of a gateway (``gw-1``), a host (``host-1``) or the ``core``, as --netns accepts it."""
        return f"seaway-{self.name}-{place}"

    def inside(self, place: str, act: Callable[[], Result]) -> Result:
        """Call a function in a namespace of the lab, for example to open a socket, which stays there."""

        def enter_and_act() -> Result:
            there = os.open(NAMESPACES / self.namespace(place), os.O_RDONLY)
            try:
                if ctypes.CDLL(None, use_errno=True).setns(there, CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), "setns")
            finally:
                os.close(there)
            return act()

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(enter_and_act).result()

    def socket(self, place: str, address: str, port: int = 0) -> socket.socket:
        """Return a UDP socket at a place, bound to one of its addresses, with a timeout of one second."""

        def make() -> socket.socket:
            made = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            made.bind((address, port))
            made.settimeout(1.0)
            return made

        return self.inside(place, make)

    def command(self, place: str, *command: str) -> list[str]:
        """Return a command that runs another at a place."""
        return ["nsenter", f"--net={NAMESPACES / self.namespace(place)}", *command]

    def run(self, place: str, *command: str, timeout_s: float = 30.0) -> str:
        """Run a command at a place and return its output; `CalledProcessError` if it fails."""
        whole = self.command(place, *command)
        return subprocess.run(whole, check=True, capture_output=True, text=True, timeout=timeout_s).stdout

    def link(self, a: str, b: str, *, one_way: bool = False, **conditions: str) -> None:
        """Change a link, like ``lab.link("gw-1", "gw-2", delay="20ms", loss="1%")``."""
        options = [text for name, value in conditions.items() for text in (f"--{name}", value)]
        _seaway("link", a, b, *options, *(["--one-way"] if one_way else []), "--name", self.name)

    def links(self) -> Mapping[tuple[str, str], Mapping[str, int]]:
        """Return the conditions and counts of each link by its ends; fields as of `Conditions` and `Counts`."""
        body = json.loads(_seaway("show", "-o", "json", "--name", self.name))
        return {(each["source"], each["target"]): each for each in body["links"]}


@contextmanager
def lab(gateways: int = 3, links: Mapping[str, Any] | None = None) -> Iterator[TestLab]:
    """Run a lab for the time of a block.

    Parameters
    ----------
    links
        A document of links (docs/lab.md); None for links without delay and loss.

    Raises
    ------
    MissingError
        If this machine cannot run one.
    """
    name = f"test-{os.getpid()}-{next(_numbers)}"
    try:
        made = _seaway(
            *("up", "--gateways", str(gateways), "--name", name, "-o", "json", "--links", "/dev/stdin"),
            given=json.dumps(links or {}),
        )
        yield TestLab(name, Path(json.loads(made)["network"]))
    finally:
        subprocess.run(_command("down", "--name", name), check=False, capture_output=True)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "lab", *arguments]


def _seaway(*arguments: str, given: str = "") -> str:
    done = subprocess.run(_command(*arguments), check=False, capture_output=True, text=True, input=given)
    if done.stderr.startswith(LACKING):
        raise MissingError(done.stderr.removeprefix("error: ").strip())
    if done.returncode:
        raise RuntimeError(f"script/lab {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
