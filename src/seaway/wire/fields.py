"""Types of fields that several messages share: amounts with units, names, texts, labels.

A field with a unit stores the text as written. Validation parses it, and later parsing uses a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from seaway.domain import units
from seaway.domain.device import MIG_NAME
from seaway.domain.errors import RejectedError
from seaway.domain.notifications import Occasion
from seaway.domain.reasons import Reason, also
from seaway.domain.runtime import ARCHIVE
from seaway.domain.tenancy import NAME

LARGEST_INT32 = 2**31 - 1
"""Maximum value of a column of the engine."""

LONGEST_TIME_S = 100 * 86_400
"""One hundred days, in seconds. Close to the largest duration that nanoseconds represent exactly."""

LONGEST_BOUND_NS = 3600 * 10**9
"""One hour, in nanoseconds; an upper bound for any working link."""

REMEMBERED = 4096
"""Size of the cache of parsed amounts, per unit."""

MAX_LABELS = 64
LONGEST_TEXT = 4096


def reader(read: Callable[[object], int], most: int, *, least: int = 0, zero: str = "") -> Callable[[Any], int]:
    """Return a parser of amounts that rejects values out of range and caches its results.

    Parameters
    ----------
    read
        Parser of one amount.
    least, most
        Bounds of the result.
    zero
        Error message for 0 if 0 would be ambiguous; empty if 0 is valid.
    """

    def checked(value: object) -> int:
        amount = read(value)
        if not amount and zero:
            raise RejectedError(zero)
        if amount > most or amount < least:
            raise RejectedError(Reason("too_large" if amount > most else "too_small", value=repr(value)))
        return amount

    remembered = lru_cache(REMEMBERED, typed=True)(checked)

    def read_once(value: Any) -> int:  # noqa: ANN401
        kind = type(value)
        short = kind is int or kind is float or (kind is str and len(value) <= units.LONGEST)
        return remembered(value) if short else checked(value)

    return read_once


def gpu_memory(value: object) -> tuple[int, int]:
    """Read the memory of a slice: MiB and 0, or 0 and percent of the device."""
    if isinstance(value, str) and value.strip().endswith("%"):
        return 0, -(-_gpu_memory_share(value) // 10)
    return _gpu_memory(value), 0


def mig_name(value: object) -> object:
    """Read the name of a MIG profile, as NVIDIA writes it or as a node's resources do: ``mig-1g.10gb.me``."""
    if not isinstance(value, str) or not value:
        return value
    name = value.strip().lower().removeprefix("mig-").replace("gb.", "gb+")
    if not MIG_NAME.fullmatch(name):
        raise PydanticCustomError("mig", "{why}", {"why": Reason("not_a_mig_profile")})
    return name


def _seconds(value: object) -> int:
    return -(-units.seconds_ns(value) // 10**9)


memory_mib = reader(units.memory_mib, LARGEST_INT32)
cpu_milli = reader(units.cpu_milli, LARGEST_INT32)
gpu_milli = reader(units.percent_milli, 1000)
seconds = reader(_seconds, LONGEST_TIME_S)
limit_s = reader(_seconds, LONGEST_TIME_S, zero=Reason("zero_is_no_limit"))
bound_ns = reader(units.duration_ns, LONGEST_BOUND_NS, zero=Reason("zero_sets_no_bound"))
bound_ppm = reader(units.share_ppm, 10**6, zero=Reason("zero_sets_no_loss"))
rate_mbps = reader(units.rate_mbps, LARGEST_INT32)
_ALL = Reason("zero_is_no_memory")
_gpu_memory = reader(units.memory_mib, LARGEST_INT32, zero=_ALL)
_gpu_memory_share = reader(units.percent_milli, 1000, zero=_ALL)


class Unit:
    """Annotation of a field that `read` must be able to parse. The value stays as written."""

    def __init__(self, read: Callable[[Any], Any], *examples: str | float) -> None:
        self._read = read
        self._examples = examples

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate by parsing."""
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe the accepted texts and numbers, with examples."""
        return {
            "anyOf": [{"type": "string", "minLength": 1, "maxLength": units.LONGEST}, {"type": "number", "minimum": 0}],
            "examples": list(self._examples),
        }

    def _check(self, value: Any) -> Any:  # noqa: ANN401
        try:
            self._read(value)
        except RejectedError as error:
            raise PydanticCustomError("amount", "{why}", {"why": error.message}) from None
        return value


Amount = str | int | float
Memory = Annotated[Amount, Unit(memory_mib, "64GB", "16Gi", "512Mi")]
GpuMemory = Annotated[Amount, Unit(gpu_memory, "24GB", "50%")]
Cpu = Annotated[Amount, Unit(cpu_milli, "500m", 2, 0.5)]
Cores = Annotated[Amount, Unit(gpu_milli, "30%", 0.3)]
Time = Annotated[Amount, Unit(seconds, "90s", "10m", "1h30m", 60)]
Limit = Annotated[Amount, Unit(limit_s, "2h", "1d")]
Bound = Annotated[Amount, Unit(bound_ns, "20ms", "600us")]
Loss = Annotated[Amount, Unit(bound_ppm, "0.1%", 0.001)]
Rate = Annotated[Amount, Unit(rate_mbps, "10Gbps", "500Mbps", 500)]

NAME_PATTERN = f"^{NAME.pattern}$"
NONE_OR_NAME_PATTERN = f"^({NAME.pattern})?$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]*$"
TEXT_PATTERN = r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$"
LABEL_KEY_PATTERN = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$"
LABEL_PATTERN = f"^({LABEL_KEY_PATTERN[1:-1]}={LABEL_VALUE_PATTERN[1:-1]})?$"
NONE_OR_ARCHIVE_PATTERN = f"^({ARCHIVE.pattern})?$"
VARIABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.-]*$"

_NAMES = Reason("use_name")

PATTERNS = {
    NAME_PATTERN: _NAMES,
    NONE_OR_NAME_PATTERN: _NAMES,
    LINE_PATTERN: Reason("no_line_breaks"),
    TEXT_PATTERN: Reason("no_control_characters"),
    LABEL_KEY_PATTERN: Reason("use_label_key"),
    LABEL_VALUE_PATTERN: Reason("use_label_value"),
    LABEL_PATTERN: Reason("use_label"),
    NONE_OR_ARCHIVE_PATTERN: Reason("use_archive"),
    VARIABLE_PATTERN: Reason("use_variable"),
}
"""Remedy for each pattern."""

Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=63)]
"""A name that users choose."""

Reference = Annotated[str, StringConstraints(pattern=LINE_PATTERN, min_length=1, max_length=253)]
"""A name that an external system assigns, such as that of a cluster or a device."""

Line = Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=1000)]
Text = Annotated[str, StringConstraints(pattern=TEXT_PATTERN, max_length=LONGEST_TEXT)]
LabelKey = Annotated[str, StringConstraints(pattern=LABEL_KEY_PATTERN, max_length=253 + 1 + 63)]
LabelValue = Annotated[str, StringConstraints(pattern=LABEL_VALUE_PATTERN, max_length=63)]
Variable = Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN, min_length=1, max_length=253)]

References = Annotated[list[Reference], Field(max_length=256)]
Labels = Annotated[dict[LabelKey, LabelValue], Field(max_length=MAX_LABELS)]

NameOrNone = Annotated[str, StringConstraints(pattern=NONE_OR_NAME_PATTERN, max_length=63)]
ReferenceOrNone = Annotated[str, StringConstraints(pattern=LINE_PATTERN, max_length=253)]
ArchiveOrNone = Annotated[str, StringConstraints(pattern=NONE_OR_ARCHIVE_PATTERN, max_length=71)]


def several(value: object) -> object:
    """Wrap a single text in a list; return other values unchanged."""
    return [value] if isinstance(value, str) else value


OneOrMore = Annotated[References, BeforeValidator(several, json_schema_input_type=Reference | References)]
"""A list; a single entry may be written as a text."""


OccasionName = Literal["started", "failed", "preempted", "waits_too_long", "lease_expires", "finished"]
Occasions = Annotated[
    list[OccasionName],
    Field(max_length=len(Occasion)),
    BeforeValidator(several, json_schema_input_type=OccasionName | list[OccasionName]),
]
"""Occasions of messages about a job."""


def no_entries() -> Any:  # noqa: ANN401  # fits any list
    """Return the default of a list. Pydantic copies a plain [] for each message, which is slow."""
    return Field(default_factory=list, json_schema_extra={"default": []})


def no_pairs() -> Any:  # noqa: ANN401  # fits any mapping
    """Return the default of a mapping; see `no_entries`."""
    return Field(default_factory=dict, json_schema_extra={"default": {}})


LONGEST = 64
"""Maximum length of an address or a network, characters."""


def address(text: str) -> IPv4Address | IPv6Address:
    """Read an address without a zone."""
    read = ip_address(text)
    if isinstance(read, IPv6Address):
        return address6(text)
    return read


def address6(text: str) -> IPv6Address:
    """Read an IPv6 address without a zone."""
    if "%" in text:
        raise ValueError("a zone is not allowed, since it is valid on one machine only")
    return IPv6Address(text)


def network6(text: str) -> IPv6Network:
    """Read an IPv6 network. The address must have no bits set beyond the prefix length."""
    if "%" in text:
        raise ValueError("a zone is not allowed, since it is valid on one machine only")
    return IPv6Network(text)


def network(text: str) -> IPv4Network | IPv6Network:
    """Read a network. The address must have no bits set beyond the prefix length."""
    read = ip_network(text)
    return network6(text) if isinstance(read, IPv6Network) else read


def _checked(read: Callable[[str], object], form: str) -> AfterValidator:
    def check(text: str) -> str:
        try:
            read(text)
        except ValueError:
            why = also(Reason("not_valid", value=repr(text)), Reason("use", form=form))
            raise PydanticCustomError("address", "{why}", {"why": why}) from None
        return text

    return AfterValidator(check)


def _url(text: str) -> None:
    parts = urlsplit(text)
    if text and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None):
        raise ValueError
    _ = parts.port


def _interface(text: str) -> None:
    if text in {".", ".."} or any(each in "/:" or each.isspace() for each in text):
        raise ValueError


_Short = Annotated[str, StringConstraints(max_length=LONGEST)]
Address = Annotated[_Short, _checked(address, "an address like fd00:51d:1::1 or 10.0.0.1")]
Address6 = Annotated[
    _Short, _checked(address6, "an IPv6 address like fd00:51d:1::1"), Field(examples=["fd00:51d:1::1"])
]
Network6 = Annotated[_Short, _checked(network6, "an IPv6 network like fd00:51d:1::/48, with no bits beyond its length")]
Network = Annotated[
    _Short, _checked(network, "a network like fd00:a:1::/64 or 10.1.0.0/24, with no bits beyond its length")
]
Url = Annotated[
    str,
    StringConstraints(max_length=500, pattern=LINE_PATTERN),
    _checked(_url, "an address like http://[fd00:51d:1::1]:9100/metrics, without user and password"),
]
InterfaceOrNone = Annotated[
    str,
    StringConstraints(max_length=15, pattern=LINE_PATTERN),
    _checked(_interface, "a network interface as `ip link` shows it, like eth0"),
]
GatewayName = Annotated[str, StringConstraints(pattern=LABEL_VALUE_PATTERN, min_length=1, max_length=63)]
"""Name of a gateway. It is valid in the path of a URL, and not an address, so that it differs from segments."""


NS_PER_US = 1000


def moment(at_ns: int) -> str:
    """Format nanoseconds since 1970 as a timestamp."""
    s, rest_ns = divmod(at_ns, 10**9)
    return f"{_second(s)}.{rest_ns // NS_PER_US:06d}Z"


@lru_cache(4096)
def _second(since_s: int) -> str:
    return datetime.fromtimestamp(since_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def moment_or_none(at_ns: int | None) -> str | None:
    """Format nanoseconds since 1970 as a timestamp; return None for None."""
    return None if at_ns is None else moment(at_ns)


def at_ns(text: str) -> int:
    """Parse a timestamp with a time zone; return nanoseconds since 1970.

    Raises
    ------
    ValueError
        If it is invalid.
    """
    read = datetime.fromisoformat(text)
    if read.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone; append Z for UTC")
    since = read - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * NS_PER_US
