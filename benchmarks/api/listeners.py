"""Many listeners to live events: ``python -m benchmarks.api.listeners URL COUNT SECONDS``.

Prints one line of JSON: how many connected, how many events each saw at least, and how late the
latest was, by the events' own times.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from datetime import datetime
from urllib.parse import urlsplit


async def listen(url: str, token: str, until: float, seen: list[int], late_ms: list[float]) -> None:
    """Follow the stream, by hand, as a thousand clients of a library would cost more than the server."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(
        f"GET /api/v1/events HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    await writer.drain()
    count = 0
    try:
        while (left := until - time.monotonic()) > 0:
            line = await asyncio.wait_for(reader.readline(), left)
            if line.startswith(b"id:"):
                count += 1
            elif line.startswith(b"data:") and count % 50 == 0:
                at = datetime.fromisoformat(json.loads(line[5:])["at"]).timestamp()
                late_ms.append(1000 * (time.time() - at))
    except TimeoutError:
        pass
    finally:
        seen.append(count)
        writer.close()


async def main() -> None:
    """Connect all, follow, and tell."""
    url, count, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    token, until = os.environ["SEAWAY_TOKEN"], time.monotonic() + seconds
    seen: list[int] = []
    late_ms: list[float] = []
    await asyncio.gather(*(listen(url, token, until, seen, late_ms) for _ in range(count)))
    late_ms.sort()
    print(
        json.dumps(
            {
                "listeners": len(seen),
                "events_least": min(seen),
                "events_most": max(seen),
                "late_p50_ms": round(late_ms[len(late_ms) // 2], 1) if late_ms else None,
                "late_p99_ms": round(late_ms[len(late_ms) * 99 // 100], 1) if late_ms else None,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
