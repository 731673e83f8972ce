from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seaway.cli.admin import gateway as command
from seaway.cli.main import main
from seaway.cli.output import as_yaml
from seaway.client.call import Call
from seaway.domain.gateways import Pair
from seaway.steering.difference import Difference, difference
from seaway.steering.state import NOTHING, CurrentState, GatewayState
from seaway.wire.network_in import network_text
from tests.fakes.gateways import make_network, make_path
from tests.fakes.kernel import carried_out, make_present

PATHS = make_path("direct", 2, weight=2), make_path("round", 3, 2)
NETWORK = make_network(3, [Pair("gw-1", "gw-2", PATHS)])


class FakeMachine:
    """A machine as values."""

    def __init__(self) -> None:
        self.present = make_present()

    def read(self) -> CurrentState:
        """Read what there is."""
        return self.present

    def converge(self, wanted: GatewayState) -> Difference:
        """Give the machine what it must have."""
        found = difference(wanted, self.present)
        self.present = carried_out(found, self.present)
        return found

    def remove(self) -> Difference:
        """Take everything away."""
        return self.converge(NOTHING)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """Put a machine of values into the place of this one."""
    made = FakeMachine()
    monkeypatch.setattr(command, "_machine", lambda _netns, _state: made)
    return made


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Write a network."""
    path = tmp_path / "network.yaml"
    path.write_text(as_yaml(network_text(NETWORK)))
    return str(path)


class Run:
    """Runs commands, and keeps what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str) -> str:
        """Run a command that goes well, and return its output."""
        with pytest.raises(SystemExit) as ended:
            main(["gateway", *arguments])
        out, self.err = self._capsys.readouterr()
        assert not ended.value.code, self.err
        return out

    def fails(self, *arguments: str) -> str:
        """Run a command that does not, and return what it says of that."""
        with pytest.raises(SystemExit) as ended:
            main(["gateway", *arguments])
        assert ended.value.code == 2
        return self._capsys.readouterr().err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs commands."""
    return Run(capsys)


def test_check_says_how_much_there_is_and_how_large_packets_may_be(run: Run, file: str) -> None:
    """A file that is fine is summed up in a line, with the room that wrapping leaves."""
    assert run("check", "-f", file) == (
        "fine: 3 gateways, 6 pairs with 7 paths; every path carries packets of up to 8920 bytes\n"
    )


def test_check_tells_all_mistakes_with_their_lines(run: Run, file: str) -> None:
    """A user who corrects a file is led to each line."""
    text = Path(file).read_text().replace("mtu: 9000", "mtu: 900", 1).replace("- gw-3\n", "- gw-9\n")
    Path(file).write_text(text)
    reported = run.fails("check", "-f", file).splitlines()
    assert [each.split(file)[1].split(":")[2] for each in reported] == [
        "paths[0].paths[1].segments[0]",
        "gateways[0].mtu",
        "paths[0].paths[0]",
    ]
    assert reported[1].startswith(f"error: {file}:{text.splitlines().index('  mtu: 900') + 1}:gateways[0].mtu: must be")


@pytest.mark.parametrize(("text", "reported"), [("", "no network found in it"), ("[1]", "like `gateways: []`")])
def test_a_file_that_holds_no_network_is_reported_as_such(run: Run, tmp_path: Path, text: str, reported: str) -> None:
    """A user who wrote a network is not informed of jobs."""
    path = tmp_path / "network.yaml"
    path.write_text(text)
    said = run.fails("check", "-f", str(path))
    assert reported in said
    assert "job" not in said.replace(str(path), "")
    assert "train" not in said


def test_plan_shows_and_changes_nothing(run: Run, file: str, machine: FakeMachine) -> None:
    """Each change is a line, SIDs by their gateways' names."""
    before = machine.present
    lines = run("plan", "-f", file, "--gateway", "gw-1").splitlines()
    assert lines[0] == "gw-1: 9 changes to be made"
    assert "  ~ net.ipv6.conf.all.forwarding  0 → 1" in lines
    assert "  + SID fd00:51d:1::d6  End.DT6" in lines
    assert "  + route fd00:a:2::/64  by gw-2 End.DT6" in lines
    assert machine.present == before


@pytest.mark.usefixtures("machine")
def test_plan_prints_commands_for_other_means(run: Run, file: str) -> None:
    """The commands come alone, to be put into a script."""
    lines = run("plan", "-f", file, "-g", "gw-1", "--commands", "--netns", "blue").splitlines()
    assert len(lines) == 9
    assert {each.split()[0] for each in lines} == {"ip"}


@pytest.mark.usefixtures("machine")
def test_apply_says_what_it_did_and_then_that_there_is_nothing_to_do(run: Run, file: str) -> None:
    """A choice of path is one more change; the same once more is none."""
    assert run("apply", "-f", file, "-g", "gw-1").startswith("gw-1: 9 changes made\n")
    by_choice = ["apply", "-f", file, "-g", "gw-1", "--via", "gw-2=round"]
    assert run(*by_choice) == (
        "gw-1: 1 change made\n  ~ route fd00:a:2::/64  by gw-2 End.DT6 → by gw-3 End, gw-2 End.DT6\n"
    )
    assert run(*by_choice) == "gw-1: up to date, nothing to change\n"


def test_apply_tells_what_the_owner_should_know(run: Run, file: str, machine: FakeMachine) -> None:
    """Notes go beside the result, not into it."""
    machine.present = make_present(addresses=frozenset())
    out = run("apply", "-f", file, "-g", "gw-1")
    assert "note" not in out
    assert run.err.startswith("note: fd00:51d:1::1, the address of gw-1, is on no interface here")


def test_remove_takes_back_what_apply_did(run: Run, file: str, machine: FakeMachine) -> None:
    """A dry run shows it, and then it is done."""
    before = machine.present
    run("apply", "-f", file, "-g", "gw-1")
    assert run("remove", "--dry-run").startswith("9 changes to be made\n  - route fd00:a:2::/64")
    assert "  < MTU of wan  9000 → 1500\n" in run("remove")
    assert machine.present == before
    assert run("remove") == "up to date, nothing to change\n"


def test_remove_tells_what_it_cannot_set_back(run: Run, file: str, machine: FakeMachine) -> None:
    """A user who renamed an interface learns what it keeps, beside the result."""
    run("apply", "-f", file, "-g", "gw-1")
    retained = {knob: value for knob, value in machine.present.settings.items() if "wan" not in knob.name}
    machine.present = replace(machine.present, settings=retained)
    for arguments in (["remove", "--dry-run"], ["remove"]):
        run(*arguments)
        assert "note: MTU of wan was 1500 and became 9000, and cannot be restored" in run.err
    run("remove")
    assert run.err == ""


@pytest.mark.usefixtures("machine")
def test_show_tells_the_present_state(run: Run, file: str) -> None:
    """Routes are shown with their behaviour, and settings with their former values."""
    assert run("show") == "nothing here belongs to Seaway\n"
    run("apply", "-f", file, "-g", "gw-1")
    lines = run("show", "-f", file).splitlines()
    assert "  route fd00:a:3::/64  by gw-3 End.DT6" in lines
    assert "  MTU of wan = 9000  (was 1500)" in lines
    assert len(json.loads(run("show", "-o", "json"))["routes"]) == 4


@pytest.mark.usefixtures("machine")
def test_changes_can_be_read_by_programs(run: Run, file: str) -> None:
    """Each has what it is about, before and after, and its command."""
    changes = json.loads(run("plan", "-f", file, "-g", "gw-1", "-o", "json"))
    assert changes[-1] == {
        "change": "add",
        "what": "route fd00:a:3::/64",
        "before": "",
        "after": "by fd00:51d:3::d6",
        "command": "ip -6 route add fd00:a:3::/64 proto 151 metric 1024 "
        "encap seg6 mode encap segs fd00:51d:3::d6 dev wan",
    }


class FakeServer:
    """Has a network, and a path that it chose."""

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        """Keep nothing."""

    def body(self, call: Call[object]) -> dict[str, Any]:
        """Answer what a gateway must have."""
        assert call.path == "/api/v1/network/gateways/gw-1"
        return {"network": network_text(NETWORK), "active": {"gw-2": "round", "gw-3": "direct"}}


@pytest.mark.usefixtures("machine")
def test_without_a_file_the_server_says_what_is_wanted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's network counts, and its choice of paths, unless another is given."""
    monkeypatch.setattr("seaway.cli.remote.connect", lambda _context: FakeServer())
    assert "  + route fd00:a:2::/64  by gw-3 End, gw-2 End.DT6\n" in run("plan", "-g", "gw-1")
    assert "  + route fd00:a:2::/64  by gw-2 End.DT6\n" in run("apply", "-g", "gw-1", "--via", "gw-2=direct")


@pytest.mark.usefixtures("machine")
@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["plan"], "error: name this machine's gateway with --gateway; available: gw-1, gw-2, gw-3\n"),
        (["plan", "-g", "gw-9"], "error: gateway 'gw-9' not found; available: gw-1, gw-2, gw-3\n"),
        (["apply", "-g", "gw-1", "--via", "gw-2"], "error: --via: 'gw-2' is not valid; use a gateway and a path to it"),
        (
            ["apply", "-g", "gw-1", "--via", "gw-2=x"],
            "error: path 'x' not found from gw-1 to gw-2; available: direct",
        ),
    ],
)
def test_slips_are_reported_with_what_there_is(run: Run, file: str, arguments: list[str], reported: str) -> None:
    """An unknown name is an error that says which names there are."""
    assert run.fails(*arguments, "-f", file).startswith(reported)


def test_a_missing_library_is_reported_with_how_to_get_it(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pyroute2 comes with an extra, which the error names."""
    monkeypatch.setitem(sys.modules, "pyroute2", None)
    assert run.fails("plan", "-f", file, "-g", "gw-1") == "error: this needs pyroute2: pip install 'seaway[gateway]'\n"


def test_other_systems_than_linux_are_reported(run: Run, file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gateways are Linux machines."""
    monkeypatch.setattr("seaway.adapters.srv6.machine.sys.platform", "darwin")
    assert run.fails("plan", "-f", file, "-g", "gw-1") == "error: a gateway must be a Linux machine\n"
