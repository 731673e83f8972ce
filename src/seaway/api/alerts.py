"""What is wrong."""

from __future__ import annotations

from fastapi import Request, Response

from seaway.api.desk import desk_of, who_of
from seaway.api.replies import json_reply
from seaway.api.routes import operation, router
from seaway.application.alerts import DATABASE, QUEUE_LONG
from seaway.application.records import Role
from seaway.wire.alerts import AlertList, alert_fields

routes = router("health")


@operation(routes, "GET", "/alerts", Role.VIEWER, {200: AlertList})
async def list_alerts(request: Request) -> Response:
    """List what is wrong by the bounds that the rules for Prometheus have, looked at every 15 s since the start.

    Tokens of a tenant are told of clusters, and of queues that they see.
    """
    desk, who = desk_of(request), who_of(request)
    wrong = desk.plane.alerts.wrong()
    if who.tenant:
        queues = await desk.threads.read(desk.plane.store.queues) if wrong else []
        seen = {queue.name for queue in queues if who.may_see(queue.tenant)}
        wrong = [
            each for each in wrong if each.rule not in DATABASE and (each.rule is not QUEUE_LONG or each.of in seen)
        ]
    return json_reply({"alerts": [alert_fields(each) for each in wrong]})
