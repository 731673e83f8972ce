"""Policies as users name them: one of the list, a trained one, or a file that puts plugins together.

A profile file is TOML::

    name = "near-and-tight"

    [[plugin]]
    name = "ClusterScore"
    weight = 3
    settings = { price = 0, location = 4 }

    [[plugin]]
    name = "BestFit"
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from seaway.domain.errors import RejectedError
from seaway.scheduling.engine import Policy
from seaway.scheduling.policies import BUILT_IN, PolicyOptions, make_policy
from seaway.scheduling.profile import Profile
from seaway.scheduling.registry import Wanted, profile_from

SUFFIX = ".toml"
KNOWN = {"name", "weight", "settings"}
KNOWN_ABOVE = {"name", "plugin"}


def policy_of(text: str, options: PolicyOptions) -> Profile | Policy:
    """Make the policy that a user named: by its name, or by the path of a policy file or a profile file.

    However long a trained policy takes, it decides: what comes out hangs on no clock.

    Raises
    ------
    RejectedError
        When there is no such policy, or the file is not as described above; says where.
    """
    if text in BUILT_IN:
        return make_policy(text, options)
    if not text.endswith(SUFFIX):
        return _trained(text, options)
    path = Path(text)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RejectedError(str(error), where=text) from error
    _only_known(content, KNOWN_ABOVE, text)
    plugins = content.get("plugin")
    if not isinstance(plugins, list) or not plugins:
        raise RejectedError("names no plugin; begin each with a line [[plugin]]", where=text)
    wanted = [_wanted(entry, f"{text}: plugin {number}") for number, entry in enumerate(plugins, 1)]
    try:
        return profile_from(str(content.get("name", path.stem)), wanted, options)
    except RejectedError as error:
        raise RejectedError(error.message, where=text) from error


def _trained(text: str, options: PolicyOptions) -> Profile | Policy:
    """Make a policy that may be a trained one, by its name or from its file."""
    from seaway.bootstrap.trained import own_folder, own_policies
    from seaway.learning.policies.file import SUFFIX as TRAINED
    from seaway.learning.policies.file import read_policy

    trained = own_policies(own_folder())
    if text.endswith(TRAINED):
        return trained.learned(read_policy(Path(text)), options)
    return trained.make(text, options)


def _wanted(entry: object, where: str) -> Wanted:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise RejectedError('needs a name = "..."', where=where)
    _only_known(entry, KNOWN, where)
    weight, settings = entry.get("weight", 1), entry.get("settings", {})
    if not isinstance(weight, int) or isinstance(weight, bool) or weight < 1:
        raise RejectedError("weight has to be a whole number from 1 up", where=where)
    if not isinstance(settings, dict):
        raise RejectedError("settings have to be a table, like { price = 2 }", where=where)
    return Wanted(entry["name"], weight, settings)


def _only_known(table: dict[str, object], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise RejectedError(f"unknown key {key!r}; there are: {', '.join(sorted(known))}", where=where)
