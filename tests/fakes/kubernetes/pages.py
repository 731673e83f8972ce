"""Pages of pods behind the API server's proxy, ``/api/v1/namespaces/NAMESPACE/pods/POD:PORT/proxy/PATH``.

References
----------
Kubernetes, ``pkg/registry/core/pod/rest/subresources.go``: a pod's proxy.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from tests.fakes.kubernetes.exchange import Answer, Request
from tests.fakes.kubernetes.failures import FailureError, not_supported
from tests.fakes.kubernetes.kinds import PODS
from tests.fakes.kubernetes.store import Store

Page = bytes | Callable[[], bytes | AsyncIterator[bytes]]
"""A body, or a function that creates one for each request: complete, or in chunks."""

TEXT = b"text/plain; version=0.0.4; charset=utf-8"
DEFAULT_PORT = "80"


class Pages:
    """Answers requests that go through the proxy to pods; used on the thread of its server's loop.

    Attributes
    ----------
    asked
        Number of requests for each path.
    """

    def __init__(self, store: Store) -> None:
        self.asked: dict[str, int] = {}
        self._store = store
        self._pages: dict[tuple[str, str, str], tuple[str, Page]] = {}

    def put(self, namespace: str, pod: str, port: int, page: Page, path: str = "/metrics") -> None:
        """Serve a page on a port of a pod."""
        self._pages[namespace, pod, str(port)] = path, page

    async def __call__(self, request: Request) -> Answer | None:
        """Answer a request; None if it is not for a pod's proxy.

        Raises
        ------
        FailureError
            404 for a pod that does not exist, 503 for a port without a page.
        """
        match request.path.split("/", 8):
            case ["", "api", "v1", "namespaces", namespace, "pods", target, "proxy", path]:
                return self._answer(request, namespace, target, f"/{path}")
        return None

    def _answer(self, request: Request, namespace: str, target: str, path: str) -> Answer:
        if request.method != "GET":
            raise not_supported(request.method)
        self.asked[request.path] = self.asked.get(request.path, 0) + 1
        name, _, port = target.partition(":")
        status = self._store.get(PODS, namespace, name).read().get("status") or {}
        there = self._pages.get((namespace, name, port or DEFAULT_PORT))
        if there is None or status.get("phase") != "Running":
            why = (
                f"error trying to reach service: dial tcp {status.get('podIP', '10.0.0.1')}:{port}: connection refused"
            )
            raise FailureError(503, "ServiceUnavailable", why, {})
        if path != there[0]:
            return Answer(b"404 page not found\n", 404, b"text/plain; charset=utf-8")
        page = there[1]
        return Answer(page() if callable(page) else page, type=TEXT)
