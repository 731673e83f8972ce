from __future__ import annotations

import stat
from pathlib import Path

import pytest

from seaway.adapters.sqlalchemy.store import open_store
from seaway.application.access import Access
from seaway.application.records import Role
from seaway.application.writer import Writer
from seaway.bootstrap.data import DataFolder
from seaway.cli.main import main
from seaway.testing.clocks import VirtualClock


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a data folder of our own, and no other database."""
    monkeypatch.delenv("SEAWAY_DATABASE_URL", raising=False)
    return tmp_path / "data"


def run(*arguments: str) -> int:
    """Run `seaway db`; return its exit code."""
    with pytest.raises(SystemExit) as done:
        main(["db", *arguments])
    return int(done.value.code or 0)


@pytest.mark.parametrize("command", [("check",), ("backup", "{}/out"), ("prune",), ("migrate",), ("new-admin-token",)])
def test_no_database_is_made_where_there_is_none(
    command: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A slip in the name of an SQLite file is reported; no empty database takes its place."""
    arguments = [each.format(tmp_path) for each in command]
    assert run(*arguments, "--database", f"sqlite:///{tmp_path}/nope.db") == 2
    assert f"{tmp_path}/nope.db: this SQLite file does not exist" in capsys.readouterr().err.replace("\n", " ")
    assert run(*arguments, "--data", str(tmp_path / "data")) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_new_admin_token_lets_one_in_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any token an admin's is made beside those there are, and left in the data folder for its owner alone."""
    folder.mkdir()
    url = f"sqlite:///{folder}/seaway.db"
    store = open_store(url)
    store.lead("before")
    assert Access(store, Writer(store), VirtualClock()).first_token()
    store.close()
    assert run("new-admin-token", "--data", str(folder)) == 0
    file = folder / "admin-token"
    reported = capsys.readouterr().out
    assert str(file) in reported
    assert "still valid" in reported
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store = open_store(url)
    access = Access(store, Writer(store), VirtualClock())
    who = access.known(f"Bearer {file.read_text().strip()}", "local")
    assert who is not None
    assert who.role is Role.ADMIN
    assert len(access.tokens()) == 2
    store.lead("after")
    for token in access.tokens():
        access.revoke(token.id, force=True)
    store.close()
    assert run("new-admin-token", "--data", str(folder)) == 0
    assert "still hold" not in capsys.readouterr().out


def test_a_new_admin_token_is_not_made_under_a_running_server(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a server has the data folder nothing is written into its database."""
    running = DataFolder(folder)
    open_store(running.database_url).close()
    assert run("new-admin-token", "--data", str(folder)) == 2
    assert "another seaway runs" in capsys.readouterr().err
    assert not running.admin_token.exists()
    running.close()


def test_a_new_admin_token_goes_into_the_database_that_is_named(tmp_path: Path, folder: Path) -> None:
    """With --database the token is that database's; the data folder is made for the file if need be."""
    url = f"sqlite:///{tmp_path}/other.db"
    open_store(url).close()
    assert run("new-admin-token", "--data", str(folder), "--database", url) == 0
    store = open_store(url)
    assert [token.role for token in store.tokens()] == [Role.ADMIN]
    store.close()
    assert (folder / "admin-token").exists()


def test_a_restore_names_the_tokens_that_hold(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Anyone who restores sees which tokens let in now; with `--revoke-tokens`, that none does, and what to do."""
    folder.mkdir()
    store = open_store(f"sqlite:///{folder}/seaway.db")
    store.lead("before")
    access = Access(store, Writer(store), VirtualClock())
    access.first_token()
    ada, _ = access.create("ada", Role.ADMIN, "", None, "admin")
    bob, _ = access.create("bob", Role.ADMIN, "", None, "admin")
    file = str(tmp_path / "a.backup")
    assert run("backup", file, "--data", str(folder)) == 0
    access.revoke(bob.id)
    store.close()
    assert run("restore", file, "--data", str(folder), "--force") == 0
    reported = capsys.readouterr().out
    assert "revoked since the backup, and stay revoked: 1." in reported
    assert f"ada ({ada.id})" in reported
    assert bob.id not in reported
    assert run("restore", file, "--data", str(folder), "--force", "--revoke-tokens") == 0
    assert "No token is valid. Create one for an admin: seaway db new-admin-token" in capsys.readouterr().out
