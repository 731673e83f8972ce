"""One request and its answer, between HTTP and the rules."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson
import yaml

from tests.fakes.kubernetes.failures import bad_request
from tests.fakes.kubernetes.kinds import Json
from tests.fakes.kubernetes.options import APPLY_PATCH, WriteOptions

if TYPE_CHECKING:
    from tests.fakes.kubernetes.watching import Watcher

JSON_TYPE = b"application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    Attributes
    ----------
    method, path, query, headers
        As sent; the path without the prefix of a proxy.
    body
        The whole body.
    gone
        Waits until the client has left.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[bytes, bytes]
    body: bytes
    gone: Callable[[], Coroutine[object, object, object]]

    @property
    def dry_run(self) -> bool:
        """True if nothing is to be stored."""
        return self.query.get("dryRun") == "All"

    @property
    def watches(self) -> bool:
        """True if the client wants to watch a list."""
        return self.query.get("watch") in ("true", "1")

    def write_options(self) -> WriteOptions:
        """Return the options of the write; a client that gives no manager is identified by its user agent."""
        agent = self.headers.get(b"user-agent", b"unknown").decode("latin-1").partition("/")[0]
        manager = self.query.get("fieldManager") or ("" if self.media_type == APPLY_PATCH else agent)
        return WriteOptions(manager, self.dry_run, self.query.get("force") in ("true", "1"))

    @property
    def media_type(self) -> str:
        """The type of the body."""
        return self.headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip()

    def document(self) -> object:
        """Return the body, decoded from JSON or YAML.

        Raises
        ------
        FailureError
            400 if it is neither.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            if not self.media_type.endswith("yaml"):
                raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
        try:
            return yaml.safe_load(self.body)
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: {error}") from None

    def object(self) -> Json:
        """Return the body as an object.

        Raises
        ------
        FailureError
            400 if it is not an object.
        """
        found = self.document()
        if not isinstance(found, dict):
            raise bad_request("couldn't get version/kind; the body is not an object")
        return found


@dataclass(slots=True)
class Answer:
    """An answer: a body, or chunks of one as they come; for a watch, its sender."""

    body: bytes | AsyncIterator[bytes]
    code: int = 200
    type: bytes = JSON_TYPE
    watcher: Watcher | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
