"""All dashboards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.device import device_dashboard
from dashboards.fleet import fleet
from dashboards.frame import Frame, build
from dashboards.jobs import jobs
from dashboards.language import Language
from dashboards.network import network
from dashboards.scheduler import scheduler
from dashboards.vgpu import vgpu

DASHBOARDS: Mapping[str, Callable[[Language], Frame]] = {
    "fleet": fleet,
    "device": device_dashboard,
    "vgpu": vgpu,
    "network": network,
    "scheduler": scheduler,
    "jobs": jobs,
}
"""Dashboards by name, in the order of the menu."""


def dashboards(language: Language) -> dict[str, Dashboard]:
    """Build all dashboards, by name."""
    return {name: build(frame(language), language) for name, frame in DASHBOARDS.items()}
