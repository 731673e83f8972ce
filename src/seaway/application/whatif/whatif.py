"""What-if questions, answered on a copy of the live fleet."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from seaway.application.admission import Admission
from seaway.application.control.advance_reservations import closed_places
from seaway.application.control.loop import Controller
from seaway.application.control.scheduler.forecast import in_order, running
from seaway.application.control.tenancy import Names
from seaway.application.operations import require_policy
from seaway.application.ports.store import Store
from seaway.application.whatif.clusters import sums_of
from seaway.application.whatif.limitations import reserved_text
from seaway.application.whatif.live_state import (
    Copy,
    Entries,
    add_nodes,
    changed,
    changed_tree,
    close_places,
    leaving_jobs,
    left_reserved,
    lost_gpu_hours,
    running_jobs,
    shrink_off,
    still_running,
    with_nodes,
)
from seaway.application.whatif.place import Placed, Placer, Reserved, Task, where
from seaway.application.whatif.question import (
    Consequences,
    Question,
    changes_of_clusters,
    consequences,
    moves_of,
    requested_moves,
    shrinks_of,
    totals,
)
from seaway.application.whatif.trace import InTurn, Replay, Spread, Stopped, TraceJob, past_jobs, replay_trace
from seaway.application.whatif.waits import Side, compare, due_jobs
from seaway.domain.amounts import held_amounts
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job import Demand
from seaway.domain.job_spec import JobSpec
from seaway.scheduling.cycle.jobs import Entry
from seaway.scheduling.cycle.reserve import NEVER_NS
from seaway.scheduling.explain import Keeper
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing.tree import Key

TOO_LARGE = "resources"
"""Field of the admission error for a job that exceeds the fleet."""


class WhatIf:
    """Answers to what-if questions.

    Parameters
    ----------
    controller
        Controller with the fleet and the queues.
    admission
        Rejects the jobs that a submit would reject, and adds the traits of their templates.
    store
        Past jobs.
    spread
        Execution of replays, which take long; None for the calling thread.
    """

    def __init__(
        self, controller: Controller, admission: Admission, store: Store, spread: Spread | None = None
    ) -> None:
        self._controller = controller
        self._admission = admission
        self._store = store
        self.spread = spread or InTurn()

    def ask(self, question: Question, abandoned: Stopped = lambda: "") -> Consequences:
        """Return the consequences of a question.

        Parameters
        ----------
        abandoned
            Returns why the question ends without an answer; empty to go on.

        Raises
        ------
        RejectedError
            If the question names an unknown object, or admission rejects a job.
        UnavailableError
            While the state is being reloaded, or a policy is being compiled, or if the question is abandoned.
        """
        question = self._with_traits(question)
        with self._controller.lock:
            self._controller.require_read()
        present = self._controller.names
        names = question.changes.applied(present) if question.changes else present
        self._check(question, names)
        copy = self._copy(replays=question.replays)
        snapshot, changes = copy.snapshot, question.changes
        lanes = [each.lane for each in copy.state.entries]
        lanes += [(attempt.spec.queue, attempt.spec.tenant) for attempt, *_ in copy.state.attempts]
        changes.require_leaves(present, names, lanes)
        before = totals(snapshot, len(copy.held), copy.later + len(copy.state.entries))
        clusters = sums_of(snapshot, [where(attempt.placements) for attempt, _ in copy.held])
        added = add_nodes(snapshot, question.add_nodes)
        drained = close_places(snapshot, question.drain)
        state = changed(copy.state, changes, names, drained, added)
        tree = changed_tree(copy, state, changes)
        make = Entries(names, tree, state, copy.refusals)
        entries = [make.again(each, changes) for each in state.entries] if changes else list(state.entries)
        asked = [make.asked(at, spec) for at, spec in enumerate(question.jobs)]
        held = copy.held
        copy, off = shrink_off(copy, () if question.everything else drained, tree, changes)
        leaving = leaving_jobs(question, drained, copy.held)
        for attempt, booking in leaving:
            booking.release(snapshot)
            tree.release((attempt.job_id, attempt.number))
        left = {attempt.job_id: make.moved(*copy.jobs[attempt.job_id], changes) for attempt, _ in leaving}
        others = [(each, ()) for each in in_order(state.discipline, tree.fork(), [*entries, *asked])]
        tasks = self._tasks([*((left[each.job_id], where(each.placements)) for each, _ in leaving), *others])
        displaceable = running_jobs(copy, tree, changes, left)
        queues = {task.queue for task in tasks} | {each.candidate.owner.queue for each in displaceable if each.may_end}
        policies = {name: self._policy(question.policy, name, names) for name in queues}
        due = due_jobs(
            replace(state, entries=[*left.values(), *entries, *asked]),
            still_running(state, left, {}, changes, _shrunk(copy, off, {}, {})),
        )
        placer = Placer(
            snapshot,
            policies,
            tree,
            copy.ends,
            left_reserved(question, drained, copy.reserved),
            due,
            [*copy.closed, Keeper("is_cordoned", {}, drained)],
        )
        direct = placer.place(tasks)
        placer.displace(tasks, displaceable)
        ended = [attempt for attempt, _ in copy.held if (attempt.job_id, attempt.number) in placer.displaced]
        left |= {attempt.job_id: make.moved(*copy.jobs[attempt.job_id], changes) for attempt in ended}
        tasks += self._tasks([(left[attempt.job_id], where(attempt.placements)) for attempt in ended])
        shrunk = _shrunk(copy, off, placer.shrunk, placer.displaced)
        stopped = [each for job_id, each in left.items() if job_id not in placer.placed]
        state = replace(state, entries=[*stopped, *entries, *asked])
        after = Side(state, still_running(state, left, placer.placed, changes, shrunk))
        waits = compare(Side(copy.state, running(copy.state)), after, question.window_s)
        stay = (attempt for attempt, _ in copy.held if attempt.job_id not in left)
        stayed = [shrunk[each.job_id].where if each.job_id in shrunk else where(each.placements) for each in stay]
        answer = consequences(
            moves_of(tasks, placer, waits),
            shrinks_of(held, off, shrunk, placer),
            (before, totals(snapshot, len(stayed) + len(placer.placed), copy.later + len(tasks) - len(placer.placed))),
            changes_of_clusters(
                clusters, sums_of(snapshot, [*stayed, *(each.where for each in placer.placed.values())])
            ),
            waits,
            requested_moves([copy.jobs[each.job_id][0] for each, _ in leaving], leaving, direct),
            partial(lost_gpu_hours, copy),
        )
        if not question.replays:
            return answer
        empty = copy.usable_fleet
        grown = replace(empty, clusters=tuple(with_nodes(each, drained, added) for each in empty.clusters))
        return self._with_trace(
            answer, question, (present, names), (empty, grown), partial(self.spread.map, stopped=abandoned)
        )

    def _with_trace(
        self,
        answer: Consequences,
        question: Question,
        names: tuple[Names, Names],
        fleets: tuple[Fleet, Fleet],
        replay: Replay,
    ) -> Consequences:
        """Add the replays of a trace."""
        jobs: Sequence[TraceJob] = question.trace
        skipped = 0
        if question.last_s:
            now_ns = self._controller.live.clock.now_ns()
            jobs, skipped = past_jobs(self._store, question.last_s, now_ns)
        tree = self._controller.live.tree
        trace = replay_trace(jobs, question.changes, names, fleets, question.policy, replay, tree)
        trace = replace(trace, skipped=skipped)
        return replace(answer, message=f"{answer.message}, {trace.message}", trace=trace)

    def _with_traits(self, question: Question) -> Question:
        """Add the traits of templates to all jobs. Jobs of one kind share a spec."""
        specs = {id(each): each for each in (*question.jobs, *(each.spec for each in question.trace))}
        known = {key: self._admission.with_template_traits(each) for key, each in specs.items()}
        jobs = tuple(known[id(each)] for each in question.jobs)
        return replace(
            question, jobs=jobs, trace=tuple(replace(each, spec=known[id(each.spec)]) for each in question.trace)
        )

    def _copy(self, *, replays: bool) -> Copy:
        """Copy the live state, without reservations."""
        with self._controller.lock:
            live = self._controller.live
            snapshot = live.fleet.snapshot.copy()
            snapshot.unshare_demands()  # the loop continues to write into its own
            reservations, now_ns = self._controller.scheduler.reservations, live.clock.monotonic_ns()
            reservations.lift_from(snapshot)
            bookings = {key: booking.copy() for key in live.attempts if (booking := live.fleet.booking(key))}
            held = [(live.attempts[key], each) for key, each in bookings.items() if live.attempts[key].state.live]
            ends = [
                (ends_ns - now_ns if ends_ns < NEVER_NS else ends_ns, bookings[key])
                for ends_ns, key in reservations.ends()
                if key in bookings
            ]
            records = [live.jobs[attempt.job_id] for attempt, _ in held]
            jobs = {each.id: (each, live.history.runs(each.spec, each.submitted_by)) for each in records}
            # Both plans count amounts only: which jobs do not fit is known for the present fleet, and not for another.
            state = replace(self._controller.forecast.state(), refused=frozenset())
            fleet = live.fleet.fleet() if replays else Fleet(())
            reserved = [
                (reservations.own(entry), entry, Reserved(entry.job, each.placements, starts_ns and starts_ns - now_ns))
                for each in reservations.made()
                for entry, starts_ns in ((each.entry, each.starts_ns),)
            ]
            return Copy(
                snapshot,
                live.tree.fork(),
                state,
                held,
                ends if live.settings.reservations else None,
                {key: now_ns - live.began_ns.get(key, now_ns) for key in bookings},
                reserved,
                jobs,
                {**live.refusals, **{each: live.avoided(live.jobs[each]) for each in live.paired}},
                fleet,
                closed_places(live.fleet, self._controller.names.reservations),
                sum(each.count for each in live.arrays.later()),
            )

    def _tasks(self, entries: Sequence[tuple[Entry, tuple[str, ...]]]) -> list[Task]:
        """Return the jobs to place. Jobs of one kind share what is reserved in advance for others."""
        known: dict[Hashable, tuple[Demand, str]] = {}
        tasks = []
        with self._controller.lock:
            advance = self._controller.live.advance
            for entry, before in entries:
                spec, job = entry.spec, entry.job
                key = (entry.kind, *entry.lane, spec.time_limit_s)
                if key not in known:
                    known[key] = advance.narrow(job, spec).demand, reserved_text(advance.closed_to(spec))
                demand, reserved = known[key]
                allowed, lasts_s = replace(job, demand=demand), entry.max_duration_s
                tasks.append(Task(job, spec.name, entry.owner, before, allowed, reserved, lasts_s))
        return tasks

    def _check(self, question: Question, names: Names) -> None:
        """Reject invalid questions, and compile policies without holding the lock."""
        if question.policy:
            require_policy(self._controller.scheduler, question.policy, "policy")
        for at, spec in enumerate(question.jobs):
            self._check_job(at, spec, names, grows=bool(question.add_nodes))
        for at, (name, fields) in enumerate(question.changes.queues):
            if "policy" in fields:
                require_policy(self._controller.scheduler, names.queues[name].policy_spec, f"queues.{at}.policy")
        wanted = {question.policy} if question.policy else {queue.policy_spec for queue in names.queues.values()}
        self._controller.scheduler.readiness.require(*sorted(wanted))

    def _check_job(self, at: int, spec: JobSpec, names: Names, *, grows: bool) -> None:
        """Reject a job as a submit does, unless it is only too large and the question adds nodes."""
        try:
            self._admission.admit(spec, names=names)
        except RejectedError as error:
            if grows and error.where == TOO_LARGE and not error.also:
                return
            parts = [RejectedError(each.message, where=f"jobs.{at}.{each.where}") for each in (error, *error.also)]
            raise RejectedError(parts[0].message, where=parts[0].where, also=tuple(parts[1:])) from None

    def _policy(self, wanted: str, queue: str, names: Names) -> Profile:
        known = names.queues.get(queue)
        scheduler = self._controller.scheduler
        return scheduler.policy(wanted or (known.policy_spec if known else scheduler.policy_of(queue)))


def _shrunk(
    copy: Copy, off: Collection[str], leave: Mapping[Key, Collection[int]], displaced: Collection[Key]
) -> dict[str, Placed]:
    """Return the replicas that do not leave of each elastic job that shrinks, by ID.

    Parameters
    ----------
    off
        Jobs that have shrunk off drained nodes.
    leave
        Replicas that leave for other jobs.
    displaced
        Jobs that end for other jobs.
    """
    found = {}
    for attempt, _ in copy.held:
        key = attempt.job_id, attempt.number
        gone = leave.get(key, ())
        if (gone or attempt.job_id in off) and key not in displaced:
            left = tuple(each for each in attempt.remaining if each.replica not in gone)
            found[attempt.job_id] = Placed(left, held_amounts(attempt.spec.demand, left, copy.snapshot.device))
    return found
