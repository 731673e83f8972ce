"""Changes of queues and tenants that a what-if question tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from seaway.application.control.tenancy import Names
from seaway.domain.errors import RejectedError
from seaway.domain.queues import Queue, check_tree
from seaway.domain.reasons import Reason, either
from seaway.domain.tenancy import DEFAULT, Quota, Tenant, unknown_name

Fields = Mapping[str, Any]
"""Values of the changed fields of a record, by name."""


@dataclass(frozen=True, slots=True)
class MovedJobs:
    """Jobs of a queue that count as if they had been submitted to another queue.

    Attributes
    ----------
    tenant
        Tenant of the jobs; empty for all.
    """

    queue: str
    to: str
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class QueueChanges:
    """Changes of queues and tenants.

    Attributes
    ----------
    queues
        Changed or new queues: name and changed fields of `Queue`.
    tenants
        The same for tenants. `quotas` maps a pool to changed fields of `Quota`.
    removed
        Queues to remove.
    moved
        Jobs that count in another queue.
    """

    queues: tuple[tuple[str, Fields], ...] = ()
    tenants: tuple[tuple[str, Fields], ...] = ()
    removed: tuple[str, ...] = ()
    moved: tuple[MovedJobs, ...] = ()

    def __bool__(self) -> bool:
        """Report whether anything changes."""
        return bool(self.queues or self.tenants or self.removed or self.moved)

    def queue_of(self, queue: str, tenant: str) -> str:
        """Return the queue in which jobs of a queue and tenant count."""
        for each in self.moved:
            if each.queue == queue and each.tenant in {"", tenant}:
                return each.to
        return queue

    def applied(self, names: Names) -> Names:
        """Return the queues, pools and tenants with the changes.

        Raises
        ------
        RejectedError
            If a change names an unknown object, or an operator could not store it.
        """
        queues, tenants = dict(names.queues), dict(names.tenants)
        for at, name in enumerate(self.removed):
            with errors_at(f"remove_queues.{at}"):
                if name not in queues:
                    raise unknown_name("queue", name, names.queues, where="")
                if name == DEFAULT:
                    raise RejectedError(Reason("not_removable", kind="queue", name=name))
                del queues[name]
        for at, (name, fields) in enumerate(self.queues):
            with errors_at(f"queues.{at}"):
                if name in self.removed:
                    raise RejectedError(Reason("queue_changed_and_removed", name=name), where="name")
                queues[name] = replace(queues.get(name) or Queue(name), **fields)
        for at, (name, fields) in enumerate(self.tenants):
            with errors_at(f"tenants.{at}"):
                tenants[name] = _changed_tenant(tenants.get(name) or Tenant(name), fields)
        after = Names()
        after.reset(queues.values(), names.pools.values(), tenants.values())
        self._check(names, after)
        return after

    def _check(self, before: Names, after: Names) -> None:
        """Check the changed records as they will be together."""
        for at, (name, _) in enumerate(self.queues):
            with errors_at(f"queues.{at}"):
                queue = after.queues[name]
                if queue.pool not in after.pools:
                    raise unknown_name("pool", queue.pool, after.pools)
                if queue.tenant and queue.tenant not in after.tenants:
                    raise unknown_name("tenant", queue.tenant, after.tenants)
                check_tree(queue, after.queues.values())
        for at, name in enumerate(self.removed):
            if children := sorted(each.name for each in after.queues.values() if each.parent == name):
                said = Reason("remove_child_too", name=name, child=children[0])
                raise RejectedError(said, where=f"remove_queues.{at}")
        for at, (name, _) in enumerate(self.tenants):
            with errors_at(f"tenants.{at}"):
                after.tenants[name].require_models()
            for pool in sorted(after.tenants[name].quotas.keys() - after.pools.keys()):
                raise unknown_name("pool", pool, after.pools, where=f"tenants.{at}.quotas.{pool}")
        for at, each in enumerate(self.moved):
            with errors_at(f"move_jobs.{at}"):
                _check_move(each, before, after)

    def require_leaves(self, before: Names, after: Names, jobs: Iterable[tuple[str, str]]) -> None:
        """Check that no job is in a removed queue or in one that gets children.

        Parameters
        ----------
        before, after
            Queues before and after the changes.
        jobs
            Queue and tenant of each unfinished job.

        Raises
        ------
        RejectedError
            If some jobs are; the message says how to move them.
        """
        counts = Counter(self.queue_of(*lane) for lane in jobs)
        for name in sorted(counts):
            if name in after.queues and (not after.leaves(name) or before.leaves(name)):
                continue
            if name not in after.queues and name not in self.removed:
                continue  # it is missing now, too
            code = "jobs_of_parent" if name in after.queues else "jobs_of_removed"
            raise RejectedError(Reason(code, queue=name, count=counts[name]), where="move_jobs")


def _changed_tenant(tenant: Tenant, fields: Fields) -> Tenant:
    quotas = {**tenant.quotas}
    for pool, changed in fields.get("quotas", {}).items():
        quotas[pool] = replace(quotas.get(pool) or Quota(), **changed)
    return replace(tenant, **{**fields, "quotas": quotas})


def _check_move(move: MovedJobs, before: Names, after: Names) -> None:
    if move.queue not in before.queues:
        raise unknown_name("queue", move.queue, before.queues)
    if move.tenant and move.tenant not in before.tenants:
        raise unknown_name("tenant", move.tenant, before.tenants)
    if move.to not in after.queues:
        raise unknown_name("queue", move.to, after.queues, where="to")
    if leaves := after.leaves(move.to):
        use = either([repr(each.name) for each in leaves[:3]])
        raise RejectedError(Reason("queue_divides", queue=move.to, use=use), where="to")
    only = after.queues[move.to].tenant
    if only and only not in {move.tenant, before.queues[move.queue].tenant}:
        raise RejectedError(Reason("queue_of_tenant", queue=move.to, tenant=only), where="to")


@contextmanager
def errors_at(path: str) -> Iterator[None]:
    """Put a path before the fields of errors."""
    try:
        yield
    except RejectedError as error:
        where = f"{path}.{error.where}" if error.where else path
        raise RejectedError(error.message, where=where, also=error.also) from None
