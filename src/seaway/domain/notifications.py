"""Notifications: messages about jobs to webhooks, Slack and e-mail addresses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from seaway.domain.errors import RejectedError
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import require_name

NS_PER_S = 1_000_000_000

LONGEST_URL = 2000
"""Maximum length of a URL, characters."""

MAX_ADDRESSES = 20
"""Maximum number of addresses of an e-mail."""

WAIT_LIMIT_S = 3600
"""Default of `Notification.wait_limit_s`."""

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
MAIL_ADDRESS = re.compile(rf"[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]{{1,64}}@{_LABEL}(?:\.{_LABEL}){{0,9}}")
"""Addresses as browsers accept them, with a limited length."""


URL = re.compile(
    r"(https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?)(?::[0-9]{1,5})?)(?:[/?][!\"$-~]*)?"
)
"""URLs of webhooks; the group is the scheme and host."""


class Occasion(StrEnum):
    """Occasion of a message."""

    STARTED = "started"
    """All replicas of the job run."""
    FAILED = "failed"
    """The job failed, and is not tried again."""
    PREEMPTED = "preempted"
    """The job was displaced by another, and waits again."""
    WAITS_TOO_LONG = "waits_too_long"
    """The job has waited longer than the limit of the notification."""
    LEASE_EXPIRES = "lease_expires"
    """The lease of the job ends soon."""
    FINISHED = "finished"
    """The job completed, failed, was cancelled or was skipped."""


DEFAULT_OCCASIONS = (Occasion.FAILED, Occasion.PREEMPTED, Occasion.FINISHED)
"""Occasions of messages if none are given."""


@dataclass(frozen=True, slots=True)
class Notify:
    """Receiver that a job names for messages about itself.

    Attributes
    ----------
    to
        Name of a notification of its tenant, or an e-mail address.
    when
        Occasions of messages.
    """

    to: str
    when: tuple[Occasion, ...] = DEFAULT_OCCASIONS

    def __post_init__(self) -> None:
        """Check the receiver."""
        if is_address(self.to):
            require_address(self.to, "to")
        else:
            require_name("notification", self.to, where="to")
        if not self.when:
            raise RejectedError(Reason("name_one_of", names=tuple(Occasion)), where="when")


class Channel(StrEnum):
    """Ways to send a message."""

    WEBHOOK = "webhook"
    """A signed request."""
    SLACK = "slack"
    """An incoming webhook of Slack, or of a service with the same format."""
    EMAIL = "email"


@dataclass(frozen=True, slots=True)
class Notification:
    """Messages about some jobs to one receiver.

    Attributes
    ----------
    tenant
        Tenant that owns it; empty for one of operators, about the jobs of all tenants.
    url
        URL of a webhook. That of Slack ends after the host here, because the rest is a secret.
    addresses
        Addresses of e-mails.
    sealed
        Encrypted secret: the key of signatures of a webhook, or the whole URL of Slack; empty for e-mails.
    on
        Occasions of messages; none if it has messages only about jobs that name it.
    queue
        Queue of the jobs; empty for all.
    job
        ID or name of the jobs; empty for all.
    wait_limit_s
        Duration of a wait that is too long, seconds.
    created_by, changed_ns
        Name of the token that last changed it, and the time.
    """

    tenant: str
    name: str
    channel: Channel
    url: str = ""
    addresses: tuple[str, ...] = ()
    sealed: str = ""
    on: tuple[Occasion, ...] = ()
    queue: str = ""
    job: str = ""
    wait_limit_s: int = WAIT_LIMIT_S
    created_by: str = ""
    changed_ns: int = 0

    def __post_init__(self) -> None:
        """Reject invalid combinations.

        Raises
        ------
        RejectedError
            With the field.
        """
        mail = self.channel is Channel.EMAIL
        if len(self.addresses) > MAX_ADDRESSES:
            raise RejectedError(Reason("addresses_too_many", most=MAX_ADDRESSES), where="addresses")
        wrong = {
            "url_of_webhook": ("url", mail and bool(self.url)),
            "name_an_address": ("addresses", mail and not self.addresses),
            "addresses_of_email": ("addresses", not mail and bool(self.addresses)),
            "not_positive": ("wait_limit", self.wait_limit_s <= 0),
        }
        for code, (where, applies) in wrong.items():
            if applies:
                raise RejectedError(Reason(code), where=where)
        for at, address in enumerate(self.addresses):
            require_address(address, f"addresses[{at}]")
        if not mail:
            require_url(self.url)

    @property
    def target(self) -> str:
        """Description of the receiver without secrets."""
        return ", ".join(self.addresses) or self.url

    @classmethod
    def of_address(cls, tenant: str, address: str) -> Notification:
        """Return the receiver of messages about jobs of a tenant that name an e-mail address."""
        return cls(tenant, address, Channel.EMAIL, addresses=(address,))

    def covers(self, tenant: str, queue: str, job: tuple[str, str]) -> bool:
        """Report whether it has messages about a job of a tenant in a queue, with this ID and name."""
        return self.tenant in ("", tenant) and self.queue in ("", queue) and self.job in ("", *job)


def is_address(receiver: str) -> bool:
    """Report whether a receiver is an e-mail address, not the name of a notification."""
    return "@" in receiver


def require_address(address: str, where: str) -> None:
    """Check an e-mail address.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    if len(address) > 254 or not MAIL_ADDRESS.fullmatch(address):
        raise RejectedError(Reason("not_an_address", value=address[:80]), where=where)


def require_url(url: str) -> None:
    """Check the URL of a webhook. It has no user, since receivers verify the signature, and no fragment.

    Raises
    ------
    RejectedError
        If it is invalid.
    """
    if len(url) > LONGEST_URL or not URL.fullmatch(url):
        text = Reason("use_hook_url")
        raise RejectedError(text, where="url")


def origin(url: str) -> str:
    """Return the scheme and host of a URL of `require_url`."""
    found = URL.fullmatch(url)
    return f"{found[1]}/" if found else ""


class DeliveryState(StrEnum):
    """State of a message."""

    WAITING = "waiting"
    """Sent now, or tried again later."""
    DEAD = "dead"
    """Not tried again, unless a user re-sends it."""
    DELIVERED = "delivered"
    """Accepted by its receiver."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message to a receiver.

    Attributes
    ----------
    id
        Identity of the message, the same at each try. Later messages have greater ones.
    tenant, receiver
        Tenant and name of the notification, or an e-mail address that the job names.
    job_id, job_name
        The job.
    body
        Content as JSON; empty once it is delivered.
    next_ns
        Time of the next try; that of the delivery once it is delivered.
    tries
        Number of failed tries.
    error
        Reason for the last failure; empty once it is delivered.
    """

    id: str
    tenant: str
    receiver: str
    job_id: str
    job_name: str
    occasion: Occasion
    body: str
    created_ns: int
    next_ns: int
    tries: int = 0
    state: DeliveryState = DeliveryState.WAITING
    error: str = ""


@dataclass(frozen=True, slots=True)
class NotifierState:
    """Progress of the notifier; one record at most.

    Attributes
    ----------
    event
        ID of the last event whose messages are stored.
    waits_ns
        Time until which long waits are reported.
    """

    event: int
    waits_ns: int
    id: int = 1
