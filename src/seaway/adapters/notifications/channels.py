"""Senders of notifications, in an event loop and threads of their own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from smtplib import SMTP

from seaway.adapters.notifications.guard import Guard
from seaway.adapters.notifications.mail import SmtpServer, end, send_mail
from seaway.adapters.notifications.webhooks import Webhooks
from seaway.application.ports.channels import Message, Result
from seaway.application.ports.clock import Clock
from seaway.domain.notifications import Channel

log = logging.getLogger(__name__)

MAIL_THREADS, RESOLVER_THREADS = 4, 16


class NetworkChannels:
    """Webhooks, Slack and e-mail. It implements `Channels`.

    Requests share one event loop in a thread, which starts with the first message. E-mails have a few threads. So
    neither a receiver nor an SMTP server that does not answer slows anything else.
    """

    def __init__(self, guard: Guard, smtp: SmtpServer, timeout_s: float, clock: Clock) -> None:
        self._guard, self._smtp, self._timeout_s, self._clock = guard, smtp, timeout_s, clock
        self._mail = ThreadPoolExecutor(MAIL_THREADS, "mail")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._webhooks: Webhooks | None = None
        self._closed = False
        self._clients: list[SMTP] = []
        self._lock = threading.Lock()

    def send(self, message: Message, done: Callable[[Result], None]) -> None:
        """Start to send a message."""
        with self._lock:
            if self._closed:
                done(Result("Seaway is shutting down"))
                return
            if message.channel is Channel.EMAIL:
                self._mail.submit(self._send_mail, message, done)
                return
            loop = self._running_loop()
            asyncio.run_coroutine_threadsafe(self._post(message, done), loop)

    def close(self) -> None:
        """Abandon all tries."""
        with self._lock:
            self._closed = True
            self._mail.shutdown(wait=False, cancel_futures=True)
            end(list(self._clients))
            if self._loop:
                self._loop.call_soon_threadsafe(self._loop.stop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._loop.set_default_executor(ThreadPoolExecutor(RESOLVER_THREADS, "resolver"))
            threading.Thread(target=self._run, args=(self._loop,), name="webhooks", daemon=True).start()
        return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            if self._webhooks:
                loop.run_until_complete(self._webhooks.close())
        finally:
            loop.close()

    async def _post(self, message: Message, done: Callable[[Result], None]) -> None:
        result = _BUG
        try:
            if self._webhooks is None:
                self._webhooks = Webhooks(self._guard, self._timeout_s)
            result = await self._webhooks.send(message, self._clock.now_ns() // 10**9)
        except Exception:  # a bug must not lose the message
            log.exception("sending a notification failed")
        done(result)

    def _send_mail(self, message: Message, done: Callable[[Result], None]) -> None:
        result = _BUG
        try:
            result = send_mail(self._smtp, message, self._clients)
        except Exception:  # a bug must not lose the message
            log.exception("sending a notification failed")
        done(result)


_BUG = Result("failed by a bug; see the log of the server")
