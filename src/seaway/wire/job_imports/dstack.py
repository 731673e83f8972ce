"""Run configurations of dstack: tasks, services and dev environments.

References
----------
dstack 0.20: ``.dstack.yml`` reference.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from seaway.domain.numbers import exact_number, whole_number
from seaway.wire.job_imports.bash_syntax import Script
from seaway.wire.job_imports.converted import (
    IMAGE,
    MAX_COUNT,
    Converted,
    Fields,
    Result,
    Section,
    plain_text,
    put_name,
    shown,
)  # fmt: skip
from seaway.wire.job_imports.models import SIZES, put_model
from seaway.wire.job_imports.shell import (
    HOSTS,
    command_names,
    exports,
    mentions,
    put_script,
    refuse_commands,
    unknown,
)  # fmt: skip

ARCHITECTURE = "kubernetes.io/arch"
"""Label of nodes with the architecture of their CPUs."""

MAX_NODES, MAX_PORT = 10_000, 65_535

KIND = "dstack configuration"

TYPES = ("task", "service", "dev-environment")
OTHERS = ("fleet", "volume", "gateway", "repo")

_FLEETS = "Seaway uses your clusters: give --cluster or --cluster-label to select some"
_HTTP = "the gateway of the cluster does this"
_FILES = "files of this machine are not sent: put them in the image, or clone them in the commands"

DROPPED = {
    "backends": _FLEETS, "fleets": _FLEETS, "creation_policy": _FLEETS,
    "idle_duration": "clusters stay", "nvcc": "the image has the tools", "ide": "open a shell: seaway exec JOB -- bash",
    "model": "clients use the address of the service: seaway show JOB", "gateway": _HTTP, "https": _HTTP, "auth": _HTTP,
    "rate_limits": _HTTP, "strip_prefix": _HTTP, "single_branch": _FILES, "probes": "a replica is ready when it runs",
    "scaling": "replicas do not follow the load: seaway scale", "version": "open a shell: seaway exec JOB -- bash",
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
    for path, text in _texts(document, ""):
        if "${{" in text:
            out.refuse(path, "has a value of dstack: create a Secret in the cluster, or write the value")
    name = run.text("name")
    put_name(out, "name" if name else "", "name", name or stem)
    if image := run.text("image"):
        out.keep("image", "run.image", image)
    gpus = _resources(run.section("resources"), out)
    nodes = run.number("nodes", 1, MAX_NODES) or 1
    if nodes > 1:
        out.keep("nodes", "replicas", nodes)
        out.keep("nodes", "gang", value=True)
        out.keep("nodes", "template", "torchrun", "template: torchrun, which gives each replica its rank")
    if kind == "service":
        out.keep("type", "template", "deployment")
        _replicas(run, out)
    _env(run, out)
    _ports(run, out)
    _policies(run, out, nodes, gpus)
    _script(run, out, kind, (nodes, gpus))
    run.finish(DROPPED, REFUSED)
    if not out.get("run.image"):
        out.drop(IMAGE, "the image of dstack is not known: give --image, or the cluster's default is used")


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield all texts with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _texts(each, f"{path}[{at}]")


def _resources(resources: Section, out: Converted) -> int:
    """Set the resources, and return the number of devices."""
    _cpu(resources, out)
    low, _ = _range(resources, "memory", _AMOUNT)
    if low:
        out.keep("resources.memory", "resources.memory", low)
    if shared := _amount(resources.text("shm_size")):
        out.keep("resources.shm_size", "resources.shm_size", shared)
    given = resources.take("gpu", (str, int, dict))
    gpus = 0 if given is None else _gpu(given, out)
    resources.finish({"disk": "the node has the disk"}, {"shm_size": "is not an amount like 16GB"})
    return gpus


_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([MGT]B)?", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,6}")
_VENDORS = ("nvidia", "amd", "google", "intel", "tenstorrent")


def _amount(text: str) -> str:
    """Return an amount with its unit, of which GB is the default; empty if it is none."""
    match = _AMOUNT.fullmatch(text.strip())
    return f"{match[1]}{(match[2] or 'GB').upper()}" if match else ""


def _range(section: Section, name: str, form: re.Pattern[str]) -> tuple[str, str]:
    """Return both ends of a range like ``8..16``, ``{min: 8}`` or a single value; empty texts for open ends."""
    where, given = section.at(name), section.take(name, (str, int, float, dict))
    if isinstance(given, dict):
        ends = Section(section.out, given, where)
        low, high = ends.text("min"), ends.text("max")
        ends.finish({}, {})
    else:
        low, dots, high = ("" if given is None else str(given)).partition("..")
        high = high if dots else low
    low, high = low.strip(), high.strip()
    if not all(not each or form.fullmatch(each) for each in (low, high)):
        section.out.refuse(where, f"is {shown(given)}, not an amount or a range like 8..16")
        return "", ""
    if given is not None and not low:
        section.out.drop(where, "has no minimum, so that nothing is reserved")
    return (_amount(low), _amount(high)) if form is _AMOUNT else (low, high)


def _cpu(resources: Section, out: Converted) -> None:
    """Set the CPUs and their architecture, as in ``arm:16..``."""
    given = resources.take("cpu", (str, int, dict))
    if given is None:
        return
    if isinstance(given, dict):
        section = Section(out, given, "resources.cpu")
        arch = section.text("arch")
        low, _ = _range(section, "count", _NUMBER)
        section.finish({}, {})
    else:
        arch, _, count = str(given).rpartition(":")
        if str(given) in ("arm", "x86"):
            arch, count = str(given), ""
        low, _ = _range(Section(out, {"cpu": count or None}, "resources"), "cpu", _NUMBER)
    if low:
        out.keep("resources.cpu", "resources.cpu", int(low))
    if arch in ("arm", "x86"):
        labels = {ARCHITECTURE: "arm64" if arch == "arm" else "amd64"}
        out.keep("resources.cpu", "placement.node_labels", {**(out.get("placement.node_labels") or {}), **labels})
    elif arch:
        out.refuse("resources.cpu", f"has the architecture {shown(arch)}: use arm or x86")


@dataclass(slots=True)
class _Gpu:
    """GPU specification: its parts as texts, which are empty for defaults."""

    vendor: str = ""
    names: list[str] = field(default_factory=list)
    low: str = ""
    high: str = ""
    count: str = "1"


def _gpu(given: str | int | Mapping[str, Any], out: Converted) -> int:
    """Set the devices, and return their number."""
    where = "resources.gpu"
    spec = _gpu_of_mapping(given, out) if isinstance(given, Mapping) else _gpu_of_text(str(given), out)
    low, dots, high = spec.count.partition("..")
    count = whole_number(low, MAX_COUNT) if not dots or low == high else None
    if count is None:
        out.refuse(where, f"has {shown(spec.count)} devices: give one number")
        return 0
    if not count:
        return 0
    out.keep(where, "resources.gpus", count)
    if spec.vendor:
        out.keep(where, "resources.gpu_vendor", [spec.vendor.upper()])
    if spec.names:
        if models := _sized(where, spec, out):
            put_model(out, where, models)
    elif spec.low:
        out.change(where, "resources.gpu_memory", spec.low, "this amount of each device, and all of its cores")
        out.keep(where, "resources.gpu_cores", "100%")
        out.keep(where, "resources.exclusive", value=True)
        if spec.high and spec.high != spec.low:
            out.note(where, f"devices with more than {spec.high} are allowed", Result.CHANGED)
    elif spec.high:
        out.note(where, f"devices with more than {spec.high} are allowed", Result.CHANGED)
    return count


def _gpu_of_mapping(given: Mapping[str, Any], out: Converted) -> _Gpu:
    section = Section(out, given, "resources.gpu")
    name = section.take("name", (str, list)) or []
    names = [str(each) for each in name] if isinstance(name, list) else name.split(",")
    vendor = section.text("vendor").lower()
    low, high = _range(section, "memory", _AMOUNT)
    count = section.take("count", (int, str, dict))
    if isinstance(count, dict):
        ends = Section(out, count, "resources.gpu.count")
        count = f"{ends.text('min')}..{ends.text('max')}"
        ends.finish({}, {})
    section.finish(
        {},
        {
            "total_memory": "is not compared: give the memory of each GPU",
            "compute_capability": "is not compared: give the models of GPUs by name",
        },
    )
    return _Gpu(
        vendor, [each.strip() for each in names if each.strip()], low, high, "1" if count is None else str(count)
    )


def _gpu_of_text(given: str, out: Converted) -> _Gpu:
    """Read a text like ``nvidia:A100,H100:40GB..80GB:2``."""
    found = _Gpu()
    seen = set()
    for part in (each.strip() for each in given.split(":")):
        low, dots, high = part.partition("..")
        if part.lower() in _VENDORS:
            kind, found.vendor = "vendor", part.lower()
        elif re.fullmatch(r"[0-9]*(\.\.[0-9]*)?", part):
            kind, found.count = "count", part
        elif any((low, high)) and all(
            not each or re.fullmatch(r"[0-9.]+\s*[MGT]B", each, re.I) for each in (low, high)
        ):
            kind, found.low, found.high = "memory", _amount(low), _amount(high if dots else low)
        else:
            kind, found.names = "name", [each.strip() for each in part.split(",")]
        if kind in seen:
            out.refuse("resources.gpu", f"{shown(given)} has two parts for the {kind}")
        seen.add(kind)
    return found


MEMORY_GB = {
    "T4": (16,), "V100": (16, 32), "P100": (16,), "L4": (24,), "A10": (24,), "A10G": (24,), "A30": (24,), "A16": (16,),
    "A40": (48,), "L40": (48,), "L40S": (48,), "A6000": (48,), "RTXA6000": (48,), "RTX3090": (24,), "RTX4090": (24,),
    "RTX5090": (32,), "A100": (40, 80), "A800": (80,), "H100": (80, 94), "H200": (141,), "GH200": (96,), "B200": (180,),
    "B300": (288,), "MI210": (64,), "MI250": (128,), "MI300X": (192,), "MI325X": (256,), "MI355X": (288,),
}  # fmt: skip
"""Nominal memory of models, GB, for each of their sizes."""


def _sized(where: str, spec: _Gpu, out: Converted) -> list[str]:
    """Return the models whose memory is in a range; report those of which it is unknown."""
    if not (spec.low or spec.high):
        return spec.names
    least, most = _gigabytes(spec.low) or 0, _gigabytes(spec.high)
    found, excluded = [], []
    for name in spec.names:
        sizes = MEMORY_GB.get(re.sub(r"[-_ ]", "", name.upper()))
        fitting = [each for each in sizes or () if least <= each and (most is None or each <= most)]
        if sizes is None:
            out.note(where, f"the memory of {name} is not compared with the range", Result.CHANGED)
        elif not fitting:
            excluded.append(name)
            continue
        elif len(fitting) < len(sizes) and name.upper() in SIZES:
            found += [f"{name}-{each}GB" for each in fitting]
            continue
        elif len(fitting) < len(sizes):
            out.note(where, f"{name} of all sizes is allowed", Result.CHANGED)
        found.append(name)
    if excluded:
        text = f"{' and '.join(excluded)} has another amount of memory"
        (out.note if found else out.refuse)(where, text, *([Result.CHANGED] if found else []))
    return found


def _gigabytes(text: str) -> Fraction | None:
    match = _AMOUNT.fullmatch(text)
    number = exact_number(match[1]) if match else None
    factor = {"M": Fraction(1, 1000), "T": Fraction(1000)}.get((match[2] or "G")[0], Fraction(1)) if match else 1
    return None if number is None else number * factor


def _replicas(run: Section, out: Converted) -> None:
    given = run.take("replicas", (int, str, dict))
    if given is None:
        return
    errors = len(out.refused)
    low, high = _range(Section(out, {"replicas": given}), "replicas", _NUMBER)
    if len(out.refused) > errors:
        return
    if low and low == high and low != "0":
        out.keep("replicas", "replicas", int(low))
    elif not low or not high or low == "0":
        out.refuse("replicas", f"is {shown(given)}: an elastic job has at least 1 replica, and a maximum")
    else:
        text = "grows when there is room, and with seaway scale; not with the load"
        out.change("replicas", "replicas", {"min": int(low), "max": int(high)}, text)


def _env(run: Section, out: Converted) -> None:
    given = run.take("env", (list, dict)) or {}
    pairs = given.items() if isinstance(given, dict) else (str(each).partition("=")[::2] for each in given)
    bare = {str(each) for each in given if "=" not in str(each)} if isinstance(given, list) else set()
    for key, value in pairs:
        if key in bare:
            out.refuse(f"env.{key}", f"has no value: submit with --env {key}=VALUE")
        else:
            out.keep("env", f"run.env.{key}", plain_text(value))


def _ports(run: Section, out: Converted) -> None:
    listed = [("ports", each) for each in run.take("ports", list) or []]
    if (port := run.take("port", (int, str, dict))) is not None:
        listed.append(("port", port))
    ports = []
    for where, each in listed:
        if isinstance(each, dict):
            section = Section(out, each, where)
            text = section.text("container_port")
            section.finish({"local_port": "seaway port-forward JOB"}, {})
        else:
            text = str(each).rpartition(":")[2]
        if number := whole_number(text, MAX_PORT):
            ports.append(number)
        else:
            out.refuse(where, f"has {shown(each)}, which is no port")
    if ports:
        out.keep(listed[0][0], "run.ports", list(dict.fromkeys(ports)))


OFF = ("off", "false", "unlimited", "-1")


def _duration(run: Section, name: str) -> str:
    """Return a duration as Seaway writes it; empty for none."""
    given = run.take(name, (str, int, bool))
    text = plain_text(given).strip().lower()
    if given is None or text in OFF:
        if given is not None:
            run.out.drop(run.at(name), "there is no limit")
        return ""
    match = re.fullmatch(r"([0-9]{1,9})\s*([smhdw]?)", text)
    if match is None:
        run.out.refuse(run.at(name), f"is {shown(given)}, not a time like 90s, 12h or 2w")
        return ""
    return f"{int(match[1]) * 7}d" if match[2] == "w" else f"{int(match[1])}{match[2] or 's'}"


def _policies(run: Section, out: Converted, nodes: int, gpus: int) -> None:
    spot = run.text("spot_policy")
    if spot in ("spot", "auto"):
        out.change("spot_policy", "preemptible", True, "other jobs may displace it, and it then waits again")
    if limit := _duration(run, "max_duration"):
        out.keep("max_duration", "time_limit", limit)
    if grace := _duration(run, "stop_duration"):
        out.keep("stop_duration", "checkpoint", {"signal": "SIGTERM", "grace": grace})
    if _duration(run, "inactivity_duration"):
        out.refuse("inactivity_duration", REFUSED["inactivity_duration"])
    _ends(run, out, nodes)
    _price(run, out, gpus)
    if regions := run.take("regions", list):
        out.keep("regions", "placement.regions", [str(each) for each in regions])
    if (priority := run.take("priority", int)) is not None:
        out.keep("priority", "priority", priority)
    if tags := run.pairs("tags"):
        out.keep("tags", "labels", tags)
    _retry(run, out)


def _ends(run: Section, out: Converted, nodes: int) -> None:
    """Report the rules for the start and the end of nodes."""
    criterion = run.text("stop_criteria")
    if criterion not in ("", "all-done") and nodes > 1:
        text = f"is {criterion}, but a job ends when all replicas have ended: let the others end with the first"
        out.refuse("stop_criteria", text)
    elif criterion:
        out.drop("stop_criteria", "a job ends when all replicas have ended")
    order = run.text("startup_order")
    if order not in ("", "any") and nodes > 1:
        out.note("startup_order", "all replicas start together", Result.CHANGED)
    elif order:
        out.drop("startup_order", "all replicas start together")
    if run.take("utilization_policy"):
        text = "a job with low use is not stopped: see its live charts"
        out.note("utilization_policy", text, Result.CHANGED)
    zones = run.take("availability_zones", (str, list)) or []
    zones = zones if isinstance(zones, list) else [zones]
    if len(zones) > 1:
        out.refuse("availability_zones", "are several: a job requires one zone, or give --cluster-label")
    elif zones:
        labels = {**(out.get("placement.node_labels") or {}), "topology.kubernetes.io/zone": str(zones[0])}
        out.keep("availability_zones", "placement.node_labels", labels, over=True)


def _price(run: Section, out: Converted, gpus: int) -> None:
    given = run.take("max_price", (int, float))
    price = None if given is None else exact_number(given, MAX_COUNT)
    if given is not None and not price:
        out.refuse("max_price", f"is {shown(given)}, not a price above 0")
    elif price and gpus:
        text = "the price of the instance is divided by its GPUs"
        out.change("max_price", "placement.max_price_per_gpu_hour", f"{float(price / gpus):.4f}", text)
    elif price:
        out.refuse("max_price", "is given without GPUs: prices are for GPUs")


def _retry(run: Section, out: Converted) -> None:
    retry = run.take("retry", (bool, dict))
    if not isinstance(retry, dict):
        events: list[Any] = ["error"] if retry else []
    else:
        rules = Section(out, retry, "retry")
        events = rules.take("on_events", list) or []
        rules.finish({"duration": "Seaway waits for room without a limit"}, {})
    if "error" in events:
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
