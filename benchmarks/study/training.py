"""Trainings in separate processes, which resume after a restart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seaway.learning.parent import end_with_parent
from seaway.learning.runs.assemble import new_run
from seaway.learning.runs.folder import RunFolder
from seaway.learning.runs.table import read_rows

LOOK_EVERY_S = 1.0
SAY_EVERY_S = 600.0
"""Interval of progress messages, seconds."""

TRIES = 2
"""Maximum number of starts of a training."""

END_WITHIN_S = 120.0
"""Time for trainings to save their state when they are terminated."""


@dataclass(frozen=True, slots=True)
class Training:
    """A run of `seaway train`.

    Attributes
    ----------
    folder
        Folder of the run.
    algo, instance, seed, episodes
        Its algorithm, instance folder, seed and length.
    settings
        Settings other than defaults, by name.
    """

    folder: Path
    algo: str
    instance: Path
    seed: int
    episodes: int
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name in messages."""
        return self.folder.name

    @property
    def played(self) -> int:
        """Number of recorded episodes."""
        return len(read_rows(RunFolder(self.folder).episodes))

    @property
    def finished(self) -> bool:
        """True if the training is complete."""
        return RunFolder(self.folder).policy.is_file() and self.played >= self.episodes

    @property
    def stale(self) -> bool:
        """True if the run began with other settings of its algorithm, for example before defaults changed."""
        folder = RunFolder(self.folder)
        return (
            folder.has_run
            and folder.read_config()[0].learner != new_run(self.algo, [str(self.instance)], [], self.settings).learner
        )

    def command(self) -> list[str]:
        """Return the command that starts or resumes it."""
        given = [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]
        which = ["--algo", self.algo, "--instances", str(self.instance), "--seed", str(self.seed)]
        return [
            "seaway",
            "train",
            *which,
            "--episodes",
            str(self.episodes),
            "--out",
            str(self.folder),
            "--resume",
            *given,
        ]


class Runner:
    """Runner of concurrent trainings, with one thread each.

    Ctrl-C or SIGTERM stops them so that they can resume. If one fails, the others continue.

    Parameters
    ----------
    jobs
        Maximum number of concurrent trainings.
    say
        Prints a line of text.
    """

    def __init__(self, jobs: int, say: Callable[[str], None] = print) -> None:
        self._jobs = jobs
        self._say = say
        self._running: dict[str, tuple[Training, subprocess.Popen[bytes], float]] = {}
        self._tries: dict[str, int] = {}

    def run(self, trainings: Sequence[Training]) -> list[Training]:
        """Run all unfinished trainings, and return the failed ones."""
        waiting = [each for each in trainings if not each.finished]
        self._say(f"{len(trainings) - len(waiting)} of {len(trainings)} trainings were finished before")
        failed: list[Training] = []
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        said_s = time.monotonic()
        try:
            while waiting or self._running:
                while waiting and len(self._running) < self._jobs:
                    self._start(waiting.pop(0))
                time.sleep(LOOK_EVERY_S)
                for each in self._ended():
                    again = self._tries[each.name] < TRIES
                    (waiting if again else failed).append(each)
                if time.monotonic() - said_s > SAY_EVERY_S:
                    said_s = time.monotonic()
                    self._say_how_far(len(waiting))
        except KeyboardInterrupt:
            self._stop()
            raise
        return failed

    def _start(self, training: Training) -> None:
        training.folder.parent.mkdir(parents=True, exist_ok=True)
        self._tries[training.name] = self._tries.get(training.name, 0) + 1
        command = [sys.executable, "-m", *training.command()]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with log_of(training).open("ab") as log:
            log.write(f"$ {' '.join(training.command())}\n".encode())
            log.flush()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                preexec_fn=end_with_parent,  # noqa: PLW1509  # this process has one thread
                process_group=0,  # Ctrl-C goes to the parent only, which passes it on
            )
        self._running[training.name] = (training, process, time.monotonic())

    def _ended(self) -> Iterable[Training]:
        """Remove the trainings that ended, report their results, and return those that failed."""
        for name, (training, process, began_s) in list(self._running.items()):
            if process.poll() is None:
                continue
            del self._running[name]
            took_s = time.monotonic() - began_s
            if training.finished:
                self._say(f"{name}: {training.played} episodes, {took_s:.0f} s")
            else:
                self._say(f"{name}: failed after {took_s:.0f} s ({last_line(training)}); its log: {log_of(training)}")
                yield training

    def _say_how_far(self, waiting: int) -> None:
        at = ", ".join(f"{name} {each.played}/{each.episodes}" for name, (each, _, _) in self._running.items())
        self._say(f"{time.strftime('%H:%M')}: {at}; {waiting} waiting")

    def _stop(self) -> None:
        self._say("ending; what is trained is kept, and the same command goes on with it")
        for _, process, _ in self._running.values():
            process.send_signal(signal.SIGTERM)
        until_s = time.monotonic() + END_WITHIN_S
        for _, process, _ in self._running.values():
            try:
                process.wait(max(0.1, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()


def log_of(training: Training) -> Path:
    """Return the log file of a training."""
    return training.folder.with_name(f"{training.name}.log")


def last_line(training: Training) -> str:
    """Return the last line of a training's log."""
    lines = log_of(training).read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
