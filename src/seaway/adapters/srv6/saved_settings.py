"""What settings were before Seaway set them, kept in a small file until they are set back."""

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
"""Forgotten when the machine restarts, as the kernel forgets what was set."""


class SavedSettings:
    """The file of one network namespace.

    What was written in another namespace or before a reboot does not count.

    Parameters
    ----------
    folder
        Made when something is written.
    netns
        Name of the namespace; empty for the machine's own.
    """

    def __init__(self, folder: Path, netns: str) -> None:
        self._file = folder / (f"gateway@{netns}.json" if netns else "gateway.json")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process at a time change a gateway."""
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
        """Return what is remembered of a namespace.

        Raises
        ------
        RejectedError
            When the file was damaged.
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
        """Remember, in one step."""
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
