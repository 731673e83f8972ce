"""`policy.json`: what stands in a policy file beside the model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import NAME
from seaway.learning.policies.manifest import Manifest
from seaway.learning.policies.trial import Tensors, Trial

FORMAT = 1
MOST_TRIALS = 16
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
    """Write both as JSON: the same bytes for the same values."""
    head = _Head(FORMAT, manifest, [_Trial(_arrays(each.inputs), _arrays(each.outputs)) for each in trials])
    return msgspec.json.format(msgspec.json.encode(head, order="sorted"), indent=1)


def decode_head(data: bytes) -> tuple[Manifest, tuple[Trial, ...]]:
    """Read what `encode_head` wrote.

    Raises
    ------
    RejectedError
        When it is anything else.
    """
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RejectedError(f"policy.json cannot be read: {error}") from None
    if head.format != FORMAT:
        raise RejectedError(f"format {head.format} of policy files is newer than this Seaway; it knows {FORMAT}")
    if not 1 <= len(head.trials) <= MOST_TRIALS:
        raise RejectedError(f"a policy file has 1 to {MOST_TRIALS} trials, this one {len(head.trials)}")
    check_manifest(head.manifest)
    return head.manifest, tuple(Trial(_tensors(each.inputs), _tensors(each.outputs)) for each in head.trials)


def check_manifest(manifest: Manifest) -> None:
    """Refuse names that are none, and texts that would do something to a terminal."""
    if len(manifest.name) > LONGEST_NAME or not NAME.fullmatch(manifest.name):
        raise RejectedError(f"{manifest.name[:80]!r} is no name of a policy: use a-z, 0-9, '-' and '.', 63 at most")
    if not _DIGEST.fullmatch(manifest.model_sha256):
        raise RejectedError("model_sha256 is no SHA-256 digest")
    for name in ("algo", "says", "made_by", "created", "config", "figures"):
        _check_texts(name, getattr(manifest, name), 0)


def _check_texts(where: str, value: object, depth: int) -> None:
    """Look at every text within a value."""
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
    """Make arrays of what was read; lengths that do not fit, and numbers too large for 32 bits, are refused."""
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
