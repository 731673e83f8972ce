"""Only the scheduling cycle decides about waiting jobs. What else uses its parts is listed here, with the reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import seaway

SOURCE = Path(seaway.__file__).parent

HOME = "scheduling/cycle/", "scheduling/queueing/", "scheduling/engine.py"
"""The cycle, and the modules that define its parts."""

METHODS = {
    "hit": "limits",
    "model_hits": "limits",
    "hold": "amounts",
    "hold_all": "amounts",
    "claim": "amounts",
}
"""Uses of the tree of queues by the names of its methods. The names are rare enough to ignore what they belong to."""

NAMES = {
    "VictimSearch": "victims",
    "DisplacementRules": "victims",
    "may_displace_any": "victims",
    "may_displace_now": "victims",
    "earliest_place": "places",
    "hold_place": "places",
    "decide": "engine",
    "trial_placements": "engine",
}
"""Uses by the names of functions and classes that are imported from a module of `HOME`."""

MODULES = {"scheduling/engine.py", "scheduling/queueing/preemption.py", "scheduling/cycle/reserve.py"}
"""Modules of `NAMES`. Importing one as a whole would hide what is used."""

REPLAY = "replays without queues count amounts, as the references of logs do"

EXCEPTIONS = {
    ("application/admission.py", "engine"): "rejects jobs that do not fit an empty fleet",
    ("application/control/paths.py", "engine"): "says whether a job waits only for bounds on its links",
    ("application/control/scheduler/shadow.py", "engine"): "compares a challenger with what was decided",
    ("application/control/slo.py", "engine"): "says whether a running job fits elsewhere",
    ("application/control/standbys.py", "engine"): "says whether a second copy of a running job fits",
    ("application/control/state.py", "amounts"): "counts stored attempts",
    ("application/moves.py", "engine"): "places running jobs on the nodes that an administrator names",
    ("application/whatif/dry_run.py", "engine"): "tries changes of a request, to give advice",
    ("application/whatif/dry_run.py", "limits"): "tries changes of a request, to give advice",
    ("application/whatif/limitations.py", "limits"): "names the limits that close models of GPUs to a job",
    ("application/whatif/trace.py", "limits"): "leaves out jobs that exceed a limit alone",
    ("application/whatif/trial.py", "amounts"): "counts running jobs in the queues to which a question moves them",
    ("application/whatif/trial.py", "engine"): "explains why a job still waits",
    ("bootstrap/policies.py", "engine"): "compiles a policy on a small fleet",
    ("learning/packing/packing.py", "engine"): "packs jobs without queues",
    ("scheduling/shortage.py", "engine"): "counts the replicas that fit, to explain",
    ("simulation/outcome.py", "engine"): "counts the jobs of a replay that another policy would have placed",
    ("simulation/stopwatch.py", "engine"): REPLAY,
    ("simulation/waiting/easy.py", "engine"): REPLAY,
    ("testing/plugins.py", "amounts"): "tests queue disciplines of others",
    ("testing/plugins.py", "engine"): "tests policies of others",
}
"""Reasons by module and use. Remove a line with the last use."""


def uses(text: str) -> Iterator[str]:
    """Yield what a module uses of the parts of a cycle."""
    imports, calls = set[str](), set[str]()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                imports.update(each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                imports.update(f"{module}.{each.name}" for each in names)
            case ast.Call(func=ast.Attribute(attr=name)):
                calls.add(name)
            case _:
                pass
    if any(each.startswith("seaway.scheduling") for each in imports):
        yield from (METHODS[name] for name in calls & METHODS.keys())
    for each in imports:
        path, _, name = each.removeprefix("seaway.").rpartition(".")
        if f"{path.replace('.', '/')}.py".startswith(HOME) and name in NAMES:
            yield NAMES[name]
        if f"{each.removeprefix('seaway.').replace('.', '/')}.py" in MODULES:
            yield f"all of {each}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from seaway.scheduling.queueing.tree import Owner\nlive.tree.hit(owner, amounts)", {"limits"}),
        ("from seaway.scheduling.queueing.tree import Owner\nself._tree.claim(key, owner, amounts)", {"amounts"}),
        ("from seaway.scheduling.queueing.preemption import Candidate, VictimSearch as Search", {"victims"}),
        ("from seaway.scheduling.cycle.reserve import Reservations, hold_place", {"places"}),
        ("from seaway.scheduling.engine import Policy, decide", {"engine"}),
        ("from seaway.scheduling import engine", {"all of seaway.scheduling.engine"}),
        ("import seaway.scheduling.engine", {"all of seaway.scheduling.engine"}),
        ("from seaway.scheduling.queueing.tree import LimitHit\nself._clock.decide(queue)", set()),
        ("socket.hold(self)", set()),
    ],
)
def test_uses_are_found(text: str, found: set[str]) -> None:
    """Methods count where anything of the engine is imported, and functions where they are imported."""
    assert set(uses(text)) == found


def test_nothing_else_decides_about_waiting_jobs() -> None:
    """Limits, amounts, victims, places and the engine are for the cycle. Every exception has a reason and a use."""
    found = {
        (name, use)
        for path in sorted(SOURCE.rglob("*.py"))
        if not (name := path.relative_to(SOURCE).as_posix()).startswith(HOME)
        for use in uses(path.read_text(encoding="utf-8"))
    }
    assert not found - EXCEPTIONS.keys(), "use seaway.scheduling.cycle, or list the use with its reason"
    assert not EXCEPTIONS.keys() - found, "remove exceptions that are not needed any more"
