"""Notifications of a control plane, according to its settings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.bootstrap.data import write_private
from seaway.domain.errors import RejectedError
from seaway.domain.notifications import require_address

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from seaway.application.control.loop import Controller
    from seaway.application.notifications import Notifications
    from seaway.application.ports.clock import Clock
    from seaway.application.ports.store import Store
    from seaway.application.writer import Writer
    from seaway.domain.job_record import JobRecord

KEY_FILE = "notification-key"
"""File in the data folder with the key that encrypts secrets."""

SMTP_SECURITY = ("starttls", "tls", "none")
MAX_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """Messages about jobs to webhooks, Slack and e-mail addresses."""

    allowed_hosts: str = ""
    """Private receivers of webhooks, separated by commas: networks, such as `10.1.0.0/16`, and host names. Without
    it, only public addresses are allowed.
    """
    timeout_s: float = 10
    """Timeout of a try, seconds; more than 0 and at most 60."""
    retry_for_h: float = 24
    """Hours for which an undelivered message is tried again, with a delay from 5 seconds to one hour. Then it is a
    dead letter.
    """
    encryption_key: str = ""
    """Key that encrypts secrets of webhooks and URLs of Slack in the database, 32 bytes in base64. Empty for
    `notification-key` in the data folder, which is created. Several processes on one database need the same key.
    """
    smtp_host: str = ""
    """SMTP server for e-mails. Empty to send none."""
    smtp_port: int = 587
    """Port of the SMTP server."""
    smtp_security: str = "starttls"
    """Protection of the connection: `starttls`, `tls` or `none`."""
    smtp_user: str = ""
    """User at the SMTP server. Empty for none."""
    smtp_password: str = ""
    """Password at the SMTP server."""
    smtp_from: str = ""
    """Address in `From` of e-mails. Required with `smtp_host`."""
    email_domains: str = ""
    """Domains of addresses that may get e-mails, separated by commas, such as `example.com`. Required with
    `smtp_host`, since each user can name addresses.
    """


_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


def split_hosts(text: str) -> tuple[list[str], list[str]]:
    """Return the networks and the host names of `allowed_hosts`.

    Raises
    ------
    RejectedError
        If an entry is neither.
    """
    networks, hosts = [], []
    for each in filter(None, map(str.strip, text.split(","))):
        try:
            networks.append(str(ip_network(each)))
        except ValueError:
            if not _HOST.fullmatch(each) or not re.search("[A-Za-z]", each):
                why = f"{each!r} is not a network like 10.1.0.0/16, with no bits beyond its length, or a host name"
                raise RejectedError(why, where="[notifications] allowed_hosts") from None
            hosts.append(each)
    return networks, hosts


def notification_errors(settings: NotificationSettings) -> list[RejectedError]:
    """Return the errors of the settings of notifications."""
    wrong = {
        "timeout_s": (f"must be more than 0 and at most {MAX_TIMEOUT_S}", not 0 < settings.timeout_s <= MAX_TIMEOUT_S),
        "smtp_security": (
            f"must be one of {', '.join(SMTP_SECURITY)}",
            settings.smtp_security not in SMTP_SECURITY,
        ),
        "smtp_port": (f"{settings.smtp_port} is not a port", not 0 < settings.smtp_port <= 65_535),
        "smtp_from": ("is required with smtp_host", bool(settings.smtp_host and not settings.smtp_from)),
        "email_domains": ("is required with smtp_host", bool(settings.smtp_host and not settings.email_domains)),
        "smtp_password": (
            "a user and a password require each other",
            bool(settings.smtp_user) != bool(settings.smtp_password),
        ),
    }
    problems = [
        RejectedError(why, where=f"[notifications] {name}") for name, (why, applies) in wrong.items() if applies
    ]
    try:
        split_hosts(settings.allowed_hosts)
        if settings.smtp_from:
            require_address(settings.smtp_from, "[notifications] smtp_from")
        if settings.encryption_key:
            encryption_key(settings, None)
    except RejectedError as error:
        problems.append(error)
    return problems


def encryption_key(settings: NotificationSettings, folder: Path | None) -> bytes:
    """Return the key that encrypts secrets: that of the settings, or that of the data folder, which is created.

    Parameters
    ----------
    folder
        Data folder; None for a key that is lost with the process.

    Raises
    ------
    RejectedError
        If it is invalid, or the file cannot be used.
    """
    from seaway.adapters.notifications.vault import draw_key, read_key

    if settings.encryption_key:
        return read_key(settings.encryption_key, "[notifications] encryption_key")
    if folder is None:
        return read_key(draw_key(), KEY_FILE)
    path = folder / KEY_FILE
    try:
        if not path.exists() or not path.stat().st_size:  # a full disk leaves an empty file
            write_private(path, f"{draw_key()}\n")
        return read_key(path.read_text(encoding="ascii"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RejectedError(f"cannot be used: {error}", where=str(path)) from error


def waiting_jobs(controller: Controller, wanted: Callable[[JobRecord], bool]) -> list[tuple[JobRecord, int]]:
    """Return the waiting jobs and arrays for which `wanted` is true.

    Each has the begin of its wait by the wall clock, nanoseconds since 1970.
    """
    with controller.lock:
        jobs = list(controller.live.jobs.values())
        arrays = [each for each in controller.live.arrays.known.values() if each.state.waits]
    since_ns = controller.live.stages.waits_since_ns
    waiting = [(job, begun_ns) for job in filter(wanted, jobs) if (begun_ns := since_ns(job)) is not None]
    return [(each, each.submitted_ns) for each in filter(wanted, arrays)] + waiting


def present_reason(controller: Controller, job: JobRecord) -> str:
    """Return why a job waits now, which may be stored some seconds later."""
    with controller.lock:
        queued = controller.live.arrays.first_queued(job.id) if job.is_array else job
        return controller.scheduler.reasons.of(queued).stored if queued else job.reason


def make_notifications(  # noqa: PLR0913, PLR0917  # wiring
    settings: NotificationSettings,
    store: Store,
    writer: Writer,
    clock: Clock,
    controller: Controller,
    random: Random,
    key: bytes,
    public_url: str,
) -> Notifications:
    """Create the notifications of a control plane, not started.

    Parameters
    ----------
    key
        Key that encrypts secrets.
    public_url
        URL of the pages, for links; empty if unknown.
    """
    from seaway.adapters.notifications.channels import NetworkChannels
    from seaway.adapters.notifications.guard import Guard
    from seaway.adapters.notifications.mail import SmtpServer
    from seaway.adapters.notifications.vault import AesVault
    from seaway.application.notifications import Notifications
    from seaway.application.notifier import Notifier

    networks, hosts = split_hosts(settings.allowed_hosts)
    smtp = SmtpServer(
        settings.smtp_host,
        settings.smtp_port,
        settings.smtp_from,
        settings.smtp_security,
        settings.smtp_user,
        settings.smtp_password,
        tuple(each.strip().lower() for each in settings.email_domains.split(",") if each.strip()),
        settings.timeout_s,
    )
    channels = NetworkChannels(Guard([ip_network(each) for each in networks], hosts), smtp, settings.timeout_s, clock)
    vault = AesVault(key)
    notifier = Notifier(
        store,
        writer,
        clock,
        lambda wanted: waiting_jobs(controller, wanted),
        channels,
        vault,
        random,
        reason=partial(present_reason, controller),
        retry_for_s=settings.retry_for_h * S_PER_H,
        public_url=public_url.rstrip("/"),
    )
    return Notifications(store, writer, clock, notifier, channels, vault, smtp.obstacle)


S_PER_H = 3600
