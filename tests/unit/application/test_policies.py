"""Trained policies of a control plane: brought, used, removed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from seaway.application import policies as module
from seaway.application.changes import Change
from seaway.application.policies import Policies
from seaway.application.records import PolicyRecord
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, RejectedError, StaleError, UnavailableError, UnknownError
from seaway.learning.policies.file import PolicyFile, pack
from seaway.learning.policies.signature import PublicKey, public_key, sign
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore
from tests.fakes.policies import cluster_policy, node_policy

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).private_bytes(
    Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()
)


tried: list[bytes] = []
"""Files that were tried before they were taken."""


def made(store: MemoryStore, *trusted: PublicKey) -> Policies:
    """Put the policies of a process together that writes to a store."""
    store.lead("me")
    return Policies(store, Writer(store), VirtualClock(), trusted, Shipped(), tried.append)


class Shipped:
    """A library with one policy."""

    def names(self) -> list[str]:
        """Return its name."""
        return ["pilot"]

    def load(self, name: str) -> PolicyFile:
        """Return it."""
        if name != "pilot":
            raise UnknownError("no")
        return node_policy("pilot")


def test_what_is_brought_is_there_for_all_processes() -> None:
    """A policy that one process imported is available to the next on the same store, with the user who imported it."""
    store, file = MemoryStore(), cluster_policy("mine")
    imported, new = made(store).import_policy(pack(file), "ada")
    assert (imported.name, imported.actor, imported.signed_by, new) == ("mine", "ada", None, True)
    later = made(store)
    assert tried[-1] == pack(file)
    assert later.names() == ["mine", "pilot"]
    assert later.load("mine").digest == file.digest
    assert later.look_up("mine") == replace(imported, file=later.load("mine"))
    assert later.look_up("pilot").actor == ""
    (event,) = store.events(0, 10)
    assert (event.kind, event.actor, event.tenant) == ("policy", "ada", "")
    assert event.reason == "policy mine imported: ddpg, level cluster"
    with pytest.raises(UnknownError):
        later.load("other")


def test_a_policy_is_not_replaced_by_another() -> None:
    """The same file again changes nothing; another of its name is refused, for queues may decide by the first."""
    store = MemoryStore()
    policies = made(store)
    policies.import_policy(pack(cluster_policy("mine", seed=1)), "ada")
    assert policies.import_policy(pack(cluster_policy("mine", seed=1)), "bob")[1] is False
    with pytest.raises(ConflictError, match="another policy 'mine'"):
        policies.import_policy(pack(cluster_policy("mine", seed=2)), "bob")
    assert [each.actor for each in store.policies()] == ["ada"]


@pytest.mark.parametrize("name", ["bestfit", "pilot"])
def test_names_of_seaways_own_policies_are_taken(name: str) -> None:
    """No one brings a policy under the name of one that comes with Seaway, or removes that."""
    policies = made(MemoryStore())
    with pytest.raises(RejectedError, match="is the name of a built-in policy"):
        policies.import_policy(pack(cluster_policy(name)), "ada")
    with pytest.raises(ConflictError, match="built in"):
        policies.remove(name, "ada")


def test_there_are_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all are held in memory, their number has a bound; one that is there may be signed all the same."""
    monkeypatch.setattr(module, "MOST", 1)
    policies = made(MemoryStore())
    policies.import_policy(pack(cluster_policy("one")), "ada")
    with pytest.raises(ConflictError, match="remove one first"):
        policies.import_policy(pack(cluster_policy("two")), "ada")
    policies.import_policy(pack(sign(cluster_policy("one"), KEY)), "ada")
    assert policies.look_up("one").signed_by == public_key(KEY)


def test_where_keys_are_trusted_others_policies_are_not_used() -> None:
    """Neither what no one signed is taken, nor what was taken before keys were asked for is used; it is shown."""
    store = MemoryStore()
    made(store).import_policy(pack(cluster_policy("before")), "ada")
    policies = made(store, public_key(KEY))
    with pytest.raises(RejectedError, match="is not signed"):
        policies.import_policy(pack(cluster_policy("after")), "ada")
    assert tried[-1] == pack(cluster_policy("before"))
    with pytest.raises(RejectedError, match="is not signed"):
        policies.load("before")
    assert policies.look_up("before").signed_by is None
    policies.import_policy(pack(sign(cluster_policy("before"), KEY)), "ada")
    assert policies.load("before").signature
    assert policies.load("pilot").manifest.name == "pilot"


def test_what_was_removed_is_gone() -> None:
    """A policy is removed that is meant, with all of it, and another of its name may come."""
    store = MemoryStore()
    policies = made(store)
    policies.import_policy(pack(cluster_policy("mine", seed=1)), "ada")
    with pytest.raises(StaleError):
        policies.remove("mine", "bob", lambda _: False)
    policies.remove("mine", "bob", lambda there: there is not None and there.name == "mine")
    assert policies.names() == ["pilot"]
    assert store.policies() == []
    with pytest.raises(UnknownError):
        policies.remove("mine", "bob")
    policies.import_policy(pack(cluster_policy("mine", seed=2)), "ada")
    assert policies.load("mine").digest == cluster_policy("mine", seed=2).digest


def test_what_cannot_be_read_any_more_can_be_removed() -> None:
    """A policy that is damaged in the database is not used, the others are, and it can be taken out."""
    store = MemoryStore()
    store.lead("me")
    store.commit([Change(insert=[PolicyRecord("broken", "00", b"PK", "ada", 1)])])
    policies = made(store)
    with pytest.raises(RejectedError, match="'broken' cannot be used: not a policy file"):
        policies.load("broken")
    assert policies.load("pilot").manifest.name == "pilot"
    policies.remove("broken", "bob")
    assert policies.names() == ["pilot"]


def test_what_is_not_known_to_be_stored_is_read_again() -> None:
    """Where the database took a policy and its answer was lost, the policy is there."""
    store = MemoryStore()
    policies = made(store)
    assert policies.names() == ["pilot"]
    store.fail_next(after=True)
    with pytest.raises(UnavailableError):
        policies.import_policy(pack(cluster_policy("mine")), "ada")
    assert policies.names() == ["mine", "pilot"]
