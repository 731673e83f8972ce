"""Carrying a plan out: PreBind, Bind and PostBind, one placement after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seaway.domain.placement import Placement
from seaway.scheduling.columns import CLUSTERS_GATE, PLAN_DEMAND, PLAN_JOB
from seaway.scheduling.framework import Bind, Cycle, PostBind, PreBind, Reserve, Status, Verdict
from seaway.scheduling.plan import Plan
from seaway.scheduling.profile import Profile

NOBODY = Status(Verdict.REFUSE, "no plugin carries this placement out")


@dataclass(frozen=True, slots=True)
class Bound:
    """What became of one placement.

    Attributes
    ----------
    placement
        The placement.
    status
        PASS when it was carried out; else why not, and what it held was given back.
    """

    placement: Placement
    status: Status


def carry_out(plan: Plan, profile: Profile) -> list[Bound]:
    """Carry out a committed plan by a profile's plugins.

    Every PreBind plugin is asked; the first Bind plugin that does not answer WAIT does it; every PostBind
    plugin is told. When one refuses, Reserve plugins are told, and the snapshot gets back what the
    placement held. That goes for one replica: of a gang, the others stay as they are, and whoever carries plans
    out decides whether to end them.

    Returns
    -------
    list of Bound
        In the order of the plan; decisions that found no node are left out.
    """
    results = []
    for row in np.flatnonzero(plan.placed):
        placement = plan.placement(int(row))
        status = _bind(placement, profile)
        if status.passes:
            for told in profile.at(PostBind):  # type: ignore[type-abstract]
                told.post_bind(placement)
        else:
            _take_back(plan, int(row), placement, profile)
        results.append(Bound(placement, status))
    return results


def _bind(placement: Placement, profile: Profile) -> Status:
    for plugin in profile.at(PreBind):  # type: ignore[type-abstract]
        status = plugin.pre_bind(placement)
        if not status.passes:
            return status
    for binder in profile.at(Bind):  # type: ignore[type-abstract]
        status = binder.bind(placement)
        if status.verdict is not Verdict.WAIT:
            return status
    return NOBODY


def _take_back(plan: Plan, row: int, placement: Placement, profile: Profile) -> None:
    snapshot = plan.snapshot
    cycle = Cycle(
        snapshot=snapshot,
        job=plan.queue.jobs[int(plan.lines[row, PLAN_JOB])],
        replica=placement.replica,
        line=int(plan.lines[row, PLAN_DEMAND]),
        draw=0,
        usable=snapshot.arrays.clusters_open[CLUSTERS_GATE] != 0,
        feasible=np.ones(len(snapshot.nodes), np.bool_),
    )
    for plugin in profile.at(Reserve):  # type: ignore[type-abstract]
        plugin.unreserve(cycle, placement)
    snapshot.release(plan.lines, plan.slices, np.array([row]))
