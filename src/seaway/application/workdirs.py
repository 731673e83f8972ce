"""Archives with working directories of jobs: stored in parts, fetched by pods, and removed when no job needs them.

An archive is named by the digest of its content, so that the same folder is sent once. Each tenant has its own. The
database has the parts, or a bucket has whole archives, which clients and pods send and fetch there themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Callable, Iterable, Set
from dataclasses import replace

from seaway.application.access import Caller
from seaway.application.changes import Change
from seaway.application.ports.buckets import Bucket, Upload
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import (
    BUCKET_PART_BYTES,
    NS_PER_S,
    PART_BYTES,
    Role,
    WorkdirLimits,
    WorkdirPart,
    WorkdirRecord,
)
from seaway.application.writer import Writer
from seaway.domain.deployment import Deployment
from seaway.domain.errors import ConflictError, RejectedError, UnauthenticatedError, UnavailableError, UnknownError
from seaway.domain.reasons import Reason
from seaway.domain.runtime import ARCHIVE
from seaway.domain.units import size_text

PREFIX = "swd"
"""Begin of the tokens with which pods fetch an archive."""

SETTLED_NS = 3600 * NS_PER_S
"""Time for which an archive stays after it was sent or used, even if its tenant needs room, nanoseconds."""

SENDING_NS = 24 * SETTLED_NS
"""Time after which what a bucket got of an archive is removed, if the archive was not completed, nanoseconds."""

IN_BUCKET = -1
"""Number of the part that marks an archive that a client sends to the bucket. It has the ID of the upload, if any."""

AT_ONCE = 16
"""Maximum number of parts that one transaction removes."""

Key = tuple[str, str]
"""Tenant and digest of an archive."""


class Workdirs:
    """Stored archives. Only the process that writes to the database changes them, so their records are in memory.

    Parameters
    ----------
    limits
        Limits of archives.
    bucket
        Bucket for new archives; None for the database. Archives in another bucket than this are not known.
    """

    def __init__(
        self, store: Store, clock: Clock, limits: WorkdirLimits | None = None, bucket: Bucket | None = None
    ) -> None:
        self.limits = limits or WorkdirLimits()
        self.bucket = bucket
        self._store, self._clock = store, clock
        self._writer: Writer | None = None
        self._needed: Callable[[], Set[Key] | None] = lambda: None
        self._stored: dict[Key, WorkdirRecord] = {}
        self._unfinished: dict[Key, dict[int, int]] = {}
        """Numbers and times of the parts of archives that are being sent."""
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        """Lock for changes, so that a transaction has one part only."""

    def start(self, writer: Writer, needed: Callable[[], Set[Key] | None]) -> None:
        """Load the records of stored archives.

        Parameters
        ----------
        needed
            Returns the archives of unfinished jobs; None while the jobs are not known.
        """
        self._writer, self._needed = writer, needed
        places = ("", self.bucket.address) if self.bucket else ("",)
        self._stored = {(each.tenant, each.digest): each for each in self._store.workdirs() if each.bucket in places}
        for each in self._store.workdir_parts():
            key = (each.tenant, each.digest)
            if key not in self._stored:
                self._unfinished.setdefault(key, {})[each.number] = each.at_ns

    def of_tenant(self, tenant: str) -> list[WorkdirRecord]:
        """Return the archives of a tenant, the last used first."""
        with self._lock:
            found = [each for each in self._stored.values() if each.tenant == tenant]
        return sorted(found, key=lambda each: each.used_ns, reverse=True)

    def used_bytes(self, tenant: str) -> int:
        """Return the size of all archives of a tenant, including those that are being sent."""
        with self._lock:
            stored = sum(each.size_bytes for each in self._stored.values() if each.tenant == tenant)
            sent = [each for (owner, _), parts in self._unfinished.items() if owner == tenant for each in parts]
            parts = sum(each != IN_BUCKET for each in sent)
        return stored + parts * PART_BYTES

    def admits(self, tenant: str, digest: str) -> bool:
        """Report whether a job of a tenant may name an archive. An archive that is named stays for a while."""
        with self._lock:
            found = self._stored.get((tenant, digest))
            if found:
                self._stored[tenant, digest] = replace(found, used_ns=self._clock.now_ns())
        return found is not None

    def send_part(self, tenant: str, digest: str, number: int, content: bytes) -> None:
        """Store a part of an archive.

        Raises
        ------
        RejectedError
            If it is too large, or beyond the largest archive.
        ConflictError
            If the tenant has no room for it.
        """
        require_digest(digest)
        if not 0 < len(content) <= PART_BYTES:
            raise RejectedError(Reason("part_size", most=PART_BYTES, size=len(content)))
        if number * PART_BYTES >= self.limits.archive_bytes:
            raise RejectedError(Reason("archive_part_size", most=size_text(self.limits.archive_bytes)), where="number")
        key, now_ns = (tenant, digest), self._clock.now_ns()
        with self._sending:
            if key in self._stored:
                return
            if self.bucket:
                raise ConflictError(Reason("archives_to_bucket"))
            if number not in self._unfinished.get(key, ()):
                self._make_room(tenant, len(content))
            part = WorkdirPart(tenant, digest, number, b64encode(content).decode(), now_ns)
            self._write(Change(put=[part]))
            with self._lock:
                self._unfinished.setdefault(key, {})[number] = now_ns

    def finish(self, tenant: str, digest: str, size_bytes: int, actor: str) -> list[int] | list[Upload]:
        """Complete an archive; return the numbers of its missing parts, none if it is stored now.

        If something is missing in the bucket, return the requests that store it there.

        Raises
        ------
        RejectedError
            If it is too large, or its parts have another digest. They are then removed.
        ConflictError
            If the tenant has no room for it.
        """
        require_digest(digest)
        if size_bytes > self.limits.archive_bytes:
            sizes = {"size": size_text(size_bytes), "most": size_text(self.limits.archive_bytes)}
            raise RejectedError(Reason("archive_too_large", **sizes), where="size_bytes")
        key, now_ns = (tenant, digest), self._clock.now_ns()
        place = self.bucket.address if self.bucket else ""
        record = WorkdirRecord(tenant, digest, size_bytes, secrets.token_hex(32), actor, now_ns, now_ns, place)
        if self.bucket:
            return self._finish_in(self.bucket, record)
        with self._sending:
            if self.admits(tenant, digest):
                return []
            sent = self._unfinished.get(key, {})
            if missing := [number for number in record.parts if number not in sent]:
                self._make_room(tenant, min(len(missing) * PART_BYTES, size_bytes))
                return missing
            self._require_content(record)
            if beyond := sorted(sent.keys() - set(record.parts)):
                self._remove_parts(tenant, digest, beyond)
            self._write(Change(put=[record]))
            with self._lock:
                self._stored[key] = record
                self._unfinished.pop(key, None)
        return []

    def _finish_in(self, bucket: Bucket, record: WorkdirRecord) -> list[Upload]:
        """Complete an archive of a bucket, which accepts only content with its digest and size, or parts of its size.

        Pods check the digest of an archive that was sent in parts.
        """
        key = (record.tenant, record.digest)
        if self.admits(*key):
            return []
        name = _object(*key)
        with self._sending:
            self._make_room(record.tenant, record.size_bytes)
            if bucket.size(name) != record.size_bytes:
                before = self._store.workdir_part(*key, IN_BUCKET)
                upload, missing = _missing(bucket, name, record, before.content if before else "")
                if missing:
                    self._write(Change(put=[WorkdirPart(*key, IN_BUCKET, upload, record.created_ns)]))
                    with self._lock:
                        self._unfinished[key] = {IN_BUCKET: record.created_ns}
                    return missing
            self._write(Change(put=[record], delete=[WorkdirPart(*key, IN_BUCKET, "", 0)]))
            with self._lock:
                self._stored[key] = record
                self._unfinished.pop(key, None)
        return []

    def url(self, record: WorkdirRecord) -> str:
        """Return a URL of a bucket from which an archive can be fetched for an hour; empty if the database has it."""
        return self.bucket.url(_object(record.tenant, record.digest)) if self.bucket and record.bucket else ""

    def in_bucket(self, deployment: Deployment) -> bool:
        """Report whether the pods of a deployment fetch its archive from a bucket."""
        with self._lock:
            record = self._stored.get((deployment.spec.tenant, deployment.spec.runtime.workdir))
        return bool(record and record.bucket)

    def record(self, tenant: str, digest: str) -> WorkdirRecord:
        """Return an archive.

        Raises
        ------
        UnknownError
            If the tenant has no such archive.
        """
        with self._lock:
            found = self._stored.get((tenant, digest))
        if found is None:
            raise UnknownError(Reason("archive_not_stored", digest=digest[:80]))
        return found

    def part(self, record: WorkdirRecord, number: int) -> bytes:
        """Return the content of a part.

        Raises
        ------
        UnknownError
            If the archive was removed in the meantime.
        """
        found = self._store.workdir_part(record.tenant, record.digest, number)
        if found is None:
            raise UnknownError(Reason("part_not_stored", number=number, digest=record.digest))
        return b64decode(found.content)

    def token(self, deployment: Deployment) -> str:
        """Return the token with which the pods of a deployment fetch its archive; empty if there is none.

        It is derived, so that it is the same for each rendering of the pods.
        """
        spec = deployment.spec
        with self._lock:
            record = self._stored.get((spec.tenant, spec.runtime.workdir))
        return f"{PREFIX}_{_signed(record, deployment.job_id, deployment.attempt)}" if record else ""

    def caller(self, token: str, digest: str) -> Caller:
        """Return the caller of a request for an archive, by the token of its pods.

        A token is valid for its archive until the attempt of the job ends.

        Raises
        ------
        UnauthenticatedError
            If it is invalid for this archive, or not valid any more.
        """
        job_id, _, rest = token.removeprefix(f"{PREFIX}_").partition("_")
        attempt = rest.partition("_")[0]
        with self._lock:
            records = [each for each in self._stored.values() if each.digest == digest]
        if attempt.isascii() and attempt.isdigit():
            for record in records:
                right = f"{PREFIX}_{_signed(record, job_id, int(attempt))}"
                if hmac.compare_digest(right.encode(), token.encode("utf-8", "surrogateescape")):
                    return self._caller(record, job_id, int(attempt))
        raise UnauthenticatedError(Reason("archive_token_invalid"))

    def delete(self, tenant: str, digest: str) -> None:
        """Remove an archive that no unfinished job needs.

        Raises
        ------
        UnknownError
            If the tenant has no such archive.
        ConflictError
            If an unfinished job needs it.
        """
        with self._sending:
            record = self.record(tenant, digest)
            if (tenant, digest) in self.require_needed():
                raise ConflictError(Reason("archive_in_use", tenant=tenant, digest=digest))
            self._remove(record)

    def collect(self) -> dict[str, int]:
        """Remove archives that no job needs and that were not used for long, and parts of unfinished ones.

        Raises
        ------
        UnavailableError
            If the jobs are not known, or the database does not respond.
        """
        now_ns = self._clock.now_ns()
        gone = {"workdirs": 0, "unfinished workdirs": 0}
        with self._sending:
            needed = self.require_needed()
            for record in self._in_memory():
                if (record.tenant, record.digest) in needed:
                    record = replace(record, used_ns=now_ns)  # noqa: PLW2901
                    with self._lock:
                        self._stored[record.tenant, record.digest] = record
                elif record.used_ns <= now_ns - self.limits.retention_ns:
                    self._remove(record)
                    gone["workdirs"] += 1
                    continue
                self._write(Change(put=[record]))
            for (tenant, digest), parts in list(self._unfinished.items()):
                if max(parts.values()) <= now_ns - (SENDING_NS if self.bucket else SETTLED_NS):
                    if self.bucket:
                        self._discard(self.bucket, tenant, digest)
                    self._remove_parts(tenant, digest, sorted(parts))
                    with self._lock:
                        del self._unfinished[tenant, digest]
                    gone["unfinished workdirs"] += 1
        return gone

    def _discard(self, bucket: Bucket, tenant: str, digest: str) -> None:
        """Remove what a bucket has of an archive that was never completed."""
        begun = self._store.workdir_part(tenant, digest, IN_BUCKET)
        if begun and begun.content:
            bucket.abort(_object(tenant, digest), begun.content)
        bucket.delete(_object(tenant, digest))

    def _make_room(self, tenant: str, size_bytes: int) -> None:
        """Remove archives of a tenant that no job needs, the least recently used first, until there is room.

        Raises
        ------
        ConflictError
            If there is not enough room.
        """
        most = self.limits.tenant_bytes
        if self.used_bytes(tenant) + size_bytes <= most:
            return
        needed, settled_ns = self.require_needed(), self._clock.now_ns() - SETTLED_NS
        for record in reversed(self.of_tenant(tenant)):
            if (tenant, record.digest) not in needed and record.used_ns <= settled_ns:
                self._remove(record)
                if self.used_bytes(tenant) + size_bytes <= most:
                    return
        sizes = {"used": size_text(self.used_bytes(tenant)), "more": size_text(size_bytes), "most": size_text(most)}
        raise ConflictError(Reason("archives_full", tenant=tenant, **sizes))

    def require_needed(self) -> Set[Key]:
        """Return the archives of unfinished jobs.

        Raises
        ------
        UnavailableError
            If the jobs are not known yet.
        """
        needed = self._needed()
        if needed is None:
            raise UnavailableError(Reason("control_plane_starts"), retry_after_s=1)
        return needed

    def _in_memory(self) -> list[WorkdirRecord]:
        with self._lock:
            return list(self._stored.values())

    def _require_content(self, record: WorkdirRecord) -> None:
        """Check that the parts of an archive have its size and digest; remove them otherwise."""
        digest, size = hashlib.sha256(), 0
        try:
            for number in record.parts:
                content = self.part(record, number)
                digest.update(content)
                size += len(content)
        except Error:
            size = -1
        if (f"sha256:{digest.hexdigest()}", size) != (record.digest, record.size_bytes):
            key = (record.tenant, record.digest)
            self._remove_parts(*key, sorted(self._unfinished.get(key, ())))
            with self._lock:
                self._unfinished.pop(key, None)
            raise RejectedError(Reason("parts_do_not_match"), where="digest")

    def _caller(self, record: WorkdirRecord, job_id: str, attempt: int) -> Caller:
        job = self._store.job(job_id)
        known = job is not None and (job.spec.tenant, job.spec.runtime.workdir) == (record.tenant, record.digest)
        if job is None or not known or job.state.final or job.attempt != attempt:
            raise UnauthenticatedError(Reason("archive_token_ended"))
        return Caller(f"job {job_id}", Role.USER, record.tenant)

    def _remove(self, record: WorkdirRecord) -> None:
        if self.bucket and record.bucket:
            self.bucket.delete(_object(record.tenant, record.digest))
        with self._lock:
            self._stored.pop((record.tenant, record.digest), None)
        self._write(Change(delete=[record]))
        self._remove_parts(record.tenant, record.digest, record.parts)

    def _remove_parts(self, tenant: str, digest: str, numbers: Iterable[int]) -> None:
        rows = [WorkdirPart(tenant, digest, number, "", 0) for number in numbers]
        for first in range(0, len(rows), AT_ONCE):
            self._write(Change(delete=list(rows[first : first + AT_ONCE])))

    def _write(self, change: Change) -> None:
        if self._writer is None:
            raise UnavailableError(Reason("control_plane_starts"), retry_after_s=1)
        self._writer.require(change)


def require_digest(digest: str) -> None:
    """Check the digest of an archive.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    if not ARCHIVE.fullmatch(digest):
        raise RejectedError(Reason("use_digest"), where="digest")


def _object(tenant: str, digest: str) -> str:
    """Return the name of an archive in a bucket."""
    return f"{tenant}/{digest.removeprefix('sha256:')}.tar.gz"


def _missing(bucket: Bucket, name: str, record: WorkdirRecord, upload: str) -> tuple[str, list[Upload]]:
    """Return the upload of an archive, and the requests for what the bucket lacks. Without any, join the parts.

    Parameters
    ----------
    upload
        ID of the upload that was begun before; empty for none. The bucket may have removed it.
    """
    size, step = record.size_bytes, BUCKET_PART_BYTES
    if size <= step:
        return "", [bucket.upload(name, bytes.fromhex(record.digest[-64:]), size)]
    there = bucket.parts(name, upload) if upload else None
    if there is None:
        upload, there = bucket.begin(name), {}
    wanted = {at // step + 1: (at, min(step, size - at)) for at in range(0, size, step)}
    stored = {number: part.size_bytes for number, part in there.items()}
    missing = [number for number, (_, part_bytes) in wanted.items() if stored.get(number) != part_bytes]
    if not missing:
        bucket.join(name, upload, {number: there[number] for number in wanted})
    return upload, [bucket.upload_part(name, upload, number, *wanted[number]) for number in missing]


def _signed(record: WorkdirRecord, job_id: str, attempt: int) -> str:
    """Return the job and attempt of a token with their signature."""
    of = f"{job_id}_{attempt}"
    mac = hmac.new(bytes.fromhex(record.secret), f"{record.tenant} {record.digest} {of}".encode(), hashlib.sha256)
    return f"{of}_{mac.hexdigest()}"
