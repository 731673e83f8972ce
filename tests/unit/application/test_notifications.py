"""Notifications: which messages are stored, and how they are sent again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from seaway.adapters.notifications.vault import AesVault
from seaway.application.changes import Change
from seaway.application.notifications import MAX_TESTS, Notifications
from seaway.application.notifier import AT_ONCE, EVERY_S, MAX_DELIVERED, MAX_WAITING, Notifier
from seaway.application.ports.channels import Message, Result
from seaway.application.transitions import accepted, job_event, moved, stepped
from seaway.application.writer import Writer
from seaway.domain.arrays import TaskArray
from seaway.domain.errors import ConflictError, RejectedError, TooManyError, UnavailableError, UnknownError
from seaway.domain.job_record import JobRecord
from seaway.domain.job_state import JobState
from seaway.domain.notifications import Channel, DeliveryState, Notification, Notify, Occasion
from seaway.domain.queues import Queue
from seaway.domain.tenancy import Tenant
from seaway.testing.clocks import VirtualClock
from tests.fakes import records as make
from tests.fakes.memory_store import MemoryStore

HOUR_S = 3600
ALL = tuple(Occasion)


@dataclass
class FakeChannels:
    """Receivers that answer at once, or not before `answer` is called."""

    result: Result | None = field(default_factory=Result)
    sent: list[Message] = field(default_factory=list)
    open: list[Callable[[Result], None]] = field(default_factory=list)

    def send(self, message: Message, done: Callable[[Result], None]) -> None:
        """Note a message."""
        self.sent.append(message)
        if self.result is None:
            self.open.append(done)
        else:
            done(self.result)

    def close(self) -> None:
        """Do nothing."""


@dataclass
class World:
    """A notifier on a store in memory, without a thread."""

    store: MemoryStore = field(default_factory=MemoryStore)
    clock: VirtualClock = field(default_factory=VirtualClock)
    channels: FakeChannels = field(default_factory=FakeChannels)
    waits: list[tuple[JobRecord, int]] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    starts: int = 0
    mail_obstacle: str = ""
    writer: Writer = field(init=False)
    notifier: Notifier = field(init=False)
    cases: Notifications = field(init=False)

    def __post_init__(self) -> None:
        """Start."""
        self.restart()

    def restart(self) -> None:
        """Start again on the same store, as after a crash."""
        self.starts += 1
        self.store.lead("test")
        self.writer = Writer(self.store)
        vault = AesVault(bytes(32))
        to = self.channels
        self.notifier = Notifier(
            self.store, self.writer, self.clock, self.waiting, to, vault, Random(self.starts), reason=self.reason
        )
        self.cases = Notifications(
            self.store, self.writer, self.clock, self.notifier, to, vault, lambda _: self.mail_obstacle
        )
        self.notifier.step()

    def waiting(self, wanted: Callable[[JobRecord], bool]) -> list[tuple[JobRecord, int]]:
        """Return the waiting jobs."""
        return [each for each in self.waits if wanted(each[0])]

    def reason(self, job: JobRecord) -> str:
        """Return the present reason of a job."""
        return self.reasons.get(job.id, job.reason)

    def add(self, name: str = "ops", tenant: str = "default", **fields: Any) -> Notification:  # noqa: ANN401
        """Store a notification by webhook."""
        row = Notification(tenant, name, Channel.WEBHOOK, "https://example.com/hook", **{"on": ALL, **fields})
        return self.cases.put(row, "", "ada")[0].notification

    def submit(self, **fields: Any) -> JobRecord:  # noqa: ANN401
        """Store a job."""
        job = make.job_record(submitted_ns=self.clock.now_ns(), changed_ns=self.clock.now_ns(), **fields)
        self.writer.require(accepted(job))
        return job

    def go(self, job: JobRecord, *states: JobState) -> JobRecord:
        """Store states of a job one after another."""
        for state in states:
            self.clock.advance_s(0.001)
            job = moved(job, state, f"it is {state.value}", self.clock.now_ns())
            self.writer.require(stepped(job, "seaway"))
        return job

    def sent(self) -> list[tuple[str, str]]:
        """Send what is due, and return the kinds and jobs of all messages so far."""
        for _ in range(3):
            self.notifier.step()
        return [(str(each.content["type"]), str(each.content["data"]["name"])) for each in self.channels.sent]

    def after(self, seconds: float) -> list[tuple[str, str]]:
        """Return the messages after some time."""
        self.clock.advance_s(seconds)
        return self.sent()


def send_all(world: World) -> None:
    """Send until no message waits."""
    world.sent()
    while world.store.deliveries(limit=1, state=DeliveryState.WAITING):
        world.sent()


RUNS = (JobState.QUEUED, JobState.SCHEDULED, JobState.RUNNING)


def test_each_occasion_is_one_message() -> None:
    """A start, a preemption, a failure and an end are messages; a failure is no other message as an end."""
    world = World()
    world.add()
    first = world.submit(spec=make.spec("first"))
    world.go(first, *RUNS, JobState.PREEMPTED, *RUNS, JobState.COMPLETED, JobState.DELETED)
    world.go(world.submit(spec=make.spec("second")), *RUNS, JobState.FAILED)
    world.go(world.submit(spec=make.spec("third")), JobState.CANCELLED)
    kinds = ["started", "preempted", "started", "finished"]
    assert world.sent() == [
        *((f"job.{kind}", "first") for kind in kinds),
        ("job.started", "second"),
        ("job.failed", "second"),
        ("job.finished", "third"),
    ]
    assert {each.state for each in world.store.deliveries(limit=10)} == {DeliveryState.DELIVERED}


def test_the_latest_delivered_messages_stay_listed() -> None:
    """A receiver has a limited number of them, without content, also after a restart."""
    world = World()
    world.add(on=(Occasion.STARTED,))

    def names() -> list[str]:
        return [each.job_name for each in world.cases.deliveries("default", "ops", DeliveryState.DELIVERED, 99)]

    for number in range(MAX_DELIVERED - 1):
        world.go(world.submit(spec=make.spec(f"job-{number}")), *RUNS)
    send_all(world)
    world.restart()
    for number in range(MAX_DELIVERED - 1, MAX_DELIVERED + 3):
        world.go(world.submit(spec=make.spec(f"job-{number}")), *RUNS)
    send_all(world)
    assert names() == [f"job-{number}" for number in reversed(range(3, MAX_DELIVERED + 3))]
    assert {each.body for each in world.store.deliveries(limit=99)} == {""}
    assert world.cases.deliveries(None, "", None, 99) == world.cases.deliveries("default", "ops", None, 99)
    assert world.cases.resend("default", "ops") == 0
    world.cases.delete("default", "ops")
    assert world.store.deliveries(limit=99) == []


def test_a_message_is_for_some_occasions_jobs_and_queues() -> None:
    """A notification covers the jobs of its tenant and queue, and only later events of its occasions."""
    world = World()
    world.go(world.submit(spec=make.spec("before")), *RUNS, JobState.FAILED)
    world.clock.advance_s(1)
    world.add("ends", on=(Occasion.FINISHED,))
    world.store.database.rows[Queue]["fast",] = Queue("fast")
    world.add("elsewhere", tenant="", queue="fast")
    world.add("one", job="ours", on=(Occasion.FAILED,))
    world.go(world.submit(spec=make.spec("ours")), *RUNS, JobState.FAILED)
    world.go(world.submit(spec=make.spec("theirs", tenant="other")), *RUNS, JobState.FAILED)
    world.go(world.submit(spec=make.spec("another", tenant="other")), *RUNS, JobState.FAILED)
    assert sorted(world.sent()) == [("job.failed", "ours"), ("job.finished", "ours")]
    assert {each.secret[:6] for each in world.channels.sent} == {"whsec_"}


def test_a_job_names_receivers_of_its_messages() -> None:
    """A notification of its tenant and an address have one message about each event, besides those for all jobs."""
    world = World()
    world.add("quiet", on=())
    world.add("loud", on=(Occasion.FAILED,))
    world.add("quiet", tenant="", on=())
    notify = tuple(Notify(to, (Occasion.STARTED, Occasion.FAILED)) for to in ("quiet", "loud", "ada@example.com"))
    ours = world.submit(spec=make.spec("ours", notify=notify))
    world.go(ours, *RUNS, JobState.FAILED)
    world.go(world.submit(spec=make.spec("other")), *RUNS, JobState.FAILED)
    world.sent()
    seen = [(each.addresses, each.content["type"], each.content["data"]["name"]) for each in world.channels.sent]
    webhooks = [(kind, name) for addresses, kind, name in seen if not addresses]
    assert Counter(webhooks) == {("job.started", "ours"): 2, ("job.failed", "ours"): 2, ("job.failed", "other"): 1}
    assert sorted(str(kind) for addresses, kind, _ in seen if addresses == ("ada@example.com",)) == [
        "job.failed",
        "job.started",
    ]


def test_a_server_without_notifications_sends_those_that_jobs_name() -> None:
    """Addresses need no notification, also for events before a restart and for long waits."""
    world = World()
    notify = (Notify("ada@example.com", (Occasion.FAILED, Occasion.WAITS_TOO_LONG)),)
    job = world.go(world.submit(spec=make.spec("ours", notify=notify)), JobState.QUEUED)
    other = world.submit(spec=make.spec("other"))
    world.waits += [(each, world.clock.now_ns()) for each in (job, other)]
    world.sent()
    assert world.after(HOUR_S + EVERY_S) == [("job.waits_too_long", "ours")]
    world.go(job, JobState.FAILED)
    world.restart()
    assert world.sent()[1:] == [("job.failed", "ours")]


def test_the_receivers_of_a_job_exist() -> None:
    """An unknown notification is rejected with those of the tenant, and an address as for notifications."""
    world = World()
    world.add("ops")
    world.add("all", tenant="")
    assert world.cases.obstacle("default", Notify("ops")) == ""
    assert world.cases.obstacle("default", Notify("all")) == (
        "unknown notification 'all' of tenant 'default'; available: ops"
    )
    assert "seaway notification set" in world.cases.obstacle("vision", Notify("ops"))
    assert world.cases.obstacle("default", Notify("ada@example.com")) == ""
    world.mail_obstacle = "no e-mail can be sent"
    assert world.cases.obstacle("default", Notify("ada@example.com")) == "no e-mail can be sent"


def test_dead_letters_to_an_address_are_listed_and_sent_again() -> None:
    """An address that jobs name is listed while it has messages."""
    world = World()
    world.channels.result = Result("550 no such user", final=True)
    notify = (Notify("ada@example.com", (Occasion.FAILED,)),)
    world.go(world.submit(spec=make.spec("ours", notify=notify)), *RUNS, JobState.FAILED)
    world.sent()
    (view,) = world.cases.views("default")
    assert (view.notification.name, view.dead) == ("ada@example.com", 1)
    (dead,) = world.cases.deliveries("default", "ada@example.com", DeliveryState.DEAD, 9)
    assert dead.error == "550 no such user"
    world.channels.result = Result()
    assert world.cases.resend("default", "ada@example.com") == 1
    world.sent()
    assert world.cases.views("default")[0:] == [] or not world.cases.views("default")[0].dead


def test_the_end_of_a_lease_is_announced() -> None:
    """The warning of the control loop is a message."""
    world = World()
    world.add(on=(Occasion.LEASE_EXPIRES,))
    job = world.go(world.submit(), *RUNS)
    warning = replace(job_event(job, "seaway", "lease", "its lease ends soon"), at_ns=world.clock.now_ns())
    world.writer.require(Change(insert=[warning]))
    assert world.sent() == [("job.lease_expires", job.spec.name)]
    assert world.channels.sent[0].content["data"]["state"] == "running"


def test_tasks_and_standbys_send_nothing() -> None:
    """An array has messages as a whole."""
    world = World()
    world.add()
    array = world.submit(spec=replace(make.spec("sweep"), array=TaskArray("0-2")))
    task = array.task(2)
    world.writer.require(accepted(task))
    world.go(task, *RUNS, JobState.COMPLETED)
    world.go(array, *RUNS, JobState.COMPLETED)
    assert world.sent() == [("job.started", "sweep"), ("job.finished", "sweep")]


def test_a_wait_is_reported_once_when_it_exceeds_the_limit() -> None:
    """Neither another search nor a restart reports it again, and a stop of the server hides none.

    The message has the present reason, which may not be stored yet.
    """
    world = World()
    world.add(on=(Occasion.WAITS_TOO_LONG,), wait_limit_s=HOUR_S)
    job = world.submit()
    world.waits = [(job, world.clock.now_ns())]
    world.reasons = {job.id: "every node is cordoned"}
    assert world.after(HOUR_S - 60) == []
    assert len(world.after(120)) == 1
    assert "every node is cordoned" in str(world.channels.sent[-1])
    world.restart()
    assert len(world.after(HOUR_S)) == 1
    late = world.submit()
    world.waits.append((late, world.clock.now_ns()))
    world.clock.advance_s(2 * HOUR_S)
    world.restart()
    assert [kind for kind, _ in world.after(EVERY_S)] == ["job.waits_too_long"] * 2


def test_a_restart_sends_what_is_stored_and_what_happened_meanwhile() -> None:
    """Events that no notifier has seen, and messages without an answer, are sent after a restart."""
    world = World()
    world.add()
    world.channels.result = None
    job = world.go(world.submit(), *RUNS)
    world.sent()
    first = world.channels.sent[0].id
    world.go(job, JobState.COMPLETED)
    world.channels.sent.clear()
    world.channels.result = Result()
    world.restart()
    assert sorted(world.sent()) == [("job.finished", job.spec.name), ("job.started", job.spec.name)]
    assert first in {each.id for each in world.channels.sent}
    world.restart()
    assert len(world.sent()) == 2


def test_a_failing_receiver_is_tried_later_and_later() -> None:
    """The delay doubles, the ID stays, and after a day the message is a dead letter, which can be sent again."""
    world = World()
    world.add()
    world.channels.result = Result("the receiver answers 500")
    world.go(world.submit(), *RUNS)
    tries = [len(world.after(60)) for _ in range(26 * 60)]
    assert len({each.id for each in world.channels.sent}) == 1
    assert tries[60] < 12 < tries[-1] < 60
    (dead,) = world.cases.deliveries("default", "ops", DeliveryState.DEAD, 10)
    assert (dead.tries, dead.error) == (tries[-1], "the receiver answers 500")
    world.notifier.step()
    assert (world.notifier.counts.dead, world.cases.view("default", "ops").dead) == (1, 1)
    world.channels.result = Result()
    assert world.cases.resend("default", "ops") == 1
    world.sent()
    assert {each.state for each in world.store.deliveries(limit=10)} == {DeliveryState.DELIVERED}
    assert world.channels.sent[-1].id == dead.id
    with pytest.raises(UnknownError):
        world.cases.resend("default", "ops", [dead.id])


def test_a_receiver_decides_about_further_tries() -> None:
    """A final answer makes a dead letter at once, and a requested delay is waited for."""
    world = World()
    world.add()
    world.channels.result = Result("the receiver answers 410", final=True)
    world.go(world.submit(), *RUNS)
    world.after(60)
    assert [row.state for row in world.store.deliveries(limit=9)] == [DeliveryState.DEAD]
    assert world.cases.drop("default", "ops") == 1
    world.channels.result = Result("the receiver answers 429", retry_after_s=1800)
    world.go(world.submit(), *RUNS)
    assert [len(world.after(60)) for _ in range(29)] == [2] * 29
    assert len(world.after(120)) == 3


def test_a_receiver_without_answers_has_few_messages_in_flight() -> None:
    """It delays no other receiver."""
    world = World()
    world.add("hung")
    world.channels.result = None
    for _ in range(AT_ONCE + 3):
        world.go(world.submit(), *RUNS)
    assert len(world.sent()) == AT_ONCE
    world.cases.delete("default", "hung")
    world.add("well")
    world.channels.result = Result()
    world.clock.advance_s(1)
    world.go(world.submit(), *RUNS)
    assert len(world.sent()) == AT_ONCE + 1
    for done in world.channels.open:
        done(Result("no answer in time"))
    world.sent()
    assert {each.state for each in world.store.deliveries(limit=10)} == {DeliveryState.DELIVERED}


def test_too_many_waiting_messages_are_dead_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queue of a receiver is bounded."""
    monkeypatch.setattr("seaway.application.notifier.MAX_WAITING", 3)
    assert MAX_WAITING > 3
    world = World()
    world.add()
    world.channels.result = None
    for _ in range(AT_ONCE + 5):
        world.go(world.submit(), *RUNS)
    world.sent()
    states = [row.state for row in world.store.deliveries(limit=20)]
    assert (states.count(DeliveryState.WAITING), states.count(DeliveryState.DEAD)) == (3, 6)


def test_an_unavailable_database_loses_no_message() -> None:
    """Events whose messages could not be stored are read again."""
    world = World()
    world.add()
    job = world.go(world.submit(), *RUNS)
    world.store.fail_next(times=1)
    with pytest.raises(UnavailableError):
        world.notifier.step()
    world.go(job, JobState.COMPLETED)
    assert world.sent() == [("job.started", job.spec.name), ("job.finished", job.spec.name)]


def test_secrets_are_drawn_once_and_stored_encrypted() -> None:
    """A change retains the secret, and the database never has it as it is."""
    world = World()
    row = Notification("default", "ops", Channel.WEBHOOK, "https://example.com/hook", on=ALL)
    _, secret = world.cases.put(row, "", "ada")
    assert secret.startswith("whsec_")
    assert world.cases.put(replace(row, url="https://example.com/other"), "", "ada")[1] == ""
    (stored,) = world.store.notifications()
    assert secret not in repr(stored)
    assert world.notifier.message_of(stored, "m", {"data": {"summary": "", "reason": ""}}, 0).secret == secret
    slack = Notification("default", "team", Channel.SLACK, "https://hooks.example.com/services/T0/B0/its-key", on=ALL)
    view, _ = world.cases.put(slack, "", "ada")
    assert view.notification.url == "https://hooks.example.com/"
    assert "its-key" not in repr(world.store.notifications())
    view, _ = world.cases.put(replace(slack, url=view.notification.url, on=(Occasion.FAILED,)), "", "ada")
    assert (
        world.notifier.message_of(view.notification, "m", {"data": {"summary": "", "reason": ""}}, 0).url == slack.url
    )


def test_a_secret_of_another_key_makes_dead_letters_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    """A lost key is reported, and a new secret mends it."""
    world = World()
    row = world.add()
    other = AesVault(bytes(31) + b"x").seal("whsec_eA==", "default/ops")
    world.store.database.rows[Notification]["default", "ops"] = replace(row, sealed=other)
    world.restart()
    world.go(world.submit(), *RUNS)
    world.sent()
    world.notifier.step()
    (dead,) = world.store.deliveries(limit=9)
    assert "another key" in dead.error
    assert world.channels.sent == []
    world.cases.start()
    world.notifier.stop()
    assert "differs from the one that encrypted the secrets of default/ops" in caplog.text


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"url": "ftp://example.com"}, "url"),
        ({"url": "https://user:password@example.com/"}, "url"),
        ({"url": "https://example.com/#x"}, "url"),
        ({"url": "https://exa mple.com/"}, "url"),
        ({"url": ""}, "url"),
        ({"addresses": ("ada@example.com",)}, "addresses"),
        ({"channel": Channel.EMAIL}, "url"),
        ({"channel": Channel.EMAIL, "url": ""}, "addresses"),
        ({"channel": Channel.EMAIL, "url": "", "addresses": ("ada@example.com\nBcc: x@example.com",)}, "addresses[0]"),
        ({"wait_limit_s": 0}, "wait_limit"),
        ({"queue": "none"}, "queue"),
        ({"tenant": "none"}, "tenant"),
        ({"name": "No"}, "name"),
    ],
)
def test_bad_notifications_are_rejected_with_the_field(fields: dict[str, Any], where: str) -> None:
    """Each error names its field."""
    world = World()
    with pytest.raises(RejectedError) as caught:
        world.add(
            **{"name": "ops", "tenant": "default", **fields}
        ) if "channel" not in fields and "url" not in fields else (
            world.cases.put(
                Notification(
                    **{"tenant": "default", "name": "ops", "channel": Channel.WEBHOOK, "on": ALL}
                    | {"url": "https://example.com/hook"}
                    | fields
                ),
                "",
                "ada",
            )
        )
    assert caught.value.where == where


def test_tests_of_a_tenant_are_limited() -> None:
    """A tenant can send some test messages in an hour, whatever receivers they have."""
    world = World()
    for name in ("ops", "dev"):
        world.add(name)
    world.writer.require(Change(put=[Tenant("other")]))
    world.add("theirs", tenant="other")
    for at in range(MAX_TESTS):
        world.cases.test("default", ("ops", "dev")[at % 2])
    with pytest.raises(TooManyError) as caught:
        world.cases.test("default", "ops")
    assert 3590 <= caught.value.retry_after_s <= 3601
    world.cases.test("other", "theirs")
    world.clock.advance_s(caught.value.retry_after_s)
    world.cases.test("default", "ops")


def test_a_damaged_message_blocks_no_receiver() -> None:
    """A stored message that cannot be read is a dead letter that names it, and later ones are sent."""
    world = World()
    world.add()
    for _ in range(6):
        world.go(world.submit(), JobState.CANCELLED)
        world.notifier.step()
    rows = world.store.deliveries(tenant="default", receiver="ops", state=None, limit=9)
    assert rows
    for row in rows:
        world.writer.require(Change(put=[replace(row, body="{", state=DeliveryState.WAITING, next_ns=0)]))
    world.restart()
    for _ in range(4):
        world.notifier.step()
    dead = world.store.deliveries(tenant="default", receiver="ops", state=DeliveryState.DEAD, limit=9)
    assert len(dead) == len(rows)
    assert all(f"message {row.id} cannot be read" in row.error for row in dead)


def test_one_test_of_a_notification_at_a_time() -> None:
    """A second one is a conflict until the first has its result."""
    world = World()
    world.add()
    world.channels.result = None
    first = world.cases.test("default", "ops")
    with pytest.raises(ConflictError):
        world.cases.test("default", "ops")
    world.channels.open[0](Result("the receiver answers 404"))
    assert first.result(0).error == "the receiver answers 404"
    assert json.dumps(dict(world.channels.sent[0].content))
    world.cases.test("default", "ops")
