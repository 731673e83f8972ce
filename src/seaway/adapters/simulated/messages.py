"""Typed JSON messages between the server of simulated clusters and its clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from pydantic import Discriminator, TypeAdapter

from seaway.adapters.simulated.cluster import SimulatedCluster, read_copy_name
from seaway.adapters.simulated.faults import CRASH, PULL_ERROR, REFUSAL
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.errors import RejectedError
from seaway.domain.network import Gateway, Link
from seaway.domain.reasons import Reason, received
from seaway.wire.message import code_of


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """Fault to inject.

    Attributes
    ----------
    target
        Target of the fault, which depends on the kind; empty for none.
    for_s
        Duration in seconds, for `node`, `device`, `cut` and `hang`; None for no end.
    """

    kind: str
    target: str = ""
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """Kind of fault.

    Attributes
    ----------
    target
        Name of its target; empty for none, in brackets if optional.
    says
        Description in one line.
    cause, heal
        Functions that start and end it; `heal` is None if it cannot be ended.
    """

    target: str
    says: str
    cause: Callable[[SimulatedCluster, FaultRequest], None]
    heal: Callable[[SimulatedCluster, str], None] | None


def _fail_copy(cluster: SimulatedCluster, trouble: FaultRequest) -> None:
    cluster.fail_copy(*read_copy_name(trouble.target), CRASH)


def _vanish(cluster: SimulatedCluster, trouble: FaultRequest) -> None:
    cluster.vanish(*read_copy_name(trouble.target))


def _slow(cluster: SimulatedCluster, trouble: FaultRequest) -> None:
    try:
        delay_s = float(trouble.target)
    except ValueError:
        delay_s = -1.0
    if not 0 <= delay_s < 1e9:
        raise RejectedError(f"{trouble.target!r} is not a number of seconds from 0 up", where="target")
    cluster.slow_down(delay_s)


KINDS: dict[str, Kind] = {
    "node": Kind(
        "NODE",
        "a node fails, with everything on it",
        lambda cluster, trouble: cluster.fail_node(trouble.target, trouble.for_s),
        lambda cluster, target: cluster.heal_node(target),
    ),
    "device": Kind(
        "DEVICE",
        "a device becomes unhealthy, and what uses it fails",
        lambda cluster, trouble: cluster.fail_device(trouble.target, trouble.for_s),
        lambda cluster, target: cluster.heal_device(target),
    ),
    "cut": Kind(
        "",
        "the cluster cannot be reached; running jobs continue",
        lambda cluster, trouble: cluster.disconnect(trouble.for_s),
        lambda cluster, _: cluster.reconnect(),
    ),
    "hang": Kind(
        "",
        "calls hang until they time out",
        lambda cluster, trouble: cluster.disconnect(trouble.for_s, hangs=True),
        lambda cluster, _: cluster.reconnect(),
    ),
    "slow": Kind(
        "SECONDS",
        "new workloads take this long to start",
        _slow,
        lambda cluster, _: cluster.slow_down(None),
    ),
    "refuse": Kind(
        "[REASON]",
        "deployments to come are refused",
        lambda cluster, trouble: cluster.refuse(trouble.target or REFUSAL),
        lambda cluster, _: cluster.refuse(""),
    ),
    "start": Kind(
        "[REASON]",
        "copies to come fail at their start",
        lambda cluster, trouble: cluster.fail_starts(trouble.target or PULL_ERROR),
        lambda cluster, _: cluster.fail_starts(""),
    ),
    "copy": Kind("COPY", "a copy fails while it runs", _fail_copy, None),
    "vanish": Kind("COPY", "a copy is removed behind Seaway's back", _vanish, None),
}
"""Kinds of faults by name."""

EVERYTHING = "all"
"""Argument of `heal` that ends all injected faults."""


def cause(cluster: SimulatedCluster, trouble: FaultRequest) -> None:
    """Inject a fault.

    Raises
    ------
    RejectedError
        When the kind or the target does not exist.
    """
    kind = _kind(trouble.kind)
    if kind.target and not kind.target.startswith("[") and not trouble.target:
        raise RejectedError(f"say which: {trouble.kind} needs {kind.target}", where="target")
    if trouble.for_s is not None and not 0 <= trouble.for_s < 1e9:
        raise RejectedError(f"{trouble.for_s} is not a number of seconds from 0 up", where="for_s")
    kind.cause(cluster, trouble)


def heal(cluster: SimulatedCluster, kind: str, target: str = "") -> None:
    """End a fault, or all injected faults.

    Raises
    ------
    RejectedError
        When the kind does not exist, or cannot be ended.
    """
    if kind == EVERYTHING:
        cluster.heal()
        return
    mend = _kind(kind).heal
    if mend is None:
        raise RejectedError(f"a fault of kind {kind!r} is over as soon as it happened", where="kind")
    mend(cluster, target)


def _kind(name: str) -> Kind:
    if name not in KINDS:
        raise RejectedError(f"fault {name!r} not found; available: {', '.join(KINDS)}", where="kind")
    return KINDS[name]


@dataclass(frozen=True, slots=True)
class Create:
    """Command to create a deployment."""

    deployment: Deployment
    kind: Literal["create"]


@dataclass(frozen=True, slots=True)
class Remove:
    """Command to remove a workload."""

    removal: Removal
    kind: Literal["remove"]


@dataclass(frozen=True, slots=True)
class About:
    """Description of a server.

    Attributes
    ----------
    clusters
        Names of the clusters, in the order that decides ties.
    """

    clusters: tuple[str, ...]
    gateways: tuple[Gateway, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Error response.

    Attributes
    ----------
    reason
        Code and parameters of the message; empty without a code.
    """

    message: str
    where: str = ""
    retry_after_s: int = 1
    reason: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The message, as a reason if it has a code."""
        return received(self.reason, self.message)


def problem_of(message: str, where: str = "", retry_after_s: int = 1) -> Problem:
    """Return the response for an error."""
    return Problem(message, where, retry_after_s, code_of(message) if isinstance(message, Reason) else {})


@dataclass(frozen=True, slots=True)
class Coded:
    """Answer to a request, with the codes and parameters of the reasons in it by their texts."""

    answers: tuple[Answer, ...] = ()
    changes: Changes | None = None
    reasons: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Healing:
    """Request to end a fault."""

    kind: str
    target: str = ""


COMMANDS: TypeAdapter[list[Any]] = TypeAdapter(list[Annotated[Create | Remove, Discriminator("kind")]])
CODED: TypeAdapter[Coded] = TypeAdapter(Coded)
ABOUT: TypeAdapter[About] = TypeAdapter(About)
DEPLOYMENT: TypeAdapter[Deployment] = TypeAdapter(Deployment)
PROBLEM: TypeAdapter[Problem] = TypeAdapter(Problem)
FAULT_REQUEST: TypeAdapter[FaultRequest] = TypeAdapter(FaultRequest)
HEALING: TypeAdapter[Healing] = TypeAdapter(Healing)


def write_commands(commands: Sequence[Command]) -> bytes:
    """Encode commands in order. Omit default values, which most fields of a deployment have."""
    wrapped = [Remove(each, "remove") if isinstance(each, Removal) else Create(each, "create") for each in commands]
    return COMMANDS.dump_json(wrapped, exclude_defaults=True)


def read_commands(body: bytes) -> list[Command]:
    """Decode the output of `write_commands`.

    Raises
    ------
    pydantic.ValidationError, seaway.domain.errors.RejectedError
        When the input has another form.
    """
    return [each.removal if isinstance(each, Remove) else each.deployment for each in COMMANDS.validate_json(body)]


def write_answers(answers: Sequence[Answer]) -> bytes:
    """Encode the answers to commands."""
    return CODED.dump_json(Coded(tuple(answers), reasons=_codes(each.reason for each in answers)))


def read_answers(body: bytes) -> list[Answer]:
    """Decode the output of `write_answers`."""
    read = CODED.validate_json(body)
    known = _texts(read)
    return [replace(each, reason=known.get(each.reason, each.reason)) for each in read.answers]


def write_changes(changes: Changes) -> bytes:
    """Encode changes without default values."""
    return CODED.dump_json(Coded(changes=changes, reasons=_codes(_reasons(changes))), exclude_defaults=True)


def read_changes(body: bytes) -> Changes:
    """Decode the output of `write_changes`."""
    read = CODED.validate_json(body)
    changes = read.changes or Changes("", complete=False)
    known = _texts(read)
    if not known:
        return changes

    def said(reason: str) -> str:
        return known.get(reason, reason)

    workloads = tuple(
        replace(
            each,
            reason=said(each.reason),
            replicas=tuple(replace(one, reason=said(one.reason)) for one in each.replicas),
            endpoints=tuple(replace(one, reason=said(one.reason)) for one in each.endpoints),
        )
        for each in changes.workloads
    )
    return replace(changes, workloads=workloads)


def _reasons(changes: Changes) -> Iterator[str]:
    for each in changes.workloads:
        yield each.reason
        yield from (one.reason for one in each.replicas)
        yield from (one.reason for one in each.endpoints)


def _codes(reasons: Iterable[str]) -> dict[str, dict[str, Any]]:
    return {str(each): code_of(each) for each in reasons if isinstance(each, Reason)}


def _texts(read: Coded) -> Mapping[str, str]:
    return {text: received(code, text) for text, code in read.reasons.items()}
