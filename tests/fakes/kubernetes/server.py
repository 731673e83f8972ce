"""A Kubernetes API server in memory, behind real HTTP on loopback: the interface for tests."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar
from weakref import WeakSet

from tests.fakes.kubernetes.admission import NamespaceAdmission
from tests.fakes.kubernetes.app import Application
from tests.fakes.kubernetes.certificates import Certificates
from tests.fakes.kubernetes.controllers.deployments import Deployments, ReplicaSets
from tests.fakes.kubernetes.controllers.garbage import Garbage, Namespaces
from tests.fakes.kubernetes.controllers.jobs import Jobs
from tests.fakes.kubernetes.controllers.kubelet import Kubelets, Pace
from tests.fakes.kubernetes.controllers.kueue import Kueue
from tests.fakes.kubernetes.controllers.nodes import NodeLife
from tests.fakes.kubernetes.controllers.scheduler import Scheduler
from tests.fakes.kubernetes.controllers.staff import Controller, Staff
from tests.fakes.kubernetes.controllers.stateful_sets import StatefulSets
from tests.fakes.kubernetes.failures import FailureError, denied, forbidden
from tests.fakes.kubernetes.faults import Fault, FaultList
from tests.fakes.kubernetes.hall import HALL, met, with_template_traits
from tests.fakes.kubernetes.kinds import KUBERNETES, NAMESPACES, OPERATORS, Json, Kind, Kinds
from tests.fakes.kubernetes.kubeconfig import Entry, write_kubeconfig
from tests.fakes.kubernetes.listener import Listener
from tests.fakes.kubernetes.listing import Lister, Selection
from tests.fakes.kubernetes.options import APPLY_PATCH, MERGE_PATCH, DeleteOptions, WriteOptions
from tests.fakes.kubernetes.pages import Page, Pages
from tests.fakes.kubernetes.parts import Parts
from tests.fakes.kubernetes.reviews import AccessReviews
from tests.fakes.kubernetes.store import Store, Stored
from tests.fakes.kubernetes.verbs import Verbs, stamp
from tests.fakes.kubernetes.watching import Watcher, Watches

T = TypeVar("T")
CONTROLLERS = (
    *("garbage", "namespaces", "deployments", "replicasets", "statefulsets", "jobs", "kueue", "scheduler"),
    *("kubelet", "nodes"),
)
"""Controllers that a server can have."""
FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


class Faults:
    """Faults that a test injects into a server, from any thread; every method returns the fault, which `end` ends."""

    def __init__(self, faults: FaultList) -> None:
        self._faults = faults

    def hang(self, path: str = "*", method: str = "*", times: int | None = None) -> Fault:
        """Answer nothing until the fault ends; open watches that match receive nothing."""
        return self._add(Fault("hang", path, method, left=times))

    def slow(self, seconds: float, path: str = "*", method: str = "*", times: int | None = None) -> Fault:
        """Delay the answers."""
        return self._add(Fault("slow", path, method, seconds=seconds, left=times))

    def error(self, code: int = 500, path: str = "*", method: str = "*", times: int | None = None) -> Fault:
        """Answer with an error: 401, 403, 500, 503 or another."""
        return self._add(Fault("error", path, method, code, left=times))

    def throttle(self, retry_after_s: int = 1, path: str = "*", method: str = "*", times: int | None = None) -> Fault:
        """Answer 429 with Retry-After."""
        return self._add(Fault("error", path, method, 429, float(retry_after_s), times))

    def drop(self, path: str = "*", method: str = "*", times: int | None = None) -> Fault:
        """Close the connection without an answer."""
        return self._add(Fault("drop", path, method, left=times))

    def cut_watches(self, path: str = "*") -> int:
        """Drop the connections of open watches in the middle of a chunk; return how many."""
        return HALL.call(lambda: self._faults.cut_watches(path))

    def end(self, fault: Fault) -> None:
        """End a fault; hanging requests continue."""
        HALL.call(lambda: self._faults.remove(fault))

    def clear(self) -> None:
        """End all faults."""
        HALL.call(self._faults.clear)

    @contextmanager
    def during(self, fault: Fault) -> Iterator[Fault]:
        """End a fault at the end of a block: ``with server.faults.during(server.faults.hang()): ...``."""
        try:
            yield fault
        finally:
            self.end(fault)

    def _add(self, fault: Fault) -> Fault:
        return HALL.call(lambda: self._faults.add(fault))


class ApiServer:
    """One API server.

    Parameters
    ----------
    name
        Name of its cluster in kubeconfigs.
    kinds
        Kinds that it serves; by default Kubernetes and the operators of Kubeflow, Ray, Volcano and Kueue.
    without
        Groups to leave out.
    port
        Port on loopback; 0 for a free one.
    tls
        ``""`` for plain HTTP with a token, ``token`` for TLS with a token, ``certificate`` for TLS with a client's
        certificate and nothing else.
    history
        Number of changes of each kind that watches can replay.
    bookmark_s
        Interval of bookmarks, seconds.
    seed
        Seed of uids and generated names, with the name: a server with another seed and name is another cluster.
    controllers
        Its controllers, from `CONTROLLERS`; all by default.
    pace
        Durations of the steps of kubelets and nodes.

    Attributes
    ----------
    token
        The first accepted token.
    certificates
        For the clients of a server with TLS; else None.
    faults
        Injected faults.
    logs
        Output of containers.
    pages
        Pages of pods behind its proxy.
    reviews
        Answers to clients that ask for their rights.
    proxied
        Watches of other servers that go through this one.
    containers
        Processes in containers.
    store, verbs, lister, watches
        Its internals, for code on the thread of its loop (see `call`).

    Examples
    --------
    >>> import httpx
    >>> with ApiServer() as server:
    ...     _ = server.create({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}, "data": {"b": "c"}})
    ...     url = f"{server.url}/api/v1/namespaces/default/configmaps/a"
    ...     httpx.get(url, headers=server.headers).json()["data"]
    {'b': 'c'}
    """

    def __init__(  # noqa: PLR0913, settings by name
        self,
        name: str = "member1",
        *,
        kinds: Iterable[Kind] = (*KUBERNETES, *OPERATORS),
        without: Sequence[str] = (),
        port: int = 0,
        tls: Literal["", "token", "certificate"] = "",
        history: int = 5000,
        bookmark_s: float = 60.0,
        seed: int = 0,
        controllers: Collection[str] = CONTROLLERS,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self.token = secrets.token_hex(16)
        self.kinds = Kinds(kinds, without)
        self.store = Store(self.kinds, f"{seed} {name}", history)
        self.verbs = Verbs(self.store)
        self.verbs.admission.append(NamespaceAdmission(self.store))
        self.lister = Lister(self.store)
        self.watches = Watches(self.store, self.lister, bookmark_s)
        self.parts = Parts(self.store, self.verbs)
        self.proxied: WeakSet[Watcher] = WeakSet()
        self.fault_list = FaultList(lambda: [*self.watches.open, *self.proxied])
        self.faults = Faults(self.fault_list)
        self.app = Application(self.store, self.verbs, self.lister, self.watches, self.fault_list, self.parts)
        self.app.tokens = None if tls == "certificate" else {self.token}
        self.pages = Pages(self.store)
        self.reviews = AccessReviews()
        self.app.before += [self.pages, self.reviews]
        self._tls = tls
        self.certificates = Certificates.make() if tls else None
        self._listener = Listener(self.app, port, self.certificates, clients=tls == "certificate")
        self._open = False
        self.staff = Staff(self.store, self.verbs)
        self._kubelets = Kubelets(self.staff)
        self.pace = self._kubelets.pace = pace or Pace()
        self._nodes = NodeLife(self.staff, self._kubelets)
        self.logs = self._kubelets.logs
        self.parts.logs = self.logs
        self.containers = self.app.containers = self._kubelets.containers
        self._hire(controllers)

    # Life ------------------------------------------------------------------------------------------------------------

    def open(self) -> Self:
        """Begin to serve; an open server continues."""
        if self._open:
            return self
        HALL.hold()
        self._open = True
        HALL.call(self._furnish)
        self.start()
        return self

    def close(self) -> None:
        """End permanently."""
        if self._open:
            self._open = False
            self.faults.clear()
            self.stop()
            HALL.call(self.staff.end)
            HALL.release()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Serve again after `stop`, at the same port, with the same objects."""
        HALL.run(self._listener.start())
        HALL.call(self.staff.start)
        HALL.call(self._tell)

    def stop(self) -> None:
        """Refuse new connections and drop open ones; objects and the controllers' queue stay."""
        HALL.call(self.staff.stop)
        HALL.run(self._listener.stop())
        HALL.call(self._cut_off)

    def _cut_off(self) -> None:
        for watcher in [*self.watches.open, *self.proxied]:
            watcher.cut_off()
        self._tell()

    def _tell(self) -> None:
        for reported in self.fault_list.followers:
            reported()

    @property
    def answers(self) -> bool:
        """True if requests get good answers, as far as faults for every path go."""
        return self.running and not self.fault_list.blocks("GET", "/readyz")

    @property
    def running(self) -> bool:
        """True while it answers."""
        return self._listener.running

    # Addresses -----------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self._listener.port}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers that a client must send."""
        return {} if self._tls == "certificate" else {"Authorization": f"Bearer {self.token}"}

    def entry(self) -> Entry:
        """Return the kubeconfig entry of this server and its user."""
        made = self.certificates
        if made is None:
            return Entry(self.name, self.url, self.token)
        if self._tls == "token":
            return Entry(self.name, self.url, self.token, made.authority.certificate)
        client = made.client
        return Entry(self.name, self.url, "", made.authority.certificate, client.certificate, client.key)

    def kubeconfig(self, path: Path, *others: ApiServer) -> Path:
        """Write a kubeconfig with a context for this server, the current one, and for others."""
        return write_kubeconfig(path, [one.entry() for one in (self, *others)])

    def new_token(self, *, only: bool = False) -> str:
        """Return another accepted token; with `only`, earlier ones are no longer accepted."""
        token = secrets.token_hex(16)
        if only or self.app.tokens is None:
            self.app.tokens = {token}
            self.token = token
        else:
            self.app.tokens.add(token)
        return token

    # Objects ---------------------------------------------------------------------------------------------------------

    def create(self, body: Json, namespace: str = "default") -> Json:
        """Create an object as a client would; without a namespace of its own, it is in `namespace`."""
        kind = self._kind(body)
        return self.call(lambda: self.verbs.create(kind, self._namespace(kind, body, namespace), body).read())

    def put(self, body: Json, namespace: str = "default") -> Json:
        """Store an object as it is, with its status and without checks: created or replaced."""
        kind = self._kind(body)
        return self.call(lambda: self._put(kind, self._namespace(kind, body, namespace), body).read())

    def apply(self, body: Json, namespace: str = "default", *, manager: str = "test", force: bool = True) -> Json:
        """Apply a configuration, as server-side apply does."""
        kind = self._kind(body)
        within = self._namespace(kind, body, namespace)
        options = WriteOptions(manager, force=force)
        name = body["metadata"]["name"]

        def apply() -> Json:
            return self.verbs.patch(kind, within, name, APPLY_PATCH, body, options=options)[0].read()

        return self.call(apply)

    def patch(self, kind: Kind, namespace: str, name: str, change: Json, part: str = "", *, manager: str = "") -> Json:
        """Change an object (or its ``status``) by a merge patch of a client; without its name, of a controller."""
        options = WriteOptions(manager)

        def patch() -> Json:
            return self.verbs.patch(kind, namespace, name, MERGE_PATCH, change, part, options)[0].read()

        return self.call(patch)

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object, or None."""
        found = self.call(lambda: self.store.find(kind, namespace, name))
        return found.read() if found else None

    def list(self, kind: Kind, namespace: str = "", labels: str = "", fields: str = "") -> list[Json]:
        """Return the objects of a kind that match selectors."""
        query: Mapping[str, str] = {"labelSelector": labels, "fieldSelector": fields}
        selection = Selection.read(kind, namespace, query)
        return [one.read() for one in self.call(lambda: self.lister.select(kind, selection))]

    def delete(
        self, kind: Kind, namespace: str, name: str, *, grace_period_s: int | None = None, propagation: str = ""
    ) -> None:
        """Delete an object as a client would."""
        options = DeleteOptions(grace_period_s, propagation)
        self.call(lambda: self.verbs.delete(kind, namespace, name, options))

    def load(self, objects: Iterable[Stored]) -> int:
        """Add many new objects in one call, past rules and watches; return how many."""
        return HALL.call(lambda: self.store.load(objects))

    def forget_history(self) -> None:
        """Drop all changes: watches and pages from older versions get 410."""
        HALL.call(self.store.forget)
        HALL.call(self.lister.expire)

    def stale_reads(self, *, stale: bool = True) -> None:
        """Answer lists at version 0 from a frozen state, like a cache that is cut off, or from the latest one again."""
        HALL.call(self.lister.freeze if stale else self.lister.thaw)

    @property
    def version(self) -> int:
        """The latest resourceVersion."""
        return self.store.version

    def settle(self) -> None:
        """Wait until controllers have no immediate work left; timers may still run."""
        HALL.run(with_template_traits(lambda: self.staff.idle))

    def wait_for(self, condition: Callable[[], bool], seconds: float = 10.0) -> bool:
        """Wait until a condition is met, and report whether it was in time.

        The condition runs on the server's thread, first and after every change: read from `store` in it.
        """
        return HALL.run(met(condition, [self.store.follow], seconds))

    def call(self, work: Callable[[], T]) -> T:
        """Call a function on the server's thread, where its internals may be used."""
        return HALL.call(work)

    def deny(self, kind: Kind, why: str, *, webhook: str = "", code: int = 403) -> Callable[[], None]:
        """Deny new objects of a kind; return a function that ends the denial.

        Parameters
        ----------
        why
            The reason as a quota or a rule of the server reports it, like ``exceeded quota: team, requested: pods=1``.
        webhook
            The webhook that denies instead; with the code 500, the webhook that does not answer.
        """

        def admit(found: Kind, body: Json, old: Json | None) -> None:
            if found is not kind or old is not None:
                return
            if code >= 500:
                raise FailureError(code, "InternalError", f"Internal error occurred: failed calling webhook: {why}")
            raise denied(webhook, why) if webhook else forbidden(kind, body["metadata"]["name"], why)

        self.call(lambda: self.verbs.admission.append(admit))
        return lambda: self.call(lambda: self.verbs.admission.remove(admit))

    # Nodes and pods --------------------------------------------------------------------------------------------------

    def fail_node(self, name: str) -> None:
        """Stop the reports of a node: it turns not ready, and its pods are evicted but stay Terminating."""
        HALL.call(lambda: self._nodes.fail(name))

    def heal_node(self, name: str) -> None:
        """Let a node report again: pods that were deleted in the interval vanish, others continue."""
        HALL.call(lambda: self._nodes.heal(name))

    def write_log(self, namespace: str, pod: str, text: str, container: str = "", at_ns: int | None = None) -> None:
        """Write lines of a pod with the same time; clients that follow its log receive them."""
        HALL.call(lambda: self.logs.write(namespace, pod, text, container, at_ns))

    def cut_logs(self) -> None:
        """End the answers of all clients that follow logs."""
        HALL.call(self.logs.cut)

    def serve_page(self, namespace: str, pod: str, port: int, page: Page, path: str = "/metrics") -> None:
        """Serve a page on a port of a pod, behind the proxy."""
        HALL.call(lambda: self.pages.put(namespace, pod, port, page, path))

    def _hire(self, controllers: Collection[str]) -> None:
        made: dict[str, Callable[[], Controller[Any]]] = {
            "garbage": lambda: Garbage(self.staff),
            "namespaces": lambda: Namespaces(self.staff),
            "deployments": lambda: Deployments(self.staff),
            "replicasets": lambda: ReplicaSets(self.staff),
            "statefulsets": lambda: StatefulSets(self.staff),
            "jobs": lambda: Jobs(self.staff),
            "kueue": lambda: Kueue(self.staff),
            "scheduler": lambda: Scheduler(self.staff),
            "kubelet": lambda: self._kubelets,
            "nodes": lambda: self._nodes,
        }
        for name in CONTROLLERS:
            if name in controllers and (name != "kueue" or set(Kueue.kinds) <= self.store.shelves.keys()):
                self.staff.hire(made[name]())

    def _furnish(self) -> None:
        for name in FIRST_NAMESPACES:
            if not self.store.find(NAMESPACES, "", name):
                self.verbs.create(NAMESPACES, "", {"metadata": {"name": name}})

    def _kind(self, body: Json) -> Kind:
        kind = self.kinds.named(body["apiVersion"], body["kind"])
        if kind is None:
            raise LookupError(f"{self.name} does not serve {body['apiVersion']} {body['kind']}")
        return kind

    @staticmethod
    def _namespace(kind: Kind, body: Json, namespace: str) -> str:
        return str(body["metadata"].get("namespace", namespace)) if kind.namespaced else ""

    def _put(self, kind: Kind, namespace: str, body: Json) -> Stored:
        meta = body["metadata"]
        if kind.namespaced:
            meta["namespace"] = namespace
        found = self.store.find(kind, namespace, meta["name"])
        meta["uid"] = found.uid if found else meta.get("uid") or self.store.new_uid()
        meta.setdefault("creationTimestamp", stamp(self.verbs.now()))
        return self.store.put(kind, body)
