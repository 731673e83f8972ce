"""Subresources of objects other than the status: ``/scale``, ``/log``, ``/binding`` and ``/eviction``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Protocol

import orjson

from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.failures import conflict, no_such_path, not_supported, unsupported_media_type
from tests.fakes.kubernetes.kinds import PODS, Json, Kind
from tests.fakes.kubernetes.options import JSON_PATCH, PATCHES, DeleteOptions
from tests.fakes.kubernetes.patches import json_patch, merge
from tests.fakes.kubernetes.store import Store
from tests.fakes.kubernetes.verbs import Verbs

Bodies = bytes | AsyncIterator[bytes]


class Logs(Protocol):
    """Source of the output of containers."""

    def read(self, pod: Json, query: Mapping[str, str]) -> Bodies:
        """Return the output of a container, complete or in chunks as it comes."""
        ...


class Parts:
    """Answers requests for subresources."""

    def __init__(self, store: Store, verbs: Verbs) -> None:
        self.logs: Logs | None = None
        self._store = store
        self._verbs = verbs

    async def answer(self, kind: Kind, namespace: str, name: str, part: str, request: Request) -> Answer:
        """Answer a request.

        Raises
        ------
        FailureError
            404 for a subresource that does not exist, 405 for a method that it does not support.
        """
        if part == "scale" and kind.scale:
            return self._scale(kind, namespace, name, request)
        handlers: dict[str, tuple[str, Callable[[str, str, Request], Answer]]] = {
            "log": ("GET", self._log),
            "binding": ("POST", self._bind),
            "eviction": ("POST", self._evict),
        }
        if kind is not PODS or part not in handlers:
            raise no_such_path()
        method, handle = handlers[part]
        if request.method != method:
            raise not_supported(request.method)
        return handle(namespace, name, request)

    def _scale(self, kind: Kind, namespace: str, name: str, request: Request) -> Answer:
        found = self._store.get(kind, namespace, name)
        scale = _scale_of(found.read())
        if request.method == "GET":
            return Answer(orjson.dumps(scale))
        if request.method == "PATCH":
            if request.media_type not in PATCHES:
                raise unsupported_media_type(request.media_type, PATCHES)
            change = json_patch if request.media_type == JSON_PATCH else merge
            scale = change(scale, request.document())
        elif request.method == "PUT":
            scale = request.object()
        else:
            raise not_supported(request.method)
        if scale["metadata"].get("resourceVersion") not in (None, "", str(found.version)):
            raise conflict(kind, name)
        body = found.read()
        body["spec"]["replicas"] = int(scale["spec"].get("replicas", 0))
        stored = self._verbs.update(kind, namespace, name, body, "scale", request.write_options())
        return Answer(orjson.dumps(_scale_of(stored.read())))

    def _log(self, namespace: str, name: str, request: Request) -> Answer:
        pod = self._store.get(PODS, namespace, name).read()
        text = self.logs.read(pod, request.query) if self.logs else b""
        return Answer(text, 200 if pod["spec"].get("nodeName") else 204, b"text/plain")

    def _bind(self, namespace: str, name: str, request: Request) -> Answer:
        asked = request.object()
        bind(self._store, namespace, name, asked["target"]["name"], asked.get("metadata", {}).get("annotations"))
        return Answer(
            orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}), 201
        )

    def _evict(self, namespace: str, name: str, request: Request) -> Answer:
        asked = request.object().get("deleteOptions") or {}
        self._verbs.delete(PODS, namespace, name, DeleteOptions(asked.get("gracePeriodSeconds")))
        return Answer(
            orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}), 201
        )


def bind(store: Store, namespace: str, name: str, node: str, annotations: Json | None = None) -> None:
    """Bind a pod to a node.

    Raises
    ------
    FailureError
        409 if it is already bound, or is being deleted.
    """
    found = store.get(PODS, namespace, name)
    body = found.read()
    if found.deleting:
        raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if body["spec"].get("nodeName"):
        raise conflict(PODS, name, f'pod {name} is already assigned to node "{body["spec"]["nodeName"]}"')
    body["spec"]["nodeName"] = node
    if annotations:
        body["metadata"].setdefault("annotations", {}).update(annotations)
    conditions = body["status"].setdefault("conditions", [])
    conditions[:] = [one for one in conditions if one["type"] != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": body["metadata"]["creationTimestamp"]}
    )
    store.put(PODS, body)


def _scale_of(body: Json) -> Json:
    meta = {
        name: body["metadata"].get(name)
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    labels = (body["spec"].get("selector") or {}).get("matchLabels") or {}
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": body["spec"]["replicas"]} if body["spec"].get("replicas") else {},
        "status": {
            "replicas": (body.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(labels.items())),
        },
    }
