"""Authentication and authorization: tokens, roles, tenants, and a limit on failed logins.

A token is ``sw_<id>_<secret>``. Seaway stores only the digest of the secret. All tokens are in memory, so a request
costs one look-up and one hash. A change applies as soon as it is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

from seaway.application.changes import Change
from seaway.application.login_limit import LoginLimit
from seaway.application.ports.clock import Clock
from seaway.application.ports.store import Store
from seaway.application.records import LastUse, Role, Token
from seaway.application.writer import Writer
from seaway.domain.errors import ConflictError, ForbiddenError, RejectedError, UnauthenticatedError, UnknownError
from seaway.domain.reasons import Reason
from seaway.domain.tenancy import require_name

PREFIX = "sw"
ANONYMOUS = "anonymous"
RESERVED = frozenset({ANONYMOUS, "controller", "scheduler", "seaway", "seaway db", "demo"})
"""Names of internal actors of Seaway, which appear in events. No token can have one of these names."""

FIRST_TOKEN = "admin"  # its name
SECRET_BYTES = 32
ID_BYTES = 6
LONGEST_CREDENTIAL = 8192
MAX_ADDRESS = 64
USE_S = 60
"""Minimum time between two noted uses of a credential, seconds."""
NO_DIGEST = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes
    ----------
    name
        Name that Seaway records with each action.
    role
        Role, which defines the permissions.
    tenant
        Tenant whose jobs the caller can access; empty for all tenants.
    token_id
        ID of the token; empty for other credentials.
    expires_ns
        Expiry of the credential; None for no expiry.
    gateway
        Gateway of an agent; empty for other callers.
    issuer
        External issuer of the credential; empty for tokens of Seaway.
    """

    name: str
    role: Role
    tenant: str = ""
    token_id: str = ""
    expires_ns: int | None = None
    gateway: str = ""
    issuer: str = ""

    @property
    def key(self) -> str:
        """Identity for limits: the token, or the name at its issuer."""
        return self.token_id or f"{self.issuer} {self.name}"

    @property
    def owner(self) -> str:
        """Name of the user for what they store, which stays with a new token: the name, after its issuer and tenant."""
        return f"{self.issuer} {self.tenant}/{self.name}".strip()

    def may_see(self, tenant: str) -> bool:
        """Report whether the caller can see objects of a tenant; objects without a tenant are visible to all."""
        return not self.tenant or not tenant or self.tenant == tenant

    def may(self, role: Role) -> bool:
        """Report whether the caller has the permissions of a role."""
        return RANKS[self.role] >= RANKS[role]

    def is_agent_of(self, gateway: str) -> bool:
        """Report whether the caller is the agent of a gateway."""
        return self.role is Role.AGENT and self.gateway == gateway

    def require(self, role: Role) -> None:
        """Check for a role.

        Raises
        ------
        ForbiddenError
            If the role of the caller is not sufficient.
        """
        if not self.may(role):
            why = Reason("requires_role", role=role.value, name=self.name, own=self.role.value)
            raise ForbiddenError(why)

    @property
    def reads_job_content(self) -> bool:
        """True if the caller may read what jobs run, their logs and manifests, which may have secrets of tenants."""
        return self.role is not Role.MONITOR

    def require_job_content(self) -> None:
        """Check that the caller may read logs and manifests of jobs, which may have secrets of tenants.

        Raises
        ------
        ForbiddenError
            If the caller is a monitor.
        """
        if not self.reads_job_content:
            raise ForbiddenError(Reason("monitor_reads_no_content", name=self.name, role=self.role.value))


def tenant_of_owner(owner: str) -> str:
    """Return the tenant in `Caller.owner`; empty for none. Issuers are URLs."""
    found = re.match(r"(?:[^ /]*:[^ ]* )?([^/]*)/", owner)
    return found[1] if found else ""


RANKS = {role: role.rank for role in Role}
ANONYMOUS_ADMIN = Caller(ANONYMOUS, Role.ADMIN)
"""Caller without authentication, used when tokens are off."""


class Bearer(Protocol):
    """Verification of bearer tokens of an external issuer."""

    def known(self, credential: str) -> Caller | None:
        """Return the caller of a valid token that was already verified; never blocks."""

    def verify(self, credential: str) -> Caller:
        """Return the caller of a token; may block on the issuer.

        Raises
        ------
        UnauthenticatedError
            If the token is invalid.
        """


@dataclass(frozen=True, slots=True)
class _Held:
    digest: str
    who: Caller


class Access:
    """Authentication of callers, and management of tokens.

    Parameters
    ----------
    store, writer
        Store of the tokens.
    clock
        Clock for the expiry of tokens.
    everybody
        Whether every caller is an admin without authentication; see `require_loopback`.
    bearer
        Verifies tokens of an external issuer; None if there is no external issuer.
    """

    def __init__(
        self, store: Store, writer: Writer, clock: Clock, *, everybody: bool = False, bearer: Bearer | None = None
    ) -> None:
        self.everybody = everybody
        self._store = store
        self._writer = writer
        self._clock = clock
        self._bearer = bearer
        self._limit = LoginLimit(clock)
        self._held: dict[str, _Held] = {}
        self._lent: dict[str, _Held] = {}
        self._used: dict[tuple[str, str, str], LastUse] = {}
        self._unstored: set[tuple[str, str, str]] = set()
        self._changes = 0
        self._lock = Lock()
        writer.listen(self._receive)
        self.refresh()

    def refresh(self) -> None:
        """Read all tokens from the store, in case another process changed them."""
        while True:
            changes = self._changes
            held = {token.id: _held(token) for token in self._store.tokens() if token.revoked_ns is None}
            with self._lock:
                if changes == self._changes:
                    self._held = held
                    return

    def known(self, authorization: str | None, address: str, *, page: bool = False) -> Caller | None:
        """Return the caller without blocking; None if `verify` is needed.

        Parameters
        ----------
        authorization
            The ``Authorization`` header; None if it is missing.
        address
            Source address of the request.
        page
            Whether a page of this process makes the request. A visitor without a token is then no failed login.

        Raises
        ------
        UnauthenticatedError
            If the token is missing or invalid.
        TooManyFailuresError
            If too many requests from that address had no valid token.
        """
        if self.everybody:
            return ANONYMOUS_ADMIN
        try:
            credential = _credential(authorization)
        except UnauthenticatedError:
            if authorization or not page:
                self._limit.fail(address)
            raise
        who = self._token(credential) if credential.startswith(f"{PREFIX}_") else None
        if who is None and self._bearer is not None and _is_jwt(credential):
            who = self._bearer.known(credential)
            if who is None:
                self._limit.require(address)
                return None
        if who is None:
            self._limit.fail(address)
            raise UnauthenticatedError(Reason("token_invalid"))
        self._note_use(who, address)
        return who

    def verify(self, authorization: str | None, address: str) -> Caller:
        """Return the caller of a token of an external issuer; may block.

        Raises
        ------
        UnauthenticatedError
            If the token is invalid.
        """
        if self._bearer is None:
            raise UnauthenticatedError(Reason("no_external_tokens"))
        try:
            who = self._bearer.verify(_credential(authorization))
        except UnauthenticatedError:
            self._limit.fail(address)
            raise
        self._note_use(who, address)
        return who

    def _note_use(self, who: Caller, address: str) -> None:
        """Note the use of a credential, at most once in `USE_S`."""
        key, now_ns = (who.name, who.issuer, who.token_id), self._clock.now_ns()
        before = self._used.get(key)
        if (before and now_ns - before.used_ns < USE_S * 10**9) or who.token_id in self._lent:
            return
        self._used[key] = LastUse(*key, who.role.value, who.tenant, address[:MAX_ADDRESS], now_ns)
        self._unstored.add(key)

    def store_uses(self) -> None:
        """Store the last uses of credentials that have changed."""
        keys = list(self._unstored)
        if keys:
            self._writer.require(Change(put=[self._used[key] for key in keys]))
            self._unstored -= {*keys}

    def last_uses(self) -> list[LastUse]:
        """Return the last use of each credential; one in the last `USE_S` may be missing."""
        stored = {(each.name, each.issuer, each.token_id): each for each in self._store.last_uses()}
        return [*{**stored, **self._used}.values()]

    def holds(self, who: Caller) -> bool:
        """Report whether the credential of a caller is still valid; for long requests."""
        if who.expires_ns is not None and who.expires_ns <= self._clock.now_ns():
            return False
        return not who.token_id or who.token_id in self._held or who.token_id in self._lent

    def tokens(self) -> list[Token]:
        """Return all stored tokens, including revoked ones."""
        return self._store.tokens()

    def create(  # all properties of a token
        self, name: str, role: Role, tenant: str, lasts_s: int | None, by: str, *, gateway: str = ""
    ) -> tuple[Token, str]:
        """Create a token.

        Returns
        -------
        tuple of Token and str
            The stored record, and the full token, which is shown only once.

        Raises
        ------
        RejectedError
            If the name is invalid, or if the role does not match the tenant or gateway.
        ConflictError
            If a valid token has that name.
        """
        require_name("token", name)
        _require_gateway(role, gateway)
        now_ns = self._clock.now_ns()
        secret = secrets.token_urlsafe(SECRET_BYTES)
        token = Token(
            id=secrets.token_hex(ID_BYTES),
            name=name,
            digest=_digest(secret),
            role=role,
            tenant=tenant,
            created_ns=now_ns,
            created_by=by,
            expires_ns=None if lasts_s is None else now_ns + lasts_s * 10**9,
            gateway=gateway,
        )
        with self._writer.setting_up:
            self._require_free(name)
            self._require_tenant(role, tenant)
            self._writer.require(Change(insert=[token]))
        return token, f"{PREFIX}_{token.id}_{secret}"

    def revoke(self, token_id: str, *, force: bool = False) -> Token:
        """Revoke a token, effective immediately. A second call has no effect.

        Raises
        ------
        UnknownError
            If the token does not exist.
        ConflictError
            If it is the last valid admin token, without `force`.
        """
        with self._writer.setting_up:
            token = next((each for each in self._store.tokens() if each.id == token_id), None)
            if token is None:
                raise UnknownError(Reason("not_found", kind="token", name=token_id))
            if not force and self._is_last_admin(token_id):
                raise ConflictError(Reason("last_admin_token"))
            if token.revoked_ns is None:
                token = replace(token, revoked_ns=self._clock.now_ns())
                self._writer.require(Change(update=[token]))
            return token

    def lend(self, token_id: str, name: str, lasts_s: int) -> tuple[str, str]:
        """Create a token in memory only, for one purpose; return its ID and the full token.

        It has the lowest role, and operations of its purpose require its ID.
        """
        secret = secrets.token_urlsafe(SECRET_BYTES)
        now_ns = self._clock.now_ns()
        lent = {key: each for key, each in self._lent.items() if (each.who.expires_ns or 0) > now_ns}
        who = Caller(name, Role.AGENT, token_id=token_id, expires_ns=now_ns + lasts_s * 10**9)
        self._lent = {**lent, token_id: _Held(_digest(secret), who)}
        return token_id, f"{PREFIX}_{token_id}_{secret}"

    def take_back(self, token_id: str) -> None:
        """Revoke a token in memory."""
        self._lent = {key: each for key, each in self._lent.items() if key != token_id}

    def first_token(self) -> str | None:
        """Create an admin token if no valid one exists; return None otherwise."""
        return None if self._admins() else self.new_admin_token("seaway")

    def new_admin_token(self, by: str) -> str:
        """Create an admin token, even if others exist; return the full token."""
        name = FIRST_TOKEN
        taken = {token.name for token in self._store.tokens() if token.revoked_ns is None}
        while name in taken:
            name = f"{FIRST_TOKEN}-{secrets.token_hex(2)}"
        return self.create(name, Role.ADMIN, "", None, by)[1]

    def _admins(self) -> list[str]:
        """Return the IDs of valid admin tokens."""
        return [key for key, each in self._held.items() if each.who.role is Role.ADMIN and self.holds(each.who)]

    def _is_last_admin(self, token_id: str) -> bool:
        return self._admins() == [token_id]

    def _token(self, credential: str) -> Caller | None:
        """Return the caller of a token. An unknown token takes the same time."""
        token_id, _, secret = credential[len(PREFIX) + 1 :].partition("_")
        held = self._held.get(token_id) or self._lent.get(token_id)
        right = hmac.compare_digest(_digest(secret), NO_DIGEST if held is None else held.digest)
        if held is None or not right:
            return None
        expires_ns = held.who.expires_ns
        return None if expires_ns is not None and expires_ns <= self._clock.now_ns() else held.who

    def _receive(self, changes: Sequence[Change]) -> None:
        """Apply stored token changes; called on the writer's thread."""
        tokens = [
            record
            for change in changes
            for record in (*change.insert, *change.update, *change.put)
            if isinstance(record, Token)
        ]
        if not tokens:
            return
        with self._lock:
            held = dict(self._held)
            for token in tokens:
                held.pop(token.id, None)
                if token.revoked_ns is None:
                    held[token.id] = _held(token)
            self._held = held
            self._changes += 1

    def _require_free(self, name: str) -> None:
        now_ns = self._clock.now_ns()
        for token in self._store.tokens():
            live = token.revoked_ns is None and (token.expires_ns is None or token.expires_ns > now_ns)
            if token.name == name and live:
                raise ConflictError(Reason("token_exists", name=name))
        if name in RESERVED:
            raise RejectedError(Reason("reserved_name", name=name), where="name")

    def _require_tenant(self, role: Role, tenant: str) -> None:
        if role.of_tenant and not tenant:
            raise RejectedError(Reason("role_needs_tenant", role=role.value), where="tenant")
        if not role.of_tenant and tenant:
            raise RejectedError(Reason("role_without_tenant", role=role.value), where="tenant")
        if tenant and tenant not in {each.name for each in self._store.tenants()}:
            raise RejectedError(Reason("not_found", kind="tenant", name=tenant), where="tenant")


def _require_gateway(role: Role, gateway: str) -> None:
    """Check that agents have a gateway and other roles have none. The gateway can be configured later."""
    if role is Role.AGENT and not gateway:
        raise RejectedError(Reason("agent_needs_gateway"), where="gateway")
    if role is not Role.AGENT and gateway:
        raise RejectedError(Reason("role_without_gateway", role=role.value), where="gateway")


def require_loopback(host: str) -> None:
    """Check that a server without authentication is reachable only from this machine.

    Raises
    ------
    RejectedError
        If other machines can reach it.
    """
    if not is_loopback(host):
        raise RejectedError(
            Reason("open_without_tokens", host=host),
            where="host",
        )


def is_loopback(host: str) -> bool:
    """Report whether a host name or address always refers to this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _credential(authorization: str | None) -> str:
    if not authorization:
        raise UnauthenticatedError(Reason("token_required"))
    scheme, _, credential = authorization.partition(" ")
    if scheme.lower() != "bearer" or not credential or len(credential) > LONGEST_CREDENTIAL:
        raise UnauthenticatedError(Reason("token_malformed"))
    return credential


def _is_jwt(credential: str) -> bool:
    return credential.count(".") == 2


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _held(token: Token) -> _Held:
    return _Held(token.digest, Caller(token.name, token.role, token.tenant, token.id, token.expires_ns, token.gateway))
