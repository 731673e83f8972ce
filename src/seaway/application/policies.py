"""The trained policies that a control plane has: those that come with Seaway, and those that a user brought."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seaway.application.changes import Change
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import MAX_ROWS, Store
from seaway.application.records import Event, PolicyRecord
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, StaleError, UnknownError
from seaway.domain.tenancy import Queue
from seaway.learning.policies.check import check_speed, read_policy, try_in_subprocess
from seaway.learning.policies.file import PolicyFile, pack, unpack
from seaway.learning.policies.library import Library, ShippedLibrary
from seaway.learning.policies.monitor import Counts
from seaway.learning.policies.signature import PublicKey, require_trusted, signer
from seaway.scheduling.policies.registry import policy_names
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import ProfileSpec

MOST = 100
"""Policies that may be brought: all are held in memory."""


@dataclass(frozen=True, slots=True)
class Brought:
    """A trained policy as it is told of.

    Attributes
    ----------
    file
        What it is.
    signed_by
        The key that it is signed by; None where no one signed it.
    actor, at_ns
        Who brought it, and when; empty and 0 for one that comes with Seaway.
    """

    file: PolicyFile
    signed_by: PublicKey | None
    actor: str = ""
    at_ns: int = 0

    @property
    def name(self) -> str:
        """Its name."""
        return self.file.manifest.name


Meant = Callable[[Brought | None], bool]
"""Tells whether what there is, None for nothing, is what a change is meant for."""


class Policies:
    """Takes, gives and removes trained policies. Every method may be called from any thread.

    It fills `seaway.learning.policies.library.Library`. A policy is never replaced by another of its name: what a queue
    decides by does not change under it.

    Parameters
    ----------
    trusted
        Keys by which brought policies must be signed; none takes every policy.
    shipped
        Those that come with Seaway.
    try_out
        Tries a file that comes in, where nothing is harmed by it.
    stop_s
        After how many seconds its models are stopped; 0 for never.

    Attributes
    ----------
    profiles
        Profiles that queues may have by their names; trained policies may be among their plugins.
    counts
        How those do that decide here.
    on_change
        Called with a name when what bears it is another, or may be, and with the names of the profiles that it is in;
        one call at a time.
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

    # A library.

    def names(self) -> list[str]:
        """Return the names of all, sorted."""
        return sorted({*self._shipped.names(), *self._records()})

    def load(self, name: str) -> PolicyFile:
        """Return a policy that may be used here.

        Raises
        ------
        UnknownError
            When there is none of that name.
        RejectedError
            When it may not be used: it is damaged, or not signed by a key that is trusted.
        """
        record = self._records().get(name)
        if record is None:
            return self._shipped.load(name)
        file = self._file(record)
        require_trusted(file, self._trusted)
        return file

    def says(self, name: str) -> str:
        """Return what a policy or a profile does, one clause; why it cannot be used, where that is so."""
        if name in self.profiles:
            return f"joins {', '.join(each.policy or each.name for each in self.profiles[name].plugins)}"
        try:
            return self.load(name).manifest.says or "a trained policy"
        except RejectedError as error:
            return error.message

    def offer(self, profiles: Mapping[str, ProfileSpec]) -> None:
        """Let queues have profiles, too.

        Raises
        ------
        RejectedError
            When one has the name of a trained policy.
        """
        for name in profiles:
            if name in self.names():
                raise RejectedError(f"a trained policy {name!r} exists; rename the profile")
        self.profiles = profiles

    def profiles_with(self, name: str) -> list[str]:
        """Return the profiles among whose plugins a trained policy is."""
        return [profile for profile, outline in self.profiles.items() if name in outline.policies]

    # What operators do.

    def look_up(self, name: str) -> Brought:
        """Return what there is of a name; raises as `load`, but for keys that are not trusted."""
        record = self._records().get(name)
        if record is None:
            file = self._shipped.load(name)
            return Brought(file, signer(file))
        file = self._file(record)
        return Brought(file, signer(file), record.actor, record.at_ns)

    def bring(self, content: bytes, actor: str) -> tuple[Brought, bool]:
        """Keep a policy file; the same one again changes nothing, but for its signature.

        Returns
        -------
        tuple
            The policy, and whether it is new.

        Raises
        ------
        RejectedError
            When it may not be used here, or its name is one of Seaway's own.
        ConflictError
            When there is another of its name, or there are too many.
        """
        file = unpack(content)
        require_trusted(file, self._trusted)
        name = file.manifest.name
        if name in policy_names() or name in self._shipped.names() or name in self.profiles:
            raise RejectedError(f"{name!r} is the name of a policy that Seaway has; give it another", where="name")
        self._try_out(content)
        check_speed(file, self._stop_s)
        with self._changing:
            there = self._records().get(name)
            if there is not None and there.content == pack(file):
                return self.look_up(name), False
            if there is not None and there.digest != file.digest:
                raise ConflictError(f"another policy {name!r} exists; remove it first, or choose another name")
            if there is None and len(self._records()) >= MOST:
                raise ConflictError(f"there are {MOST} policies already; remove one first")
            record = PolicyRecord(name, file.digest, pack(file), actor, self._clock.now_ns())
            verb = "brought" if there is None else "signed again"
            text = f"policy {name} {verb}: {file.manifest.algo}, of level {file.manifest.level}"
            self._store_with_event(name, Change(put=[record]), text, actor)
            self._records()[name] = record
            self._tell_of(name)
        return self.look_up(name), there is None

    def remove(self, name: str, actor: str, meant: Meant | None = None) -> None:
        """Remove a policy that was brought; who calls sees to it that no queue uses it.

        Raises
        ------
        UnknownError
            When there is none of that name.
        ConflictError
            When it comes with Seaway.
        StaleError
            When this is not `meant` for what there is.
        """
        with self._changing:
            record = self._records().get(name)
            if record is None:
                if name in policy_names() or name in self._shipped.names():
                    raise ConflictError(f"policy {name!r} comes with Seaway and is always there")
                if name in self.profiles:
                    raise ConflictError(f"policy {name!r} is a file in policies.profiles_dir; remove that, and restart")
                raise UnknownError(f"trained policy {name!r} not found")
            if meant and not meant(self._reported(record)):
                raise StaleError(f"the policy {name!r} has changed since you read it; read it again")
            self._store_with_event(name, Change(delete=[record]), f"policy {name} removed", actor)
            del self._records()[name]
            self._files.pop(name, None)
            self._tell_of(name)

    def _reported(self, record: PolicyRecord) -> Brought | None:
        """Return what is told of a policy; None of one that cannot be read any more, which may be removed."""
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
                raise RejectedError(f"policy {record.name!r} cannot be used: {error.message}") from None
            self._files[record.name] = (record, file)
        return file

    def _records(self) -> dict[str, PolicyRecord]:
        """Return what was brought, by name; read once, for no one else writes."""
        with self._changing:
            if self._stored is None:
                self._stored = {each.name: each for each in self._store.policies()}
            return self._stored

    def _store_with_event(self, name: str, change: Change, reason: str, actor: str) -> None:
        change.insert.append(Event(self._clock.now_ns(), "policy", reason, actor))
        try:
            self._writer.require(change)
        except SeawayError:
            self._stored = None  # it may have been stored all the same
            self._tell_of(name)
            raise

    def _tell_of(self, name: str) -> None:
        for each in (name, *self.profiles_with(name)):
            self.on_change(each)


class Gate:
    """Lets a trained policy decide for a queue that was that queue's shadow for long enough.

    It goes by what is stored of comparisons, which name the model: another one under the same name starts over.

    Parameters
    ----------
    store
        Has the comparisons.
    shadow_jobs
        How many jobs it must have decided as a shadow, itself: fall-backs do not count; 0 for none.
    """

    def __init__(self, store: Store, shadow_jobs: int) -> None:
        self._store = store
        self._shadow_jobs = shadow_jobs

    def require(self, queue: Queue, profile: Profile) -> None:
        """Make sure that a policy may decide for a queue.

        Parameters
        ----------
        queue
            As it is now; as it is to be where there is none yet.

        Raises
        ------
        ConflictError
            When it may not yet; says what is missing and what to do next.
        """
        if not profile.version:
            return
        seen, fallbacks = self._seen(queue.name, profile.title)
        if seen >= self._shadow_jobs:
            return
        missing = f"it decided {seen} of {self._shadow_jobs} jobs in its shadow, {self._shadow_jobs - seen} to go"
        if fallbacks:
            missing += f" (for {fallbacks} more it had no answer: something else decided, they do not count)"
        following = f"make it the shadow: seaway policies activate {profile.name} --queue {queue.name} --shadow"
        if queue.shadow == profile.name:
            following = f"let more jobs come, and see how it does: seaway queues shadows {queue.name}"
        raise ConflictError(
            f"policy {profile.title} may not decide for queue {queue.name!r} yet: {missing} "
            f"(policies.shadow_jobs); {following}"
        )

    def _seen(self, queue: str, title: str) -> tuple[int, int]:
        """Count the jobs that a policy decided as a queue's shadow, up to as many as it takes, and its fall-backs."""
        seen, fallbacks, before = 0, 0, 0
        while seen < self._shadow_jobs and (rows := self._store.shadows(queue, MAX_ROWS, before)):
            seen += sum(row.answered for row in rows if row.shadow == title)
            fallbacks += sum(row.fallbacks for row in rows if row.shadow == title)
            before = rows[-1].id
        return min(seen, self._shadow_jobs), fallbacks
