"""Device fit: what the vGPU layer demands of a node's GPUs and NPUs."""

from __future__ import annotations

from dataclasses import replace

from seaway.domain.job import DeviceRules
from seaway.scheduling.arrays import UInt8
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.kernels.filter_reasons import reason_codes
from seaway.scheduling.snapshot.encode import allowed_devices
from seaway.scheduling.snapshot.rule_masks import RuleCache
from seaway.scheduling.snapshot.snapshot import Snapshot


class DeviceFit:
    """Refuses nodes whose devices cannot take the replica: the rules by which HAMi v2.10 judges it.

    The reason of a node is the rule that refuses most of its devices, the first among equals. In
    HAMi's words the reasons are, in order:

    - NodeInsufficientDevice: the node has none, or fewer than asked for;
    - CardNotHealth and CardCordoned;
    - CardTypeMismatch: model, vendor or mode;
    - CardUuidMismatch;
    - CardTimeSlicingExhausted: as many containers hold the device as may;
    - ExclusiveDeviceAllocateConflict: the job wants an idle device (policy mutex);
    - CardInsufficientMemory;
    - CardInsufficientCore;
    - ExclusiveDeviceAllocateConflict: the job wants all cores, and the device is in use;
    - CardComputeUnitsExhausted: another container holds all cores;
    - CardMigTopologyInfeasible;
    - NumaNotFit: enough devices would do, but not on one NUMA node.
    """

    name = "DeviceFit"
    reasons = (
        "no GPU on the node",
        "fewer GPUs on the node than requested",
        "GPU not healthy or cordoned",
        "GPU type or mode not allowed",
        "GPU not among those allowed by UUID",
        "no slot left on one GPU",
        "GPU in use, but requested exclusively",
        "not enough free GPU memory on one device",
        "not enough free GPU cores on one device",
        "GPU in use, but all its cores requested",
        "all GPU cores taken",
        "no free MIG placement",
        "GPUs not on one NUMA node",
    )

    def __init__(self) -> None:
        self._kinds = RuleCache(kinds_allowed)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes and else the code of the reason, shape (N,)."""
        snapshot, rules = cycle.snapshot, cycle.demand.devices
        kinds = replace(rules, use_uuids=frozenset(), avoid_uuids=frozenset(), same_numa=False, exclusive=False)
        kind_ok = self._kinds(snapshot, kinds)
        return reason_codes(snapshot.arrays, snapshot.demands.arrays, cycle.demand_index, kind_ok)


def kinds_allowed(snapshot: Snapshot, rules: DeviceRules) -> UInt8:
    """Mark the devices that `rules` allow, shape (D,)."""
    return allowed_devices(rules, snapshot.devices)
