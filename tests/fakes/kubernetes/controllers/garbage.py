"""Garbage collection by owners, and the deletion of namespaces."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fakes.kubernetes.controllers.staff import Controller
from tests.fakes.kubernetes.kinds import NAMESPACES, Json, Kind
from tests.fakes.kubernetes.options import DeleteOptions
from tests.fakes.kubernetes.store import Event, Stored
from tests.fakes.kubernetes.verbs import FOREGROUND, ORPHAN


class Garbage(Controller[tuple[Kind, str]]):
    """Deletes objects without owners, and implements ``Foreground`` and ``Orphan``."""

    kinds = None

    def receive(self, event: Event) -> Iterator[tuple[Kind, str]]:
        """Return the dependents of a deleted object, new objects with owners, and objects that are being deleted."""
        now = event.now
        if event.type == "DELETED":
            yield from tuple(self.store.dependents.get(now.uid, ()))
            if now.owners:
                for owner in self._owners(now):
                    if owner and owner.deleting:
                        yield owner.kind, owner.key
        elif now.deleting or (event.type == "ADDED" and now.owners):
            yield now.kind, now.key

    def look(self, key: tuple[Kind, str]) -> None:
        """Delete an object without owners, or continue its deletion."""
        kind, name = key
        found = self.store.shelves[kind].items.get(name)
        if found is None:
            return
        if found.deleting:
            self._finish(found)
        elif found.owners and not any(self._owners(found)):
            self.verbs.delete(kind, found.namespace, found.name, DeleteOptions(propagation="Background", uid=found.uid))

    def _owners(self, one: Stored) -> list[Stored | None]:
        """Return each owner, or None for one that is gone."""
        found: list[Stored | None] = []
        for reference in one.view()["metadata"].get("ownerReferences") or ():
            kind = self.store.kinds.named(reference["apiVersion"], reference["kind"])
            owner = self.store.find(kind, one.namespace if kind.namespaced else "", reference["name"]) if kind else None
            found.append(owner if owner and owner.uid == reference["uid"] else None)
        return found

    def _finish(self, one: Stored) -> None:
        body = one.read()
        finalizers = body["metadata"].get("finalizers") or []
        dependents = [
            (kind, self.store.shelves[kind].items[key])
            for kind, key in tuple(self.store.dependents.get(one.uid, ()))
            if key in self.store.shelves[kind].items
        ]
        if ORPHAN in finalizers:
            for kind, dependent in dependents:
                self._free(kind, dependent, one.uid)
            self._drop(body, one, ORPHAN)
        elif FOREGROUND in finalizers:
            for kind, dependent in dependents:
                if not dependent.deleting:
                    options = DeleteOptions(propagation="Foreground", uid=dependent.uid)
                    self.verbs.delete(kind, dependent.namespace, dependent.name, options)
            if not self.store.dependents.get(one.uid):
                self._drop(body, one, FOREGROUND)

    def _free(self, kind: Kind, dependent: Stored, owner: str) -> None:
        body = dependent.read()
        meta = body["metadata"]
        meta["ownerReferences"] = [one for one in meta["ownerReferences"] if one["uid"] != owner]
        if not meta["ownerReferences"]:
            del meta["ownerReferences"]
        self.store.put(kind, body)

    def _drop(self, body: Json, one: Stored, finalizer: str) -> None:
        finalizers = [name for name in body["metadata"]["finalizers"] if name != finalizer]
        body["metadata"]["finalizers"] = finalizers
        self.verbs.update(one.kind, one.namespace, one.name, body)


class Namespaces(Controller[str]):
    """Empties namespaces that are being deleted, then removes them."""

    kinds = None

    def receive(self, event: Event) -> Iterator[str]:
        """Return a namespace that is being deleted, again after each of its objects is gone."""
        if event.now.kind is NAMESPACES:
            if event.now.deleting and event.type != "DELETED":
                yield event.now.name
        elif event.type == "DELETED" and event.now.namespace:
            owner = self.store.find(NAMESPACES, "", event.now.namespace)
            if owner is not None and owner.deleting:
                yield owner.name

    def look(self, key: str) -> None:
        """Delete the objects of a namespace; remove the namespace when it is empty."""
        namespace = self.store.find(NAMESPACES, "", key)
        if namespace is None or not namespace.deleting:
            return
        left = False
        for kind in self.store.kinds.all:
            if not kind.namespaced:
                continue
            for one in list(self.store.all(kind, namespace.name)):
                if not one.deleting:
                    self.verbs.delete(kind, one.namespace, one.name, DeleteOptions(propagation="Background"))
                left = True
        if not left and not namespace.read()["metadata"].get("finalizers"):
            self.store.remove(NAMESPACES, namespace.read())
