"""Reports of agents are accepted correctly, or rejected as a whole."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.errors import SeawayError
from seaway.wire.network_views import MAX_PROBES, ReportIn
from seaway.wire.reading import read_json
from tests.unit.application.network.scene import Scene, network

JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
EDGES = st.sampled_from([-(2**63), -1, 0, 1, MAX_PROBES, MAX_PROBES + 1, 2**63 - 1, 2**63, 2**64, 0.5, "1", "", None])


@st.composite
def reports(draw: st.DrawFn, now_ns: int) -> dict[str, Any]:
    """Generate a valid report, and spoil up to three things in it."""
    received = draw(st.integers(0, 5))
    rounds: list[dict[str, Any]] = [
        {
            "target": draw(st.sampled_from(["gw-2", "gw-3"])),
            "path": "",
            "at_ns": now_ns - at,
            "sent": 5,
            "received": received,
            "latency_ns": draw(st.integers(0, 10**9)) if received else None,
            "jitter_ns": draw(st.integers(0, 10**6)) if received else 0,
            "discarded": 0,
        }
        for at in range(draw(st.integers(0, 3)))
    ]
    report: dict[str, Any] = {"gateway": "gw-1", "started_ns": now_ns, "number": 1, "dropped": 0, "rounds": rounds}
    for _ in range(draw(st.integers(0, 3))):
        place: dict[str, Any] = draw(st.sampled_from([report, *rounds]))
        name = draw(st.sampled_from([*place, "more"]))
        if draw(st.booleans()):
            place[name] = draw(EDGES | JUNK)
        else:
            place.pop(name, None)
    return report


def test_a_report_is_taken_as_it_came_or_left_no_trace() -> None:
    """An accepted report meets every rule; a rejected one has a clear error and changes nothing."""
    clock_ns = Scene().clock.now_ns()
    taken = refused = 0

    @given(reports(clock_ns))
    def check(report: dict[str, Any]) -> None:
        nonlocal taken, refused
        scene = Scene()
        scene.configuration.put(network(), "ada")
        before = len(scene.store.commits)
        try:
            given_ = read_json(ReportIn, orjson.dumps(report, option=orjson.OPT_NON_STR_KEYS, default=str)).report()
            asyncio.run(scene.reports.take(given_, "::1"))
        except (SeawayError, orjson.JSONEncodeError):  # a value that is not JSON cannot be sent
            refused += 1
            assert (scene.link_table.taken, len(scene.store.commits)) == ([], before)
            return
        taken += 1
        assert [rounds for _, rounds in scene.link_table.taken] == [given_.rounds]
        for each, written in zip(given_.rounds, report["rounds"], strict=True):
            assert 0 <= each.received <= each.sent <= MAX_PROBES
            assert (each.latency_ns is None) is (each.received == 0)
            assert {name: getattr(each, name) for name in written} == written

    check()
    assert taken
    assert refused


@given(st.binary(max_size=200) | JUNK.map(lambda value: repr(value).encode()))
def test_whatever_bytes_come_are_refused_in_our_words(body: bytes) -> None:
    """Bytes that are no report are always rejected with a clear error."""
    try:
        read_json(ReportIn, body)
    except SeawayError:
        return
    raise AssertionError(body)
