"""The source address of SRv6 tunnels, which the kernel has a generic netlink family for.

References
----------
Linux, include/uapi/linux/seg6_genl.h.
"""

from __future__ import annotations

from ipaddress import IPv6Address

from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.generic import GenericNetlinkSocket

FAMILY = "SEG6"
VERSION = 1
SET, GET = 3, 4
NO_SUCH_FAMILY = 2
"""ENOENT."""


class Message(genlmsg):  # type: ignore[misc]  # pyroute2 ships no types
    """A message of the family, of which only the address is known."""

    nla_map = (("SEG6_ATTR_UNSPEC", "none"), ("SEG6_ATTR_DST", "ip6addr"))


def read() -> str | None:
    """Return the source, ``::`` where the kernel chooses it; None where the kernel has no such setting."""
    try:
        reply = _ask(GET, None)
    except NetlinkError as error:
        if error.code == NO_SUCH_FAMILY:
            return None
        raise
    return str(IPv6Address(reply))


def write(address: str) -> None:
    """Set the source."""
    _ask(SET, address)


def _ask(command: int, address: str | None) -> str:
    with GenericNetlinkSocket() as socket:
        socket.bind(FAMILY, Message)
        message = Message()
        message["cmd"], message["version"] = command, VERSION
        if address is not None:
            message["attrs"] = [("SEG6_ATTR_DST", address)]
        replies = socket.nlm_request(message, msg_type=socket.prid, msg_flags=NLM_F_REQUEST | NLM_F_ACK)
        found = [reply.get_attr("SEG6_ATTR_DST") for reply in replies]
    return next((each for each in found if each), "::")
