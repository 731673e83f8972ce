"""Databases have URLs, whose passwords are never shown."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from seaway.adapters import sqlalchemy as database
from seaway.adapters.sqlalchemy import engines
from seaway.domain.errors import RejectedError, SeawayError, UnavailableError


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("store.db", "use sqlite:///path"),
        ("oracle://u:s3cret@h/d", "does not know databases called 'oracle'"),
        ("sqlite://", "names no database"),
        ("postgresql://u:s3cret@h", "names no database"),
        ("mysql://u:s3cret@h:port/d", "not a URL"),
    ],
)
def test_a_wrong_url_is_rejected(url: str, says: str) -> None:
    """An invalid or unknown URL is rejected with the supported forms."""
    with pytest.raises(RejectedError, match=says) as caught:
        database.open_store(url)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the driver, the message says which extra to install."""
    monkeypatch.setattr(engines, "find_spec", lambda _name: None)
    with pytest.raises(RejectedError, match=r"pip install 'seaway\[mysql\]'"):
        database.open_store("mariadb://u:p@h/d")
    with pytest.raises(RejectedError, match=r"pip install 'seaway\[postgres\]'"):
        database.open_store("postgresql://u:p@h/d")


@pytest.mark.parametrize("scheme", ["mysql", "mariadb", "postgresql"])
def test_a_server_that_is_not_there_is_unavailable(scheme: str) -> None:
    """A database that does not answer is unavailable, and its password is in no message."""
    url = f"{scheme}://seaway:s3cret@127.0.0.1:1/seaway"
    with pytest.raises(UnavailableError, match="does not answer") as caught:
        database.open_store(url)
    assert caught.value.retry_after_s > 0
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_store_hides_its_password(tmp_path: Path) -> None:
    """The representation of a store in a log names its database, and no password."""
    store = database.open_store(f"sqlite:///{tmp_path}/new/store.sqlite3")
    assert "store.sqlite3" in repr(store)
    store.close()
    made = database.SqlStore(engines.open_engines("postgresql://seaway:s3cret@127.0.0.1/seaway"))
    assert "s3cret" not in repr(made)
    made.close()


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    """A file of another kind is not changed, and the message states that it is not a database."""
    file = tmp_path / "notes.txt"
    file.write_text("dear diary, " * 1000)
    with pytest.raises(SeawayError, match="not a database"):
        database.open_store(f"sqlite:///{file}")
    assert file.read_text() == "dear diary, " * 1000
