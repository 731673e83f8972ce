"""Names of clusters. A name belongs to the identity of a cluster, not to its address."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from seaway.application.changes import Change
from seaway.application.ports.store import Store
from seaway.application.records import ClusterName


class ClusterNames:
    """Present and former names of clusters. Only one thread at a time can use it.

    Stored jobs refer to their clusters by name. So a cluster never gets another name. A name goes to another cluster
    only after an operator removed its previous owner, however kubeconfigs change.

    Parameters
    ----------
    store
        Persistent storage, shared by all leaders; None stores the names in this process only.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._read: dict[str, ClusterName] | None = None

    def reload(self) -> None:
        """Read the stored names again, since another process may have removed some."""
        if self._store:
            self._read = None

    def taken(self) -> Set[str]:
        """Return all assigned names."""
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
        """Return the identity of a named cluster; empty if unknown."""
        row = self._rows().get(name)
        return row.uid if row else ""

    def keep(self, name: str, uid: str, server: str) -> None:
        """Store the name and identity of a cluster.

        Raises
        ------
        UnavailableError
            If the database does not answer. Nothing is stored then.
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
