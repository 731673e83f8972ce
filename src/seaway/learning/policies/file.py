"""Policy files: a zip archive of `policy.json`, `model.onnx` and, where a user signed it, `signature.json`."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.learning.policies.manifest import Manifest, Trial, decode_head, encode_head

SUFFIX = ".policy"
HEAD, MODEL, SIGNATURE = "policy.json", "model.onnx", "signature.json"
LARGEST = {HEAD: 1 << 20, MODEL: 8 << 20, SIGNATURE: 1 << 12}
"""Number of bytes each part may have."""

LARGEST_FILE = sum(LARGEST.values()) + 4096
"""Maximum size, bytes, including the overhead of the archive."""

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyFile:
    """A trained policy as it is kept and passed on.

    Attributes
    ----------
    manifest
        What it says of itself.
    model
        The ONNX model.
    trials
        What the model has to reproduce.
    signature
        `signature.json` as it stands there; empty where no one signed.
    head
        `policy.json` as it stands there: what is digested and signed.
    """

    manifest: Manifest
    model: bytes
    trials: tuple[Trial, ...]
    signature: bytes = b""
    head: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if not self.head:
            object.__setattr__(self, "head", encode_head(self.manifest, self.trials))

    @property
    def size_bytes(self) -> int:
        """How much its parts take."""
        return len(self.head) + len(self.model) + len(self.signature)

    @property
    def digest(self) -> str:
        """SHA-256 of `policy.json`, and by the digest in it of the model: two files with one digest decide alike."""
        return sha256(self.head).hexdigest()


def unpack(data: bytes) -> PolicyFile:
    """Take the parts out of the archive; whether the model may run is `check_policy`'s question.

    Raises
    ------
    RejectedError
        When it is not such an archive, or the model is not the one that the manifest tells of.
    """
    parts = _parts(data)
    manifest, trials = decode_head(parts[HEAD])
    if sha256(parts[MODEL]).hexdigest() != manifest.model_sha256:
        raise RejectedError("the model is not the one that policy.json describes: the file was damaged or changed")
    return PolicyFile(manifest, parts[MODEL], trials, parts.get(SIGNATURE, b""), parts[HEAD])


def pack(file: PolicyFile) -> bytes:
    """Write the archive: the same bytes for the same policy."""
    parts = {HEAD: file.head, MODEL: file.model} | ({SIGNATURE: file.signature} if file.signature else {})
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, part in parts.items():
            if len(part) > LARGEST[name]:
                raise RejectedError(f"{name} has {len(part)} bytes, more than the {LARGEST[name]} that it may have")
            entry = zipfile.ZipInfo(name, _FIRST_DAY)
            entry.create_system = 3
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, part)
    return buffer.getvalue()


def write_policy(path: Path, file: PolicyFile) -> None:
    """Write a policy file; whoever reads it meanwhile sees the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, pack(file))


def write_beside(path: Path, content: bytes) -> None:
    """Write a file beside the one that it replaces, which is there until the new one is whole."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_content(path: Path) -> bytes:
    """Return what a file holds, if that is not more than a policy file can.

    Raises
    ------
    RejectedError
        When it is more, or cannot be read.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise RejectedError(f"larger than a policy file can be, {LARGEST_FILE} bytes")
        return path.read_bytes()
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}") from None


def _parts(data: bytes) -> dict[str, bytes]:
    """Return the members by name, after a look at all that the archive says of them."""
    if len(data) > LARGEST_FILE:
        raise RejectedError(f"larger than a policy file can be, {LARGEST_FILE} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            return {each.filename: archive.read(each) for each in entries}
    except (*_BROKEN, struct.error):
        raise RejectedError("not a policy file, or a truncated one") from None


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    """Refuse members that do not belong there, and sizes that could not be."""
    names = [each.filename for each in entries]
    if sorted(names) not in (sorted([HEAD, MODEL]), sorted([HEAD, MODEL, SIGNATURE])):
        found = ", ".join(map(ascii, names[:5])) or "nothing"
        raise RejectedError(f"a policy file has {HEAD} and {MODEL}, and optionally {SIGNATURE}; this one has {found}")
    for each in entries:
        if each.compress_type != zipfile.ZIP_STORED or each.file_size != each.compress_size or each.flag_bits & 1:
            raise RejectedError(f"{each.filename} is compressed or encrypted; policy files are not compressed")
        if each.file_size > LARGEST[each.filename]:
            raise RejectedError(
                f"{each.filename} has more than {LARGEST[each.filename]} bytes, the most that it may have"
            )
