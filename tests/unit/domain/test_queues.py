"""Queues: the checks of a queue alone, and of the tree that queues form."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from seaway.domain.amounts import gpus_of_models
from seaway.domain.errors import RejectedError
from seaway.domain.queues import MAX_DEPTH, Queue, check_tree, subtree_guarantee

TREE = (
    Queue("research", guarantee={"gpus": 16_000}, limit={"gpus": 32_000}),
    Queue("vision", parent="research", guarantee={"gpus": 8_000}),
    Queue("speech", parent="research", guarantee={"gpus": 8_000}),
)


@pytest.mark.parametrize(
    ("fields", "where", "said"),
    [
        ({"weight": -1}, "weight", "between 0 and"),
        ({"priority": 2_000_000}, "priority", "between -1000000 and"),
        ({"guarantee": {"gpus": -1}}, "guarantee.gpus", "between 0 and"),
        (
            {"guarantee": {"gpus": 3000}, "limit": {"gpus": 2000}},
            "guarantee.gpus",
            "3 gpus, more than its limit of 2 gpus",
        ),
    ],
)
def test_a_queue_is_checked_alone(fields: dict[str, Any], where: str, said: str) -> None:
    """An invalid number is rejected with its field and its bounds."""
    with pytest.raises(RejectedError, match=said) as refused:
        Queue("batch", **fields)
    assert refused.value.where == where


@pytest.mark.parametrize(
    ("queue", "where", "said"),
    [
        (Queue("nlp", parent="nowhere"), "parent", "unknown queue 'nowhere'"),
        (Queue("research", parent="vision"), "parent", "research in vision in research is a cycle"),
        (Queue("research", parent="research"), "parent", "cycle"),
        (Queue("nlp", parent="research", pool="other"), "parent", "a tree has one pool"),
        (Queue("research", pool="other"), "pool", "a tree has one pool"),
        (
            Queue("nlp", parent="research", guarantee={"gpus": 1000}),
            "guarantee.gpus",
            "queue 'research' guarantees 16 gpus, but its children guarantee 17 gpus together",
        ),
        (
            Queue("research", guarantee={"gpus": 15_000}),
            "guarantee.gpus",
            "guarantees 15 gpus, but its children guarantee 16 gpus together",
        ),
        (
            Queue("nlp", guarantee={"gpus": 8000, "gpus/a100": 6000, "gpus/l4": 4000}),
            "guarantee.gpus",
            "guarantees 10 gpus of single models, more than its guarantee of 8 gpus",
        ),
        (
            Queue("nlp", guarantee={"gpus/a100": 16_000}, limit={"gpus": 8000}),
            "guarantee.gpus",
            "guarantees 16 gpus of single models, more than its limit of 8 gpus",
        ),
        (Queue("research", limit={"gpus": 4000}), "limit.gpus", "has a limit of 4 gpus, but its children guarantee 16"),
    ],
)
def test_a_tree_that_does_not_add_up_is_rejected(queue: Queue, where: str, said: str) -> None:
    """A cycle, two pools in one tree, and children that are guaranteed more than their parent are rejected."""
    with pytest.raises(RejectedError, match=said) as refused:
        check_tree(queue, [each for each in TREE if each.name != queue.name])
    assert refused.value.where == where


def test_sums_are_checked_up_to_the_root() -> None:
    """A guarantee of a grandchild counts for each ancestor, through queues that name none."""
    between = Queue("team", parent="research")
    with pytest.raises(RejectedError, match="children guarantee 18 gpus together"):
        check_tree(Queue("user", parent="team", guarantee={"gpus": 2000}), [*TREE, between])


def test_guaranteed_gpus_of_models_are_gpus() -> None:
    """A queue that guarantees a number of GPUs, or limits it, cannot guarantee more by the names of models below it."""
    tree = [
        Queue("lab", guarantee={"gpus": 24_000}),
        Queue("team", parent="lab"),
        Queue("a", parent="team", guarantee={"gpus/a100": 8000}),
        Queue("b", parent="team", guarantee={"gpus": 8000, "gpus/a100": 2000}),
    ]
    more = Queue("c", parent="team", guarantee={"gpus/a100": 4000, "gpus/l4": 4000})
    check_tree(more, tree)
    said = r"queue 'lab' guarantees 24 gpus, but its children guarantee 25 gpus together, with those of single models"
    with pytest.raises(RejectedError, match=said) as refused:
        check_tree(replace(more, guarantee={**more.guarantee, "gpus/l4": 5000}), tree)
    assert refused.value.where == "guarantee.gpus"
    limited = [replace(tree[0], guarantee={}, limit={"gpus": 15_000}), *tree[1:]]
    with pytest.raises(RejectedError, match="has a limit of 15 gpus, but its children guarantee 24 gpus together"):
        check_tree(more, limited)


def test_a_queue_without_a_guarantee_has_that_of_its_children() -> None:
    """A resource that a queue does not name is guaranteed as the sum over its children."""
    queues = {
        each.name: each
        for each in (Queue("root"), *(Queue(n, "", parent="root", guarantee={"cpu": 500}) for n in "ab"))
    }
    assert subtree_guarantee("root", queues, {"root": [queues["a"], queues["b"]]}) == {"cpu": 1000}


def test_a_tree_has_a_largest_depth() -> None:
    """A queue below the lowest level is rejected."""
    chain = [Queue("q0"), *(Queue(f"q{at}", parent=f"q{at - 1}") for at in range(1, MAX_DEPTH))]
    with pytest.raises(RejectedError, match=f"makes {MAX_DEPTH + 1} levels"):
        check_tree(Queue("below", parent=chain[-1].name), chain)
    check_tree(chain[-1], chain[:-1])


def test_guarantees_of_a_model_count_under_every_name_that_covers_it() -> None:
    """Sums and limits compare names as quotas do, and the error has the amount of the name in the limit."""
    parent = Queue("all", limit={"gpus/a100": 6000})
    one = Queue("one", parent="all", guarantee={"gpus/a100": 3000})
    two = Queue("two", parent="all", guarantee={"gpus/nvidia a100-sxm4-80gb": 4000})
    with pytest.raises(RejectedError, match="limit of 6 gpus/a100, but its children guarantee 7 gpus/a100 together"):
        check_tree(two, [parent, one])
    check_tree(replace(two, guarantee={"gpus/nvidia a100-sxm4-80gb": 3000}), [parent, one])
    check_tree(replace(two, guarantee={"gpus/rtx a1000": 9000}), [parent, one])
    with pytest.raises(RejectedError, match="8 gpus/a100"):
        Queue("x", guarantee={"gpus/a100-80gb": 8000}, limit={"gpus/a100": 4000})
    both = {"gpus/a100": 4000, "gpus/a100-80gb": 2000, "gpus/nvidia-a100": 3000}
    assert Queue("x", guarantee=both, limit={"gpus/a100": 4000}).guarantee == both
    assert gpus_of_models(both) == 4000
    with pytest.raises(RejectedError, match=r"lends 2 gpus/a100, more than"):
        Queue("x", guarantee={"gpus/a100": 1000, "gpus/a100-80gb": 1000}, lending_limit={"gpus/a100-80gb": 2000})
