"""Binding cycle of a job: PreBind and Bind before its placements are stored, and PostBind after."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

import numpy as np

from seaway.domain.job import Job
from seaway.domain.placement import Placement
from seaway.scheduling.columns import CLUSTERS_ALLOWED
from seaway.scheduling.framework import PASS, Bind, Cycle, Plugin, PostBind, PreBind, Reserve, Status, Verdict
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


def bind(profile: Profile, placements: Iterable[Placement]) -> Status:
    """Bind the placements of a job with the PreBind and Bind plugins of a profile.

    For each placement, all PreBind plugins are called, then the Bind plugins until one does not return WAIT. Seaway
    acts as the last Bind plugin: it stores the placements and sends them to their clusters.

    Returns
    -------
    Status
        PASS, or the first status that is a rejection. An exception of a plugin is a rejection.
    """
    for placement in placements:
        for plugin in profile.at(PreBind):  # type: ignore[type-abstract]
            status = _call(plugin, plugin.pre_bind, placement)
            if not status.passes:
                return status
        for binder in profile.at(Bind):  # type: ignore[type-abstract]
            status = _call(binder, binder.bind, placement)
            if status.verdict is Verdict.REJECT:
                return status
            if status.passes:
                break
    return PASS


def _call(plugin: Plugin, call: Callable[[Placement], Status], placement: Placement) -> Status:
    try:
        return call(placement)
    except Exception as error:
        log.exception("plugin %s failed to bind a replica of job %s", plugin.name, placement.job)
        return Status(Verdict.REJECT, f"plugin {plugin.name} failed: {str(error) or type(error).__name__}")


def post_bind(profile: Profile, placements: Iterable[Placement]) -> None:
    """Call the PostBind plugins of a profile after the placements of a job are bound; log their exceptions."""
    for placement in placements:
        for plugin in profile.at(PostBind):  # type: ignore[type-abstract]
            try:
                plugin.post_bind(placement)
            except Exception:
                log.exception("plugin %s failed after job %s was bound", plugin.name, placement.job)


def unreserve(profile: Profile, snapshot: Snapshot, job: Job, placements: Iterable[Placement]) -> None:
    """Call `unreserve` of the Reserve plugins, in reverse order, for the released placements of a job."""
    plugins = profile.at(Reserve)  # type: ignore[type-abstract]
    if not plugins:
        return
    for placement in placements:
        cycle = Cycle(
            snapshot=snapshot,
            job=job,
            replica=placement.replica,
            demand_index=snapshot.demands.index(job.demand),
            random_bits=0,
            usable=snapshot.arrays.clusters_open[CLUSTERS_ALLOWED] != 0,
            feasible=np.ones(len(snapshot.nodes), np.bool_),
        )
        for plugin in reversed(plugins):
            try:
                plugin.unreserve(cycle, placement)
            except Exception:
                log.exception("plugin %s failed to unreserve a replica of job %s", plugin.name, placement.job)
