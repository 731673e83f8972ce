"""Conversion of a job specification to the format that users write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from seaway.domain.dependencies import After, When
from seaway.domain.job import DataSource, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_spec import NOT_EXPOSED, JobSpec
from seaway.domain.network import NetworkNeed, OnViolation
from seaway.domain.notifications import DEFAULT_OCCASIONS, Notify
from seaway.domain.reasons import time_text
from seaway.domain.runtime import READ_ONLY, Container, RestartPolicy, Run, Volume, VolumeKind
from seaway.domain.tenancy import DEFAULT
from seaway.domain.units import (
    cpu_text,
    loss_text,
    memory_text,
    rate_text,
    share_text,
    short_time_text,
)
from seaway.wire.facts import price_or_none
from seaway.wire.scaling import trigger_text

ANY_DEVICE, ANY_NODE, NOTHING = DeviceRules(), NodeRules(), Run()


def job_text(spec: JobSpec) -> dict[str, Any]:
    """Write a job in the format of `seaway.wire.job_in.JobIn`, without fields that have their default."""
    demand = spec.demand
    written = {
        "name": spec.name,
        "tenant": spec.tenant,
        "queue": spec.queue if spec.queue != DEFAULT else None,
        "priority": spec.priority,
        "gateway": demand.gateway,
        "replicas": _replicas(spec),
        "scale": [trigger_text(each) for each in spec.scale],
        "gang": spec.gang,
        "spread": "clusters" if spec.ring else None,
        "template": spec.template if spec.template != "job" else None,
        "resources": _request(demand.request)
        | _device_rules(demand.devices)
        | _given({"shm_size": spec.runtime.shm_mib and memory_text(spec.runtime.shm_mib)}),
        "network": _need(demand.network)
        | ({} if spec.on_violation is OnViolation.REPORT else {"on_violation": spec.on_violation.value}),
        "between_replicas": _need(spec.between_replicas),
        "placement": _node_rules(demand.nodes),
        "data": _data(spec.data) | _given({"output": spec.output_mib and memory_text(spec.output_mib)}),
        "run": _run(spec.run),
        "volumes": [_volume(each) for each in spec.runtime.volumes],
        "workdir": spec.runtime.workdir,
        "setup": list(spec.runtime.setup),
        "init_containers": [_container(each) for each in spec.runtime.init_containers],
        "containers": [_container(each) for each in spec.runtime.containers],
        "time_limit": None if spec.time_limit_s is None else time_text(spec.time_limit_s),
        "lease": None if spec.lease_s is None else time_text(spec.lease_s),
        "retries": spec.retries,
        "labels": spec.labels,
        "after": [{"job": each.job, **_condition(each)} for each in spec.after],
        "notify": [_notify(each) for each in spec.notify],
    }
    written["preemptible"] = spec.preemptible
    if spec.runtime.restart_policy is not RestartPolicy.NEVER:
        written["restart_policy"] = spec.runtime.restart_policy.value
    if warning := spec.runtime.warning:
        written["time_limit_warning"] = {"signal": warning.signal, "before": time_text(warning.before_s)}
    if spec.array:
        written["array"] = spec.array.text
        written["matrix"] = {name: list(values) for name, values in spec.array.matrix}
    if spec.expose != NOT_EXPOSED:
        kind, node_ports = spec.expose.type and spec.expose.type.value, list(spec.expose.node_ports)
        written["expose"] = _given({"type": kind, "host": spec.expose.host, "node_ports": node_ports})
    if spec.checkpoint:
        written["checkpoint"] = {"signal": spec.checkpoint.signal, "grace": time_text(spec.checkpoint.grace_s)}
    if spec.standby:
        written["standby"] = {"clusters": spec.standby.clusters, "mode": spec.standby.mode.value}
    if spec.expected_duration_s is not None:
        written["expected_duration"] = time_text(spec.expected_duration_s)
    off = {"preemptible": spec.preemptible is False, "gang": spec.one_by_one}
    most = {} if spec.runtime.max_restarts is None else {"max_restarts": spec.runtime.max_restarts}
    return _given(written) | {name: False for name, said in off.items() if said} | most


CONTENT = frozenset({"setup", "matrix"})
"""Fields of a job that only callers with access to its content may read."""

WITH_CONTENT = frozenset({"containers", "init_containers", "volumes"})
"""Lists whose entries have content."""

DESCRIBED = frozenset({"name", "image", "ports", "cpu", "memory", "restart_policy"})
"""Fields of a container that are no content. All others may have secrets of tenants, or be long."""


def described_text(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return a job as `job_text` writes it, without content: commands, arguments, variables, setup and parameters.

    Lists have jobs in this form, and callers that may not read the content of jobs have no other.
    """
    described = {name: value for name, value in text.items() if name not in CONTENT}
    for field in ("containers", "init_containers"):
        if field in described:
            described[field] = [_described(each) for each in described[field]]
    if "run" in described:
        described["run"] = _described(described["run"])
    if "volumes" in described:
        described["volumes"] = [_without_attributes(each) for each in described["volumes"]]
    return {name: value for name, value in described.items() if value != {}}


def _described(container: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in container.items() if name in DESCRIBED}


def _without_attributes(volume: Mapping[str, Any]) -> dict[str, Any]:
    source = volume.get(VolumeKind.CSI.value)
    return {**volume, VolumeKind.CSI.value: {"driver": source["driver"]}} if source else dict(volume)


def _replicas(spec: JobSpec) -> int | dict[str, int] | None:
    if not spec.elastic:
        return spec.replicas if spec.replicas != 1 else None
    bounds = {"min": spec.min_replicas, "max": spec.max_replicas}
    usual = spec.least_replicas if spec.scale else spec.max_replicas
    return bounds if spec.replicas == usual else {**bounds, "wanted": spec.replicas}


MAX_CHANGES = 5
MAX_VALUE = 60
"""Maximum number of changes, and of characters of a value, in a description."""


def changes_text(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe the differences between two jobs for people. Of content, only the names of changed fields.

    Examples
    --------
    >>> changes_text({"priority": 1, "resources": {"gpus": 1}}, {"resources": {"gpus": 2}})
    'priority 1 → default, resources.gpus 1 → 2'
    """
    found = [
        f"{path} changed" if _is_content(path) else f"{path} {_shown(was)} → {_shown(now)}"
        for path, was, now in _differences(before, after, "")
    ]
    more = len(found) - MAX_CHANGES
    return ", ".join([*found[:MAX_CHANGES], *([f"and {more} more"] if more > 0 else [])])


def _is_content(path: str) -> bool:
    """Report whether the values of a field are left out of descriptions."""
    field, _, below = path.partition(".")
    part = below.partition(".")[0]
    return field in CONTENT | WITH_CONTENT or (field == "run" and part not in DESCRIBED)


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    for name in {**before, **after}:
        was, now = before.get(name), after.get(name)
        if isinstance(was or {}, Mapping) and isinstance(now or {}, Mapping) and (was or now):
            yield from _differences(was or {}, now or {}, f"{path}{name}.")
        elif was != now:
            yield f"{path}{name}", was, now


def _shown(value: object) -> str:
    text = "default" if value is None else str(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _given(written: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if value}


def _request(request: ResourceRequest) -> dict[str, Any]:
    share = f"{request.gpu_memory_percent}%" if request.gpu_memory_percent else ""
    return _given(
        {
            "cpu": request.cpu_milli and cpu_text(request.cpu_milli),
            "memory": request.memory_mib and memory_text(request.memory_mib),
            "gpus": request.gpus,
            "gpu_memory": memory_text(request.gpu_memory_mib) if request.gpu_memory_mib else share,
            "gpu_cores": request.gpu_milli and share_text(request.gpu_milli),
            "mig": request.mig,
        }
    )


def _device_rules(rules: DeviceRules) -> dict[str, Any]:
    if rules == ANY_DEVICE:
        return {}
    return _given(
        {
            "gpu_model": sorted(rules.models),
            "gpu_vendor": sorted(rules.vendors),
            "gpu_use_types": list(rules.use_types),
            "gpu_avoid_types": list(rules.avoid_types),
            "gpu_uuids": sorted(rules.use_uuids),
            "gpu_avoid_uuids": sorted(rules.avoid_uuids),
            "gpu_mode": sorted(mode.value for mode in rules.modes),
            "same_numa": rules.same_numa,
            "exclusive": rules.exclusive,
            "gpu_topology": rules.topology.value,
        }
    )


def _node_rules(rules: NodeRules) -> dict[str, Any]:
    if rules == ANY_NODE:
        return {}
    return _given(
        {
            "clusters": sorted(rules.clusters),
            "regions": sorted(rules.regions),
            "hardware": sorted(rules.hardware),
            "cluster_labels": dict(rules.cluster_labels),
            "max_price_per_gpu_hour": price_or_none(rules.max_microprice),
            "node_labels": dict(rules.node_labels),
            "tolerations": [
                {
                    "key": each.key,
                    **({} if each.value is None else {"value": each.value}),
                    **({} if each.effect is None else {"effect": each.effect.value}),
                }
                for each in rules.tolerations
            ],
        }
    )


def _need(need: NetworkNeed) -> dict[str, Any]:
    if not need.any:
        return {}
    return _given(
        {
            "max_latency": need.max_latency_ns and short_time_text(need.max_latency_ns),
            "max_jitter": need.max_jitter_ns and short_time_text(need.max_jitter_ns),
            "max_loss": need.max_loss_ppm and loss_text(need.max_loss_ppm),
            "min_bandwidth": need.min_bandwidth_mbps and rate_text(need.min_bandwidth_mbps),
        }
    )


def _data(data: DataSource) -> dict[str, Any]:
    return _given({"location": data.location, "size": data.size_mib and memory_text(data.size_mib)})


def _condition(after: After) -> dict[str, str]:
    return {} if after.when is When.SUCCEEDED else {"when": after.when.value}


def _notify(notify: Notify) -> dict[str, Any]:
    when = {} if notify.when == DEFAULT_OCCASIONS else {"when": [each.value for each in notify.when]}
    return {"to": notify.to, **when}


def _run(run: Run) -> dict[str, Any]:
    if run == NOTHING:
        return {}
    return _given(
        {
            "image": run.image,
            "command": list(run.command),
            "args": list(run.args),
            "env": dict(run.env),
            "env_from_secret": dict(run.env_from_secret),
            "env_from_config_map": dict(run.env_from_config_map),
            "ports": list(run.ports),
            "pod": json.loads(run.pod) if run.pod else None,
        }
    )


def _container(container: Container) -> dict[str, Any]:
    own = {
        "cpu": container.cpu_milli and cpu_text(container.cpu_milli),
        "memory": container.memory_mib and memory_text(container.memory_mib),
        "restart_policy": "Always" if container.sidecar else None,
    }
    ports = [
        _given(
            {"name": each.name, "port": each.number, "protocol": "" if each.protocol == "TCP" else each.protocol.value}
        )
        for each in container.ports
    ]
    return {"name": container.name, **_run(container.run), **_given({"ports": ports, **own})}


def _volume(volume: Volume) -> dict[str, Any]:
    source: Any = volume.name
    if volume.kind is VolumeKind.EMPTY_DIR:
        source = memory_text(volume.size_mib)
    elif volume.kind is VolumeKind.CSI:
        source = {"driver": volume.name} | _given({"attributes": dict(volume.attributes), "secret": volume.secret})
    read_only = volume.read_only and volume.kind not in READ_ONLY
    more = _given({"sub_path": volume.sub_path, "read_only": read_only})
    return {"path": volume.path, volume.kind.value: source, **more}
