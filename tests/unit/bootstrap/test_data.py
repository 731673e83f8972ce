from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from seaway.bootstrap.data import DataFolder
from seaway.domain.errors import RejectedError


def mode(path: Path) -> int:
    """Return who may do what with a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_a_folder_belongs_to_one_server(tmp_path: Path) -> None:
    """While one uses it, another is asked to choose its own; afterwards it is free."""
    first = DataFolder(tmp_path / "data")
    with pytest.raises(RejectedError, match="another seaway runs"):
        DataFolder(tmp_path / "data")
    first.close()
    DataFolder(tmp_path / "data").close()


def test_what_is_in_it_is_for_the_owner_alone(tmp_path: Path) -> None:
    """The folder, the token and the note of where the server is are not another user's to read."""
    data = DataFolder(tmp_path / "data")
    data.write_token("secret")
    data.write_token("newer")
    data.announce("http://localhost:1", "joined")
    assert mode(data.path) == 0o700
    assert mode(data.admin_token) == mode(data.path / "server.json") == 0o600
    assert data.admin_token.read_text(encoding="utf-8") == "newer\n"
    reported = json.loads((data.path / "server.json").read_text(encoding="utf-8"))
    more = {"clusters": "joined", "config": "", "database": ""}
    assert reported == {"url": "http://localhost:1", "pid": os.getpid(), **more}
    data.close()
    assert not (data.path / "server.json").exists()
    assert data.admin_token.exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    """A path that is a file is not a folder."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RejectedError, match="cannot be used"):
        DataFolder(tmp_path / "file")


def test_the_embedded_database_lies_in_it(tmp_path: Path) -> None:
    """Database and backups have their places."""
    data = DataFolder(tmp_path)
    assert data.database_url == f"sqlite:///{tmp_path}/seaway.db"
    assert data.backups == tmp_path / "backups"
    data.close()


def test_an_open_folder_opens_nothing_that_is_in_it(tmp_path: Path) -> None:
    """In a folder that everybody may read, what Seaway makes is its owner's alone, as is what it made before."""
    path = tmp_path / "data"
    path.mkdir(mode=0o755)
    (path / "backups").mkdir(mode=0o755)
    (path / "seaway.db-wal").touch(mode=0o644)
    data = DataFolder(path)
    (path / "seaway.db").touch()
    (path / "clusters").mkdir()
    modes = {each.name: mode(each) for each in path.iterdir()}
    data.close()
    private_files = dict.fromkeys(("lock", "seaway.db", "seaway.db-wal"), 0o600)
    assert modes == {**private_files, "backups": 0o700, "clusters": 0o700}
    (tmp_path / "after").touch()
    assert mode(tmp_path / "after") & 0o044, "what is made after is as open as ever"
