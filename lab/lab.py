"""Labs: gateways, hosts and the network between them in namespaces of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import yaml

from lab import netns, wires
from lab.conditions import Conditions, Emulator
from lab.emulation.netem import NetemEmulation
from lab.emulation.netem import available as netem_available
from lab.emulation.queue import QueueEmulation
from lab.emulation.start import missing as missing_for_links
from lab.plan import CORE, LabPlan, belongs, require_name
from seaway.adapters.srv6.machine import FOLDER as REMEMBERED
from seaway.adapters.srv6.machine import Machine
from seaway.domain.errors import ConflictError, RejectedError, UnknownError
from seaway.domain.network import Ends
from seaway.steering.state import desired
from seaway.wire.network_in import network_text

FOLDER = Path("/run/seaway/labs")
PLAN, NETWORK = "lab.json", "network.yaml"

TOOLS = ("nsenter", "unshare", "setsid")
SEG6 = Path("/proc/sys/net/ipv6/conf/all/seg6_enabled")


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab that is up.

    Attributes
    ----------
    plan
        Its gateways and addresses.
    folder
        Folder of its state.
    emulator
        Emulator of its links.
    """

    plan: LabPlan
    folder: Path
    emulator: Emulator

    @property
    def network(self) -> Path:
        """File of its network configuration."""
        return self.folder / NETWORK

    @property
    def emulation(self) -> QueueEmulation | NetemEmulation:
        """Emulation of its links."""
        if self.emulator is Emulator.QUEUE:
            return QueueEmulation(_in_core(self.plan), self.folder)
        return NetemEmulation(_in_core(self.plan), self.folder, [spot.gateway for spot in self.plan.spots])

    def command(self, place: str, command: Sequence[str]) -> list[str]:
        """Return the command that runs another one in the namespace of a gateway, a host or the core.

        Raises
        ------
        UnknownError
            If the place does not exist.
        """
        if place not in self.plan.places:
            raise UnknownError(f"{place!r} is not a place of this lab; available: {', '.join(self.plan.places)}")
        return netns.command_in(self.plan.namespace(place), command)


def up(
    plan: LabPlan, links: Mapping[Ends, Conditions], *, replace: bool = False, emulator: Emulator | None = None
) -> Lab:
    """Create a lab.

    Parameters
    ----------
    emulator
        Emulator; None for netem if the kernel has it.

    Raises
    ------
    RejectedError
        If this machine cannot run a lab.
    ConflictError
        If a lab of that name exists, and `replace` is not set.
    """
    require_machine()
    if replace:
        _remove(plan.name)
    folder = FOLDER / plan.name
    if _namespaces(plan.name):
        raise _there_is_one(plan.name)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise _there_is_one(plan.name) from None
    try:
        _build(plan)
        lab = Lab(plan, folder, emulator or _emulator(plan))
        lab.emulation.start(links)
        lab.network.write_text(yaml.safe_dump(network_text(plan.config()), sort_keys=False))
        (folder / PLAN).write_text(json.dumps({"plan": asdict(plan), "emulator": lab.emulator}))
    except BaseException:
        _remove(plan.name)
        raise
    return lab


def start_agents(lab: Lab, server: str, tokens: Mapping[str, str]) -> None:
    """Start an agent for each gateway in the background; agents end with the lab.

    Parameters
    ----------
    server
        URL of the server that they report to.
    tokens
        Tokens by gateway.
    """
    for gateway, token in tokens.items():
        file = lab.folder / f"{gateway}.token"
        file.touch(mode=0o600)
        file.write_text(token)
        command = ["agent", "--gateway", gateway, "--netns", lab.plan.namespace(gateway), "--server", server]
        with (lab.folder / f"{gateway}.log").open("wb") as log:
            subprocess.run(
                ["setsid", "--fork", sys.executable, "-m", "seaway", *command, "--token-file", str(file)],
                check=True,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
            )


def down(name: str) -> None:
    """Remove a lab, complete or not: its namespaces, the processes in them, and its files.

    Raises
    ------
    UnknownError
        If nothing of it exists.
    """
    require_name(name)
    require_root()
    if not _remove(name):
        raise _no_lab(name)


def find(name: str) -> Lab:
    """Return a lab that is up.

    Raises
    ------
    UnknownError
        If it does not exist; lists the labs that do.
    """
    require_name(name)
    require_root()
    folder = FOLDER / name
    try:
        noted = json.loads((folder / PLAN).read_text())
        return Lab(LabPlan(**noted["plan"]), folder, Emulator(noted["emulator"]))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        raise _no_lab(name) from None


def labs() -> list[str]:
    """Return the names of all labs of this machine."""
    return sorted(each.parent.name for each in FOLDER.glob(f"*/{PLAN}"))


def require_root() -> None:
    """Check that this user may enter namespaces.

    Raises
    ------
    RejectedError
        If not root.
    """
    if os.geteuid() != 0:
        raise RejectedError("a lab needs root, as it makes network namespaces: run the command with sudo")


def require_machine() -> None:
    """Check that this machine can run a lab.

    Raises
    ------
    RejectedError
        If something is missing; names it.
    """
    require_root()
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise RejectedError(f"a lab needs {tool} (Debian: apt-get install util-linux)")
    if not SEG6.exists():
        raise RejectedError("a lab needs a kernel with segment routing (CONFIG_IPV6_SEG6_LWTUNNEL), and IPv6 on")
    if lacking := missing_for_links():
        raise RejectedError(f"a lab needs {lacking}")


def _in_core(plan: LabPlan) -> Callable[[Sequence[str]], list[str]]:
    return partial(netns.command_in, plan.namespace(CORE), own_sys=False)


def _emulator(plan: LabPlan) -> Emulator:
    return Emulator.NETEM if netem_available(_in_core(plan)) else Emulator.QUEUE


def _build(plan: LabPlan) -> None:
    try:
        for namespace in plan.namespaces():
            netns.make(namespace.name)
            wires.prepare(namespace)
    except PermissionError as error:
        raise RejectedError(
            f"a lab needs to make network namespaces, and may not ({error.strerror}); a container must be privileged"
        ) from None
    ends: dict[str, list[tuple[wires.End, wires.End]]] = {}
    for wire in plan.wires():
        wires.connect(wire)
        for end, other in wire.ends:
            ends.setdefault(end.namespace, []).append((end, other))
    for namespace in plan.namespaces():
        wires.furnish(namespace, ends[namespace.name])
    config = plan.config()
    for spot in plan.spots:
        Machine(plan.namespace(spot.gateway)).converge(desired(config, spot.gateway))


def _remove(name: str) -> bool:
    """Remove all parts of a lab; False if there were none."""
    namespaces, folder = _namespaces(name), FOLDER / name
    there = bool(namespaces) or folder.is_dir()
    netns.end_processes(namespaces)
    for each in namespaces:
        netns.remove(each)
    shutil.rmtree(folder, ignore_errors=True)
    for file in REMEMBERED.glob("gateway@*"):
        if belongs(file.stem.removeprefix("gateway@"), name):
            file.unlink(missing_ok=True)
    for parent in (FOLDER, FOLDER.parent):
        with suppress(OSError):
            parent.rmdir()
    return there


def _namespaces(name: str) -> list[str]:
    return [each for each in netns.names() if belongs(each, name)]


def _there_is_one(name: str) -> ConflictError:
    return ConflictError(f"there is a lab {name!r} already: `script/lab down{option(name)}` removes it, --replace too")


def _no_lab(name: str) -> UnknownError:
    if _namespaces(name) or (FOLDER / name).is_dir():
        return UnknownError(f"the lab {name!r} is half made: `script/lab down{option(name)}` removes it")
    there = ", ".join(labs())
    return UnknownError(f"lab {name!r} not found; " + (f"available: {there}" if there else "`script/lab up` makes one"))


def option(name: str) -> str:
    """Return the option that names a lab in commands; empty for the default name."""
    return "" if name == "lab" else f" --name {name}"
