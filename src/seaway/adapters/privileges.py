"""Permanent drop of root privileges.

References
----------
capabilities(7), "Effect of user ID changes on capabilities"; prctl(2); capset(2), for the layout of version 3.
"""

from __future__ import annotations

import ctypes
import os
import pwd
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from seaway.domain.errors import InvariantError, RejectedError

_SETS = {"CapInh": "inheritable", "CapPrm": "permitted", "CapEff": "effective", "CapAmb": "ambient"}


@dataclass(frozen=True, slots=True)
class Status:
    """User, groups and capabilities of a thread.

    Attributes
    ----------
    uids, gids
        Real, effective, saved, and file system IDs.
    groups
        Supplementary groups.
    capabilities
        Bit sets, by the kernel's name of the set.
    no_new_privs
        True if programs that it starts cannot gain privileges.
    """

    uids: tuple[int, ...]
    gids: tuple[int, ...]
    groups: tuple[int, ...]
    capabilities: dict[str, int]
    no_new_privs: bool


def threads() -> Iterator[Path]:
    """Yield the folder in /proc of each thread of this process."""
    return Path("/proc/self/task").iterdir()


def read_status(folder: Path) -> Status:
    """Read the status of a process or a thread from its folder in /proc."""
    lines = (folder / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return Status(
        uids=tuple(map(int, fields["Uid"])),
        gids=tuple(map(int, fields["Gid"])),
        groups=tuple(map(int, fields["Groups"])),
        capabilities={name: int(fields[name][0], 16) for name in (*_SETS, "CapBnd")},
        no_new_privs=fields["NoNewPrivs"] == ["1"],
    )


def held_capabilities(status: Status) -> list[str]:
    """Return the names of non-empty capability sets.

    The bounding set is ignored, because it only limits later gains.
    """
    return [f"{text} capabilities" for name, text in _SETS.items() if status.capabilities[name]]


_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_MAX_CAPABILITIES = 64


@dataclass(frozen=True, slots=True)
class Account:
    """User account that the process switches to.

    Attributes
    ----------
    uid, gid
        User and group ID; not those of root.
    """

    name: str
    uid: int
    gid: int


def find_account(user: str) -> Account:
    """Return a user of this machine, by name or number.

    Raises
    ------
    RejectedError
        When the user does not exist, or is root.
    """
    try:
        found = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        raise RejectedError(f"user {user!r} not found on this machine", where="user") from None
    if not found.pw_uid or not found.pw_gid:
        raise RejectedError(f"{user} is root or in its group: name an unprivileged user", where="user")
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def forbid_new_privileges() -> None:
    """Prevent this thread and its later threads permanently from gaining privileges through programs.

    Call it before other threads are started, because each thread has its own setting. It drops no current privilege.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_MAX_CAPABILITIES):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            return  # no more capabilities, or the call is not permitted; no_new_privs then suffices


def drop_privileges(account: Account, other_threads: Iterable[Callable[[Callable[[], None]], None]] = ()) -> None:
    """Drop all privileges of this process permanently, and verify the result.

    As root, switch to `account`, without supplementary groups. In all cases, no thread keeps a capability, and no other
    process of that user can read its memory. Call `forbid_new_privileges` first.

    Parameters
    ----------
    other_threads
        Functions that run a function in each other thread with capabilities: only a thread itself can drop them.

    Raises
    ------
    InvariantError
        When a privilege remains.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    was_root = os.geteuid() == 0
    if was_root:
        os.setgroups([])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)  # for all threads; this clears their capabilities, too
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _clear_capabilities(libc)
    for run in other_threads:
        run(partial(_clear_capabilities, libc))
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _require_dropped(account if was_root else None)


def _clear_capabilities(libc: ctypes.CDLL) -> None:
    """Clear the calling thread's effective, permitted and inheritable sets."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def _require_dropped(account: Account | None) -> None:
    """Check the kernel's status of every thread, and that the process cannot become root again."""
    left = [problem for thread in threads() for problem in _remaining(read_status(thread), account)]
    with suppress(PermissionError):
        os.setresuid(0, 0, 0)
        left.append("it can become root again")
    if left:
        raise InvariantError(f"privileges could not be dropped: {left[0]}")


def _remaining(status: Status, account: Account | None) -> list[str]:
    """Return the remaining privileges of a thread."""
    left = [f"it has {name}" for name in held_capabilities(status)]
    if not status.no_new_privs:
        left.append("programs that it starts can have more rights")
    if 0 in status.uids or 0 in status.gids:
        left.append("it is root, or of root's group")
    if account is not None and ({*status.uids} != {account.uid} or {*status.gids} != {account.gid} or status.groups):
        left.append(f"it is not {account.name} alone")
    return left
