"""Requests and views of joins of clusters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from seaway.wire.fields import ReferenceOrNone
from seaway.wire.message import CodedOut, CodeOut, Incoming, Shown

LevelName = Literal["ok", "note", "warning", "error"]


class NewJoinIn(Incoming):
    """A cluster to join, by a kubeconfig or by a command."""

    kubeconfig: str = Field("", max_length=256 * 1024)
    """Kubeconfig with a token or a certificate. Programs (`exec`) and references to files are rejected.

    Empty for a command that creates a service account and sends its kubeconfig.
    """
    context: ReferenceOrNone = ""
    """Context in the kubeconfig. Default: the current one."""


class JoinEndIn(Incoming):
    """The end of a join."""

    name: ReferenceOrNone = ""
    """Name of the cluster. Default: that of the context, or the one that the cluster had before."""
    replace: bool = False
    """True to replace the kubeconfig of a joined cluster, such as one with an expired token."""


class CheckOut(Shown):
    """Result of a check, as of `seaway doctor`."""

    check: str
    level: LevelName
    message: str
    """Result in words."""
    reason: CodeOut
    remedy: CodedOut | None
    """Remedy; null if nothing is to be done."""


class JoinOut(Shown):
    """A join in progress."""

    id: str
    stage: Literal["invited", "checking", "checked"]
    """`invited`: the command has not sent a kubeconfig yet."""
    checks: list[CheckOut]
    """Results so far, in their order."""
    usable: bool
    """True if the checks have ended and the join can be completed."""
    name: str
    """Name that the cluster gets by default."""
    by: str
    expires_at: str


class JoinCreated(JoinOut):
    """A new join."""

    command: str
    """Command for a shell with kubectl; empty with a kubeconfig. `URL` in it is the URL of the server. It has a token,
    which is shown only now and is valid for 15 minutes.
    """


class JoinList(Shown):
    """Joins in progress, and joined clusters."""

    joins: list[JoinOut]
    joined: list[str]
    """Names of the clusters that were joined on this server."""
    obstacle: CodedOut | None
    """Reason why no cluster can be joined on this server; null if one can."""


class JoinDone(Shown):
    """A joined cluster."""

    name: str
    note: str
    """Next step; empty if there is none."""
    problems: list[CodedOut]
    """Problems of its nodes, and missing rights."""


def join_command(path: str, token: str) -> str:
    """Return the command of a join, with `URL` for the URL of the server."""
    return f"curl -fsS -H 'Authorization: Bearer {token}' URL{path}/script | sh"
