"""Who does something, and from where: one record that every line of the audit log carries.

In: what a front knows of a request. Out: the record, and the network by which failed logins are counted.
"""

from __future__ import annotations

import ipaddress

from secant.records import frozen


@frozen
class Origin:
    """Who acts, from which address, by which token, in which request. What is not known is empty."""

    actor: str = ""
    """The user's name; `os:NAME` for who runs a command on the machine of the service."""
    address: str = ""
    token_id: str = ""
    request_id: str = ""
    way: str = ""
    """`HTTP`, `console`, `postgres` or `command line`."""


UNKNOWN = Origin()


def network_of(address: str) -> str:
    """Give the network that one client can be taken to have: an IPv4 address, or the /64 of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        # Whoever has one address of a /64 has all of them: counting each alone would count nothing.
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
