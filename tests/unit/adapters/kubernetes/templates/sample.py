"""Deployments and clusters for the tests of templates."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seaway.adapters.kubernetes.device_plugins import dra, hami_status, vendors, volcano
from seaway.adapters.kubernetes.device_plugins.views import Access, DevicePlugin, DeviceResources, Part
from seaway.adapters.kubernetes.device_plugins.views import PluginOptions as Names
from seaway.adapters.kubernetes.templates.context import TemplateOptions
from seaway.adapters.kubernetes.templates.manifest import Manifest
from seaway.domain.deployment import Deployment
from seaway.domain.job import Demand, NodeRules, ResourceRequest
from seaway.domain.job_spec import JobSpec
from seaway.domain.placement import DeviceSlice, Placement
from seaway.domain.runtime import Run

JOB = "01k9zj5q8e0ab"
HAMI = vendors.nvidia(Names())
VOLCANO = volcano.terms(Names())
PLUGIN = DeviceResources(DevicePlugin.COUNTING, "NVIDIA", "nvidia.com/gpu")
RUN = Run("registry.example/train:1", ("python", "train.py"), ("--fast",), (("MODE", "fast"),), (8080,))

OWN_JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: '${name}'}
spec:
  completions: ${replicas}
  parallelism: ${replicas}
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: '${image}'}]
"""
"""Template of an operator: a Job with a pod for each replica."""


def share(uuid: str, memory_mib: int = 8192, core_milli: int = 500, profile: str = "", start: int = -1) -> DeviceSlice:
    """Create a part of a device."""
    return DeviceSlice(uuid, memory_mib, core_milli, profile, start)


def deployment(
    template: str = "job",
    placed: Sequence[tuple[str, Sequence[DeviceSlice]]] = (),
    *,
    run: Run = RUN,
    request: ResourceRequest | None = None,
    numbers: Sequence[int] | None = None,
    **figures: Any,  # noqa: ANN401  # fields of a deployment or a spec
) -> Deployment:
    """Create a deployment.

    Parameters
    ----------
    placed
        Node and slices of each replica; by default two on one device and a third elsewhere.
    numbers
        The replicas' numbers; by default from 0.
    figures
        Other fields of the spec; or its `nodes`, or the deployment's `job_id`, `attempt` and `cluster`.
    """
    job_id, attempt, cluster = (figures.pop(*each) for each in (("job_id", JOB), ("attempt", 1), ("cluster", "alpha")))
    nodes = figures.pop("nodes", NodeRules())
    placed = placed or [
        (node, (share(f"GPU-{card}"),)) for node, card in (("node-0", "a"), ("node-0", "a"), ("node-1", "b"))
    ]
    numbers = range(len(placed)) if numbers is None else numbers
    asked = request or ResourceRequest(1_000, 2_048, len(placed[0][1]), 8_192 if placed[0][1] else 0, 0, 0)
    figures.setdefault("replicas", max(len(placed), *(number + 1 for number in numbers)))
    spec = JobSpec("train", Demand(asked, nodes=nodes), template=template, run=run, **figures)
    places = tuple(
        Placement(job_id, number, cluster, node, tuple(slices))
        for number, (node, slices) in zip(numbers, placed, strict=True)
    )
    return Deployment(job_id, attempt, cluster, spec, places)


def options(terms: DeviceResources = HAMI, **others: Any) -> TemplateOptions:  # noqa: ANN401  # fields of options
    """Create options for a cluster whose devices all use one device plugin."""
    return TemplateOptions(speak(terms), **others)


def speak(terms: DeviceResources, **known: Any) -> Callable[[str, str], Access]:  # noqa: ANN401  # fields of an access
    """Return a function that requests every device with these resources."""
    return lambda _, uuid: Access(uuid, "", terms, **known)


def one(manifests: Sequence[Manifest], kind: str) -> Manifest:
    """Return the only manifest of a kind."""
    (found,) = [each for each in manifests if each.kind == kind]
    return found


def many(manifests: Sequence[Manifest], kind: str) -> list[dict[str, Any]]:
    """Return the manifests of a kind, with their pins."""
    return [each.pinned() for each in manifests if each.kind == kind]


def container(workload: Mapping[str, Any]) -> Any:  # noqa: ANN401  # a container as in YAML
    """Return the only container of a workload's pods."""
    (found,) = workload["spec"]["template"]["spec"]["containers"]
    return found


def env(workload: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a workload's pods."""
    return {each["name"]: each["value"] for each in container(workload).get("env", [])}


def same_bytes(first: Sequence[Manifest], second: Sequence[Manifest]) -> bool:
    """Report whether two renderings have equal bytes."""
    return json.dumps([each.pinned() for each in first]) == json.dumps([each.pinned() for each in second])


NVIDIA_DRA, HAMI_DRA = dra.NVIDIA, dra.HAMI
MTHREADS, NEURON = hami_status.MTHREADS, hami_status.NEURON
INSTANCE = {"gpu-0-mig-1g.5gb-19-0": Part("1g.5gb", 0)}
CUT_AT_WILL = {"gpu-0-mig-1g.5gb-19-0": Part("1g.5gb", 0), "gpu-0-mig-1g.5gb-19-1": Part("1g.5gb", 1)}
