"""Servers in a process of their own: ``python -m tests.fakes.kubernetes --members 10 --nodes 1000 --pods 5000``.

Prints one line of JSON when all servers answer: the kubeconfig, a URL and a token for each server, and the URL of the
command port. The command port accepts commands while the servers run: POST {"server": "member1", "do": "stop"} stops a
server; the answer has the return value of the command. The process ends when its standard input ends, or on SIGTERM.

Commands: stop, start, forget_history, hang, slow, error, throttle, drop, cut_watches, clear, fail_node, heal_node,
create, put, patch, delete, list, write_log, stats; other members of the body are their arguments by name.
"""

from __future__ import annotations

import argparse
import gc
import json
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.fakes.kubernetes.faults import Fault
from tests.fakes.kubernetes.karmada.members import KarmadaPace
from tests.fakes.kubernetes.karmada.world import KarmadaWorld
from tests.fakes.kubernetes.kinds import Kind
from tests.fakes.kubernetes.kubeconfig import write_kubeconfig
from tests.fakes.kubernetes.seeding import Crowd, seed
from tests.fakes.kubernetes.server import ApiServer

GC_THRESHOLDS = (50_000, 20, 100)
"""Thresholds of Python's garbage collector, high so that it rarely pauses the servers: real ones do not pause."""

_OF_SERVER = (
    "stop",
    "start",
    "forget_history",
    "fail_node",
    "heal_node",
    "create",
    "put",
    "patch",
    "delete",
    "list",
    "write_log",
)
_OF_FAULTS = ("hang", "slow", "error", "throttle", "drop", "cut_watches", "clear")


def stats(server: ApiServer) -> dict[str, object]:
    """Return the object and request counts of a server."""
    counts = {kind.qualified: len(shelf.items) for kind, shelf in server.store.shelves.items() if shelf.items}
    return {
        "objects": counts,
        "requests": dict(server.app.requests),
        "watches": len(server.watches.open),
        "version": server.version,
    }


def carry_out(servers: Mapping[str, ApiServer], order: dict[str, Any]) -> object:
    """Run a command.

    Raises
    ------
    LookupError
        If there is no such server or command.
    """
    server, command = servers[order.pop("server")], order.pop("do")
    if isinstance(order.get("kind"), str):
        order["kind"] = _kind(server, order["kind"])
    if command == "stats":
        return stats(server)
    if command in _OF_SERVER:
        work: Callable[..., object] = getattr(server, command)
    elif command in _OF_FAULTS:
        work = getattr(server.faults, command)
    else:
        raise LookupError(command)
    found = work(**order)
    return None if isinstance(found, Fault) else found


def _kind(server: ApiServer, name: str) -> Kind:
    for kind in server.kinds.all:
        if name in (kind.plural, kind.qualified):
            return kind
    raise LookupError(name)


def open_pipeline(servers: Mapping[str, ApiServer]) -> ThreadingHTTPServer:
    """Open a port on loopback that accepts commands."""

    class Pipeline(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["content-length"])))
            code, answer = 200, b""
            try:
                answer = json.dumps(carry_out(servers, order)).encode()
            except Exception as error:  # noqa: BLE001, it is returned to the sender of the command
                code, answer = 400, json.dumps({"error": f"{type(error).__name__}: {error}"}).encode()
            self.send_response(code)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the name that http.server gives
            pass

    pipeline = ThreadingHTTPServer(("127.0.0.1", 0), Pipeline)
    threading.Thread(target=pipeline.serve_forever, name="desk", daemon=True).start()
    return pipeline


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fakes.kubernetes", description="Kubernetes in memory.")
    parser.add_argument("--members", type=int, default=2, help="how many member clusters")
    parser.add_argument("--karmada", action="store_true", help="put Karmada's control plane above them")
    parser.add_argument("--nodes", type=int, default=0, help="GPU nodes of each member")
    parser.add_argument("--pods", type=int, default=0, help="running pods of each member")
    parser.add_argument("--cards", type=int, default=8, help="GPUs of each node")
    parser.add_argument("--node-bytes", type=int, default=8192, help="how large a node is at least")
    parser.add_argument("--pod-bytes", type=int, default=4096, help="how large a pod is at least")
    parser.add_argument("--seed", type=int, default=0, help="of everything that is made up")
    parser.add_argument("--history", type=int, default=5000, help="changes of each kind that are kept")
    parser.add_argument("--bookmark-s", type=float, default=60.0, help="seconds between bookmarks")
    parser.add_argument("--real-pace", action="store_true", help="have Karmada take as long as it really does")
    parser.add_argument("--kubeconfig", type=Path, help="where to write the kubeconfig; a temporary file by default")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Serve until standard input ends."""
    wanted = _read(arguments)
    members = [
        ApiServer(f"member{number}", history=wanted.history, bookmark_s=wanted.bookmark_s, seed=wanted.seed + number)
        for number in range(1, wanted.members + 1)
    ]
    with ExitStack() as stack:
        servers = {one.name: one for one in members}
        for one in members:
            stack.enter_context(one)
            if wanted.nodes:
                crowd = Crowd(wanted.nodes, wanted.pods, wanted.cards, wanted.node_bytes, wanted.pod_bytes)
                seed(one, crowd, wanted.seed)
        if wanted.karmada:
            pace = KarmadaPace.real() if wanted.real_pace else KarmadaPace()
            world = stack.enter_context(KarmadaWorld(members, pace=pace))
            servers[world.control.name] = world.control
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        entries = [one.entry() for one in sorted(servers.values(), key=lambda one: one.name != "karmada")]
        path = write_kubeconfig(wanted.kubeconfig or folder / "kubeconfig", entries)
        pipeline = open_pipeline(servers)
        stack.callback(pipeline.server_close)
        stack.callback(pipeline.shutdown)
        said = {
            "kubeconfig": str(path),
            "servers": {name: {"url": one.url, "token": one.token} for name, one in servers.items()},
            "desk": f"http://127.0.0.1:{pipeline.server_address[1]}",
        }
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
