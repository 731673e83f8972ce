"""Folders as archives."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from seaway.client.errors import RejectedError
from seaway.client.workdirs import pack

LIMIT = 1 << 20


def made(folder: Path, files: dict[str, str]) -> Path:
    """Write files, and return their folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def packed(folder: Path, limit: int = LIMIT) -> tuple[str, tarfile.TarFile]:
    """Pack a folder; return the digest and the archive."""
    file = io.BytesIO()
    digest = pack(folder, file, limit)
    file.seek(0)
    return digest, tarfile.open(fileobj=file, mode="r:gz")


def names(folder: Path) -> list[str]:
    """Return the packed files."""
    return packed(folder)[1].getnames()


def test_the_same_content_is_the_same_archive(tmp_path: Path) -> None:
    """Times, owners and the place of a folder do not change its digest; content, names and modes do."""
    one, two = (made(tmp_path / name, {"train.py": "x", "src/a.py": "y"}) for name in ("one", "two"))
    os.utime(two / "train.py", (0, 0))
    digest, archive = packed(one)
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
    assert digest == packed(two)[0]
    (two / "train.py").chmod(0o755)
    assert digest != packed(two)[0]
    assert archive.getnames() == ["src/a.py", "train.py"]


def test_ignored_files_stay_here(tmp_path: Path) -> None:
    """A `.seawayignore` replaces all `.gitignore`, which count in each folder, the inner ones first; `.git` never."""
    files = dict.fromkeys((".git/config", "a.py", "a.log", "data/b.bin", "in/keep.log", "in/c.tmp", "out/d"), "x")
    made(tmp_path, {**files, ".gitignore": "*.log\n/data/\n", "in/.gitignore": "!keep.log\n*.tmp\n"})
    assert names(tmp_path) == [".gitignore", "a.py", "in/.gitignore", "in/keep.log", "out/d"]
    made(tmp_path, {".seawayignore": "out\n.*ignore\n"})
    assert names(tmp_path) == ["a.log", "a.py", "data/b.bin", "in/c.tmp", "in/keep.log"]


def test_links_modes_and_empty_folders_are_packed(tmp_path: Path) -> None:
    """Links within the folder, executable files and empty folders arrive as they are."""
    made(tmp_path, {"run.sh": "x", "in/a": "y"})
    (tmp_path / "run.sh").chmod(0o700)
    (tmp_path / "in/up").symlink_to("../run.sh")
    (tmp_path / "empty").mkdir()
    archive = packed(tmp_path)[1]
    assert archive.getmember("in/up").linkname == "../run.sh"
    assert archive.getmember("run.sh").mode == 0o755
    assert archive.getmember("in/a").mode == 0o644
    assert archive.getmember("empty").isdir()


def test_large_folders_are_refused_with_their_largest_files(tmp_path: Path) -> None:
    """The error names the largest files, and how to leave them out."""
    made(tmp_path, {"small.py": "x"})
    (tmp_path / "model.bin").write_bytes(os.urandom(2 << 20))
    with pytest.raises(RejectedError, match=r"seawayignore. Largest: model.bin \(2.0 MiB\), small.py"):
        packed(tmp_path)
    assert packed(tmp_path, 3 << 20)


@pytest.mark.parametrize("target", ["/etc/passwd", "../other"])
def test_links_out_of_the_folder_are_refused(tmp_path: Path, target: str) -> None:
    """A link that would be broken in the container is an error, unless it is ignored."""
    made(tmp_path, {"a.py": "x"})
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(RejectedError, match=f"link is a link to {target}, outside the folder"):
        packed(tmp_path)
    made(tmp_path, {".seawayignore": "link"})
    assert names(tmp_path) == [".seawayignore", "a.py"]


def test_what_cannot_be_sent_is_named(tmp_path: Path) -> None:
    """A missing folder, an empty one and a special file are errors."""
    for folder, why in ((tmp_path / "none", "is not a folder"), (tmp_path, "has no files")):
        with pytest.raises(RejectedError, match=why):
            packed(folder)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RejectedError, match="pipe is a special file"):
        packed(tmp_path)
