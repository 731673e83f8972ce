"""Every rule is tried with both clients, and nothing of this machine's own settings has a say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.client.requesting import Awaiting, Waiting


@pytest.fixture(params=[Waiting(), Awaiting()], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Waiting | Awaiting:
    """Return what asks by one of the clients."""
    requesting: Waiting | Awaiting = request.param
    return requesting


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a home without settings."""
    for variable in ("SERVER", "TOKEN", "PROFILE", "DATA", "CA_FILE"):
        monkeypatch.delenv(f"SEAWAY_{variable}", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path
