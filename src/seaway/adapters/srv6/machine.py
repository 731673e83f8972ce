"""A Linux machine, or one of its network namespaces, as a gateway."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import IPv6Address
from pathlib import Path
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING, Any

from seaway.domain.errors import ConflictError, ForbiddenError, RejectedError, UnavailableError
from seaway.domain.gateways import MAIN_TABLE
from seaway.steering.difference import Add, Change, Difference, Remove, Replace, Set, commands, difference
from seaway.steering.state import (
    NOTHING,
    PROTOCOL,
    TUNNEL_SOURCE,
    CurrentState,
    GatewayState,
    SavedSetting,
    Setting,
    SettingKind,
    mtu,
    sysctl,
)

if TYPE_CHECKING:
    from pyroute2 import IPRoute


FOLDER = Path("/run/seaway")
"""Default folder. Its contents do not survive a reboot, like the settings themselves."""


class SavedSettings:
    """Previous settings of one network namespace, stored in a file.

    Contents from another namespace or from before a reboot are ignored.

    Parameters
    ----------
    folder
        Folder of the file; created when needed.
    netns
        Name of the namespace; empty for the machine's own.
    """

    def __init__(self, folder: Path, netns: str) -> None:
        self._file = folder / (f"gateway@{netns}.json" if netns else "gateway.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the gateway against changes by other processes."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except PermissionError as error:
            raise ForbiddenError(
                f"{error.filename}: {error.strerror}; this requires root, or another --state"
            ) from None

    def read(self, identity: str) -> dict[Setting, SavedSetting]:
        """Return the saved settings of a namespace.

        Raises
        ------
        RejectedError
            When the file is damaged.
        """
        try:
            written = json.loads(self._file.read_bytes())
            if written["machine"] != identity:
                return {}
            return {
                Setting(SettingKind(each["kind"]), str(each["name"])): SavedSetting(
                    str(each["before"]), str(each["value"])
                )
                for each in written["settings"]
            }
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            raise ForbiddenError(f"{self._file}: {error.strerror}; this requires root") from None
        except (ValueError, KeyError, TypeError):
            raise RejectedError(
                "is damaged: remove it; the previous settings are then lost", where=str(self._file)
            ) from None

    def write(self, identity: str, saved: Mapping[Setting, SavedSetting]) -> None:
        """Replace the file atomically."""
        if not saved:
            self._file.unlink(missing_ok=True)
            return
        settings = [
            {"kind": knob.kind.value, "name": knob.name, "before": each.before, "value": each.value}
            for knob, each in saved.items()
        ]
        new = self._file.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"machine": identity, "settings": settings}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)


NAMED = Path("/run/netns")
"""Folder of the namespaces that `ip netns add` creates."""

OWN = Path("/proc/thread-self/ns/net")

CLONE_NEWNET = 0x40000000
SO_NETNS_COOKIE = 71


@contextmanager
def inside(netns: str) -> Iterator[None]:
    """Run a block with this thread in a network namespace. With an empty name, stay in the current namespace.

    Raises
    ------
    RejectedError
        When the namespace does not exist.
    ForbiddenError
        When this process may not enter it.
    """
    if not netns:
        yield
        return
    before = os.open(OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        there = _open(netns)
        try:
            _enter(there, netns)
        finally:
            os.close(there)
        try:
            yield
        finally:
            _enter(before, "the one before")
    finally:
        os.close(before)


def identity() -> str:
    """Return the unique ID of the current namespace. The ID is never used again, even after a reboot."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        try:
            cookie = any_socket.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
        except OSError:  # before Linux 5.14; inode numbers may be reused
            return f"{boot}/file-{OWN.stat().st_ino}"
    return f"{boot}/{int.from_bytes(cookie, sys.byteorder)}"


def _open(netns: str) -> int:
    if netns in {".", ".."} or "/" in netns:
        raise RejectedError(f"{netns!r} is not a name of a network namespace")
    try:
        return os.open(NAMED / netns, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        there = ", ".join(sorted(each.name for each in NAMED.iterdir())) if NAMED.is_dir() else ""
        raise RejectedError(f"network namespace {netns!r} not found; available: {there or 'none'}") from None


def _enter(namespace: int, name: str) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, CLONE_NEWNET):
        why = os.strerror(ctypes.get_errno())
        raise ForbiddenError(f"cannot enter the network namespace {name!r}: {why}; this requires root")


SYSCTLS = Path("/proc/sys")
READ = ("forwarding", "seg6_enabled", "accept_ra")
"""IPv6 settings that are read from every interface."""


class Machine:
    """Linux machine as a gateway. Its methods block; do not call them on an event loop.

    Parameters
    ----------
    netns
        Name of a network namespace; empty for that of this process.
    state
        Folder for the previous values of settings.

    Raises
    ------
    RejectedError
        When this is not Linux, or pyroute2 is missing.
    """

    def __init__(self, netns: str = "", state: Path = FOLDER) -> None:
        if not sys.platform.startswith("linux"):
            raise RejectedError("a gateway must be a Linux machine")
        try:
            import pyroute2  # noqa: F401
        except ImportError:
            raise RejectedError("this needs pyroute2: pip install 'seaway[gateway]'") from None
        self._netns = netns
        self._memory = SavedSettings(state, netns)

    def read(self) -> CurrentState:
        """Read the current state.

        Raises
        ------
        RejectedError, ForbiddenError
            When the namespace does not exist, or this process lacks the permission.
        """
        with self._netlink() as netlink:
            return self._read(netlink)

    def converge(self, wanted: GatewayState) -> Difference:
        """Apply the desired state, and return the changes.

        Raises
        ------
        RejectedError
            When the state cannot be applied; nothing was changed.
        ForbiddenError
            When this process lacks the permission.
        ConflictError
            When the kernel rejects a change. Earlier changes remain, and the next call continues from there.
        """
        with self._netlink() as netlink, self._memory.locked():
            found = difference(wanted, self._read(netlink))
            self._apply(found, netlink)
            return found

    def apply(self, found: Difference) -> None:
        """Apply a difference; raise the errors of `converge`."""
        with self._netlink() as netlink, self._memory.locked():
            self._apply(found, netlink)

    def remove(self) -> Difference:
        """Remove all changes of Seaway, and restore the previous settings; raise the errors of `converge`."""
        return self.converge(NOTHING)

    @contextmanager
    def _netlink(self) -> Iterator[IPRoute]:
        from pyroute2 import IPRoute
        from pyroute2.netlink.exceptions import NetlinkError

        with inside(self._netns):
            try:
                with IPRoute(strict_check=True) as netlink:
                    yield netlink
            except NetlinkError as error:
                if error.code in {errno.EPERM, errno.EACCES}:
                    raise ForbiddenError("only root can read or change the state of a gateway") from None
                raise UnavailableError(f"the kernel refuses to list its state: {error}") from None

    def _read(self, netlink: IPRoute) -> CurrentState:
        from seaway.adapters.srv6.routes import read_foreign, read_own

        links = [
            (link["index"], link.get_attr("IFLA_IFNAME"), link.get_attr("IFLA_MTU")) for link in netlink.get_links()
        ]
        names = {index: name for index, name, _ in links}
        routes = [
            each
            for family in (AF_INET6, AF_INET)
            for each in netlink.get_routes(family=family, table=MAIN_TABLE)
            if (each.get_attr("RTA_TABLE") or each["table"]) == MAIN_TABLE
        ]
        addresses = (each.get_attr("IFA_ADDRESS") for each in netlink.get_addr(family=AF_INET6))
        return CurrentState(
            routes=tuple(read_own(each, names) for each in routes if each["proto"] == PROTOCOL),
            foreign=tuple(read_foreign(each, names) for each in routes if each["proto"] != PROTOCOL),
            settings=dict(_settings()) | {mtu(name): str(size) for _, name, size in links},
            addresses=frozenset(map(IPv6Address, addresses)),
            interfaces=frozenset(names.values()),
            saved=self._memory.read(identity()),
        )

    def _apply(self, found: Difference, netlink: IPRoute) -> None:
        remembered = self._memory.read(identity())
        if found.changes:
            self._memory.write(identity(), remembered | dict(found.saved))
        indices = {link.get_attr("IFLA_IFNAME"): link["index"] for link in netlink.get_links()} if found.changes else {}
        for done, change in enumerate(found.changes):
            try:
                _do(change, netlink, indices)
            except OSError as error:
                raise self._refused(change, error, done) from None
        if found.changes or remembered != found.saved:
            self._memory.write(identity(), found.saved)

    def _refused(self, change: Change, error: OSError, done: int) -> Exception:
        """Return the error for a change that the kernel rejected, with the number of earlier changes."""
        (command,) = commands([change], self._netns)
        if error.errno in {errno.EPERM, errno.EACCES}:
            return ForbiddenError(f"this requires root: {command}")
        why = error.strerror or str(error)
        return ConflictError(f"the kernel refuses `{command}`: {why}; changes made before it: {done}")


def _settings() -> Iterator[tuple[Setting, str]]:
    """Yield the current settings of every interface and of the machine."""
    from seaway.adapters.srv6 import routes as tunnel_source

    conf = SYSCTLS / "net/ipv6/conf"
    for folder in conf.iterdir() if conf.is_dir() else ():  # missing in a kernel without IPv6
        for name in READ:
            try:
                yield sysctl(folder.name, name), (folder / name).read_text().strip()
            except FileNotFoundError:  # not in this kernel, or the interface is gone
                continue
    for folder in (SYSCTLS / "net/ipv4/conf").iterdir():
        with suppress(FileNotFoundError):  # the interface is gone
            knob = Setting(SettingKind.SYSCTL, f"net/ipv4/conf/{folder.name}/forwarding")
            yield knob, (folder / "forwarding").read_text().strip()
    source = tunnel_source.read()
    if source is not None:
        yield TUNNEL_SOURCE, source


def _do(change: Change, netlink: IPRoute, indices: dict[str, int]) -> None:
    from pyroute2.netlink.exceptions import NetlinkError

    from seaway.adapters.srv6.routes import key, written

    try:
        match change:
            case Set(knob, _, value):
                _set(knob, value, netlink, indices)
            case Add(route):
                _route(netlink, "add", written(route, indices))
            case Replace(_, route):
                _route(netlink, "replace", written(route, indices))
            case Remove(route):
                _route(netlink, "del", key(route))
    except NetlinkError as error:
        raise OSError(error.code, error.args[-1]) from None


def _route(netlink: IPRoute, what: str, route: dict[str, Any]) -> None:
    netlink.route(what, **route)


def _set(knob: Setting, value: str, netlink: IPRoute, indices: dict[str, int]) -> None:
    from seaway.adapters.srv6 import routes as tunnel_source

    if knob.kind is SettingKind.SYSCTL:
        (SYSCTLS / knob.name).write_text(f"{value}\n")
    elif knob.kind is SettingKind.MTU:
        netlink.link("set", index=indices[knob.name], mtu=int(value))
    else:
        tunnel_source.write(value)
