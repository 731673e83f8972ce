"""A link's history in steps, over HTTP."""

from __future__ import annotations

from itertools import chain

import pytest

from seaway.application.changes import Change
from seaway.application.fleet.link_history import NS
from seaway.application.records import LinkSample
from seaway.wire.fields import moment
from tests.fakes.records import link_sample
from tests.unit.api.rig import Rig

pytestmark = pytest.mark.anyio

PATH = "/api/v1/fleet/history/links/steps"
ENDS = {"source": "gw-1", "target": "gw-2"}


def sample(at_s: int, latency_ns: int | None = 100, **fields: int) -> LinkSample:
    """Create a sample at a time, seconds since 1970."""
    usual = {"jitter_ns": 10, "loss_ppm": 0, "bandwidth_mbps": 0, "used_mbps": 0}
    return link_sample(at_ns=at_s * NS, latency_ns=latency_ns, **ENDS, **{**usual, **fields})


def month(rig: Rig) -> dict[str, str]:
    """Return the parameters for the last thirty days, a day per step."""
    return {**ENDS, "since": moment(rig.clock.now_ns() - 30 * 86_400 * NS), "step": "86400"}


async def test_each_step_says_what_was_measured_within_it(rig: Rig) -> None:
    """Minimum, mean and maximum of known values are returned; empty steps are left out, and other links ignored."""
    now_s = rig.clock.now_ns() // NS // 3600 * 3600 - 3600
    known = {"bandwidth_mbps": 1000, "used_mbps": 7}
    first = [
        sample(now_s + 1, 100, jitter_ns=30, **known),
        sample(now_s + 9, 400),
        sample(now_s + 59, None, loss_ppm=10**6),
    ]
    dead = [sample(now_s + 130, None, loss_ppm=10**6)]
    rig.store.commit([Change(insert=list(chain(first, dead)))])
    query = month(rig)
    async with rig.client("viewer") as client:
        whole = (await client.get(PATH, params=query)).json()["steps"]
        since = whole[0]["at"]
        found = (await client.get(PATH, params={**ENDS, "since": since, "step": 60})).json()
        other = (await client.get(PATH, params={**query, "target": "gw-3"})).json()
    one, two = found["steps"]
    assert (found["step_s"], one["samples"], two["samples"], len(whole), other["steps"]) == (60, 3, 1, 1, [])
    assert one["latency_ns"] == {"min": 100, "mean": 250, "max": 400}
    assert one["jitter_ns"] == {"min": 10, "mean": 20, "max": 30}
    assert one["loss_ppm"] == {"min": 0, "mean": pytest.approx(10**6 / 3), "max": 10**6}
    assert (one["bandwidth_mbps"]["mean"], one["used_mbps"]["max"]) == (1000, 7)
    assert (two["latency_ns"], two["jitter_ns"], two["bandwidth_mbps"], two["loss_ppm"]["min"]) == (None,) * 3 + (
        10**6,
    )


async def test_a_week_is_read_whole(rig: Rig) -> None:
    """Each sample counts once over any number of pages."""
    now_s = rig.clock.now_ns() // NS
    rig.store.commit([Change(insert=[sample(now_s - 60 * minute) for minute in range(2500)])])
    async with rig.client("viewer") as client:
        found = await client.get(PATH, params=month(rig))
    assert sum(each["samples"] for each in found.json()["steps"]) == 2500


async def test_more_steps_than_anybody_sees_are_refused(rig: Rig) -> None:
    """Too many steps are rejected with the remedy; so is a request without a link."""
    async with rig.client("viewer") as client:
        answer = await client.get(PATH, params={**ENDS, "since": "1990-01-01T00:00:00Z", "step": 60})
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "step")
        assert (await client.get(PATH, params={**ENDS, "source": "", "since": "", "step": 60})).status_code == 422
