"""The suite for plugins passes what keeps the rules, and names the rule that is broken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seaway.domain.placement import Placement
from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import NODE_CPU_FREE
from seaway.scheduling.framework import PASS, Codes, Cycle, Plugin, Scores, Status, Verdict
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.plugins import rules_of_fit
from seaway.scheduling.policies.registry import PolicyOptions
from seaway.scheduling.registry import BUILT_IN, PluginSpec, make_plugin
from seaway.testing.plugins import check_plugin, job

MIX = [
    job("slice", gpus=1, gpu_memory_mib=4_096, gpu_milli=250),
    job("whole", gpus=1),
    job("pair", gpus=2, cpu_milli=4_000, models={"NVIDIA A100-SXM4-80GB"}),
    job("plain", cpu_milli=1_000),
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_plugins_of_the_registry_keep_the_rules(name: str) -> None:
    """Every plugin that a profile may choose passes, whatever mix it learns from."""
    for mix in (MIX, []):
        check_plugin(make_plugin(PluginSpec(name), PolicyOptions(mix=mix)))


@pytest.mark.parametrize("rule", rules_of_fit(), ids=lambda rule: rule.name)
def test_rules_of_fit_keep_the_rules(rule: Plugin) -> None:
    """The engine's own filters pass as any filter has to."""
    check_plugin(rule)


def count(cycle: Cycle) -> int:
    """Return how many nodes a plugin answers for."""
    return len(cycle.snapshot.nodes)


class Answers:
    """A filter that lets everything pass and a score that finds all alike, unless a test says otherwise."""

    name = "Answers"
    reasons: tuple[str, ...] = ("node is even",)

    def filter(self, cycle: Cycle) -> Codes:
        """Let every node pass."""
        return np.zeros(count(cycle), np.uint8)

    def score(self, cycle: Cycle) -> Scores:
        """Find every node alike."""
        return np.zeros(count(cycle), np.int64)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Find every device alike."""
        return np.zeros(len(cycle.snapshot.nodes[node].devices), np.int64)

    def order(self, queue: JobQueue) -> Int64:
        """Keep the order."""
        return np.arange(len(queue))

    def pre_filter(self, cycle: Cycle) -> Status:
        """Have nothing against a job."""
        return PASS

    def reserve(self, cycle: Cycle, placement: Placement) -> Status:
        """Have nothing against a placement."""
        return PASS

    def unreserve(self, cycle: Cycle, placement: Placement) -> None:
        """Have nothing to take back."""


def test_plugin_that_keeps_the_rules_passes() -> None:
    """The plugin that the broken ones below are made from is sound."""
    check_plugin(Answers())


def moody(_: object, cycle: Cycle) -> Any:  # noqa: ANN401
    """Answer differently each time."""
    cycle.state["calls"] = cycle.state.get("calls", 0) + 1
    return np.full(count(cycle), cycle.state["calls"] % 2)


def greedy(_: object, cycle: Cycle) -> Any:  # noqa: ANN401
    """Take what no plugin may take."""
    cycle.snapshot.arrays.nodes[NODE_CPU_FREE] -= 1
    return np.zeros(count(cycle), np.int64)


BROKEN: dict[str, tuple[str, Callable[..., Any]]] = {
    "a filter answers for every node": ("filter", lambda _, cycle: np.zeros(count(cycle) + 1, np.uint8)),
    "a filter answers in uint8 codes": ("filter", lambda _, cycle: np.zeros(count(cycle), np.int64)),
    "every code has a reason": ("filter", lambda _, cycle: np.full(count(cycle), 2, np.uint8)),
    "a filter answers alike when asked again": ("filter", lambda _, cycle: moody(_, cycle).astype(np.uint8)),
    "a score answers for every node": ("score", lambda _, cycle: np.zeros(count(cycle) + 1, np.int64)),
    "a score is a whole number": ("score", lambda _, cycle: np.zeros(count(cycle))),
    "a score is the same when asked again": ("score", moody),
    "a plugin leaves the snapshot as it is": ("score", greedy),
    "a device score answers for every device of the node": ("device_keys", lambda *_: np.zeros(9, np.int64)),
    "a device score is a whole number": (
        "device_keys",
        lambda _, cycle, n: np.zeros(len(cycle.snapshot.nodes[n].devices)),
    ),
    "an order names every job once": ("order", lambda _, queue: np.zeros(len(queue), np.int64)),
    "an answer is a Status": ("pre_filter", lambda *_: True),
    "a status that does not pass has a reason": ("reserve", lambda *_: Status(Verdict.REJECT)),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_broken_plugin_fails_by_its_rule(rule: str) -> None:
    """A plugin that breaks a rule fails, and the message names the rule."""
    method, broken = BROKEN[rule]
    with pytest.raises(AssertionError, match=rule):
        check_plugin(type("Broken", (Answers,), {method: broken})())


@pytest.mark.parametrize(
    ("figures", "rule"),
    [
        ({"name": ""}, "a plugin has a name"),
        ({"reasons": ("node is even.",)}, "a reason is a clause"),
        ({"reasons": ("",)}, "a reason is a clause"),
    ],
)
def test_nameless_plugin_and_odd_reasons_fail(figures: dict[str, object], rule: str) -> None:
    """A plugin has a name, and its reasons are clauses without a full stop."""
    with pytest.raises(AssertionError, match=rule):
        check_plugin(type("Broken", (Answers,), figures)())


def test_plugin_without_an_extension_point_fails() -> None:
    """An object that takes part in nothing is not a plugin."""

    class Nothing:
        name = "Nothing"

    with pytest.raises(AssertionError, match="takes part in at least one extension point"):
        check_plugin(Nothing())


def test_plugin_with_dice_of_its_own_fails() -> None:
    """Chance that does not come from the decision's draw makes plans that cannot be repeated."""
    dice = iter(range(10**6))

    class Dice:
        name = "Dice"

        def score(self, cycle: Cycle) -> Scores:
            """Prefer another node in every decision, but not within one."""
            turn = cycle.state.setdefault("Dice", next(dice))
            return np.roll(np.arange(count(cycle)), turn // 5)

    with pytest.raises(AssertionError, match="same"):
        check_plugin(Dice())
