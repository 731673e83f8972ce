"""Checks of paths between gateways, and the maximum packet size on a path.

References
----------
RFC 8754, section 2: the segment routing header has 8 bytes and 16 for each segment; an IPv6 header before it 40.
RFC 8200, section 5: every link carries packets of 1280 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address
from itertools import groupby

from seaway.domain.errors import RejectedError
from seaway.domain.gateways import GatewayConfig, NetworkConfig, Pair, Path, Sid
from seaway.domain.reasons import Reason, also

Problems = Iterator[RejectedError]

MIN_MTU = 1280
MAX_SEGMENTS = 32
MAX_WEIGHT = 255

NAMED = 5
"""Maximum number of gateways in an error message."""


def overhead(segments: int) -> int:
    """Return the size of the headers that encapsulation adds for a number of segments, bytes."""
    return 40 + 8 + 16 * segments


class Room:
    """Maximum packet sizes on the paths of a network.

    Parameters
    ----------
    config
        The network.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self._by_name = {gateway.name: gateway.mtu for gateway in config.gateways}
        self._by_sid = {sid.address: gateway.mtu for gateway in config.gateways for sid in gateway.sids}

    def inner_mtu(self, source: str, path: Path) -> int:
        """Return the maximum size of a packet before its encapsulation, bytes; 0 if no MTU on the path is known."""
        passed = (self._by_name.get(source), *map(self._by_sid.get, path.segments))
        known = [mtu for mtu in passed if mtu]
        return min(known) - overhead(len(path.segments)) if known else 0


def path_problems(config: NetworkConfig) -> Problems:
    """Yield the problems of the paths of a configuration."""
    known = {gateway.name: gateway for gateway in config.gateways}
    owners = {sid.address: (gateway, sid) for gateway in config.gateways for sid in gateway.sids}
    room = Room(config)
    seen = set()
    for at, pair in enumerate(config.pairs):
        where = f"paths[{at}]"
        if (pair.source, pair.target) in seen:
            yield RejectedError(Reason("pair_given_twice", source=pair.source, target=pair.target), where=where)
        seen.add((pair.source, pair.target))
        yield from _ends(pair, known, where)
        yield from _names(pair, where)
        for number, path in enumerate(pair.paths):
            yield from _path(room, pair, path, owners, f"{where}.paths[{number}]")
    yield from _unreachable(config)


def _ends(pair: Pair, known: dict[str, GatewayConfig], where: str) -> Problems:
    for field, name in (("from", pair.source), ("to", pair.target)):
        gateway = known.get(name)
        if gateway is None:
            there = Reason("available", names=abbreviated(list(known))) if known else ""
            said = also(Reason("not_found", kind="gateway", name=name), there)
            yield RejectedError(said, where=f"{where}.{field}")
        elif gateway.locator is None:
            yield RejectedError(Reason("no_locator_no_path", name=name), where=f"{where}.{field}")
    if pair.source == pair.target:
        yield RejectedError(Reason("path_to_itself"), where=f"{where}.to")
    if not pair.paths:
        yield RejectedError(Reason("paths_empty"), where=f"{where}.paths")


def _names(pair: Pair, where: str) -> Problems:
    names: set[str] = set()
    lists: dict[tuple[object, ...], str] = {}
    for number, path in enumerate(pair.paths):
        if path.name in names:
            yield RejectedError(Reason("path_name_taken", name=path.name), where=f"{where}.paths[{number}].name")
        elif path.segments in lists:
            yield RejectedError(
                Reason("same_segments", name=lists[path.segments]), where=f"{where}.paths[{number}].segments"
            )
        names.add(path.name)
        lists.setdefault(path.segments, path.name)


def _path(
    room: Room,
    pair: Pair,
    path: Path,
    owners: dict[IPv6Address, tuple[GatewayConfig, Sid]],
    where: str,
) -> Problems:
    if not 1 <= path.weight <= MAX_WEIGHT:
        yield RejectedError(Reason("must_be_between", least=1, most=MAX_WEIGHT), where=f"{where}.weight")
    if not 1 <= len(path.segments) <= MAX_SEGMENTS:
        yield RejectedError(Reason("segments_between", most=MAX_SEGMENTS), where=f"{where}.segments")
        return
    unknown = False
    for number, segment in enumerate(path.segments):
        if segment not in owners:
            unknown = True
            yield RejectedError(Reason("not_a_sid", address=str(segment)), where=f"{where}.segments[{number}]")
    if unknown:
        return
    steps = [owners[segment] for segment in path.segments]
    yield from _steps(pair, steps, f"{where}.segments")
    inner, added = room.inner_mtu(pair.source, path), overhead(len(path.segments))
    if inner and inner < MIN_MTU:
        yield RejectedError(
            Reason("mtu_too_small", inner=inner, added=added, least=MIN_MTU, raised=MIN_MTU + added),
            where=where,
        )


def _steps(pair: Pair, steps: list[tuple[GatewayConfig, Sid]], where: str) -> Problems:
    """Yield segments that end the path too early, a wrong last segment, and loops."""
    for number, (gateway, sid) in enumerate(steps[:-1]):
        if sid.behaviour.unwraps:
            yield RejectedError(
                Reason("path_ends_early", address=str(sid.address), name=gateway.name, behaviour=sid.behaviour.value),
                where=f"{where}[{number}]",
            )
    last, end = steps[-1]
    at_end = f"{where}[{len(steps) - 1}]"
    if last.name != pair.target:
        yield RejectedError(Reason("path_ends_at", name=last.name, target=pair.target), where=at_end)
    elif not end.behaviour.unwraps:
        yield RejectedError(
            Reason("path_does_not_unwrap", address=str(end.address), behaviour=end.behaviour.value),
            where=at_end,
        )
    visits = [name for name, _ in groupby(gateway.name for gateway, _ in steps)]
    for name in dict.fromkeys(visits):
        if name == pair.source:
            yield RejectedError(Reason("loop_to_start", name=name), where=where)
        elif visits.count(name) > 1:
            yield RejectedError(Reason("loop_passes_twice", name=name), where=where)


def _unreachable(config: NetworkConfig) -> Problems:
    """Yield gateways that others cannot reach: pairs without a path, or with a path in one direction only."""
    given = {(pair.source, pair.target) for pair in config.pairs}
    located = [gateway for gateway in config.gateways if gateway.locator is not None]
    for at, target in enumerate(config.gateways):
        if target.locator is None or (config.mesh and target.end):
            continue
        missing = [
            source.name
            for source in located
            if source is not target
            and (source.name, target.name) not in given
            and (config.mesh or (target.name, source.name) in given)
        ]
        if missing:
            yield RejectedError(
                Reason(
                    "gateway_unreachable",
                    name=target.name,
                    names=abbreviated(missing),
                    why=Reason("no_end_dt" if config.mesh else "one_direction_only"),
                ),
                where=f"gateways[{at}]",
            )


def abbreviated(names: list[str]) -> str:
    """Return the first `NAMED` names and the number of the others."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
