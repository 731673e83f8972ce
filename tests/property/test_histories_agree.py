"""A decision depends on the present fleet, not on earlier decisions."""

from random import Random

import numpy as np
import pytest

from seaway.domain.job import Job
from seaway.scheduling.engine import decide
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.policies.registry import PolicyOptions, make_policy
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.testing.plugins import fleet, gpu, job, node

DECISIONS = 300
MODELS = ("T4", "A10", "L4")


def history(random: Random) -> list[Job]:
    """Generate jobs of which some require one model, so that models become scarce."""
    drawn = []
    for number in range(DECISIONS):
        memory = random.choice([2_000, 5_000, 8_000, 12_000])
        bound = {"models": {random.choice(MODELS)}} if random.random() < 0.4 else {}
        drawn.append(job(name=f"job-{number}", gpus=1, gpu_memory_mib=memory, gpu_milli=memory // 16, **bound))
    return drawn


@pytest.mark.parametrize("policy", ["seaway", "fgd", "bestfit", "nearest"])
@pytest.mark.parametrize("seed", range(6))
def test_the_same_history_gives_the_same_decisions_on_every_path(policy: str, seed: int) -> None:
    """Plugins, machine code, and machine code with empty caches decide alike after any history."""
    random = Random(seed)
    jobs = history(random)
    nodes = [
        node(*(gpu(model=MODELS[n % 3], memory_mib=16_000) for _ in range(1 + n % 2)), cpu_milli=16_000)
        for n in range(12)
    ]
    ends = [random.randrange(number + 1) if random.random() < 0.5 else -1 for number in range(DECISIONS)]
    runs = []
    for plain, forgets in ((False, False), (True, False), (False, True)):
        snapshot = Snapshot(fleet(*nodes))
        queue = JobQueue(snapshot, jobs)
        profile = make_policy(policy, PolicyOptions(mix=jobs, plain=plain))
        plans = []
        for number, end in enumerate(ends):
            plans.append(decide(snapshot, queue.part(number, number + 1), profile))
            if end >= 0:
                snapshot.release(plans[end].decisions, plans[end].slices, np.flatnonzero(plans[end].placed))
            if forgets and number % 50 == 49:
                snapshot.placers.clear()
        runs.append((snapshot.arrays.nodes.tolist(), snapshot.arrays.devices.tolist()))
    assert runs[0] == runs[1] == runs[2]
