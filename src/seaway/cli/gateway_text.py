"""Routes, settings and what is done about them, as `seaway gateway` shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from seaway.domain.gateways import MAIN_TABLE, NetworkConfig
from seaway.steering.commands import commands
from seaway.steering.difference import Add, Change, Remove, Replace, Set, changes_along
from seaway.steering.obstacles import setting_text
from seaway.steering.state import Hop, OddRoute, Present, Route, SidRoute

Names = Mapping[IPv6Address, str]
"""What SIDs are called."""

STYLES = {"+": "green", "~": "yellow", "-": "red", "<": "cyan"}
ARROW = "→"


def names_of(config: NetworkConfig | None) -> Names:
    """Return what the SIDs of a network are called, like ``gw-2 End``."""
    gateways = config.gateways if config else ()
    return {sid.address: f"{each.name} {sid.behaviour.value}" for each in gateways for sid in each.sids}


def picture(changes: Iterable[Change], names: Names) -> RenderableType:
    """Show changes, a line each: + is new, ~ changes, - goes, < is set back to what it was."""
    return Group(*(_line(each, names) for each in changes))


def body(changes: Iterable[Change], netns: str) -> list[dict[str, Any]]:
    """Return changes for programs."""
    return [{**_fields(each), "command": commands([each], netns)[0]} for each in changes]


def state_picture(present: Present, names: Names) -> RenderableType:
    """Show what a machine has of Seaway."""
    routes = [Text(f"  {_route(each)}  {_does(each, names)}") for each in present.routes]
    settings = [
        Text(f"  {setting_text(knob)} = {present.settings.get(knob, '?')}").append(f"  (was {was.before})", "dim")
        for knob, was in present.remembered.items()
        if was.before != was.value and knob in present.settings and not changes_along(knob)
    ]
    return Group(*routes, *settings)


def state_body(present: Present, netns: str) -> dict[str, Any]:
    """Return what a machine has of Seaway, for programs."""
    return {
        "netns": netns,
        "routes": [{"destination": str(each.destination), "does": _does(each, {})} for each in present.routes],
        "settings": [
            {"name": setting_text(knob), "value": present.settings.get(knob, ""), "before": was.before}
            for knob, was in present.remembered.items()
            if not changes_along(knob)
        ],
    }


def _line(change: Change, names: Names) -> Text:
    mark, what, text = _parts(change, names)
    return Text(f"  {mark} ", STYLES[mark]).append(f"{what}  ", STYLES[mark]).append(text)


def _parts(change: Change, names: Names) -> tuple[str, str, str]:
    match change:
        case Set(knob, before, value, back):
            return "<" if back else "~", setting_text(knob), f"{before} {ARROW} {value}"
        case Add(route):
            return "+", _route(route), _does(route, names)
        case Replace(before, route):
            return "~", _route(route), f"{_does(before, names)} {ARROW} {_does(route, names)}"
        case Remove(route):
            return "-", _route(route), _does(route, names)


def _fields(change: Change) -> dict[str, Any]:
    match change:
        case Set(knob, before, value, back):
            return {
                "change": "restore" if back else "set",
                "what": setting_text(knob),
                "before": before,
                "after": value,
            }
        case Add(route):
            return {"change": "add", "what": _route(route), "before": "", "after": _does(route, {})}
        case Replace(before, route):
            fields = {"change": "replace", "what": _route(route), "before": _does(before, {})}
            return {**fields, "after": _does(route, {})}
        case Remove(route):
            return {"change": "remove", "what": _route(route), "before": _does(route, {}), "after": ""}


def _route(route: Route) -> str:
    if isinstance(route, SidRoute):
        return f"SID {route.destination.network_address}"
    return f"route {route.destination}"


def _does(route: Route, names: Names) -> str:
    if isinstance(route, OddRoute):
        return route.text
    if isinstance(route, SidRoute):
        table = f" table {route.table}" if route.table != MAIN_TABLE else ""
        neighbour = f" to {route.next_hop} on {route.interface}" if route.next_hop else ""
        return f"{route.behaviour.value}{table}{neighbour}"
    shown = [_hop(hop, names, weighed=len(route.hops) > 1) for hop in route.hops]
    return " | ".join(shown)


def _hop(hop: Hop, names: Names, *, weighed: bool) -> str:
    segments = ", ".join(names.get(each, str(each)) for each in hop.segments)
    return f"{hop.weight}x [{segments}]" if weighed else f"by {segments}"
