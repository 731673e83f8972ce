"""Calls that join clusters, and leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seaway.client.call import Answer, Call, Model, Nothing, get, part, send

if TYPE_CHECKING:
    from seaway.wire.joins import JoinCreated, JoinDone, JoinList, JoinOut

_WIRE = "seaway.wire.joins"

JOIN: Answer[JoinOut] = Model(_WIRE, "JoinOut")
JOINS: Answer[JoinList] = Model(_WIRE, "JoinList")
CREATED: Answer[JoinCreated] = Model(_WIRE, "JoinCreated")
DONE: Answer[JoinDone] = Model(_WIRE, "JoinDone")


def joins() -> Call[JoinList]:
    """List the joins in progress, and the joined clusters; requires an admin."""
    return get("/fleet/joins", JOINS)


def begin_join(kubeconfig: str = "", context: str = "") -> Call[JoinCreated]:
    """Begin to join a cluster by a kubeconfig; without one, the answer has a command that creates it."""
    return send("POST", "/fleet/joins", CREATED, {"kubeconfig": kubeconfig, "context": context}, repeatable=False)


def join(join_id: str) -> Call[JoinOut]:
    """Return a join with the results of its checks so far."""
    return get(f"/fleet/joins/{part(join_id)}", JOIN)


def finish_join(join_id: str, name: str = "", *, replace: bool = False) -> Call[JoinDone]:
    """Complete a join: store its kubeconfig."""
    fields = {"name": name, "replace": replace}
    return send("POST", f"/fleet/joins/{part(join_id)}/finish", DONE, fields, repeatable=False)


def drop_join(join_id: str) -> Call[None]:
    """End a join without a result."""
    return send("DELETE", f"/fleet/joins/{part(join_id)}", Nothing(), repeatable=False)


def leave_cluster(name: str) -> Call[None]:
    """Leave a joined cluster. Its workloads continue, and its jobs are placed elsewhere after the grace period."""
    return send("POST", f"/fleet/clusters/{part(name)}/leave", Nothing(), repeatable=False)
