"""A user who is let in."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from seaway.application.access import ANONYMOUS, RESERVED, USE_S, Access, Caller, is_loopback, require_loopback
from seaway.application.changes import Change
from seaway.application.control import observe
from seaway.application.control.scheduler import changes
from seaway.application.login_limit import (
    MAX_ADDRESSES,
    MAX_FAILURES,
    WINDOW_S,
    LoginLimit,
    TooManyFailuresError,
    site,
)
from seaway.application.records import Role
from seaway.application.writer import Writer
from seaway.domain.errors import (
    ConflictError,
    ForbiddenError,
    RejectedError,
    SeawayError,
    UnauthenticatedError,
    UnavailableError,
    UnknownError,
)
from seaway.testing.clocks import VirtualClock
from tests.fakes.memory_store import MemoryStore


class World:
    """A store with access to it."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.store.lead("test")
        self.clock = VirtualClock()
        self.writer = Writer(self.store)
        self.access = Access(self.store, self.writer, self.clock)

    def token(self, role: Role = Role.USER, name: str = "me", lasts_s: int | None = None) -> str:
        """Make a token and return it whole."""
        tenant = "default" if role in {Role.VIEWER, Role.USER} else ""
        return self.access.create(name, role, tenant, lasts_s, "test")[1]

    def who(self, token: str, address: str = "::1") -> Caller | None:
        """Ask who has a token."""
        return self.access.known(f"Bearer {token}", address)


def at_once(world: World, monkeypatch: pytest.MonkeyPatch, *calls: Callable[[], object]) -> list[object]:
    """Make calls at the same time, with slow storing; return their results or errors."""
    store = world.writer.require

    def slowly(change: Change) -> None:
        time.sleep(0.02)
        store(change)

    monkeypatch.setattr(world.writer, "require", slowly)

    def result(call: Callable[[], object]) -> object:
        try:
            return call()
        except SeawayError as error:
            return type(error)

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(result, calls))


def test_a_name_is_given_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several requests for the same name at once, one succeeds."""
    results = at_once(world, monkeypatch, *[lambda: world.token(Role.ADMIN, "ci")] * 5)
    assert results.count(ConflictError) == 4


def test_the_last_admins_do_not_revoke_each_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When two admins revoke each other at once, one of them stays."""
    ids = [world.token(Role.ADMIN, name).split("_")[1] for name in ("ada", "bob")]
    results = at_once(world, monkeypatch, *(partial(world.access.revoke, each) for each in ids))
    assert results.count(ConflictError) == 1
    assert sum(token.revoked_ns is None for token in world.store.tokens()) == 1


@pytest.fixture
def world() -> World:
    """Make a store without tokens."""
    return World()


def test_a_token_lets_in_who_has_it(world: World) -> None:
    """A token says who asks, his role and his tenant, and only its digest is kept."""
    token = world.token()
    retained = world.store.tokens()[0]
    assert world.who(token) == Caller("me", Role.USER, "default", retained.id)
    assert not Caller("me", Role.USER, "default", retained.id).is_agent_of("")
    assert token.startswith(f"sw_{retained.id}_")
    assert len(token.split("_", 2)[2]) >= 43
    assert retained.digest == hashlib.sha256(token.split("_", 2)[2].encode()).hexdigest()


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Basic sw_a_b",
        "Bearer sw_",
        "Bearer sw__",
        "Bearer sw_nothing_nothing",
        "Bearer a.b.c",
        "Bearer " + "x" * 10_000,
        "Bearer sw_\udcff_\udcff",
    ],
)
def test_what_is_no_token_lets_no_one_in(world: World, header: str | None) -> None:
    """Without a token that holds, no one is let in, whatever is present instead."""
    with pytest.raises(UnauthenticatedError):
        world.access.known(header, "::1")


def test_a_token_with_another_secret_does_not_hold(world: World) -> None:
    """The id alone lets no one in, nor does a part of the secret."""
    token = world.token()
    for wrong in (token[:-1], token + "a", token.rpartition("_")[0] + "_"):
        with pytest.raises(UnauthenticatedError):
            world.who(wrong)


def test_a_revoked_token_does_not_hold(world: World) -> None:
    """From when revoking returns, the token lets no one in, and requests that last are reported so."""
    token = world.token()
    who = world.who(token)
    assert who is not None
    assert world.access.holds(who)
    world.access.revoke(who.token_id)
    assert not world.access.holds(who)
    with pytest.raises(UnauthenticatedError):
        world.who(token)
    assert world.access.revoke(who.token_id).revoked_ns == world.clock.now_ns()
    with pytest.raises(UnknownError):
        world.access.revoke("nothing")


def test_the_last_admin_is_stored(world: World) -> None:
    """No one locks everybody out by mistake: the last token of an admin that holds is revoked by force only."""
    ids = []
    for name, lasts_s in (("a", None), ("b", None), ("short", 1)):
        who = world.who(world.token(Role.ADMIN, name, lasts_s))
        assert who is not None
        ids.append(who.token_id)
    world.clock.advance_s(2)
    world.access.revoke(ids[2])
    world.access.revoke(ids[0])
    with pytest.raises(ConflictError, match="new-admin-token"):
        world.access.revoke(ids[1])
    assert world.access.revoke(ids[1], force=True).revoked_ns is not None
    assert world.access.revoke(ids[1]).revoked_ns is not None


@pytest.mark.parametrize("name", sorted(RESERVED | {observe.ACTOR, changes.ACTOR}))
def test_no_one_has_a_name_of_seaways_own(world: World, name: str) -> None:
    """Anything that Seaway itself does is reported under names that no token can have."""
    with pytest.raises(RejectedError):
        world.token(Role.ADMIN, name)


def test_a_token_ends_when_it_said(world: World) -> None:
    """A token holds until the moment it expires, and its name is free after."""
    token = world.token(lasts_s=10)
    who = world.who(token)
    world.clock.advance_s(10)
    with pytest.raises(UnauthenticatedError):
        world.who(token)
    assert who is not None
    assert not world.access.holds(who)
    assert world.token()


def test_tokens_outlive_the_process(world: World) -> None:
    """Another process that reads the same store lets the same people in."""
    token = world.token()
    again = Access(world.store, world.writer, world.clock)
    assert again.known(f"Bearer {token}", "::1") == world.who(token)


def test_what_another_process_wrote_is_seen_after_a_refresh(world: World) -> None:
    """Tokens that came by another way hold after they are read again."""
    other = Access(world.store, Writer(world.store), world.clock)
    token = world.token()
    with pytest.raises(UnauthenticatedError):
        other.known(f"Bearer {token}", "::1")
    other.refresh()
    assert other.known(f"Bearer {token}", "::1")


def test_a_token_that_could_not_be_stored_is_none(world: World) -> None:
    """When the database does not answer, there is no token."""
    world.store.fail_next(UnavailableError("gone"), after=False, times=1)
    with pytest.raises(UnavailableError):
        world.token()
    assert world.store.tokens() == []


@pytest.mark.parametrize(
    ("role", "tenant", "where"),
    [
        (Role.USER, "", "tenant"),
        (Role.VIEWER, "", "tenant"),
        (Role.VIEWER, "nobody", "tenant"),
        (Role.ADMIN, "default", "tenant"),
        (Role.OPERATOR, "default", "tenant"),
    ],
)
def test_role_and_tenant_go_together(world: World, role: Role, tenant: str, where: str) -> None:
    """Viewers and users are of a tenant that is there, operators and admins of none."""
    with pytest.raises(RejectedError) as caught:
        world.access.create("x", role, tenant, None, "test")
    assert caught.value.where == where


@pytest.mark.parametrize(("role", "gateway"), [(Role.AGENT, ""), (Role.VIEWER, "gw-1"), (Role.ADMIN, "gw-1")])
def test_agents_and_no_one_else_are_of_a_gateway(world: World, role: Role, gateway: str) -> None:
    """An agent's token names its gateway; a token of any other role names none."""
    with pytest.raises(RejectedError) as caught:
        world.access.create("x", role, "default" if role is Role.VIEWER else "", None, "test", gateway=gateway)
    assert caught.value.where == "gateway"


def test_an_agent_speaks_for_its_own_gateway_and_may_nothing_else(world: World) -> None:
    """A user who has an agent's token is known as the agent of one gateway, also after a restart, and is no viewer."""
    token = world.access.create("gw-1", Role.AGENT, "", None, "test", gateway="gw-1")[1]
    for access in (world.access, Access(world.store, world.writer, world.clock)):
        who = access.known(f"Bearer {token}", "::1")
        assert who is not None
        assert (who.is_agent_of("gw-1"), who.is_agent_of("gw-2"), who.is_agent_of("")) == (True, False, False)
        assert [role for role in Role if who.may(role)] == [Role.AGENT]
    with pytest.raises(RejectedError, match="takes no tenant"):
        world.access.create("gw-2", Role.AGENT, "default", None, "test", gateway="gw-2")


def test_names_of_tokens_tell_people_apart(world: World) -> None:
    """No two tokens that hold have one name, and none has the name that stands for no one."""
    world.token()
    with pytest.raises(ConflictError):
        world.token()
    for name in (ANONYMOUS, "A", ""):
        with pytest.raises(RejectedError):
            world.token(name=name)


def test_the_first_token_is_made_once(world: World) -> None:
    """The first admin's token is made when there is none that holds, and only then."""
    first = world.access.first_token()
    assert first is not None
    who = world.who(first)
    assert who is not None
    assert (who.name, who.role) == ("admin", Role.ADMIN)
    assert world.access.first_token() is None
    world.access.revoke(who.token_id, force=True)
    assert world.access.first_token() is not None


def test_the_first_token_takes_another_name_where_admin_is_taken(world: World) -> None:
    """A user who is called admin and is none does not keep the first admin out."""
    world.token(Role.USER, "admin")
    first = world.access.first_token()
    assert first is not None
    who = world.who(first)
    assert who is not None
    assert who.name.startswith("admin-")


def test_each_role_includes_those_before_it() -> None:
    """A role allows what it says and what the ones before it do."""
    for role in Role:
        who = Caller("x", role)
        assert [who.may(each) for each in Role] == [each.rank <= role.rank for each in Role]
    with pytest.raises(ForbiddenError, match="requires the role admin"):
        Caller("x", Role.OPERATOR).require(Role.ADMIN)


def test_a_tenant_sees_its_own_and_the_fleet_s() -> None:
    """A user of a tenant sees the things of that tenant only; a user without a tenant sees all."""
    assert [Caller("x", Role.USER, "a").may_see(each) for each in ("a", "b", "")] == [True, False, True]
    assert Caller("x", Role.ADMIN).may_see("b")


def test_everybody_is_an_admin_where_no_one_is_asked() -> None:
    """Without tokens every request is an admin's, whatever it says."""
    store = MemoryStore()
    access = Access(store, Writer(store), VirtualClock(), everybody=True)
    who = access.known("Bearer nonsense", "::1")
    assert who == Caller(ANONYMOUS, Role.ADMIN)
    assert access.holds(who)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "127.8.8.8"])
def test_loopback_is_this_machine(host: str) -> None:
    """Addresses that only this machine reaches may do without tokens."""
    assert is_loopback(host)
    require_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.com", "", "localhost.example.com"])
def test_others_may_not_do_without_tokens(host: str) -> None:
    """Anything that others could reach is refused without tokens, and reported why."""
    with pytest.raises(RejectedError, match=r"127\.0\.0\.1"):
        require_loopback(host)


def test_failures_are_counted_by_address() -> None:
    """An address that failed too often waits until its minute is over; others do not."""
    clock = VirtualClock()
    limit = LoginLimit(clock)
    for _ in range(MAX_FAILURES):
        limit.fail("10.0.0.1")
    limit.fail("10.0.0.2")
    clock.advance_s(1)
    with pytest.raises(TooManyFailuresError) as caught:
        limit.require("10.0.0.1")
    assert caught.value.retry_after_s == WINDOW_S - 1
    clock.advance_s(WINDOW_S - 1)
    limit.fail("10.0.0.1")


def test_failures_of_many_addresses_need_bounded_memory() -> None:
    """Of very many addresses the one that failed longest ago is forgotten, and an IPv6 network is one."""
    limit = LoginLimit(VirtualClock())
    for at in range(MAX_ADDRESSES + 10):
        limit.fail(f"10.{at >> 16}.{at >> 8 & 255}.{at & 255}")
    assert len(limit) == MAX_ADDRESSES
    assert site("2001:db8::1") == site("2001:db8::ffff") != site("2001:db8:1::1")
    assert len(site("x" * 1000)) == 64


def test_a_change_without_tokens_changes_nothing(world: World) -> None:
    """Anything that else is stored does not touch who is let in."""
    token = world.token()
    world.writer.commit([Change()])
    assert world.who(token)


def test_the_last_use_of_a_credential_is_noted_and_stored() -> None:
    """Uses are noted once a minute, stored by a task, and there after a restart."""
    world = World()
    token = world.token()
    assert world.access.last_uses() == []
    for _ in range(3):
        world.who(token)
    (use,) = world.access.last_uses()
    assert (use.name, use.role, use.used_ns) == ("me", "user", world.clock.now_ns())
    assert world.store.last_uses() == []
    world.access.store_uses()
    world.clock.advance_s(USE_S - 1)
    world.who(token)
    world.access.store_uses()
    assert world.store.last_uses() == [use]
    world.clock.advance_s(1)
    world.who(token)
    assert Access(world.store, world.writer, world.clock).last_uses() == [use]
    world.access.store_uses()
    (later,) = Access(world.store, world.writer, world.clock).last_uses()
    assert later.used_ns == use.used_ns + USE_S * 10**9


def test_a_lent_token_is_for_a_while_and_never_stored() -> None:
    """It has the lowest role and its own ID, and ends with its time or when it is taken back."""
    world = World()
    token_id, lent = world.access.lend("join-1", "ada", 60)
    assert world.who(lent) == Caller("ada", Role.AGENT, token_id=token_id, expires_ns=world.clock.now_ns() + 60 * 10**9)
    assert world.store.tokens() == []
    assert world.access.last_uses() == []
    world.access.take_back(token_id)
    with pytest.raises(UnauthenticatedError):
        world.who(lent)
    _, short = world.access.lend("join-2", "ada", 60)
    world.clock.advance_s(60)
    with pytest.raises(UnauthenticatedError):
        world.who(short)
