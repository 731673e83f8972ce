"""Operations on objects: create, update, patch, apply, delete; the rules that all kinds share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tests.fakes.kubernetes import rules
from tests.fakes.kubernetes.applying import apply_to, track
from tests.fakes.kubernetes.failures import (
    FailureError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
)
from tests.fakes.kubernetes.kinds import JOBS, LEASES, NAMESPACES, PODS, SERVICES, Json, Kind
from tests.fakes.kubernetes.options import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    DeleteOptions,
    WriteOptions,
)
from tests.fakes.kubernetes.patches import PatchError, json_patch, merge, strategic
from tests.fakes.kubernetes.store import Store, Stored

ENDED = ("Succeeded", "Failed")
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

_NAME = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_STORED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)


OWN = WriteOptions()
PLAINLY = DeleteOptions()


def stamp(moment: datetime) -> str:
    """Return a moment in the format of objects."""
    return _stamp(int(moment.timestamp()))


@lru_cache(maxsize=64)
def _stamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> datetime:
    """Return the time of day."""
    return datetime.now(UTC)


@dataclass(slots=True)
class Verbs:
    """Reads and writes on a store, by the rules.

    Attributes
    ----------
    store
        Where objects are.
    now
        The clock.
    admission
        Functions that may reject or change an object before it is created or updated, in order: called with the kind,
        the new object, and the old one or None.
    """

    store: Store
    now: Callable[[], datetime] = utc_now
    admission: list[Callable[[Kind, Json, Json | None], None]] = field(default_factory=list)

    def create(self, kind: Kind, namespace: str, body: Json, options: WriteOptions = OWN) -> Stored:
        """Create an object.

        Raises
        ------
        FailureError
            If it exists, or breaks a rule.
        """
        meta = self._envelope(kind, namespace, body)
        if not meta.get("name"):
            if not meta.get("generateName"):
                raise invalid(
                    kind,
                    "",
                    [("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")],
                )
            meta["name"] = meta["generateName"] + self.store.new_suffix()
        self._check_name(kind, meta["name"])
        self._check_namespace(kind, namespace, meta["name"])
        if meta.get("resourceVersion") not in (None, "", "0"):
            raise FailureError(500, "", "resourceVersion should not be set on objects to be created")
        if self.store.find(kind, namespace, meta["name"]):
            raise already_exists(kind, meta["name"])
        for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
            meta.pop(name, None)
        meta["uid"] = self.store.new_uid()
        meta["creationTimestamp"] = stamp(self.now())
        if kind.generation:
            meta["generation"] = 1
        rules.on_create(kind, body, self.store)
        for admit in self.admission:
            admit(kind, body, None)
        rules.check(kind, body, None)
        track(body, None, options.manager, "", stamp(self.now()))
        if options.dry_run:
            meta.pop("resourceVersion", None)
            return Stored(kind, body)
        return self.store.put(kind, body)

    def update(
        self, kind: Kind, namespace: str, name: str, body: Json, part: str = "", options: WriteOptions = OWN
    ) -> Stored:
        """Replace an object, or only its status if `part` is that.

        Raises
        ------
        FailureError
            404 if it does not exist, 409 if it is based on an old version, and the errors of the rules.
        """
        meta = self._envelope(kind, namespace, body)
        if meta.get("name") != name:
            raise bad_request(
                f"the name of the object ({meta.get('name', '')}) does not match the name on the URL ({name})"
            )
        old = self.store.find(kind, namespace, name)
        if old is None:
            if kind is LEASES:
                return self.create(kind, namespace, body, options)
            raise not_found(kind, name)
        if kind.custom and not meta.get("resourceVersion"):
            why = "Invalid value: 0: must be specified for an update"
            raise invalid(kind, name, [("metadata.resourceVersion", "FieldValueInvalid", why)])
        return self._replace(old, old.read(), body, part, options)

    def patch(
        self, kind: Kind, namespace: str, name: str, way: str, patch: object, part: str = "",
        options: WriteOptions = OWN,
    ) -> tuple[Stored, bool]:  # fmt: skip
        """Change an object by a patch of the media type `way`; return it, and whether an apply created it.

        Raises
        ------
        FailureError
            As `update`; 422 if the patch does not fit, 409 if an apply conflicts with fields of other managers.
        """
        if way == APPLY_PATCH:
            return self._apply(kind, namespace, name, patch, part, options)
        old = self.store.get(kind, namespace, name)
        current = old.read()
        try:
            body = self._patched(kind, name, way, old.read(), patch)
        except PatchError as error:
            if error.malformed:
                raise bad_request(str(error)) from None
            raise FailureError(
                422, "Invalid", "the server rejected our request due to an error in our request", {}
            ) from None
        meta = body.get("metadata")
        if not isinstance(meta, dict) or meta.get("name") != name:
            raise bad_request("the name of the object does not match the name on the URL")
        return self._replace(old, current, body, part, options), False

    @staticmethod
    def _patched(kind: Kind, name: str, way: str, current: Json, patch: object) -> Json:
        if way == JSON_PATCH:
            body = json_patch(current, patch)
        elif not isinstance(patch, dict):
            raise bad_request("a patch of an object is an object")
        elif way == STRATEGIC_PATCH:
            if kind.custom:
                raise FailureError(
                    415, "UnsupportedMediaType",
                    "the body of the request was in an unknown format - accepted media types include: "
                    f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}",
                )  # fmt: skip
            body = strategic(current, patch)
        else:
            body = merge(current, patch)
        if not isinstance(body, dict):
            raise invalid(kind, name, [("", "FieldValueInvalid", "Invalid value: not an object")])
        return body

    def _apply(
        self, kind: Kind, namespace: str, name: str, patch: object, part: str, options: WriteOptions
    ) -> tuple[Stored, bool]:
        patch, meta = self._configuration(kind, namespace, name, patch, options)
        old = self.store.find(kind, namespace, name)
        if old is None:
            if part:
                raise not_found(kind, name)
            if meta.get("uid"):
                raise conflict(
                    kind, name, "uid mismatch: the provided object specified uid, and no existing object was found"
                )
            body = apply_to(None, patch, options.manager, part, stamp(self.now()), force=options.force)
            return self.create(kind, namespace, body, options), True
        current = old.read()
        body = apply_to(old.read(), patch, options.manager, part, stamp(self.now()), force=options.force)
        if meta.get("resourceVersion"):
            body["metadata"]["resourceVersion"] = meta["resourceVersion"]
        return self._replace(old, current, body, part, options, applied=True), False

    def _configuration(
        self, kind: Kind, namespace: str, name: str, patch: object, options: WriteOptions
    ) -> tuple[Json, Json]:
        """Check the configuration of an apply; return it and its metadata."""
        if not isinstance(patch, dict) or not patch.get("kind") or not patch.get("apiVersion"):
            raise bad_request("invalid object type: /, Kind=")
        if not options.manager:
            why = "Required value: is required for apply patch"
            raise invalid(kind, "", [("fieldManager", "FieldValueRequired", why)])
        meta = self._envelope(kind, namespace, patch)
        if not meta.get("name"):
            why = "was undeterminable: name must be provided"
            raise bad_request(f"the name of the object ({name} based on URL) {why}")
        if meta["name"] != name:
            raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
        if "managedFields" in meta:
            raise bad_request("metadata.managedFields must be nil")
        return patch, meta

    def _replace(
        self, old: Stored, current: Json, body: Json, part: str, options: WriteOptions, *, applied: bool = False
    ) -> Stored:
        kind, was = old.kind, current["metadata"]
        self._keep_identity(old, body["metadata"], was)
        body["kind"], body["apiVersion"] = kind.kind, kind.api_version
        self._keep_part(kind, body, current, part)
        meta = body["metadata"]
        rules.on_update(kind, body, current, part)
        for admit in self.admission:
            admit(kind, body, current)
        self._check_finalizers(kind, old, meta)
        if not part or part == "scale":
            rules.check(kind, body, current)
        if kind.generation and rules.spec_changed(kind, body, current):
            meta["generation"] = was.get("generation", 0) + 1
        if not applied:
            track(body, current, options.manager, part, stamp(self.now()))
        if _same(body, current):
            return old
        if options.dry_run:
            return Stored(kind, body)
        if old.deleting and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds"):
            return self.store.remove(kind, body)
        return self.store.put(kind, body)

    @staticmethod
    def _keep_identity(old: Stored, meta: Json, was: Json) -> None:
        """Reject a change of the identity, and restore the fields that no write changes."""
        if meta.get("uid") not in (None, "", old.uid):
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old.uid}"
            raise conflict(old.kind, old.name, why)
        if meta.get("resourceVersion") not in (None, "", "0", str(old.version)):
            raise conflict(old.kind, old.name)
        for name in _STORED:
            if name in was:
                meta[name] = was[name]
            else:
                meta.pop(name, None)
        meta["resourceVersion"] = was["resourceVersion"]

    @staticmethod
    def _keep_part(kind: Kind, body: Json, current: Json, part: str) -> None:
        """Restore the fields that a write to this subresource does not change."""
        if part == "status":
            meta = current["metadata"] if kind.custom else {**current["metadata"], **_written_with_status(body)}
            if "managedFields" in body["metadata"]:
                meta = {**meta, "managedFields": body["metadata"]["managedFields"]}
            status = body.get("status")
            body.clear()
            body.update({**current, "metadata": meta})
            if status is not None:
                body["status"] = status
        elif kind.status:
            body.pop("status", None)
            if "status" in current:
                body["status"] = current["status"]

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions = PLAINLY) -> tuple[Stored, bool]:
        """Delete an object, or mark it as being deleted; return its last state, and whether it is gone.

        Raises
        ------
        FailureError
            404 if it does not exist, 409 if it does not match the preconditions in `options`.
        """
        old = self.store.get(kind, namespace, name)
        for what, wanted, found in (
            ("UID", options.uid, old.uid),
            ("ResourceVersion", options.version, str(old.version)),
        ):
            if wanted and wanted != found:
                why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                raise conflict(kind, name, why)
        body = old.read()
        meta = body["metadata"]
        grace_period_s = self._grace(kind, body, options)
        self._propagate(kind, meta, options.propagation)
        if kind is NAMESPACES:
            body["status"] = {**(body.get("status") or {}), "phase": "Terminating"}
        stays = grace_period_s > 0 or bool(meta.get("finalizers")) or kind is NAMESPACES
        if options.dry_run:
            return old, not stays
        if not stays:
            return self.store.remove(kind, body), True
        if not old.deleting or grace_period_s < meta.get("deletionGracePeriodSeconds", 0):
            meta["deletionTimestamp"] = stamp(self.now() + timedelta(seconds=grace_period_s))
            if kind is not NAMESPACES:
                meta["deletionGracePeriodSeconds"] = grace_period_s
            if kind.generation and not old.deleting:
                meta["generation"] = meta.get("generation", 0) + 1
        if _same(body, old.read()):
            return old, False
        return self.store.put(kind, body), False

    @staticmethod
    def _grace(kind: Kind, body: Json, options: DeleteOptions) -> int:
        if kind is not PODS:
            return 0
        if not body["spec"].get("nodeName") or body.get("status", {}).get("phase") in ENDED:
            return 0
        asked = options.grace_period_s
        return max(0, int(body["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked))

    @staticmethod
    def _propagate(kind: Kind, meta: Json, policy: str) -> None:
        """Add the finalizer that handles dependents first."""
        if not policy and kind is JOBS:
            policy = "Orphan"  # batch/v1 behaves as the first versions of Job did
        if not policy and meta.get("deletionTimestamp"):
            return
        wanted = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy)
        finalizers = [one for one in meta.get("finalizers", ()) if one not in (FOREGROUND, ORPHAN)]
        if wanted:
            finalizers.append(wanted)
        meta["finalizers"] = finalizers
        if not finalizers:
            del meta["finalizers"]

    def _envelope(self, kind: Kind, namespace: str, body: Json) -> Json:
        """Check apiVersion, kind, name and namespace of an object against its path; return its metadata."""
        said = (body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind)
        if said != (kind.api_version, kind.kind):
            group, _, version = said[0].rpartition("/")
            if (group, version) != (kind.group, kind.version):
                raise bad_request(
                    f"the API version in the data ({said[0]}) does not match the expected API version "
                    f"({kind.api_version})"
                )
            raise bad_request(f"{said[1]} in version {said[0]} cannot be handled as a {kind.kind}")
        body["kind"], body["apiVersion"] = kind.kind, kind.api_version
        meta: Json = body.setdefault("metadata", {})
        if not isinstance(meta, dict):
            raise bad_request("metadata is an object")
        if meta.get("namespace", namespace) != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if kind.namespaced:
            meta["namespace"] = namespace
        return meta

    def _check_name(self, kind: Kind, name: str) -> None:
        if len(name) > 253 or not _NAME.match(name):
            raise invalid(
                kind, name, [("metadata.name", "FieldValueInvalid", f'Invalid value: "{name}": {_NAME_RULE}')]
            )
        if kind is SERVICES and not re.match(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", name):
            why = (
                f'Invalid value: "{name}": a lowercase RFC 1123 label must consist of lower case alphanumeric '
                "characters or '-', and must start and end with an alphanumeric character"
            )
            raise invalid(kind, name, [("metadata.name", "FieldValueInvalid", why)])

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if not kind.namespaced:
            return
        if not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        found = self.store.get(NAMESPACES, "", namespace)
        if found.deleting:
            raise forbidden(
                kind, name, f"unable to create new content in namespace {namespace} because it is being terminated"
            )

    @staticmethod
    def _check_finalizers(kind: Kind, old: Stored, meta: Json) -> None:
        if not old.deleting:
            return
        more = set(meta.get("finalizers") or ()) - set(old.read()["metadata"].get("finalizers") or ())
        if more:
            why = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"{sorted(more)}"
            )
            raise invalid(kind, old.name, [("metadata.finalizers", "FieldValueForbidden", why)])


def _written_with_status(body: Json) -> Json:
    """Return the part of the metadata that a write to the status of a built-in kind also changes."""
    return {
        name: body["metadata"][name] for name in ("labels", "annotations", "finalizers") if name in body["metadata"]
    }


def _same(one: Json, other: Json) -> bool:
    """Report whether two states are equal, apart from the times of field writes."""
    if one == other:
        return True
    if any(one.get(key) != other.get(key) for key in {*one, *other} - {"metadata"}):
        return False
    ours, theirs = one["metadata"], other["metadata"]
    if any(ours.get(key) != theirs.get(key) for key in {*ours, *theirs} - {"managedFields"}):
        return False
    return [{**entry, "time": ""} for entry in ours.get("managedFields", ())] == [
        {**entry, "time": ""} for entry in theirs.get("managedFields", ())
    ]
