from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from seaway.domain.gateways import NetworkConfig
from seaway.steering.difference import Add, Set, difference
from seaway.steering.state import NOTHING, TUNNEL_SOURCE, CurrentState, GatewayState, Setting, desired
from tests.fakes.kernel import carried_out, make_present
from tests.property.networks import networks


@st.composite
def machines(draw: st.DrawFn) -> CurrentState:
    """Generate a machine as it is before Seaway configures it: any settings may already be on."""
    usual = make_present(["lo", "wan", "lan", "e0"])
    settings = {knob: draw(_values(knob, value)) for knob, value in usual.settings.items()}
    foreign = tuple(replace(usual.foreign[0], interface=name) for name in ("wan", "e0"))
    return replace(usual, settings=settings, foreign=foreign)


def _values(knob: Setting, usual: str) -> st.SearchStrategy[str]:
    if knob == TUNNEL_SOURCE:
        return st.sampled_from(["::", "fd00:51d:1::1", "fd00::9"])
    return st.sampled_from(["0", "1"]) if usual in {"0", "1"} else st.sampled_from(["1500", "9000"])


@st.composite
def states(draw: st.DrawFn) -> GatewayState:
    """Generate the state of a gateway, for any choice of paths."""
    network: NetworkConfig = draw(networks(least=1))
    gateway = draw(st.sampled_from(network.gateways))
    active = {
        pair.target: draw(st.sampled_from(pair.paths)).name
        for pair in network.pairs_from(gateway)
        if not pair.load_balance and draw(st.booleans())
    }
    return desired(network, gateway.name, active)


@given(states(), machines())
def test_what_was_applied_needs_no_more(wanted: GatewayState, machine: CurrentState) -> None:
    """A second apply finds no changes, and preserves what the first stored."""
    applied = carried_out(difference(wanted, machine), machine)
    assert {route.destination for route in applied.routes} == {route.destination for route in wanted.routes}
    again = difference(wanted, applied)
    assert again.changes == ()
    assert again.saved == applied.saved


@given(st.lists(states(), min_size=1, max_size=3), machines())
def test_remove_leaves_exactly_what_was_there(wanted: list[GatewayState], machine: CurrentState) -> None:
    """Whatever was applied in between, in any order, the machine is as before."""
    now = machine
    for each in wanted:
        now = carried_out(difference(each, now), now)
    assert carried_out(difference(NOTHING, now), now) == machine


@given(states(), machines())
def test_nothing_leads_packets_to_what_is_not_ready(wanted: GatewayState, machine: CurrentState) -> None:
    """All settings are written before the first route."""
    kinds = [isinstance(each, Set) for each in difference(wanted, machine).changes if isinstance(each, Set | Add)]
    assert kinds == sorted(kinds, reverse=True)
