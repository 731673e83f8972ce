"""What becomes different from one network to another, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from seaway.domain.gateways import GatewayConfig, NetworkConfig, Pair


def differences(before: NetworkConfig, after: NetworkConfig) -> list[str]:
    """Say what becomes different: gateways, pairs with paths of their own, the mesh, and how links are measured."""
    return [*_gateways(before, after), *_pairs(before, after), *_whole(before, after)]


def _gateways(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    old, new = ({each.name: each for each in config.gateways} for config in (before, after))
    yield from (f"gateway {name} is added" for name in new if name not in old)
    yield from (f"gateway {name} is removed" for name in old if name not in new)
    for name, gateway in new.items():
        if name in old and (changed := _changed(old[name], gateway)):
            yield f"gateway {name}: {', '.join(changed)}"
    if list(old) != list(new) and sorted(old) == sorted(new):
        yield "gateways are in another order"


def _changed(old: GatewayConfig, new: GatewayConfig) -> list[str]:
    names = (each.name for each in fields(old) if getattr(old, each.name) != getattr(new, each.name))
    return [f"{'speed' if name == 'speed_mbps' else name} {_shown(old, name)} -> {_shown(new, name)}" for name in names]


def _shown(gateway: GatewayConfig, name: str) -> str:
    value = getattr(gateway, name)
    if name == "sids":
        return "/".join(str(sid.address) for sid in value) or "none"
    if name == "prefixes":
        return "/".join(map(str, value)) or "none"
    if name == "method":
        return str(value.value)
    return str(value) if value else "none"


def _pairs(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    old, new = ({(each.source, each.target): each for each in config.pairs} for config in (before, after))
    for ends in (*new, *(each for each in old if each not in new)):
        if ends not in old:
            yield f"paths {ends[0]} to {ends[1]}: {_named(new[ends])} in place of the mesh's"
        elif ends not in new:
            yield f"paths {ends[0]} to {ends[1]}: as the mesh has them, no own ones"
        elif old[ends] != new[ends]:
            yield f"paths {ends[0]} to {ends[1]}: {_named(old[ends])} -> {_named(new[ends])}"


def _named(pair: Pair) -> str:
    paths = (f"{path.name} ({'>'.join(map(str, path.segments))}, weight {path.weight})" for path in pair.paths)
    return f"{', '.join(paths)}{', shared' if pair.share else ''}"


def _whole(before: NetworkConfig, after: NetworkConfig) -> Iterator[str]:
    if before.mesh != after.mesh:
        yield "every other pair is connected straight" if after.mesh else "pairs without paths are not connected"
    for each in fields(before.probe):
        old, new = getattr(before.probe, each.name), getattr(after.probe, each.name)
        if old != new:
            yield f"probe: {each.name.removesuffix('_s')} {old:g} -> {new:g}"
