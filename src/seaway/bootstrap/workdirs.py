"""Working directories of jobs, according to the settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seaway.application.records import NS_PER_S, WorkdirLimits

if TYPE_CHECKING:
    from seaway.application.control.loop import Controller
    from seaway.application.workdirs import Key

NS_PER_H = 3600 * NS_PER_S


@dataclass(frozen=True, slots=True)
class WorkdirSettings:
    """Folders that users send with their jobs, stored in the database as archives."""

    url: str = ""
    """URL of this server for pods of jobs, which fetch archives from it. Empty for `server.public_url`. Pods must be
    allowed to connect to it, see `clusters.egress`.
    """
    image: str = ""
    """Image of the init container that fetches an archive. It needs a shell, and curl, python3 or wget. Empty for the
    image of the job.
    """
    limit_mib: int = 100
    """Maximum size of an archive, MiB."""
    quota_mib: int = 2048
    """Maximum size of all archives of a tenant, MiB. If it is full, archives that no job needs are removed."""
    retention_h: int = 72
    """Hours after which an archive that no job needs is removed."""


def workdir_limits(settings: WorkdirSettings) -> WorkdirLimits:
    """Return the limits of archives."""
    return WorkdirLimits(settings.limit_mib << 20, settings.quota_mib << 20, settings.retention_h * NS_PER_H)


def needed_workdirs(controller: Controller) -> frozenset[Key] | None:
    """Return the archives of unfinished jobs; None while the jobs are not known."""
    if controller.half_read or not controller.names.tenants:
        return None
    with controller.lock:
        jobs = [*controller.live.jobs.values(), *controller.live.arrays.known.values()]
    return frozenset((job.spec.tenant, job.spec.runtime.workdir) for job in jobs if job.spec.runtime.workdir)
