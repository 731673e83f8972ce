"""Panels of the shares of queues and tenants, of displaced jobs, and of expected starts."""

from __future__ import annotations

from dashboards.language import Language
from dashboards.looks import PER_SECOND, PERCENT, SECONDS, SOME
from dashboards.panels import Column, Labels, Panel, Show, lines, number, rows, spread

GPUS = '{queue=~"$queue", resource="gpus"}'
HERE = '{queue=~"$queue"}'
WINDOW = "[$__rate_interval]"


def of_queues(kind: str) -> str:
    """Return the query for the GPUs of queues: their `usage`, `guarantee` or `limit`."""
    return f"max by (queue) (seaway_queue_{kind}{GPUS})"


def of_quotas(kind: str, resource: str = "gpus") -> str:
    """Return the query for a resource of tenants with a quota: their `usage`, `guarantee` or `limit`."""
    return f'max by (tenant, pool) (seaway_quota_{kind}{{resource="{resource}"}})'


BELOW = f"({of_queues('usage')} < bool {of_queues('guarantee')})"
WAITS = f"(max by (queue) (seaway_jobs_waiting{HERE}) > bool 0)"
BORROWED = f"clamp_min({of_queues('usage')} - {of_queues('guarantee')}, 0)"


def shares(language: Language) -> list[Panel]:
    """Return the panels of queues and tenants."""
    say = language.say
    return [
        number(
            Show(
                say("Below their guarantee", "低于保障量"),
                say(
                    "Chosen queues that hold fewer GPUs than they are guaranteed, while their jobs wait.",
                    "所选队列中，有任务等待而所占 GPU 少于保障量的队列数。",
                ),
                width=6,
                height=9,
                steps=SOME,
            ),
            f"sum({BELOW} * on (queue) {WAITS})",
        ),
        rows(
            Show(
                say("Shares of queues", "队列份额"),
                say(
                    "GPUs of a queue with its descendants. Use beyond the guarantee is borrowed. Displaced: in the "
                    "time that is shown.",
                    "队列及其下级队列的 GPU；超出保障量的部分为借用。被抢占任务数按所选时间范围统计。",
                ),
                width=18,
                height=9,
            ),
            Labels({"queue": say("Queue", "队列")}),
            [
                Column(say("GPUs", "GPU 数"), of_queues("usage")),
                Column(say("Guarantee", "保障量"), of_queues("guarantee")),
                Column(say("Borrowed", "借用"), BORROWED),
                Column(say("Limit", "上限"), of_queues("limit")),
                Column(
                    say("Displaced", "被抢占"),
                    f"sum by (queue) (increase(seaway_preemptions_total{HERE}[$__range]))",
                    steps=SOME,
                ),
            ],
            most_first=say("GPUs", "GPU 数"),
        ),
        lines(
            Show(
                say("Use of guarantees", "保障量使用率"),
                say("More than 100 is borrowed from others.", "超过 100 的部分借自其他队列。"),
                PERCENT,
            ),
            {"{{queue}}": f"100 * {of_queues('usage')} / ({of_queues('guarantee')} != 0)"},
        ),
        lines(
            Show(
                say("Use of limits", "上限使用率"),
                say("At 100, jobs of the queue wait whatever is free.", "达到 100 时，即使有空闲，任务也要等待。"),
                PERCENT,
            ),
            {"{{queue}}": f"100 * {of_queues('usage')} / ({of_queues('limit')} != 0)"},
        ),
        rows(
            Show(
                say("Quotas of tenants", "租户配额"),
                say("Tenants with a quota, in each pool.", "有配额的租户，按资源池。"),
                width=24,
                height=7,
            ),
            Labels({"tenant": say("Tenant", "租户"), "pool": say("Pool", "资源池")}),
            [
                Column(say("GPUs", "GPU 数"), of_quotas("usage")),
                Column(say("Guarantee", "保障量"), of_quotas("guarantee")),
                Column(say("Limit", "上限"), of_quotas("limit")),
                Column(say("Jobs", "任务数"), of_quotas("usage", "jobs")),
                Column(say("Most jobs", "任务数上限"), of_quotas("limit", "jobs")),
            ],
            most_first=say("GPUs", "GPU 数"),
        ),
        lines(
            Show(
                say("Displaced jobs", "被抢占的任务"),
                say(
                    "By their queue, and by rule: for a higher priority in the queue, or reclaimed by another queue.",
                    "按所属队列与规则：为队列内更高优先级让位，或被其他队列收回。",
                ),
                PER_SECOND,
            ),
            {"{{queue}} {{rule}}": f"sum by (queue, rule) (rate(seaway_preemptions_total{HERE}{WINDOW}))"},
        ),
        spread(
            Show(
                say("Errors of expected starts", "预计开始时间的误差"),
                say(
                    "Difference between the first expected start of a job and its start, by the time of its start. It "
                    "depends on the expected durations of jobs.",
                    "任务首次预计开始时间与实际开始时间之差，按开始时刻统计。取决于任务的预计时长。",
                ),
                SECONDS,
            ),
            f"sum by (le) (increase(seaway_start_estimate_error_seconds_bucket{WINDOW}))",
        ),
    ]
