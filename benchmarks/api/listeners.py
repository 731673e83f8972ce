"""Many listeners of live events: ``python -m benchmarks.api.listeners URL COUNT SECONDS``.

Prints one line of JSON: the number of connections, the minimum and maximum number of events per listener, and the
latency of events by their timestamps, at one listener in fifty.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from datetime import datetime
from typing import cast
from urllib.parse import urlsplit

import uvloop

TIMED = 50
"""One listener in this number reads the content of events; the others only count them."""


class Listener(asyncio.Protocol):
    """Client of the stream without a library; a thousand library clients would need more CPU than the server."""

    def __init__(self, request: bytes, late_ms: list[float] | None) -> None:
        self.count = 0
        self.open = False
        self._request = request
        self._late_ms = late_ms
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        cast(asyncio.Transport, transport).write(self._request)
        self.open = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Record that the connection ended early."""
        self.open = False

    def data_received(self, data: bytes) -> None:
        """Count events."""
        now = time.time()
        text = self._rest + data
        whole, mark, self._rest = text.rpartition(b"\n\n")
        whole += mark
        self.count += whole.count(b"\ndata: ")
        if self._late_ms is not None:
            for line in whole.splitlines():
                if line.startswith(b"data: "):
                    at = datetime.fromisoformat(json.loads(line[6:])["at"]).timestamp()
                    self._late_ms.append(1000 * (now - at))


async def main() -> None:
    """Connect all listeners, follow events, and print the result."""
    url, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    host, port = urlsplit(url).netloc.split(":")
    lines = ("GET /api/v1/events HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {os.environ['SEAWAY_TOKEN']}")
    request = "\r\n".join((*lines, "", "")).encode()
    loop = asyncio.get_running_loop()
    late_ms: list[float] = []
    end = time.monotonic() + seconds

    async def listen(number: int) -> Listener:
        timed = None if number % TIMED else late_ms
        _, listener = await loop.create_connection(lambda: Listener(request, timed), host, int(port))
        return listener

    listeners = await asyncio.gather(*map(listen, range(count)))
    await asyncio.sleep(end - time.monotonic())
    late_ms.sort()
    print(
        json.dumps(
            {
                "listeners": sum(listener.open for listener in listeners),
                "events_least": min(listener.count for listener in listeners),
                "events_most": max(listener.count for listener in listeners),
                "late_p50_ms": round(late_ms[len(late_ms) // 2], 1) if late_ms else None,
                "late_p99_ms": round(late_ms[len(late_ms) * 99 // 100], 1) if late_ms else None,
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main())
