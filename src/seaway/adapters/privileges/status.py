"""What a thread may do, as the kernel describes it in proc(5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
