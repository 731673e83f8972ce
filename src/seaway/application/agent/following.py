"""Application of the control plane's configuration to a gateway."""

from __future__ import annotations

import logging
from random import Random

from seaway.application.ports.steering import Steered, Steerer, Wanted
from seaway.domain.backoff import backoff
from seaway.domain.errors import ConflictError, SeawayError

log = logging.getLogger(__name__)

EVERY_S = 5.0
"""Seconds between two checks. The control plane stops steering a gateway that does not report for a minute."""
MAX_S = 30.0
AGAIN_S = 0.2
"""Delay of the next check after the configuration changed during its application, seconds."""


class Follower:
    """Reconciliation of a gateway with its configuration.

    The gateway keeps its configuration while the control plane does not respond or does not know the gateway. Each
    check also reverts changes of other programs to Seaway's settings.

    Parameters
    ----------
    steerer
        Source of the configuration.
    steered
        The gateway machine.
    random
        Jitter of the back-off.
    """

    def __init__(self, steerer: Steerer, steered: Steered, random: Random) -> None:
        self._steerer = steerer
        self._steered = steered
        self._random = random
        self._confirmed: tuple[str, dict[str, str]] | None = None
        self._failures = 0
        self._reported = ""

    def step(self) -> float:
        """Apply the configuration once; return the seconds to the next check."""
        doing = "fetching the configuration; the gateway stays as it is"
        try:
            wanted = self._steerer.wanted()
            doing = "applying the configuration"
            changes = self._steered.reach(wanted)
            if changes:
                log.info("%d changes made, network version %s%s", changes, wanted.version, _paths(wanted))
            doing = "confirming the configuration"
            self._confirm(wanted)
        except ConflictError as error:
            return self._failed(doing, error, AGAIN_S)
        except SeawayError as error:
            return self._failed(doing, error, EVERY_S)
        if self._reported:
            log.warning("works again: the gateway has version %s", wanted.version)
        self._failures, self._reported = 0, ""
        return EVERY_S

    def _confirm(self, wanted: Wanted) -> None:
        """Confirm the applied paths, unless they are already confirmed."""
        now = (wanted.version, dict(wanted.active))
        if now != self._confirmed or dict(wanted.applied) != now[1]:
            self._steerer.confirm(wanted)
            self._confirmed = now

    def _failed(self, doing: str, error: SeawayError, first_s: float) -> float:
        reported = f"{doing}: {error}"
        late = isinstance(error, ConflictError) and not self._failures  # normal if something changes at the same time
        if reported != self._reported and not late:
            log.warning("%s; tried again", reported)
            self._reported = reported
        self._failures += 1
        return backoff(self._failures, first_s, MAX_S, self._random)


def _paths(wanted: Wanted) -> str:
    """Return a text with the selected paths, for pairs with several paths."""
    choices = {pair.target for pair in wanted.config.pairs if len(pair.paths) > 1}
    taken = [f"{target} by {path}" for target, path in sorted(wanted.active.items()) if target in choices]
    return f"; {', '.join(taken)}" if taken else ""
