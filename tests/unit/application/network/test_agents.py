"""States of agents."""

from __future__ import annotations

import pytest

from seaway.application.network.agents import MIN_SILENCE_S, UNREACHABLE_ROUNDS, AgentState
from seaway.domain.errors import UnavailableError
from seaway.domain.gateways import ProbeConfig
from tests.unit.application.network.scene import Scene, network

pytestmark = pytest.mark.anyio

UNREACHABLE_S = UNREACHABLE_ROUNDS * 10 + 1


@pytest.fixture
def scene() -> Scene:
    """Create a network of three gateways."""
    scene = Scene()
    scene.configuration.put(network(), "ada")
    scene.agents.step()
    return scene


def states(scene: Scene) -> list[str]:
    """Return the state of each agent."""
    return [each.state.value for each in scene.agents.views()]


async def test_silence_is_reported_once_and_its_end_too(scene: Scene) -> None:
    """An agent's first report, its silence and its return each cause one event, and nothing else does."""
    assert states(scene) == ["never"] * 3
    await scene.reports.take(scene.report(), "::1")
    scene.agents.step()
    scene.clock.advance_s(UNREACHABLE_S)
    scene.agents.step()
    assert states(scene) == ["reporting", "never", "never"]
    scene.clock.advance_s(1)
    for _ in range(3):
        scene.agents.step()
    assert states(scene)[0] == "lost"
    assert scene.agents.views()[0].age_s == UNREACHABLE_S + 1
    await scene.reports.take(scene.report(2), "::1")
    scene.agents.step()
    scene.agents.step()
    assert scene.reported("agent") == [
        "the agent of gw-1 reports for the first time",
        f"the agent of gw-1 has not reported for {UNREACHABLE_S} s",
        "the agent of gw-1 reports again",
    ]


async def test_no_one_is_called_unreachable_for_the_time_that_no_one_listened(scene: Scene) -> None:
    """After an outage of the control plane an agent has the usual time to report before it counts as silent."""
    await scene.reports.take(scene.report(), "::1")
    scene.clock.advance_s(1000)
    again = scene.again()
    again.agents.step()
    assert states(again)[0] == "lost"  # as far as is known
    again.clock.advance_s(UNREACHABLE_S)
    again.agents.step()
    assert again.reported("agent") == []
    again.clock.advance_s(1)
    again.agents.step()
    assert len(again.reported("agent")) == 1


async def test_a_clock_that_is_set_makes_no_one_unreachable(scene: Scene) -> None:
    """Silence is measured by the monotonic time."""
    await scene.reports.take(scene.report(), "::1")
    scene.clock.jump(10**9 * 10_000)
    assert (states(scene)[0], scene.agents.views()[0].age_s) == ("reporting", 0)


async def test_what_could_not_be_reported_is_reported_later(scene: Scene) -> None:
    """During a database outage nothing is reported, and all of it afterwards."""
    await scene.reports.take(scene.report(), "::1")
    scene.store.fail_next()
    with pytest.raises(UnavailableError):
        scene.agents.step()
    scene.agents.step()
    assert len(scene.reported("agent")) == 1


async def test_short_rounds_do_not_make_an_agent_unreachable_at_once(scene: Scene) -> None:
    """For any probe interval, an agent that sends several rounds in one report is not silent in between."""
    scene.configuration.put(network(probe=ProbeConfig(interval_s=0.1, timeout_s=0.1)), "ada")
    await scene.reports.take(scene.report(), "::1")
    scene.clock.advance_s(MIN_SILENCE_S)
    assert states(scene)[0] == "reporting"
    scene.clock.advance_s(0.1)
    assert states(scene)[0] == "lost"


async def test_agents_are_those_of_the_gateways_there_are(scene: Scene) -> None:
    """An agent whose gateway is removed is not listed and not missed; its record returns with the gateway."""
    await scene.reports.take(scene.report(5), "::1")
    scene.configuration.put(network(2, pairs=()), "ada")
    assert len(states(scene)) == 2
    scene.configuration.delete("ada")
    scene.clock.advance_s(1000)
    scene.agents.step()
    assert (scene.agents.views(), scene.reported("agent")) == ([], [])
    scene.configuration.put(network(), "ada")
    view = scene.agents.views()[0]
    assert view.known is not None
    assert (view.state, view.known.number) == (AgentState.LOST, 5)
