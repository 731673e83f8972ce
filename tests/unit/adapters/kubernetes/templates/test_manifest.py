"""Parts and the names of their objects."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seaway.adapters.kubernetes.templates.manifest import group_of
from seaway.adapters.kubernetes.templates.names import (
    MAX_OBJECT_NAME_LENGTH,
    cluster_digest,
    numbers_of,
    numbers_text,
    object_name,
)
from seaway.domain.errors import InvariantError
from tests.unit.adapters.kubernetes.templates.sample import deployment, share

LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAMES = st.text(min_size=1, max_size=80)


def test_replicas_that_share_everything_are_one_part() -> None:
    """Replicas with equal node, devices and amounts form a part, in the order of their first."""
    two, other = group_of(deployment()).alike()
    assert (two.nodes, two.replicas) == (("node-0",), (0, 1))
    assert (other.nodes, other.replicas) == (("node-1",), (2,))


@pytest.mark.parametrize(
    "other",
    [
        ("node-9", (share("GPU-a"),)),
        ("node-0", (share("GPU-z"),)),
        ("node-0", (share("GPU-a", memory_mib=1),)),
        ("node-0", (share("GPU-a", core_milli=10),)),
        ("node-0", (share("GPU-a", profile="1g.5gb"),)),
        ("node-0", (share("GPU-a"), share("GPU-z"))),
        ("node-0", ()),
    ],
)
def test_any_difference_makes_another_part(other: tuple[str, tuple[object, ...]]) -> None:
    """Replicas that differ in node, device or amount cannot have one pod template."""
    placed = [("node-0", (share("GPU-a"),)), other]
    first, second = group_of(deployment(placed=placed)).alike()  # type: ignore[arg-type]
    assert first.digest != second.digest


def test_where_an_instance_begins_makes_no_part() -> None:
    """Instances of one profile on one device are one part: no vGPU layer accepts a start position."""
    placed = [("node-0", (share("GPU-a", profile="1g.5gb", start=start),)) for start in range(7)]
    assert [group.replicas for group in group_of(deployment(placed=placed)).alike()] == [tuple(range(7))]


def test_the_order_of_placements_means_nothing() -> None:
    """Placements and slices in another order give the same parts with the same digests."""
    placed = [("node-0", (share("GPU-a"), share("GPU-b"))), ("node-1", (share("GPU-c"), share("GPU-d")))]
    first = deployment(placed=placed)
    turned = replace(
        first, placements=tuple(replace(each, slices=each.slices[::-1]) for each in reversed(first.placements))
    )
    assert group_of(turned) == group_of(first)


def test_a_replica_is_placed_once_and_here() -> None:
    """A deployment cannot place a replica twice, or in another cluster, or have no replica."""
    good = deployment()
    for placements in (
        (),
        (good.placements[0], good.placements[0]),
        (replace(good.placements[0], cluster="elsewhere"),),
    ):
        with pytest.raises(InvariantError):
            group_of(replace(good, placements=placements))


def test_roles_tell_groups_of_one_part_apart() -> None:
    """Two pod templates for one part, like a head and its workers, have different labels."""
    group = group_of(deployment()).alike()[0]
    assert len({replace(group, role=role).digest for role in ("", "head", "worker")}) == 3


@given(job=NAMES, attempt=st.integers(1, 10**9), cluster=NAMES)
def test_every_name_is_a_dns_label(job: str, attempt: int, cluster: str) -> None:
    """For any ids, an object's name is a DNS label with room for suffixes of controllers."""
    made = deployment(job_id=job, attempt=attempt, cluster=cluster)
    name = object_name(made, cluster_digest(made))
    assert LABEL.fullmatch(name)
    assert len(name) <= MAX_OBJECT_NAME_LENGTH


@given(first=st.tuples(NAMES, NAMES), second=st.tuples(NAMES, NAMES))
def test_different_places_have_different_names(first: tuple[str, str], second: tuple[str, str]) -> None:
    """Names of one attempt differ by cluster, node and device."""
    names = []
    for node, uuid in (first, second):
        made = deployment(placed=[(node, (share(uuid),))])
        names.append(object_name(made, group_of(made).digest))
    assert (names[0] == names[1]) == (first == second)


def test_names_start_with_the_attempts_own() -> None:
    """An attempt's objects have its name as prefix, in every cluster."""
    here, there = deployment(), deployment(cluster="beta")
    assert object_name(here, cluster_digest(here)).startswith(f"{here.name}-")
    assert object_name(here, cluster_digest(here)) != object_name(there, cluster_digest(there))


@given(st.sets(st.integers(0, 10_000)))
def test_numbers_are_read_as_they_were_written(numbers: set[int]) -> None:
    """A written list of replicas reads back unchanged."""
    assert numbers_of(numbers_text(sorted(numbers))) == tuple(sorted(numbers))


@pytest.mark.parametrize(
    "text", ["x", "3-1", "1,1", "0-", "-1", "1-1", "01", "0,1", " 1", "0-999999999", "5,3", "0-9999999999999999999999"]
)
def test_what_is_no_list_of_numbers_is_refused(text: str) -> None:
    """A text that Seaway did not write is rejected as a list of replicas, quickly."""
    with pytest.raises(ValueError, match=r"number|int"):
        numbers_of(text)
