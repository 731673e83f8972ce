"""Run configurations of dstack: tasks, services and dev environments.

References
----------
dstack 0.20: ``.dstack.yml`` reference.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from seaway.wire.job_imports.bash_syntax import Script
from seaway.wire.job_imports.converted import IMAGE, Converted, Fields, Section, plain_text, put_name
from seaway.wire.job_imports.models import put_model
from seaway.wire.job_imports.shell import HOSTS, command_names, exports, mentions, put_script, refuse_commands, unknown

KIND = "dstack configuration"

TYPES = ("task", "service", "dev-environment")
OTHERS = ("fleet", "volume", "gateway", "repo")

_FLEETS = "Seaway uses your clusters: give --cluster or --cluster-label to select some"
_HTTP = "the gateway of the cluster does this"
_FILES = "files of this machine are not sent: put them in the image, or clone them in the commands"

DROPPED = {
    "backends": _FLEETS, "fleets": _FLEETS, "availability_zones": _FLEETS, "creation_policy": _FLEETS,
    "idle_duration": "clusters stay", "nvcc": "the image has the tools", "ide": "open a shell: seaway exec JOB -- bash",
    "model": "clients use the address of the service: seaway show JOB", "gateway": _HTTP, "https": _HTTP, "auth": _HTTP,
    "rate_limits": _HTTP, "strip_prefix": _HTTP, "single_branch": _FILES, "probes": "a replica is ready when it runs",
    "scaling": "replicas do not follow the load: seaway scale", "startup_order": "all replicas start together",
    "utilization_policy": "see the live charts of the job", "stop_criteria": "a job ends when all replicas have ended",
}  # fmt: skip
REFUSED = {
    "volumes": "volumes of dstack do not exist in the clusters", "files": _FILES, "repos": _FILES,
    "instance_types": "instances of clouds have no counterpart: give resources",
    "reservation": "a reservation is for queues: submit to its --queue", "schedule": "a job cannot start by the clock",
    "privileged": "containers have no privileges", "user": "the cluster sets the user",
    "registry_auth": "the operator sets pull secrets", "docker": "containers cannot start containers",
    "python": "selects an image of dstack: submit with --image", "groups": "all replicas are equal",
    "inactivity_duration": "inactivity is not measured: give --time-limit", "instances": _FLEETS,
}  # fmt: skip


def is_dstack(document: Fields) -> bool:
    """Report whether a document is a configuration of dstack."""
    return document.get("type") in (*TYPES, *OTHERS)


def read_dstack(document: Fields, out: Converted, stem: str) -> None:
    """Convert a run configuration."""
    run = Section(out, document)
    kind = run.text("type")
    if kind not in TYPES:
        out.refuse("type", f"is {kind}: only {', '.join(TYPES)} are jobs")
        return
    name = run.text("name")
    put_name(out, "name" if name else "", "name", name or stem)
    if image := run.text("image"):
        out.keep("image", "run.image", image)
    gpus = _resources(run.section("resources"), out)
    nodes = run.take("nodes", int) or 1
    if nodes > 1:
        out.keep("nodes", "replicas", nodes)
        out.keep("nodes", "gang", value=True)
        out.keep("nodes", "template", "torchrun", "template: torchrun, which gives each replica its rank")
    if kind == "service":
        out.keep("type", "template", "deployment")
        _replicas(run, out)
    _env(run, out)
    _ports(run, out)
    _policies(run, out, gpus)
    _script(run, out, kind, (nodes, gpus))
    run.finish(DROPPED, REFUSED)
    if not out.get("run.image"):
        out.drop(IMAGE, "the image of dstack is not known: give --image, or the cluster's default is used")


def _resources(resources: Section, out: Converted) -> int:
    """Set the resources, and return the number of devices."""
    for name, path in (("cpu", "resources.cpu"), ("memory", "resources.memory")):
        text = resources.text(name).rpartition(":")[2]
        low = text.partition("..")[0]
        if text and not low:
            out.drop(f"resources.{name}", "has no minimum, so that nothing is reserved")
        elif text:
            out.keep(f"resources.{name}", path, int(low) if low.isdecimal() and name == "cpu" else low)
    given = resources.take("gpu", (str, int, dict))
    gpus = 0 if given is None else _gpu(given, out)
    dropped = {"disk": "the node has the disk", "shm_size": "shared memory is the default of the template"}
    resources.finish(dropped, {})
    return gpus


def _gpu(given: str | int | Mapping[str, Any], out: Converted) -> int:
    """Set the devices, and return their number."""
    where = "resources.gpu"
    vendor, names, memory, count = _spec(given)
    if not count.isdecimal():
        out.refuse(where, f"has {count} devices: give one number")
        return 0
    gpus = int(count)
    if not gpus:
        return 0
    out.keep(where, "resources.gpus", gpus)
    if vendor:
        out.keep(where, "resources.gpu_vendor", [vendor.upper()])
    low, _, high = memory.partition("..")
    if names:
        sizes = [f"{name}-{low}" if low and low in ("16GB", "32GB", "40GB", "80GB") else name for name in names]
        put_model(out, where, sizes)
    elif low:
        out.change(where, "resources.gpu_memory", low, "this amount of each device, and all of its cores")
        out.keep(where, "resources.gpu_cores", "100%")
        out.keep(where, "resources.exclusive", value=True)
    if high and high != low:
        out.drop(where, f"devices with more than {high} are allowed")
    return gpus


def _spec(given: str | int | Mapping[str, Any]) -> tuple[str, list[str], str, str]:
    """Return vendor, names, memory and number of devices."""
    if isinstance(given, int):
        return "", [], "", str(given)
    if isinstance(given, Mapping):
        name = given.get("name") or []
        names = [str(each) for each in name] if isinstance(name, list) else str(name).split(",")
        count = given.get("count", 1)
        count = count.get("min", 1) if isinstance(count, dict) else count
        return plain_text(given.get("vendor")), names, plain_text(given.get("memory")), str(count)
    vendor, names, memory, count = "", [], "", "1"
    for part in given.split(":"):
        if part.lower() in ("nvidia", "amd", "google", "intel", "tenstorrent"):
            vendor = part
        elif re.fullmatch(r"\d*(\.\.\d*)?", part):
            low, dots, high = part.partition("..")
            count = low if not dots or low == high else part
        elif re.fullmatch(r"[\d.]+[GT]B(\.\.([\d.]+[GT]B)?)?|\.\.[\d.]+[GT]B", part, re.IGNORECASE):
            memory = part.upper()
        else:
            names = part.split(",")
    return vendor, names, memory, count


def _replicas(run: Section, out: Converted) -> None:
    given = run.take("replicas", (int, str))
    if given is None:
        return
    low, dots, high = str(given).partition("..")
    if not dots:
        out.keep("replicas", "replicas", int(low))
    elif low in ("", "0") or not high:
        out.refuse("replicas", f"is {given}: an elastic job has at least 1 replica, and a maximum")
    else:
        text = "grows when there is room, and with seaway scale; not with the load"
        out.change("replicas", "replicas", {"min": int(low), "max": int(high)}, text)


def _env(run: Section, out: Converted) -> None:
    given = run.take("env", (list, dict)) or {}
    pairs = given.items() if isinstance(given, dict) else (str(each).partition("=")[::2] for each in given)
    bare = {str(each) for each in given if "=" not in str(each)} if isinstance(given, list) else set()
    for key, value in pairs:
        if "${{" in plain_text(value):
            out.refuse(f"env.{key}", "is a secret of dstack: create a Secret in the cluster, and name it")
        elif key in bare:
            out.refuse(f"env.{key}", f"has no value: submit with --env {key}=VALUE")
        else:
            out.keep("env", f"run.env.{key}", plain_text(value))


def _ports(run: Section, out: Converted) -> None:
    ports = [str(each).rpartition(":")[2] for each in run.take("ports", list) or []]
    port = run.take("port", (int, str, dict))
    if port is not None:
        ports.append(str(port.get("container_port", "")) if isinstance(port, dict) else str(port).rpartition(":")[2])
    if not ports:
        return
    where = "port" if port is not None else "ports"
    if all(each.isdecimal() for each in ports):
        out.keep(where, "run.ports", [int(each) for each in ports])
    else:
        out.refuse(where, "must be numbers")


def _policies(run: Section, out: Converted, gpus: int) -> None:
    spot = run.text("spot_policy")
    if spot in ("spot", "auto"):
        out.change("spot_policy", "preemptible", True, "other jobs may displace it, and it then waits again")
    if (limit := run.text("max_duration")) and limit not in ("off", "false"):
        out.keep("max_duration", "time_limit", limit)
    if (grace := run.text("stop_duration")) and grace not in ("off", "false"):
        out.keep("stop_duration", "checkpoint", {"signal": "SIGTERM", "grace": grace})
    _price(run, out, gpus)
    if regions := run.take("regions", list):
        out.keep("regions", "placement.regions", [str(each) for each in regions])
    if (priority := run.take("priority", int)) is not None:
        out.keep("priority", "priority", priority)
    if tags := run.pairs("tags"):
        out.keep("tags", "labels", tags)
    _retry(run, out)


def _price(run: Section, out: Converted, gpus: int) -> None:
    if price := run.take("max_price", (int, float)):
        if gpus:
            text = "the price of the instance is divided by its GPUs"
            out.change("max_price", "placement.max_price_per_gpu_hour", f"{price / gpus:.4f}", text)
        else:
            out.refuse("max_price", "is given without GPUs: prices are for GPUs")


def _retry(run: Section, out: Converted) -> None:
    retry = run.take("retry")
    events = retry.get("on_events") if isinstance(retry, dict) else ["error"] if retry else []
    if events and "error" in events:
        out.refuse("retry", "limits the time of restarts, not their number: submit with --retries N --ignore retry")
    elif events:
        out.drop("retry", "Seaway waits for room, and restarts a job that loses its node")


def _script(run: Section, out: Converted, kind: str, size: tuple[int, int]) -> None:
    nodes, gpus = size
    commands = [str(each) for each in run.take("commands", list) or []]
    if kind == "dev-environment":
        commands = [*(str(each) for each in run.take("init", list) or []), "sleep infinity"]
        out.note("type", "run.command: waits until it is cancelled: seaway exec JOB -- bash")
    shell, directory = run.text("shell"), run.text("working_dir")
    entry = run.text("entrypoint")
    if not commands and not entry:
        if directory:
            out.refuse("working_dir", "is given without commands")
        return
    if entry:
        out.refuse("entrypoint", "is given: write it in the commands")
    known = {
        "DSTACK_NODES_NUM": str(nodes),
        "DSTACK_NODE_RANK": "${NODE_RANK:-0}",
        "DSTACK_MASTER_NODE_IP": "${MASTER_ADDR:-127.0.0.1}",
        "DSTACK_NODES_IPS": HOSTS if nodes > 1 else "127.0.0.1",
        "DSTACK_GPUS_PER_NODE": str(gpus),
        "DSTACK_GPUS_NUM": str(gpus * nodes),
        "DSTACK_RUN_NAME": str(out.get("name")),
    }
    syntax = Script("\n".join(commands))
    text = syntax.without("comment")
    refuse_commands(out, command_names(syntax), nodes)
    for name in unknown(text, "DSTACK_", known):
        out.refuse(name, "has no counterpart in the container")
    lines = ["set -e", exports({name: value for name, value in known.items() if mentions(text, name)})]
    if directory:
        lines.append(f"cd {shlex.quote(directory)}")
        out.note("working_dir", f"run.command: cd {directory}")
    where = "commands" if kind != "dev-environment" else "init"
    put_script(
        out,
        where,
        "\n".join([each for each in lines if each] + commands) + "\n",
        str(out.get("name")),
        [shell or "bash"],
    )
