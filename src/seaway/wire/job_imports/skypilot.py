"""Tasks of SkyPilot.

References
----------
SkyPilot 0.10: SkyPilot YAML.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from seaway.wire.fields import LONGEST_TEXT
from seaway.wire.job_imports.bash_syntax import Script
from seaway.wire.job_imports.converted import Converted, Fields, Result, Section, plain_text, put_name
from seaway.wire.job_imports.models import put_model
from seaway.wire.job_imports.shell import HOSTS, command_names, exports, mentions, put_script, refuse_commands, unknown
from seaway.wire.job_in import JobIn, ResourcesIn

KIND = "SkyPilot task"

OWN = frozenset({"num_nodes", "envs", "secrets", "file_mounts", "service", "experimental", "pool"})
OWN_RESOURCES = frozenset({
    "accelerators", "cpus", "use_spot", "any_of", "ordered", "instance_type", "cloud", "infra", "region", "zone",
    "image_id", "disk_size", "disk_tier", "accelerator_args", "job_recovery", "autostop", "network_tier",
})  # fmt: skip
"""Fields that jobs of Seaway do not have."""
NOT_OWN = {"image", *JobIn.model_fields} - {"name", "resources", "workdir", "setup", "run", "volumes"}
NOT_OWN_RESOURCES = ResourcesIn.model_fields.keys() - {"memory"}
"""Fields that tasks of SkyPilot do not have. With one of these, a text in `run` is an error in a job of Seaway."""

_CLOUD = "Seaway uses your clusters: give --cluster or --cluster-label to select some"
_DISK = "the node has the disk"

DROPPED = {"event_callback": "seaway events -f JOB shows each change"}
REFUSED = {
    "file_mounts": "files and buckets are not mounted: put them in the image, or download them in the commands",
    "volumes": "volumes of SkyPilot do not exist in the clusters",
    "config": "settings of clouds have no counterpart",
    "experimental": "has no counterpart",
    "pool": "pools of workers have no counterpart: use a queue",
    "inputs": "has no counterpart",
    "outputs": "has no counterpart",
}
DROPPED_RESOURCES = {
    "cloud": _CLOUD, "infra": _CLOUD, "zone": _CLOUD, "disk_size": _DISK, "disk_tier": _DISK,
    "network_tier": "give --ring-bandwidth, or bounds between replicas", "autostop": "a job ends with its program",
    "priority": "scales differ: give --priority",
}  # fmt: skip
REFUSED_RESOURCES = {
    "instance_type": "instances of clouds have no counterpart: give accelerators, cpus and memory",
    "accelerator_args": "TPUs have no counterpart",
    "max_hourly_cost": "is for a whole instance: give --max-price-per-gpu-hour",
}
DROPPED_SERVICE = {
    "readiness_probe": "a replica is ready when its program runs",
    "load_balancing_policy": "the service of the cluster balances",
    "tls": "the gateway of the cluster has the certificate",
}
_FIRST_NODE = re.compile(r"\|\s*head\s+-(?:n\s*)?1\b")


def is_skypilot(document: Fields) -> bool:
    """Report whether a document is a task of SkyPilot, whose `run` is a text."""
    if isinstance(document.get("run"), dict):
        return False
    resources = document.get("resources")
    inside = resources.keys() if isinstance(resources, dict) else set()
    if OWN & document.keys() or OWN_RESOURCES & inside:
        return True
    return isinstance(document.get("run"), str) and not (NOT_OWN & document.keys() or NOT_OWN_RESOURCES & inside)


def read_skypilot(document: Fields, out: Converted, stem: str) -> None:
    """Convert a task."""
    task = Section(out, document)
    name = task.text("name")
    put_name(out, "name" if name else "", "name", name or stem)
    nodes = task.take("num_nodes", int) or 1
    if nodes > 1:
        out.keep("num_nodes", "replicas", nodes)
        out.keep("num_nodes", "gang", value=True)
        out.keep("num_nodes", "template", "torchrun", "template: torchrun, which gives each replica its rank")
    service = task.section("service") if document.get("service") else None
    resources = _chosen(task, out)
    gpus = _resources(resources, out)
    if service:
        _service(service, out)
    empty = [key for key, value in (document.get("envs") or {}).items() if value is None]
    for key, value in task.pairs("envs").items():
        if key in empty:
            out.refuse(f"envs.{key}", f"has no value: submit with --env {key}=VALUE")
        else:
            out.keep(f"envs.{key}", f"run.env.{key}", value)
    for key in task.pairs("secrets"):
        text = f"is not stored: create a Secret in the clusters, and submit with --env-from-secret {key}=SECRET/KEY"
        out.refuse(f"secrets.{key}", text)
    _workdir(task, out)
    _script(task, out, nodes, gpus)
    task.finish(DROPPED, REFUSED)
    if not out.get("run.image"):
        out.drop(
            "image", "the image of SkyPilot's machines is not known: give --image, or the cluster's default is used"
        )


def _chosen(task: Section, out: Converted) -> Section:
    """Return the resources, with the models of all alternatives."""
    resources = task.take("resources", dict) or {}
    for name in ("any_of", "ordered"):
        alternatives = resources.pop(name, None) if isinstance(resources, dict) else None
        if not isinstance(alternatives, list) or not all(isinstance(each, dict) for each in alternatives):
            continue
        given = [each.get("accelerators") for each in alternatives]
        same = [
            {key: value for key, value in each.items() if key in ("use_spot", "image_id", "cpus", "memory")}
            for each in alternatives
        ]
        if any(each != same[0] for each in same):
            out.refuse(f"resources.{name}", "alternatives may differ only in models and places: a job has one request")
            continue
        if name == "ordered" or any({"infra", "cloud", "region", "zone"} & each.keys() for each in alternatives):
            out.drop(f"resources.{name}", "the policy of the queue selects among the alternatives")
        models = [each for each in given if each]
        resources = {**resources, **same[0]}
        if models:
            resources["accelerators"] = models
    return Section(out, resources, "resources")


def _models(given: object, out: Converted) -> dict[str, str]:
    """Return the models of accelerators with their numbers as text."""
    if isinstance(given, str):
        name, _, count = given.partition(":")
        return {name.strip(): count or "1"}
    if isinstance(given, dict):
        return {str(name): plain_text(count) or "1" for name, count in given.items()}
    if isinstance(given, list | set | tuple):
        found: dict[str, str] = {}
        for each in given:
            found |= _models(each, out)
        return found
    out.refuse("resources.accelerators", "must be a name and number like A100:8")
    return {}


def _resources(resources: Section, out: Converted) -> int:
    """Set the resources, and return the number of devices."""
    gpus = 0
    if (given := resources.take("accelerators")) is not None:
        models = _models(given, out)
        counts = set(models.values())
        if len(counts) > 1 or not all(each.isdecimal() for each in counts):
            out.refuse("resources.accelerators", "alternatives must have one whole number of devices")
        elif counts:
            gpus = int(next(iter(counts)))
            out.keep("resources.accelerators", "resources.gpus", gpus)
            put_model(out, "resources.accelerators", list(models))
    _amounts(resources, gpus, out)
    if resources.take("use_spot"):
        out.change("resources.use_spot", "preemptible", True, "other jobs may displace it, and it then waits again")
    if region := resources.text("region"):
        out.keep("resources.region", "placement.regions", [region])
    if image := resources.text("image_id"):
        if image.startswith("docker:"):
            out.keep("resources.image_id", "run.image", image.removeprefix("docker:"))
        else:
            out.refuse("resources.image_id", f"{image} is an image of a machine: use docker:IMAGE, or --image")
    _ports(resources, out)
    if labels := resources.pairs("labels"):
        out.keep("resources.labels", "labels", labels)
    _recovery(resources, out)
    resources.finish(DROPPED_RESOURCES, REFUSED_RESOURCES)
    return gpus


def _amounts(resources: Section, gpus: int, out: Converted) -> None:
    for name, path, unit in (("cpus", "resources.cpu", ""), ("memory", "resources.memory", "GB")):
        text = resources.text(name)
        number, factor = text.rstrip("+"), re.fullmatch(r"([\d.]+)x\+?", text)
        if factor:
            number = f"{float(factor[1]) * gpus:g}" if name == "memory" else ""
        if not text or text == "auto":
            continue
        if re.fullmatch(r"\d+(\.\d+)?", number):
            value = float(number) if "." in number else int(number)
            out.keep(f"resources.{name}", path, f"{number}{unit}" if unit else value)
        elif re.fullmatch(r"\d+(\.\d+)?[KMGT]i?B?", number) and unit:
            out.keep(f"resources.{name}", path, number)
        else:
            out.refuse(f"resources.{name}", f"is {text!r}, not an amount like 4+")


def _ports(resources: Section, out: Converted) -> None:
    given = resources.take("ports", (int, str, list))
    listed = given if isinstance(given, list) else [] if given is None else [given]
    if listed and all(str(each).isdecimal() for each in listed):
        out.keep("resources.ports", "run.ports", [int(each) for each in listed])
    elif listed:
        out.refuse("resources.ports", "ranges of ports have no counterpart: list each port")


def _recovery(resources: Section, out: Converted) -> None:
    given: Any = resources.take("job_recovery")
    restarts = given.get("max_restarts_on_errors") if isinstance(given, dict) else None
    if isinstance(restarts, int) and not isinstance(restarts, bool):
        out.keep("resources.job_recovery", "retries", restarts)
    elif str(given).upper() == "NONE" and given is not None:
        out.refuse("resources.job_recovery", "is none, but Seaway always restarts a job that loses its node")
    elif given:
        out.drop("resources.job_recovery", "Seaway restarts a job that loses its node, in the best place")


def _service(service: Section, out: Converted) -> None:
    policy = service.section("replica_policy")
    low, high = policy.take("min_replicas", int), policy.take("max_replicas", int)
    fixed = service.take("replicas", int)
    out.keep("service", "template", "deployment")
    if low is not None and high not in (None, low):
        where = "service.replica_policy"
        if low < 1:
            out.refuse(where, "scales to 0, but an elastic job has at least 1 replica")
        else:
            text = "grows when there is room, and with seaway scale; not with the load"
            out.change(where, "replicas", {"min": low, "max": high}, text)
    elif low or fixed:
        out.keep("service", "replicas", low or fixed)
    if port := service.take("ports", (int, str)):
        out.keep("service.ports", "run.ports", [int(port)] if str(port).isdecimal() else [])
    load = "replicas do not follow the load: seaway scale"
    loads = ("target_qps_per_replica", "upscale_delay_seconds", "downscale_delay_seconds", "num_overprovision")
    policy.finish(dict.fromkeys(loads, load), {})
    service.finish(DROPPED_SERVICE, {})


def _workdir(task: Section, out: Converted) -> None:
    """Set the folder of this machine that is sent, which is the working directory."""
    given = task.take("workdir")
    if isinstance(given, str):
        out.keep("workdir", "workdir", given)
    elif given is not None:
        out.refuse("workdir", "is a repository: clone it in setup, or submit with --workdir DIR --ignore workdir")


def _script(task: Section, out: Converted, nodes: int, gpus: int) -> None:
    setup, run = task.text("setup"), task.text("run")
    syntax = Script(f"{setup}\n{run}")
    script = syntax.without("comment")
    known = {
        "SKYPILOT_NUM_NODES": str(nodes),
        "SKYPILOT_NODE_RANK": "${NODE_RANK:-0}",
        "SKYPILOT_NUM_GPUS_PER_NODE": str(gpus),
        "SKYPILOT_NODE_IPS": "${MASTER_ADDR:-127.0.0.1}",
        "SKYPILOT_TASK_ID": "${MASTER_ADDR:-$HOSTNAME}",
    }
    refuse_commands(out, command_names(syntax), nodes)
    for name in unknown(script, "SKYPILOT_", known):
        out.refuse(name, "has no counterpart in the container")
    if nodes > 1 and mentions(script, "SKYPILOT_NODE_IPS"):
        uses = [line for line in script.splitlines() if "SKYPILOT_NODE_IPS" in line]
        text = "has only the first node, MASTER_ADDR"
        if not all(_FIRST_NODE.search(line) for line in uses):
            text = "has names of hosts instead of addresses"
            known["SKYPILOT_NODE_IPS"] = HOSTS
        out.note("SKYPILOT_NODE_IPS", text, Result.CHANGED)
    before = _setup(setup, known, out) if setup.strip() else ""
    lines = [exports({name: value for name, value in known.items() if mentions(before + run, name)}), before]
    if not run.strip():
        out.refuse("run", "is missing: a machine without a program has no counterpart")
        return
    put_script(out, "run", "\n".join([each for each in lines if each] + [run]), str(out.get("name")))


def _setup(setup: str, known: Mapping[str, str], out: Converted) -> str:
    """Set the setup commands. A long script is returned, for the command."""
    variables = exports({name: value for name, value in known.items() if mentions(setup, name)})
    script = "\n".join(filter(None, (variables, setup.rstrip())))
    text = f"bash -c {shlex.quote(script)}"
    if len(text) > LONGEST_TEXT:
        out.note("setup", "run.command: before the other commands, in each replica")
        return f"(\n{setup.rstrip()}\n) || exit 1"
    out.keep("setup", "setup", [text], "setup: bash -c with the commands, in each replica")
    return ""
