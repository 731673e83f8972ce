"""Examples of responses about the network between gateways, by message."""

from __future__ import annotations

from typing import Any

_NETWORK: dict[str, Any] = {
    "probe": {"interval": "10s", "count": 5, "timeout": "1s"},
    "mesh": True,
    "gateways": [
        {"name": "gw-1", "cluster": "berlin", "address": "fd00:51d:1::1", "locator": "fd00:51d:1::/48"},
        {"name": "gw-2", "site": "office", "address": "fd00:51d:2::1", "locator": "fd00:51d:2::/48"},
    ],
    "paths": [],
}

NETWORK: dict[str, Any] = {
    "NetworkOut": _NETWORK,
    "NetworkPlan": {
        "version": "3",
        "changes": ["gateway gw-3 is removed", "gateway gw-1: mtu 1500 -> 9000"],
        "impact": ["gw-3 is used by train"],
    },
    "TargetList": {
        "gateway": "gw-1",
        "address": "fd00:51d:1::1",
        "version": "3",
        "probe": {"interval_s": 10.0, "count": 5, "timeout_s": 1.0},
        "reflect": 0,
        "targets": [
            {
                "gateway": "gw-2",
                "address": "fd00:51d:2::1",
                "method": "icmp",
                "port": 0,
                "path": "via-3",
                "segments": ["fd00:51d:3::e"],
            }
        ],
    },
    "AgentList": {
        "version": "3",
        "agents": [
            {
                "gateway": "gw-1",
                "state": "reporting",
                "last_report_at": "2026-11-21T10:00:00.000000Z",
                "age_s": 4.21,
                "started_at": "2026-11-20T08:00:00.000000Z",
                "address": "fd00:51d:1::1",
                "reports": 9360,
                "rounds": 18_720,
                "dropped": 0,
                "discarded": 2,
                "refused": 0,
                "trouble": "",
            }
        ],
    },
    "GatewayConfigOut": {
        "gateway": "gw-1",
        "version": "3",
        "network": _NETWORK,
        "active": {"gw-2": "direct"},
        "applied": {"gw-2": "direct"},
    },
    "LinkMatrix": {
        "figure": "latency",
        "gateways": [
            {"name": "gw-berlin", "address": "2001:db8::1", "clusters": ["berlin"], "site": ""},
            {"name": "gw-office", "address": "2001:db8::2", "clusters": [], "site": "office"},
        ],
        "values": [[None, 9_800_000], [None, None]],
        "states": [[None, "measured"], ["unknown", None]],
    },
}
