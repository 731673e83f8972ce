"""Kubelets: run, end and remove bound pods; images and annotations decide how the pods end.

- ``testbed/run-seconds: "N"``: the containers exit with 0 after N seconds; without it they run without end.
- An image ``missing/...`` cannot be pulled, one ``fail/...`` exits with 1, one ``oom/...`` is killed for its memory.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from tests.fakes.kubernetes.containers import Containers
from tests.fakes.kubernetes.controllers import hami
from tests.fakes.kubernetes.controllers.staff import Controller, Staff, set_condition
from tests.fakes.kubernetes.failures import bad_request
from tests.fakes.kubernetes.kinds import NODES, PODS, Json
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.quantities import milli
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import ENDED

Step = tuple[str, str, str, str]
"""An action, and its pod: namespace, name and uid."""
RUN_SECONDS = "testbed/run-seconds"
_READY = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


@dataclass(slots=True)
class Pace:
    """Durations of the steps of pods and nodes, seconds; all zero by default.

    Attributes
    ----------
    start_s
        From bound to running.
    stop_s
        From deleted to gone.
    restart_s
        From a container's end to its next start.
    node_grace_s
        From a node's last report to its being marked as not ready.
    eviction_s
        From then to the deletion of its pods; None for the toleration of the pods, which is 300.
    """

    start_s: float = 0.0
    stop_s: float = 0.0
    restart_s: float = 0.05
    node_grace_s: float = 0.0
    eviction_s: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Written:
    """A line, and the time of its writing, nanoseconds since 1970."""

    at_ns: int
    text: str

    def reported(self, *, stamped: bool) -> str:
        """Return the line as it is sent."""
        if not stamped:
            return f"{self.text}\n"
        seconds, nanos = divmod(self.at_ns, 1_000_000_000)
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanos:09d}Z {self.text}\n"


class LogLedger:
    """The output of containers."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, str, str], list[Written]] = {}
        self._news = asyncio.Event()
        self._over: set[str] = set()
        self._cut = asyncio.Event()

    def write(self, namespace: str, pod: str, text: str, container: str = "", at_ns: int | None = None) -> None:
        """Add lines with the same time; clients that follow the log receive them."""
        when = time.time_ns() if at_ns is None else at_ns
        lines = self._lines.setdefault((namespace, pod, container), [])
        lines.extend(Written(when, line) for line in text.splitlines())
        self._wake()

    def end(self, uid: str) -> None:
        """Record that a pod writes no more."""
        self._over.add(uid)
        self._wake()

    def cut(self) -> None:
        """End the answers of all clients that follow logs, as a proxy does after its timeout."""
        self._cut.set()
        self._cut = asyncio.Event()
        self._wake()

    def read(self, pod: Json, query: Mapping[str, str]) -> bytes | AsyncIterator[bytes]:
        """Return the output of a container, or with ``follow`` its output until it ends.

        Raises
        ------
        FailureError
            400 if it has not started, or the request does not name the container.
        """
        meta, spec = pod["metadata"], pod["spec"]
        if not spec.get("nodeName"):
            return b""
        early = [one["name"] for one in spec.get("initContainers") or ()]
        names = [one["name"] for one in spec["containers"]]
        name = query.get("container") or (names[0] if len(names) == 1 else "")
        if not name:
            listed = " ".join(names)
            raise bad_request(f"a container name must be specified for pod {meta['name']}, choose one of: [{listed}]")
        if name not in (*names, *early):
            raise bad_request(f"container {name} is not valid for pod {meta['name']}")
        statuses = {one["name"]: one for one in (pod.get("status") or {}).get("containerStatuses") or ()}
        waiting = statuses.get(name, {}).get("state", {}).get("waiting")
        if name in early:  # init containers have ended, or continue beside the others
            statuses.setdefault(name, {})
        if name not in statuses or (waiting and not statuses[name].get("restartCount")):
            reason = (waiting or {}).get("reason", "ContainerCreating")
            why = "trying and failing to pull image" if reason == "ImagePullBackOff" else f"waiting to start: {reason}"
            raise bad_request(f'container "{name}" in pod "{meta["name"]}" is {why}')
        asked = _Asked.of(query)
        if query.get("follow") in ("true", "1"):
            return self._follow(meta["uid"], (meta["namespace"], meta["name"]), name, asked)
        found = asked.first(self._of((meta["namespace"], meta["name"]), name))
        text = "".join(line.reported(stamped=asked.stamped) for line in found).encode()
        return text[: int(query["limitBytes"])] if query.get("limitBytes") else text

    def _of(self, key: tuple[str, str], container: str) -> list[Written]:
        return [*self._lines.get((*key, ""), ()), *self._lines.get((*key, container), ())]

    async def _follow(self, uid: str, key: tuple[str, str], container: str, asked: _Asked) -> AsyncIterator[bytes]:
        cut = self._cut
        sent = len(self._of(key, container)) - len(asked.first(self._of(key, container)))
        while not cut.is_set():
            news, found = self._news, self._of(key, container)
            if len(found) > sent:
                yield "".join(line.reported(stamped=asked.stamped) for line in found[sent:]).encode()
                sent = len(found)
            elif uid in self._over:
                return
            else:
                await news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


@dataclass(frozen=True, slots=True)
class _Asked:
    """The requested lines, and whether with their times."""

    tail: int | None
    since_ns: int
    stamped: bool

    @classmethod
    def of(cls, query: Mapping[str, str]) -> _Asked:
        since = query.get("sinceTime")
        since_s = datetime.fromisoformat(since).timestamp() if since else 0  # a server passes on whole seconds
        tail = query.get("tailLines")
        return cls(int(tail) if tail else None, int(since_s) * 1_000_000_000, query.get("timestamps") in ("true", "1"))

    def first(self, lines: list[Written]) -> list[Written]:
        """Return the requested ones of the existing lines."""
        late = [line for line in lines if line.at_ns >= self.since_ns]
        return late if self.tail is None else late[max(0, len(late) - self.tail) :]


class Kubelets(Controller[Step]):
    """The kubelets of all nodes that exist and have not failed."""

    kinds = (PODS, NODES)

    def __init__(self, staff: Staff) -> None:
        super().__init__(staff)
        self.pace = Pace()
        self.logs = LogLedger()
        self.containers = Containers()
        self.failed: set[str] = set()
        self._number = 0
        self._taken_in: defaultdict[str, set[str]] | None = None

    def receive(self, event: Event) -> Iterator[Step]:
        """Return bound pods, and all pods of a new node."""
        now = event.now
        if now.kind is NODES:
            if event.type == "ADDED":
                yield from self.pods_of(now.name)
        elif event.type == "DELETED":
            self._over(now)
        elif now.fields[0]:
            if now.fields[1] in ENDED:
                self._over(now)
            if now.deleting and self.pace.stop_s and not (event.before and event.before.deleting):
                self.staff.later(self.pace.stop_s, self, ("stop", now.namespace, now.name, now.uid))
            elif now.deleting:
                yield "stop", now.namespace, now.name, now.uid
            elif now.fields[1] == "Pending" and not (event.before and event.before.fields[0]):
                yield "admit", now.namespace, now.name, now.uid

    def pods_of(self, node: str) -> list[Step]:
        """Return the pods to check when a node exists (again)."""
        found: list[Step] = []
        for pod in self.store.all(PODS):
            if pod.fields[0] == node:
                step = "stop" if pod.deleting else "admit" if pod.fields[1] == "Pending" else "watch"
                found.append((step, pod.namespace, pod.name, pod.uid))
        return found

    def look(self, key: Step) -> None:
        """Bring a pod one step further."""
        step, namespace, name, uid = key
        pod = self.store.find(PODS, namespace, name)
        if pod is None or pod.uid != uid:
            return
        node = pod.fields[0]
        if node in self.failed or self.store.find(NODES, "", node) is None:
            return
        if step == "stop":
            self.verbs.delete(PODS, namespace, name, DeleteOptions(0, uid=uid))
        elif pod.deleting or pod.fields[1] in ENDED:
            return
        elif step == "admit":
            self._admit(pod)
        elif step == "start":
            self._run(pod)
        elif step in ("exit", "watch"):
            self._exit(pod, early=step == "watch")

    def _over(self, pod: Stored) -> None:
        """Record that a pod has ended, or is gone."""
        self.logs.end(pod.uid)
        self.containers.end(pod.uid)
        if self._taken_in is not None:
            self._taken_in[pod.fields[0]].discard(pod.uid)

    def _has_room(self, pod: Stored) -> bool:
        """Admit a pod if its node has a free slot; schedulers that do not know each other can overcommit a node."""
        if self._taken_in is None:
            self._taken_in = defaultdict(set)
            for one in self.store.all(PODS):
                if one.fields[0] and one.fields[1] == "Running":
                    self._taken_in[one.fields[0]].add(one.uid)
        there, most = self._taken_in[pod.fields[0]], _most_pods(self.store.find(NODES, "", pod.fields[0]))
        if pod.uid in there or len(there) < most:
            there.add(pod.uid)
            return True
        why = f"Node didn't have enough resource: pods, requested: 1, used: {len(there)}, capacity: {most}"
        self.report(pod, "OutOfpods", why, kind="Warning", source="kubelet")
        ended = {"phase": "Failed", "reason": "OutOfpods", "message": f"Pod was rejected: {why}"}
        self.write_status(pod, lambda status: status.update(ended))
        return False

    def _admit(self, pod: Stored) -> None:
        """Admit a pod: have its devices allocated, pull its images."""
        if not self._has_room(pod):
            return
        body = pod.read()
        annotations = body["metadata"].get("annotations") or {}
        if annotations.get(hami.BIND_PHASE) == "allocating":
            annotations[hami.TO_ALLOCATE] = ";" * annotations.get(hami.ALLOCATED, "").count(";")
            annotations[hami.BIND_PHASE] = "success"
            pod = self.store.put(PODS, body)
        missing = [one for one in body["spec"]["containers"] if one["image"].startswith("missing/")]
        if not missing:
            self.staff.later(self.pace.start_s, self, ("start", pod.namespace, pod.name, pod.uid))
            return
        image = missing[0]["image"]
        why = f'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": not found'
        self.report(pod, "Failed", f'Failed to pull image "{image}": not found', kind="Warning", source="kubelet")
        self.report(pod, "Failed", "Error: ImagePullBackOff", kind="Warning", source="kubelet")
        moment = self.stamp()

        def tell(status: Json) -> None:
            status["startTime"] = moment
            status["containerStatuses"] = [
                self._container(one, {"waiting": {"reason": "ImagePullBackOff", "message": why}})
                for one in body["spec"]["containers"]
            ]
            for kind in _READY:
                value = "True" if kind in ("PodScheduled", "Initialized", "PodReadyToStartContainers") else "False"
                set_condition(status, kind, value, moment, "" if value == "True" else "ContainersNotReady")

        self.write_status(pod, tell)

    def _run(self, pod: Stored) -> None:
        body = pod.read()
        moment = self.stamp()
        self._number += 1
        number = self._number

        def tell(status: Json) -> None:
            old = {one["name"]: one for one in status.get("containerStatuses") or ()}
            status["phase"] = "Running"
            status.setdefault("startTime", moment)
            status.setdefault("hostIP", "127.0.0.1")
            status.setdefault("podIP", f"10.244.{number // 250 % 250}.{number % 250 + 1}")
            status.setdefault("podIPs", [{"ip": status["podIP"]}])
            status["containerStatuses"] = [
                {
                    **old.get(one["name"], {}),
                    **self._container(one, {"running": {"startedAt": moment}}, old, ready=True),
                }
                for one in body["spec"]["containers"]
            ]
            for kind in _READY:
                set_condition(status, kind, "True", moment)

        self.write_status(pod, tell)
        for one in body["spec"]["containers"]:
            self.report(pod, "Started", f"Container started: {one['name']}", source="kubelet")
        seconds = (body["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        if seconds is not None or _fate(body) is not None:
            self.staff.later(float(seconds or 0), self, ("exit", pod.namespace, pod.name, pod.uid))

    def _exit(self, pod: Stored, *, early: bool) -> None:
        """End the containers of a pod; `early` only checks them, after a node has recovered."""
        body = pod.read()
        seconds = (body["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        if early:
            self._run(pod)
            return
        code, reason = _fate(body) or (0, "Completed")
        policy = body["spec"]["restartPolicy"]
        again = policy == "Always" or (policy == "OnFailure" and code != 0)
        moment = self.stamp()
        ended = {"terminated": {"exitCode": code, "reason": reason, "startedAt": moment, "finishedAt": moment}}
        del seconds

        def tell(status: Json) -> None:
            old = {one["name"]: one for one in status.get("containerStatuses") or ()}
            state: Json = ended
            if again:
                name = body["spec"]["containers"][0]["name"]
                why = f"back-off restarting failed container={name} pod={pod.name}_{pod.namespace}({pod.uid})"
                state = {"waiting": {"reason": "CrashLoopBackOff", "message": why}}
            else:
                status["phase"] = "Failed" if code else "Succeeded"
            status["containerStatuses"] = [
                self._container(one, state, old, last=ended if again else None) for one in body["spec"]["containers"]
            ]
            for kind in ("Ready", "ContainersReady"):
                set_condition(status, kind, "False", moment, "ContainersNotReady" if again else f"Pod{status['phase']}")

        self.write_status(pod, tell)
        if again:
            if code:
                self.report(pod, "BackOff", "Back-off restarting failed container", kind="Warning", source="kubelet")
            self.staff.later(self.pace.restart_s, self, ("start", pod.namespace, pod.name, pod.uid))

    @staticmethod
    def _container(
        container: Json,
        state: Json,
        old: Mapping[str, Json] | None = None,
        *,
        ready: bool = False,
        last: Json | None = None,
    ) -> Json:
        before = (old or {}).get(container["name"], {})
        return {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": before.get("restartCount", 0) + (1 if last else 0),
            "state": state,
            "lastState": last or before.get("lastState", {}),
        }


def _most_pods(node: Stored | None) -> int:
    """Return the pod limit of a node; 110, the default of kubelets, unless the node sets another."""
    status = (node.view().get("status") or {}) if node else {}
    return milli((status.get("allocatable") or {}).get("pods", "110")) // 1000


def _fate(pod: Json) -> tuple[int, str] | None:
    """Return how the images of a pod end it: exit code and reason; None if they do not."""
    images = [one["image"] for one in pod["spec"]["containers"]]
    if any(image.startswith("oom/") for image in images):
        return 137, "OOMKilled"
    if any(image.startswith("fail/") for image in images):
        return 1, "Error"
    return None
