"""Names of clusters: permanent, by the identity of a cluster, or by its server if it reports none."""

from __future__ import annotations

import pytest

from seaway.application.changes import Change
from seaway.application.clusters import ClusterNames
from seaway.application.records import ClusterName
from seaway.domain.errors import UnavailableError
from tests.fakes.memory_store import MemoryDatabase, MemoryStore


def led() -> MemoryStore:
    """Make a store that this process writes to."""
    store = MemoryStore(MemoryDatabase())
    store.lead("me")
    return store


def test_a_name_outlives_the_process() -> None:
    """Another process on the same store knows a cluster by its uid, wherever its server is by then."""
    store = led()
    ClusterNames(store).keep("alpha", "uid-1", "here")
    names = ClusterNames(store)
    assert names.of("uid-1", "elsewhere") == "alpha"
    assert names.of("uid-2", "elsewhere") == ""
    assert (names.taken(), names.uid("alpha"), names.uid("beta")) == ({"alpha"}, "uid-1", "")


def test_before_it_answers_a_cluster_is_known_by_its_server() -> None:
    """So is one that does not say who it is; one that says it is another is another, at whatever server."""
    names = ClusterNames(led())
    names.keep("alpha", "uid-1", "here")
    assert names.of(None, "here") == names.of("", "here") == "alpha"
    assert names.of("uid-2", "here") == ""
    assert names.of(None, "") == names.of("", "") == ""


def test_who_a_cluster_is_can_be_learnt_later() -> None:
    """A cluster that was identified by its server only keeps its name when it reports its identity."""
    store = led()
    names = ClusterNames(store)
    names.keep("alpha", "", "here")
    assert names.of("uid-1", "here") == "alpha"
    names.keep("alpha", "uid-1", "here")
    names.keep("alpha", "", "there")
    assert store.cluster_names() == [ClusterName("alpha", "uid-1", "there")]


def test_a_server_is_one_clusters_at_a_time() -> None:
    """Where another cluster is behind a server, the one that was there before is not known by it any more."""
    store = led()
    names = ClusterNames(store)
    names.keep("alpha", "uid-1", "here")
    names.keep("beta", "uid-2", "here")
    assert names.of(None, "here") == "beta"
    assert names.of("uid-1", "") == "alpha"
    assert store.cluster_names() == [ClusterName("alpha", "uid-1", ""), ClusterName("beta", "uid-2", "here")]


def test_what_cannot_be_stored_is_not_taken_for_stored() -> None:
    """A name that the database did not take is not given out by this process either."""
    store = led()
    names = ClusterNames(store)
    assert names.taken() == set()
    store.fail_next()
    with pytest.raises(UnavailableError):
        names.keep("alpha", "uid-1", "here")
    assert names.taken() == set()
    names.keep("alpha", "uid-1", "here")
    assert [row.name for row in store.cluster_names()] == ["alpha"]


def test_a_name_is_free_again_once_its_cluster_is_forgotten() -> None:
    """A user who reads again what is stored can give it to another; without a store nothing is ever forgotten."""
    store = led()
    names, alone = ClusterNames(store), ClusterNames()
    for each in (names, alone):
        each.keep("alpha", "uid-1", "here")
    store.commit([Change(delete=[*store.cluster_names()])])
    assert names.of("uid-1", "here") == "alpha"
    for each in (names, alone):
        each.reload()
    assert names.taken() == set()
    assert alone.taken() == {"alpha"}
