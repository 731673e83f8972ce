"""Signed webhooks, and messages in the format of Slack.

References
----------
Standard Webhooks 1.0.0, for the headers and the signature.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from base64 import b64decode, b64encode
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

import aiohttp
import orjson
from yarl import URL

from seaway.adapters.notifications.guard import Guard, GuardedResolver
from seaway.application.notifications import SECRET
from seaway.application.ports.channels import Message, Result
from seaway.domain.errors import ForbiddenError
from seaway.domain.notifications import Channel

AGENT = "seaway"
SLACK_TEXT = 2900
"""Maximum number of characters of a text in Slack; a block may have 3,000."""

ATTEMPTS_AT_ONCE = 64
"""Maximum number of connections."""


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header ``webhook-signature``.

    Parameters
    ----------
    secret
        Key as ``whsec_`` and base64.
    timestamp
        Seconds since 1970, of the try.
    """
    key = b64decode(secret.removeprefix(SECRET))
    signed = hmac.new(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{b64encode(signed.digest()).decode()}"


def slack_body(message: Message) -> dict[str, Any]:
    """Return a message in the format of incoming webhooks of Slack."""
    title = f"<{message.link}|{_escaped(message.subject)}>" if message.link else _escaped(message.subject)
    data = message.content["data"]
    facts = " · ".join(f"{name} {_escaped(str(data[name]))}" for name in ("tenant", "queue", "job") if data.get(name))
    blocks: list[dict[str, Any]] = [{"type": "section", "text": _mrkdwn(f"*{title}*\n{_escaped(message.text)}")}]
    if facts:
        blocks.append({"type": "context", "elements": [_mrkdwn(facts)]})
    return {"text": _escaped(message.subject), "blocks": blocks}


def _mrkdwn(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": text[:SLACK_TEXT]}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Webhooks:
    """Sender of webhooks. It lives in one event loop.

    Parameters
    ----------
    timeout_s
        Maximum duration of a try.
    """

    def __init__(self, guard: Guard, timeout_s: float) -> None:
        self._guard = guard
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                resolver=GuardedResolver(guard), use_dns_cache=False, force_close=True, limit=ATTEMPTS_AT_ONCE
            ),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": AGENT, "content-type": "application/json"},
        )

    async def send(self, message: Message, now_s: int) -> Result:
        """Send a message once. Redirects are not followed."""
        slack = message.channel is Channel.SLACK
        body = orjson.dumps(slack_body(message) if slack else message.content)
        headers = (
            {}
            if slack
            else {
                "webhook-id": message.id,
                "webhook-timestamp": str(now_s),
                "webhook-signature": signature(message.secret, message.id, now_s, body),
            }
        )
        try:
            url = URL(message.url)
            if url.host and _is_address(url.host):
                self._guard.require(url.host, url.host)
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as answer:
                return _result(answer.status, answer.headers.get("retry-after", ""))
        except ForbiddenError as error:
            return Result(str(error), final=True)
        except TimeoutError:
            return Result("no answer in time")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _failure(error)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


def _failure(error: Exception) -> Result:
    """Return the result of a failed connection."""
    cause = error.__cause__ or error
    if isinstance(cause, ForbiddenError):
        return Result(str(cause), final=True)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Result(f"its certificate is not valid: {cause.verify_message}")
    if isinstance(cause, aiohttp.http_exceptions.HttpProcessingError | aiohttp.ClientPayloadError):
        return Result("its answer is not valid HTTP")  # the text of the error has parts of the answer
    said = " ".join((getattr(cause, "strerror", None) or str(cause) or type(cause).__name__).split())
    return Result(f"cannot connect: {said}" if isinstance(error, aiohttp.ClientConnectorError) else said)


def _result(status: int, retry_after: str) -> Result:
    """Return the result of an answer. All but 2xx are failures, and 410 asks for no further messages."""
    if 200 <= status < 300:
        return Result()
    if 300 <= status < 400:
        return Result(f"the receiver answers {status}; redirects are not followed: use the new URL")
    later = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
    return Result(f"the receiver answers {status}", final=status == HTTPStatus.GONE, retry_after_s=later)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
