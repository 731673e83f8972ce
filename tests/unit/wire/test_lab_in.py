"""The links of a lab as people write them."""

from __future__ import annotations

import pytest

from lab.conditions import Conditions
from lab.links import ConditionsIn, LinksIn
from seaway.domain.errors import RejectedError
from seaway.wire.reading import read_value, read_yaml_message

GATEWAYS = ["gw-1", "gw-2", "gw-3"]
MS = 1_000_000


def test_links_are_read_with_their_units() -> None:
    """Named links have what they say and the default for the rest, both ways or one; all others have the default."""
    links = read_yaml_message(
        LinksIn,
        """
        default: {delay: 5ms, loss: 0.1%}
        links:
          - {between: [gw-1, gw-2], delay: 20ms, jitter: 2ms, rate: 1Gbps}
          - {from: gw-2, to: gw-1, loss: 2%}
        """,
    ).conditions(GATEWAYS)
    assert len(links) == 6
    assert links["gw-1", "gw-2"] == Conditions(20 * MS, 2 * MS, 1_000, 1_000)
    assert links["gw-2", "gw-1"] == Conditions(20 * MS, 2 * MS, 20_000, 1_000)
    assert links["gw-3", "gw-1"] == Conditions(5 * MS, 0, 1_000)


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("{between: [gw-1, gw-9]}", "gateway 'gw-9' not found"),
        ("{from: gw-1, to: gw-1}", "no link to itself"),
        ("{from: gw-1}", "say `between"),
        ("{between: [gw-1, gw-2], to: gw-3}", "say `between"),
        ("{between: [gw-1, gw-2], jitter: 6ms}", "as large as the delay"),
        ("{between: [gw-1, gw-2], dealy: 6ms}", "did you mean 'delay'"),
        ("{between: [gw-1, gw-2], loss: 101%}", "more than all"),
    ],
)
def test_a_link_that_cannot_be_is_refused_and_named(link: str, says: str) -> None:
    """The error says what is wrong, and which link it is."""
    with pytest.raises(RejectedError, match=says) as caught:
        read_yaml_message(LinksIn, f"{{default: {{delay: 5ms}}, links: [{link}]}}").conditions(GATEWAYS)
    assert caught.value.where.startswith("links[0]")


def test_all_wrong_links_are_reported_together() -> None:
    """A user who corrects a file sees everything at once."""
    with pytest.raises(RejectedError) as caught:
        read_value(LinksIn, {"links": [{"from": "x", "to": "gw-1"}, {"from": "gw-1", "to": "y"}]}).conditions(GATEWAYS)
    assert [each.where for each in (caught.value, *caught.value.also)] == ["links[0]", "links[1]"]


def test_a_change_leaves_what_it_does_not_name() -> None:
    """Only what is given changes, and 0 is a figure like others."""
    before = Conditions(20 * MS, 2 * MS, 500, 100)
    assert read_value(ConditionsIn, {"loss": "5%"}).change(before) == Conditions(20 * MS, 2 * MS, 50_000, 100)
    assert read_value(ConditionsIn, {"rate": "0"}).change(before) == Conditions(20 * MS, 2 * MS, 500)
    assert read_value(ConditionsIn, {}).change(before) == before
