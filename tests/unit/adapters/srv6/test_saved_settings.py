from pathlib import Path

import pytest

from seaway.adapters.srv6.machine import SavedSettings
from seaway.domain.errors import RejectedError
from seaway.steering.state import FORWARDING, TUNNEL_SOURCE, SavedSetting, mtu

REMEMBERED = {
    FORWARDING: SavedSetting("0", "1"),
    TUNNEL_SOURCE: SavedSetting("::", "fd00::1"),
    mtu("eth0.7"): SavedSetting("1500", "9000"),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    """Settings of all kinds are stored over processes, separately for each namespace."""
    SavedSettings(tmp_path, "").write("boot/1", REMEMBERED)
    assert SavedSettings(tmp_path, "").read("boot/1") == REMEMBERED
    assert SavedSettings(tmp_path, "blue").read("boot/1") == {}


def test_another_namespace_or_boot_remembers_nothing(tmp_path: Path) -> None:
    """Stored settings are valid only in their namespace and boot."""
    SavedSettings(tmp_path, "").write("boot/1", REMEMBERED)
    assert SavedSettings(tmp_path, "").read("boot/2") == {}


def test_nothing_to_remember_leaves_no_file(tmp_path: Path) -> None:
    """After remove no file is left."""
    memory = SavedSettings(tmp_path, "blue")
    memory.write("boot/1", REMEMBERED)
    assert [each.name for each in tmp_path.iterdir()] == ["gateway@blue.json"]
    memory.write("boot/1", {})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", ["", "{", "[]", '{"machine": "boot/1"}', '{"machine": "boot/1", "settings": [{}]}'])
def test_a_damaged_file_is_reported(tmp_path: Path, written: str) -> None:
    """Seaway names the damaged file instead of losing the stored settings."""
    (tmp_path / "gateway.json").write_text(written)
    with pytest.raises(RejectedError, match=r"gateway.json: is damaged"):
        SavedSettings(tmp_path, "").read("boot/1")
