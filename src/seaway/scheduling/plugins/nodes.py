"""Filters for nodes: readiness, labels, taints, resources, devices, and excluded nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from seaway.domain.job import OTHER_COPY, DeviceRules, GpuTopology, NodeRules
from seaway.scheduling.arrays import UInt8
from seaway.scheduling.columns import (
    DEMAND_CPU,
    DEMAND_MEMORY,
    NODE_CPU,
    NODE_CPU_FREE,
    NODE_MEMORY,
    NODE_MEMORY_FREE,
    NODE_OPEN,
    NODE_PODS_FREE,
)
from seaway.scheduling.framework import Codes, Cycle
from seaway.scheduling.kernels.filter_reasons import KIND_OK, NO_PROFILE, OTHER_SLICE, reason_codes
from seaway.scheduling.snapshot.encode import allowed_devices, avoided, labels_allow, tolerated, with_profile
from seaway.scheduling.snapshot.rule_masks import RuleCache
from seaway.scheduling.snapshot.snapshot import Snapshot


class NodeLabels:
    """Filter that excludes nodes without the labels that the job requires."""

    name = "NodeLabels"
    reasons = ("label missing or different",)

    def __init__(self) -> None:
        self._refused = RuleCache(label_reason_codes)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(node_labels=cycle.demand.nodes.node_labels))


def label_reason_codes(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 for each node that lacks a label, shape (N,)."""
    if not rules.node_labels:
        return np.zeros(len(snapshot.nodes), np.uint8)
    return np.array([not labels_allow(rules, node) for node in snapshot.nodes], np.uint8)


class NodeReady:
    """Filter that excludes nodes that are not ready or cordoned."""

    name = "NodeReady"
    reasons = ("node not ready or cordoned",)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        codes: Codes = (cycle.snapshot.arrays.nodes[NODE_OPEN] == 0).astype(np.uint8)
        return codes


class NodeResources:
    """Filter that excludes nodes with insufficient free CPU or memory, or without capacity for another pod."""

    name = "NodeResources"
    reasons = (
        "not enough free CPU",
        "not enough free memory",
        "no room for another pod",
        "too little CPU",
        "too little memory",
    )

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        nodes = cycle.snapshot.arrays.nodes
        amounts = cycle.snapshot.demands.arrays.amounts[cycle.demand_index]
        codes = np.zeros(nodes.shape[1], np.uint8)
        codes[nodes[NODE_MEMORY_FREE] < amounts[DEMAND_MEMORY]] = 2
        codes[nodes[NODE_CPU_FREE] < amounts[DEMAND_CPU]] = 1
        codes[nodes[NODE_PODS_FREE] < 1] = 3  # after these, because a smaller request does not help
        codes[nodes[NODE_MEMORY] < amounts[DEMAND_MEMORY]] = 5
        codes[nodes[NODE_CPU] < amounts[DEMAND_CPU]] = 4
        return codes


class TaintToleration:
    """Filter that excludes nodes with a taint that the job does not tolerate.

    Taints with the effect ``PreferNoSchedule`` exclude no nodes.
    """

    name = "TaintToleration"
    reasons = ("taint not tolerated",)

    def __init__(self) -> None:
        self._refused = RuleCache(taint_reason_codes)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(tolerations=cycle.demand.nodes.tolerations))


def taint_reason_codes(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 for each node with a taint that is not tolerated, shape (N,)."""
    return np.array([not all(tolerated(rules, taint) for taint in node.taints) for node in snapshot.nodes], np.uint8)


class Avoidance:
    """Filter that excludes nodes that rejected the job, clusters with the other copy, and nodes beside its move."""

    name = "Avoidance"
    reasons = (
        "the job failed to start there",
        "the other copy of the service is there",
        "the job moves to other nodes",
    )

    def __init__(self) -> None:
        self._refused = RuleCache(avoidance_reason_codes)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        return self._refused(cycle.snapshot, NodeRules(avoid=cycle.demand.nodes.avoid, only=cycle.demand.nodes.only))


def avoidance_reason_codes(snapshot: Snapshot, rules: NodeRules) -> Codes:
    """Return 1 to 3 for each node that the rules avoid: 2 for the other copy, 3 beside a move, shape (N,)."""
    codes = np.zeros(len(snapshot.nodes), np.uint8)
    if rules.avoid or rules.only:
        for (cluster, node), n in snapshot.node_index.items():
            beside = bool(rules.only) and (cluster, node) not in rules.only
            codes[n] = 2 if (cluster, OTHER_COPY) in rules.avoid else 3 if beside else avoided(rules, cluster, node)
    return codes


class DeviceFit:
    """Filter that excludes nodes whose devices do not fit the replica, with the rules of HAMi v2.10.

    The reason of a node is the rule that excludes most of its devices, the first among equals. Rules that no end of
    another job mends (model, vendor, mode, size) go first if too few of its devices pass them. The corresponding
    reasons of HAMi are, in order:

    - NodeInsufficientDevice: the node has no devices, or fewer than requested;
    - CardNotHealth and CardCordoned;
    - CardTypeMismatch: model, vendor or mode;
    - CardUuidMismatch;
    - CardTimeSlicingExhausted: the device has its maximum number of containers;
    - ExclusiveDeviceAllocateConflict: the job requires an idle device (policy mutex);
    - CardInsufficientMemory;
    - CardInsufficientCore;
    - ExclusiveDeviceAllocateConflict: the job requests all cores, and the device is in use. Here it goes before
      memory and cores, which a device in use lacks for a whole device as well;
    - CardComputeUnitsExhausted: another container has all cores;
    - CardMigTopologyInfeasible;
    - NumaNotFit: enough devices fit, but not on one NUMA node;
    - CardMigTopologyInfeasible: pods cannot request an instance of the MIG profile;
    - without a reason of HAMi: enough devices fit, but not in one NVLink island;
    - without a reason of HAMi: the devices are in a TPU slice that the job does not take whole.
    """

    name = "DeviceFit"
    reasons = (
        "no GPU",
        "too few GPUs",
        "GPU not healthy or cordoned",
        "GPU model or mode not allowed",
        "GPU excluded by its UUID",
        "no slot left on one GPU",
        "GPU in use, but requested exclusively",
        "not enough free GPU memory on one device",
        "not enough free GPU cores on one device",
        "GPUs in use",
        "all GPU cores taken",
        "no free MIG placement",
        "GPUs not on one NUMA node",
        "no such MIG profile",
        "GPUs not in one NVLink island",
        "TPU slice that needs a gang with one replica per node",
        "too little memory on each GPU",
    )

    def __init__(self) -> None:
        self._kinds = RuleCache(kinds_allowed)

    def filter(self, cycle: Cycle) -> Codes:
        """Return 0 for each node that passes, else the code of the reason, shape (N,)."""
        snapshot, rules = cycle.snapshot, cycle.demand.devices
        anywhere = replace(rules, same_numa=False, exclusive=False, topology=GpuTopology.ANY)
        kinds = replace(anywhere, use_uuids=frozenset(), avoid_uuids=frozenset())
        kind_ok = self._kinds(snapshot, (kinds, cycle.demand.request.mig))
        return reason_codes(snapshot.arrays, snapshot.demands.arrays, cycle.demand_index, kind_ok)


def kinds_allowed(snapshot: Snapshot, rules: tuple[DeviceRules, str]) -> UInt8:
    """Return `kind_ok` of `reason_codes` for rules and a MIG profile, shape (D,)."""
    wanted, mig = rules
    marks = allowed_devices(wanted, snapshot.devices)
    for nodes in {each.slice_nodes for each in snapshot.devices} - {1, wanted.slice_nodes}:
        others = allowed_devices(replace(wanted, slice_nodes=nodes), snapshot.devices)
        marks = np.where((marks == 0) & (others == KIND_OK), np.uint8(OTHER_SLICE), marks)
    lacking = np.where(marks == KIND_OK, np.uint8(NO_PROFILE), marks)
    return marks if not mig else np.where(with_profile(snapshot.devices, mig), marks, lacking)
