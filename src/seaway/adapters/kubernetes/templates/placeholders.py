"""Placeholders of custom templates and their values.

A template is first parsed as YAML and then filled in, value by value. A placeholder can therefore only become a value.
It cannot end a text, start a field, or be parsed as YAML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from seaway.adapters.kubernetes.templates.context import Context
from seaway.adapters.kubernetes.templates.manifest import Group, Path
from seaway.adapters.kubernetes.templates.plain import master, rank_0_name
from seaway.adapters.kubernetes.templates.pods import container_ports
from seaway.adapters.kubernetes.templates.runtime import command_of, references
from seaway.domain.runtime import PROGRAM, PortProtocol

PLACEHOLDER = re.compile(r"\$(\$?)\{([^{}]*)\}")
"""Pattern of ``${name}``; ``$${name}`` is the literal ``${name}``."""


class Sort(Enum):
    """Type of a placeholder, which determines where it is allowed."""

    NAME = "name"
    """Letters, digits, ``-`` and ``.``; allowed within a longer text."""
    NUMBER = "number"
    """A number; allowed within a longer text."""
    TEXT = "text"
    """Any text; only allowed alone."""
    LIST = "list"
    """A list, or some items of a list."""


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A placeholder that templates may use."""

    sort: Sort
    means: str


PLACEHOLDERS: Mapping[str, Placeholder] = {
    "name": Placeholder(Sort.NAME, "name for the objects of one part: replicas that share node and devices"),
    "deployment_name": Placeholder(Sort.NAME, "name for objects of which one will do for all parts"),
    "namespace": Placeholder(Sort.NAME, "namespace of the job's tenant"),
    "job": Placeholder(Sort.NAME, "the job's id"),
    "job_name": Placeholder(Sort.NAME, "what people call the job"),
    "attempt": Placeholder(Sort.NAME, "number of the attempt"),
    "tenant": Placeholder(Sort.NAME, "tenant of the job"),
    "queue": Placeholder(Sort.NAME, "where the job waited"),
    "part": Placeholder(Sort.NAME, "short name of the part"),
    "cluster": Placeholder(Sort.TEXT, "name of the cluster"),
    "node": Placeholder(Sort.TEXT, "name of the part's node"),
    "image": Placeholder(Sort.TEXT, "run.image"),
    "replicas": Placeholder(Sort.NUMBER, "replicas of the part"),
    "total_replicas": Placeholder(Sort.NUMBER, "replicas of the job"),
    "ranks": Placeholder(Sort.NAME, "numbers of the part's replicas by index of their pod, separated by spaces"),
    "rank_0": Placeholder(Sort.TEXT, "address of replica 0, also for other clusters of a ring"),
    "rank_0_port": Placeholder(Sort.NUMBER, "port of replica 0 at this address"),
    "ring": Placeholder(Sort.TEXT, "cluster of each rank of a ring over clusters, separated by commas; else empty"),
    "gpus": Placeholder(Sort.NUMBER, "devices of each replica"),
    "priority": Placeholder(Sort.NUMBER, "the job's priority"),
    "command": Placeholder(Sort.LIST, "run.command"),
    "args": Placeholder(Sort.LIST, "run.args"),
    "env": Placeholder(Sort.LIST, "run.env, as a container has it"),
    "ports": Placeholder(Sort.LIST, "run.ports, as a container has them"),
    "service_ports": Placeholder(Sort.LIST, "run.ports, as a Service has them"),
}

_TEXTS = frozenset({"value", "name", "command", "args"})
"""Fields with texts or lists of texts, even if a value looks like a number."""

_TEXTS_UNDER = frozenset({"labels", "annotations", "matchLabels", "nodeSelector", "selector", "data"})
"""Fields whose subfields are texts."""


def values(context: Context, group: Group, *, ranked: bool = False) -> dict[str, Any]:
    """Return the values of all placeholders for one part.

    Parameters
    ----------
    ranked
        True if the template gives ranks.

    Raises
    ------
    RejectedError
        If it gives ranks, and the address of replica 0 is unknown.
    """
    spec, deployment = context.spec, context.deployment
    rank_0, port = master(context, rank_0_name(context)) if ranked else ("", "0")
    return {
        "name": context.name(group.digest),
        "deployment_name": context.name(context.whole),
        "namespace": context.options.namespace,
        "job": deployment.job_id,
        "job_name": spec.name,
        "attempt": str(deployment.attempt),
        "tenant": spec.tenant,
        "queue": spec.queue,
        "part": group.digest,
        "cluster": deployment.cluster,
        "node": group.nodes[0],
        "image": spec.run.image or context.options.default_image,
        "replicas": len(group.replicas),
        "total_replicas": spec.replicas,
        "ranks": " ".join(map(str, group.replicas)),
        "rank_0": rank_0,
        "rank_0_port": int(port),
        "ring": ",".join(deployment.ranks),
        "gpus": spec.demand.request.gpus,
        "priority": spec.priority,
        "command": list(command_of(spec, spec.run.command)),
        "args": list(spec.run.args),
        "env": [*({"name": name, "value": value} for name, value in spec.run.env), *references(spec.run)],
        "ports": container_ports(spec, PROGRAM),
        "service_ports": [
            {"name": f"port-{each.number}", "port": each.number}
            | ({} if each.protocol is PortProtocol.TCP else {"protocol": each.protocol.value})
            for each in spec.ports
        ],
    }


def fill(value: object, known: Mapping[str, Any], path: Path = ()) -> Any:  # noqa: ANN401  # any value
    """Return a copy with all placeholders replaced. Inserted values are not expanded again."""
    if isinstance(value, dict):
        return {key: fill(each, known, (*path, key)) for key, each in value.items()}
    if isinstance(value, list):
        return _fill_list(value, known, path)
    if not isinstance(value, str):
        return value
    whole = _whole(value)
    if whole is None:
        return PLACEHOLDER.sub(lambda found: _within(found, known), value)
    put = known[whole]
    return str(put) if isinstance(put, int) and _texts_only(path) else put


def used(value: object, path: Path = ()) -> Iterator[tuple[str, bool, Path]]:
    """Yield the name and path of each placeholder, and True if it is the whole value. Field names contain none."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from used(each, (*path, key))
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from used(each, (*path, place))
    elif isinstance(value, str):
        for found in PLACEHOLDER.finditer(value):
            if not found[1]:
                yield found[2], found[0] == value, path


def _fill_list(value: list[Any], known: Mapping[str, Any], path: Path) -> list[Any]:
    filled: list[Any] = []
    for place, each in enumerate(value):
        whole = _whole(each) if isinstance(each, str) else None
        put = fill(each, known, (*path, place))
        if whole is not None and PLACEHOLDERS[whole].sort is Sort.LIST:
            filled += put
        else:
            filled.append(put)
    return filled


def _whole(text: str) -> str | None:
    """Return the placeholder if it is the whole text."""
    found = PLACEHOLDER.fullmatch(text)
    return found[2] if found and not found[1] else None


def _within(found: re.Match[str], known: Mapping[str, Any]) -> str:
    return found[0][1:] if found[1] else str(known[found[2]])


def _texts_only(path: Path) -> bool:
    fields = [step for step in path if isinstance(step, str)]
    return bool(fields) and (fields[-1] in _TEXTS or bool(_TEXTS_UNDER.intersection(fields[-2:-1])))
