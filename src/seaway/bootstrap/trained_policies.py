"""Policies by name, including trained ones, whose models are cached."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from time import monotonic_ns

from seaway.client.config import data_folder
from seaway.domain.errors import RejectedError
from seaway.domain.job import Job
from seaway.domain.tenancy import unknown_name
from seaway.learning.policies.choice import Learned
from seaway.learning.policies.file import Level, PolicyFile
from seaway.learning.policies.library import FolderLibrary, JoinedLibrary, Library, ShippedLibrary
from seaway.learning.policies.make import joined_version, make_learned, make_plugin, make_unusable
from seaway.learning.policies.monitor import Counts, Limits, NullWatch, Watch
from seaway.learning.policies.session import Session
from seaway.scheduling.engine import Policy
from seaway.scheduling.policies.registry import (
    BUILT_IN,
    PolicyOptions,
    in_queues,
    make_policy,
    policy_names,
    split_spec,
    with_options,
)
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import ProfileSpec, profile_from

FOLDER = "policies"
"""Subfolder of the data folder with a user's policy files."""


class Trained:
    """Factory of policies: built-in ones, those of other packages, and trained ones of a library. Thread-safe.

    Parameters
    ----------
    library
        The trained policies.
    limits, watch
        Limits of trained policies, and the observer of their decisions.
    outlines
        Profiles by name, which may use trained policies as plugins.
    """

    def __init__(
        self, library: Library, limits: Limits, watch: Watch, outlines: Mapping[str, ProfileSpec] = {}
    ) -> None:
        self._library = library
        self._limits = limits
        self._watch = watch
        self._outlines = outlines
        self._models: dict[tuple[str, str], Session] = {}
        self._loading = threading.Lock()

    def make(self, name: str, options: PolicyOptions, watch: Watch | None = None) -> Profile | Policy:
        """Create a policy by name, with `watch` instead of the default observer.

        Parameters
        ----------
        name
            Name, or `Queue.policy_spec` with the options of a queue.

        Raises
        ------
        RejectedError
            If the policy is unknown, does not have the requested level or option, or cannot run here.
        """
        name, given = split_spec(name)
        options = with_options(name, given, options)
        trained = [] if name in BUILT_IN else self._library.names()
        if name in trained:
            return self.learned(self._library.load(name), options, watch)
        if name in self._outlines:
            return self.joined(self._outlines[name], options, watch)
        if name in BUILT_IN or name in (there := policy_names()):
            return make_policy(name, options)
        raise unknown_name("policy", name, (*there, *self._outlines, *trained), where="")

    def learned(self, file: PolicyFile, options: PolicyOptions, watch: Watch | None = None) -> Profile:
        """Create a trained policy; raises as `make`."""
        _require_level(file, options)
        return make_learned(file, options, self._limits, watch or self._watch, model=self._model(file))

    def joined(
        self,
        outline: ProfileSpec,
        options: PolicyOptions,
        watch: Watch | None = None,
        load: Callable[[str], PolicyFile] | None = None,
    ) -> Profile:
        """Create a profile that may use trained policies as plugins; raises as `make`.

        Parameters
        ----------
        load
            Loader of trained policies; None for the library.
        """
        files: dict[str, PolicyFile] = {}

        def plugin(policy: str) -> Learned:
            try:
                file = files[policy] = (load or self._library.load)(policy)
                _require_level(file, options)
                model = self._model(file)
                return make_plugin(file, options, self._limits, watch or self._watch, model=model, profile=outline.name)
            except RejectedError as error:
                raise RejectedError(f"plugin {TRAINED!r} with policy {policy!r}: {error}") from error

        profile = profile_from(outline, options, {TRAINED: plugin})
        return profile.with_version(joined_version(outline, files)) if files else profile

    def profile(self, name: str, mix: Sequence[Job]) -> Profile:
        """Create the form of a policy for queues, for a mix of past jobs; raises as `make`."""
        options = PolicyOptions(mix=mix)
        return in_queues(self.make(name, options), options)

    def make_fallback(self, name: str, why: str, mix: Sequence[Job]) -> Profile:
        """Create the fallback for a policy that cannot be used."""
        return make_unusable(name, why, PolicyOptions(mix=mix), self._limits, self._watch)

    def unwatched(self, name: str, options: PolicyOptions) -> Profile:
        """Create the form of a policy for queues, whose decisions are not observed; raises as `make`."""
        return in_queues(self.make(name, options, NullWatch()), options)

    def forget(self, name: str) -> None:
        """Remove the cached models of a policy, since its name may now refer to another policy."""
        with self._loading:
            self._models = {key: model for key, model in self._models.items() if key[0] != name}

    def _model(self, file: PolicyFile) -> Session:
        digest = (file.manifest.name, file.manifest.model_sha256)
        with self._loading:
            model = self._models.get(digest)
            if model is None:
                model = self._models[digest] = Session(file)
            return model


def _require_level(file: PolicyFile, options: PolicyOptions) -> None:
    if options.level == "cluster" and file.manifest.level is Level.NODE:
        raise RejectedError(f"policy {file.manifest.name!r} chooses among nodes; leave the level out")


@lru_cache(maxsize=4)
def own_policies(folder: Path) -> Trained:
    """Return the factory for a user's own folder, without a time limit.

    The first problem of each kind is logged once per process.
    """
    return Trained(own_library(folder), Limits(budget_ms=0), Counts(monotonic_ns))


def own_library(folder: Path | None = None) -> Library:
    """Return the built-in trained policies and those of a folder; None for the user's own folder."""
    return JoinedLibrary([ShippedLibrary(), FolderLibrary(folder or own_folder())])


def own_folder() -> Path:
    """Return the folder of the user's policy files."""
    return data_folder() / FOLDER


TRAINED = "trained"
"""Name of the plugin for a trained policy. The key `policy` names the policy."""
