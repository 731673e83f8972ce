"""Joins of clusters from the pages: kubeconfigs that are checked before they are stored, and a command for others."""

from __future__ import annotations

import logging
import secrets
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from importlib.resources import files
from pathlib import Path
from typing import Any

from seaway.application.access import Access
from seaway.application.clusters import ClusterNames
from seaway.application.ports.clock import Clock
from seaway.bootstrap.cluster_checks import Finding, Findings, Level, examine_cluster, examine_token
from seaway.bootstrap.cluster_join import Joined, join, joined, known_names, leave, refuse_karmada
from seaway.bootstrap.clusters import Kind, kind_of
from seaway.bootstrap.data import write_private
from seaway.bootstrap.settings import ClusterSettings
from seaway.domain.errors import ConflictError, RejectedError, SeawayError, UnknownError
from seaway.domain.reasons import Reason, reason_of, replaced

log = logging.getLogger(__name__)

JOIN_S = 900
"""Time for which a join and its command are valid, seconds."""

MAX_JOINS = 16
"""Maximum number of joins at a time."""

LARGEST_KUBECONFIG = 256 * 1024
"""Maximum size of a kubeconfig, bytes."""

OF_USER = ("client-certificate", "client-key", "tokenFile")
OF_CLUSTER = ("certificate-authority",)
"""Entries of a kubeconfig that refer to files of the machine on which it was written."""

FLATTEN = "kubectl config view --raw --minify --flatten"
"""Command that prints a kubeconfig with one context and without references to files."""

NAME = Reason("the_kubeconfig")
"""Name of an uploaded kubeconfig in messages."""

JOINED_LATER = (
    "The server runs with simulated clusters. Restart it to use {name}. Unfinished jobs then move there after the "
    "grace period; cancel test jobs first."
)


class Stage(StrEnum):
    """Progress of a join."""

    INVITED = "invited"
    """The command has not sent a kubeconfig yet."""
    CHECKING = "checking"
    CHECKED = "checked"
    """The checks have ended."""


@dataclass(slots=True)
class ClusterJoin:
    """A join in progress.

    Attributes
    ----------
    by
        Name of the admin.
    token_id
        ID of the token of its command; empty without one.
    context, name
        Context of the kubeconfig, and the name that the cluster gets by default.
    answers
        Whether the cluster returned its inventory.
    """

    id: str
    by: str
    expires_ns: int
    stage: Stage = Stage.INVITED
    token_id: str = ""
    kubeconfig: str = field(default="", repr=False)
    context: str = ""
    name: str = ""
    findings: list[Finding] = field(default_factory=list)
    answers: bool = False

    @property
    def usable(self) -> bool:
        """True if the checks have ended, and the cluster answers."""
        return self.stage is Stage.CHECKED and self.answers


class ClusterJoins:
    """Joins of clusters, and their end.

    Kubeconfigs are in memory until the join is completed. Then they are stored as those of `seaway cluster join`.

    Parameters
    ----------
    data
        Data folder; None if there is none.
    gateway_of
        Returns the gateway of a cluster; empty if it has none.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        data: Path | None,
        access: Access,
        clock: Clock,
        gateway_of: Callable[[str], str],
    ) -> None:
        self._settings, self._data, self._access, self._clock = settings, data, access, clock
        self._gateway_of = gateway_of
        self._kind = kind_of(settings, data) if data else Kind.SET
        self._joins: dict[str, ClusterJoin] = {}
        self._lock = threading.Lock()

    @property
    def simulated(self) -> bool:
        """True if the server uses joined clusters only after a restart."""
        return self._kind is Kind.SIMULATED

    def obstacle(self) -> str:
        """Return why no cluster can be joined here; empty if one can."""
        if self._data is None:
            return Reason("no_data_folder")
        if self._kind is Kind.SET:
            return Reason("clusters_are_set")
        if self._settings.simulated_url or self._settings.fleet != ClusterSettings().fleet:
            return Reason("simulated_are_set")
        return ""

    def names(self) -> list[str]:
        """Return the names of the joined clusters."""
        return joined(self._data) if self._data else []

    def joins(self) -> list[ClusterJoin]:
        """Return the joins in progress, oldest first."""
        now_ns = self._clock.now_ns()
        with self._lock:
            self._joins = {key: each for key, each in self._joins.items() if each.expires_ns > now_ns}
            return list(self._joins.values())

    def find(self, join_id: str) -> ClusterJoin:
        """Return a join.

        Raises
        ------
        UnknownError
            If it does not exist, or its time is over.
        """
        for each in self.joins():
            if each.id == join_id:
                return each
        raise UnknownError(Reason("join_gone"))

    def begin(self, kubeconfig: str, context: str, by: str) -> ClusterJoin:
        """Begin to check a kubeconfig.

        Raises
        ------
        RejectedError
            If it is not a kubeconfig, or needs a program or files of another machine.
        ConflictError
            If no cluster can be joined here, or too many joins are in progress.
        """
        made = self._make(by)
        self._check(made, kubeconfig, context)
        self._add(made)
        return made

    def invite(self, by: str) -> tuple[ClusterJoin, str]:
        """Begin a join whose kubeconfig a command sends; return it with the token of the command.

        Raises
        ------
        ConflictError
            As `begin`, and if the manifests would not fit the settings.
        """
        if self._settings.namespace != ClusterSettings().namespace:
            said = Reason("manifests_default")
            raise ConflictError(said)
        made = self._make(by)
        made.token_id, secret = self._access.lend(f"join-{made.id}", by, JOIN_S)
        self._add(made)
        return made, secret

    def receive(self, join_id: str, kubeconfig: str) -> ClusterJoin:
        """Check the kubeconfig that a command sent; raises as `begin`."""
        found = self.find(join_id)
        if found.stage is not Stage.INVITED:
            raise ConflictError(Reason("kubeconfig_received"))
        self._check(found, kubeconfig, "")
        self._access.take_back(found.token_id)
        return found

    def script(self, join_id: str, url: str, token: str) -> str:
        """Return the script of a command.

        Parameters
        ----------
        url
            URL of the join in the API.
        """
        self.find(join_id)
        folder = files("seaway.adapters.kubernetes") / "manifests"
        texts = [(folder / name).read_text(encoding="utf-8") for name in ("member.yaml", "namespaces.yaml")]
        script = (folder / "join.sh").read_text(encoding="utf-8").replace("SEAWAY_URL", url)
        return script.replace("SEAWAY_TOKEN", token).replace("SEAWAY_MANIFEST_TEXT", "---\n".join(texts).rstrip())

    def finish(self, join_id: str, name: str, *, replace: bool) -> Joined:
        """Store the kubeconfig of a checked join.

        Raises
        ------
        ConflictError
            If the checks have not ended.
        RejectedError, UnavailableError
            As `seaway.bootstrap.cluster_join.join`.
        """
        found = self.find(join_id)
        if found.stage is not Stage.CHECKED:
            raise ConflictError(Reason("checks_running"))
        assert self._data is not None
        with tempfile.TemporaryDirectory(prefix="seaway-join-") as folder:
            file = Path(folder) / "kubeconfig"
            write_private(file, found.kubeconfig)
            try:
                done = join(file, found.context, name, self._data, replace=replace)
            except SeawayError as error:
                raise _renamed(error, file) from None
        self.drop(join_id)
        return done

    def drop(self, join_id: str) -> None:
        """End a join without a result."""
        with self._lock:
            found = self._joins.pop(join_id, None)
        if found and found.token_id:
            self._access.take_back(found.token_id)

    def leave(self, name: str) -> None:
        """Remove the kubeconfig of a cluster; its workloads continue.

        Raises
        ------
        UnknownError
            If it was not joined here.
        """
        if self._data is None or name not in joined(self._data):
            raise UnknownError(Reason("cluster_not_joined", name=name[:253]))
        leave(name, self._data)

    def _make(self, by: str) -> ClusterJoin:
        if why := self.obstacle():
            raise ConflictError(why)
        if len(self.joins()) >= MAX_JOINS:
            raise ConflictError(Reason("joins_full", most=MAX_JOINS))
        return ClusterJoin(secrets.token_hex(8), by, self._clock.now_ns() + JOIN_S * 10**9)

    def _add(self, made: ClusterJoin) -> None:
        with self._lock:
            self._joins[made.id] = made

    def _check(self, made: ClusterJoin, kubeconfig: str, context: str) -> None:
        """Read a kubeconfig, and start the checks in a thread."""
        made.kubeconfig, made.context, server = self_contained(kubeconfig, context)
        made.name = made.context
        made.stage = Stage.CHECKING
        made.findings.append(Finding("kubeconfig", Level.OK, Reason("context_of", context=made.context, server=server)))
        threading.Thread(target=self._run, args=(made,), name=f"join {made.id}", daemon=True).start()

    def _run(self, made: ClusterJoin) -> None:
        try:
            for each in self._examine(made):
                made.findings.append(each)
        except SeawayError as error:
            made.findings.append(Finding("cluster", Level.ERROR, reason_of(error)))
        except Exception:  # a bug must not leave the join in progress
            log.exception("the checks of a cluster failed")
            made.findings.append(Finding("cluster", Level.ERROR, Reason("checks_failed")))
        finally:
            made.stage = Stage.CHECKED

    def _examine(self, made: ClusterJoin) -> Findings:
        from seaway.adapters.kubernetes.backends import KubernetesBackends
        from seaway.adapters.kubernetes.connection.contexts import read_kubeconfig, user_of

        with tempfile.TemporaryDirectory(prefix="seaway-join-") as folder:
            file, names = Path(folder) / "kubeconfig", ClusterNames()
            write_private(file, made.kubeconfig)
            yield from examine_token("token", user_of(read_kubeconfig(file), made.context))
            try:
                refuse_karmada(file, made.context, "a file with this kubeconfig")
                backends = KubernetesBackends(Path(folder), names=names)
            except SeawayError as error:
                raise _renamed(error, file) from None
            try:
                (cluster,) = backends.clusters()
                made.name = cluster.cluster
                for each in examine_cluster(cluster):
                    made.answers |= each.level is not Level.ERROR
                    yield Finding(each.check, each.level, replaced(each.text, str(file), NAME), each.remedy)
            finally:
                backends.close()
        assert self._data is not None
        if before := known_names(self._data).get(names.uid(made.name), ""):
            yield Finding("name", Level.NOTE, Reason("joined_before", name=before), Reason("say_replace"))
            made.name = before
        if gateway := self._gateway_of(made.name):
            yield Finding("network", Level.OK, Reason("gateway_is", gateway=gateway))
        else:
            yield Finding("network", Level.NOTE, Reason("without_gateway"), Reason("put_network"))


def self_contained(text: str, context: str) -> tuple[str, str, str]:
    """Return a kubeconfig with one context only, the name of the context, and the address of its server.

    Raises
    ------
    RejectedError
        If it is not a kubeconfig, or refers to programs or files, which are not those of the server.
    """
    from seaway.adapters.kubernetes.connection.contexts import (
        cluster_name,
        cluster_of,
        current_context,
        minified,
        read_kubeconfig,
        user_of,
    )

    if len(text.encode()) > LARGEST_KUBECONFIG:
        raise RejectedError(
            Reason("kubeconfig_too_large", most=LARGEST_KUBECONFIG // 1024, command=FLATTEN), where="kubeconfig"
        )
    with tempfile.TemporaryDirectory(prefix="seaway-join-") as folder:
        file = Path(folder) / "kubeconfig"
        write_private(file, text)
        try:
            chosen = context or current_context(file)
            written = read_kubeconfig(file)
            user, cluster = user_of(written, chosen), cluster_of(written, chosen)
            _require_no_programs(user)
            _require_no_files(user, cluster)
            name = cluster_name(chosen)
            return minified(file, chosen, name), name, str(cluster.get("server", ""))
        except RejectedError as error:
            message = replaced(error.message, str(file), NAME)
            raise RejectedError(message, where="kubeconfig") from None


def _require_no_programs(user: dict[str, Any]) -> None:
    """Reject credentials that a program of the user's machine returns."""
    plugin = user.get("exec")
    if plugin is not None or user.get("auth-provider") is not None:
        command = str(plugin.get("command", "")) if isinstance(plugin, dict) else "an auth-provider"
        raise RejectedError(Reason("kubeconfig_runs_program", command=command[:60]))


def _require_no_files(user: dict[str, Any], cluster: dict[str, Any]) -> None:
    """Reject references to files, which would be those of the server."""
    found = [name for entry, names in ((user, OF_USER), (cluster, OF_CLUSTER)) for name in names if entry.get(name)]
    if found:
        said = Reason("kubeconfig_has_files", names=tuple(found), command=FLATTEN)
        raise RejectedError(said)


def _renamed(error: SeawayError, file: Path) -> SeawayError:
    """Return an error that does not name a temporary file, nor options of the command line."""

    def renamed(text: str) -> str:
        return reduce(lambda said, pair: replaced(said, *pair), renames, text)

    renames = ((str(file), NAME), ("--name", "name"), ("--replace", "replace"))
    if isinstance(error, RejectedError):
        return RejectedError(renamed(error.message), where=error.where)
    return type(error)(renamed(reason_of(error)))
