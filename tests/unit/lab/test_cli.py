"""What `script/lab` says where there can be no lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.__main__ import main
from seaway.cli.errors import BAD_INPUT


def test_addresses_in_examples_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """No part of one is taken for the name of a picture, as ``:a:`` is."""
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert "-- ping fd00:0a:1::2" in shown
    assert "🅰" not in shown


@pytest.mark.parametrize("command", [["up"], ["down"], ["show"], ["link", "gw-1"], ["exec", "gw-1", "true"]])
def test_who_is_not_root_is_told_so(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command says in one line what to do about it."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(SystemExit) as caught:
        main([*command])
    assert caught.value.code == BAD_INPUT
    assert "a lab needs root" in capsys.readouterr().err


def test_a_kernel_without_segment_routing_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the kernel lacks is named before anything is made."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/bin/{name}")
    monkeypatch.setattr("lab.lab.SEG6", tmp_path / "seg6_enabled")
    with pytest.raises(SystemExit) as caught:
        main(["up"])
    assert caught.value.code == BAD_INPUT
    assert "a lab needs a kernel with segment routing" in capsys.readouterr().err


def test_a_missing_program_is_told_of(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A program that is missing is named with the package that has it."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _, **__: None)
    with pytest.raises(SystemExit) as caught:
        main(["up"])
    assert caught.value.code == BAD_INPUT
    assert "apt-get install util-linux" in capsys.readouterr().err


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Who installed Seaway without what gateways need is told how to add it."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(SystemExit) as caught:
        main(["show"])
    assert caught.value.code == BAD_INPUT
    assert "pip install 'seaway[gateway]'" in capsys.readouterr().err
