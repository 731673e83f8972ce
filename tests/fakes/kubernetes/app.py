"""The paths that Kubernetes serves, as one ASGI application per server, from HTTP to verbs and lists."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import orjson

from tests.fakes.kubernetes.containers import Containers
from tests.fakes.kubernetes.declared import drop_unknown
from tests.fakes.kubernetes.exchange import JSON_TYPE, Answer, Request
from tests.fakes.kubernetes.failures import (
    FailureError,
    bad_request,
    no_such_path,
    not_supported,
    unauthorized,
    unsupported_media_type,
)
from tests.fakes.kubernetes.faults import DropError, FaultList
from tests.fakes.kubernetes.kinds import PODS, Json, Kind, Kinds
from tests.fakes.kubernetes.listing import Lister, Selection
from tests.fakes.kubernetes.options import APPLY_PATCH, PATCHES, DeleteOptions
from tests.fakes.kubernetes.parts import Parts
from tests.fakes.kubernetes.store import Store, Stored
from tests.fakes.kubernetes.syntax import MAX_BODY, UnreadableError
from tests.fakes.kubernetes.verbs import Verbs
from tests.fakes.kubernetes.watching import CutError, Watches

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-09-09T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
TRANSPORT = "seaway.transport"
"""The ASGI scope extension in which a request finds its connection."""
_ROOTS = ("/api", "/apis", "/healthz", "/livez", "/readyz", "/version")
_OPEN = ("/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True, slots=True)
class Target:
    """The resource that a path names."""

    kind: Kind
    namespace: str
    name: str
    part: str


class Application:
    """The ASGI application of one server.

    Parameters
    ----------
    store, verbs, lister, watches, faults, parts
        Parts that the application serves.
    tokens
        Accepted tokens, which may change while it serves; None to accept every client.

    Attributes
    ----------
    before
        Handlers of other paths, tried first; a handler that returns None leaves the request to the next one.
    requests
        Number of requests by method.
    containers
        Processes in containers.
    members
        Functions that return another server behind a path, and the path there, for web sockets.
    """

    def __init__(
        self, store: Store, verbs: Verbs, lister: Lister, watches: Watches, faults: FaultList, parts: Parts
    ) -> None:
        self.tokens: set[str] | None = None
        self.before: list[Callable[[Request], Awaitable[Answer | None]]] = []
        self.requests: dict[str, int] = {}
        self._kinds: Kinds = store.kinds
        self._store = store
        self._verbs = verbs
        self._lister = lister
        self._watches = watches
        self._faults = faults
        self._parts = parts
        self.containers: Containers | None = None
        self.members: list[Callable[[str], tuple[Application, str] | None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path: str = scope["path"]
        if scope["type"] == "websocket":
            await self._open(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        method: str = scope["method"]
        self.requests[method] = self.requests.get(method, 0) + 1
        try:
            headers = dict(scope["headers"])
            self._let_in(path, headers)
            body = await _body(receive)
            query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
            request = Request(method, path, query, headers, body, lambda: _gone(receive))
            answer = await self.respond(request)
        except FailureError as failure:
            await _send(send, orjson.dumps(failure.status()), failure.code, JSON_TYPE, failure.headers)
            return
        except DropError:
            await _hang_up(scope, receive)
            return
        if isinstance(answer.body, bytes):
            await _send(send, answer.body, answer.code, answer.type, answer.headers)
        else:
            await _stream(scope, receive, send, answer)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the handshake of a web socket: a session with a container, or the Status of an error."""
        path: str = scope["path"]
        try:
            headers = dict(scope["headers"])
            self._let_in(path, headers)
            for other in self.members:
                if found := other(path):
                    member, inner = found
                    await member.serve(inner, scope, receive, send)
                    return
            await self.serve(path, scope, receive, send)
        except FailureError as failure:
            body, kind = orjson.dumps(failure.status()), [(b"content-type", JSON_TYPE)]
            await send({"type": "websocket.http.response.start", "status": failure.code, "headers": kind})
            await send({"type": "websocket.http.response.body", "body": body})

    async def serve(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an authorized session with a container.

        Raises
        ------
        FailureError
            If the server refuses it.
        """
        request = Request("GET", path, {}, dict(scope["headers"]), b"", lambda: _gone(receive))
        await self._faults.meet("GET", path, request.gone)
        for other in self.before:
            await other(request)
        target = self._target(path)
        if target.kind is not PODS or self.containers is None:
            raise no_such_path()
        pod = self._store.get(PODS, target.namespace, target.name).read()
        await self.containers.run(pod, target.part, scope, receive, send)

    async def respond(self, request: Request) -> Answer:
        """Answer an authorized request.

        Raises
        ------
        FailureError
            If the answer is an error.
        DropError
            If there is no answer.
        """
        await self._faults.meet(request.method, request.path, request.gone)
        for other in self.before:
            if answer := await other(request):
                return answer
        try:
            return await self.answer(request)
        except UnreadableError as error:
            if request.media_type != APPLY_PATCH:
                raise bad_request(str(error)) from error
            raise FailureError(500, "", f"failed to convert new object to proper version: {error}") from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            if request.method == "GET":
                raise
            code, reason = (422, "Invalid") if request.method == "PATCH" else (400, "BadRequest")
            raise FailureError(code, reason, f"json: cannot unmarshal: {error!r}", {}) from error

    def _let_in(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        if self.tokens is None or (path in _OPEN and b"authorization" not in headers):
            return
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or token not in self.tokens:
            raise unauthorized()

    async def answer(self, request: Request) -> Answer:
        """Answer a request that no fault affects."""
        if not request.path.startswith(("/api/", "/apis/")) and request.path not in _ROOTS:
            return Answer(b"404 page not found\n", 404, b"text/plain; charset=utf-8")
        if found := self._about(request.path):
            return found
        target = self._target(request.path)
        if not target.name:
            return self._collection(target, request)
        if target.part and target.part not in ("status",):
            return await self._parts.answer(target.kind, target.namespace, target.name, target.part, request)
        return self._object(target, request)

    def _about(self, path: str) -> Answer | None:
        if path in ("/readyz", "/livez", "/healthz"):
            return Answer(b"ok", type=b"text/plain; charset=utf-8")
        parts = path.strip("/").split("/")
        found: Json | None = None
        match parts:
            case ["version"]:
                found = VERSION
            case ["api"]:
                found = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            case ["apis"]:
                found = self._kinds.describe_groups()
            case ["api", version]:
                found = self._kinds.describe_version("", version)
            case ["apis", group] if group in self._kinds.groups():
                found = {"kind": "APIGroup", "apiVersion": "v1", **self._kinds.describe_group(group)}
            case ["apis", group, version]:
                found = self._kinds.describe_version(group, version)
        return Answer(orjson.dumps(found)) if found is not None else None

    def _target(self, path: str) -> Target:
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "v1"]:
            group, version, rest = "", "v1", parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise no_such_path()
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and self._kinds.served(group, version, rest[2]):
            namespace, rest = rest[1], rest[2:]
        kind = self._kinds.served(group, version, rest[0]) if rest else None
        if kind is None or len(rest) > 3 or (namespace and not kind.namespaced):
            raise no_such_path()
        name, part = (*rest[1:], "", "")[:2]
        if name and kind.namespaced and not namespace:
            raise no_such_path()
        if part == "status" and not kind.status:
            raise no_such_path()
        return Target(kind, namespace, name, part)

    def _collection(self, target: Target, request: Request) -> Answer:
        kind, namespace = target.kind, target.namespace
        match request.method:
            case "GET" if request.watches:
                return self._watches.start(kind, namespace, request.path, request.query)
            case "GET":
                return Answer(self._lister.answer(kind, namespace, request.query))
            case "POST":
                body = _named(kind, request)
                warned = _known(kind, body, request)
                made = self._verbs.create(kind, namespace, body, request.write_options())
                return Answer(made.encode(), 201, headers=warned)
            case "DELETE":
                return self._delete_all(target, request)
        raise not_supported(request.method)

    def _delete_all(self, target: Target, request: Request) -> Answer:
        options = _delete_options(request)
        selection = Selection.read(target.kind, target.namespace, request.query)
        gone = [
            self._verbs.delete(target.kind, one.namespace, one.name, options)[0]
            for one in self._lister.select(target.kind, selection)
        ]
        head = orjson.dumps(
            {
                "kind": f"{target.kind.kind}List",
                "apiVersion": target.kind.api_version,
                "metadata": {"resourceVersion": str(self._store.version)},
            }
        )
        items = b",".join([target.kind.item_opening + one.inside + b"}" for one in gone])
        return Answer(head[:-1] + b',"items":[' + items + b"]}")

    def _object(self, target: Target, request: Request) -> Answer:
        kind, namespace, name, part = target.kind, target.namespace, target.name, target.part
        match request.method:
            case "GET" if request.watches:
                query = {**request.query, "fieldSelector": f"metadata.name={name}"}
                return self._watches.start(kind, namespace, request.path, query)
            case "GET":
                return Answer(self._store.get(kind, namespace, name).encode())
            case "PUT":
                there = self._store.find(kind, namespace, name) is not None
                body, options = _named(kind, request), request.write_options()
                warned = _known(kind, body, request)
                updated = self._verbs.update(kind, namespace, name, body, part, options)
                return Answer(updated.encode(), 200 if there else 201, headers=warned)
            case "PATCH":
                if request.media_type not in PATCHES:
                    raise unsupported_media_type(request.media_type, PATCHES)
                change, options = request.document(), request.write_options()
                warned = _known(kind, change, request) if isinstance(change, dict) else {}
                patched, created = self._verbs.patch(kind, namespace, name, request.media_type, change, part, options)
                return Answer(patched.encode(), 201 if created else 200, headers=warned)
            case "DELETE" if not part:
                last, gone = self._verbs.delete(kind, namespace, name, _delete_options(request))
                return Answer(_deleted(last) if gone else last.encode())
        raise not_supported(request.method)


def _named(kind: Kind, request: Request) -> Json:
    """Return the body of a request; the body of a custom resource must have apiVersion and kind."""
    body = request.object()
    missing = next((name for name in ("kind", "apiVersion") if not body.get(name)), "")
    if kind.custom and missing:
        text = request.body.decode(errors="replace")
        name = "Kind" if missing == "kind" else missing
        raise bad_request(
            f"the object provided is unrecognized (must be of type {kind.kind}): Object '{name}' is missing in '{text}'"
        )
    return body


def _known(kind: Kind, body: Json, request: Request) -> dict[str, str]:
    """Remove unknown fields and return the warning headers; reject the request if it asks for strict validation."""
    unknown = drop_unknown(kind, body)
    if not unknown:
        return {}
    if request.media_type == APPLY_PATCH:
        meta = body.get("metadata") or {}
        said = "\n".join(f".{each}: field not declared in schema" for each in unknown)
        what = f"{meta.get('namespace', '')}/{meta.get('name')}; {kind.api_version}, Kind={kind.kind}"
        raise FailureError(500, "", f"failed to create typed patch object ({what}): {said}")
    listed = [f'unknown field "{each}"' for each in unknown]
    if request.query.get("fieldValidation") == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(listed)}")
    if request.query.get("fieldValidation") == "Ignore":
        return {}
    return {"Warning": ", ".join(f'299 - "{each}"' for each in (one.replace('"', '\\"') for one in listed))}


def _deleted(last: Stored) -> bytes:
    """Return the answer to a delete: the last state of pods and services, a Status for all other kinds."""
    kind = last.kind
    if kind.plural in ("pods", "services") and not kind.group:
        return last.encode()
    details: Json = {"name": last.name, "kind": kind.plural, "uid": last.uid}
    if kind.group:
        details["group"] = kind.group
    return orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


def _delete_options(request: Request) -> DeleteOptions:
    body = request.object() if request.body.strip() else {}
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", request.query.get("gracePeriodSeconds"))
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy") or ""
    if propagation not in ("", "Foreground", "Background", "Orphan"):
        why = f'Unsupported value: "{propagation}": supported values: "Foreground", "Background", "Orphan", "nil"'
        cause = {"field": "propagationPolicy", "message": why, "reason": "FieldValueNotSupported"}
        raise FailureError(
            422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {why}',
            {"causes": [cause], "group": "meta.k8s.io", "kind": "DeleteOptions"},
        )  # fmt: skip
    return DeleteOptions(
        None if grace is None else int(grace),
        propagation,
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
        request.dry_run or body.get("dryRun") == ["All"],
    )


async def _body(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise DropError
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MAX_BODY:
            too_large = f"Request entity too large: limit is {MAX_BODY}"
            raise FailureError(413, "RequestEntityTooLarge", too_large, {})
        if not message.get("more_body"):
            return b"".join(pieces)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(send: Send, body: bytes, code: int, kind: bytes, more: Mapping[str, str]) -> None:
    headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in more.items()]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _stream(scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
    """Send chunks as they come, until they end, are cut off, or the client has left."""
    assert not isinstance(answer.body, bytes)
    await send({"type": "http.response.start", "status": answer.code, "headers": [(b"content-type", answer.type)]})
    here = asyncio.current_task()
    assert here is not None
    left = asyncio.ensure_future(_gone(receive))
    left.add_done_callback(lambda done: None if done.cancelled() else here.cancel())
    try:
        async for piece in answer.body:
            if piece:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
    except CutError:
        left.cancel()
        await _hang_up(scope, receive)
        return
    except asyncio.CancelledError:
        if not left.done():
            raise
        here.uncancel()
        return
    finally:
        left.cancel()
        await answer.body.aclose()  # type: ignore[attr-defined]  # every one is a generator
    await send({"type": "http.response.body", "body": b""})


async def _hang_up(scope: Scope, receive: Receive) -> None:
    """Close the connection without the end that HTTP requires."""
    scope["extensions"][TRANSPORT]["transport"].close()
    await _gone(receive)
