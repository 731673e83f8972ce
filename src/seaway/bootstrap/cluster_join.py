"""Joining of clusters: check a kubeconfig, and store it for `seaway up`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Set
from dataclasses import dataclass
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seaway.application.clusters import ClusterNames
from seaway.bootstrap import cluster_checks
from seaway.bootstrap.cluster_checks import RIGHTS_REMEDY, inventory, node_problems
from seaway.bootstrap.clusters import KUBECONFIGS
from seaway.bootstrap.data import clusters_driven, write_private
from seaway.domain.cluster import Cluster
from seaway.domain.errors import RejectedError, UnavailableError
from seaway.domain.reasons import Reason, reason_of, replaced

if TYPE_CHECKING:
    pass

MAX_S = 120.0
"""Timeout of one query, seconds. The caller gives up earlier, and names the part that does not respond."""

OPTIONS: Mapping[str, Any] = {"option": "--name", "replace": "--replace"}
"""Names of options in errors."""

KNOWN = ".names.json"
"""File next to the kubeconfigs with the names of all clusters that ever joined, by identity."""

KARMADA = "cluster.karmada.io"
"""API group that only the control plane of Karmada serves."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Joined cluster.

    Attributes
    ----------
    cluster
        Inventory; None without a check.
    file
        Stored kubeconfig.
    problems
        Problems of the nodes, one sentence each.
    driven
        Kind of clusters that the server on the data folder uses; empty if no server runs.
    """

    name: str
    file: Path
    cluster: Cluster | None
    problems: tuple[str, ...] = ()
    driven: str = ""


def join(kubeconfig: Path, context: str, name: str, data: Path, *, look: bool = True, replace: bool = False) -> Joined:
    """Store a context of a kubeconfig in the data folder.

    Parameters
    ----------
    context
        Context; empty for the current one.
    name
        Name of the cluster; empty for the name of the context.
    look
        Whether to connect to the cluster first.
    replace
        Whether to replace the kubeconfig of the cluster, for example after its token expired.

    Raises
    ------
    RejectedError
        If the kubeconfig or the name is invalid, the name belongs to another cluster, the cluster joined under another
        name, or it is the control plane of Karmada.
    UnavailableError
        If the cluster does not respond correctly.
    """
    from seaway.adapters.kubernetes.connection.contexts import cluster_name, current_context, minified

    context = context or current_context(kubeconfig)
    asked, name = name, name or cluster_name(context)
    if cluster_name(name) != name:
        raise RejectedError(Reason("cluster_name_invalid", name=name, valid=cluster_name(name)), where="name")
    folder, driven = data / KUBECONFIGS, clusters_driven(data)
    seen, problems, uid = _look(minified(kubeconfig, context, name), name, kubeconfig) if look else (None, (), "")
    known = known_names(data)
    if uid:
        name = _known_name(uid, name, asked, known, set(joined(data)), replace=replace)
    file = folder / f"{name}.yaml"
    if file.exists() and not replace:
        says = Reason("cluster_file_exists", name=name, file=str(file), **OPTIONS)
        raise RejectedError(says, where="name")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if uid and known.get(uid) != name:
        others = {each: other for each, other in known.items() if other != name}
        write_private(folder / KNOWN, json.dumps(others | {uid: name}) + "\n")
    write_private(file, minified(kubeconfig, context, name))
    return Joined(name, file, seen and changed(seen, name=name), problems, driven)


def _known_name(uid: str, name: str, asked: str, known: Mapping[str, str], there: Set[str], *, replace: bool) -> str:
    """Return the name for a cluster, its previous one if it joined before.

    Parameters
    ----------
    asked
        Requested name; empty for none.
    known
        Names of all clusters that ever joined, by identity.
    there
        Names of the joined clusters.
    replace
        Whether the cluster may get the name of a cluster that left.
    """
    before = known.get(uid, "")
    if before and before != name:
        if before in there:
            says = Reason("joined_already", before=before, **OPTIONS)
            raise RejectedError(says, where="name")
        if asked:
            says = Reason("joined_before_as", before=before)
            raise RejectedError(says, where="name")
        return before
    if not before and name in known.values() and not (replace and name not in there):
        says = Reason("other_cluster_of_name", name=name, **OPTIONS)
        raise RejectedError(says, where="name")
    return name


def leave(name: str, data: Path) -> Path:
    """Remove a cluster's kubeconfig from the data folder. Its workloads continue, and its name stays reserved.

    Raises
    ------
    RejectedError
        If no joined cluster has that name.
    """
    file = data / KUBECONFIGS / f"{name}.yaml"
    try:
        file.unlink()
    except FileNotFoundError:
        there = ", ".join(joined(data)) or "none"
        raise RejectedError(f"no cluster {name!r} was joined here; available: {there}", where="name") from None
    return file


def joined(data: Path) -> list[str]:
    """Return the names of the joined clusters."""
    folder = data / KUBECONFIGS
    return sorted(file.stem for file in folder.glob("*.yaml")) if folder.is_dir() else []


def known_names(data: Path) -> dict[str, str]:
    """Return the names of all clusters that ever joined, by identity."""
    folder = data / KUBECONFIGS
    try:
        return dict(json.loads((folder / KNOWN).read_bytes()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise RejectedError(f"cannot be read: {error}", where=str(folder / KNOWN)) from None


def _look(text: str, name: str, kubeconfig: Path) -> tuple[Cluster, tuple[str, ...], str]:
    """Connect to a cluster; return its inventory, its problems and its identity."""
    with tempfile.TemporaryDirectory(prefix="seaway-join-") as folder:
        file = Path(folder) / name
        write_private(file, text)
        try:
            refuse_karmada(file, name, str(kubeconfig.absolute()))
            return _see(Path(folder))
        except UnavailableError as error:  # name the file of the user, not the temporary one
            raise UnavailableError(replaced(reason_of(error), str(file), str(kubeconfig))) from None


def refuse_karmada(file: Path, name: str, kubeconfig: str) -> None:
    """Check that a server is not the control plane of Karmada, which has no nodes."""
    from seaway.adapters.kubernetes.connection.api import Api
    from seaway.adapters.kubernetes.connection.credentials import Credentials
    from seaway.adapters.kubernetes.connection.event_loop import EventLoopThread
    from seaway.adapters.kubernetes.connection.responses import ApiError

    async def ask() -> bytes:
        api = Api(name, Credentials(file, name), request_timeout_s=cluster_checks.TRY_S)
        try:
            return await api.get(f"/apis/{KARMADA}")
        except ApiError:
            return b""  # clusters do not have this group
        finally:
            await api.close()

    reactor = EventLoopThread()
    try:
        answer = reactor.run(ask(), MAX_S)
    finally:
        reactor.close()
    if f'"{KARMADA}"'.encode() in answer:
        raise RejectedError(
            f"{name} is a control plane of Karmada, which runs nothing itself; for its members start "
            f"`seaway up` with the setting clusters.karmada.kubeconfig = {kubeconfig!r}",
            where="kubeconfig",
        )


def _see(folder: Path) -> tuple[Cluster, tuple[str, ...], str]:
    """Connect to the only cluster of a folder, and wait for its inventory."""
    from seaway.adapters.kubernetes.backends import KubernetesBackends
    from seaway.adapters.kubernetes.rights import describe

    names = ClusterNames()
    backends = KubernetesBackends(folder, names=names)
    try:
        (cluster,) = backends.clusters()
        seen = inventory(cluster)
        problems, missing = cluster.view.problems(), cluster.missing_rights()
    finally:
        backends.close()
    said = [f"Seaway may not {describe(missing)}; {RIGHTS_REMEDY}"] if missing else []
    said += node_problems(problems)
    return seen, tuple(said), names.uid(seen.name)
