"""Examples of request bodies and responses for OpenAPI, by message."""

from __future__ import annotations

from typing import Any

from seaway.api.http.example_answers import ANSWERS
from seaway.domain.reasons import Reason
from seaway.wire.message import with_message

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
                "last_error": "",
            }
        ],
    },
    "GatewayConfigOut": {
        "gateway": "gw-1",
        "version": "3",
        "network": _NETWORK,
        "active": {"gw-2": "direct"},
        "applied": {"gw-2": "direct"},
        "serving": {"cluster-1": "gw-1", "cluster-2": "gw-2"},
    },
    "LinkMatrix": {
        "figure": "latency",
        "gateways": [
            {"name": "gw-berlin", "address": "2001:db8::1", "clusters": ["berlin"], "site": ""},
            {"name": "gw-office", "address": "2001:db8::2", "clusters": [], "site": "office"},
        ],
        "values": [[None, 9_800_000], [None, None]],
        "states": [[None, "measured"], ["unknown", None]],
        "bounds": [],
    },
}


_JOB: dict[str, Any] = {
    "id": "6gzx9takdjhgz",
    "name": "train",
    "tenant": "default",
    "queue": "default",
    "priority": 0,
    "replicas": 1,
    "held_replicas": 1,
    "state": "running",
    **with_message(Reason("runs", where="berlin")),
    "version": 4,
    "attempt": 1,
    "failures": 0,
    "clusters": ["berlin"],
    "nodes": ["node-1"],
    "submitted_at": "2026-11-21T10:00:00.000000Z",
    "submitted_by": "ada",
    "updated_at": "2026-11-21T10:00:02.000000Z",
    "started_at": "2026-11-21T10:00:02.000000Z",
    "ended_at": None,
    "not_before": None,
    "expires_at": None,
    "spec": {"name": "train", "tenant": "default", "resources": {"gpus": 1, "gpu_memory": "24GB"}},
    "request": {
        "cpu_milli": 0,
        "memory_mib": 0,
        "gpus": 1,
        "gpu_memory_mib": 22888,
        "gpu_memory_percent": 0,
        "gpu_milli": 0,
    },
}
_QUEUE = {
    "tenant": "vision",
    "pool": "default",
    "policy": "bestfit",
    "shadow": "",
    "open": True,
    "description": "At night",
    "allowed_taints": ["nvidia.com/gpu"],
    "allowed_node_labels": ["disk"],
    "parent": "research",
    "weight": 2,
    "priority": 0,
    "guarantee": {"gpus": 16, "gpus/a100": 8},
    "limit": {"gpu_memory": "640GB", "gpus": 32},
    "order": "fair",
    "backfill": "easy",
    "preemption": "PreemptLowerPriority",
    "preempts": "all",
    "reclaim": "Guarantee",
    "preemptible": True,
    "min_runtime": "10m",
    "start_timeout": "1h",
    "grow_cooldown": "1m",
    "elastic": "lend",
    "ageing": "1h",
    "borrowing_limit": {"gpus": 8},
    "lending_limit": {"gpus": 4},
}
_USE = {
    "queue": "batch",
    "tenant": "vision",
    "waiting": 1,
    "running": 12,
    "longest_wait_s": 95,
    "gpus": 12,
    "gpu_milli": 12_000,
    "gpu_memory_mib": 274_656,
    "cpu_milli": 48_000,
    "memory_mib": 98_304,
}
_TOTALS = {
    "queue": "batch",
    "waiting": 1,
    "running": 12,
    "used": {"cpu": 48, "gpu_memory": "274656Mi", "gpus": 12, "gpus/a100": 12, "memory": "96Gi"},
    "guarantee": {"gpus": 16, "gpus/a100": 8},
    "borrowed": {"cpu": 48, "gpu_memory": "274656Mi", "gpus/a100": 4, "memory": "96Gi"},
    "limit": {"gpu_memory": "640GB", "gpus": 32},
}
_POOL = {"clusters": ["berlin", "paris"], "description": "Near clusters"}
_RESERVATION = {
    "starts": "2026-11-28T14:00:00.000000Z",
    "ends": "2026-11-28T18:00:00.000000Z",
    "tenant": "vision",
    "queue": "",
    "gpus": 8,
    "gpu_model": "NVIDIA A100",
    "clusters": ["berlin"],
    "nodes": [],
    "drain": False,
    "description": "Demonstration",
}
_NOTIFICATION = {
    "channel": "webhook",
    "url": "https://example.com/hook",
    "addresses": [],
    "on": ["failed", "waits_too_long"],
    "queue": "batch",
    "job": "",
    "wait_limit": "2h",
}
_NOTIFICATION_OUT = {
    "name": "ops",
    "tenant": "vision",
    **_NOTIFICATION,
    "waiting": 0,
    "dead": 1,
    "changed_by": "ada",
    "changed_at": "2026-11-21T10:00:00.000000Z",
    "version": "91c02d64be5a7f38",
}
_QUOTA = {
    "guarantee": {"gpus": 8},
    "limit": {"gpus": 32, "jobs": 100},
    "max_waiting": 500,
    "user_limit": {"gpus": 8},
    "user_max_waiting": None,
}
_TENANT_TOTALS = {
    "tenant": "vision",
    "pool": "default",
    "waiting": 3,
    "running": 4,
    "used": {"gpus": 12, "jobs": 4},
    "guarantee": {"gpus": 8},
    "limit": {"gpus": 32, "jobs": 100},
    "max_waiting": 500,
}
_TENANT = {"description": "Computer vision", "weight": 2, "quotas": {"default": _QUOTA}, "secrets": ["hf"]}
_CORDON = {"cluster": "berlin", "node": "node-1", "drain": True, "reason": "a new power supply"}

_POLICY = {
    "name": "bestfit",
    "description": "the feasible node with least left",
    "queues": ["default"],
    "source": "seaway",
}

_POLICIES: dict[str, Any] = {
    "PolicyList": {"policies": [_POLICY]},
    "PolicyDetail": {
        **_POLICY,
        "name": "pilot-7",
        "description": "scores nodes by attention over them",
        "source": "trained",
        "version": "5f2c6b0e1d3a4897",
        "trained": {
            "level": "node",
            "algo": "pilot",
            "clusters": None,
            "network": True,
            "features": 1,
            "digest": "5f2c6b0e1d3a4897" * 4,
            "model_sha256": "91bd0c4e7fa25836" * 4,
            "size_bytes": 182_044,
            "signed_by": "SHA256:lq8mJw0d3Xh1x1rWn2m3yQyTz6m1kV0r9r1l8y1a2bc",
            "imported_by": "ada",
            "at": "2026-11-21T10:00:00.000000Z",
            "made_by": "seaway train --algo pilot --draw any --seed 7",
            "created": "2026-11-21T10:00:00.000000Z",
            "config": {"seed": 7},
            "figures": {"placed_share": 0.98},
            "curve": [{"episode": 200, "placed": 870, "refused": 4, "gpu_load_variance": 0.012, "reward": 164.5}],
        },
    },
    "EvaluationIn": [
        {"policy": "fgd", "level": "node", "instance": "seed0", "seed": 0, "jobs": 220, "placed": 204},
        {"policy": "bestfit", "level": "node", "instance": "seed0", "seed": 0, "jobs": 220, "placed": 183},
    ],
    "EvaluationDetail": {
        "name": "night",
        "actor": "ada",
        "at": "2026-11-21T10:00:00.000000Z",
        "policies": ["fgd"],
        "instances": 5,
        "lines": [
            {
                "policy": "fgd",
                "level": "node",
                "instances": 5,
                "runs": 5,
                "runs_without_figures": 0,
                "trained_on_instance": None,
                "figures": {"placed": {"mean": 188.4, "ci95": 6.1, "samples": 5}},
                "behind": None,
            }
        ],
    },
    "ActivateIn": {"queue": "batch", "shadow": True},
    "ActivatedOut": {
        "queue": {"name": "batch", **_QUEUE, "shadow": "pilot-7", "version": "7d20c1f6a95be384"},
        "left": "policy pilot-7@91bd0c4e7fa2 may not decide for queue 'batch' yet: it decided 38 of 100 jobs in its "
        "shadow, 62 to go (policies.shadow_jobs); let more jobs come, and check the comparison: "
        "seaway queue shadows batch",
        "warning": None,
    },
}

_JOIN = {
    "id": "9f1c0de5b0a70b2e",
    "stage": "checked",
    "checks": [
        {
            "check": "kubeconfig",
            "level": "ok",
            **with_message(Reason("context_of", context="gpu-east", server="https://10.1.0.1:6443")),
            "remedy": None,
        },
        {"check": "rights in gpu-east", "level": "ok", **with_message(Reason("rights_complete")), "remedy": None},
    ],
    "usable": True,
    "name": "gpu-east",
    "by": "ada",
    "expires_at": "2026-11-21T10:15:00.000000Z",
}

EXAMPLES: dict[str, Any] = {
    "NewJoinIn": {"kubeconfig": "apiVersion: v1\nkind: Config\n...", "context": "gpu-east"},
    "JoinEndIn": {"name": "gpu-east", "replace": False},
    "JoinOut": _JOIN,
    "JoinList": {"joins": [_JOIN], "joined": ["gpu-west"], "obstacle": None},
    "JoinDone": {"name": "gpu-east", "note": "", "problems": []},
    "CordonIn": _CORDON,
    "PoolIn": _POOL,
    "ReservationIn": _RESERVATION,
    "NotificationIn": _NOTIFICATION,
    "ResendIn": {"ids": ["msg_187a1f4c0de5b0000f3d1c5a70b2e4491"]},
    "NotificationOut": _NOTIFICATION_OUT,
    "NotificationStored": {**_NOTIFICATION_OUT, "secret": "whsec_c2VjcmV0LW9mLWF0LWxlYXN0LTI0LWJ5dGVz"},
    "DeliveryPage": {
        "deliveries": [
            {
                "id": "msg_187a1f4c0de5b0000f3d1c5a70b2e4491",
                "tenant": "vision",
                "notification": "ops",
                "job": "6hhgq2g019edv",
                "job_name": "train-17",
                "occasion": "failed",
                "state": "dead",
                "tries": 31,
                "error": "the receiver answers 500",
                "created_at": "2026-11-21T10:00:00.000000Z",
                "next_at": "2026-11-22T10:00:00.000000Z",
                "delivered_at": None,
            }
        ],
        "next": None,
    },
    "TrialOut": {"delivered": False, "error": "the receiver answers 404"},
    "WorkdirIn": {"size_bytes": 700_000},
    "QueueIn": _QUEUE,
    "SavedFilterIn": {"query": "state=failed&sort=-ended"},
    "AcknowledgeIn": {"name": "SeawayQueueLong", "of": "training"},
    "ActionIn": {"reason": "no longer needed"},
    "TenantIn": _TENANT,
    "TokenIn": {"name": "ci", "role": "user", "tenant": "vision", "expires_in": "90d"},
    "WhatIfIn": {"question": {"drain": ["berlin/node-1"], "jobs": [{"name": "train", "resources": {"gpus": 2}}]}},
    "MovesIn": {
        "moves": [{"job": "6dqdpn803cf2t", "attempt": 1, "to": ["berlin/node-2"]}],
        "drain": ["berlin/node-1"],
        "reason": "new driver",
    },
    "JobBatchIn": {
        "jobs": [
            {"name": "prepare", "resources": {"cpu": 8}, "data": {"output": "200GB"}},
            {"name": "train", "resources": {"gpus": 4}, "after": [{"job": "prepare"}]},
        ]
    },
    "JobOut": _JOB,
    "JobPage": {"jobs": [_JOB], "next": None},
    "UnusedGpusList": {
        "jobs": [
            {
                "id": "6gzx9takdjhgz",
                "name": "train",
                "tenant": "vision",
                "queue": "batch",
                "submitted_by": "ada",
                "gpu_core_hours": 8.0,
                "unused_gpu_core_hours": 6.4,
                "used_percent": 20.0,
            }
        ]
    },
    "JobGroupList": {
        "groups": [
            {
                "name": "ada",
                "jobs": 42,
                "waiting": 3,
                "running": 2,
                "gpus": 9.5,
                "cost": {
                    "gpu_hours": 31.5,
                    "unpriced_gpu_hours": 0.0,
                    "cost": "78.75",
                    "cost_per_hour": "22.50",
                    "unpriced_gpus": 0.0,
                },
            }
        ]
    },
    "JobCount": {
        "total": 15,
        "states": {"running": 12, "queued": 3},
        "waiting": 3,
        "running": 12,
        "waiting_tasks": 103,
        "running_tasks": 24,
    },
    "QueueUsageList": {"uses": [_USE], "queues": [_TOTALS], "tenants": [_TENANT_TOTALS]},
    "WaitingPage": {
        "jobs": [
            {
                **_JOB,
                "state": "queued",
                "attempt": 0,
                "clusters": [],
                "nodes": [],
                "started_at": None,
                "position": 1,
                "reason": {"code": "no_node_fits", "params": {}},
                "message": "waits: 0 of 3 nodes fit: 3 nodes have not enough free GPU memory on one device",
            }
        ],
        "total": 1,
        "next": None,
    },
    "ScheduleOut": {
        "at": "2026-11-21T10:00:00.000000Z",
        "groups": [
            {
                "name": "berlin",
                "running": 1,
                "planned": 1,
                "jobs": [
                    {
                        "id": "6hhgq2g019edv",
                        "name": "train-17",
                        "tenant": "vision",
                        "queue": "batch",
                        "clusters": ["berlin"],
                        "planned": False,
                        "start": "2026-11-21T09:40:00.000000Z",
                        "end": "2026-11-21T10:40:00.000000Z",
                        "gpus": 8.0,
                    },
                    {
                        "id": "6hhgq2g019edx",
                        "name": "train-18",
                        "tenant": "vision",
                        "queue": "batch",
                        "clusters": ["berlin"],
                        "planned": True,
                        "start": "2026-11-21T10:40:00.000000Z",
                        "end": None,
                        "gpus": 8.0,
                    },
                ],
            }
        ],
        "unplanned": 3,
    },
    "PoolOut": {"name": "near", **_POOL, "version": "6e1b0b3c7f5d2a90"},
    "ReservationOut": {
        "name": "demo",
        **_RESERVATION,
        "maintenance": False,
        "state": "planned",
        "gpus_reserved": 8,
        "gpus_ready": 7,
        "version": "3c1d95a06be2f784",
    },
    "QueueOut": {"name": "batch", **_QUEUE, "version": "0f4a9d27c81be653"},
    "QueueStored": {"name": "batch", **_QUEUE, "version": "0f4a9d27c81be653", "warning": None},
    "TenantOut": {"name": "vision", **_TENANT, "version": "b35c70d1e9842fa6"},
    **ANSWERS,
    **NETWORK,
    **_POLICIES,
    "CallerOut": {
        "name": "ada",
        "role": "user",
        "tenant": "vision",
        "max_body_bytes": 1_048_576,
        "max_policy_file_bytes": 9_445_376,
        "currency": "EUR",
    },
}
