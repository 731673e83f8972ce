"""Tasks of SkyPilot.

References
----------
SkyPilot 0.10: SkyPilot YAML.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from seaway.domain.numbers import exact_number, whole_number
from seaway.wire.fields import LONGEST_TEXT
from seaway.wire.job_imports.bash_syntax import Script
from seaway.wire.job_imports.converted import MAX_COUNT, Converted, Fields, Result, Section, plain_text, put_name, shown
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
    "cloud": _CLOUD, "disk_size": _DISK, "disk_tier": _DISK,
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
ZONE = "topology.kubernetes.io/zone"
"""Label of nodes with their zone."""

PLACES = ("infra", "cloud", "region", "zone")
MAX_NODES, MAX_PORT = 10_000, 65_535

GROUP = frozenset({"name", "execution", "primary_tasks", "termination_delay"})
"""Fields of the first document of a pipeline or a job group."""

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


def is_header(document: Fields) -> bool:
    """Report whether a document, before others, is the head of a pipeline or a job group."""
    return {"name"} == set(document) or ("execution" in document and document.keys() <= GROUP)


def check_header(document: Fields, out: Converted) -> None:
    """Refuse a group of jobs, whose tasks run at the same time; tasks of a pipeline run one after another."""
    head = Section(out, document)
    head.take("name")
    if head.text("execution") not in ("", "serial"):
        why = "runs the tasks of a group at the same time: submit each task as a job of its own"
        out.refuse("execution", why)
    head.finish({}, dict.fromkeys(GROUP, "is for groups of jobs, which are not supported"))


def read_skypilot(document: Fields, out: Converted, stem: str) -> None:
    """Convert a task."""
    task = Section(out, document)
    name = task.text("name")
    put_name(out, "name" if name else "", "name", name or stem)
    nodes = task.number("num_nodes", 1, MAX_NODES) or 1
    if nodes > 1:
        out.keep("num_nodes", "replicas", nodes)
        out.keep("num_nodes", "gang", value=True)
        out.keep("num_nodes", "template", "torchrun", "template: torchrun, which gives each replica its rank")
    service = task.section("service") if document.get("service") else None
    resources = _chosen(task, out)
    gpus = _resources(resources, out)
    if service:
        _service(service, out)
    envs = task.take("envs", dict) or {}
    for key, value in envs.items():
        if value is None:
            out.refuse(f"envs.{key}", f"has no value: submit with --env {key}=VALUE")
        else:
            out.keep(f"envs.{key}", f"run.env.{key}", plain_text(value))
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
    """Return the resources. Alternatives may differ only in models, places and ports."""
    base = task.take("resources", dict) or {}
    given: list[tuple[str, Fields]] = []
    for name in ("any_of", "ordered"):
        alternatives = base.get(name)
        if alternatives is None:
            continue
        if not isinstance(alternatives, list) or not all(isinstance(each, dict) for each in alternatives):
            out.refuse(f"resources.{name}", "must be a list of mappings")
            return Section(out, {}, "resources")
        if given:
            out.refuse(f"resources.{name}", "is given with any_of")
        given += [(f"resources.{name}[{at}]", each) for at, each in enumerate(alternatives)]
        if name == "ordered" and len(alternatives) > 1:
            out.drop(f"resources.{name}", "the policy of the queue selects among the alternatives")
    base = {name: value for name, value in base.items() if name not in ("any_of", "ordered")}
    return Section(out, _merged(base, given, out) if given else base, "resources")


def _merged(base: Fields, given: list[tuple[str, Fields]], out: Converted) -> dict[str, Any]:
    """Return one request for all alternatives; refuse those that differ in other fields."""
    whole = [{**base, **each} for _, each in given]
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for each in whole for name in each if name not in PLACES):
        path = next((path for path, each in given if name in each), "")
        if path and name not in base:
            out.lines_of = {**out.lines_of, f"resources.{name}": out.line(f"{path}.{name}")}
        merged[name] = _one(out, name, [each.get(name) for each in whole], path)
    return merged | _one_place(out, given[0][0], [{key: each[key] for key in PLACES if key in each} for each in whole],
                               models=isinstance(merged.get("accelerators"), list))  # fmt: skip


def _one(out: Converted, name: str, values: list[Any], path: str) -> object:
    """Return the value of a field for all alternatives."""
    if name in ("accelerators", "ports"):
        if name == "accelerators" and any(values) and not all(values):
            out.refuse(path, "alternatives with and without GPUs: a job has one request")
        found = [each for at, each in enumerate(values) if each and each not in values[:at]]
        return found if len(found) > 1 else next(iter(found), None)
    if name in REFUSED_RESOURCES:
        return next((each for each in values if each), None)
    if name not in DROPPED_RESOURCES and any(each != values[0] for each in values):
        out.refuse(f"{path or 'resources'}.{name}", "alternatives may differ only in models, places and ports")
    return values[0]


def _one_place(out: Converted, where: str, places: list[dict[str, Any]], *, models: bool) -> dict[str, Any]:
    """Return the place that all alternatives share, or set the regions of all of them."""
    if all(each == places[0] for each in places):
        return places[0]
    regions = list(dict.fromkeys(map(_region, places)))
    if not all(regions) or any(map(_zone, places)):
        out.note(where, f"alternatives have different places: {_CLOUD}", Result.CHANGED)
    elif models:
        out.change(where, "placement.regions", regions, "any of the models in any of the regions")
    else:
        out.keep(where, "placement.regions", regions)
    return {}


def _region(places: Fields) -> str:
    """Return the region of a resource; empty if it has none."""
    provider, _, rest = str(places.get("infra") or "").partition("/")
    region = "" if provider in ("k8s", "kubernetes", "ssh", "slurm") else rest.partition("/")[0]
    return str(places.get("region") or region.strip("*"))


def _zone(places: Fields) -> str:
    parts = str(places.get("infra") or "").split("/")
    return str(places.get("zone") or (parts[2] if len(parts) > 2 and parts[0] not in ("k8s", "kubernetes") else ""))


def _put_places(resources: Section, out: Converted) -> None:
    """Set the region, the zone, or the cluster of a resource."""
    places = {name: text for name in ("infra", "region", "zone") if (text := resources.text(name))}
    provider, _, rest = places.get("infra", "").partition("/")
    where = {name: f"resources.{name if name in places else 'infra'}" for name in ("region", "zone")}
    if provider in ("k8s", "kubernetes") and rest:
        out.change("resources.infra", "placement.clusters", [rest], "the name of a cluster here")
    elif provider in ("ssh", "slurm") and rest:
        out.refuse("resources.infra", f"{places['infra']} has no counterpart: {_CLOUD}")
    elif provider:
        out.drop("resources.infra", _CLOUD)
    if region := _region(places):
        out.keep(where["region"], "placement.regions", [region])
    if zone := _zone(places):
        out.keep(where["zone"], "placement.node_labels", {ZONE: zone})


def _models(given: object, out: Converted) -> dict[str, str]:
    """Return the models of accelerators with their numbers as text. A set, ``{L4:1, T4:1}``, has texts as names."""
    if isinstance(given, str):
        name, _, count = given.partition(":")
        return {name.strip(): count.strip() or "1"}
    found: dict[str, str] = {}
    if isinstance(given, dict):
        for name, count in given.items():
            found |= _models(str(name), out) if count is None else {str(name): plain_text(count)}
        return found
    if isinstance(given, list | set | tuple):
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
        numbers = {whole_number(each, MAX_COUNT) for each in counts}
        count = next(iter(numbers), None)
        if counts and (len(numbers) > 1 or not count):
            out.refuse("resources.accelerators", "alternatives must have one whole number of devices")
        elif count:
            gpus = count
            out.keep("resources.accelerators", "resources.gpus", gpus)
            put_model(out, "resources.accelerators", list(models))
    _amounts(resources, out)
    if resources.take("use_spot"):
        out.change("resources.use_spot", "preemptible", True, "other jobs may displace it, and it then waits again")
    _put_places(resources, out)
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


def _amounts(resources: Section, out: Converted) -> None:
    """Set CPUs and memory. A factor of memory is for each CPU."""
    cpus = None
    if (text := _given(resources, "cpus")) and (cpus := exact_number(text.removesuffix("+"), MAX_COUNT)):
        out.keep("resources.cpus", "resources.cpu", _plain_number(cpus))
    elif text:
        out.refuse("resources.cpus", f"is {shown(text)!r}, not a number above 0 like 4+")
    if not (text := _given(resources, "memory")):
        return
    match = re.fullmatch(r"([0-9.]+)\s*(x|[KMGTP]i?B?)?\+?", text, re.IGNORECASE)
    number = exact_number(match[1], MAX_COUNT) if match else None
    unit = (match[2] or "GB") if match else ""
    if not number:
        out.refuse("resources.memory", f"is {shown(text)!r}, not an amount like 32+ or 4x")
    elif unit.lower() != "x":
        out.keep("resources.memory", "resources.memory", f"{_plain_number(number)}{unit}")
    elif cpus:
        text = f"resources.memory: {_plain_number(number * cpus)}GB, {text} of the CPUs"
        out.keep("resources.memory", "resources.memory", f"{_plain_number(number * cpus)}GB", text)
    else:
        out.refuse("resources.memory", f"is {text}, but there is no number of CPUs: give cpus")


def _given(resources: Section, name: str) -> str:
    text = resources.text(name).strip()
    return "" if text == "auto" else text


def _plain_number(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _ports(resources: Section, out: Converted) -> None:
    given = resources.take("ports", (int, str, list))
    listed = given if isinstance(given, list) else [] if given is None else [given]
    flat = [port for each in listed for port in (each if isinstance(each, list) else [each])]
    ports = [whole_number(each, MAX_PORT) for each in flat]
    if ports and all(ports):
        out.keep("resources.ports", "run.ports", list(dict.fromkeys(ports)))
    elif ports:
        out.refuse("resources.ports", "ranges of ports have no counterpart: list each port")


def _recovery(resources: Section, out: Converted) -> None:
    given = resources.take("job_recovery", (str, dict))
    fields = given if isinstance(given, dict) else {"strategy": given}
    rules = Section(out, fields, "resources.job_recovery")
    strategy = rules.text("strategy")
    if strategy.upper() == "NONE":
        out.refuse("resources.job_recovery", "is none, but Seaway always restarts a job that loses its node")
    elif strategy:
        out.drop("resources.job_recovery", "Seaway restarts a job that loses its node, in the best place")
    if (restarts := rules.number("max_restarts_on_errors")) is not None:
        out.keep("resources.job_recovery", "retries", restarts)
    rules.finish({}, {"recover_on_exit_codes": "exit codes have no rules: each failure uses a retry"})


def _service(service: Section, out: Converted) -> None:
    policy = service.section("replica_policy")
    low, high = policy.number("min_replicas"), policy.number("max_replicas")
    fixed = service.number("replicas", 1)
    out.keep("service", "template", "deployment")
    if low is not None and high is not None and high != low:
        where = "service.replica_policy"
        if low < 1:
            out.refuse(where, "scales to 0, but an elastic job has at least 1 replica")
        else:
            text = "grows when there is room, and with seaway scale; not with the load"
            out.change(where, "replicas", {"min": low, "max": high}, text)
    elif low or fixed:
        out.keep("service", "replicas", low or fixed)
    if port := service.number("ports", 1, MAX_PORT):
        out.keep("service.ports", "run.ports", list(dict.fromkeys([*(out.get("run.ports") or ()), port])), over=True)
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
