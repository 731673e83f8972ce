"""E-mail by SMTP.

References
----------
RFC 5321 for SMTP, RFC 3207 for STARTTLS.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from threading import Timer
from typing import Any

from seaway.application.ports.channels import Message, Result

SECURITY = ("starttls", "tls", "none")
"""Ways to protect a connection: TLS after the greeting, TLS from the begin, and none."""


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A server for outgoing e-mails.

    Attributes
    ----------
    sender
        Address in `From`.
    security
        One of `SECURITY`.
    user, password
        Credentials; empty for none.
    domains
        Domains of addresses that may get e-mails; empty for none.
    """

    host: str
    port: int
    sender: str
    security: str = "starttls"
    user: str = ""
    password: str = ""
    domains: Sequence[str] = ()
    timeout_s: float = 10

    def obstacle(self, address: str) -> str:
        """Return why no e-mail can be sent to an address; empty if it can."""
        if not self.host:
            return "no e-mail can be sent: an operator has to set smtp_host in [notifications]"
        if not self.domains:
            return "no e-mail can be sent: an operator has to set email_domains in [notifications]"
        domain = address.rpartition("@")[2].lower()
        if domain not in self.domains:
            return f"e-mails are sent to {', '.join(self.domains)} only"
        return ""


def mail_of(message: Message, sender: str) -> EmailMessage:
    """Return a message as e-mail."""
    mail = EmailMessage()
    mail["From"] = Address("Seaway", addr_spec=sender)
    mail["To"] = ", ".join(message.addresses)
    mail["Subject"] = f"[Seaway] {message.subject}"
    mail["Date"] = datetime.fromtimestamp(message.at_ns / 1e9, UTC)
    mail["Message-ID"] = f"<{message.id}@seaway>"
    mail["Auto-Submitted"] = "auto-generated"
    data = message.content["data"]
    facts = [f"{name}: {data[name]}" for name in ("job", "tenant", "queue", "state", "clusters") if data.get(name)]
    mail.set_content("\n".join(filter(None, (message.text, "", *facts, message.link))))
    return mail


def send_mail(server: SmtpServer, message: Message, clients: list[smtplib.SMTP]) -> Result:
    """Send an e-mail once. It takes at most twice the timeout of the server, also if that answers byte by byte.

    Parameters
    ----------
    clients
        Open connections. That of this e-mail is among them while it is sent.
    """
    if why := next(filter(None, map(server.obstacle, message.addresses)), ""):
        return Result(why, final=True)
    mine: list[smtplib.SMTP] = []
    timer = Timer(2 * server.timeout_s, end, (mine,))
    timer.daemon = True
    timer.start()
    try:
        with _connect(server, (mine, clients)) as client:
            if server.security == "starttls":
                client.starttls(context=ssl.create_default_context())
            if server.user:
                client.login(server.user, server.password)
            refused = client.send_message(mail_of(message, server.sender))
    except smtplib.SMTPResponseException as error:
        said = error.smtp_error.decode(errors="replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        return Result(f"the SMTP server answers {error.smtp_code} {said}", final=500 <= error.smtp_code < 600)
    except smtplib.SMTPRecipientsRefused as error:
        return Result(_refusals(error.recipients), final=all(code >= 500 for code, _ in error.recipients.values()))
    except (smtplib.SMTPException, OSError, ValueError) as error:
        return Result(f"cannot send by {server.host}: {getattr(error, 'strerror', None) or error}")
    finally:
        timer.cancel()
        for each in mine:
            clients.remove(each)
    return Result(_refusals(refused), final=True) if refused else Result()


class _Listed(smtplib.SMTP):
    """Client that is in lists while it connects, so that others can end it.

    Parameters
    ----------
    lists
        The lists.
    given
        Parameters of `smtplib.SMTP`.
    """

    def __init__(self, lists: Sequence[list[smtplib.SMTP]], *given: Any, **more: Any) -> None:  # noqa: ANN401  # as there
        for each in lists:
            each.append(self)
        super().__init__(*given, **more)


class _ListedTls(_Listed, smtplib.SMTP_SSL):
    """The same with TLS from the begin."""


def _connect(server: SmtpServer, lists: Sequence[list[smtplib.SMTP]]) -> smtplib.SMTP:
    where = server.host, server.port
    if server.security == "tls":
        return _ListedTls(lists, *where, timeout=server.timeout_s, context=ssl.create_default_context())
    return _Listed(lists, *where, timeout=server.timeout_s)


def end(clients: Sequence[smtplib.SMTP]) -> None:
    """End connections, so that the threads that wait for them continue."""
    for client in clients:
        with suppress(OSError, AttributeError):  # it has no socket yet
            sock: socket.socket = client.sock  # type: ignore[assignment]
            sock.shutdown(socket.SHUT_RDWR)


def _refusals(refused: dict[str, tuple[int, bytes]]) -> str:
    texts = (f"{address}: {code} {said.decode(errors='replace')}" for address, (code, said) in refused.items())
    return f"the SMTP server rejects {'; '.join(texts)}"
