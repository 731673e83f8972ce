"""The object of a Work in its member, and the object's status for the Work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.fakes.kubernetes.controllers.staff import Controller, Staff, set_condition
from tests.fakes.kubernetes.failures import FailureError
from tests.fakes.kubernetes.karmada.members import KarmadaPace, Member
from tests.fakes.kubernetes.karmada.statuses import health, reflect
from tests.fakes.kubernetes.karmada.words import CONFLICT_RESOLUTION, MANAGED, SPACE, WORK_FINALIZER, WORK_ID
from tests.fakes.kubernetes.kinds import JOBS, NAMESPACES, WORKS, Json, Kind
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored

Key = tuple[str, str]


class Execution(Controller[Key]):
    """Writes the manifests of works into the members, reverts changes of other users, and reads the status.

    Attributes
    ----------
    held
        Members that receive no writes for now.
    """

    kinds = (WORKS,)

    def __init__(self, staff: Staff, members: Mapping[str, Member], pace: KarmadaPace) -> None:
        super().__init__(staff)
        self.held: set[str] = set()
        self._members = members
        self._pace = pace
        self._works: dict[str, Key] = {}
        self._written: dict[str, tuple[int, int]] = {}
        self._blocked: dict[str, dict[Key, None]] = {}

    def receive(self, event: Event) -> Iterator[Key]:
        """Return works that changed in more than their status."""
        now = event.now
        mark = now.labels.get(WORK_ID, "")
        if event.type == "DELETED":
            self._works.pop(mark, None)
            self._written.pop(mark, None)
        else:
            self._works[mark] = (now.namespace, now.name)
            if not event.status:
                yield now.namespace, now.name

    def follow(self, member: Member) -> None:
        """Watch the managed objects of a member."""

        def receive(event: Event) -> None:
            mark = event.now.labels.get(WORK_ID) or (event.before.labels.get(WORK_ID) if event.before else None)
            place = self._works.get(mark or "")
            if place is None or place[0] != f"{SPACE}{member.name}":
                return
            strange = event.type == "DELETED" or self._written.get(mark or "", (0, 0))[1] != _generation(event.now)
            self.staff.later(self._pace.revert_s if strange else 0.0, self, place)

        member.server.store.follow(receive)

    def retry(self, cluster: str) -> None:
        """Retry the works that failed in a cluster."""
        for key in self._blocked.pop(cluster, {}):
            self.staff.add(self, key)

    def look(self, key: Key) -> None:
        """Bring a member in line with a work."""
        work = self.store.find(WORKS, *key)
        if work is None:
            return
        cluster = work.namespace.removeprefix(SPACE)
        member = self._members.get(cluster)
        if member is None or cluster in self.held or not member.server.answers:
            self._blocked.setdefault(cluster, {})[key] = None
            return
        body = work.view()
        manifest = _manifest(body)
        kind = member.server.kinds.named(manifest["apiVersion"], manifest["kind"])
        if work.deleting:
            self._withdraw(work, work.read(), member, kind, manifest)
        elif kind is None:
            why = f'no matches for kind "{manifest["kind"]}" in version "{manifest["apiVersion"]}"'
            self._tell(work, None, why)
        elif not body["spec"].get("suspendDispatching"):
            try:
                found = self._apply(work, body, member, kind, manifest)
            except FailureError as failure:
                self._tell(work, None, str(failure))
                self.staff.later(self._pace.retry_s, self, key)
            else:
                self._tell(work, found, "")

    def _apply(self, work: Stored, body: Json, member: Member, kind: Kind, manifest: Json) -> Stored:
        verbs, store = member.server.verbs, member.server.store
        meta = manifest["metadata"]
        namespace = meta.get("namespace", "")
        mark = work.labels[WORK_ID]
        found = store.find(kind, namespace, meta["name"])
        if found is None:
            if kind.namespaced and store.find(NAMESPACES, "", namespace) is None:
                verbs.create(NAMESPACES, "", {"metadata": {"name": namespace, "labels": {MANAGED: "true"}}})
            made = verbs.create(kind, namespace, _manifest(work.read()))
            self._note(mark, body, made)
            return made
        if found.labels.get(MANAGED) != "true" and meta["annotations"].get(CONFLICT_RESOLUTION) != "overwrite":
            raise FailureError(
                409, "Conflict",
                f"resource(kind={kind.kind}, {namespace}/{meta['name']}) already exists in the cluster {member.name} "
                f"and the {CONFLICT_RESOLUTION} strategy value is empty, Karmada will not manage this resource",
            )  # fmt: skip
        there = found.view()
        if self._written.get(mark) == (body["metadata"]["generation"], _generation(found)) and _within(meta, there):
            return found
        wanted = _retain(kind, _manifest(work.read()), there)
        found = verbs.update(kind, namespace, meta["name"], wanted)
        self._note(mark, body, found)
        return found

    def _note(self, mark: str, work: Json, found: Stored) -> None:
        self._written[mark] = (work["metadata"]["generation"], _generation(found))

    def _withdraw(self, work: Stored, body: Json, member: Member, kind: Kind | None, manifest: Json) -> None:
        """Delete an object from a member, and release its work."""
        meta = manifest["metadata"]
        found = member.server.store.find(kind, meta.get("namespace", ""), meta["name"]) if kind else None
        ours = found is not None and found.labels.get(WORK_ID) == work.labels[WORK_ID]
        if found is not None and ours and not found.deleting and not body["spec"].get("preserveResourcesOnDeletion"):
            options = DeleteOptions(propagation="Background")
            member.server.verbs.delete(found.kind, found.namespace, found.name, options)
        finalizers = [one for one in body["metadata"].get("finalizers") or () if one != WORK_FINALIZER]
        body["metadata"]["finalizers"] = finalizers
        self.verbs.update(WORKS, work.namespace, work.name, body)

    def _tell(self, work: Stored, found: Stored | None, why: str) -> None:
        moment = self.stamp()
        there = found.view() if found else None

        def tell(status: Json) -> None:
            if found is None or there is None:
                message = f"Failed to apply all manifests (0/1): {why}"
                set_condition(status, "Applied", "False", moment, "AppliedFailed", message)
                return
            message = "Manifest has been successfully applied"
            set_condition(status, "Applied", "True", moment, "AppliedSuccessful", message)
            identifier = {
                "ordinal": 0,
                "group": found.kind.group,
                "version": found.kind.version,
                "kind": found.kind.kind,
                "resource": found.kind.plural,
                "namespace": found.namespace,
                "name": found.name,
            }
            said: Json = {"identifier": identifier, "health": health(found.kind, there)}
            if (reported := reflect(found.kind, there)) is not None:
                said["status"] = reported
            status["manifestStatuses"] = [said]

        self.write_status(work, tell)


def _manifest(work: Json) -> Json:
    """Return the object of a work."""
    manifest: Json = work["spec"]["workload"]["manifests"][0]
    return manifest


def _generation(one: Stored) -> int:
    """Return the generation of an object; the version for kinds without generations."""
    at = one.inside.find(b'"generation":')
    if at < 0:
        return one.version
    end = at + 13
    while one.inside[end : end + 1].isdigit():
        end += 1
    return int(one.inside[at + 13 : end])


def _within(wanted: Json, there: Json) -> bool:
    """Report whether an object has the required labels and annotations."""
    found = there["metadata"]
    return all(
        (found.get(name) or {}).get(key) == value
        for name in ("labels", "annotations")
        for key, value in (wanted.get(name) or {}).items()
    )


def _retain(kind: Kind, manifest: Json, there: Json) -> Json:
    """Return the object to write: the manifest, and the fields that belong to the member."""
    found = there["metadata"]
    meta = dict(manifest["metadata"])
    meta["resourceVersion"] = found["resourceVersion"]
    for name in ("labels", "annotations"):
        meta[name] = {**(found.get(name) or {}), **(meta.get(name) or {})}
    for name in ("finalizers", "ownerReferences"):
        if name in found:
            meta[name] = found[name]
    wanted = {**manifest, "metadata": meta}
    if kind is JOBS:
        spec = dict(wanted["spec"])
        spec["selector"] = there["spec"]["selector"]
        template = {**spec["template"], "metadata": dict(spec["template"].get("metadata") or {})}
        labels = there["spec"]["template"]["metadata"].get("labels") or {}
        template["metadata"]["labels"] = {**labels, **(template["metadata"].get("labels") or {})}
        wanted["spec"] = {**spec, "template": template}
    return wanted
