"""Order of the queue by priority."""

from __future__ import annotations

import numpy as np

from seaway.scheduling.arrays import Int64
from seaway.scheduling.columns import JOB_SEQUENCE
from seaway.scheduling.job_queue import JobQueue


class PrioritySort:
    """Order by priority, highest first, then by arrival, then by position in the queue."""

    name = "PrioritySort"

    def order(self, queue: JobQueue) -> Int64:
        """Return the indices of the queue's jobs in the order of decision, shape (J,)."""
        priorities = np.array([job.priority for job in queue], np.int64)
        arrivals = np.array([job.arrives_s for job in queue], np.int64)
        return np.lexsort((queue.rows[:, JOB_SEQUENCE], arrivals, -priorities)).astype(np.int64)
