"""Bucket of an object store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Upload:
    """Request with which a client stores an object, or a part of one.

    Attributes
    ----------
    url
        URL to which the content is sent with PUT. It is valid for an hour.
    headers
        Headers to send. They have the size, and for a whole object the checksum, so that the bucket accepts no other.
    offset_bytes, size_bytes
        Position and size of the content in the object.
    """

    url: str
    headers: Mapping[str, str]
    size_bytes: int
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Part of an upload that the bucket has.

    Attributes
    ----------
    tag
        Name of its content in the bucket, which joins it with the others.
    """

    size_bytes: int
    tag: str


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

    def begin(self, name: str) -> str:
        """Begin to store an object in parts; return the ID of this upload."""
        ...

    def upload_part(self, name: str, upload: str, number: int, offset_bytes: int, size_bytes: int) -> Upload:
        """Return the request that stores a part, with a number from 1."""
        ...

    def parts(self, name: str, upload: str) -> Mapping[int, StoredPart] | None:
        """Return the parts of an upload that the bucket has, by number; None if it does not know the upload."""
        ...

    def join(self, name: str, upload: str, parts: Mapping[int, StoredPart]) -> None:
        """Store an object from its parts."""
        ...

    def abort(self, name: str, upload: str) -> None:
        """Remove an upload with its parts, if there is one."""
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
