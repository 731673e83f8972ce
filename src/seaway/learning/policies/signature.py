"""Signatures of policies: Ed25519, with keys in the format of OpenSSH.

References
----------
RFC 8032 (Ed25519), RFC 4253 section 6.6 and RFC 8709 (how OpenSSH writes its keys).
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

from seaway.domain.errors import RejectedError
from seaway.learning.policies.file import PolicyFile

ALGORITHM = "ed25519"
KIND = "ssh-ed25519"
CONTEXT = b"seaway policy 1\n"
"""Prefix of the signed data, so that no other signature of the key is valid for a policy."""

KEY_BYTES = 32
_OPENSSH = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"
"""Prefix of the bytes of such a key in OpenSSH's format."""

_NO_KEY = "make one: ssh-keygen -t ed25519 -N '' -f FILE"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key that verifies signatures.

    Attributes
    ----------
    raw
        32 bytes.
    name
        Comment in its line; empty for none.
    """

    raw: bytes
    name: str = ""

    @property
    def fingerprint(self) -> str:
        """Fingerprint, as printed by `ssh-keygen -l`."""
        return "SHA256:" + b64encode(sha256(_OPENSSH + self.raw).digest()).decode("ascii").rstrip("=")

    @property
    def line(self) -> str:
        """Line of a file of trusted keys."""
        return f"{KIND} {b64encode(_OPENSSH + self.raw).decode('ascii')} {self.name}".rstrip()


class _Signature(msgspec.Struct, forbid_unknown_fields=True):
    algorithm: str
    public_key: str
    signature: str


def sign(file: PolicyFile, key: bytes) -> PolicyFile:
    """Return a policy file with a new signature.

    Parameters
    ----------
    key
        A private Ed25519 key without a passphrase, in OpenSSH's format or as PKCS #8 in PEM.

    Raises
    ------
    RejectedError
        When the key is invalid.
    """
    private = _private_key(key)
    signature = _Signature(
        ALGORITHM,
        b64encode(private.public_key().public_bytes_raw()).decode("ascii"),
        b64encode(private.sign(CONTEXT + file.head)).decode("ascii"),
    )
    return replace(file, signature=msgspec.json.encode(signature))


def signer(file: PolicyFile) -> PublicKey | None:
    """Return the key of a policy file's signature, trusted or not; None for an unsigned file.

    Raises
    ------
    RejectedError
        When the signature is invalid.
    """
    if not file.signature:
        return None
    try:
        said = msgspec.json.decode(file.signature, type=_Signature)
        raw, signature = (b64decode(each, validate=True) for each in (said.public_key, said.signature))
        if said.algorithm != ALGORITHM:
            raise RejectedError("signature.json is of another kind than ed25519")
        Ed25519PublicKey.from_public_bytes(raw).verify(signature, CONTEXT + file.head)
    except InvalidSignature:
        raise RejectedError("the signature is invalid: the policy was changed after it was signed") from None
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RejectedError(f"signature.json cannot be read: {error}") from None
    return PublicKey(raw)


def read_trusted(text: str) -> tuple[PublicKey, ...]:
    """Read trusted keys: one per line, as in OpenSSH's `.pub` files; `#` begins a comment.

    Raises
    ------
    RejectedError
        When a line is invalid, or there is no key.
    """
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        kind, _, rest = line.strip().partition(" ")
        blob, _, name = rest.strip().partition(" ")
        try:
            raw = b64decode(blob, validate=True).removeprefix(_OPENSSH)
        except (binascii.Error, ValueError):
            raw = b""
        if kind != KIND or len(raw) != KEY_BYTES:
            raise RejectedError(f"is not a key: a line is {KIND!r}, the key and a name", where=f"line {number}")
        keys.append(PublicKey(raw, name.strip()))
    if not keys:
        raise RejectedError("has no key in it; omit the setting to accept unsigned policies")
    return tuple(keys)


def require_trusted(file: PolicyFile, trusted: Sequence[PublicKey]) -> None:
    """Check that a trusted key signed a policy. Without trusted keys, all policies pass.

    Raises
    ------
    RejectedError
        When the signature is missing or not trusted.
    """
    if not trusted:
        return
    key = signer(file)
    if key is None:
        raise RejectedError(
            "this policy is not signed, and only signed ones are accepted here: sign it with seaway policy sign"
        )
    if key.raw not in {each.raw for each in trusted}:
        raise RejectedError(f"this policy is signed by {key.fingerprint}, which is not among the keys trusted here")


def public_key(key: bytes) -> PublicKey:
    """Return the public half of a private key; raises as `sign`."""
    return PublicKey(_private_key(key).public_key().public_bytes_raw())


def _private_key(key: bytes) -> Ed25519PrivateKey:
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in key else load_pem_private_key
    try:
        private = load(key, None)
    except TypeError:
        raise RejectedError(f"the key has a passphrase; use one without, {_NO_KEY}") from None
    except (ValueError, UnsupportedAlgorithm):
        raise RejectedError(f"this is not a private key; {_NO_KEY}") from None
    if not isinstance(private, Ed25519PrivateKey):
        raise RejectedError(f"this is not an Ed25519 key; {_NO_KEY}")
    return private
