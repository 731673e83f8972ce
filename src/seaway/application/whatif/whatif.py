"""What-if questions, answered on a copy of the live fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seaway.application.admission import Admission
from seaway.application.control.loop import Controller
from seaway.application.control.tenancy import Names
from seaway.application.operations import require_policy
from seaway.application.ports.store import Store
from seaway.application.whatif.clusters import sums_of
from seaway.application.whatif.question import (
    Consequences,
    Move,
    Question,
    changes_of_clusters,
    consequences,
    requested_moves,
    totals,
    where,
)
from seaway.application.whatif.trace import InTurn, Replays, Spread, Stopped, TraceJob, past_jobs, replay_trace
from seaway.application.whatif.trial import Trial
from seaway.application.whatif.waits import compare
from seaway.domain.attempt import Attempt
from seaway.domain.cluster import Fleet
from seaway.domain.errors import RejectedError
from seaway.domain.job_spec import JobSpec
from seaway.domain.reasons import Reason, also
from seaway.scheduling.cycle.jobs import Entry

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
        trial = Trial(self._controller, names, question.policy)
        lanes = [each.lane for each in trial.before.entries]
        lanes += [(attempt.spec.queue, attempt.spec.tenant) for attempt, *_ in trial.before.attempts]
        question.changes.require_leaves(present, names, lanes)
        snapshot = trial.free()
        before = totals(snapshot, len(trial.held), trial.later + len(trial.fork.waiting))
        clusters = sums_of(snapshot, [where(attempt.placements) for attempt in trial.held])
        leaving = self._change(trial, question)
        waits = trial.in_order(without={each.job_id for each in leaving})
        trial.start()
        found = {each.job_id: trial.placements(each.job_id) for each in leaving}
        trial.ahead.decide()
        snapshot = trial.free()
        why = trial.reasons(snapshot)
        moves, resizes = self._moves(trial, leaving, waits, why), self._resizes(trial, why)
        runs = [each for each in trial.fork.attempts.values() if each.state.live]
        after = totals(snapshot, len(runs), trial.later + len(trial.fork.waiting))
        applicable = requested_moves([(each, trial.fork.jobs[each.job_id], found[each.job_id]) for each in leaving])
        sides = trial.sides([each for each in waits if trial.placements(each.id)])
        changes = compare(*sides, question.window_s)
        answer = consequences(
            [replace(each, starts_ns=changes.starts_ns.get(each.job_id)) for each in moves],
            resizes,
            (before, after),
            changes_of_clusters(clusters, sums_of(snapshot, [where(each.remaining) for each in runs])),
            changes,
            applicable,
            trial.lost_gpu_hours,
        )
        if not question.replays:
            return answer
        with self._controller.lock:
            fleet = self._controller.live.fleet.fleet()
        return self._with_trace(answer, question, (present, names), trial.grown(fleet), Replays(self.spread, abandoned))

    def _change(self, trial: Trial, question: Question) -> list[Attempt]:
        """Make the changes of a question; return the attempts that end for them, oldest first."""
        trial.use(question.changes)
        trial.change_nodes(question.drain, question.add_nodes)
        leaving = trial.clear(everything=question.everything)
        if question.everything:
            trial.place_first(leaving)
        trial.submit(question.jobs)
        return leaving

    def _moves(
        self, trial: Trial, leaving: Sequence[Attempt], waits: Sequence[Entry], why: Mapping[str, str]
    ) -> list[Move]:
        """Return the placement of each job before and after that was placed, or waits."""
        ended = [each for each in trial.held if (each.job_id, each.number) in trial.ahead.ended]
        before = {each.job_id: where(each.placements) for each in (*leaving, *ended)}
        jobs = [*(each.job_id for each in leaving), *(each.id for each in waits), *(each.job_id for each in ended)]
        return [
            Move(
                job_id,
                trial.fork.jobs[job_id].display_name,
                before.get(job_id, ()),
                where(trial.placements(job_id)),
                why.get(job_id, ""),
            )
            for job_id in dict.fromkeys(jobs)
        ]

    def _resizes(self, trial: Trial, why: Mapping[str, str]) -> list[Move]:
        """Return the running jobs that shrink or grow, each with the replicas before and after."""
        moves = []
        for each in trial.held:
            after = trial.fork.attempts.get((each.job_id, each.number))
            if after and after.remaining is not each.remaining and len(after.remaining) != len(each.remaining):
                before, reason = where(each.remaining), why.get(each.job_id, "")
                if (more := len(after.remaining) - len(before)) > 0:
                    reason = Reason("grows_by", count=more)
                if off := trial.off.get(each.job_id):
                    left = sorted(set(before) - set(where(off.remaining)))
                    reason = also(Reason("shrinks_off", places=tuple(left)), reason)
                moves.append(Move(each.job_id, each.spec.name, before, where(after.remaining), reason))
        return moves

    def _with_trace(
        self,
        answer: Consequences,
        question: Question,
        names: tuple[Names, Names],
        fleets: tuple[Fleet, Fleet],
        replays: Replays,
    ) -> Consequences:
        """Add the replays of a trace."""
        jobs: Sequence[TraceJob] = question.trace
        skipped = 0
        if question.last_s:
            now_ns = self._controller.live.clock.now_ns()
            jobs, skipped = past_jobs(self._store, question.last_s, now_ns)
        tree = self._controller.live.tree
        trace = replay_trace(jobs, question.changes, names, fleets, question.policy, replays, tree)
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
