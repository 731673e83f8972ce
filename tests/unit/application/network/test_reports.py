"""Reports of agents."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random

import pytest

from seaway.application.network.reports import (
    MAX_AHEAD_S,
    MAX_AT_ONCE,
    MAX_ROUNDS,
    OLDEST_S,
    PER_S,
)
from seaway.domain.errors import ConflictError, RejectedError, TooManyError, UnavailableError, UnknownError
from seaway.probing.rounds import Round, figures
from tests.unit.application.network.scene import NS_PER_S, Scene, network

pytestmark = pytest.mark.anyio

START_NS = 10


@pytest.fixture
def scene() -> Scene:
    """Make a network of three gateways."""
    scene = Scene()
    scene.configuration.put(network(), "ada")
    return scene


async def test_a_report_is_taken(scene: Scene) -> None:
    """Anything that is right is handed to the book as it came, and taken down in numbers."""
    rounds = [
        scene.round(),
        scene.round("gw-2", path="around"),
        scene.round("gw-3", received=0, latency_ns=None, jitter_ns=0, discarded=2),
    ]
    await scene.reports.take(scene.report(4, *rounds, dropped=3, started_ns=START_NS), "::1")
    await scene.reports.take(scene.report(9, dropped=2, started_ns=START_NS), "::2")
    assert scene.link_table.taken[0] == ("gw-1", tuple(rounds))
    assert len(scene.link_table.taken) == 2
    (retained,) = scene.store.agents()
    assert (retained.started_ns, retained.number, retained.at_ns, retained.address) == (
        START_NS,
        9,
        scene.clock.now_ns(),
        "::2",
    )
    assert (retained.reports, retained.rounds, retained.dropped, retained.discarded) == (2, 4, 5, 2)


@pytest.mark.parametrize(
    ("started_ns", "number"), [(START_NS, 7), (START_NS, 6), (START_NS - 1, 8)], ids=["same", "older", "older start"]
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_report_counts_once(scene: Scene, started_ns: int, number: int, restarted: bool) -> None:
    """A report that is not newer than the last accepted one is a repetition, also after a restart."""
    await scene.reports.take(scene.report(7, started_ns=START_NS), "::1")
    if restarted:
        scene = scene.again()
    taken = len(scene.link_table.taken)
    with pytest.raises(ConflictError):
        await scene.reports.take(scene.report(number, started_ns=started_ns), "::1")
    assert len(scene.link_table.taken) == taken
    assert scene.store.agents()[0].number == 7
    await scene.reports.take(scene.report(1, started_ns=START_NS + 1), "::1")
    assert len(scene.link_table.taken) == taken + 1


async def test_of_two_that_come_together_one_counts(scene: Scene) -> None:
    """The same report sent twice at the same time counts once."""
    scene.writer.start()
    report = scene.report()
    came = await asyncio.gather(*(scene.reports.take(report, "::1") for _ in range(5)), return_exceptions=True)
    scene.writer.stop()
    assert sorted(type(each).__name__ for each in came) == ["ConflictError"] * 4 + ["NoneType"]
    assert len(scene.link_table.taken) == 1


async def test_what_is_not_stored_was_not_taken(scene: Scene) -> None:
    """A report that could not be stored is nowhere, and the same one is taken when it comes again."""
    scene.store.fail_next()
    with pytest.raises(UnavailableError):
        await scene.reports.take(scene.report(), "::1")
    assert (scene.link_table.taken, scene.agents.known("gw-1")) == ([], None)
    await scene.reports.take(scene.report(), "::1")
    assert len(scene.link_table.taken) == 1


async def test_wrong_rounds_are_reported_and_nothing_is_taken(scene: Scene) -> None:
    """Whatever is wrong with one round, the whole report is refused, and each mistake is reported with its place."""
    ahead_ns = scene.clock.now_ns() + (MAX_AHEAD_S + 1) * NS_PER_S
    good = scene.round("gw-3")
    wrong = {
        "rounds[1].target": scene.round("gw-1"),
        "rounds[2].target": scene.round("gw-9"),
        "rounds[3].path": scene.round("gw-2", path="scenic"),
        "rounds[4].path": scene.round("gw-3", path="around"),
        "rounds[5].at_ns": scene.round(at_ns=ahead_ns),
        "rounds[6].received": scene.round(received=6),
        "rounds[7].latency_ns": scene.round(latency_ns=None),
        "rounds[8].latency_ns": scene.round(received=0, jitter_ns=0),
        "rounds[9].jitter_ns": scene.round(received=0, latency_ns=None),
        "rounds[10]": good,
        "rounds[11].latency_ns": scene.round(latency_ns=0, jitter_ns=0),
        "rounds[12].jitter_ns": scene.round(received=1),
        "rounds[13].jitter_ns": scene.round(jitter_ns=9 * 4 + 3),
        "started_ns": None,
    }
    rounds = [good, *(each for each in wrong.values() if each)]
    with pytest.raises(RejectedError) as caught:
        await scene.reports.take(scene.report(1, *rounds, started_ns=ahead_ns), "::1")
    assert {each.where for each in (caught.value, *caught.value.also)} >= set(wrong)
    assert (scene.link_table.taken, scene.store.agents()) == ([], [])
    (own, *_) = scene.agents.views()
    assert own.refused == 1
    assert "ahead" in own.last_error


@pytest.mark.parametrize("count", range(1, 9))
async def test_whatever_figures_times_have_are_possible(scene: Scene, count: int) -> None:
    """No round that was measured is refused for its figures, however far one of its times is from the others."""
    random, rounds = Random(count), []
    for at in range(200):
        slow = min(int(random.paretovariate(0.3)), 10**10)
        rest = [0] * (count - 1) if at % 2 else [random.randrange(1, 1000) for _ in range(count - 1)]
        seen = figures(Round(count, (slow, *rest)))
        if seen.latency_ns:
            when_ns = scene.clock.now_ns() - at
            each = scene.round(at_ns=when_ns, sent=count, received=count, latency_ns=seen.latency_ns)
            rounds.append(replace(each, jitter_ns=seen.jitter_ns))
    await scene.reports.take(scene.report(1, *rounds), "::1")
    assert len(rounds) > 90


async def test_rounds_that_are_too_old_are_left_out(scene: Scene) -> None:
    """Anything that no agent would have kept is nothing to write down; it counts as given up, and the rest is taken."""
    now_ns = scene.clock.now_ns()
    old, oldest = (scene.round(at_ns=now_ns - OLDEST_S * NS_PER_S - each) for each in (1, 0))
    await scene.reports.take(scene.report(1, old, oldest, scene.round(at_ns=0), scene.round(), dropped=1), "::1")
    assert scene.link_table.taken == [("gw-1", (oldest, scene.round()))]
    (retained,) = scene.store.agents()
    assert (retained.rounds, retained.dropped) == (2, 3)


async def test_an_agent_brings_no_more_rounds_than_it_can_have_measured(scene: Scene) -> None:
    """All that it keeps in one go, and then twice what it has to measure; what is too much may come later."""
    some = [scene.round(at_ns=scene.clock.now_ns() - back) for back in range(2000)]
    for number in range(1, MAX_ROUNDS // 2000 + 1):
        await scene.reports.take(scene.report(number, *some), "::1")
    more = scene.report(99, *some[:8])
    with pytest.raises(TooManyError) as caught:
        await scene.reports.take(more, "::1")
    assert (caught.value.retry_after_s, len(scene.link_table.taken)) == (10, 30)  # 2 targets, 2 paths, every 10 s
    scene.clock.advance_s(10)
    await scene.reports.take(more, "::1")
    with pytest.raises(TooManyError):
        await scene.reports.take(scene.report(100), "::1")


async def test_a_clock_that_is_a_little_ahead_does(scene: Scene) -> None:
    """An agent's clock may differ by so much and no more: a start in the far future would keep all others out."""
    report = scene.report(started_ns=scene.clock.now_ns() + MAX_AHEAD_S * NS_PER_S)
    await scene.reports.take(report, "::1")
    with pytest.raises(RejectedError, match="ahead"):
        await scene.reports.take(replace(report, started_ns=report.started_ns + 1), "::1")


async def test_no_one_reports_for_a_gateway_that_is_not_there(scene: Scene) -> None:
    """Reports for unknown gateways are refused, and so are all when there is no network."""
    with pytest.raises(UnknownError):
        await scene.reports.take(scene.report(gateway="gw-9"), "::1")
    scene.configuration.delete("ada")
    with pytest.raises(UnknownError):
        await scene.reports.take(scene.report(), "::1")
    assert scene.link_table.taken == []


async def test_what_is_measured_follows_the_network(scene: Scene) -> None:
    """After a change of the network, rounds of what is gone are refused and those of what is new are taken."""
    with pytest.raises(RejectedError):
        await scene.reports.take(scene.report(1, scene.round("gw-4")), "::1")
    scene.configuration.put(network(4, pairs=()), "ada")
    await scene.reports.take(scene.report(2, scene.round("gw-4")), "::1")
    with pytest.raises(RejectedError, match="path 'around' to gw-2 is not measured"):
        await scene.reports.take(scene.report(3, scene.round(path="around")), "::1")


async def test_an_agent_that_floods_has_to_wait(scene: Scene) -> None:
    """After some in one go an agent may bring so many a second; another's are let through meanwhile."""
    for _ in range(MAX_AT_ONCE):
        scene.reports.admit("gw-1")
    for _ in range(3):
        with pytest.raises(TooManyError) as caught:
            scene.reports.admit("gw-1")
    assert caught.value.retry_after_s == 1
    scene.reports.admit("gw-2")
    scene.clock.advance_s(1)
    for _ in range(int(PER_S)):
        scene.reports.admit("gw-1")
    with pytest.raises(TooManyError):
        scene.reports.admit("gw-1")
