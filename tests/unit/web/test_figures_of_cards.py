"""Anything that is reported of cards: how old figures are, which model it is, and why it takes no work."""

from __future__ import annotations

import pytest

from seaway.application.whatif.dry_run import MAX_ROOM as COUNTED
from seaway.domain.reasons import Reason
from seaway.web.fragment import written
from seaway.web.pages.jobs.submit import MAX_ROOM
from seaway.web.parts.slices import JOB, painter, used_text, without_seconds
from seaway.web.words import Words
from seaway.wire.fleet import AllocatedSlice, AmountOut, DeviceOut, NodeOut, UsedOut
from seaway.wire.message import with_message


def card(model: str = "NVIDIA A100", age_s: float = 0, reason: str = "") -> DeviceOut:
    """Make a card of which half is really used."""
    amount = AmountOut(total=1000, used=0, free=1000)
    used = UsedOut(memory_bytes=500 << 20, core_milli=500, age_s=age_s)
    names = {"cluster": "a", "node": "n", "uuid": "u", "model": model, "vendor": "NVIDIA", "mode": "hami-core"}
    more = {"index": 0, "healthy": True, **with_message(reason), "share_limit": 10, "slices": [], "used": used}
    return DeviceOut.model_validate({**names, **more, "memory_mib": amount, "core_milli": amount})


@pytest.mark.parametrize(("age_s", "said"), [(2, ""), (59, ""), (61, "1 min"), (179, "2 min"), (7300, "2 h 1 min")])
def test_what_was_measured_long_ago_says_so(age_s: float, said: str) -> None:
    """From a minute on, in whole minutes, so that what stays the same is not sent again each second."""
    (shown,) = without_seconds([card(age_s=age_s)])
    assert shown.used is not None
    text = used_text(shown.used, shown, Words())
    assert (f"measured {said} ago" in text) if said else ("ago" not in text)


def drawn(*devices: DeviceOut, reason: str = "") -> str:
    """Draw a node of some cards."""
    amount = AmountOut(total=1, used=0, free=1)
    amounts = {"cpu_milli": amount, "memory_mib": amount, "pods": None}
    fields = {"cluster": "a", "name": "n", "ready": not reason, "cordon": None, "devices": devices}
    node = NodeOut.model_validate({**fields, **amounts, **with_message(reason)})
    return written("fleet_node", Words(), node=node, paint=painter(Words(), JOB, ()), meant=lambda _: True)


def test_models_that_begin_alike_are_distinguished() -> None:
    """The whole name is there to be read, also where it is cut by a user's own fonts."""
    assert 'title="NVIDIA A16">A16<' in drawn(card("NVIDIA A16"), card("NVIDIA A160"))
    once = drawn(card("NVIDIA A16"), card("NVIDIA A16"))
    assert "2 × NVIDIA A16" in once
    assert once.count("A16") == once.count("2 × NVIDIA A16") + 2  # in the tips of both cards


def test_cards_without_room_for_jobs_have_no_free_memory() -> None:
    """A card of a node that accepts no jobs says so in place of its free memory."""
    assert "free<" in drawn(card()).replace(" ", "")
    closed = drawn(card(reason=Reason("of_node", what="down")), reason=Reason("reported_not_ready"))
    assert "GiB free" not in closed


def test_instances_of_a_whole_card_fill_its_bar_and_not_more() -> None:
    """Their cores are rounded up in thousandths, so that they are shown as compute slices of the card."""
    fields = {"cluster": "a", "node": "n", "uuid": "u", "job_id": "", "job": "", "tenant": "", "attempt": 0}
    more = {"replica": 0, "pod": "", "container": "", "used": None}
    instances = [("2g.10gb", 290, 286)] * 3 + [("1g.5gb", 150, 143)]
    slices = [
        AllocatedSlice.model_validate(
            {**fields, **more, "mig_profile": name, "core_milli": milli, "memory_mib": memory_mib}
        )
        for name, milli, memory_mib in instances
    ]
    device = card().model_copy(update={"slices": slices})
    paint = painter(Words(), JOB, slices)
    assert [paint.cores(each, 1000) for each in slices] == ["2/7", "2/7", "2/7", "1/7"]
    cuts = paint.cuts(device)
    assert sum(each.cores for each in cuts) == pytest.approx(100)
    assert sum(each.memory for each in cuts) == pytest.approx(100)


def test_why_a_cluster_takes_no_work_is_not_said_at_each_of_its_nodes() -> None:
    """It stands once, at the cluster; what is a node's own is present."""
    assert "node-reason" not in drawn(card(), reason=Reason("cluster_silent", why="timed out"))
    assert "node-reason" in drawn(card(), reason=Reason("reported_not_ready"))


def test_room_is_a_bound_where_the_api_counts_no_further() -> None:
    """Anything that pages take for the bound is what the API stops at."""
    assert MAX_ROOM == COUNTED
