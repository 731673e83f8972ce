"""Typed JSON messages between the server of simulated clusters and its clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator, TypeAdapter

from seaway.adapters.simulated.fault_commands import Trouble
from seaway.application.ports.backend import Answer, Changes, Command, Removal
from seaway.domain.deployment import Deployment
from seaway.domain.network import Gateway, Link


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
    """Error response."""

    message: str
    where: str = ""
    retry_after_s: int = 1


@dataclass(frozen=True, slots=True)
class Healing:
    """Request to end a fault."""

    kind: str
    target: str = ""


COMMANDS: TypeAdapter[list[Any]] = TypeAdapter(list[Annotated[Create | Remove, Discriminator("kind")]])
ANSWERS: TypeAdapter[list[Answer]] = TypeAdapter(list[Answer])
CHANGES: TypeAdapter[Changes] = TypeAdapter(Changes)
ABOUT: TypeAdapter[About] = TypeAdapter(About)
DEPLOYMENT: TypeAdapter[Deployment] = TypeAdapter(Deployment)
PROBLEM: TypeAdapter[Problem] = TypeAdapter(Problem)
TROUBLE: TypeAdapter[Trouble] = TypeAdapter(Trouble)
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
