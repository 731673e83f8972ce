"""Examples of responses by message, as views of one fleet with one job."""

from __future__ import annotations

from typing import Any

from seaway.domain.reasons import Reason
from seaway.wire.message import code_fields, coded, with_message

_AT = "2026-11-21T10:00:00.000000Z"
_ID = "6gzx9takdjhgz"


def _amount(total: int, used: int) -> dict[str, int]:
    return {"total": total, "used": used, "free": total - used}


_CORDON = {"cluster": "berlin", "node": "node-2", "drain": False, "reason": "repair", "actor": "ada", "at": _AT}
_LINK = {
    "source": "site-berlin",
    "target": "gw-berlin",
    "latency_ns": 4_000_000,
    "jitter_ns": 300_000,
    "loss_ppm": 20,
    "bandwidth_mbps": 10_000,
    "used_mbps": 1_000,
}
_KNOWN_LINK = {
    **_LINK,
    "loss_bound_ppm": None,
    "traffic_mbps": 3_000,
    "reserved_mbps": 2_000,
    "free_mbps": 7_000,
    "path": "direct",
    "state": "measured",
    "age_s": 4.2,
    "raw": {
        "at": _AT,
        "sent": 5,
        "received": 5,
        "discarded": 0,
        "latency_ns": 4_100_000,
        "jitter_ns": 310_000,
        "loss_ppm": 0,
    },
    "smoothed": {"latency_ns": 4_050_000, "jitter_ns": 305_000, "loss_ppm": 20},
}
_SLICE = {"uuid": "GPU-1", "memory_mib": 22_888, "core_milli": 300, "mig_profile": "", "mig_start": -1}
_PLACEMENT = {"replica": 0, "cluster": "berlin", "node": "node-1", "slices": [_SLICE]}
_ENDPOINT = {"cluster": "berlin", "port": 8080, "address": "192.0.2.7:31337", "reach": "outside", **with_message("")}
_COPY = {
    "cluster": "berlin",
    "phase": "running",
    "address": "192.0.2.7:31337",
    "endpoints": [_ENDPOINT],
    "drift": [],
    **with_message(""),
    "replicas": [
        {
            "replica": 0,
            "phase": "running",
            "node": "node-1",
            "pod": f"seaway/sw-{_ID}-1-5tq2x",
            "containers": [
                {"name": "main", "ports": [8080], "devices": ["GPU-1"]},
                {"name": "proxy", "ports": [15001], "devices": []},
            ],
            **with_message(""),
        }
    ],
}
_NO_CPU = code_fields("NodeResources.1", {}, "not enough free CPU")
_FITS = {
    "nodes": 3,
    "filtered": [{"plugin": "NodeResources", **_NO_CPU, "nodes": 2, "clusters": {"berlin": 2}}],
    "candidates": [{"cluster": "berlin", "node": "node-1", "scores": {"BestFit": 75}, "total": 75}],
    "remedies": [],
    "links": [],
    "data": None,
}
_CHOICE = {
    "cluster": "berlin",
    "node": "node-1",
    "total": 75,
    "scores": {"BestFit": 75},
    "free_slices": 3,
    "link": _LINK,
    "price_per_hour": "2.40",
    "chosen": True,
}
_HELD = {
    "cluster": "berlin",
    "node": "node-1",
    "uuid": "GPU-1",
    "job_id": _ID,
    "job": "train",
    "tenant": "default",
    "attempt": 1,
    "replica": 0,
    "memory_mib": 22_888,
    "core_milli": 300,
    "mig_profile": "",
    "pod": "seaway/sw-01k3zq-1-0",
    "container": "main",
    "used": {"memory_bytes": 21_474_836_480, "core_milli": 270, "age_s": 12.5},
}
_FOUND = {
    "nodes": 1,
    "devices": 1,
    "memory_mib": _amount(81_920, 22_888),
    "core_milli": _amount(1_000, 300),
    "schedulable_memory_mib": 59_032,
    "unknown": 0,
    "fullness": [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0],
}
_PLACED = {
    **_HELD,
    "index": 0,
    "model": "NVIDIA A100-SXM4-80GB",
    "device_memory_mib": 81_920,
    "device_core_milli": 1_000,
}
_DEVICE = {
    "cluster": "berlin",
    "node": "node-1",
    "uuid": "GPU-1",
    "index": 0,
    "model": "NVIDIA A100-SXM4-80GB",
    "vendor": "NVIDIA",
    "mode": "hami-core",
    "healthy": True,
    **with_message(""),
    "share_limit": 10,
    "memory_mib": _amount(81_920, 22_888),
    "core_milli": _amount(1_000, 300),
    "slices": [_HELD],
    "used": {"memory_bytes": 21_474_836_480, "core_milli": 270, "age_s": 12.5},
    "numa": 0,
    "island": 0,
    "pcie_switch": None,
}
_FIGURES = {
    "nodes": 3,
    "gpus": 12,
    "cpu_milli": _amount(192_000, 4_000),
    "memory_mib": _amount(1_572_864, 32_768),
    "gpu_milli": _amount(12_000, 300),
    "gpu_memory_mib": _amount(983_040, 22_888),
    "jobs": 1,
}
_FACTS = {
    "region": None,
    "zones": [],
    "provider": None,
    "location": {"latitude": 52.52, "longitude": 13.4},
    "hardware": ["nvlink"],
    "price_per_gpu_hour": {"A100": "2.40"},
    "spot_price_per_gpu_hour": {},
    "labels": {"team": "vision"},
}
_CLUSTER = {
    "name": "berlin",
    "state": "up",
    "last_seen_s": 0,
    "reported_at": _AT,
    **with_message(""),
    "gateway": "gw-berlin",
    "region": "eu",
    "zones": ["eu-1a"],
    "provider": None,
    "location": {"latitude": 52.52, "longitude": 13.4},
    "hardware": ["nvlink"],
    "price_per_gpu_hour": "2.40",
    "prices": [
        {
            "model": "NVIDIA A100-SXM4-80GB",
            "spot": False,
            "gpus": 12,
            "price_per_gpu_hour": "2.40",
            "spot_price": False,
            "source": "set",
        }
    ],
    "labels": {"team": "vision"},
    "own_facts": _FACTS,
    "sources": {
        "region": "settings",
        "zones": "reported",
        "location": "set",
        "hardware": "set",
        "labels.team": "set",
    },
    "cordon": None,
    **_FIGURES,
    "gpus_used_milli": 300,
    "orphans": [],
}
_TOKEN = {
    "id": "1a2b3c4d5e6f",
    "name": "ci",
    "role": "user",
    "tenant": "vision",
    "gateway": "",
    "created_at": _AT,
    "created_by": "ada",
    "expires_at": "2027-02-19T10:00:00.000000Z",
    "revoked_at": None,
}
_WAITS = {
    "waiting": 3,
    "unknown": 1,
    "compared": 2,
    "mean_s": 1800.0,
    "mean_all_s": 1900.0,
    "p50_s": 1500.0,
    "p95_s": None,
    "gpu_share": 0.25,
}
_SUMS = {"placed": 12, "waiting": 3, "allocation_percent": 61.5, "fragmentation": 2.5}
_MOVE = {"id": _ID, "name": "train", "before": ["berlin/node-1"], "after": ["paris/node-4"], **with_message("")}
_CLUSTER_SUMS = {
    "nodes": 3,
    "jobs": 1,
    "gpu_milli": _amount(12_000, 300),
    "gpu_memory_mib": _amount(983_040, 22_888),
}

_GATEWAY = {"name": "gw-berlin", "address": "2001:db8::1", "clusters": ["berlin"], "site": ""}

ANSWERS: dict[str, Any] = {
    "FactsOut": _FACTS,
    "DryRunOut": {
        "policy": "bestfit",
        "fits": True,
        "reason": {"code": "nodes_fit_best", "params": {"fits": 1, "nodes": 3, "place": "berlin/node-1"}},
        "message": "1 of 3 nodes fit, best berlin/node-1; refused: 2 nodes have not enough free CPU",
        "candidates": [_CHOICE],
        "placements": [_PLACEMENT],
        "explanation": _FITS,
        "manifests": [],
    },
    "ReasonOut": {
        "id": _ID,
        "name": "huge",
        "state": "queued",
        "reason": {"code": "no_node_fits", "params": {}},
        "message": "waits: 0 of 3 nodes fit: 3 nodes have not enough free CPU; "
        "it would fit with cpu 60 instead of 64 (berlin/node-1)",
        "position": 2,
        "ahead": 1,
        "placements": [],
        "placement_reason": None,
        "explanation": {
            "nodes": 3,
            "filtered": [{"plugin": "NodeResources", **_NO_CPU, "nodes": 3, "clusters": {"berlin": 3}}],
            "candidates": [],
            "remedies": [
                {"field": "cpu_milli", "requested": 64_000, "admits": 60_000, "cluster": "berlin", "node": "node-1"}
            ],
            "links": [],
            "data": None,
        },
    },
    "EventList": {
        "events": [
            {
                "id": 4711,
                "at": _AT,
                "kind": "state",
                **with_message(Reason("runs", where="berlin/node-1")),
                "actor": "controller",
                "tenant": "default",
                "job_id": _ID,
                "state": "running",
                "attempt": 1,
            }
        ],
        "next": None,
    },
    "RecentEvents": {
        "events": [
            {
                "id": 4712,
                "at": _AT,
                "kind": "cluster",
                **with_message("berlin answers (it was stale)"),
                "actor": "controller",
                "tenant": "",
                "job_id": "",
                "state": "",
                "attempt": 0,
            }
        ]
    },
    "AttemptList": {
        "attempts": [
            {
                "number": 1,
                "state": "running",
                "policy": "bestfit",
                "placement_reason": coded("bestfit chose berlin/node-1"),
                **with_message(""),
                "created_at": _AT,
                "running_at": _AT,
                "ended_at": None,
                "placements": [_PLACEMENT],
            }
        ],
        "workloads": [_COPY],
        "ring": [{"cluster": "berlin", "next": "paris", "replicas": 8, "link": _KNOWN_LINK}],
        "next": None,
    },
    "ClusterOut": _CLUSTER,
    "ClusterList": {"clusters": [_CLUSTER]},
    "NodePage": {
        "nodes": [
            {
                "cluster": "berlin",
                "name": "node-1",
                "ready": True,
                **with_message(""),
                "cordon": None,
                "cpu_milli": _amount(64_000, 4_000),
                "memory_mib": _amount(524_288, 32_768),
                "pods": _amount(110, 14),
                "jobs": 3,
                "devices": [_DEVICE],
            }
        ],
        "next": None,
        "first": 0,
        "found": _FOUND,
    },
    "FleetMap": {
        "nodes": [
            {
                "cluster": "berlin",
                "name": "node-1",
                "models": ["NVIDIA A100-SXM4-80GB"],
                "gpus": 8,
                "unhealthy": 0,
                "gpu_milli_used": 3300,
                "ready": True,
                "answers": True,
                "tenants": ["vision"],
                "jobs": 3,
            }
        ],
        "found": _FOUND,
    },
    "DevicePage": {"devices": [_DEVICE], "next": None, "first": 0, "found": _FOUND},
    "SlicePage": {"slices": [_PLACED], "next": None, "found": _FOUND},
    "ModelList": {
        "models": [
            {
                "model": "NVIDIA A100-SXM4-80GB",
                "devices": 12,
                "free": 11,
                "memory_mib": _amount(983_040, 22_888),
                "core_milli": _amount(12_000, 300),
            }
        ]
    },
    "LinkList": {"links": [_KNOWN_LINK], "total": 1},
    "NetLinks": [
        {
            "sourceName": "gw-4",
            "targetName": "gw-1",
            "sourceIP": "fd00:51d:4::1",
            "targetIP": "fd00:51d:1::1",
            "net": {"jitter": 30354, "latency": 315730, "packetLoss": 0, "bandwidth": 9400, "capacity": 10000},
        }
    ],
    "GatewayList": {"gateways": [_GATEWAY]},
    "ClusterHistory": {"samples": [{"at": _AT, "cluster": "berlin", "state": "up", **_FIGURES}], "next": None},
    "CostOut": {
        "gpu_hours": 12.5,
        "unpriced_gpu_hours": 0,
        "cost": "31.25",
        "cost_per_hour": "5.00",
        "unpriced_gpus": 0,
    },
    "SavedFilterOut": {"name": "failures", "query": "state=failed&sort=-ended", "changed_at": _AT},
    "SavedFilterList": {"filters": [{"name": "failures", "query": "state=failed&sort=-ended", "changed_at": _AT}]},
    "UsageHistoryOut": {
        "by": "queue",
        "span": "day",
        "step_s": 900,
        "since": _AT,
        "until": _AT,
        "series": [
            {
                "name": "training",
                "gpu_hours": 91.5,
                "steps": [
                    {
                        "at": _AT,
                        "gpu_milli": 0,
                        "gpu_milli_used": 4000,
                        "gpu_milli_measured": 3100,
                        "running": 4.0,
                        "waiting": 2.5,
                        "longest_wait_s": 340,
                        "started": 3,
                        "mean_wait_s": 41.2,
                    }
                ],
            }
        ],
        "others": None,
    },
    "LinkHistory": {"samples": [{**_LINK, "at": _AT, "path": "direct"}], "next": None},
    "CordonOut": _CORDON,
    "CordonList": {"cordons": [_CORDON]},
    "ShadowList": {
        "shadows": [
            {
                "id": 7,
                "at": _AT,
                "queue": "batch",
                "live": "bestfit",
                "shadow": "fgd",
                "jobs": 12,
                "tries": 14,
                "live_placed": 10,
                "shadow_placed": 11,
                "live_wait_ms": 310_000,
                "shadow_wait_ms": 275_000,
                "same_node": 6,
                "live_fragmentation_milli": 2_500,
                "shadow_fragmentation_milli": 2_310,
                "answered": 12,
                "fallbacks": 0,
            }
        ],
        "next": None,
    },
    "TokenOut": _TOKEN,
    "TokenList": {"tokens": [_TOKEN]},
    "UserList": {
        "users": [
            {
                "name": "ada",
                "issuer": "",
                "role": "user",
                "tenant": "default",
                "last_seen_at": _AT,
                "last_address": "192.0.2.7",
                "tokens": [_TOKEN],
            }
        ]
    },
    "ProviderOut": {
        "issuer": "https://login.example",
        "audience": "seaway",
        "keys": "https://login.example/keys",
        "name_claim": "sub",
        "role_claim": "seaway_role",
        "tenant_claim": "seaway_tenant",
        "roles": {"admins": "admin"},
        "client_id": "seaway",
        "has_client_secret": True,
        "redirect": "",
        "scopes": "openid profile",
    },
    "TokenCreated": {**_TOKEN, "secret": "sw_1a2b3c4d5e6f_..."},
    "AuditPage": {
        "entries": [
            {
                "id": 12,
                "at": _AT,
                "actor": "ada",
                "role": "user",
                "tenant": "default",
                "verb": "PUT put_tenant",
                "target": "/api/v1/tenants/vision",
                "status": 200,
                "address": "192.0.2.7",
                "token_id": "5f0c3a9e1b24",
                "issuer": "",
                "requests": 1,
                "changes": [
                    {
                        "kind": "tenant",
                        "name": "vision",
                        "field": "quotas.default.limit.gpus",
                        "before": "32",
                        "after": "64",
                    }
                ],
            }
        ],
        "next": None,
    },
    "WhatIfOut": {
        **with_message(
            Reason("listed", parts=(Reason("consequences", moved=1, started=0, waiting=3, stopped=0),)),
        ),
        "before": _SUMS,
        "after": _SUMS,
        "clusters": [{"name": "berlin", "before": _CLUSTER_SUMS, "after": _CLUSTER_SUMS}],
        "moved": [_MOVE],
        "started": [],
        "stopped": [],
        "shrunk": [],
        "grown": [],
        "waiting": [],
        "waits": {
            "window": "1h",
            "queues": [{"name": "batch", "depth": 0, "before": _WAITS, "after": {**_WAITS, "mean_s": 1260.0}}],
            "tenants": [{"name": "vision", "depth": 0, "before": _WAITS, "after": {**_WAITS, "mean_s": 1260.0}}],
            "fleet": {"name": "", "depth": 0, "before": _WAITS, "after": {**_WAITS, "mean_s": 1260.0}},
            "earlier": 2,
            "later": 0,
            "earlier_jobs": [
                {"id": _ID, "name": "train", "queue": "batch", "tenant": "vision", "before": None, "after": _AT}
            ],
            "later_jobs": [],
        },
        "trace": None,
        "lost_gpu_hours": 12.5,
    },
}
