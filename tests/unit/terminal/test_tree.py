"""The fleet as lines of a tree."""

from __future__ import annotations

from seaway.terminal.tree import Tree, condition, jobs, memory, milli, name, note, real
from seaway.terminal.words import Body
from tests.unit.terminal.bodies import JOB, cluster, node, piece


def opened(nodes: int = 3, on_page: int = 2) -> Tree:
    """Return a tree of two clusters, the first open, of which the first page was read."""
    tree = Tree()
    tree.clusters = [cluster("east", nodes), cluster("west")]
    tree.open(tree.lines()[0])
    read = [node("east", f"n{at}", *([piece("east", "n0", JOB)] if at == 0 else [])) for at in range(on_page)]
    tree.nodes["east"].take("", {"nodes": read, "next": "page-2" if on_page < nodes else None})
    return tree


def names(tree: Tree) -> list[str]:
    """Return what the lines are called, as far in as they are."""
    return [name(line).plain for line in tree.lines()]


def line(tree: Tree, key: str) -> Body:
    """Return a line."""
    return next(each for each in tree.lines() if each["key"] == key)


def test_clusters_are_folded_at_first() -> None:
    """A fleet of any size begins as a list of its clusters."""
    tree = Tree()
    tree.clusters = [cluster("east"), cluster("west")]
    assert names(tree) == ["▸ east", "▸ west"]
    assert tree.wanted(tree.lines()) == []


def test_an_open_cluster_shows_its_nodes_and_how_many_more_there_are() -> None:
    """The rest is read when its line is seen."""
    assert names(opened()) == ["▾ east", "  ▸ n0", "  ▸ n1", "    1 more …", "▸ west"]


def test_only_pages_that_are_seen_are_read_again() -> None:
    """Of a cluster of thousands of nodes a screen asks for the few that are on it."""
    tree = opened()
    tree.nodes["east"].take("page-2", {"nodes": [node("east", "n2")], "next": None})
    lines = tree.lines()
    assert tree.wanted(lines[:3]) == [("east", "")]
    assert tree.wanted(lines[3:]) == [("east", "page-2")]
    assert tree.wanted(lines) == [("east", ""), ("east", "page-2")]


def test_the_next_page_is_read_when_the_end_is_seen() -> None:
    """And no sooner."""
    tree = opened()
    lines = tree.lines()
    assert tree.wanted(lines[:2]) == [("east", "")]
    assert tree.wanted(lines[3:]) == [("east", "page-2")]


def test_a_page_that_is_read_again_takes_the_place_of_what_it_was() -> None:
    """And says whether another follows by now, where it is the last."""
    tree = opened()
    tree.nodes["east"].take("", {"nodes": [node("east", "n9")], "next": None})
    assert names(tree) == ["▾ east", "  ▸ n9", "▸ west"]


def test_nodes_open_to_devices_and_those_to_slices() -> None:
    """Down to which replica of which job holds what; a device that no one holds has nothing to open."""
    tree = opened()
    tree.open(line(tree, "node/east/n0"))
    tree.open(line(tree, "device/east/n0/n0/0"))
    assert names(tree)[1:5] == ["  ▾ n0", "    ▾ #0 A100", "        train · 0", "      #1 A100"]
    assert not tree.open(line(tree, "device/east/n0/n0/1"))


def test_another_tenants_slice_shows_its_size_alone() -> None:
    """As the server tells no more of it."""
    hidden = {**piece("east", "n0", JOB), "job": "", "job_id": "", "tenant": ""}
    tree = Tree()
    (device, _) = tree.devices(node("east", "n0", hidden), "", 0)
    tree.open(device)
    held = list(tree.devices(node("east", "n0", hidden), "", 0))[1]
    assert name(held).plain.strip() == "another tenant's"
    assert memory(held).plain.strip() == "8Gi"


def test_folding_goes_up_to_what_a_line_is_in() -> None:
    """As in a file manager: once more folds what is around."""
    tree = opened()
    tree.open(line(tree, "node/east/n0"))
    assert tree.close(line(tree, "device/east/n0/n0/1")) == "node/east/n0"
    assert tree.close(line(tree, "node/east/n1")) == "cluster/east"
    assert names(tree) == ["▸ east", "▸ west"]
    assert tree.opened() == []


def test_what_was_found_stands_below_its_clusters() -> None:
    """Clusters of that name are there too, others are not; the nodes that were open before are again afterwards."""
    tree = opened()
    tree.text, tree.found = "n1", [node("west", "n1")]
    assert names(tree) == ["  west", "  ▸ n1"]
    tree.text, tree.found = "eas", []
    assert names(tree) == ["  east"]
    tree.text = ""
    assert "  ▸ n0" in names(tree)


def test_a_slash_says_in_which_cluster_to_look() -> None:
    """Where there is one of that name."""
    tree = opened()
    for text, asked in (("n1", ("", "n1")), ("east/n1", ("east", "n1")), ("ea/n1", ("", "n1"))):
        assert tree.asked(text) == asked


def test_bars_sum_up_what_is_below() -> None:
    """A node's are those of its devices; in use is what was measured, not what was reserved."""
    tree = opened()
    first = line(tree, "node/east/n0")
    assert milli(first).plain.split()[1] == "0.3/2"
    assert memory(first).plain.split()[1] == "8Gi/160Gi"
    assert real(first) == "25 % 5Gi"
    assert jobs(first) == "1"
    assert not real(line(tree, "node/east/n1"))


def test_what_takes_no_work_says_so_and_why() -> None:
    """A cluster that is silent, and a node that a user cordoned."""
    tree = opened()
    cordon = {"drain": False, "actor": "ada", "reason": "new driver"}
    tree.clusters = [cluster("east", state="stale")]
    tree.nodes["east"].take("", {"nodes": [node("east", "n0", cordon=cordon)], "next": None})
    top, first = tree.lines()
    assert (condition(top).plain, note(top)) == ("stale", "it is cut off")
    assert (condition(first).plain, note(first)) == ("cordoned", "cordoned by ada: new driver")
