"""The suite that every store must pass, Seaway's own and fakes of others.

Each case is a function of an opener; every store that it opens works on the same database, which is empty at first. Run
them from a test of your own::

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_store(case: Case) -> None:
        database = MemoryDatabase()
        case(lambda: MemoryStore(database))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from seaway.application.changes import Change, Outcome, Record
from seaway.application.ports.store import (
    MAX_ROWS,
    USAGE_STEPS_S,
    AuditFilter,
    JobFilter,
    JobSort,
    Retention,
    Store,
    UsageFilter,
)
from seaway.application.records import (
    Acknowledgement,
    ClusterInventory,
    ClusterReport,
    CompletedRun,
    Difference,
    EndedUse,
    Event,
    FiringAlert,
    JobUse,
    LastUse,
    PendingCommand,
    ScaleWindow,
    UsageSample,
    Verb,
    WorkdirPart,
    WorkdirRecord,
)
from seaway.domain.arrays import task_array
from seaway.domain.dependencies import After, When
from seaway.domain.errors import InvariantError, RejectedError, SupersededError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import decode, following_id
from seaway.domain.job_state import FINAL, AttemptState, JobState
from seaway.domain.notifications import Channel, Delivery, DeliveryState, Notification, NotifierState, Occasion
from seaway.domain.queues import Backfill, Order, Queue
from seaway.domain.reasons import Reason
from seaway.domain.reservations import AdvanceReservation
from seaway.domain.tenancy import DEFAULT, Pool, Quota, Tenant
from tests.fakes import records as make
from tests.fakes.records import IDS, NOW_NS

Opening = Callable[[], Store]
Case = Callable[[Opening], None]

STORED, CONFLICT = Outcome.STORED, Outcome.CONFLICT


def led(opening: Opening) -> Store:
    """Return a store that may write."""
    store = opening()
    store.lead("test")
    return store


def store_all(store: Store, *changes: Change) -> None:
    """Store changes without conflicts."""
    assert store.commit(changes) == [STORED] * len(changes)


def submitted(store: Store, *jobs: JobRecord) -> None:
    """Store jobs with an event each, as a submit does."""
    store_all(store, *(Change(insert=[job, make.event_of(job)]) for job in jobs))


# each case states its rule, as tests do


def what_is_not_there_is_none(opening: Opening) -> None:
    """A query for a missing row returns None, nothing, or 0, and so does an invalid id."""
    store = led(opening)
    for job_id in (make.draw_id(), "no-id", "", "i" * 13, "z" * 13):
        assert store.job(job_id) is None
        assert store.attempts(job_id) == []
    assert store.key("t", "k") is None
    assert store.last_event() == 0
    assert store.commit([]) == []


def many_jobs_are_known_at_once(opening: Opening) -> None:
    """Asking which of many ids are jobs returns the stored ones with their end times."""
    store = led(opening)
    over = make.job_record(state=JobState.COMPLETED, ended_ns=NOW_NS)
    deleted = make.job_record(state=JobState.DELETED, ended_ns=NOW_NS + 1)
    live = make.job_record()
    submitted(store, over, deleted, live)
    strange = [make.draw_id() for _ in range(2 * MAX_ROWS)]
    known = store.known([live.id, *strange, "no-id", "", deleted.id, over.id, over.id])
    assert known == {over.id: NOW_NS, deleted.id: NOW_NS + 1, live.id: None}
    assert store.known([]) == {}


def events_are_followed_by_tenant_or_job(opening: Opening) -> None:
    """A tenant sees its own events and the fleet's; a job's timeline has only its own."""
    store = led(opening)
    mine, theirs = (make.job_record(spec=make.spec(tenant=name)) for name in ("a", "b"))
    submitted(store, mine, theirs)
    store_all(store, Change(insert=[make.event_of(kind="cluster")]))
    assert [event.tenant for event in store.events(0, 10, tenant="a")] == ["a", ""]
    assert [event.job_id for event in store.events(0, 10, job_id=theirs.id)] == [theirs.id]
    assert store.events(0, 10, job_id="none") == []


def lists_go_from_new_to_old_in_pages(opening: Opening) -> None:
    """Jobs are listed new to old, in pages that continue before the last id, and without deleted ones."""
    store = led(opening)
    states = list(JobState)
    jobs = [make.job_record(state=state) for state in states * 2]
    submitted(store, *jobs)
    shown = [job for job in reversed(jobs) if job.state is not JobState.DELETED]
    assert store.jobs(JobFilter(), MAX_ROWS + 1) == shown
    for wanted in (JobFilter(), JobFilter(tenant=DEFAULT), JobFilter(submitted_by="ada")):
        first = store.jobs(wanted, 7)
        assert first + store.jobs(replace(wanted, before=first[-1].id), 50) == shown
    deleted = frozenset({JobState.DELETED, JobState.RUNNING})
    assert store.jobs(JobFilter(states=deleted), 50) == [job for job in reversed(jobs) if job.state in deleted]
    assert store.count_jobs(JobFilter()) == dict.fromkeys(set(states) - {JobState.DELETED}, 2)
    assert store.count_jobs(JobFilter(states=deleted)) == dict.fromkeys(deleted, 2)


def pages_begin_before_an_id(opening: Opening) -> None:
    """A page before an invalid id is an error of the caller."""
    store = led(opening)
    for ask in (lambda: store.jobs(JobFilter(before="x"), 1), lambda: store.count_jobs(JobFilter(before="x"))):
        try:
            ask()
        except RejectedError:
            continue
        raise AssertionError("a page before no id was given")


def each_filter_narrows(opening: Opening) -> None:
    """Each field of a filter selects the rows that match it, alone and with others, for lists and counts."""
    store = led(opening)
    odd = make.job_record(
        spec=make.spec("a-b.c", tenant="t", queue="q", labels={"k": "v", "x": "y"}),
        submitted_by="bob",
        submitted_ns=NOW_NS + 5,
        clusters=("c9", "c8"),
        state=JobState.RUNNING,
    )
    earlier = make.draw_id()
    odd = replace(odd, spec=replace(odd.spec, after=(After(earlier), After(make.draw_id()))))
    even = make.job_record(spec=make.spec(labels={"k": "w"}), clusters=("c1",))
    submitted(store, odd, even)
    filters = [
        JobFilter(tenant="t"),
        JobFilter(queue="q"),
        JobFilter(states=frozenset({JobState.RUNNING})),
        JobFilter(cluster="c8"),
        JobFilter(name="b.c"),
        JobFilter(named="a-b.c"),
        JobFilter(submitted_by="bob"),
        JobFilter(label=("k", "v")),
        JobFilter(submitted_from_ns=NOW_NS + 5),
        JobFilter(predecessor=earlier),
        JobFilter(label=("k", "v"), cluster="c9", before=even.id, tenant="t", queue="q", name="a-", submitted_by="bob"),
    ]
    for wanted in filters:
        assert store.jobs(wanted, 10) == [odd], wanted
        assert store.count_jobs(wanted) == {JobState.RUNNING: 1}, wanted
    assert store.jobs(JobFilter(submitted_until_ns=NOW_NS + 5), 10) == [even]
    for by, names in (("submitted_by", ("bob", "ada")), ("queue", ("q", DEFAULT)), ("label:x", ("y", ""))):
        groups = {number: (state, name) for number, state, name in store.grouped_jobs(JobFilter(), by)}
        assert [groups[decode(each.id) or 0] for each in (odd, even)] == [
            (each.state.value, name) for each, name in zip((odd, even), names, strict=True)
        ], by
    assert len(store.grouped_jobs(JobFilter(submitted_by="bob"), "label:k")) == 1
    nothing = [JobFilter(name="a%"), JobFilter(name="a_b"), JobFilter(cluster="c"), JobFilter(label=("x", "v"))]
    nothing.append(JobFilter(predecessor=even.id))
    for wanted in [*nothing, JobFilter(named="a-b"), JobFilter(named="a-b.c", tenant="u")]:
        assert store.jobs(wanted, 10) == [], wanted


def lists_are_sorted_by_any_column(opening: Opening) -> None:
    """Jobs without a value are last in both directions; pages follow each other; equal ones go from new to old."""
    store, hour_ns = led(opening), 3600 * 10**9
    jobs = [
        make.job_record(
            spec=make.spec(name),
            submitted_ns=NOW_NS + at,
            started_ns=start,
            ended_ns=end,
            state=JobState.COMPLETED if end else JobState.RUNNING if start else JobState.QUEUED,
        )
        for at, (name, start, end) in enumerate(
            (("b", NOW_NS, NOW_NS + 9), ("a", NOW_NS + 2, None), ("b", None, None), ("c", NOW_NS + 5, NOW_NS + 6))
        )
    ]
    submitted(store, *jobs)
    attempts = [
        make.attempt_of(job, number, created_ns=NOW_NS, ended_ns=end, amounts=amounts, state=AttemptState.ENDED)
        for job, number, end, amounts in (
            (jobs[0], 1, NOW_NS + hour_ns, {"gpus": 2000}),
            (jobs[0], 2, NOW_NS + hour_ns, {"gpus": 500, "cpu": 1}),
            (jobs[1], 1, None, {"gpus": 1000}),
            (jobs[3], 1, NOW_NS + hour_ns, {"cpu": 7000}),
        )
    ]
    store_all(store, Change(insert=[*attempts]))
    now_ns = NOW_NS + 3 * hour_ns
    for sort, ascending in (
        (JobSort.NAME, (1, 2, 0, 3)),
        (JobSort.SUBMITTED, (0, 1, 2, 3)),
        (JobSort.STARTED, (0, 1, 3, 2)),
        (JobSort.ENDED, (3, 0, 2, 1)),
        (JobSort.DURATION, (3, 0, 1, 2)),
    ):
        wanted = JobFilter(sort=sort, now_ns=now_ns)
        assert [jobs.index(each) for each in store.jobs(wanted, 9)] == list(ascending), sort
        pages = [store.jobs(replace(wanted, offset=at), 1) for at in range(5)]
        assert [jobs.index(each) for page in pages for each in page] == list(ascending), sort
    backwards = store.jobs(JobFilter(sort=JobSort.ENDED, descending=True, named="b"), 9)
    assert backwards == [jobs[0], jobs[2]]
    assert store.jobs(JobFilter(sort=JobSort.DURATION, descending=True, now_ns=now_ns), 9) == [
        jobs[at] for at in (1, 0, 3, 2)
    ]
    assert store.jobs(JobFilter(ended_from_ns=NOW_NS + 6, ended_until_ns=NOW_NS + 9), 9) == [jobs[3]]
    held: dict[int, list[tuple[int, int | None]]] = {at: [] for at in range(4)}
    for use in store.held_uses():
        held[[job.id for job in jobs].index(use.job_id)].append((use.amounts.get("gpus", 0), use.ended_ns))
    assert {at: sorted(uses) for at, uses in held.items()} == {
        0: [(500, NOW_NS + hour_ns), (2000, NOW_NS + hour_ns)],
        1: [(1000, None)],
        2: [],
        3: [(0, NOW_NS + hour_ns)],
    }
    recent = store.held_uses(NOW_NS + hour_ns + 1)
    assert [(use.job_id, use.placements) for use in recent] == [(jobs[1].id, attempts[2].placements)]
    ended = {use.attempt for use in store.held_uses(NOW_NS + hour_ns, ended=True)}
    assert ended == {(decode(each.job_id), each.number) for each in attempts if each is not attempts[2]}
    assert not list(store.held_uses(NOW_NS + hour_ns + 1, ended=True))
    assert [store.count_ended(NOW_NS + hour_ns + later) for later in (0, 1)] == [0, 3]
    numbers = store.job_numbers(JobFilter(sort=JobSort.GPU_HOURS, named="b"))
    assert set(numbers) == {decode(jobs[at].id) for at in (0, 2)}
    found = store.jobs(JobFilter(ids=(jobs[2].id, jobs[0].id)), 9)
    assert {job.id for job in found} == {jobs[2].id, jobs[0].id}


def array_tasks_count_for_their_array(opening: Opening) -> None:
    """An array has the uses of its tasks."""
    store = led(opening)
    array = make.job_record(id=IDS.generate(NOW_NS, 5), spec=make.spec("sweep", array=task_array("0-3")))
    tasks = [array.task(index) for index in (0, 1)]
    other = make.job_record()
    submitted(store, array, *tasks, other)
    for job, gpus in ((tasks[0], 1000), (tasks[1], 4000), (other, 3000)):
        made = make.attempt_of(job, created_ns=NOW_NS, ended_ns=NOW_NS + 10**9, amounts={"gpus": gpus})
        store_all(store, Change(insert=[replace(made, state=AttemptState.ENDED)]))
    for wanted in (array, tasks[1]):
        uses = store.held_uses(job_ids=(wanted.id,))
        held = [1000, 4000] if wanted is array else [4000]
        assert sorted((use.job_id, use.amounts["gpus"], use.task) for use in uses) == [
            (array.id, gpus, tasks[gpus > 1000].id) for gpus in held
        ]
    assert [use.task for use in store.held_uses(job_ids=(other.id,))] == [""]


def filters_follow_changes(opening: Opening) -> None:
    """A job is found by its current clusters and labels, not by earlier ones."""
    store = led(opening)
    job = make.job_record(spec=make.spec(labels={"k": "v"}))
    submitted(store, job)
    placed = replace(job, version=2, clusters=("c1", "c2"))
    store_all(store, Change(update=[placed]))
    assert store.jobs(JobFilter(cluster="c2", label=("k", "v")), 9) == [placed]
    moved = replace(job, version=3, clusters=("c3",), spec=make.spec(labels={"k": "w"}))
    store_all(store, Change(update=[moved]))
    assert store.jobs(JobFilter(cluster="c2"), 9) == store.jobs(JobFilter(label=("k", "v")), 9) == []
    assert store.jobs(JobFilter(cluster="c3", label=("k", "w")), 9) == [moved]
    follower = replace(moved, version=4, spec=make.spec(after=(After(job.id),)))
    store_all(store, Change(update=[follower]))
    assert store.jobs(JobFilter(predecessor=job.id), 9) == [follower]
    store_all(store, Change(update=[replace(moved, version=5)]))
    assert store.jobs(JobFilter(predecessor=job.id), 9) == []


def letters_differ_by_case(opening: Opening) -> None:
    """Names that differ only by case are different names, as keys and in filters."""
    store = led(opening)
    job = make.job_record(spec=make.spec(labels={"Team": "A"}), clusters=("North",), submitted_by="Ada")
    submitted(store, job)
    rows: list[Record] = [
        make.key_of(job, "k"),
        make.key_of(job, "K"),
        make.cordon(cluster="c"),
        make.cordon(cluster="C"),
    ]
    store_all(store, *(Change(insert=[row]) for row in rows))
    assert store.key(DEFAULT, "K") == rows[1]
    assert [row.cluster for row in store.cordons()] == ["C", "c"]
    wrong = [JobFilter(label=("team", "A")), JobFilter(label=("Team", "a")), JobFilter(cluster="north")]
    for wanted in [*wrong, JobFilter(submitted_by="ada"), JobFilter(name="TRAIN"), JobFilter(named="TRAIN")]:
        assert store.jobs(wanted, 9) == [], wanted


def streams_return_everything_in_order(opening: Opening) -> None:
    """Live jobs, held attempts and pending commands are all returned, however many, in their order."""
    store = led(opening)
    count = 2 * MAX_ROWS + 3
    jobs = [make.job_record(state=list(JobState)[at % 11]) for at in range(count)]
    store_all(store, *(Change(insert=[job]) for job in jobs))
    assert list(store.live_jobs()) == [job for job in jobs if job.state not in FINAL]
    attempts = [make.attempt_of(job, number) for job in jobs[: count // 2] for number in (1, 2)]
    states = list(AttemptState)
    attempts = [replace(each, state=states[at % len(states)]) for at, each in enumerate(attempts)]
    reported = [make.pending_command_of(job, created_ns=NOW_NS - at // 3) for at, job in enumerate(jobs)]
    store_all(store, Change(insert=[*attempts, *reported]))
    assert list(store.held_attempts()) == [each for each in attempts if each.state.holds]
    assert list(store.pending_commands()) == sorted(reported, key=_age)
    assert len(store.jobs(JobFilter(), count)) == MAX_ROWS


def ended_attempts_are_read_from_a_time_on(opening: Opening) -> None:
    """Each ended attempt is returned once, with the queue and tenant of its job, however many ended."""
    store = led(opening)
    count = MAX_ROWS + 5
    jobs = [make.job_record() for _ in range(count)]
    amounts = {"gpus": 1000}
    attempts = [make.attempt_of(job, ended_ns=NOW_NS + at // 2, amounts=amounts) for at, job in enumerate(jobs)]
    running = make.attempt_of(jobs[0], 2)
    store_all(store, *(Change(insert=[job]) for job in jobs), Change(insert=[*attempts, running]))
    queue, tenant = jobs[0].spec.queue, jobs[0].spec.tenant
    for since_ns in (0, NOW_NS, NOW_NS + 1, NOW_NS + count):
        wanted = [
            EndedUse(queue, tenant, amounts, each.created_ns, each.ended_ns)
            for each in attempts
            if each.ended_ns is not None and each.ended_ns >= since_ns
        ]
        assert Counter(map(repr, store.ended_uses(since_ns))) == Counter(map(repr, wanted))


def completed_runs_are_read_from_the_latest_job_on(opening: Opening) -> None:
    """The last attempt of each completed job is returned, newest job first, up to a limit, if it was seen running."""
    store = led(opening)
    jobs = [
        make.job_record(spec=make.spec(name=f"n{at}"), state=state, attempt=2, ended_ns=NOW_NS + at)
        for at, state in enumerate([JobState.COMPLETED] * (MAX_ROWS + 5) + [JobState.FAILED, JobState.CANCELLED])
    ]
    attempts = [make.attempt_of(job, number, running_ns=number) for job in jobs for number in (1, 2)]
    attempts[1] = replace(attempts[1], running_ns=None)
    store_all(store, *(Change(insert=[job]) for job in jobs), Change(insert=[*attempts]))
    wanted = [
        CompletedRun(job.spec.tenant, job.submitted_by, job.spec.name, 2, NOW_NS + at)
        for at, job in list(enumerate(jobs))[MAX_ROWS + 4 : 0 : -1]
    ]
    for most in (1, MAX_ROWS, MAX_ROWS + 2, 2 * MAX_ROWS):
        assert store.completed_runs(most) == wanted[:most]


def _age(row: PendingCommand) -> tuple[int, str]:
    return row.created_ns, row.job_id


def samples_are_read_from_a_moment_on(opening: Opening) -> None:
    """Samples are read oldest first, of one or all clusters or links; audit entries and shadow results new to old."""
    store = led(opening)
    clusters = [make.cluster_sample(at_ns=at, cluster=name) for at in (1, 2, 3) for name in ("a", "b")]
    links = [make.link_sample(at_ns=at, source="a", target=name) for at in (1, 2, 3) for name in ("b", "c")]
    links[4] = make.link_sample(at_ns=3, source="a", target="b", latency_ns=None)  # no answer
    changes = {2: (Difference("queue", "q", "limit.gpus", "8", "16"),)}
    audits = [make.audit_entry(at_ns=at, id=at, changes=changes.get(at, ())) for at in (1, 2, 3)]
    shadows = [make.shadow_result(at_ns=at, queue=name, id=at) for at, name in ((1, "q"), (2, "r"), (3, "q"))]
    store_all(store, Change(insert=[*reversed(clusters), *links, *audits, *shadows]))
    assert store.cluster_samples("", 2, 10) == clusters[2:]
    assert store.cluster_samples("b", 0, 2) == [clusters[1], clusters[3]]
    assert store.link_samples("a", "", 3, 10) == links[4:]
    assert store.link_samples("", "c", 0, 10) == links[1::2]
    assert store.link_samples("a", "b", 0, 1) == links[:1]
    assert store.cluster_samples("", 2, 2, "a") == clusters[3:5]
    assert store.cluster_samples("a", 2, 2, "a") == clusters[4:5]
    assert store.link_samples("", "", 2, 2, ("a", "b")) == links[3:5]
    assert store.audit(0, 2) == [audits[2], audits[1]]
    assert store.audit(2, 2) == [audits[0]]
    assert store.audit(0, 9, AuditFilter(contains="GPUS", without=("GET ask",))) == [audits[1]]
    assert store.audit(0, 9, AuditFilter("ada", "post", since_ns=2, until_ns=3)) == [audits[1]]
    assert store.audit(0, 9, AuditFilter("bob")) == store.audit(0, 9, AuditFilter(without=("POST submit",))) == []
    assert store.audit(0, 9, AuditFilter(contains="%")) == []
    assert store.shadows("q", 9) == [shadows[2], shadows[0]]
    assert store.shadows("q", 9, 3) == [shadows[0]]


def use_is_summed_up_over_longer_steps(opening: Opening) -> None:
    """Amounts are added, the longest wait is the maximum, and other steps, kinds, tenants and times are left out."""
    store = led(opening)
    rows = [
        UsageSample(60, at_s * 10**9, "queue", name, tenant, 1, 8, at_s, 1, 3, 2, at_s, 100 - at_s, 1, 4)
        for at_s in (0, 59, 60, 119, 120)
        for name, tenant in (("q", "a"), ("q", "b"), ("r", "a"))
    ]
    others = [UsageSample(900, 0, "queue", "q", "a"), UsageSample(60, 60 * 10**9, "fleet")]
    store_all(store, Change(put=[*rows, *others]))
    found = store.usage_samples(UsageFilter(60, 10**9, 120 * 10**9, 60, kind="queue", tenant="a"))
    assert [(row.at_ns, row.name, row.tenant) for row in found] == [
        (0, "q", "a"),
        (0, "r", "a"),
        (60 * 10**9, "q", "a"),
        (60 * 10**9, "r", "a"),
    ]
    assert found[2] == UsageSample(60, 60 * 10**9, "queue", "q", "a", 2, 16, 179, 2, 6, 4, 179, 40, 2, 8)
    for by, groups in (("name",), [("q", ""), ("r", "")]), (("tenant",), [("", "a"), ("", "b")]), ((), [("", "")]):
        found = store.usage_samples(UsageFilter(60, 0, 121 * 10**9, 900, kind="queue", by=by))
        assert [(row.name, row.tenant) for row in found] == groups
        assert (sum(row.samples for row in found), found[0].longest_wait_s) == (15, 100)
    (one,) = store.usage_samples(UsageFilter(60, 0, 60 * 10**9, 900, name="q", tenant="b"))
    assert one.gpu_milli_used == 0 + 59
    whole = store.usage_samples(UsageFilter(60, 0, 121 * 10**9, 900))
    assert [(row.step_s, row.kind, row.name, row.tenant, row.samples) for row in whole] == [
        (900, "fleet", "", "", 1),
        (900, "queue", "q", "a", 5),
        (900, "queue", "q", "b", 5),
        (900, "queue", "r", "a", 5),
    ]


QUESTIONS: tuple[Case, ...] = (
    what_is_not_there_is_none,
    many_jobs_are_known_at_once,
    events_are_followed_by_tenant_or_job,
    lists_go_from_new_to_old_in_pages,
    pages_begin_before_an_id,
    each_filter_narrows,
    lists_are_sorted_by_any_column,
    array_tasks_count_for_their_array,
    filters_follow_changes,
    letters_differ_by_case,
    streams_return_everything_in_order,
    ended_attempts_are_read_from_a_time_on,
    completed_runs_are_read_from_the_latest_job_on,
    samples_are_read_from_a_moment_on,
    use_is_summed_up_over_longer_steps,
)


# each case states its rule, as tests do


def defaults_are_in_place(opening: Opening) -> None:
    """A leader finds the default tenant, pool and queue, and does not overwrite them."""
    store = led(opening)
    assert (store.tenants(), store.pools(), store.queues()) == ([Tenant(DEFAULT)], [Pool(DEFAULT)], [Queue(DEFAULT)])
    closed = Queue(DEFAULT, open=False, shadow="fgd", description="shut")
    store_all(store, Change(update=[closed]))
    store.lead("again")
    assert store.queues() == [closed]


def only_the_leader_writes(opening: Opening) -> None:
    """A process cannot write before it leads, nor after another process leads."""
    first, second = opening(), opening()
    change = Change(insert=[make.token()])
    _refused(first, change, SupersededError)
    first.lead("first")
    first.touch()
    second.lead("second")
    _refused(first, change, SupersededError)
    second.touch()
    _refused(first, None, SupersededError)
    assert second.tokens() == []
    store_all(second, change)
    assert first.tokens() == [make.token()]


def _refused(store: Store, change: Change | None, error: type[InvariantError] = InvariantError) -> None:
    """Check that a store rejects a write; None for a write without a change."""
    try:
        store.commit([change]) if change else store.touch()
    except error:
        return
    raise AssertionError("a store stored what it has to refuse")


def records_return_as_they_were(opening: Opening) -> None:
    """Every field of every kind of record is stored, and another process reads it."""
    store, other = led(opening), opening()
    job = make.job_record(
        spec=make.full_spec(),
        reason="naïve \U0001f6a2 'quoted\" \\ back\nline",
        attempt=2,
        failures=1,
        clusters=("c2", "c1"),
        nodes=("n2", "n1"),
        started_ns=1,
        ended_ns=2,
        not_before_ns=3,
        awaits=(After(make.draw_id(), When.FAILED), After(make.draw_id())),
        expires_ns=4,
    )
    full = make.attempt_of(job, 2, why="near", reason="gone", running_ns=5, ended_ns=6, state=AttemptState.RUNNING)
    plain = make.attempt_of(job, 1, state=AttemptState.ENDED, placements=(), spec=make.spec("older"))
    pending_commands = make.pending_command_of(job, 2, verb=Verb.DELETE)
    event = make.event_of(job, id=5, attempt=2)
    key, token = make.key_of(job), make.token(expires_ns=4, revoked_ns=5, gateway="gw-1")
    audit, shadow = make.audit_entry(address="::1", id=1), make.shadow_result(id=1)
    cordons = [make.cordon(), make.cordon(node="n1", drain=False)]
    facts, scaled = make.cluster_facts(), ScaleWindow(job.id, 5, "[[0, 7, 5], [0, 9, 3]]")
    cluster, name = make.cluster_sample(), make.cluster_name()
    links = [make.link_sample(path="via-2"), make.link_sample(target="c", latency_ns=None)]
    network, agent, path = make.network_record(), make.agent_record(), make.path_record()
    policy = make.policy_record(content=bytes(range(256)) * 400)
    evaluation = make.evaluation_record()
    report = ClusterReport("c1", "lost", Reason("left_fleet", cluster="c1"), 5, 6)
    inventory, alert = ClusterInventory("c1", make.full_cluster()), FiringAlert("SeawayLinkLossy", "a/b", 7)
    reservation = AdvanceReservation(
        "demo", 2**61, 2**61 + 5, "team-a", "fast", 8, "A100", frozenset({"c2", "c1"}), description="a demo"
    )
    window = AdvanceReservation("fix", 1, 2, clusters=frozenset({"c1"}), nodes=frozenset({"n1", "n2"}), drain=True)
    pool = Pool("gold", frozenset({"c2", "c1"}), "the good ones")
    queue = Queue(
        "fast",
        "team-a",
        "gold",
        "fgd",
        "bestfit",
        False,
        "for the hasty",
        ("gpu",),
        ("zone",),
        "all",
        3,
        -7,
        {"gpus/a100": 8000, "memory": 1 << 40},
        {"gpus/a100": 16_500, "memory": 1 << 41},
        Order.SHORTEST,
        Backfill.GREEDY,
        policy_options={"weights": {"price": 3}, "level": "node"},
    )
    quota = Quota({"gpus": 1000}, {"gpus": 2500, "jobs": 7}, 0, {"memory": 1 << 40}, 9)
    tenant = Tenant("team-a", "the a team", 0, {"gold": quota, "default": Quota()})
    rows: list[Record] = [
        job,
        full,
        plain,
        pending_commands,
        event,
        key,
        token,
        audit,
        shadow,
        *cordons,
        facts,
        scaled,
        name,
        cluster,
        *links,
        network,
        agent,
        path,
        policy,
        evaluation,
        pool,
        queue,
        tenant,
        reservation,
        window,
        report,
        inventory,
        alert,
    ]
    store_all(store, Change(insert=rows))
    assert other.job(job.id) == job
    assert other.attempts(job.id) == [plain, full]
    assert list(other.held_attempts()) == [full]
    assert list(other.pending_commands()) == [pending_commands]
    assert other.events(0, 10) == [event]
    assert other.key(key.tenant, key.key) == key
    assert other.tokens() == [token]
    assert other.audit(0, 10) == [audit]
    assert other.shadows("", 10) == [shadow]
    assert other.cordons() == cordons
    assert (other.cluster_facts(), other.scale_windows()) == ([facts], [scaled])
    assert (other.cluster_reports(), other.cluster_inventories()) == ([report], [inventory])
    assert other.firing_alerts() == [alert]
    assert other.cluster_names() == [name]
    assert other.cluster_samples("", 0, 10) == [cluster]
    assert other.link_samples("", "", 0, 10) == links
    assert (other.network(), other.agents(), other.paths()) == (network, [agent], [path])
    assert (other.policies(), other.evaluations()) == ([policy], [evaluation])
    assert other.reservations() == [reservation, window]
    assert (other.pools()[1], other.queues()[1], other.tenants()[1]) == (pool, queue, tenant)


def versions_count_up_by_one(opening: Opening) -> None:
    """A job is written only over the preceding version; else nothing of the change is stored."""
    store = led(opening)
    job = make.job_record()
    submitted(store, job)
    second = replace(job, version=2, state=JobState.QUEUED)
    store_all(store, Change(update=[second]))
    late = Change(update=[replace(job, version=2, state=JobState.CANCELLED)], insert=[make.event_of(job)])
    early = Change(update=[replace(job, version=4)], insert=[make.token()])
    missing = Change(update=[make.job_record(version=2)], put=[make.cordon()])
    assert store.commit([late, early, missing]) == [CONFLICT] * 3
    assert store.job(job.id) == second
    assert (store.last_event(), store.tokens(), store.cordons()) == (1, [], [])


def conflicts_leave_others_alone(opening: Opening) -> None:
    """Of a batch, changes in conflict are left out, and all others are stored in order."""
    store = led(opening)
    old = make.job_record()
    submitted(store, old)
    fresh = [make.job_record() for _ in range(20)]
    changes = [Change(insert=[job, make.event_of(job)]) for job in fresh]
    changes[3:3] = [Change(insert=[make.event_of(old, reason="never"), old])]
    changes[11:11] = [Change(update=[replace(old, version=7)], insert=[make.event_of(old, reason="never")])]
    expected = [CONFLICT if at in {3, 11} else STORED for at in range(22)]
    assert store.commit(changes) == expected
    assert [job.id for job in store.live_jobs()] == [old.id, *(job.id for job in fresh)]
    events = store.events(1, 100)
    assert [event.job_id for event in events] == [job.id for job in fresh]
    assert all(before.id < after.id for before, after in pairwise(events))


def missing_rows_cannot_be_updated(opening: Opening) -> None:
    """An update of a missing attempt or token is a conflict."""
    store = led(opening)
    job = make.job_record()
    submitted(store, job)
    rows: list[Record] = [make.attempt_of(job), make.token(), make.pending_command_of(job), Queue("none")]
    assert store.commit([Change(update=[row]) for row in rows]) == [CONFLICT] * len(rows)
    assert store.attempts(job.id) == []


def agents_and_paths_are_listed_by_name(opening: Opening) -> None:
    """A network that was never set is None; agents and paths are listed by name, each with its last values."""
    store = led(opening)
    assert (store.network(), store.agents(), store.paths()) == (None, [], [])
    agents = [make.agent_record(gateway=name) for name in ("gw-1", "gw-2")]
    paths = [make.path_record(source=source, target=target) for source, target in ("ab", "ac", "ba")]
    store_all(store, Change(insert=[*reversed(agents), *reversed(paths), make.network_record()]))
    last = replace(agents[1], number=9)
    store_all(store, Change(put=[agents[1], last, make.network_record(text="", version=4)], delete=[paths[1]]))
    assert store.network() == make.network_record(text="", version=4)
    assert (store.agents(), store.paths()) == ([agents[0], last], [paths[0], paths[2]])


def changes_of_a_batch_see_each_other(opening: Opening) -> None:
    """A batch has the effect of its changes one after the other, even if they share rows."""
    store = led(opening)
    job = make.job_record()
    reported = make.pending_command_of(job)
    changes = [
        Change(insert=[job, make.event_of(job)]),
        Change(update=[replace(job, version=2)], insert=[reported]),
        Change(update=[replace(job, version=2)]),
        Change(update=[replace(job, version=3, state=JobState.QUEUED)], delete=[reported]),
        Change(insert=[reported]),
        Change(delete=[reported]),
        Change(put=[replace(reported, created_ns=NOW_NS + 1)]),
        Change(insert=[replace(reported, created_ns=NOW_NS + 2)]),
        Change(put=[make.cordon(reason="a")]),
        Change(put=[make.cordon(reason="b")]),
    ]
    outcomes = [CONFLICT if at in {2, 7} else STORED for at in range(len(changes))]
    assert store.commit(changes) == outcomes
    assert store.job(job.id) == replace(job, version=3, state=JobState.QUEUED)
    assert list(store.pending_commands()) == [replace(reported, created_ns=NOW_NS + 1)]
    assert store.cordons() == [make.cordon(reason="b")]


def one_change_may_touch_a_row_twice(opening: Opening) -> None:
    """Two steps of one job in one change are stored as the second left it."""
    store = led(opening)
    job = make.job_record()
    change = Change(insert=[job], update=[replace(job, version=2)])
    change.add(Change(update=[replace(job, version=3, reason="twice")], put=[make.cordon(), make.cordon(drain=False)]))
    store_all(store, change)
    assert store.job(job.id) == replace(job, version=3, reason="twice")
    assert store.cordons() == [make.cordon(drain=False)]


def putting_replaces_and_deleting_forgives(opening: Opening) -> None:
    """A put row exists afterwards, new or not; a deleted row is gone afterwards, whether it existed or not."""
    store = led(opening)
    job = make.job_record(spec=make.spec(labels={"a": "1"}))
    changed = replace(job, version=9, spec=make.spec("other", labels={"b": "2"}), clusters=("c1",))
    store_all(store, Change(put=[job]), Change(put=[changed]), Change(delete=[make.token(), make.cordon()]))
    assert store.job(job.id) == changed
    assert store.jobs(JobFilter(label=("a", "1")), 9) == []
    assert store.jobs(JobFilter(label=("b", "2"), cluster="c1"), 9) == [changed]
    store_all(store, Change(delete=[job]))
    assert store.job(job.id) is None
    assert store.jobs(JobFilter(label=("b", "2")), 9) == []


def jobs_can_be_removed_with_all_that_hangs_on_them(opening: Opening) -> None:
    """A change that removes a job with its attempts, events and tenant leaves nothing of them, and all others."""
    store = led(opening)
    store_all(store, Change(insert=[Tenant("t")]))
    stays = make.job_record()
    gone = make.job_record(spec=make.spec(tenant="t", labels={"a": "b"}, after=(After(stays.id),)))
    submitted(store, gone, stays)
    store_all(store, Change(insert=[make.attempt_of(gone), make.audit_entry()]))
    hanging: list[Record] = [*store.attempts(gone.id), *store.events(0, 10, job_id=gone.id)]
    store_all(store, Change(insert=[make.event_of()], delete=[gone, *hanging, Tenant("t")]))
    assert store.job(gone.id) is None
    assert not store.attempts(gone.id)
    assert not store.events(0, 10, job_id=gone.id)
    assert not store.jobs(JobFilter(tenant="t"), 10)
    assert not store.jobs(JobFilter(label=("a", "b")), 10)
    assert not store.jobs(JobFilter(predecessor=stays.id), 10)
    assert store.tenants() == [Tenant(DEFAULT)]
    assert store.jobs(JobFilter(), 10) == [stays]
    assert len(store.events(0, 10, job_id=stays.id)) == len(store.audit(0, 10)) == 1


def the_last_event_before_a_time_is_found(opening: Opening) -> None:
    """A list since a time begins after the last event before it, also if the clock went back in between."""
    store = led(opening)
    assert store.last_event(NOW_NS) == 0
    times_ns = [NOW_NS, NOW_NS + 5, NOW_NS + 3, NOW_NS + 9]
    store_all(store, Change(insert=[make.event_of(at_ns=at_ns) for at_ns in times_ns]))
    first = store.last_event() - 3
    found = {late: store.last_event(NOW_NS + late) for late in (0, 1, 4, 9, 10)}
    assert found == {0: 0, 1: first, 4: first + 2, 9: first + 2, 10: first + 3}


def events_are_numbered(opening: Opening) -> None:
    """Events without an id get rising ids, those with one keep it, and the next id follows it."""
    store = led(opening)
    kinds = ["a", "b", "c"]
    store_all(store, Change(insert=[make.event_of(kind=kind) for kind in kinds]))
    store_all(store, Change(insert=[make.event_of(kind="d", id=40)]), Change(insert=[make.event_of(kind="e")]))
    events = store.events(0, 10)
    assert [event.kind for event in events] == [*kinds, "d", "e"]
    assert [event.id for event in events][3:] == [40, 41]
    assert store.last_event() == 41
    other = led(opening)
    store_all(other, Change(insert=[make.event_of(), make.audit_entry(), make.shadow_result()]))
    assert other.last_event() == 42
    assert other.events(40, 1) == events[4:]


def pruning_keeps_what_lives(opening: Opening) -> None:
    """Old finished jobs are removed with their attempts and events; jobs that live or hold devices stay."""
    store = led(opening)
    old = NOW_NS - 100
    over = make.job_record(state=JobState.COMPLETED, ended_ns=old, spec=make.spec(labels={"a": "b"}))
    deleted = make.job_record(state=JobState.DELETED, ended_ns=NOW_NS)
    fresh = make.job_record(state=JobState.FAILED, ended_ns=NOW_NS)
    holding = make.job_record(state=JobState.DELETED, ended_ns=old)
    reported = make.job_record(state=JobState.CANCELLED, ended_ns=old)
    live = make.job_record(changed_ns=old, submitted_ns=old)
    jobs = [over, deleted, fresh, holding, reported, live]
    submitted(store, *jobs)
    ended = AttemptState.ENDED
    attempts = [make.attempt_of(job, state=ended) for job in jobs if job is not holding]
    store_all(store, Change(insert=[*attempts, make.attempt_of(holding, state=AttemptState.ENDING)]))
    store_all(store, Change(insert=[make.pending_command_of(reported), make.event_of(at_ns=old), make.event_of()]))
    gone = store.prune(Retention(50, None, None, None), NOW_NS)
    assert (gone["jobs"], gone["attempts"], gone["events"]) == (2, 2, 3)
    assert [job.id for job in jobs if store.job(job.id)] == [job.id for job in (fresh, holding, reported, live)]
    assert store.jobs(JobFilter(label=("a", "b")), 9) == []
    assert (store.events(0, 50, job_id=over.id), store.attempts(over.id)) == ([], [])
    assert store.prune(Retention(None, None, None, None), NOW_NS)["jobs"] == 0


def tasks_share_the_spec_of_their_array(opening: Opening) -> None:
    """A task has the spec of its array, as it is now; lists have either tasks by index, or the other jobs."""
    store = led(opening)
    array = make.job_record(
        id=IDS.generate(NOW_NS, 12),
        spec=make.spec(
            "sweep", tenant="t", labels={"a": "b"}, array=task_array("0-9%2", (("X", tuple("abcdefghij")),))
        ),
        unstarted="5-9",
        clusters=(),
    )
    tasks = [array.task(index) for index in range(4)]
    tasks[1] = replace(tasks[1], state=JobState.RUNNING, clusters=("c1", "c2"), started_ns=NOW_NS)
    tasks[2] = replace(tasks[2], state=JobState.FAILED, ended_ns=NOW_NS)
    other = make.job_record(spec=make.spec("other", tenant="t"))
    submitted(store, array, *tasks, other)
    reader = opening()
    assert reader.job(tasks[1].id) == tasks[1]
    assert reader.job(array.id) == array
    assert [job.id for job in reader.jobs(JobFilter(tenant="t"), 9)] == [other.id, array.id]
    assert reader.jobs(JobFilter(label=("a", "b")), 9) == [array]
    assert reader.count_jobs(JobFilter()) == {JobState.PENDING: 2}
    assert reader.jobs(JobFilter(array=array.id), 2) == tasks[:2]
    assert reader.jobs(JobFilter(array=array.id, before=tasks[1].id), 9) == tasks[2:]
    assert reader.jobs(JobFilter(array=array.id, states=frozenset({JobState.FAILED})), 9) == [tasks[2]]
    assert {job.id for job in reader.jobs(JobFilter(array=None), 9)} == {array.id, other.id, *(job.id for job in tasks)}
    counted = {JobState.PENDING: 2, JobState.RUNNING: 1, JobState.FAILED: 1}
    assert reader.task_counts([array.id, other.id]) == {array.id: counted, other.id: {}}
    assert reader.task_clusters([array.id, other.id]) == {array.id: {("c1", "c2"): 1}, other.id: {}}
    assert [job.id for job in reader.live_jobs()] == sorted(
        {array.id, other.id, *(job.id for job in tasks)} - {tasks[2].id}
    )
    changed = replace(array, version=2, spec=replace(array.spec, priority=7), unstarted="")
    store_all(store, Change(update=[changed]), Change(update=[replace(tasks[0], version=2)]))
    assert [job.spec for job in reader.jobs(JobFilter(array=array.id), 9)] == [changed.spec] * 4
    for index, known in ((0, True), (9, True), (10, False)):
        found = reader.array_at(following_id(array.id, 1 + index))
        assert (found.id if found else None) == (array.id if known else None)
    assert reader.array_at(other.id) is None


def tasks_are_pruned_with_their_array(opening: Opening) -> None:
    """Tasks stay as long as their array, so that its numbers are complete, and an array as long as its tasks."""
    store = led(opening)
    old = NOW_NS - 100
    arrays = [
        make.job_record(
            id=IDS.generate(NOW_NS, 5), spec=make.spec(array=task_array("0-2")), state=state, ended_ns=ended_ns
        )
        for state, ended_ns in ((JobState.RUNNING, None), (JobState.COMPLETED, old), (JobState.DELETED, NOW_NS))
    ]
    tasks = [replace(array.task(0), state=JobState.COMPLETED, ended_ns=old) for array in arrays]
    busy = replace(arrays[2].task(1), state=JobState.RUNNING)
    submitted(store, *arrays, *tasks, busy)
    for _ in range(2):
        store.prune(Retention(50, None, None, None), NOW_NS)
    left = [arrays[0], tasks[0], arrays[2], busy]
    assert [job.id for job in (*arrays, *tasks, busy) if store.job(job.id)] == [
        job.id for job in (arrays[0], arrays[2], tasks[0], busy)
    ]
    store_all(store, Change(update=[replace(busy, state=JobState.DELETED, version=2)]))
    store.prune(Retention(50, None, None, None), NOW_NS)
    assert [job.id for job in left if store.job(job.id)] == [arrays[0].id, tasks[0].id]


def notifications_return_as_they_were(opening: Opening) -> None:
    """Notifications, their messages and the progress of the notifier are stored, and messages are found and counted."""
    store, other = led(opening), opening()
    webhook = Notification(
        *("team-a", "ops", Channel.WEBHOOK, "https://example.com/hook", (), "sealed"),
        *((Occasion.FAILED, Occasion.WAITS_TOO_LONG), "fast", "train", 7200, "ada", 5),
    )
    mail = Notification("", "all", Channel.EMAIL, addresses=("a@example.com", "b@example.com"), on=(Occasion.STARTED,))
    waits, dead, done = (
        Delivery(f"msg_{at}", "team-a", "ops", make.draw_id(), "train", Occasion.FAILED, "{}", 1, 2, at, state, "why")
        for at, state in enumerate(DeliveryState)
    )
    progress = NotifierState(7, 8)
    store_all(store, Change(insert=[webhook, mail, waits, dead, done, progress]))
    assert (other.notifications(), other.notifier_state()) == ([mail, webhook], progress)
    assert (other.delivery(dead.id), other.delivery("msg_none")) == (dead, None)
    assert other.deliveries(limit=5) == [done, dead, waits]
    assert other.deliveries(tenant="team-a", receiver="ops", state=DeliveryState.WAITING, limit=5) == [waits]
    assert (other.deliveries(tenant="", limit=5), other.deliveries(limit=5, before=dead.id)) == ([], [waits])
    assert other.delivery_counts() == {("team-a", "ops", state): 1 for state in DeliveryState}


def archives_return_in_parts(opening: Opening) -> None:
    """Archives and their parts are stored, listed without content, returned one by one, and removed."""
    store, other = led(opening), opening()
    record = WorkdirRecord("team-a", "sha256:1", 10, "00", "ada", 1, 2)
    first, second = (WorkdirPart("team-a", "sha256:1", number, "QUJD", 3) for number in range(2))
    store_all(store, Change(put=[record, second]), Change(put=[first]))
    assert (other.workdirs(), other.workdir_part("team-a", "sha256:1", 1)) == ([record], second)
    assert other.workdir_parts() == [replace(each, content="") for each in (first, second)]
    assert other.workdir_part("team-b", "sha256:1", 1) is None
    store_all(store, Change(put=[replace(record, used_ns=5)], delete=[replace(first, content="")]))
    assert [each.used_ns for each in other.workdirs()] == [5]
    assert [each.number for each in other.workdir_parts()] == [1]


def last_uses_return_and_are_pruned(opening: Opening) -> None:
    """The last use of a credential replaces the one before, and is removed with old audit entries."""
    store, other = led(opening), opening()
    first, again, theirs = (
        LastUse("ada", issuer, token, "user", "team-a", "192.0.2.7", at)
        for issuer, token, at in (("", "abc", 5), ("", "abc", 6), ("https://login.example", "", 20))
    )
    store_all(store, Change(put=[first]))
    store_all(store, Change(put=[again, theirs]))
    assert other.last_uses() == [again, theirs]
    assert store.prune(Retention(None, 10, None, None), 20)["last_uses"] == 1
    assert other.last_uses() == [theirs]


def the_latest_events_of_the_fleet_come_first(opening: Opening) -> None:
    """Events of jobs are not among them, and of many only the latest are returned."""
    store, job = led(opening), make.job_record()
    said = [Event(NOW_NS, "cluster", f"change {at}", "seaway") for at in range(3)]
    store_all(store, Change(insert=[job, said[0], make.event_of(job)]), Change(insert=[said[1], said[2]]))
    assert [each.reason for each in store.fleet_events(2)] == ["change 2", "change 1"]
    assert len(store.fleet_events(9)) == 3


def acknowledgements_return_until_they_are_removed(opening: Opening) -> None:
    """An acknowledgement replaces the one before, and its object may be a link with two long names."""
    store, other = led(opening), opening()
    link, queue = Acknowledgement("SeawayLinkLossy", "a" * 255 + "/" + "b" * 255, "ada", 5), "SeawayQueueLong"
    first, again = (Acknowledgement(queue, "batch", actor, at) for actor, at in (("ada", 6), ("bob", 7)))
    store_all(store, Change(put=[first]), Change(put=[link]))
    store_all(store, Change(put=[again]))
    assert other.acknowledgements() == [link, again]
    store_all(store, Change(delete=[link]))
    assert other.acknowledgements() == [again]


def old_messages_and_uses_are_pruned(opening: Opening) -> None:
    """Messages of notifications are removed with old jobs, and the measured use of a job with the job."""
    store = led(opening)
    old, late = (
        Delivery(f"msg_{at}", "", "ops", make.draw_id(), "train", Occasion.FAILED, "{}", at, at)
        for at in (NOW_NS - 11, NOW_NS - 10)
    )
    job = make.job_record(state=JobState.DELETED)
    uses = [JobUse(job.id, b"\x00"), JobUse(make.draw_id(), bytes(range(256)) * 40)]
    store_all(
        store,
        Change(insert=[old, late, job]),
        Change(put=[uses[0]]),
        Change(put=[replace(uses[0], content=b"\xff"), uses[1]]),
    )
    assert store.job_uses([each.job_id for each in uses]) == sorted(
        [replace(uses[0], content=b"\xff"), uses[1]], key=lambda each: each.job_id
    )
    assert store.prune(Retention(10, None, None, None), NOW_NS)["deliveries"] == 1
    assert store.deliveries(limit=5) == [late]
    assert store.job_uses([each.job_id for each in uses]) == [uses[1]]


def pruning_goes_by_age(opening: Opening) -> None:
    """Audit entries, samples, shadow results and keys older than their retention are removed; None keeps them."""
    store = led(opening)
    job = make.job_record()
    submitted(store, job)
    rows: list[list[Record]] = [
        [
            make.audit_entry(at_ns=at),
            make.shadow_result(at_ns=at),
            make.key_of(job, str(at), created_ns=at),
            make.cluster_sample(at_ns=at),
            make.link_sample(at_ns=at),
        ]
        for at in (NOW_NS - 11, NOW_NS - 10)
    ]
    store_all(store, Change(insert=rows[0] + rows[1]))
    assert sum(store.prune(Retention(None, None, None, None), NOW_NS).values()) == 0
    gone = store.prune(Retention(None, 10, 10, 10), NOW_NS)
    assert {name: count for name, count in gone.items() if count} == dict.fromkeys(
        ("audit", "keys", "cluster_samples", "link_samples", "shadows"), 1
    )
    assert len(store.audit(0, 9)) == len(store.shadows("", 9)) == len(store.cluster_samples("", 0, 9)) == 1


def use_is_stored_for_less_time_the_shorter_the_steps(opening: Opening) -> None:
    """Samples of use are removed at the age of their step, whatever else is stored for how long."""
    store = led(opening)
    rows: list[Record] = [
        UsageSample(step_s, NOW_NS - age_s * 10**9 - over_ns, "fleet")
        for step_s, age_s in USAGE_STEPS_S.items()
        for over_ns in (0, 1)
    ]
    store_all(store, Change(put=rows))
    gone = store.prune(Retention(None, None, None, None), NOW_NS)
    assert (gone["usage_samples"], sum(gone.values())) == (len(USAGE_STEPS_S), len(USAGE_STEPS_S))
    left = [row for step_s in USAGE_STEPS_S for row in store.usage_samples(UsageFilter(step_s, 0, NOW_NS, 1))]
    assert [row.at_ns for row in left] == [row.at_ns // 10**9 * 10**9 for row in rows[::2]]  # type: ignore[union-attr]


def numbers_of_events_are_not_used_again(opening: Opening) -> None:
    """The next event has a higher id than any before, however many are pruned."""
    store = led(opening)
    job = make.job_record(state=JobState.DELETED, ended_ns=0)
    submitted(store, job)
    before = store.last_event()
    store.prune(Retention(0, 0, 0, 0), NOW_NS)
    store = led(opening)
    store_all(store, Change(insert=[make.event_of()]))
    assert store.last_event() == before + 1


def ids_of_jobs_are_checked(opening: Opening) -> None:
    """Storing a job under an invalid id is a bug, and raises `InvariantError`."""
    store = led(opening)
    for job_id in ("job-1", "0" * 13, "z" * 13):
        _refused(store, Change(insert=[make.job_record(id=job_id)]))
    assert list(store.live_jobs()) == []


CASES: tuple[Case, ...] = (
    *QUESTIONS,
    defaults_are_in_place,
    only_the_leader_writes,
    records_return_as_they_were,
    versions_count_up_by_one,
    conflicts_leave_others_alone,
    missing_rows_cannot_be_updated,
    agents_and_paths_are_listed_by_name,
    changes_of_a_batch_see_each_other,
    one_change_may_touch_a_row_twice,
    putting_replaces_and_deleting_forgives,
    jobs_can_be_removed_with_all_that_hangs_on_them,
    events_are_numbered,
    the_last_event_before_a_time_is_found,
    pruning_keeps_what_lives,
    tasks_share_the_spec_of_their_array,
    tasks_are_pruned_with_their_array,
    notifications_return_as_they_were,
    archives_return_in_parts,
    old_messages_and_uses_are_pruned,
    last_uses_return_and_are_pruned,
    the_latest_events_of_the_fleet_come_first,
    acknowledgements_return_until_they_are_removed,
    pruning_goes_by_age,
    use_is_stored_for_less_time_the_shorter_the_steps,
    numbers_of_events_are_not_used_again,
    ids_of_jobs_are_checked,
)
"""Every case."""
