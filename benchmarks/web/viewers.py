"""Look at pages as so many browsers would: ``python -m benchmarks.web.viewers URL PATH COUNT``.

Each loads the page and holds its web socket, and takes what is sent. Says ``ready`` once all are there; ends when its
input does, and says then how many messages came. The environment's SEAWAY_TOKEN lets it in.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from urllib.parse import urlencode

import httpx
import socketio

from seaway.web.cookies import TOKEN

CLIENT = re.compile(r"'client_id': '([0-9a-f-]+)'")
SOCKET = "/_nicegui_ws/socket.io"
PATIENCE_S = 30
AT_ONCE = 10
"""So many load their page at a time."""


async def main() -> None:
    """Look until told to end."""
    url, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    came = 0

    async def take(*_: object) -> None:
        nonlocal came
        came += 1

    turns = asyncio.Semaphore(AT_ONCE)
    cookie = {"cookie": f"{TOKEN}={os.environ['SEAWAY_TOKEN']}"}
    async with httpx.AsyncClient(headers=cookie, timeout=60) as http:
        sockets = await asyncio.gather(*(_look(http, turns, url, path, take) for _ in range(count)))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(came, flush=True)
    await asyncio.gather(*(each.disconnect() for each in sockets))


async def _look(
    http: httpx.AsyncClient, turns: asyncio.Semaphore, url: str, path: str, take: object
) -> socketio.AsyncClient:
    """Load a page and connect its web socket, as the page's script does."""
    async with turns:
        text = (await http.get(url + path)).raise_for_status().text
        found = CLIENT.search(text)
        if found is None:
            raise RuntimeError(f"{path} is no page that lives")
        asked = {"client_id": found[1], "next_message_id": 0, "implicit_handshake": "true", "document_id": found[1]}
        socket = socketio.AsyncClient(reconnection=False)
        socket.on("*", take)
        asked["tab_id"] = found[1]
        await socket.connect(
            f"{url}?{urlencode(asked)}",
            headers={"cookie": http.headers["cookie"]},
            socketio_path=SOCKET,
            transports=["websocket"],
            wait_timeout=PATIENCE_S,
        )
        return socket


if __name__ == "__main__":
    asyncio.run(main())
