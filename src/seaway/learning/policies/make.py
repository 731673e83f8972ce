"""Trained policies as profiles: the rules of fit, and a trained score with a heuristic behind it."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import msgspec

from seaway.domain.errors import RejectedError
from seaway.learning.observing import clusters as clusters_shown
from seaway.learning.observing import nodes as nodes_shown
from seaway.learning.policies.budget import Guard, Limits, NoAnswerError
from seaway.learning.policies.choice import Answer, FallBack, Learned, Model, Policy, Stoppable, Stopped
from seaway.learning.policies.file import PolicyFile
from seaway.learning.policies.levels import ClusterChoice, NodeChoice
from seaway.learning.policies.manifest import Level, Manifest
from seaway.learning.policies.monitor import Reason, Watch
from seaway.learning.policies.session import Session
from seaway.scheduling.framework import Cycle, Scores
from seaway.scheduling.policies.registry import PolicyOptions, make_profile, profile_of
from seaway.scheduling.policies.seaway.plugin import Seaway
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import ProfileSpec
from seaway.scheduling.snapshot.snapshot import Snapshot

VERSION_DIGITS = 12
"""Digits of a model's digest by which people tell it from others."""


def make_learned(
    file: PolicyFile, options: PolicyOptions, limits: Limits, watch: Watch, *, model: Stoppable | None = None
) -> Profile:
    """Make a trained policy that the engine can decide by.

    The rules of fit come first, so that what it chooses fits; see `Learned` for the rest.

    Parameters
    ----------
    file
        The policy, read and checked.
    options
        What policies are told; the level is the file's own.
    limits, watch
        What it may take, and who is told when it takes more.
    model
        Its model, where that is loaded already.

    Raises
    ------
    RejectedError
        When it was trained on other figures than this version shows, onnxruntime is missing, or there is no such
        heuristic to fall back to.
    """
    plugin = make_plugin(file, options, limits, watch, model=model)
    return profile_of(plugin.name, options, plugin).with_version(version_of(file))


def make_plugin(
    file: PolicyFile,
    options: PolicyOptions,
    limits: Limits,
    watch: Watch,
    *,
    model: Stoppable | None = None,
    profile: str = "",
) -> Learned:
    """Make a trained policy as a plugin, to be weighed against others.

    Parameters
    ----------
    profile
        The profile that it joins; empty for one that it is alone in. The others are as for `make_learned`, and so is
        what is raised.
    """
    manifest = file.manifest
    _check_figures(manifest)
    loaded = model or Session(file)
    asked = Stopped(loaded, limits.stop_s) if limits.budget_ms else loaded
    chooser = _chooser(manifest, asked, options)
    behind = FallBack(_behind(options, limits), graded=bool(profile))
    return Learned(manifest.name, chooser, Guard(manifest.name, limits, watch), behind, profile=profile)


class Unusable:
    """Stands in the place of a policy that cannot be used.

    Parameters
    ----------
    why
        One clause.
    """

    def __init__(self, why: str) -> None:
        self._why = why

    def ready(self, snapshot: Snapshot) -> None:
        """Nothing is worked out beforehand."""

    def answer(self, cycle: Cycle) -> Answer:
        """Say that there is none.

        Raises
        ------
        NoAnswerError
            Always.
        """
        raise NoAnswerError(Reason.UNUSABLE, self._why)

    def device_keys(self, cycle: Cycle, node: int) -> Scores:
        """Rank the devices of a node; raises as `answer`."""
        raise NoAnswerError(Reason.UNUSABLE, self._why)


def make_unusable(name: str, why: str, options: PolicyOptions, limits: Limits, watch: Watch) -> Profile:
    """Make what decides in place of a policy that cannot be used, and says so of each decision."""
    plugin = Learned(name, Unusable(why), Guard(name, limits, watch), FallBack(_behind(options, limits)))
    return profile_of(name, options, plugin)


def version_of(file: PolicyFile) -> str:
    """Return what tells a policy from others of its name."""
    return file.manifest.model_sha256[:VERSION_DIGITS]


def joined_version(outline: ProfileSpec, files: Mapping[str, PolicyFile]) -> str:
    """Return what tells a profile from others of its name: its plugins, weights and settings, and trained policies.

    Parameters
    ----------
    files
        Its trained policies, by the names that it has for them.
    """
    models = {name: file.manifest.model_sha256 for name, file in files.items()}
    parts = [(each.name, each.weight, each.settings, models.get(each.policy)) for each in outline.plugins]
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:VERSION_DIGITS]


def _behind(options: PolicyOptions, limits: Limits) -> Profile:
    """Make the heuristic that decides where a trained policy does not."""
    return make_profile(limits.fallback, PolicyOptions(seed=options.seed, mix=options.mix))


def _chooser(manifest: Manifest, model: Model, options: PolicyOptions) -> Policy:
    if manifest.level is Level.CLUSTER:
        return ClusterChoice(model, manifest.clusters or 0, network=manifest.network, fitting=manifest.fitting)
    seaway = Seaway(options.mix)
    return NodeChoice(model, nodes_shown.NodeObserver(options.mix, seaway), seaway)


def _check_figures(manifest: Manifest) -> None:
    shown = clusters_shown.VERSION if manifest.level is Level.CLUSTER else nodes_shown.VERSION
    if manifest.features != shown:
        raise RejectedError(
            f"policy {manifest.name!r} was trained on version {manifest.features} of the figures that policies for "
            f"{manifest.level.value}s are shown, and this Seaway shows version {shown}: train it again"
        )
