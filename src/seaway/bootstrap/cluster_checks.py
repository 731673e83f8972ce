"""Checks of a cluster: its connection, its version, the rights of Seaway in it, and its GPUs."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from seaway.domain.errors import UnavailableError
from seaway.domain.reasons import Reason, also, in_cluster, reason_of

if TYPE_CHECKING:
    from seaway.adapters.kubernetes.cluster import KubernetesCluster
    from seaway.adapters.kubernetes.device_plugins.views import Problem
    from seaway.adapters.kubernetes.rights import Right
    from seaway.domain.cluster import Cluster

TRY_S = 20.0
LOOK_S = 0.1

LARGEST_TOKEN = 8 * 1024
"""Length of a token up to which its expiry is read, characters."""

TOKEN_DAYS = 30
"""Remaining lifetime of a token that is a warning, days."""

MAX_NAMED = 5
"""Maximum number of problems of a cluster that are listed."""

RIGHTS_REMEDY = Reason("apply_member")
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
    text, remedy
        Result, and what to do; empty if nothing. Those of clusters are reasons with codes.
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
        yield Finding(check, Level.ERROR, reason_of(error), Reason("check_connection"))
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
        yield Finding(check, Level.WARNING, Reason("more_problems", count=len(problems) - MAX_NAMED))


def examine_token(check: str, user: Mapping[str, Any]) -> Findings:
    """Check the expiry of the token of a kubeconfig's user, if it is a JSON web token with one."""
    token = user.get("token")
    parts = token.split(".") if isinstance(token, str) and len(token) <= LARGEST_TOKEN else []
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        ends = datetime.fromtimestamp(claims["exp"], UTC)
    except (ValueError, LookupError, TypeError, OverflowError, OSError, RecursionError):
        return
    left = ends - datetime.now(UTC)
    level = Level.ERROR if left <= timedelta() else Level.WARNING if left.days < TOKEN_DAYS else Level.OK
    valid = Reason("valid_until", until=ends.strftime("%Y-%m-%dT%H:%M:00Z"))
    yield Finding(check, level, valid, "" if level is Level.OK else Reason("create_longer_token"))


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


def inventory_text(cluster: Cluster) -> Reason:
    """Return the numbers of nodes and GPUs of a cluster, such as ``3 nodes, 8 NVIDIA L4``."""
    models = Counter(device.model for node in cluster.nodes for device in node.devices)
    gpus = tuple(Reason("count_and_name", count=count, name=model) for model, count in models.most_common())
    return Reason("nodes_and_gpus", count=len(cluster.nodes), gpus=gpus or Reason("no_gpus"))


def node_problems(problems: Mapping[str, Sequence[Problem]]) -> list[str]:
    """Return the problems of nodes, one sentence each."""
    nodes = {where: found for where, found in problems.items() if where.startswith("node/")}
    return [in_cluster(where, each.text) for where, found in nodes.items() for each in found]


def _version(cluster: KubernetesCluster) -> Finding:
    """Check the version of Kubernetes, and the time that the server takes to answer."""
    from seaway.adapters.kubernetes.connection.responses import ApiError

    check = f"version of {cluster.cluster}"
    began_s = time.perf_counter()
    try:
        version = cluster.version()
    except (ApiError, UnavailableError) as error:
        return Finding(check, Level.WARNING, Reason("not_checked", why=reason_of(error)))
    text = Reason("kubernetes_version", version=version, took_ms=round(1000 * (time.perf_counter() - began_s)))
    numbers = re.match(r"v(\d+)\.(\d+)", version)
    if numbers and (int(numbers[1]), int(numbers[2])) < POLICY_VERSION:
        return Finding(check, Level.WARNING, also(text, Reason("policies_need")), Reason("create_namespaces"))
    return Finding(check, Level.OK, text)


def _refused(cluster: KubernetesCluster) -> Finding:
    check, refused = f"rights in {cluster.cluster}", cluster.refused()
    if not refused:
        return Finding(check, Level.OK, Reason("no_read_refused"))
    text = "; ".join(f"{source}: {why}" for source, why in sorted(refused.items()))
    return Finding(check, Level.WARNING, text, Reason("apply_karmada_member"))


def examine_rights(check: str, missing: Callable[[], Sequence[Right]], remedy: str) -> Finding:
    """Check the rights of Seaway."""
    from seaway.adapters.kubernetes.connection.responses import ApiError
    from seaway.adapters.kubernetes.rights import describe

    try:
        found = missing()
    except (ApiError, UnavailableError) as error:
        return Finding(check, Level.WARNING, Reason("not_checked", why=reason_of(error)))
    if not found:
        return Finding(check, Level.OK, Reason("rights_complete"))
    return Finding(check, Level.ERROR, Reason("rights_missing", rights=describe(found)), remedy)


def _gpus(cluster: Cluster) -> Finding:
    """Check that a device plugin reports GPUs, and whether it shares them."""
    check = f"GPUs in {cluster.name}"
    devices = [device for node in cluster.nodes for device in node.devices]
    if not devices:
        return Finding(check, Level.WARNING, Reason("no_plugin"), Reason("install_plugin"))
    broken = sum(not device.healthy for device in devices)
    shared = sum(device.share_limit > 1 for device in devices)
    text = Reason("gpus_shared", count=shared, devices=len(devices))
    if broken:
        return Finding(check, Level.WARNING, also(text, Reason("some_unhealthy", count=broken)), Reason("list_devices"))
    if not shared:
        whole = Reason("gpus_shared", count=shared, devices=len(devices), why=Reason("whole_gpus"))
        return Finding(check, Level.NOTE, whole, Reason("install_hami"))
    return Finding(check, Level.OK, text)
