"""Calls of the API as data: request, and parser of the answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote

import orjson

from seaway.client.errors import AnswerError, RejectedError

PREFIX = "/api/v1"
PAGE = 500
"""Entries on a page of a long list."""

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
Item = TypeVar("Item")

Query = Mapping[str, object]
"""Query parameters. None omits a name; a list repeats it."""


class Answer(Protocol[T_co]):
    """Parser of a response."""

    def read(self, content: bytes) -> T_co:
        """Read the body of a successful answer."""


@dataclass(frozen=True, slots=True)
class Model:
    """Parser of a model of `seaway.wire`. It imports the model's module for the first answer."""

    module: str
    name: str

    def read(self, content: bytes) -> Any:  # noqa: ANN401  # depends on the model
        """Parse a message.

        Raises
        ------
        AnswerError
            When it is invalid.
        """
        from pydantic import ValidationError

        try:
            return getattr(import_module(self.module), self.name).model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise AnswerError(f"the server's answer is not a valid {self.name}: {where} {first['msg']}") from None


class Data:
    """Parser of a JSON object without a model."""

    def read(self, content: bytes) -> dict[str, Any]:
        """Parse an object; raise as `decoded`."""
        return decoded(content)


class Text:
    """Parser of a text."""

    def read(self, content: bytes) -> str:
        """Decode text."""
        return content.decode(errors="replace")


class Bytes:
    """Parser of a file."""

    def read(self, content: bytes) -> bytes:
        """Return the content."""
        return content


class Nothing:
    """Parser of an answer without content."""

    def read(self, content: bytes) -> None:
        """Ignore the body."""


@dataclass(slots=True)
class Known:
    """Last response of a call that is repeated, so that the server need not send it again.

    Attributes
    ----------
    tag
        Its `ETag`; empty before the first response.
    content
        Its body.
    """

    tag: str = ""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A call of the API.

    Attributes
    ----------
    method, path
        As in HTTP; the path is relative to the server's URL.
    answer
        Parser of the response.
    query, headers, content
        Parts of the request.
    repeatable
        Whether it is idempotent.
    known
        Last response, which is returned again while the server has no other; None requests a full response.
    """

    method: str
    path: str
    answer: Answer[T]
    query: Query = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = b""
    repeatable: bool = True
    known: Known | None = None

    @property
    def changes(self) -> bool:
        """True for a change at the server, which a dry run and a what-if question are not."""
        return self.method != "GET" and not self.query.get("dry_run") and self.path != f"{PREFIX}/whatif"

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Query parameters, name by name."""
        return [
            (name, _written(each))
            for name, value in self.query.items()
            if value is not None
            for each in (value if isinstance(value, list | tuple) else [value])
        ]


@dataclass(frozen=True, slots=True)
class Paged(Generic[Item]):
    """List in pages.

    Attributes
    ----------
    first
        Call for the first page.
    items
        Field of a page's entries.
    by
        Query parameter of the continuation token.
    limit
        Limit of entries in all pages; None for no limit.
    """

    first: Call[Any]
    items: str
    by: str = "after"
    limit: int | None = None

    def taken(self, page: Any, had: int) -> list[Item]:  # noqa: ANN401  # one of the lists of seaway.wire
        """Return the entries of a page within the limit, after `had` previous entries."""
        entries: list[Item] = getattr(page, self.items)
        return entries if self.limit is None else entries[: self.limit - had]

    def after(self, following: str | int | None, had: int) -> Call[Any] | None:
        """Return the call for the next page; None at the limit or after the last page."""
        if following is None or (self.limit is not None and had >= self.limit):
            return None
        query = {**self.first.query, self.by: following}
        size = query.get("limit")
        if self.limit is not None and isinstance(size, int):
            query["limit"] = min(size, self.limit - had)
        return replace(self.first, query=query)


def page_size(limit: int | None, largest: int = PAGE) -> int:
    """Return the size of the pages of a list with a limit."""
    return largest if limit is None else max(1, min(limit, largest))


def get(path: str, answer: Answer[T], query: Query | None = None, known: Known | None = None) -> Call[T]:
    """Describe a call that reads."""
    return Call("GET", PREFIX + path, answer, query or {}, known=known)


def send(method: str, path: str, answer: Answer[T], body: object = None, *, repeatable: bool = True) -> Call[T]:
    """Describe a call that changes something; `body` becomes JSON, and None sends no body."""
    if body is None:
        return Call(method, PREFIX + path, answer, repeatable=repeatable)
    headers = {"Content-Type": "application/json"}
    return Call(method, PREFIX + path, answer, {}, headers, _encoded(body), repeatable)


MAX_INTEGER, MIN_INTEGER = 2**64 - 1, -(2**63)
"""Bounds of integers in JSON that every program can read as such."""


def _encoded(body: object) -> bytes:
    """Encode JSON.

    Raises
    ------
    RejectedError
        When a value has no form in JSON; names its field.
    """
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError as error:
        where, huge = next(_huge(body, ""), ("", 0))
        if huge:
            raise RejectedError(f"is too {'large' if huge > 0 else 'small'}", where=where) from None
        raise RejectedError(f"this cannot be written as JSON: {error}") from None


def _huge(value: object, path: str) -> Iterator[tuple[str, int]]:
    """Yield the integers out of bounds, with their paths."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _huge(each, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for at, each in enumerate(value):
            yield from _huge(each, f"{path}[{at}]")
    elif isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        yield path, value


class Body(dict[str, Any]):
    """JSON object of a Seaway server. A missing field means that the answer comes from another server."""

    def __missing__(self, name: str) -> Any:  # noqa: ANN401  # any type is possible
        """Report a missing field.

        Raises
        ------
        AnswerError
            Always.
        """
        raise AnswerError(f"this is not an answer of a Seaway server; it has no {name!r}; is the URL right?")


def part(name: str) -> str:
    """Quote a name for a path.

    Raises
    ------
    RejectedError
        When it contains a slash, which servers and proxies treat as a separator.
    """
    if "/" in name:
        raise RejectedError(f"{name[:80]!r} contains '/', which no name may contain")
    return quote(name, safe="") if name.strip(".") else quote(name, safe="").replace(".", "%2E")


def decoded(content: bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises
    ------
    AnswerError
        When it is none.
    """
    try:
        read = orjson.loads(content)
    except orjson.JSONDecodeError:
        read = None
    if not isinstance(read, dict):
        raise AnswerError("this is not an answer of a Seaway server; is the URL right?")
    return Body(read)


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


M = TypeVar("M", bound=Callable[..., Any])


def as_method(method: M, describe: Callable[..., Any]) -> M:
    """Give a method the name, docstring and parameters of its call, for `help`.

    Parameters
    ----------
    method
        Function of the client and the parameters of `describe`; it is changed and returned.
    """
    plain = inspect.signature(describe)
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    method.__signature__ = plain.replace(parameters=[itself, *plain.parameters.values()])  # type: ignore[attr-defined]
    method.__doc__, method.__name__, method.__qualname__ = describe.__doc__, describe.__name__, describe.__name__
    return method
