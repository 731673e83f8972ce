"""The written form of a job reads back as the same job."""

from __future__ import annotations

import string

import orjson
from hypothesis import given
from hypothesis import strategies as st

from seaway.domain import units as amounts
from seaway.domain.device import DeviceMode
from seaway.domain.job import NO_DATA, DataSource, Demand, DeviceRules, NodeRules, ResourceRequest
from seaway.domain.job_record import JobRecord
from seaway.domain.job_spec import JobSpec
from seaway.domain.job_state import JobState
from seaway.domain.network import NetworkNeed, OnViolation
from seaway.domain.node import TaintEffect, Toleration
from seaway.domain.notifications import Notify, Occasion
from seaway.domain.reasons import time_text
from seaway.domain.runtime import Run
from seaway.wire import fields
from seaway.wire.fields import at_ns, moment
from seaway.wire.job_in import JobIn
from seaway.wire.job_out import JobOut, job_fields
from seaway.wire.job_text import job_text
from seaway.wire.normalised import NormalisedJob
from seaway.wire.reading import read_json

names = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=10)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=10)
sets = st.frozensets(texts, max_size=3)
lists = st.lists(texts, max_size=3).map(tuple)
int32 = st.integers(0, fields.LARGEST_INT32)


@st.composite
def requests(draw: st.DrawFn) -> ResourceRequest:
    """Generate the request of a replica."""
    gpus = draw(st.integers(0, 1024))
    memory, percent = draw(st.sampled_from([(0, 0), (draw(int32), 0), (0, draw(st.integers(1, 100)))]))
    return ResourceRequest(
        draw(int32),
        draw(int32),
        gpus,
        memory if gpus else 0,
        percent if gpus else 0,
        draw(st.integers(0, 1000)) if gpus else 0,
    )


needs = st.builds(
    NetworkNeed,
    st.integers(0, fields.LONGEST_BOUND_NS),
    st.integers(0, fields.LONGEST_BOUND_NS),
    st.integers(0, 10**6),
    int32,
)
device_rules = st.builds(
    DeviceRules, sets, lists, lists, sets, sets, sets, st.frozensets(st.sampled_from(DeviceMode)), st.booleans()
)
tolerations = st.builds(Toleration, texts, st.none() | names, st.none() | st.sampled_from(TaintEffect))
node_rules = st.builds(
    NodeRules,
    st.dictionaries(names, names, max_size=3).map(lambda labels: tuple(sorted(labels.items()))),
    st.lists(tolerations, max_size=2).map(tuple),
    sets,
    sets,
    sets,
)
variables = st.dictionaries(st.text(string.ascii_uppercase, min_size=1), texts, max_size=3)
runs = st.builds(
    Run,
    texts,
    lists,
    lists,
    variables.map(lambda env: tuple(env.items())),
    st.lists(st.integers(1, 65_535), max_size=3).map(tuple),
)
occasions = st.sets(st.sampled_from(Occasion), min_size=1).map(lambda chosen: [o for o in Occasion if o in chosen])
receivers = st.builds(Notify, names | st.just("ada@example.com"), occasions.map(tuple))
times = st.none() | st.integers(1, fields.LONGEST_TIME_S)
specs = st.builds(
    JobSpec,
    name=names,
    demand=st.builds(Demand, requests(), device_rules, node_rules, texts, needs),
    replicas=st.integers(1, 10_000),
    gang=st.booleans(),
    between_replicas=needs,
    priority=st.integers(-(10**9), 10**9),
    tenant=names,
    queue=names,
    template=names,
    run=runs,
    expected_duration_s=st.just(0) | times,
    time_limit_s=times,
    lease_s=times,
    notify=st.lists(receivers, max_size=3, unique_by=lambda each: each.to).map(tuple),
    retries=st.integers(0, 1000),
    labels=st.dictionaries(names, names, max_size=3),
    on_violation=st.sampled_from(OnViolation),
    data=st.just(NO_DATA) | st.builds(DataSource, names, int32),
)


@given(specs)
def test_a_job_reads_back_as_it_was_written(spec: JobSpec) -> None:
    """Writing a job loses nothing, for any values."""
    assert read_json(JobIn, orjson.dumps(job_text(spec))).spec() == spec
    assert JobIn.of(spec).spec() == spec


LISTED = {"endpoints", "gpu_hours", "held_gpus", "cost", "estimated_start"}
"""Fields that only some answers have."""


@given(specs)
def test_what_is_shown_is_what_is_described(spec: JobSpec) -> None:
    """The answer composed by hand equals the described message, but for addresses, use of GPUs and starts."""
    job = JobRecord("0" * 13, spec, JobState.PENDING, 1_700_000_000_123_456_789, 1_700_000_000_123_456_789, "me")
    assert JobOut.of(job).model_dump(exclude=LISTED) == job_fields(job)
    assert NormalisedJob.of(job).request.gpus == spec.demand.request.gpus


@given(int32.filter(bool))
def test_amounts_read_back_exactly(amount: int) -> None:
    """Each amount is written so that reading it gives the same integer."""
    assert fields.memory_mib(amounts.memory_text(amount)) == amount
    assert fields.cpu_milli(amounts.cpu_text(amount)) == amount
    assert fields.rate_mbps(amounts.rate_text(amount)) == amount
    assert fields.bound_ns(amounts.short_time_text(amount)) == amount
    assert fields.seconds(time_text(amount % fields.LONGEST_TIME_S)) == amount % fields.LONGEST_TIME_S


@given(st.integers(0, 4 * 10**18))
def test_moments_read_back_to_the_microsecond(ns: int) -> None:
    """A time as text reads back as the same time."""
    assert at_ns(moment(ns)) == ns // 1000 * 1000
