"""Names of clusters. A name belongs to the identity of a cluster, not to its address."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.records import ClusterName


class ClusterNames:
    """The names that clusters have and had. For one thread at a time.

    What is stored of jobs says by name where they run. So a cluster never gets another name, and a name is given to
    no other cluster before a user had the one that had it forgotten, however kubeconfigs come and go.

    Parameters
    ----------
    store
        Where they are kept, for all who ever lead; None keeps them for this process alone.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._read: dict[str, ClusterName] | None = None

    def reload(self) -> None:
        """Look again what is stored: others may have had clusters forgotten."""
        if self._store:
            self._read = None

    def taken(self) -> Set[str]:
        """Return all names that were given."""
        return self._rows().keys()

    def of(self, uid: str | None, server: str) -> str:
        """Return the name of a cluster; empty if it has none yet.

        Parameters
        ----------
        uid
            Identity that it reports; empty if it cannot be read, None before its first answer.
        server
            Known address of its API server; empty if none.
        """
        rows = self._rows().values()
        same = [row for row in rows if uid and row.uid == uid]
        same += [row for row in rows if server and row.server == server and not (uid and row.uid)]
        return same[0].name if same else ""

    def uid(self, name: str) -> str:
        """Return who the cluster of a name is; empty where that is not known."""
        row = self._rows().get(name)
        return row.uid if row else ""

    def keep(self, name: str, uid: str, server: str) -> None:
        """Store the name and identity of a cluster.

        Raises
        ------
        UnavailableError
            When the database does not answer. Nothing is stored then.
        """
        rows = self._rows()
        before = rows.get(name)
        now = ClusterName(name, uid or (before.uid if before else ""), server)
        moved = [replace(row, server="") for row in rows.values() if server and row.server == server and row != before]
        if now == before and not moved:
            return
        changed = [now, *moved]
        if self._store:
            self._store.commit([Change(put=[*changed])])
        rows.update({row.name: row for row in changed})

    def _rows(self) -> dict[str, ClusterName]:
        if self._read is None:
            self._read = {row.name: row for row in self._store.cluster_names()} if self._store else {}
        return self._read
