"""Every policy decides with machine code, even if only for the rules of fit, as with its plugins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plan import Plan
from seaway.scheduling.policies.registry import BUILT_IN, Level, PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.snapshot.snapshot import Snapshot
from tests.property.strategies import fleets, jobs

EXAMPLES = settings().max_examples // 6
"""A sixth of the profile's number: there are many policies."""

LEDGERS = ("nodes", "devices", "blocks", "clusters", "bandwidth", "gateways")
"""The tables of total and free resources."""


def policies_of_plugins() -> list[tuple[str, Level]]:
    """Return each policy and level that consists of plugins: machine code checks the fit for all of them."""
    found: list[tuple[str, Level]] = []
    levels: tuple[Level, ...] = ("node", "cluster")
    for name in BUILT_IN:
        for level in levels:
            try:
                policy = make_policy(name, PolicyOptions(level=level))
            except RejectedError:
                continue
            if isinstance(policy, Profile):
                found.append((name, level))
    return found


def decided(fleet: Fleet, queue: list[Job], name: str, options: PolicyOptions) -> Plan:
    """Schedule a queue on an empty fleet."""
    snapshot = Snapshot(fleet)
    return decide(snapshot, JobQueue(snapshot, queue), make_policy(name, options))


def assert_same(one: Plan, other: Plan) -> None:
    """Check that two plans and the resulting fleets are equal."""
    np.testing.assert_array_equal(one.decisions, other.decisions)
    np.testing.assert_array_equal(one.slices, other.slices)
    for table in LEDGERS:
        left, right = (getattr(plan.snapshot.arrays, table) for plan in (one, other))
        np.testing.assert_array_equal(left, right, err_msg=table)


@pytest.mark.parametrize(("name", "level"), policies_of_plugins())
@settings(max_examples=EXAMPLES)
@given(fleet=fleets(), queue=jobs(), seed=st.integers(0, 5))
def test_machine_code_decides_as_plugins_do(name: str, level: Level, fleet: Fleet, queue: list[Job], seed: int) -> None:
    """Both code paths choose the same nodes and devices and leave the same fleet."""
    plans = [
        decided(fleet, queue, name, PolicyOptions(level=level, seed=seed, mix=queue, plain=plain))
        for plain in (False, True)
    ]
    assert_same(*plans)
