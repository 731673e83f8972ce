"""Who may decide: a trained policy has to decide beside another first, where everybody can see how it does."""

from __future__ import annotations

from seaway.application.ports.store import MOST_ROWS, Store
from seaway.domain.errors import ConflictError
from seaway.domain.tenancy import Queue
from seaway.scheduling.profile import Profile


class Gate:
    """Lets a trained policy decide for a queue that was that queue's shadow for long enough.

    It goes by what is stored of comparisons, which name the model: another one under the same name begins anew.

    Parameters
    ----------
    store
        Has the comparisons.
    shadow_jobs
        How many jobs it has to have decided as a shadow, itself: fall-backs do not count; 0 for none.
    """

    def __init__(self, store: Store, shadow_jobs: int) -> None:
        self._store = store
        self._shadow_jobs = shadow_jobs

    def require(self, queue: Queue, profile: Profile) -> None:
        """Make sure that a policy may decide for a queue.

        Parameters
        ----------
        queue
            As it is now; as it is to be where there is none yet.

        Raises
        ------
        ConflictError
            When it may not yet; says what is missing and what to do next.
        """
        if not profile.edition:
            return
        seen, fallbacks = self._seen(queue.name, profile.title)
        if seen >= self._shadow_jobs:
            return
        missing = f"it decided {seen} of {self._shadow_jobs} jobs in its shadow, {self._shadow_jobs - seen} to go"
        if fallbacks:
            missing += f" (for {fallbacks} more it had no answer: something else decided, they do not count)"
        following = f"make it the shadow: seaway policies activate {profile.name} --queue {queue.name} --shadow"
        if queue.shadow == profile.name:
            following = f"let more jobs come, and see how it does: seaway queues shadows {queue.name}"
        raise ConflictError(
            f"policy {profile.title} may not decide for queue {queue.name!r} yet: {missing} "
            f"(policies.shadow_jobs); {following}"
        )

    def _seen(self, queue: str, title: str) -> tuple[int, int]:
        """Count the jobs that a policy decided as a queue's shadow, up to as many as it takes, and its fall-backs."""
        seen, fallbacks, before = 0, 0, 0
        while seen < self._shadow_jobs and (rows := self._store.shadows(queue, MOST_ROWS, before)):
            seen += sum(row.answered for row in rows if row.shadow == title)
            fallbacks += sum(row.fallbacks for row in rows if row.shadow == title)
            before = rows[-1].id
        return min(seen, self._shadow_jobs), fallbacks
