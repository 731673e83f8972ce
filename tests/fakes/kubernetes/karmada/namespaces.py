"""Namespaces of the control plane, which every member gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.fakes.kubernetes.controllers.staff import Controller, Staff
from tests.fakes.kubernetes.karmada.members import Member
from tests.fakes.kubernetes.karmada.words import MANAGED
from tests.fakes.kubernetes.kinds import NAMESPACES
from tests.fakes.kubernetes.store import Event

Key = tuple[str, str]
_OWN = ("kube-", "karmada-")


class NamespaceSync(Controller[Key]):
    """Creates namespaces in members, and deletes those that it created."""

    kinds = (NAMESPACES,)

    def __init__(self, staff: Staff, members: Mapping[str, Member]) -> None:
        super().__init__(staff)
        self._members = members
        self._blocked: dict[str, dict[str, None]] = {}

    def receive(self, event: Event) -> Iterator[Key]:
        """Return a namespace for every member."""
        name = event.now.name
        if name != "default" and not name.startswith(_OWN):
            for member in self._members:
                yield member, name

    def retry(self, cluster: str) -> None:
        """Retry the namespaces that failed in a cluster."""
        for name in self._blocked.pop(cluster, {}):
            self.staff.add(self, (cluster, name))

    def look(self, key: Key) -> None:
        """Create a namespace in a member, or delete it."""
        cluster, name = key
        member = self._members.get(cluster)
        if member is None or not member.server.answers:
            self._blocked.setdefault(cluster, {})[name] = None
            return
        there = member.server.store.find(NAMESPACES, "", name)
        wanted = self.store.find(NAMESPACES, "", name)
        if wanted is not None and there is None:
            labels = {**wanted.labels, MANAGED: "true"}
            member.server.verbs.create(NAMESPACES, "", {"metadata": {"name": name, "labels": labels}})
        elif wanted is None and there is not None and there.labels.get(MANAGED) == "true" and not there.deleting:
            member.server.verbs.delete(NAMESPACES, "", name)
