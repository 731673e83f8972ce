"""From root to nobody, permanently.

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
    """Who a thread is, and what it may do.

    Attributes
    ----------
    uids, gids
        Real, effective, saved, and of the file system.
    groups
        Supplementary.
    capabilities
        Sets of bits, by name of the set as the kernel writes it.
    no_new_privs
        Whether no program that it starts can have more rights than itself.
    """

    uids: tuple[int, ...]
    gids: tuple[int, ...]
    groups: tuple[int, ...]
    capabilities: dict[str, int]
    no_new_privs: bool


def threads() -> Iterator[Path]:
    """Yield where the kernel describes each thread of this process."""
    return Path("/proc/self/task").iterdir()


def read_status(folder: Path) -> Status:
    """Read how the kernel describes a process or a thread, given its folder in /proc."""
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
    """Name the sets of capabilities that are not empty; the bounding set only limits what could be gained."""
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
    """Whom a process goes on as.

    Attributes
    ----------
    uid, gid
        None of them is root's.
    """

    name: str
    uid: int
    gid: int


def find_account(user: str) -> Account:
    """Look a user of this machine up, by name or by number.

    Raises
    ------
    RejectedError
        When there is none, or it is root.
    """
    try:
        found = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        raise RejectedError(f"user {user!r} not found on this machine", where="user") from None
    if not found.pw_uid or not found.pw_gid:
        raise RejectedError(f"{user} is root, or of its group: name a user without rights, like nobody", where="user")
    return Account(found.pw_name, found.pw_uid, found.pw_gid)


def forbid_new_privileges() -> None:
    """Have no program that this thread and those that it starts from here on execute gain a right; for ever.

    To be called before other threads are started, since each has its own say in this. It takes no right away.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    for capability in range(_MAX_CAPABILITIES):
        if libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            return  # there are no more, or it takes a capability, and then no_new_privs has to do


def drop_privileges(account: Account, other_threads: Iterable[Callable[[Callable[[], None]], None]] = ()) -> None:
    """Give up every privilege of this process, and the way back to any, and see that they are gone.

    As root, it goes on as `account`, without supplementary groups. In either case no capability is left in any of
    its threads, and no other process of that user can look into its memory. `forbid_new_privileges` comes first.

    Parameters
    ----------
    other_threads
        What runs something in a thread, for each other one that has capabilities: only a thread itself gives them up.

    Raises
    ------
    InvariantError
        When something is left.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    was_root = os.geteuid() == 0
    if was_root:
        os.setgroups([])
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)  # in all threads, and their capabilities go with it
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _clear_capabilities(libc)
    for run in other_threads:
        run(partial(_clear_capabilities, libc))
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _require_gone(account if was_root else None)


def _clear_capabilities(libc: ctypes.CDLL) -> None:
    """Clear the calling thread's effective, permitted and inheritable sets."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


def _require_gone(account: Account | None) -> None:
    """Look at every thread of this process, as the kernel describes it; and try the way back."""
    left = [problem for thread in threads() for problem in _remaining(read_status(thread), account)]
    with suppress(PermissionError):
        os.setresuid(0, 0, 0)
        left.append("it can become root again")
    if left:
        raise InvariantError(f"privileges could not be given up: {left[0]}")


def _remaining(status: Status, account: Account | None) -> list[str]:
    """Say what a thread still has."""
    left = [f"it has {name}" for name in held_capabilities(status)]
    if not status.no_new_privs:
        left.append("programs that it starts can have more rights")
    if 0 in status.uids or 0 in status.gids:
        left.append("it is root, or of root's group")
    if account is not None and ({*status.uids} != {account.uid} or {*status.gids} != {account.gid} or status.groups):
        left.append(f"it is not {account.name} alone")
    return left
