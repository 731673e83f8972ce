"""Trained policies, shipped and uploaded, and stored evaluations."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import EvaluationRecord, Event, PolicyRecord
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, StaleError, UnknownError
from seaway.domain.queues import Queue
from seaway.domain.reasons import Reason, also
from seaway.learning.policies.check import check_speed, read_policy, try_in_subprocess
from seaway.learning.policies.file import Level, PolicyFile, pack, unpack
from seaway.learning.policies.library import Library, ShippedLibrary
from seaway.learning.policies.monitor import Counts
from seaway.learning.policies.signature import PublicKey, require_trusted, signer
from seaway.scheduling.policies.registry import BUILT_IN, policy_names
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import ProfileSpec

CHOOSES_CLUSTERS = "It chooses clusters by free resources. Where a job does not fit there, the fallback decides."
"""Warning about a trained policy of the published kind."""

MOST = 100
"""Maximum number of uploaded policies; all are held in memory."""


@dataclass(frozen=True, slots=True)
class ImportedPolicy:
    """Trained policy with its origin.

    Attributes
    ----------
    file
        The policy file.
    signed_by
        Key of its signature; None if it is not signed.
    actor, at_ns
        User and time of the upload; empty and 0 for a policy shipped with Seaway.
    """

    file: PolicyFile
    signed_by: PublicKey | None
    actor: str = ""
    at_ns: int = 0

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.file.manifest.name


Precondition = Callable[[ImportedPolicy | None], bool]
"""Check that a change is based on the current policy; None for a missing policy."""


class Policies:
    """Upload, use and removal of trained policies. Thread-safe.

    It implements `seaway.learning.policies.library.Library`. A policy is never replaced by another policy of the same
    name, so the policy of a queue cannot change silently.

    Parameters
    ----------
    trusted
        Keys accepted as signers of uploaded policies; without keys, every policy is accepted.
    shipped
        Policies shipped with Seaway.
    try_out
        Tests an uploaded file in isolation.
    stop_s
        Time limit for the models, seconds; 0 for none.

    Attributes
    ----------
    profiles
        Profiles for queues by name; trained policies can be among their plugins.
    counts
        Counters of the policies in use.
    on_change
        Function called with each name whose policy may have changed, and with the profiles that contain it. Calls do
        not overlap.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        clock: Clock,
        trusted: Sequence[PublicKey] = (),
        shipped: Library | None = None,
        try_out: Callable[[bytes], None] = try_in_subprocess,
        stop_s: float = 0,
    ) -> None:
        self._store = store
        self._writer = writer
        self._clock = clock
        self._trusted = tuple(trusted)
        self._shipped = shipped or ShippedLibrary()
        self._try_out = try_out
        self._stop_s = stop_s
        self.counts = Counts(clock.monotonic_ns)
        self.on_change: Callable[[str], None] = lambda _: None
        self._changing = threading.RLock()
        self._stored: dict[str, PolicyRecord] | None = None
        self._files: dict[str, tuple[PolicyRecord, PolicyFile]] = {}
        self.profiles: Mapping[str, ProfileSpec] = {}

    # Interface of a library.

    def names(self) -> list[str]:
        """Return the names of all policies, sorted."""
        return sorted({*self._shipped.names(), *self._records()})

    def load(self, name: str) -> PolicyFile:
        """Return a usable policy.

        Raises
        ------
        UnknownError
            If no policy has that name.
        RejectedError
            If the policy is damaged, or not signed by a trusted key.
        """
        record = self._records().get(name)
        if record is None:
            return self._shipped.load(name)
        file = self._file(record)
        require_trusted(file, self._trusted)
        return file

    def says(self, name: str) -> str:
        """Return a one-clause description of a policy or profile, or the reason why it cannot be used."""
        if name in self.profiles:
            return Reason("joins", policies=tuple(each.policy or each.name for each in self.profiles[name].plugins))
        try:
            return self.load(name).manifest.says or Reason("trained_policy")
        except RejectedError as error:
            return error.message

    def warning(self, name: str, clusters: int) -> str:
        """Return the limits of a policy to consider before it decides for a queue; empty for none.

        Parameters
        ----------
        clusters
            Number of clusters of the fleet.
        """
        if name in BUILT_IN:
            return BUILT_IN[name].warning
        if name in self.profiles:
            return next(filter(None, (self.warning(each, clusters) for each in self.profiles[name].policies)), "")
        return self._warning_of_trained(name, clusters) if name in self.names() else ""

    def _warning_of_trained(self, name: str, clusters: int) -> str:
        try:
            manifest = self.load(name).manifest
        except RejectedError as error:
            return Reason("unusable", why=error.message)
        if manifest.level is Level.NODE:
            return ""
        if manifest.clusters != clusters:
            return Reason("trained_for", trained=manifest.clusters or 0, count=clusters)
        return CHOOSES_CLUSTERS

    def offer(self, profiles: Mapping[str, ProfileSpec]) -> None:
        """Add profiles for queues.

        Raises
        ------
        RejectedError
            If one has the name of a trained policy.
        """
        for name in profiles:
            if name in self.names():
                raise RejectedError(Reason("trained_policy_exists", name=name))
        self.profiles = profiles

    def profiles_with(self, name: str) -> list[str]:
        """Return the profiles that contain a trained policy."""
        return [profile for profile, outline in self.profiles.items() if name in outline.policies]

    # Operations.

    def look_up(self, name: str) -> ImportedPolicy:
        """Return a policy; raises as `load`, except for untrusted keys."""
        record = self._records().get(name)
        if record is None:
            file = self._shipped.load(name)
            return ImportedPolicy(file, signer(file))
        file = self._file(record)
        return ImportedPolicy(file, signer(file), record.actor, record.at_ns)

    def import_policy(self, content: bytes, actor: str) -> tuple[ImportedPolicy, bool]:
        """Store an uploaded policy file. Uploading the same file again changes at most its signature.

        Returns
        -------
        tuple
            The policy, and whether it is new.

        Raises
        ------
        RejectedError
            If the policy cannot be used here, or its name is reserved.
        ConflictError
            If another policy has that name, or the maximum number is reached.
        """
        file = unpack(content)
        require_trusted(file, self._trusted)
        name = file.manifest.name
        if name in policy_names() or name in self._shipped.names() or name in self.profiles:
            raise RejectedError(Reason("built_in_name", name=name), where="name")
        self._try_out(content)
        check_speed(file, self._stop_s)
        with self._changing:
            there = self._records().get(name)
            if there is not None and there.content == pack(file):
                return self.look_up(name), False
            if there is not None and there.digest != file.digest:
                raise ConflictError(Reason("other_policy_exists", name=name))
            if there is None and len(self._records()) >= MOST:
                raise ConflictError(Reason("policies_full", most=MOST))
            record = PolicyRecord(name, file.digest, pack(file), actor, self._clock.now_ns())
            code = "policy_imported" if there is None else "policy_signed_again"
            text = Reason(code, name=name, algo=file.manifest.algo, level=file.manifest.level.value)
            self._store_with_event(name, Change(put=[record]), text, actor)
            self._records()[name] = record
            self._notify(name)
        return self.look_up(name), there is None

    def remove(self, name: str, actor: str, meant: Precondition | None = None) -> None:
        """Remove an uploaded policy. The caller checks that no queue uses it.

        Raises
        ------
        UnknownError
            If no policy has that name.
        ConflictError
            If the policy is shipped with Seaway.
        StaleError
            If the change is based on another version (`meant`).
        """
        with self._changing:
            record = self._records().get(name)
            if record is None:
                if name in policy_names() or name in self._shipped.names():
                    raise ConflictError(Reason("built_in_stays", name=name))
                if name in self.profiles:
                    raise ConflictError(Reason("profile_is_file", name=name))
                raise UnknownError(Reason("not_found", kind="trained policy", name=name))
            if meant and not meant(self._reported(record)):
                raise StaleError(Reason("changed_since", kind="policy", name=name))
            self._store_with_event(name, Change(delete=[record]), Reason("policy_removed", name=name), actor)
            del self._records()[name]
            self._files.pop(name, None)
            self._notify(name)

    def _reported(self, record: PolicyRecord) -> ImportedPolicy | None:
        """Return a policy; None if it cannot be read. An unreadable policy can still be removed."""
        try:
            return self.look_up(record.name)
        except RejectedError:
            return None

    def _file(self, record: PolicyRecord) -> PolicyFile:
        """Return the file of a policy, read and checked once."""
        of, file = self._files.get(record.name, (None, None))
        if file is None or of is not record:
            try:
                file = read_policy(record.content)
            except RejectedError as error:
                raise RejectedError(Reason("policy_unusable", name=record.name, why=error.message)) from None
            self._files[record.name] = (record, file)
        return file

    def _records(self) -> dict[str, PolicyRecord]:
        """Return the uploaded policies by name. They are read once, since no other process writes."""
        with self._changing:
            if self._stored is None:
                self._stored = {each.name: each for each in self._store.policies()}
            return self._stored

    def _store_with_event(self, name: str, change: Change, reason: str, actor: str) -> None:
        change.insert.append(Event(self._clock.now_ns(), "policy", reason, actor))
        try:
            self._writer.require(change)
        except SeawayError:
            self._stored = None  # it may have been stored
            self._notify(name)
            raise

    def _notify(self, name: str) -> None:
        for each in (name, *self.profiles_with(name)):
            self.on_change(each)


class Gate:
    """Requirement that a trained policy serves as the shadow of a queue before it decides.

    The gate counts stored comparisons, which identify the model. Another model of the same name starts from 0.

    Parameters
    ----------
    store
        Store of the comparisons.
    shadow_jobs
        Minimum number of jobs that the policy decided itself as a shadow, without fallbacks; 0 for no minimum.
    """

    def __init__(self, store: Store, shadow_jobs: int) -> None:
        self._store = store
        self._shadow_jobs = shadow_jobs

    def require(self, queue: Queue, profile: Profile) -> None:
        """Check that a policy may decide for a queue.

        Parameters
        ----------
        queue
            The current queue, or the requested one if it does not exist yet.

        Raises
        ------
        ConflictError
            If the policy may not decide yet; the message has the missing conditions and the next step.
        """
        if not profile.version:
            return
        seen, fallbacks = self._seen(queue.name, profile.title)
        if seen >= self._shadow_jobs:
            return
        most = self._shadow_jobs
        missing = Reason("decided_in_shadow", seen=seen, most=most, left=most - seen)
        if fallbacks:
            missing = Reason("decided_without_answers", what=missing, count=fallbacks)
        following = Reason("make_it_shadow", policy=profile.name, queue=queue.name)
        if queue.shadow == profile.name:
            following = Reason("let_jobs_come", queue=queue.name)
        said = Reason("may_not_decide_yet", policy=profile.title, queue=queue.name, missing=missing)
        raise ConflictError(also(said, following))

    def _seen(self, queue: str, title: str) -> tuple[int, int]:
        """Return the number of jobs that a shadow policy decided, up to the minimum, and of its fallbacks."""
        seen, fallbacks, before = 0, 0, 0
        while seen < self._shadow_jobs and (rows := self._store.shadows(queue, MAX_ROWS, before)):
            seen += sum(row.answered for row in rows if row.shadow == title)
            fallbacks += sum(row.fallbacks for row in rows if row.shadow == title)
            before = rows[-1].id
        return min(seen, self._shadow_jobs), fallbacks


class Evaluations:
    """Storage and removal of evaluations. Thread-safe."""

    def __init__(self, store: Store, writer: Writer, clock: Clock) -> None:
        self._store, self._writer, self._clock = store, writer, clock
        self._changing = threading.Lock()

    def retained(self) -> list[EvaluationRecord]:
        """Return all evaluations, by name."""
        return self._store.evaluations()

    def look_up(self, name: str) -> EvaluationRecord:
        """Return an evaluation.

        Raises
        ------
        UnknownError
            If no evaluation has that name.
        """
        for each in self.retained():
            if each.name == name:
                return each
        raise UnknownError(Reason("not_found", kind="evaluation", name=name[:63]))

    def keep(self, name: str, rows: str, actor: str) -> tuple[EvaluationRecord, bool]:
        """Store an evaluation. Storing the same evaluation again has no effect.

        Returns
        -------
        tuple
            The evaluation, and whether it is new.

        Raises
        ------
        ConflictError
            If another evaluation has that name, or the maximum number is reached.
        """
        with self._changing:
            there = {each.name: each for each in self.retained()}
            if name in there and there[name].rows == rows:
                return there[name], False
            if name in there:
                raise ConflictError(Reason("other_evaluation_exists", name=name))
            if len(there) >= MOST:
                raise ConflictError(Reason("evaluations_full", most=MOST))
            record = EvaluationRecord(name, rows, actor, self._clock.now_ns())
            self._store_with_event(Change(insert=[record]), Reason("evaluation_stored", name=name), actor)
        return record, True

    def remove(self, name: str, actor: str) -> None:
        """Remove an evaluation; raises as `look_up`."""
        with self._changing:
            self._store_with_event(Change(delete=[self.look_up(name)]), Reason("evaluation_removed", name=name), actor)

    def _store_with_event(self, change: Change, reason: str, actor: str) -> None:
        change.insert.append(Event(self._clock.now_ns(), "policy", reason, actor))
        self._writer.require(change)
