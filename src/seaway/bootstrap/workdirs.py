"""Working directories of jobs, according to the settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.application.records import NS_PER_S, WorkdirLimits
from seaway.domain.errors import RejectedError

if TYPE_CHECKING:
    from seaway.adapters.s3 import S3Bucket
    from seaway.application.control.loop import Controller
    from seaway.application.ports.clock import Clock
    from seaway.application.ports.store import Store
    from seaway.application.ports.templates import Delivery
    from seaway.application.workdirs import Key, Workdirs

NS_PER_H = 3600 * NS_PER_S

BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/[A-Za-z0-9/._-]{0,100})?")

LARGEST_MIB = 5 << 10
"""Maximum size of an object that a bucket accepts in one request, MiB."""


@dataclass(frozen=True, slots=True)
class WorkdirSettings:
    """Folders that users send with their jobs, stored as archives in the database or in a bucket."""

    url: str = ""
    """URL of this server for pods of jobs, which fetch archives from it. Empty for `server.public_url`. Pods must be
    allowed to connect to it, see `clusters.egress`.
    """
    ca: str = ""
    """File with certificate authorities, PEM, that pods trust when they fetch archives, instead of those of their
    image. Seaway trusts them for the bucket. It needs those of both the server and the bucket.
    """
    bucket: str = ""
    """Bucket for archives, such as `s3://archives` or `s3://archives/seaway`, which needs the extra `s3`. Empty for the
    database. Clients and pods must be able to connect to it.
    """
    endpoint: str = ""
    """URL of the store of the bucket. Empty for Amazon S3 in the region."""
    region: str = "us-east-1"
    """Region of the bucket."""
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


def bucket_name(address: str) -> tuple[str, str]:
    """Return the name of a bucket and the prefix of its objects, from an address like `s3://archives/seaway`.

    Raises
    ------
    RejectedError
        If it is no such address.
    """
    found = BUCKET.fullmatch(address)
    if not found:
        said = f"{address!r} is not an address like s3://archives or s3://archives/seaway"
        raise RejectedError(said, where="[workdirs] bucket")
    return found[1], (found[2] or "").strip("/")


def make_workdirs(settings: WorkdirSettings, public_url: str, store: Store, clock: Clock) -> tuple[Workdirs, Delivery]:
    """Return the archives, and the way in which pods get them.

    Parameters
    ----------
    public_url
        URL of the server for users; empty if it has none.

    Raises
    ------
    RejectedError
        If the certificates cannot be read, or the extra for buckets is not installed.
    """
    import ssl

    from seaway.application.ports.templates import Delivery
    from seaway.application.workdirs import Workdirs

    bucket, pem = make_bucket(settings), ""
    if settings.ca:
        try:
            ssl.create_default_context(cafile=settings.ca)
            pem = Path(settings.ca).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            said = f"{settings.ca} cannot be read as certificates: {error}"
            raise RejectedError(said, where="[workdirs] ca") from None
    workdirs = Workdirs(store, clock, workdir_limits(settings), bucket)
    url = (settings.url or public_url).rstrip("/")
    there = bucket.endpoint if bucket else ""
    return workdirs, Delivery(url, settings.image, workdirs.token, workdirs.in_bucket, there, pem)


def make_bucket(settings: WorkdirSettings) -> S3Bucket | None:
    """Return the bucket for archives; None for the database. Raises as `make_workdirs`."""
    if not settings.bucket:
        return None
    from seaway.adapters.s3 import S3Bucket

    return S3Bucket(*bucket_name(settings.bucket), settings.endpoint, settings.region, settings.ca)


def needed_workdirs(controller: Controller) -> frozenset[Key] | None:
    """Return the archives of unfinished jobs; None while the jobs are not known."""
    if controller.half_read or not controller.names.tenants:
        return None
    with controller.lock:
        jobs = [*controller.live.jobs.values(), *controller.live.arrays.known.values()]
    return frozenset((job.spec.tenant, job.spec.runtime.workdir) for job in jobs if job.spec.runtime.workdir)
