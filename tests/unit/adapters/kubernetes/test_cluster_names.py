"""Names of clusters: the context's name, with the file's name if necessary, and earlier names."""

from __future__ import annotations

from pathlib import Path

from seaway.adapters.kubernetes.backends import assign_names
from seaway.adapters.kubernetes.connection.contexts import Context
from seaway.application.clusters import ClusterNames


def context(file: str, name: str = "default", server: str = "") -> Context:
    """Create a context of a kubeconfig."""
    return Context(Path("/k") / file, name, server or f"server of {file}")


ONE, TWO = context("one.yaml"), context("two.yaml")


def test_equal_names_get_the_files_name() -> None:
    """All new clusters with the same name get the suffix, whether they have answered yet or not."""
    alone = context("one.yaml", "alone")
    for uid in (None, "1"):
        given = assign_names({TWO: "2", ONE: uid, alone: None}, {}, ClusterNames())
        assert given == {ONE: "default-one", TWO: "default-two", alone: "alone"}


def test_names_stay_apart_even_where_the_files_name_does_not_help() -> None:
    """Files that differ only in their endings get numbers."""
    given = assign_names({ONE: None, context("one.conf"): None}, {}, ClusterNames())
    assert sorted(given.values()) == ["default-one", "default-one-2"]


def test_a_cluster_that_is_known_keeps_its_name() -> None:
    """Another kubeconfig with the same context gets the suffix, in every later process."""
    names = ClusterNames()
    names.keep("default", "2", TWO.server)
    for uids in ({ONE: "1", TWO: "2"}, {ONE: None, TWO: None}, {ONE: "1", TWO: None}):
        assert assign_names(uids, {}, names) == {ONE: "default-one", TWO: "default"}


def test_a_name_is_never_given_to_another_cluster() -> None:
    """It stays reserved when its cluster is removed, or its kubeconfig leads to another cluster."""
    names = ClusterNames()
    names.keep("default", "old", ONE.server)
    assert assign_names({ONE: "new"}, {ONE: "default"}, names) == {ONE: "default-one"}
    assert assign_names({TWO: "new"}, {}, names) == {TWO: "default-two"}


def test_a_cluster_is_called_as_before_whatever_its_context_is() -> None:
    """It keeps its name under another context and in another file."""
    names = ClusterNames()
    names.keep("alpha", "1", "")
    assert assign_names({TWO: "1"}, {}, names) == {TWO: "alpha"}


def test_two_ways_into_one_cluster_are_one_cluster() -> None:
    """The used one stays; one that has not answered yet is kept until it reports the same cluster."""
    names = ClusterNames()
    assert list(assign_names({ONE: "1", TWO: "1"}, {}, names)) == [ONE]
    names.keep("alpha", "1", TWO.server)
    assert assign_names({ONE: "1", TWO: "1"}, {TWO: "alpha"}, names) == {TWO: "alpha"}
    same = context("one.yaml", server=TWO.server)
    assert assign_names({same: None, TWO: "1"}, {}, names) == {TWO: "alpha", same: "default"}


def test_a_name_that_no_one_had_stays_while_it_is_in_use() -> None:
    """A cluster that has not answered keeps its name when a kubeconfig with the same context is added."""
    assert assign_names({ONE: None, TWO: None}, {TWO: "default"}, ClusterNames()) == {
        TWO: "default",
        ONE: "default-one",
    }


def test_a_cluster_that_has_not_answered_since_its_kubeconfig_changed_is_called_as_before() -> None:
    """Its server changed; before it answers it is not known to be another cluster."""
    names = ClusterNames()
    names.keep("default", "1", "another server")
    assert assign_names({ONE: None}, {ONE: "default"}, names) == {ONE: "default"}
    assert assign_names({ONE: "2"}, {ONE: "default"}, names) == {ONE: "default-one"}
    assert assign_names({ONE: None, TWO: "1"}, {ONE: "default"}, names) == {TWO: "default", ONE: "default-one"}


def test_clusters_that_do_not_say_who_they_are_are_distinguished_by_their_servers() -> None:
    """Two contexts for the same server are one cluster then."""
    same = context("one.yaml", "other", TWO.server)
    assert len(assign_names({ONE: "", TWO: "", same: ""}, {}, ClusterNames())) == 2
