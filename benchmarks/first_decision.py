"""Makes one decision in a new process, for the case `start`."""

from __future__ import annotations

import sys

from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.simulation.demo import demo_fleet, demo_jobs

if __name__ == "__main__":
    name, seed = sys.argv[1], int(sys.argv[2])
    snapshot = Snapshot(demo_fleet())
    jobs = demo_jobs(100, seed)
    decide(snapshot, JobQueue(snapshot, jobs[:1]), make_policy(name, PolicyOptions(seed=seed, mix=jobs)))
