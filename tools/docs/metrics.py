"""The reference of metrics, from what `/metrics` collects."""

from __future__ import annotations

from unittest.mock import patch

from prometheus_client import CollectorRegistry, Metric

from seaway.api.http import meter as meters
from seaway.api.metrics import LINK_METRICS
from seaway.application.fleet.overview import Overview
from seaway.learning.policies.monitor import BOUNDS_S, PolicyCount, Reason
from seaway.wire.metrics import METRICS
from tools.docs.application import Server
from tools.docs.markdown import code, table

HEAD = ["metric", "type", "labels", "description"]


def metrics_page(server: Server) -> str:
    """Return the page: metrics of GPUs and links, then those of Seaway itself."""
    gpus = [[code(name), "gauge", each.layer.value, each.says] for name, each in METRICS.items()]
    links = [[code(name), "gauge", each.says] for name, each in LINK_METRICS.items()]
    own = sorted(families(server), key=lambda each: each.name)
    return "\n".join(
        [
            "# Metrics\n",
            "All metrics at `/metrics`. [Metrics](../docs/metrics.md) explains their labels and how to use them.\n",
            "## GPUs\n",
            table(["metric", "type", "of", "description"], gpus),
            "## Links\n",
            table(["metric", "type", "description"], links),
            "## Seaway itself\n",
            table(HEAD, [_row(each) for each in own if each.name.startswith("seaway_")]),
            "## The process\n",
            table(HEAD, [_row(each) for each in own if not each.name.startswith("seaway_")]),
        ]
    )


def families(server: Server) -> list[Metric]:
    """Return everything that Seaway counts about itself, also what has not happened yet."""
    meter, registries = server.app.state.meter, []

    def collect(registry: CollectorRegistry) -> bytes:
        registries.append(registry)
        return b""

    for tally in vars(meter).values():
        if isinstance(tally, meters.Tally):
            tally.count("", 200, 0)
    decided = PolicyCount((0,) * (len(BOUNDS_S) + 1), 0, dict.fromkeys(Reason, 0))
    with (
        patch.object(meters, "generate_latest", collect),
        patch.object(Overview, "policy_counts", return_value={"": decided}),
    ):
        state = server.app.state
        clients = meters.Clients(0, state.connections, state.sessions.by_kind())
        meter.text(server.plane, state.pipeline.audit, clients, by_queue=True)
    return [family for registry in registries for family in registry.collect()]


def _row(family: Metric) -> list[str]:
    name = f"{family.name}_total" if family.type == "counter" else family.name
    labels = {label for sample in family.samples for label in sample.labels}
    labels |= set(getattr(family, "_labelnames", ()))  # of what has no series yet
    names = ", ".join(code(each) for each in sorted(labels - {"le"}))
    return [code(name), family.type, names, family.documentation]
