from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from seaway.cli.main import main


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Have a file of settings."""
    path = tmp_path / "seaway.toml"
    path.write_text(
        "[server]\nport = 9090\nhost = 'here'\n[control]\nstale_after_s = 7\n[clusters.karmada]\nkubeconfig = 'k'\n",
        encoding="utf-8",
    )
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run `seaway config show`, which has to succeed, and return what it prints."""
    with pytest.raises(SystemExit) as done:
        main(["config", "show", *arguments])
    assert not done.value.code
    return capsys.readouterr().out


def rows(text: str) -> dict[str, tuple[Any, str]]:
    """Return value and source of each setting."""
    return {row["name"]: (row["value"], row["from"]) for row in json.loads(text)["settings"]}


def test_settings_of_the_server_come_with_their_source(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each setting that `seaway up` would use is shown, with the file, the variable or the default it comes from."""
    monkeypatch.setenv("SEAWAY_SERVER_HOST", "there")
    arguments = ("--server", "--config", str(config), "--data", str(config.parent))
    shown = rows(printed(capsys, *arguments, "-o", "json"))
    assert shown["server.port"] == (9090, f"{config}: [server] port")
    assert shown["server.host"] == ("there", "SEAWAY_SERVER_HOST")
    assert shown["control.stale_after_s"] == (7, f"{config}: [control] stale_after_s")
    assert shown["clusters.karmada.kubeconfig"] == ("k", f"{config}: [clusters] karmada.kubeconfig")
    assert shown["server.no_auth"] == (False, "default")
    assert shown["database.url"] == (f"sqlite:///{config.parent}/seaway.db", "default")
    assert "server.port" in printed(capsys, *arguments)
    assert printed(capsys, *arguments, "-o", "name").split() == list(shown)


@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_passwords_are_not_shown(
    form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a URL everything is shown but its passwords, however they are written."""
    monkeypatch.setenv("COLUMNS", "200")  # a narrow table cuts long values
    monkeypatch.setenv("SEAWAY_DATABASE_URL", "postgresql://seaway:s3cret@t/w@db.example/seaway?sslpassword=s3cret")
    shown = printed(capsys, "--server", "-o", form)
    assert "s3cret" not in shown
    assert "t/w" not in shown
    assert "postgresql://seaway:***@db.example/seaway?sslpassword=***" in shown


def test_settings_of_the_server_are_asked_for(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of settings says nothing about the client."""
    with pytest.raises(SystemExit) as done:
        main(["config", "show", "--config", str(config)])
    assert done.value.code == 2
    assert "--server" in capsys.readouterr().err
