"""What goes between the server of simulated clusters and its clients: JSON, read and written by type."""

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
    """The command to take a deployment over."""

    deployment: Deployment
    kind: Literal["create"]


@dataclass(frozen=True, slots=True)
class Remove:
    """The command to remove a copy."""

    removal: Removal
    kind: Literal["remove"]


@dataclass(frozen=True, slots=True)
class About:
    """What a server has.

    Attributes
    ----------
    clusters
        Names, in the order that decides ties.
    """

    clusters: tuple[str, ...]
    gateways: tuple[Gateway, ...]
    links: tuple[Link, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a request was not carried out."""

    message: str
    where: str = ""
    retry_after_s: int = 1


@dataclass(frozen=True, slots=True)
class Healing:
    """Which fault is to end."""

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
    """Write commands in their order, without what is at its default: a deployment is mostly that."""
    wrapped = [Remove(each, "remove") if isinstance(each, Removal) else Create(each, "create") for each in commands]
    return COMMANDS.dump_json(wrapped, exclude_defaults=True)


def read_commands(body: bytes) -> list[Command]:
    """Read what `write_commands` wrote.

    Raises
    ------
    pydantic.ValidationError, seaway.domain.errors.RejectedError
        When it is something else.
    """
    return [each.removal if isinstance(each, Remove) else each.deployment for each in COMMANDS.validate_json(body)]
