"""Commands for the kernel's own emulator, and its output."""

from __future__ import annotations

from lab.conditions import Conditions
from lab.emulation.netem import classes, counts, leaf
from lab.holding import Counts

NUMBERS = {f"gw-{number}": number for number in range(1, 18)}


def test_a_link_is_the_senders_class_on_the_receivers_interface() -> None:
    """Every receiver's interface has a class for every other gateway, numbered by sender, in hexadecimal."""
    lines = list(classes(NUMBERS))
    assert len(lines) == 17 + 17 * 16
    assert "class add dev gw-2 parent 1: classid 1:11 htb rate 100gbit quantum 60000" in lines
    assert not [line for line in lines if line.startswith("class add dev gw-2 parent 1: classid 1:2 ")]


def test_a_line_says_all_figures() -> None:
    """Each line has all values, as a missing one would not change; delays are exact to the nanosecond."""
    line = leaf("change", ("gw-17", "gw-2"), Conditions(20_000_001, 2_000_000, 10_001, 1000), NUMBERS)
    assert line.startswith("qdisc change dev gw-2 parent 1:11 handle 111: netem limit ")
    assert line.endswith(" delay 20000.001us 2000.000us loss 1.0001% rate 1000mbit")
    assert leaf("add", ("gw-1", "gw-2"), Conditions(), NUMBERS).endswith(
        " delay 0.000us 0.000us loss 0.0000% rate 0mbit"
    )


def test_counters_are_found_by_sender_and_receiver() -> None:
    """Packets that arrived are those passed on, lost and in transit; other queues are not links."""
    said = [
        {"kind": "htb", "handle": "1:", "dev": "gw-2", "packets": 9, "drops": 0, "bytes": 1},
        {"kind": "netem", "handle": "111:", "dev": "gw-2", "packets": 7, "drops": 2, "bytes": 700, "qlen": 1},
    ]
    assert counts(said, list(NUMBERS)) == {("gw-17", "gw-2"): Counts(10, 700, 2, released=7)}
