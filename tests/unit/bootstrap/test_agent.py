"""Anything that an agent checks before it opens anything."""

from __future__ import annotations

from ipaddress import IPv6Address
from pathlib import Path
from unittest.mock import Mock

import pytest

from seaway.application.agent.settings import AgentSettings
from seaway.application.ports.agent import Assignment
from seaway.bootstrap.agent import ASK_S, Known, ask_address, know
from seaway.bootstrap.settings import load_settings
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.gateways import GatewayConfig, Method, NetworkConfig

SERVER = "http://127.0.0.1:1"
TOKEN = {"SEAWAY_TOKEN": "sw_1_secret"}
NETWORK = NetworkConfig(
    (
        GatewayConfig("gw-1", IPv6Address("fd00::1"), cluster="a", method=Method.UDP, port=8627),
        GatewayConfig("gw-2", IPv6Address("fd00::2"), cluster="b"),
    )
)


def test_file_says_what_to_probe_and_where_from() -> None:
    """With a network file an agent knows its address, whom to probe, and what to send back, without asking anybody."""
    known = know(AgentSettings(gateway="gw-1"), {}, NETWORK)
    assert known.controller is None
    assert known.address == IPv6Address("fd00::1")
    assert isinstance(known.first, Assignment)
    assert [each.gateway for each in known.first.targets] == ["gw-2"]
    assert known.first.reflect == 8627


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (AgentSettings(server=SERVER), "which gateway"),
        (AgentSettings(gateway="gw-1"), "whom to report to"),
        (AgentSettings(gateway="gw-1", server=SERVER, user="root"), "is root"),
        (AgentSettings(gateway="gw-1", server=SERVER, address="here"), "not an address"),
        (AgentSettings(gateway="gw-1", server=SERVER, token_file="/nowhere/token"), "cannot be read"),
        (AgentSettings(gateway="gw-1", server=SERVER), "--token-file"),
    ],
)
def test_what_is_missing_or_wrong_is_reported(settings: AgentSettings, why: str) -> None:
    """Anything that cannot work is refused at the start, before any socket is opened."""
    with pytest.raises(RejectedError, match=why):
        know(settings, {}, None)


def test_gateway_that_the_file_does_not_have() -> None:
    """A gateway that is not in the file is refused, with those that are."""
    with pytest.raises(RejectedError, match="available: gw-1, gw-2"):
        know(AgentSettings(gateway="gw-3"), {}, NETWORK)


def test_token_comes_from_the_file_before_the_environment(tmp_path: Path) -> None:
    """A token file goes before the environment, and white space around the token is passed over."""
    file = tmp_path / "token"
    file.write_text(" sw_2_other\n", encoding="ascii")
    for path, token in ((str(file), "sw_2_other"), ("", "sw_1_secret")):
        known = know(AgentSettings(gateway="gw-1", server=SERVER, token_file=path), TOKEN, None)
        assert known.controller is not None
        assert known.controller.client.target.token == token


def test_address_is_asked_for_where_nothing_says_it() -> None:
    """The server is asked for the address until it answers; an address that was given, or `any`, needs no server."""
    settings = AgentSettings(gateway="gw-1", server=SERVER)
    known = know(settings, TOKEN, None)
    controller = Mock()
    controller.own_address.side_effect = [UnavailableError("away"), IPv6Address("fd00::1")]
    asked = Known(known.account, controller, None, None)
    pauses: list[float] = []
    assert ask_address(settings, asked, pauses.append) == IPv6Address("fd00::1")
    assert pauses == [ASK_S]
    controller.own_address.side_effect = UnavailableError("away")
    with pytest.raises(UnavailableError):
        ask_address(settings, asked, None)
    routes = AgentSettings(gateway="gw-1", server=SERVER, address="any")
    assert ask_address(routes, asked, None) is None
    given = AgentSettings(gateway="gw-1", server=SERVER, address="fd00::7")
    assert ask_address(given, know(given, TOKEN, None), None) == IPv6Address("fd00::7")


def test_figures_that_make_no_sense_are_refused() -> None:
    """Limits of an agent must be more than 0."""
    names = ("refresh_s", "queue_rounds", "queue_mib", "request_timeout_s")
    with pytest.raises(RejectedError) as refused:
        load_settings(None, {}, {("agent", name): 0 for name in names})
    wheres = [each.where for each in (refused.value, *refused.value.also)]
    assert wheres == [f"[agent] {name}" for name in names]
