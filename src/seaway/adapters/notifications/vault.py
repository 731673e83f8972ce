"""Encryption of secrets in the database.

References
----------
NIST SP 800-38D, AES-GCM with random 96-bit nonces.
"""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from binascii import Error

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from seaway.domain.errors import RejectedError

KEY_BYTES, NONCE_BYTES = 32, 12


class AesVault:
    """Encryption with AES-256-GCM. The owner of a secret is authenticated, so that it cannot be moved to another.

    Parameters
    ----------
    key
        32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, secret: str, of: str) -> str:
        """Encrypt a secret that belongs to `of`."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        return b64encode(nonce + self._cipher.encrypt(nonce, secret.encode(), of.encode())).decode()

    def unseal(self, sealed: str, of: str) -> str:
        """Decrypt a secret; see `seaway.application.ports.channels.Vault`."""
        try:
            raw = b64decode(sealed)
            return self._cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], of.encode()).decode()
        except (InvalidTag, ValueError):
            text = "its secret was encrypted with another key; restore the key, or set the secret or the URL again"
            raise RejectedError(text) from None


def draw_key() -> str:
    """Return a new key as base64."""
    return b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def read_key(text: str, where: str) -> bytes:
    """Parse a key.

    Raises
    ------
    RejectedError
        If it is not 32 bytes in base64.
    """
    try:
        key = b64decode(text.strip(), validate=True)
    except (Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise RejectedError(f"must be {KEY_BYTES} bytes in base64, as of `openssl rand -base64 32`", where=where)
    return key
