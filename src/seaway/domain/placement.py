"""Placements: where a replica goes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSlice:
    """A share of one device, held by one replica.

    Attributes
    ----------
    uuid
        The device.
    memory_mib, core_milli
        What the slice books, MiB and thousandths of the device.
    mig_profile, mig_start
        For an instance on a device in MIG mode, its profile and first memory slice; else empty
        and -1.
    """

    uuid: str
    memory_mib: int
    core_milli: int
    mig_profile: str = ""
    mig_start: int = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision for one replica: this node, these devices."""

    job: str
    replica: int
    cluster: str
    node: str
    slices: tuple[DeviceSlice, ...] = ()
