"""Checks of a cluster: its connection, its version, the rights of Seaway in it, and its GPUs."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from seaway.domain.errors import UnavailableError

if TYPE_CHECKING:
    from seaway.adapters.kubernetes.cluster import KubernetesCluster
    from seaway.adapters.kubernetes.device_plugins.views import Problem
    from seaway.adapters.kubernetes.rights import Right
    from seaway.domain.cluster import Cluster

TRY_S = 20.0
LOOK_S = 0.1

MAX_NAMED = 5
"""Maximum number of problems of a cluster that are listed."""

RIGHTS_REMEDY = "apply deploy/kubernetes/member.yaml and namespaces.yaml there"
"""Remedy for missing rights in a cluster."""

POLICY_VERSION = (1, 30)
"""First version of Kubernetes with the admission policy of `namespaces.yaml`."""


class Level(StrEnum):
    """Result of a check."""

    OK = "ok"
    NOTE = "note"
    """Nothing is wrong, but someone may want to know."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes
    ----------
    check
        What was checked, like ``database`` or ``cluster gpu-east``.
    remedy
        What to do; empty if nothing.
    """

    check: str
    level: Level
    text: str
    remedy: str = ""


Findings = Iterator[Finding]


def examine_cluster(cluster: KubernetesCluster, *, through_karmada: bool = False) -> Findings:
    """Check a cluster; stop at the first check that makes the others impossible."""
    check = f"cluster {cluster.cluster}"
    try:
        seen = inventory(cluster)
    except UnavailableError as error:
        yield Finding(check, Level.ERROR, str(error), "check the kubeconfig, its token and the network to the server")
        return
    yield Finding(check, Level.OK if seen.nodes else Level.WARNING, inventory_text(seen))
    yield _version(cluster)
    if through_karmada:
        yield _refused(cluster)
    else:
        yield examine_rights(f"rights in {cluster.cluster}", cluster.missing_rights, RIGHTS_REMEDY)
    yield _gpus(seen)
    problems = node_problems(cluster.view.problems())
    for text in problems[:MAX_NAMED]:
        yield Finding(check, Level.WARNING, text)
    if len(problems) > MAX_NAMED:
        yield Finding(check, Level.WARNING, f"{len(problems) - MAX_NAMED} more problems of nodes")


def inventory(cluster: KubernetesCluster) -> Cluster:
    """Wait for the inventory of a cluster.

    Raises
    ------
    UnavailableError
        If the cluster does not respond correctly.
    """
    give_up_s = time.monotonic() + TRY_S
    while True:
        try:
            seen = cluster.changes("", 0).inventory
        except UnavailableError:
            if time.monotonic() > give_up_s or cluster.view.failing:
                raise
            time.sleep(LOOK_S)
            continue
        assert seen is not None, "a complete answer has the nodes"
        return seen


def inventory_text(cluster: Cluster) -> str:
    """Return the numbers of nodes and GPUs of a cluster, such as ``3 nodes, 8 NVIDIA L4``."""
    models = Counter(device.model for node in cluster.nodes for device in node.devices)
    gpus = ", ".join(f"{count} {model}" for model, count in models.most_common()) or "no GPUs found"
    return f"{len(cluster.nodes)} node{'s' if len(cluster.nodes) != 1 else ''}, {gpus}"


def node_problems(problems: Mapping[str, Sequence[Problem]]) -> list[str]:
    """Return the problems of nodes, one sentence each."""
    return [f"{where}: {each.text}" for where, found in problems.items() for each in found if where.startswith("node/")]


def _version(cluster: KubernetesCluster) -> Finding:
    """Check the version of Kubernetes, and the time that the server takes to answer."""
    from seaway.adapters.kubernetes.connection.responses import ApiError

    check = f"version of {cluster.cluster}"
    began_s = time.perf_counter()
    try:
        version = cluster.version()
    except (ApiError, UnavailableError) as error:
        return Finding(check, Level.WARNING, f"cannot be checked: {error}")
    text = f"Kubernetes {version}, which answers in {1000 * (time.perf_counter() - began_s):.0f} ms"
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < POLICY_VERSION:
        remedy = "create the namespaces of tenants as in deploy/kubernetes/tenant.yaml, without namespaces.yaml"
        return Finding(check, Level.WARNING, f"{text}; admission policies need 1.30", remedy)
    return Finding(check, Level.OK, text)


def _refused(cluster: KubernetesCluster) -> Finding:
    check, refused = f"rights in {cluster.cluster}", cluster.refused()
    if not refused:
        return Finding(check, Level.OK, "it refused no read so far")
    text = "; ".join(f"{source}: {why}" for source, why in sorted(refused.items()))
    return Finding(check, Level.WARNING, text, "apply deploy/kubernetes/karmada-member.yaml there")


def examine_rights(check: str, missing: Callable[[], Sequence[Right]], remedy: str) -> Finding:
    """Check the rights of Seaway."""
    from seaway.adapters.kubernetes.connection.responses import ApiError
    from seaway.adapters.kubernetes.rights import describe

    try:
        found = missing()
    except (ApiError, UnavailableError) as error:
        return Finding(check, Level.WARNING, f"cannot be checked: {error}")
    if not found:
        return Finding(check, Level.OK, "complete")
    return Finding(check, Level.ERROR, f"Seaway may not {describe(found)}", remedy)


def _gpus(cluster: Cluster) -> Finding:
    """Check that a device plugin reports GPUs, and whether it shares them."""
    check = f"GPUs in {cluster.name}"
    devices = [device for node in cluster.nodes for device in node.devices]
    if not devices:
        remedy = "install HAMi, or the device plugin of the vendor, on its GPU nodes"
        return Finding(check, Level.WARNING, "no device plugin reports any", remedy)
    broken = sum(not device.healthy for device in devices)
    shared = sum(device.share_limit > 1 for device in devices)
    text = f"{shared} of {len(devices)} can be shared between replicas"
    if broken:
        return Finding(check, Level.WARNING, f"{text}; {broken} unhealthy", "seaway fleet devices names them")
    if not shared:
        return Finding(check, Level.NOTE, f"{text}: jobs get whole GPUs", "install HAMi there for slices of GPUs")
    return Finding(check, Level.OK, text)
