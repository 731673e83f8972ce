"""Names of tenants' namespaces."""

from __future__ import annotations

import re
from base64 import b32encode
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from seaway.adapters.kubernetes.templates.names import MAX_LABEL_LENGTH
from seaway.domain.errors import RejectedError

WHERE = "[clusters] namespace"
PLACEHOLDER = "{tenant}"
SHARED = "seaway"
"""Namespace of all tenants in earlier versions."""

SEPARATOR = "--"
"""Text in the names of namespaces whose tenant is not a DNS label. Other namespaces do not contain it after the prefix,
so that the names of two tenants are never equal."""

DIGEST_BYTES = 10
DIGEST_LENGTH = 16
MAX_FIXED_LENGTH = 40
"""Maximum length of a template without its placeholder. It leaves room for a digest and part of the tenant's name."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PREFIX = re.compile(r"(?!kube-|karmada-)[a-z][-a-z0-9]*-")
_SUFFIX = re.compile(r"([-a-z0-9]*[a-z0-9])?")
_NOT_ALLOWED = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Namespaces:
    """Names of the namespaces of Seaway's objects.

    Attributes
    ----------
    template
        Namespace of a tenant, with ``{tenant}`` for its name; without the placeholder, the namespace of all tenants.
    former
        Templates of earlier settings. Objects there are observed and removed, but new attempts are not written there.
        None for `SHARED` if each tenant has a namespace, else for none.

    Raises
    ------
    RejectedError
        When a template is not valid.
    """

    template: str = f"seaway-{PLACEHOLDER}"
    former: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check the templates."""
        for each in self.templates:
            _require_valid(each)

    @property
    def per_tenant(self) -> bool:
        """True if each tenant has a namespace of its own."""
        return PLACEHOLDER in self.template

    @property
    def templates(self) -> tuple[str, ...]:
        """The current template, and the former ones."""
        former = ((SHARED,) if self.per_tenant else ()) if self.former is None else self.former
        return tuple(dict.fromkeys((self.template, *former)))

    @property
    def scope(self) -> str:
        """The only namespace with objects; empty if there may be several."""
        return self.template if self.templates == (self.template,) and not self.per_tenant else ""

    @property
    def shared(self) -> str:
        """The first namespace that several tenants share or shared; empty if there is none."""
        return next((each for each in self.templates if PLACEHOLDER not in each), "")

    def of(self, tenant: str) -> str:
        """Return the namespace of a tenant's new objects."""
        return namespace_of(self.template, tenant)

    def owns(self, namespace: str, tenant: str) -> bool:
        """Report whether an object with the label of a tenant belongs to Seaway.

        Another Seaway in the same cluster has namespaces with other names.
        """
        return _owns(self, namespace, tenant)

    def matches(self, namespace: str) -> bool:
        """Report whether a namespace may be one of a tenant, if the tenant is unknown."""
        return _matches(self, namespace)


@lru_cache(4096)
def _owns(namespaces: Namespaces, namespace: str, tenant: str) -> bool:
    return any(namespace == namespace_of(each, tenant) for each in namespaces.templates)


@lru_cache(4096)
def _matches(namespaces: Namespaces, namespace: str) -> bool:
    for each in namespaces.templates:
        prefix, placeholder, suffix = each.partition(PLACEHOLDER)
        if namespace == each or (
            placeholder
            and len(namespace) > len(prefix) + len(suffix)
            and namespace.startswith(prefix)
            and namespace.endswith(suffix)
        ):
            return True
    return False


@lru_cache(4096)
def namespace_of(template: str, tenant: str) -> str:
    """Return the namespace of a tenant, a DNS label. Two tenants have different namespaces.

    A name that is not a DNS label, or too long, gets a digest after `SEPARATOR`.
    """
    prefix, placeholder, suffix = template.partition(PLACEHOLDER)
    if not placeholder:
        return template
    room = MAX_LABEL_LENGTH - len(prefix) - len(suffix)
    if len(tenant) <= room and SEPARATOR not in tenant and _LABEL.fullmatch(tenant):
        return f"{prefix}{tenant}{suffix}"
    digest = b32encode(blake2b(tenant.encode(), digest_size=DIGEST_BYTES).digest()).decode().lower()
    plain = _NOT_ALLOWED.sub("-", tenant)[: room - len(SEPARATOR) - DIGEST_LENGTH].strip("-")
    return f"{prefix}{plain}{SEPARATOR}{digest}{suffix}"


def _require_valid(template: str) -> None:
    prefix, placeholder, suffix = template.partition(PLACEHOLDER)
    if not placeholder:
        if len(template) > MAX_LABEL_LENGTH or not _LABEL.fullmatch(template):
            raise RejectedError(f"{template!r} is not the name of a namespace", where=WHERE)
        return
    if len(prefix) + len(suffix) > MAX_FIXED_LENGTH:
        raise RejectedError(f"{template!r} is longer than {MAX_FIXED_LENGTH} without {{tenant}}", where=WHERE)
    if not (_PREFIX.fullmatch(prefix) and _SUFFIX.fullmatch(suffix)):
        raise RejectedError(
            f"{template!r}: begin with a prefix of your own, as in seaway-{{tenant}}; "
            "use a-z, 0-9 and '-', not kube- or karmada-",
            where=WHERE,
        )
