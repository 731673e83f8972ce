"""Submits a number of jobs that keep running: ``python -m benchmarks.api.burst URL COUNT CONNECTIONS [PAUSE]``.

The environment variable BURST_BODY replaces the body of the submits.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

SMALL = '{"name":"burst","resources":{"cpu":"500m","memory":"1GB","gpus":1,"gpu_memory":"4GB","gpu_cores":"10%"}}'
BODY = os.environ.get("BURST_BODY", SMALL).encode()


async def submit(url: str, token: str, left: Iterator[int], pause_s: float) -> None:
    """Submit jobs one by one on a connection, without a client library, which would need more CPU than the server."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    head = (
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(BODY)}\r\n\r\n"
    ).encode()
    for _ in left:
        writer.write(head + BODY)
        answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 201"):
            raise RuntimeError(answer.decode())
        length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(int(length.split(b":")[1]))
        if pause_s:
            await asyncio.sleep(pause_s)
    writer.close()


async def main() -> None:
    """Distribute the jobs over the connections."""
    url, count, connections = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    pause_s = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    left = iter(range(count))
    await asyncio.gather(*(submit(url, os.environ["SEAWAY_TOKEN"], left, pause_s) for _ in range(connections)))


if __name__ == "__main__":
    asyncio.run(main())
