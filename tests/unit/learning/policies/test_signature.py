"""Signatures of policies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from seaway.domain.errors import RejectedError
from seaway.learning.policies.check import read_policy
from seaway.learning.policies.file import pack
from seaway.learning.policies.signature import public_key, read_trusted, require_trusted, sign, signer
from tests.fakes.policies import cluster_policy

PLAIN = NoEncryption()
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


def pem(
    key: Ed25519PrivateKey,
    form: PrivateFormat = PrivateFormat.OpenSSH,
    encryption: KeySerializationEncryption = PLAIN,
) -> bytes:
    """Encode a private key."""
    return key.private_bytes(Encoding.PEM, form, encryption)


def line(key: Ed25519PrivateKey, name: str = "") -> str:
    """Encode a public key in the format of OpenSSH."""
    return f"{key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()} {name}".rstrip()


@pytest.mark.parametrize("form", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
def test_signed_policies_of_trusted_keys_are_accepted(form: PrivateFormat) -> None:
    """Other keys and unsigned policies are rejected, for each format of the private key."""
    plain = cluster_policy()
    signed = read_policy(pack(sign(plain, pem(KEY, form))))
    assert signed.digest == plain.digest
    trusted = read_trusted(f"# keys of the team\n\n{line(OTHER)}\n{line(KEY, 'ada at work')}\n")
    require_trusted(signed, trusted)
    require_trusted(plain, ())
    assert [each.name for each in trusted] == ["", "ada at work"]
    assert signer(signed) == public_key(pem(KEY)) == replace(trusted[1], name="")
    assert [each.line for each in trusted] == [line(OTHER), line(KEY, "ada at work")]
    with pytest.raises(RejectedError, match="is not signed"):
        require_trusted(plain, trusted)
    with pytest.raises(RejectedError, match=r"signed by SHA256:.* not among the keys"):
        require_trusted(signed, trusted[:1])


def test_invalid_signatures_are_rejected() -> None:
    """They are rejected even without trusted keys."""
    signed, other = sign(cluster_policy(seed=1), pem(KEY)), cluster_policy(seed=2)
    with pytest.raises(RejectedError, match="was changed after it was signed"):
        read_policy(pack(replace(other, signature=signed.signature)))


@pytest.mark.parametrize(
    "signature",
    [
        b"{}",
        b"\xff",
        b"[" * 3000,
        b'{"algorithm":"none","public_key":"","signature":""}',
        b'{"algorithm":"ed25519","public_key":"AAAA","signature":"AAAA"}',
        b'{"algorithm":"ed25519","public_key":"!","signature":"AAAA"}',
    ],
)
def test_malformed_signatures_are_rejected(signature: bytes) -> None:
    """The member must be a signature."""
    with pytest.raises(RejectedError, match=r"signature\.json"):
        read_policy(pack(replace(cluster_policy(), signature=signature)))


def test_unsupported_keys_are_rejected() -> None:
    """Keys with a passphrase and keys of other kinds are not supported."""
    curve = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    for key, says in (
        (pem(KEY, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")), "passphrase"),
        (curve, "not an Ed25519 key"),
        (b"no key", "not a private key"),
        (line(KEY).encode(), "not a private key"),
    ):
        with pytest.raises(RejectedError, match=says):
            sign(cluster_policy(), key)


@pytest.mark.parametrize("text", ["ssh-rsa AAAA", "ssh-ed25519", "ssh-ed25519 AAAA", "ssh-ed25519 !!!", "nonsense"])
def test_invalid_lines_of_trusted_keys_are_rejected(text: str) -> None:
    """The error has the number of the line."""
    with pytest.raises(RejectedError, match="line 2: is not a key"):
        read_trusted(f"{line(KEY)}\n{text}\n")
    with pytest.raises(RejectedError, match="has no key in it"):
        read_trusted("# none\n")
