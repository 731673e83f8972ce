"""Addresses and headers for targets."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from seaway.adapters.probes.channel import ProbePath, probe_path
from seaway.application.ports.agent import Target
from seaway.probing import packets

SEGMENT = IPv6Address("fd00:51d:2::e")


@pytest.mark.parametrize("address", [IPv4Address("10.0.0.1"), IPv6Address("fd00::1"), IPv6Address("fe80::1%wan")])
def test_an_address_is_asked_to_sockets_as_it_is(address: IPv4Address | IPv6Address) -> None:
    """It includes the interface if there is one, which a link-local address needs."""
    assert probe_path(Target("gw", address), 9) == ProbePath((str(address), 9))


def test_segments_become_a_header_that_ends_at_the_target() -> None:
    """The target itself is the last segment."""
    address = IPv6Address("fd00::1")
    made = probe_path(Target("gw", address, segments=(SEGMENT,)), 0)
    assert packets.decode_srh(made.header).segments == (SEGMENT, address)
