"""Lists: pages of one consistent state, filtered, and joined from bytes."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from tests.fakes.kubernetes.failures import FailureError, bad_request, expired
from tests.fakes.kubernetes.kinds import Json, Kind
from tests.fakes.kubernetes.selectors import FieldRule, Rule, fields_rule, labels_rule
from tests.fakes.kubernetes.store import Store, Stored

MAX_STATES = 32
"""Number of states that are stored for further pages; the oldest is dropped."""

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a request selects.

    Attributes
    ----------
    namespace
        Empty for all.
    labels, fields
        Rules; None for all.
    """

    namespace: str = ""
    labels: Rule | None = None
    fields: FieldRule | None = None

    @classmethod
    def read(cls, kind: Kind, namespace: str, query: Mapping[str, str]) -> Selection:
        """Read the selectors of a query.

        Raises
        ------
        FailureError
            400 if they cannot be read.
        """
        return cls(
            namespace,
            labels_rule(query.get("labelSelector", "")),
            fields_rule(query.get("fieldSelector", ""), kind),
        )

    def wants(self, one: Stored) -> bool:
        """Report whether an object is selected."""
        return (
            (not self.namespace or one.namespace == self.namespace)
            and (self.labels is None or self.labels(one.labels))
            and (self.fields is None or self.fields(one.namespace, one.name, one.fields))
        )

    @property
    def picks(self) -> bool:
        """True if there is any selector."""
        return self.labels is not None or self.fields is not None


@dataclass(frozen=True, slots=True)
class State:
    """All objects of a kind (in a namespace) at a version."""

    version: int
    items: Sequence[Stored]


class Lister:
    """Answers list requests from a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._states: OrderedDict[tuple[Kind, str, int], State] = OrderedDict()
        self._frozen: dict[Kind, State] = {}

    def freeze(self) -> None:
        """Answer lists at version 0 from the present state from now on, as a cache that falls behind does."""
        store = self._store
        self._frozen = {kind: State(store.version, tuple(store.all(kind))) for kind in store.shelves}

    def thaw(self) -> None:
        """Answer lists at version 0 from the latest state again."""
        self._frozen = {}

    def expire(self) -> None:
        """Drop the states of further pages."""
        self._states.clear()

    def select(self, kind: Kind, selection: Selection) -> list[Stored]:
        """Return the selected objects, sorted."""
        found = self._store.all(kind, selection.namespace)
        return [one for one in found if selection.wants(one)] if selection.picks else list(found)

    def answer(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> bytes:
        """Return the body of a list.

        Raises
        ------
        FailureError
            400 for invalid values, 410 for an expired page or version, 504 for a future version.
        """
        selection = Selection.read(kind, namespace, query)
        limit = _number(query.get("limit"))
        token = query.get("continue", "")
        state, after = self._resume(kind, namespace, token) if token else (self._state(kind, namespace, query), "")
        items = state.items
        if after:
            items = items[_first_after(items, after) :]
        if selection.picks:
            items = [one for one in items if selection.wants(one)]
        remaining = len(items) - limit if limit else 0
        more = ""
        if remaining > 0:
            items = items[:limit]
            more = _token(state.version, items[-1].key)
            self._keep(kind, namespace, state)
        return _encode(kind, state.version, items, more, 0 if selection.picks else remaining)

    def _state(self, kind: Kind, namespace: str, query: Mapping[str, str]) -> State:
        store, asked = self._store, query.get("resourceVersion", "")
        match = query.get("resourceVersionMatch", "")
        if match and not asked:
            raise FailureError(
                422, "Invalid",
                "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is "
                "forbidden unless resourceVersion is provided", {},
            )  # fmt: skip
        if asked == "0" and kind in self._frozen:
            frozen = self._frozen[kind]
            return State(frozen.version, [one for one in frozen.items if namespace in ("", one.namespace)])
        if asked and not asked.isdigit():
            why = f'Invalid value: "{asked}": strconv.ParseUint: parsing "{asked}": invalid syntax'
            raise bad_request(f"invalid resource version: resourceVersion: {why}")
        version = int(asked or 0)
        if version > store.version:
            raise FailureError(
                504, "Timeout", f"Timeout: Too large resource version: {version}, current: {store.version}",
                {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                 "retryAfterSeconds": 1},
                {"Retry-After": "1"},
            )  # fmt: skip
        if match == "Exact" and version != store.version:
            retained = self._states.get((kind, namespace, version))
            if retained is None:
                raise expired("The resourceVersion for the provided list is too old.")
            return retained
        return State(store.version, list(store.all(kind, namespace)))

    def _resume(self, kind: Kind, namespace: str, token: str) -> tuple[State, str]:
        version, after = _read_token(token)
        if version < 0:
            return State(self._store.version, list(self._store.all(kind, namespace))), after
        state = self._states.get((kind, namespace, version))
        if state is None:
            error = expired(_TOO_OLD)
            raise _ExpiredPageError(error, _token(-1, after))
        return state, after

    def _keep(self, kind: Kind, namespace: str, state: State) -> None:
        key = (kind, namespace, state.version)
        self._states[key] = state
        self._states.move_to_end(key)
        while len(self._states) > MAX_STATES:
            self._states.popitem(last=False)


class _ExpiredPageError(FailureError):
    """An expired page; its Status has a token to continue at the latest state."""

    def __init__(self, error: FailureError, token: str) -> None:
        super().__init__(error.code, error.reason, error.message)
        self._token = token

    def status(self) -> Json:
        return {**super().status(), "metadata": {"continue": self._token}}


def _number(text: str | None) -> int:
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _first_after(items: Sequence[Stored], key: str) -> int:
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle].key <= key:
            low = middle + 1
        else:
            high = middle
    return low


def _token(version: int, after: str) -> str:
    coded = orjson.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": after})
    return base64.urlsafe_b64encode(coded).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    try:
        found = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        return int(found["rv"]), str(found["start"])
    except (binascii.Error, orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise bad_request("continue key is not valid: illegal base64 data") from None


def _encode(kind: Kind, version: int, items: Sequence[Stored], more: str, remaining: int) -> bytes:
    meta: Json = {"resourceVersion": str(version)}
    if more:
        meta["continue"] = more
        if remaining > 0:
            meta["remainingItemCount"] = remaining
    head = b'{"kind":"%bList","apiVersion":"%b","metadata":%b,"items":[' % (
        kind.kind.encode(),
        kind.api_version.encode(),
        orjson.dumps(meta),
    )
    if not items:
        return head + b"]}"
    opening = kind.item_opening
    return b"".join((head, opening, (b"}," + opening).join([one.inside for one in items]), b"}]}"))
