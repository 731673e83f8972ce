"""Policy files: a zip archive of `policy.json`, `model.onnx` and optionally `signature.json`."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import NAME


class Level(StrEnum):
    """Level of the choices of a trained policy."""

    CLUSTER = "cluster"
    """Clusters. The input has free shares of a fixed number of clusters, and the output is one number, as published."""
    NODE = "node"
    """Nodes. The input has any number of nodes, and the output a score for each."""


class Point(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evaluation of a policy without noise during its training.

    Attributes
    ----------
    placed, refused
        Number of placed and of infeasible jobs over all evaluated instances.
    gpu_load_variance, reward
        Means over the instances.
    """

    episode: int
    placed: int
    refused: int
    gpu_load_variance: float
    reward: float


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Manifest of a policy file.

    Attributes
    ----------
    name
        Name of the policy, valid in Kubernetes.
    algo
        Algorithm: ``eade-ddpg``, ``ddpg``, ``td3``, ``sac``, ``ppo`` or ``pilot``.
    level
        Level of its choices.
    features
        Version of the inputs of the model, see `seaway.learning.observing`. Other versions are rejected.
    clusters
        Number of clusters that it was trained for; None for any number.
    network
        Whether the inputs contain features of links and network demands.
    fitting
        At cluster level: whether the inputs count only free resources on nodes that fit the job.
    model_sha256
        Digest of the ONNX model, 64 hexadecimal digits.
    says
        Description, one clause.
    made_by
        Command that created it.
    created
        Time of its creation, ISO 8601 with a zone.
    config
        Settings of the training, and digests of its folders.
    figures
        Results of its evaluation, by name.
    curve
        Evaluations in the order of episodes; empty if they were not recorded.
    """

    name: str
    algo: str
    level: Level
    features: int
    model_sha256: str
    clusters: int | None = None
    network: bool = False
    fitting: bool = False
    says: str = ""
    made_by: str = ""
    created: str = ""
    config: Mapping[str, Any] = msgspec.field(default_factory=dict)
    figures: Mapping[str, float] = msgspec.field(default_factory=dict)
    curve: tuple[Point, ...] = ()


Tensors = Mapping[str, NDArray[np.float32]]
"""Inputs or outputs of a model, by name."""

RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""Tolerances of an answer, because processors add up in different orders."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """One recorded call of a model."""

    inputs: Tensors
    outputs: Tensors

    def reproduced_by(self, outputs: Tensors) -> bool:
        """Report whether outputs equal the recorded ones within the tolerances."""
        return set(outputs) == set(self.outputs) and all(
            each.shape == outputs[name].shape and np.allclose(each, outputs[name], rtol=RELATIVE, atol=ABSOLUTE)
            for name, each in self.outputs.items()
        )


FORMAT = 1
MAX_TRIALS = 16
LONGEST_TEXT = 4096
LONGEST_NAME = 63

_DIGEST = re.compile("[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class _Array(msgspec.Struct, forbid_unknown_fields=True):
    shape: list[int]
    values: list[float]


class _Trial(msgspec.Struct, forbid_unknown_fields=True):
    inputs: dict[str, _Array]
    outputs: dict[str, _Array]


class _Head(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    manifest: Manifest
    trials: list[_Trial]


def encode_head(manifest: Manifest, trials: Sequence[Trial]) -> bytes:
    """Encode both as JSON; equal values give equal bytes."""
    head = _Head(FORMAT, manifest, [_Trial(_arrays(each.inputs), _arrays(each.outputs)) for each in trials])
    return msgspec.json.format(msgspec.json.encode(head, order="sorted"), indent=1)


def decode_head(data: bytes) -> tuple[Manifest, tuple[Trial, ...]]:
    """Decode the output of `encode_head`.

    Raises
    ------
    RejectedError
        When the data is invalid.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RejectedError(f"policy.json cannot be read: {error}") from None
    if head.format != FORMAT:
        raise RejectedError(f"format {head.format} of policy files is newer than this Seaway; it knows {FORMAT}")
    if not 1 <= len(head.trials) <= MAX_TRIALS:
        raise RejectedError(f"a policy file has 1 to {MAX_TRIALS} trials, this one {len(head.trials)}")
    check_manifest(head.manifest)
    return head.manifest, tuple(Trial(_tensors(each.inputs), _tensors(each.outputs)) for each in head.trials)


def check_manifest(manifest: Manifest) -> None:
    """Check names, and reject texts with control characters."""
    if len(manifest.name) > LONGEST_NAME or not NAME.fullmatch(manifest.name):
        raise RejectedError(f"{manifest.name[:80]!r} is not a name of a policy: use a-z, 0-9, '-' and '.', 63 at most")
    if not _DIGEST.fullmatch(manifest.model_sha256):
        raise RejectedError("model_sha256 is not a SHA-256 digest")
    for name in ("algo", "says", "made_by", "created", "config", "figures"):
        _check_texts(name, getattr(manifest, name), 0)


def _check_texts(where: str, value: object, depth: int) -> None:
    """Check all texts within a value."""
    if isinstance(value, str) and (len(value) > LONGEST_TEXT or _CONTROL.search(value)):
        raise RejectedError(f"{where} holds control characters, or more than {LONGEST_TEXT} letters")
    if depth > 8:
        raise RejectedError(f"{where} is nested too deep")
    if isinstance(value, Mapping):
        for key, each in value.items():
            _check_texts(where, key, depth + 1)
            _check_texts(where, each, depth + 1)
    elif isinstance(value, list | tuple):
        for each in value:
            _check_texts(where, each, depth + 1)


def _arrays(tensors: Tensors) -> dict[str, _Array]:
    return {
        name: _Array(list(each.shape), np.asarray(each, dtype=np.float32).astype(float).ravel().tolist())
        for name, each in tensors.items()
    }


def _tensors(arrays: Mapping[str, _Array]) -> Tensors:
    """Convert decoded arrays; reject wrong lengths, and numbers that exceed 32 bits."""
    tensors = {}
    for name, each in arrays.items():
        with np.errstate(over="ignore"):
            values = np.array(each.values, dtype=np.float32)
        if min(each.shape, default=1) < 1 or not np.isfinite(values).all():
            raise RejectedError("a trial holds an empty tensor, or a number that is none")
        try:
            tensors[name] = values.reshape(each.shape)
        except (ValueError, OverflowError):
            raise RejectedError("a trial has a tensor whose shape does not fit its values") from None
    return tensors


SUFFIX = ".policy"
HEAD, MODEL, SIGNATURE = "policy.json", "model.onnx", "signature.json"
LARGEST = {HEAD: 1 << 20, MODEL: 8 << 20, SIGNATURE: 1 << 12}
"""Maximum size of each part, bytes."""

LARGEST_FILE = sum(LARGEST.values()) + 4096
"""Maximum size, bytes, including the overhead of the archive."""

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
_BROKEN = (zipfile.BadZipFile, EOFError, NotImplementedError, OSError, OverflowError, RuntimeError, ValueError)


@dataclass(frozen=True, slots=True, eq=False)
class PolicyFile:
    """A trained policy as a file.

    Attributes
    ----------
    manifest
        Manifest of the policy.
    model
        The ONNX model.
    trials
        Recorded calls that the model must reproduce.
    signature
        Content of `signature.json`; empty for an unsigned policy.
    head
        Content of `policy.json`, which is digested and signed.
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
        """Total size of its parts."""
        return len(self.head) + len(self.model) + len(self.signature)

    @property
    def digest(self) -> str:
        """SHA-256 of `policy.json`, which contains the digest of the model. Files with equal digests decide alike."""
        return sha256(self.head).hexdigest()


def unpack(data: bytes) -> PolicyFile:
    """Read the parts of an archive. `check_policy` checks the model.

    Raises
    ------
    RejectedError
        When it is no such archive, or the digest of the model differs.
    """
    parts = _parts(data)
    manifest, trials = decode_head(parts[HEAD])
    if sha256(parts[MODEL]).hexdigest() != manifest.model_sha256:
        raise RejectedError("the model is not the one that policy.json describes: the file was damaged or changed")
    return PolicyFile(manifest, parts[MODEL], trials, parts.get(SIGNATURE, b""), parts[HEAD])


def pack(file: PolicyFile) -> bytes:
    """Return the archive; equal policies give equal bytes."""
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
    """Write a policy file atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_beside(path, pack(file))


def write_beside(path: Path, content: bytes) -> None:
    """Write a file atomically: to a temporary file that replaces the old one."""
    beside = path.with_name(f".{path.name}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_content(path: Path) -> bytes:
    """Read a file up to the maximum size of a policy file.

    Raises
    ------
    RejectedError
        When it is larger, or cannot be read.
    """
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise RejectedError(f"larger than a policy file can be, {LARGEST_FILE} bytes")
        return path.read_bytes()
    except OSError as error:
        raise RejectedError(f"cannot be read: {error.strerror}") from None


def _parts(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive by name, after a check of its directory."""
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
    """Reject unknown members and impossible sizes."""
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
