"""Bucket of an object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Upload:
    """Request with which a client stores an object.

    Attributes
    ----------
    url
        URL to which the content is sent with PUT. It is valid for an hour.
    headers
        Headers to send. They have the size and the checksum, so that the bucket accepts no other content.
    """

    url: str
    headers: Mapping[str, str]


class Bucket(Protocol):
    """Objects by name. Any thread can call every method.

    All raise UnavailableError if the bucket does not respond, or refuses the credentials.
    """

    @property
    def address(self) -> str:
        """Address of the bucket, which tells apart several, such as ``s3://archives/seaway``."""
        ...

    def upload(self, name: str, sha256: bytes, size_bytes: int) -> Upload:
        """Return the request that stores an object."""
        ...

    def url(self, name: str) -> str:
        """Return a URL from which an object can be fetched for an hour, without other credentials."""
        ...

    def size(self, name: str) -> int | None:
        """Return the size of an object, bytes; None if there is none."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object, if there is one."""
        ...
