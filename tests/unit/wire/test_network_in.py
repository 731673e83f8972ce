from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from seaway.domain.errors import RejectedError
from seaway.domain.facts import Location
from seaway.domain.gateways import Method
from seaway.wire.network_in import EXAMPLE, GatewayIn, NetworkConfigIn, network_text
from seaway.wire.reading import read_json, read_value, read_yaml_message
from tests.fakes.gateways import make_path

DOCUMENT = """
probe: {interval: 2s, timeout: 500ms}
gateways:
  - name: gw-1
    cluster: cluster-1
    address: fd00:51d:1::1
    interface: wan
    locator: fd00:51d:1::/48
    sids:
      - {sid: "fd00:51d:1::e", behaviour: End}
      - {sid: "fd00:51d:1::d6", behaviour: End.DT6}
      - {sid: "fd00:51d:1::d7", behaviour: End.DX6, next_hop: "fd00:a:1::2", interface: lan}
    prefixes: [fd00:a:1::/64]
    speed: 10Gbps
    exporter: http://[fd00:51d:1::1]:9100/metrics
    probe: {method: udp, port: 8627}
  - {name: gw-2, site: office, address: "2001:db8::1", location: {latitude: 52.5, longitude: 13.4}}
"""


def wrong(document: dict[str, Any]) -> list[str]:
    """Return all that is informed of a document."""
    with pytest.raises(RejectedError) as caught:
        read_value(NetworkConfigIn, document).config()
    return [str(caught.value), *map(str, caught.value.also)]


def test_a_file_says_all_that_a_gateway_has() -> None:
    """Each field of the document gets to where Seaway looks for it, in its units."""
    config = read_yaml_message(NetworkConfigIn, DOCUMENT).config()
    first, second = config.gateways
    assert (config.probe.interval_s, config.probe.count, config.probe.timeout_s, config.mesh) == (2.0, 5, 0.5, True)
    assert (first.speed_mbps, first.method, first.port) == (10_000, Method.UDP, 8627)
    assert [str(sid.next_hop) for sid in first.sids] == ["None", "None", "fd00:a:1::2"]
    assert (second.locator, str(second.address), second.site) == (None, "2001:db8::1", "office")
    assert (first.location, second.location) == (None, Location(52.5, 13.4))


def test_a_name_stands_for_end_on_the_way_and_end_dt6_at_the_end() -> None:
    """In a segment list a gateway's name needs no SID."""
    (pair,) = read_value(NetworkConfigIn, EXAMPLE).config().pairs
    assert pair.paths == (make_path("direct", 1, weight=2), make_path("via-2", 2, 1))


def test_names_are_written_where_they_say_the_same() -> None:
    """A user who reads a document that Seaway wrote sees names, not addresses."""
    text = network_text(read_value(NetworkConfigIn, EXAMPLE).config())
    assert [each["segments"] for each in text["paths"][0]["paths"]] == [["gw-1"], ["gw-2", "gw-1"]]


def test_mistakes_of_form_are_reported_together() -> None:
    """Unknown fields, missing ones and values that cannot be read are reported at once, each with its place."""
    reported = wrong({"gateways": [{"nam": "x", "address": "fe80::1%eth0"}], "paths": [{"frm": "gw-1"}]})
    assert reported == [
        "gateways[0].name: is missing",
        "gateways[0].address: 'fe80::1%eth0' is not valid; use an address like fd00:51d:1::1 or 10.0.0.1",
        "gateways[0].nam: unknown field 'nam'; did you mean 'name'?",
        "paths[0].from: is missing",
        "paths[0].to: is missing",
        "paths[0].paths: is missing",
        "paths[0].frm: unknown field 'frm'; did you mean 'from'?",
    ]


def test_mistakes_of_sense_are_reported_together() -> None:
    """Names that no one has are reported beside what the configuration as a whole gets wrong, each place once."""
    document = {
        **EXAMPLE,
        "gateways": [{**EXAMPLE["gateways"][0], "sids": EXAMPLE["gateways"][0]["sids"][1:]}, *EXAMPLE["gateways"][1:]],
        "paths": [{"from": "gw-2", "to": "gw-9", "paths": [{"name": "x", "segments": ["gw-1", "gw-8"]}]}],
    }
    assert wrong(document) == [
        "paths[0].paths[0].segments[0]: gw-1 has no End, which a name in a path refers to: configure one, or use a SID",
        "paths[0].paths[0].segments[1]: 'gw-8' is not a gateway or an IPv6 address",
        "paths[0].to: gateway 'gw-9' not found; available: gw-1, gw-2, gw-3",
    ]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("locator", "fd00::1/48"),
        ("locator", "10.0.0.0/8"),
        ("prefixes", ["fd00::1/64"]),
        ("exporter", "ftp://x"),
        ("exporter", "http://user@x"),
        ("exporter", "http://x:99999"),
        ("interface", "a/b"),
        ("interface", "a b"),
        ("interface", ".."),
        ("interface", "sixteen-letters!"),
        ("name", "fd00::1"),
        ("name", "a/b"),
        ("mtu", 65_536),
        ("speed", "fast"),
        ("probe", {"method": "smoke"}),
    ],
)
def test_a_value_that_cannot_be_is_refused(field: str, value: object) -> None:
    """Each field takes what it is for, and the error says where."""
    gateway = {"name": "gw-1", "cluster": "c", "address": "fd00::1", field: value}
    assert [each for each in wrong({"gateways": [gateway]}) if each.startswith(f"gateways[0].{field}")]


def test_a_round_may_not_be_absurdly_short() -> None:
    """Rounds of less than a tenth of a second are a slip."""
    assert wrong({"probe": {"interval": "1ms"}})[0].startswith("probe.interval")


def test_the_page_shows_what_can_be_read() -> None:
    """The example of docs/gateways.md makes sense as a whole, and its first gateway has every field that there is."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "gateways.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    read = read_yaml_message(NetworkConfigIn, example)
    assert [gateway.name for gateway in read.config().gateways] == ["gw-1", "gw-2", "gw-4"]
    assert set(GatewayIn.model_fields) - set(read.gateways[0].model_fields_set) == {"site"}


def test_json_does_as_well() -> None:
    """The API's body is the same document."""
    text = network_text(read_value(NetworkConfigIn, EXAMPLE).config())
    assert read_json(NetworkConfigIn, json.dumps(text)).config() == read_value(NetworkConfigIn, EXAMPLE).config()
