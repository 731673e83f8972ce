"""`seaway network`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from seaway.wire.network_in import EXAMPLE
from tests.integration.cli_runs import Cli, command_line

pytestmark = pytest.mark.slow  # each has its own server


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cli]:
    """Start a server, and a command line connected to it."""
    with command_line(capsys, monkeypatch, tmp_path) as made:
        yield made


def test_network_file_round_trip(cli: Cli, tmp_path: Path) -> None:
    """A network file can be validated, applied, exported to an equivalent file, and removed."""
    file = tmp_path / "network.yaml"
    file.write_text(yaml.safe_dump(EXAMPLE, sort_keys=False))
    tried = cli("network", "put", "-f", str(file), "--dry-run")
    assert "gateway gw-1 is added\n" in tried.out
    assert tried.out.endswith("the network becomes version 1\n")
    assert cli("network", "get").code == 1
    assert cli("network", "put", "-f", str(file)).out.endswith("the network is at version 1\n")
    shown = cli("network", "get").out
    assert [each["name"] for each in yaml.safe_load(shown)["gateways"]] == ["gw-1", "gw-2", "gw-3"]
    assert cli("network", "get", "-o", "json").body == yaml.safe_load(shown)
    again = cli("network", "put", "-f", "-", stdin=shown)
    assert again.out == "no changes; the network is at version 1\n"
    assert cli("network", "delete").out == "the network between gateways is removed\n"
    assert cli("network", "delete").code == 1


def test_errors_in_network_file_have_line_numbers(cli: Cli, tmp_path: Path) -> None:
    """With any error nothing is applied."""
    file = tmp_path / "network.yaml"
    file.write_text("mesh: true\ngateways:\n  - name: gw-1\n    adress: fd00::1\n    site: office\n    mtu: big\n")
    ran = cli("network", "put", "-f", str(file))
    assert ran.code == 2
    lines = [line for line in ran.err.splitlines() if str(file) in line]
    assert len(lines) == len(ran.err.splitlines()) == 3
    for part in (":4:gateways[0].adress", ":3:gateways[0].address", ":6:gateways[0].mtu"):
        assert part in ran.err
    assert "did you mean 'address'?" in ran.err
    assert cli("network", "get").code == 1
    file.write_text("{}\n---\n{}\n")
    assert "more than one document" in cli("network", "put", "-f", str(file)).err
    assert "no network found in it" in cli("network", "put", "-f", "-", stdin="# nothing\n").err


def test_agents_are_listed_with_their_state(cli: Cli) -> None:
    """The list shows for each gateway whether its agent reports; without gateways it explains how to add them."""
    assert "seaway network put" in cli("network", "agents").out
    cli("network", "put", "-f", "-", stdin=yaml.safe_dump(EXAMPLE))
    made = cli("token", "create", "first", "--role", "agent", "--gateway", "gw-1")
    assert made.out.startswith("sw_")
    tokens = cli("token", "list", "-o", "json").body["tokens"]
    assert [(each["role"], each["gateway"]) for each in tokens if each["name"] == "first"] == [("agent", "gw-1")]
    rig = cli.served.rig
    rig.tokens["first"] = made.out.strip()
    now_ns = rig.clock.now_ns()
    with cli.served.client("first") as client:
        report = {"gateway": "gw-1", "started_ns": now_ns, "number": 1, "dropped": 3, "rounds": []}
        assert client.post("/api/v1/network/reports", json=report).status_code == 204
        assert client.post("/api/v1/network/reports", json=report).status_code == 409
    rows = [line.split() for line in cli("network", "agents").out.splitlines()]
    assert rows[1][:2] == ["gw-1", "reporting"]
    assert "taken before" in " ".join(rows[1])
    assert rows[2][:2] == ["gw-2", "never"]
    assert cli("network", "agents", "-o", "json").body["agents"][0]["dropped"] == 3
    assert cli("network", "agents", "-o", "name").out.split() == ["gw-1", "gw-2", "gw-3"]
    assert cli("token", "create", "none", "--role", "agent").code == 2
