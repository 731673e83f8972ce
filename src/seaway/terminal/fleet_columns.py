"""What is shown of clusters, nodes, devices and slices, each a line of one tree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from seaway.terminal.columns import Column
from seaway.terminal.tree import CLUSTER, DEVICE, MORE, NODE, SLICE
from seaway.terminal.words import Body, bar, cordoned, cores, gib, models, seconds, small_bars, state

BLOCKS = 8
"""Blocks of a bar."""

MARKS = {True: "▾ ", False: "▸ ", None: "  "}
"""Before what is open, what can be opened, and what holds nothing."""


def name(line: Body) -> Text:
    """Name a thing, as far in as it is deep in the tree."""
    kind = line["kind"]
    style = "bold" if kind == CLUSTER else "dim" if kind == MORE else ""
    return Text(f"{'  ' * line['depth']}{MARKS[line['open']]}{_named(line)}", style)


def _named(line: Body) -> str:
    if line["kind"] == DEVICE:
        return f"#{line['index']} {_short(line['model'])}"
    if line["kind"] == SLICE:
        return f"{line['job']} · {line['replica']}" if line["job_id"] else line["job"] or "another tenant's"
    return f"{line['left']:,} more …" if line["kind"] == MORE else str(line["name"])


def _short(model: str) -> str:
    """Leave the maker's name out of a model's."""
    return model.removeprefix("NVIDIA ")


def condition(line: Body) -> Text:
    """Say whether a thing takes new work."""
    if line["kind"] == CLUSTER:
        return Text("cordoned", "yellow") if line["cordon"] and line["state"] == "up" else state(line["state"])
    if line["kind"] == NODE:
        return Text("ready", "green") if line["ready"] else Text("cordoned" if line["cordon"] else "closed", "yellow")
    if line["kind"] == DEVICE:
        return Text("", "green") if line["healthy"] else Text("unhealthy", "red")
    return Text()


def heard(line: Body) -> str:
    """Say how old is what is known of a cluster."""
    return seconds(line["silent_s"]) if line["kind"] == CLUSTER else ""


def gpus(line: Body) -> str:
    """Say which devices there are, each with how full it is."""
    if line["kind"] == CLUSTER:
        return f"{line['nodes']:,} nodes, {line['gpus']:,} GPUs"
    if line["kind"] == NODE:
        return f"{small_bars(line['devices'])} {models(line['devices']).replace('NVIDIA ', '')}"
    return str(line["mode"]) if line["kind"] == DEVICE else str(line.get("mig_profile", ""))


def milli(line: Body) -> Text:
    """Draw how much of the cores is taken."""
    return _level(line, "gpu_milli", "core_milli", cores)


def memory(line: Body) -> Text:
    """Draw how much of the memory is taken."""
    return _level(line, "gpu_memory_mib", "memory_mib", gib)


def _level(line: Body, of_cluster: str, of_device: str, write: Callable[[int], str]) -> Text:
    if line["kind"] == MORE:
        return Text()
    if line["kind"] == SLICE:
        return Text(f"{' ' * BLOCKS} {write(line[of_device])}")
    amounts = [line[of_cluster]] if line["kind"] == CLUSTER else [each[of_device] for each in _devices(line)]
    used, total = sum(each["used"] for each in amounts), sum(each["total"] for each in amounts)
    return Text.assemble(bar(used, total, BLOCKS), f" {write(used)}/{write(total)}")


def real(line: Body) -> str:
    """Say how much was measured to be in use: share of the cores, and memory."""
    if line["kind"] not in {NODE, DEVICE}:
        return ""
    used = [each["used"] for each in _devices(line) if each.get("used")]
    busy = [each["core_milli"] for each in used if each["core_milli"] is not None]
    held = [each["memory_bytes"] for each in used if each["memory_bytes"] is not None]
    share = f"{sum(busy) / len(busy) / 10:.0f} %" if busy else ""
    return " ".join(part for part in (share, gib(sum(held) >> 20) if held else "") if part)


def _devices(line: Body) -> Sequence[Body]:
    """Return the devices that a node has, or that a line is."""
    return list(line["devices"]) if line["kind"] == NODE else [line]


def jobs(line: Body) -> str:
    """Count jobs of a cluster, and slices of nodes and devices."""
    if line["kind"] == CLUSTER:
        return f"{line['jobs']:,}"
    if line["kind"] == NODE:
        return str(sum(len(each["slices"]) for each in line["devices"]))
    return f"{len(line['slices'])}/{line['share_limit']}" if line["kind"] == DEVICE else ""


def note(line: Body) -> str:
    """Say why a thing takes no new work, or whose it is."""
    if line["kind"] == CLUSTER:
        return str(line.get("silence", "")).removeprefix(f"{line['name']}: ") or cordoned(line)
    if line["kind"] == NODE:
        return str(line.get("reason", "")) or cordoned(line)
    return str(line.get("tenant" if line["kind"] == SLICE else "reason", ""))


FLEET_COLUMNS = (
    Column("NAME", name),
    Column("STATE", condition, drop=1),
    Column("HEARD", heard, right=True, drop=7),
    Column("GPU CORES", milli),
    Column("GPU MEMORY", memory, drop=2),
    Column("IN USE", real, right=True, drop=4),
    Column("JOBS", jobs, right=True, drop=5),
    Column("DEVICES", gpus, drop=6),
    Column("NOTE", note, cut=True, drop=3),
)
"""The fleet, a thing a row."""
