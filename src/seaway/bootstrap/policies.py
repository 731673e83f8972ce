"""Policies by name: built-in ones, trained ones, and profile files that combine plugins.

A profile file is TOML::

    name = "near-and-tight"

    [[plugin]]
    name = "ClusterScore"
    weight = 3
    settings = { price = 0, location = 4 }

    [[plugin]]
    name = "trained"
    policy = "pilot"
"""

from __future__ import annotations

import logging
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from seaway.bootstrap.trained_policies import TRAINED
from seaway.domain.errors import RejectedError
from seaway.domain.tenancy import NAME
from seaway.scheduling.allocations import allocate, allocations_of
from seaway.scheduling.engine import Policy, decide
from seaway.scheduling.explain import explain
from seaway.scheduling.job_queue import JobQueue
from seaway.scheduling.kernels.compile import is_compiled, mark_compiled
from seaway.scheduling.kernels.queries import all_open, most_free
from seaway.scheduling.policies.registry import BUILT_IN, PolicyOptions, make_policy, make_profile, policy_names
from seaway.scheduling.profile import Profile
from seaway.scheduling.queueing import backfill
from seaway.scheduling.registry import PluginSpec, ProfileSpec, make_plugin
from seaway.scheduling.snapshot.snapshot import Snapshot
from seaway.scheduling.snapshot.update import put_node
from seaway.simulation.demo import demo_fleet, demo_jobs

if TYPE_CHECKING:
    from seaway.learning.policies.file import PolicyFile


SUFFIX = ".toml"

KNOWN = {"name", "weight", "settings", "policy"}
KNOWN_ABOVE = {"name", "plugin"}


def policy_of(text: str, options: PolicyOptions) -> Profile | Policy:
    """Return a policy by name, or from the path of a policy file or profile file.

    Trained policies have no time limit here, so results do not depend on the clock.

    Raises
    ------
    RejectedError
        If the policy does not exist, or the file is invalid; names the position.
    """
    if text in BUILT_IN:
        return make_policy(text, options)
    from seaway.bootstrap.trained_policies import own_folder, own_policies
    from seaway.learning.policies.check import read_policy
    from seaway.learning.policies.file import SUFFIX as POLICY

    trained = own_policies(own_folder())
    if text.endswith(POLICY):
        return trained.learned(read_policy(Path(text)), options)
    if not text.endswith(SUFFIX):
        return trained.make(text, options)
    outline = read_outline(Path(text))
    try:
        return trained.joined(outline, options, load=lambda name: _own_file(name, Path(text).parent))
    except RejectedError as error:
        raise RejectedError(error.message, where=text) from error


def own_files(path: Path) -> list[PolicyFile]:
    """Return the user's trained policies that a profile file refers to; raises as `policy_of`."""
    return [_own_file(name, path.parent) for name in read_outline(path).policies]


def _own_file(name: str, folder: Path) -> PolicyFile:
    """Read a trained policy of the user by its name, or from a file relative to `folder`."""
    from seaway.bootstrap.trained_policies import own_library
    from seaway.learning.policies.check import read_policy
    from seaway.learning.policies.file import SUFFIX as POLICY

    return read_policy(folder / name) if name.endswith(POLICY) else own_library().load(name)


def read_outline(path: Path) -> ProfileSpec:
    """Read a profile file.

    Raises
    ------
    RejectedError
        If it cannot be read or is invalid; names the position.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RejectedError(str(error), where=str(path)) from error
    _only_known(content, KNOWN_ABOVE, str(path))
    plugins = content.get("plugin")
    if not isinstance(plugins, list) or not plugins:
        raise RejectedError("names no plugin; begin each with a line [[plugin]]", where=str(path))
    wanted = [_wanted(entry, f"{path}: plugin {number}") for number, entry in enumerate(plugins, 1)]
    return ProfileSpec(str(content.get("name", path.stem)), tuple(wanted))


def read_outlines(folder: str) -> dict[str, ProfileSpec]:
    """Read the profile files of a folder; return the profiles by name, none without a folder.

    Raises
    ------
    RejectedError
        With all errors: invalid files, unknown plugins, and invalid or duplicated names.
    """
    if not folder:
        return {}
    if not Path(folder).is_dir():
        raise RejectedError("is not a folder that can be read", where=f"[policies] profiles_dir: {folder}")
    found: dict[str, ProfileSpec] = {}
    problems: list[RejectedError] = []
    for path in sorted(Path(folder).glob(f"[!.]*{SUFFIX}")):
        try:
            outline = read_outline(path)
            _require_usable(outline, found, str(path))
            found[outline.name] = outline
        except RejectedError as error:
            problems.append(error)
    if problems:
        raise RejectedError(problems[0].message, where=problems[0].where, also=tuple(problems[1:]))
    return found


def _require_usable(outline: ProfileSpec, others: Mapping[str, ProfileSpec], where: str) -> None:
    """Check the name and the plugins of a profile, except trained policies, which may be imported later."""
    if not NAME.fullmatch(outline.name):
        raise RejectedError(f"{outline.name[:80]!r} is not a name of a policy: use a-z, 0-9, '-' and '.'", where=where)
    if outline.name in policy_names() or outline.name in others:
        raise RejectedError(f"another policy {outline.name!r} exists; choose another name", where=where)
    for each in outline.plugins:
        if each.name != TRAINED:
            try:
                make_plugin(each, PolicyOptions())
            except RejectedError as error:
                raise RejectedError(error.message, where=where) from None


def _wanted(entry: object, where: str) -> PluginSpec:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise RejectedError('needs a name = "..."', where=where)
    _only_known(entry, KNOWN, where)
    weight, settings, policy = entry.get("weight", 1), entry.get("settings", {}), entry.get("policy", "")
    if isinstance(weight, float) and weight.is_integer():
        weight = int(weight)
    if not isinstance(weight, int) or isinstance(weight, bool) or weight < 1:
        raise RejectedError("weight must be a whole number from 1 up", where=where)
    if not isinstance(settings, dict):
        raise RejectedError("settings must be a table, like { price = 2 }", where=where)
    if not isinstance(policy, str) or (entry["name"] == TRAINED and not policy):
        raise RejectedError('needs a trained policy, like policy = "pilot"', where=where)
    return PluginSpec(entry["name"], weight, settings, policy)


def _only_known(table: dict[str, object], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise RejectedError(f"unknown key {key!r}; available: {', '.join(sorted(known))}", where=where)


JOBS = 40
POLICIES = ("greedy", "bestfit")
"""Policies of admission, and the default of queues."""

POLL_S = 0.2

log = logging.getLogger(__name__)


def warm_up() -> None:
    """Compile all code that places jobs: about a minute on a new machine, otherwise well under a second."""
    for name in POLICIES:
        warm(name)


def uncompiled(names: Iterable[str] = POLICIES) -> list[str]:
    """Return the built-in policies among `names` whose kernels are not in the cache yet."""
    known = compilable()
    return [name for name in names if name in known and not is_compiled(name)]


def compilable() -> list[str]:
    """Return the built-in policies that consist of plugins, those of admission first."""
    others = [name for name in BUILT_IN if isinstance(make_policy(name), Profile)]
    return [*POLICIES, *(name for name in others if name not in POLICIES)]


def compile_apart(names: Iterable[str] = POLICIES, stopped: Callable[[], bool] = lambda: False) -> None:
    """Compile policies into the cache in another process, so that this one continues to respond.

    It has no effect for policies that are in the cache. If it fails, the first use of a policy compiles it.

    Parameters
    ----------
    stopped
        Reports whether to give up.
    """
    missing = uncompiled(names)
    if not missing:
        return
    command = [sys.executable, "-m", "seaway", "compile", *missing]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        try:
            while process.poll() is None and not stopped():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        finally:
            process.kill()
    if process.returncode and not stopped():
        log.warning("the policies %s could not be compiled in another process", ", ".join(missing))


def warm(name: str, make: Callable[[str, PolicyOptions], Profile] = make_profile) -> None:
    """Compile the code of a policy and what all servers need, or load it from the cache.

    A policy that learns from past jobs is compiled with and without them.

    Parameters
    ----------
    make
        Factory of the policy.

    Raises
    ------
    RejectedError
        If the policy does not exist.
    """
    fleet, jobs = demo_fleet(), demo_jobs(JOBS)
    for mix in ((), jobs):
        snapshot, profile = Snapshot(fleet), make(name, PolicyOptions(mix=mix))
        plan = decide(snapshot, JobQueue(snapshot, jobs), profile, overdue=range(len(jobs)), dry_run=True)
        placements = list(plan.placements())
        for held in allocations_of(plan):
            held.release(snapshot)
        first = next(job for job in jobs if job.name == placements[0].job)
        allocate(snapshot, first, [each for each in placements if each.job == first.name])
        explain(snapshot, jobs[-1], profile)
        all_open(snapshot.arrays, plan.decisions)
        most_free(snapshot.arrays)
        put_node(snapshot, fleet.clusters[0].name, fleet.clusters[0].nodes[0])
    backfill.warm()
    if name in BUILT_IN:
        mark_compiled(name)
