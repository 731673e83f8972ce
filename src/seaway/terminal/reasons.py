"""Explanation of a job in layers: summary, its position and the rules, and the scores of all candidates."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from seaway.domain.units import figure_text
from seaway.terminal.tables import Column, Rows
from seaway.terminal.words import NONE, NOWHERE, Body, ago, learned, until


def picture(body: Body, layers: int) -> RenderableType:
    """Return the summary of a reason with a number of layers below it."""
    shown: list[RenderableType] = [Text.assemble((body["name"], "bold"), f": {body['message']}")]
    if ended := body.get("end_reason"):
        shown.append(Text(f"  last attempt ended: {ended['message']}"))
    if duration := learned(body):
        shown.append(Text(f"  expected duration: {duration}"))
    shown += [Text(f"  {each['message']}") for each in body.get("advice", ())]
    explanation = body["explanation"]
    if layers:
        shown += _position_lines(body)
        if explanation:
            shown += refusals(explanation, placed=bool(body["placements"]))
    if layers > 1 and explanation:
        shown += remedies(explanation) + scores(explanation["candidates"])
    return Group(*shown)


def _position_lines(body: Body) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if body["position"]:
        lines.append(Text(f"  number {body['position']} in its queue; {_ahead(body['ahead'])} decided before it"))
        counted = " (by amounts, not nodes)" if body.get("start_counts") == "amounts" else ""
        lines.append(Text(f"  expected start: {until(body.get('estimated_start'))}{counted}"))
    if body["placement_reason"]:
        head = "last tried" if body["state"] in NOWHERE else "chosen because"
        decided = f" (decided {ago(body['decided_at'])} ago)" if body.get("decided_at") else ""
        lines.append(Text(f"  {head}{decided}: {body['placement_reason']['message']}"))
    lines += [Text(f"  replica {each['replica']}: {each['cluster']}/{each['node']}") for each in body["placements"]]
    return lines


def _ahead(jobs: int) -> str:
    if not jobs:
        return "nothing is"
    return "1 job is" if jobs == 1 else f"{jobs:,} jobs are"


def refusals(explanation: Body, *, placed: bool = False) -> list[RenderableType]:
    """Return a table with the number of nodes that each rule refuses now; of a placed job, its own use is free."""
    if not explanation["nodes"]:
        return []
    fit = explanation["nodes"] - sum(each["nodes"] for each in explanation["filtered"])
    nodes = "1 node" if explanation["nodes"] == 1 else f"{explanation['nodes']:,} nodes"
    own = ", not counting what it holds itself" if placed else ""
    head = f"\n{fit or 'none'} of {nodes} could take a replica now{own}"
    if not explanation["filtered"]:
        return [head]
    columns = (
        Column("NODES", lambda each: str(each["nodes"]), right=True),
        Column("REFUSED BY", lambda each: each["plugin"]),
        Column("BECAUSE", lambda each: each["message"], cut=True),
    )
    links = explanation.get("links", [])
    broken = ["\nlinks that break its bounds", *(f"  {each['message']}" for each in links)] if links else []
    return [head, Rows(columns, explanation["filtered"]), *broken]


def remedies(explanation: Body) -> list[RenderableType]:
    """Return a table of the smallest changes that make a job admissible."""
    if not explanation["remedies"]:
        return []
    columns = (
        Column("CHANGE", lambda each: figure_text(each["field"], each["requested"])[0]),
        Column("FROM", lambda each: _figure(each, "requested"), right=True),
        Column("TO", lambda each: _figure(each, "admits"), right=True),
        Column("AND IT FITS", _verified, cut=True),
    )
    return ["\nany one of these changes would admit it", Rows(columns, explanation["remedies"])]


def _figure(remedy: Body, which: str) -> str:
    return figure_text(remedy["field"], remedy[which])[1] if remedy[which] else NONE


def _verified(remedy: Body) -> str:
    """Describe the trial of a remedy."""
    place, nodes = f"{remedy['cluster']}/{remedy['node']}", remedy.get("nodes", 1)
    return place if nodes == 1 else f"{remedy['replicas']:,} replicas on {nodes:,} nodes, first {place}"


def scores(candidates: list[Body]) -> list[RenderableType]:
    """Return a table with each plugin's scores of the candidates."""
    if not candidates:
        return []
    plugins = list(candidates[0]["scores"])
    columns = (
        Column("CANDIDATE", lambda each: f"{each['cluster']}/{each['node']}", cut=True),
        *(Column(plugin, partial(_score, plugin), right=True, drop=1) for plugin in plugins),
        Column("TOTAL", lambda each: f"{each['total']:,}", right=True),
    )
    return ["\nscores of the best nodes now", Rows(columns, candidates)]


def _score(plugin: str, candidate: Body) -> str:
    return f"{candidate['scores'].get(plugin, 0):,}"
