"""Names and identities of the clusters that contexts refer to."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Set
from random import Random

from seaway.adapters.kubernetes.collect.health import Health
from seaway.adapters.kubernetes.connection.api import Api
from seaway.adapters.kubernetes.connection.backoff import Backoff
from seaway.adapters.kubernetes.connection.contexts import Context, cluster_name
from seaway.adapters.kubernetes.connection.responses import ApiError
from seaway.adapters.kubernetes.objects.decode import UndecodableError, read_body
from seaway.adapters.kubernetes.objects.meta import Item
from seaway.application.clusters import ClusterNames
from seaway.domain.errors import UnavailableError

IDENTITY_PATH = "/api/v1/namespaces/kube-system"
"""Object with the UID that identifies a cluster: it exists for the cluster's whole life.

References
----------
Kubernetes KEP-2149, ClusterId for ClusterSet identification: the uid of kube-system as a cluster's id.
"""

NO_IDENTITY_REASONS = frozenset({"Forbidden", "NotFound"})
"""Reasons of an API server for refusing to return the UID."""

MAX_PAUSE_S = 1.0
"""Maximum pause between two requests. Seaway ignores a cluster's reports until the cluster is identified."""


async def read_identity(api: Api, health: Health, random: Random) -> str:
    """Request a cluster's UID until it answers; return an empty text if Seaway may not read it."""
    backoff = Backoff(random, max_s=MAX_PAUSE_S)
    while True:
        try:
            return read_body(await api.get(IDENTITY_PATH), Item).metadata.uid
        except ApiError as error:
            if error.reason in NO_IDENTITY_REASONS:
                return ""
            health.failed(IDENTITY_PATH, str(error))
        except UnavailableError as error:
            health.failed(IDENTITY_PATH, str(error))
        except UndecodableError as error:
            health.failed(IDENTITY_PATH, f"{api.name} does not answer like Kubernetes: {error}")
        await asyncio.sleep(backoff.failed())


def assign_names(
    uids: Mapping[Context, str | None], before: Mapping[Context, str], names: ClusterNames
) -> dict[Context, str]:
    """Return the cluster name of each context. A second context of the same cluster gets no name.

    A known cluster keeps its name. A new cluster gets the name of its context; equal names get the file's name as a
    suffix. A cluster that has not answered yet keeps its previous name until its UID shows that it is another cluster.

    Parameters
    ----------
    uids
        UIDs of the clusters; empty if Seaway may not read it, None if the cluster has not answered yet.
    before
        Current names of the clusters, by context.
    """
    given: dict[Context, str] = {}
    taken: set[str] = set()
    fresh: dict[Context | str, Context] = {}
    for context in sorted(uids, key=lambda each: (uids[each] is None, each not in before, each)):
        uid = uids[context]
        name = names.of(uid, context.server)
        if name and name not in taken:
            given[context] = name
            taken.add(name)
        elif uid is None:
            fresh[context] = context
        elif not name:
            fresh.setdefault(uid or context.server or context, context)
    blocked = taken | names.taken()
    often = Counter([*blocked, *(cluster_name(context.context) for context in fresh.values())])
    for context in fresh.values():
        name = before.get(context, "")
        if not name or name in (taken if uids[context] is None else blocked):
            plain = cluster_name(context.context)
            name = _unused(suffixed(context) if often[plain] > 1 else plain, blocked)
        given[context] = name
        taken.add(name)
        blocked.add(name)
    return given


def _unused(name: str, blocked: Set[str]) -> str:
    """Return a free name; append a number if `name` is blocked."""
    unique, number = name, 2
    while unique in blocked:
        unique, number = f"{name}-{number}", number + 1
    return unique


def suffixed(context: Context) -> str:
    """Return the context's name with its file's name as a suffix."""
    return f"{cluster_name(context.context)}-{cluster_name(context.file.stem)}"
