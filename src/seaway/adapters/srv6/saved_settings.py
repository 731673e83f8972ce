"""File with the previous values of the settings that Seaway changed, until they are restored."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seaway.domain.errors import ForbiddenError, RejectedError
from seaway.steering.state import SavedSetting, Setting, SettingKind

FOLDER = Path("/run/seaway")
"""Default folder. Its contents do not survive a reboot, like the settings themselves."""


class SavedSettings:
    """File of one network namespace.

    Contents from another namespace or from before a reboot are ignored.

    Parameters
    ----------
    folder
        Folder of the file; created when needed.
    netns
        Name of the namespace; empty for the machine's own.
    """

    def __init__(self, folder: Path, netns: str) -> None:
        self._file = folder / (f"gateway@{netns}.json" if netns else "gateway.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the gateway against changes by other processes."""
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        except PermissionError as error:
            raise ForbiddenError(
                f"{error.filename}: {error.strerror}; this requires root, or another --state"
            ) from None

    def read(self, identity: str) -> dict[Setting, SavedSetting]:
        """Return the saved settings of a namespace.

        Raises
        ------
        RejectedError
            When the file is damaged.
        """
        try:
            written = json.loads(self._file.read_bytes())
            if written["machine"] != identity:
                return {}
            return {
                Setting(SettingKind(each["kind"]), str(each["name"])): SavedSetting(
                    str(each["before"]), str(each["value"])
                )
                for each in written["settings"]
            }
        except FileNotFoundError:
            return {}
        except PermissionError as error:
            raise ForbiddenError(f"{self._file}: {error.strerror}; this requires root") from None
        except (ValueError, KeyError, TypeError):
            raise RejectedError(
                "is damaged: remove it, and what settings were before is forgotten", where=str(self._file)
            ) from None

    def write(self, identity: str, saved: Mapping[Setting, SavedSetting]) -> None:
        """Replace the file atomically."""
        if not saved:
            self._file.unlink(missing_ok=True)
            return
        settings = [
            {"kind": knob.kind.value, "name": knob.name, "before": each.before, "value": each.value}
            for knob, each in saved.items()
        ]
        new = self._file.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"machine": identity, "settings": settings}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._file)
