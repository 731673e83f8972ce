"""Simulated clusters in a process that outlives the control plane: ``python -m benchmarks.kill.clusters FOLDER``."""

from __future__ import annotations

import sys
from pathlib import Path

from seaway.adapters.simulated.backends import SimulatedBackends
from seaway.adapters.simulated.faults import Options
from seaway.adapters.simulated.server import Server
from seaway.application.ports.clock import SystemClock
from seaway.simulation.demo import demo_fleet


def main() -> None:
    """Serve the demo's clusters until terminated; print the URL on the first line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    backends = SimulatedBackends(demo_fleet(), SystemClock(), Options(start_delay_s=0.05), folder)
    server = Server(backends)
    print(server.url, flush=True)
    server.run()


if __name__ == "__main__":
    main()
