"""Viewers of pages, equivalent to browsers: ``python -m benchmarks.web.viewers URL COUNT PATH ...``.

Each viewer loads one of the pages, in turn, keeps its web socket open, and reads messages. The program prints ``ready``
after all are connected. At the end of its input, it prints the number of messages by path as JSON, with None for a
disconnected viewer. VIEWER_TOKENS in the environment has their tokens, separated by commas; every page is viewed with
each.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from itertools import cycle, islice, product
from urllib.parse import urlencode

import httpx
import socketio

from seaway.web.cookies import TOKEN

CLIENT = re.compile(r"'client_id': '([0-9a-f-]+)'")
SOCKET = "/_nicegui_ws/socket.io"
PATIENCE_S = 30
LAST = 19
"""Niceness: real browsers run on other machines, so viewers yield the cores to the server."""

AT_ONCE = 10
"""Maximum number of concurrent page loads."""


class Viewer:
    """A viewer of a page.

    Attributes
    ----------
    path
        Path of the page.
    came
        Number of received messages.
    """

    def __init__(self, path: str, token: str) -> None:
        self.path = path
        self.came = 0
        self._cookie = {"cookie": f"{TOKEN}={token}"}
        self._socket = socketio.AsyncClient(reconnection=False)
        self._socket.on("*", self._take)

    async def look(self, url: str, slots: asyncio.Semaphore) -> None:
        """Load the page and connect its web socket, as the page's script does."""
        async with slots, httpx.AsyncClient(headers=self._cookie, timeout=2 * PATIENCE_S) as http:
            text = (await http.get(url + self.path)).raise_for_status().text
            found = CLIENT.search(text)
            if found is None:
                raise RuntimeError(f"{self.path} is no page that lives")
            ours = {"client_id": found[1], "document_id": found[1], "tab_id": found[1]}
            asked = urlencode({**ours, "next_message_id": 0, "implicit_handshake": "true"})
            await self._socket.connect(
                f"{url}?{asked}",
                headers=self._cookie,
                socketio_path=SOCKET,
                transports=["websocket"],
                wait_timeout=PATIENCE_S,
            )

    async def leave(self) -> tuple[str, int | None]:
        """Disconnect; return the path and the number of messages, None if it was disconnected before."""
        there = self._socket.connected
        await self._socket.disconnect()
        return self.path, self.came if there else None

    async def _take(self, *_: object) -> None:
        self.came += 1


async def main() -> None:
    """View pages until the input ends."""
    os.nice(LAST)
    url, many, paths = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    each_way = cycle(product(os.environ["VIEWER_TOKENS"].split(","), paths))
    viewers = [Viewer(path, token) for token, path in islice(each_way, many)]
    slots = asyncio.Semaphore(AT_ONCE)
    await asyncio.gather(*(each.look(url, slots) for each in viewers))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps([await each.leave() for each in viewers]), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
