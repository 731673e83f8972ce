"""Errors of `script/lab` on machines that cannot run a lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.__main__ import main
from seaway.cli.errors import BAD_INPUT


def test_addresses_in_examples_contain_no_emoji_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """Rich would replace a part such as ``:a:`` with an emoji."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "-- ping fd00:0a:1::2" in shown
    assert "🅰" not in shown


@pytest.mark.parametrize("command", [["up"], ["down"], ["show"], ["link", "gw-1"], ["exec", "gw-1", "true"]])
def test_commands_report_missing_root_privileges(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command prints the remedy in one line."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as caught:
        main([*command])
    assert caught.value.code == BAD_INPUT
    assert "a lab needs root" in capsys.readouterr().err


def test_kernel_without_segment_routing_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The missing feature is reported before anything is created."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/bin/{name}")
    monkeypatch.setattr("lab.lab.SEG6", tmp_path / "seg6_enabled")
    with pytest.raises(SystemExit) as caught:
        main(["up"])
    assert caught.value.code == BAD_INPUT
    assert "a lab needs a kernel with segment routing" in capsys.readouterr().err


def test_missing_program_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error names the missing program and its package."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    with pytest.raises(SystemExit) as caught:
        main(["up"])
    assert caught.value.code == BAD_INPUT
    assert "apt-get install util-linux" in capsys.readouterr().err


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The error tells users how to install the packages that gateways need."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit) as caught:
        main(["show"])
    assert caught.value.code == BAD_INPUT
    assert "pip install 'seaway[gateway]'" in capsys.readouterr().err
