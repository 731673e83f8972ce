"""Cases of `seaway.testing.stores` on what a store is asked."""

# ruff: noqa: D401  # each case states its rule, as tests do

from __future__ import annotations

from dataclasses import replace

from seaway.application.changes import Change, Record
from seaway.application.ports.store import MOST_ROWS, JobFilter
from seaway.application.records import Outgoing
from seaway.domain.errors import RejectedError
from seaway.domain.lifecycle import FINAL, AttemptState, JobState
from seaway.domain.tenancy import DEFAULT
from seaway.testing import records as make
from seaway.testing.records import NOW_NS
from seaway.testing.store_steps import Case, Opening, led, store_all, submitted


def what_is_not_there_is_none(opening: Opening) -> None:
    """Asking for what is not there gives None, nothing, or 0, and so does an id that is none."""
    store = led(opening)
    for job_id in (make.draw_id(), "no-id", "", "i" * 13, "z" * 13):
        assert store.job(job_id) is None
        assert store.attempts(job_id) == []
    assert store.key("t", "k") is None
    assert store.last_event() == 0
    assert store.commit([]) == []


def many_jobs_are_known_at_once(opening: Opening) -> None:
    """Asking which of many ids are jobs gives those that are stored, with when they ended."""
    store = led(opening)
    over = make.job_record(state=JobState.COMPLETED, ended_ns=NOW_NS)
    deleted = make.job_record(state=JobState.DELETED, ended_ns=NOW_NS + 1)
    live = make.job_record()
    submitted(store, over, deleted, live)
    strange = [make.draw_id() for _ in range(2 * MOST_ROWS)]
    known = store.known([live.id, *strange, "no-id", "", deleted.id, over.id, over.id])
    assert known == {over.id: NOW_NS, deleted.id: NOW_NS + 1, live.id: None}
    assert store.known([]) == {}


def events_are_followed_by_tenant_or_job(opening: Opening) -> None:
    """A tenant sees its own events and the fleet's; a job's timeline has its own alone."""
    store = led(opening)
    mine, theirs = (make.job_record(spec=make.spec(tenant=name)) for name in ("a", "b"))
    submitted(store, mine, theirs)
    store_all(store, Change(insert=[make.event_of(kind="cluster")]))
    assert [event.tenant for event in store.events(0, 10, tenant="a")] == ["a", ""]
    assert [event.job_id for event in store.events(0, 10, job_id=theirs.id)] == [theirs.id]
    assert store.events(0, 10, job_id="none") == []


def lists_go_from_new_to_old_in_pages(opening: Opening) -> None:
    """Jobs are listed new to old, in pages that go on before the last id, and without deleted ones."""
    store = led(opening)
    states = list(JobState)
    jobs = [make.job_record(state=state) for state in states * 2]
    submitted(store, *jobs)
    shown = [job for job in reversed(jobs) if job.state is not JobState.DELETED]
    assert store.jobs(JobFilter(), MOST_ROWS + 1) == shown
    for wanted in (JobFilter(), JobFilter(tenant=DEFAULT), JobFilter(submitted_by="ada")):
        first = store.jobs(wanted, 7)
        assert first + store.jobs(replace(wanted, before=first[-1].id), 50) == shown
    deleted = frozenset({JobState.DELETED, JobState.RUNNING})
    assert store.jobs(JobFilter(states=deleted), 50) == [job for job in reversed(jobs) if job.state in deleted]
    assert store.count_jobs(JobFilter()) == dict.fromkeys(set(states) - {JobState.DELETED}, 2)
    assert store.count_jobs(JobFilter(states=deleted)) == dict.fromkeys(deleted, 2)


def pages_begin_before_an_id(opening: Opening) -> None:
    """A page before something that is no id is the asker's mistake."""
    store = led(opening)
    for ask in (lambda: store.jobs(JobFilter(before="x"), 1), lambda: store.count_jobs(JobFilter(before="x"))):
        try:
            ask()
        except RejectedError:
            continue
        raise AssertionError("a page before no id was given")


def each_filter_narrows(opening: Opening) -> None:
    """Each field of a filter leaves what agrees with it, alone and beside others, for lists and counts."""
    store = led(opening)
    odd = make.job_record(
        spec=make.spec("a-b.c", tenant="t", queue="q", labels={"k": "v", "x": "y"}),
        submitted_by="bob",
        submitted_ns=NOW_NS + 5,
        clusters=("c9", "c8"),
        state=JobState.RUNNING,
    )
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
        JobFilter(label=("k", "v"), cluster="c9", before=even.id, tenant="t", queue="q", name="a-", submitted_by="bob"),
    ]
    for wanted in filters:
        assert store.jobs(wanted, 10) == [odd], wanted
        assert store.count_jobs(wanted) == {JobState.RUNNING: 1}, wanted
    assert store.jobs(JobFilter(submitted_until_ns=NOW_NS + 5), 10) == [even]
    nothing = [JobFilter(name="a%"), JobFilter(name="a_b"), JobFilter(cluster="c"), JobFilter(label=("x", "v"))]
    for wanted in [*nothing, JobFilter(named="a-b"), JobFilter(named="a-b.c", tenant="u")]:
        assert store.jobs(wanted, 10) == [], wanted


def filters_follow_changes(opening: Opening) -> None:
    """A job is found by the clusters and labels it has now, not by those it had."""
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


def letters_differ_by_case(opening: Opening) -> None:
    """Names that differ by case alone are different names, as keys and in filters."""
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
    """Live jobs, held attempts and outgoing rows all come, however many, in their order."""
    store = led(opening)
    count = 2 * MOST_ROWS + 3
    jobs = [make.job_record(state=list(JobState)[at % 11]) for at in range(count)]
    store_all(store, *(Change(insert=[job]) for job in jobs))
    assert list(store.live_jobs()) == [job for job in jobs if job.state not in FINAL]
    attempts = [make.attempt_of(job, number) for job in jobs[: count // 2] for number in (1, 2)]
    states = list(AttemptState)
    attempts = [replace(each, state=states[at % len(states)]) for at, each in enumerate(attempts)]
    told = [make.outgoing_of(job, created_ns=NOW_NS - at // 3) for at, job in enumerate(jobs)]
    store_all(store, Change(insert=[*attempts, *told]))
    assert list(store.held_attempts()) == [each for each in attempts if each.state.holds]
    assert list(store.outgoing()) == sorted(told, key=_age)
    assert len(store.jobs(JobFilter(), count)) == MOST_ROWS


def _age(row: Outgoing) -> tuple[int, str]:
    return row.created_ns, row.job_id


def samples_are_read_from_a_moment_on(opening: Opening) -> None:
    """Samples come oldest first, of one cluster or link or of all; audit entries and shadows new to old."""
    store = led(opening)
    clusters = [make.cluster_sample(at_ns=at, cluster=name) for at in (1, 2, 3) for name in ("a", "b")]
    links = [make.link_sample(at_ns=at, source="a", target=name) for at in (1, 2, 3) for name in ("b", "c")]
    links[4] = make.link_sample(at_ns=3, source="a", target="b", latency_ns=None)  # nothing answered
    audits = [make.audit_entry(at_ns=at, id=at) for at in (1, 2, 3)]
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
    assert store.shadows("q", 9) == [shadows[2], shadows[0]]
    assert store.shadows("q", 9, 3) == [shadows[0]]


QUESTIONS: tuple[Case, ...] = (
    what_is_not_there_is_none,
    many_jobs_are_known_at_once,
    events_are_followed_by_tenant_or_job,
    lists_go_from_new_to_old_in_pages,
    pages_begin_before_an_id,
    each_filter_narrows,
    filters_follow_changes,
    letters_differ_by_case,
    streams_return_everything_in_order,
    samples_are_read_from_a_moment_on,
)
