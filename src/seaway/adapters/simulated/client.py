"""HTTP client for simulated clusters in another process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
import orjson
from pydantic import ValidationError

from seaway.adapters.simulated import messages
from seaway.adapters.simulated.messages import FaultRequest
from seaway.adapters.simulated.workload import manifests, require_container
from seaway.application.ports.backend import Answer, Changes, Command
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.network import Gateway, Link
from seaway.domain.reasons import Reason

Read = TypeVar("Read")

CONNECT_S = 2.0
TIMEOUT_S = 10.0


class RemoteSimulatedCluster:
    """One simulated cluster behind a server.

    Parameters
    ----------
    url
        URL of the server.
    cluster
        Name of the cluster.
    timeout_s
        Timeout of a call, in addition to the wait of `changes`.
    """

    def __init__(self, url: str, cluster: str, timeout_s: float = TIMEOUT_S) -> None:
        self._name = cluster
        self._admission = _Admission(
            f"{url.rstrip('/')}/clusters/{quote(cluster, safe='')}", Reason("cluster_named", cluster=cluster), timeout_s
        )

    @property
    def cluster(self) -> str:
        """Name of the cluster."""
        return self._name

    def changes(self, cursor: str, wait_s: float) -> Changes:
        """Return the changes since `cursor`, or a full report if it is empty or too old."""
        asked = {"cursor": cursor, "wait_s": wait_s}
        return self._admission.get("/changes", asked, messages.read_changes, wait_s)

    def send(self, commands: Sequence[Command]) -> list[Answer]:
        """Execute commands in one request; return the answers in the same order."""
        return self._admission.post("/commands", messages.write_commands(commands), messages.read_answers)

    def manifests(self, deployment: Deployment) -> list[dict[str, Any]]:
        """Return a Kubernetes Job for each replica, as for a real cluster."""
        return manifests(deployment)

    def logs(  # see `Backend`
        self, copy: str, replica: int, tail: int, container: str = "", since_ns: int = 0, *, times: bool = False
    ) -> Iterator[str]:
        """Return the last log lines of a replica."""
        require_container(container)
        query = {"copy": copy, "replica": replica, "tail": tail, "since_ns": since_ns, "times": int(times)}
        lines: list[str] = self._admission.get("/logs", query, orjson.loads)
        return iter(lines)

    def cause(self, trouble: FaultRequest) -> None:
        """Inject a fault; see `seaway.adapters.simulated.messages`."""
        self._admission.post("/faults", messages.FAULT_REQUEST.dump_json(trouble), orjson.loads)

    def heal(self, kind: str, target: str = "") -> None:
        """End a fault; the kind ``all`` ends every injected fault."""
        self._admission.post("/heal", messages.HEALING.dump_json(messages.Healing(kind, target)), orjson.loads)

    def close(self) -> None:
        """Close all connections."""
        self._admission.close()


class RemoteSimulatedBackends:
    """`Backends` for the simulated clusters of a server.

    All methods raise `UnavailableError` until the server first answers. After that, clusters and gateways are those of
    the last call of `links`, and each cluster reports its own failures.

    Parameters
    ----------
    url
        URL of the server, such as ``http://127.0.0.1:7070``.
    timeout_s
        Timeout of a call, in addition to the wait of `changes`.

    Raises
    ------
    RejectedError
        When `url` is invalid.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        _require_url(url)
        self._url = url
        self._timeout_s = timeout_s
        self._admission = _Admission(url.rstrip("/"), Reason("simulation_server", url=url), timeout_s)
        self._lock = Lock()
        self._learned = False
        self._clusters: dict[str, RemoteSimulatedCluster] = {}
        self._gateways: tuple[Gateway, ...] = ()

    def clusters(self) -> Sequence[RemoteSimulatedCluster]:
        """Return the clusters, in the order that decides ties."""
        self._learn()
        return tuple(self._clusters.values())

    def gateways(self) -> Sequence[Gateway]:
        """Return the gateways."""
        self._learn()
        return self._gateways

    def links(self) -> Sequence[Link]:
        """Return the server's current links, and update the clusters."""
        return self._reload().links

    def cluster(self, name: str) -> RemoteSimulatedCluster:
        """Return a cluster by name.

        Raises
        ------
        RejectedError
            When the server has no such cluster.
        """
        self._learn()
        if name not in self._clusters:
            raise RejectedError(f"cluster {name!r} not found; available: {', '.join(self._clusters)}")
        return self._clusters[name]

    def close(self) -> None:
        """Close all connections."""
        self._admission.close()
        for each in self._clusters.values():
            each.close()

    def _learn(self) -> None:
        if not self._learned:
            self._reload()

    def _reload(self) -> messages.About:
        """Load the server's clusters and gateways. Keep the objects of clusters that still exist."""
        about = self._admission.get("/about", {}, messages.ABOUT.validate_json)
        with self._lock:
            before = self._clusters
            self._gateways = about.gateways
            self._clusters = {
                name: before.get(name) or RemoteSimulatedCluster(self._url, name, self._timeout_s)
                for name in about.clusters
            }
            self._learned = True
        return about


def _require_url(url: str) -> None:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise RejectedError(f"{url!r} is not an address of a server: {error}", where="url") from None
    if parsed.scheme not in {"http", "https"} or not parsed.host:
        raise RejectedError(f"{url!r} is not an address of a server, like http://127.0.0.1:7070", where="url")


class _Admission:
    """HTTP client for one base URL that converts errors to Seaway's own."""

    def __init__(self, url: str, whom: str, timeout_s: float) -> None:
        self._url = url
        self._whom = whom
        self._timeout_s = timeout_s
        # Ignore proxies and settings of the environment: the server is on this machine.
        self._client = httpx.Client(trust_env=False, timeout=httpx.Timeout(timeout_s, connect=CONNECT_S))

    def get(self, path: str, asked: dict[str, Any], read: Callable[[bytes], Read], wait_s: float = 0) -> Read:
        """Send a GET request, with `wait_s` added to its timeout."""
        timeout = httpx.Timeout(self._timeout_s + wait_s, connect=CONNECT_S)
        request = self._client.build_request("GET", self._url + path, params=asked, timeout=timeout)
        return self._ask(request, read)

    def post(self, path: str, body: bytes, read: Callable[[bytes], Read]) -> Read:
        """Send a POST request."""
        headers = {"content-type": "application/json"}
        return self._ask(self._client.build_request("POST", self._url + path, content=body, headers=headers), read)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _ask(self, request: httpx.Request, read: Callable[[bytes], Read]) -> Read:
        try:
            response = self._client.send(request)
            if response.status_code == httpx.codes.OK:
                return read(response.content)
            problem = messages.PROBLEM.validate_json(response.content)
        except httpx.HTTPError as error:
            raise UnavailableError(Reason("no_answer_of", name=self._whom, why=str(error)), retry_after_s=1) from error
        except (ValidationError, orjson.JSONDecodeError) as error:
            raise UnavailableError(Reason("answers_unreadable", name=self._whom)) from error
        if response.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
            raise RejectedError(problem.text, where=problem.where)
        raise UnavailableError(problem.text, retry_after_s=problem.retry_after_s)
