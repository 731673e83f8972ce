"""Dashboard of jobs: their states, their waiting times and their results."""

from __future__ import annotations

from dashboards.frame import Frame, Section, Variable
from dashboards.language import Language
from dashboards.looks import PER_SECOND, SECONDS, SHARE, STEADY, WAIT_S, Steps
from dashboards.panels import Column, Labels, Panel, Show, lines, number, ranking, rows, spread
from dashboards.shares import of_queues, shares

HERE = '{queue=~"$queue"}'
WINDOW = "[$__rate_interval]"
ENDED = "seaway_jobs_reached_total"

COMPLETION: Steps = ((None, "red"), (0.5, "orange"), (0.9, "green"))


def _waits(share: float) -> str:
    return (
        f"histogram_quantile({share}, sum by (le, queue) (increase(seaway_queue_wait_seconds_bucket{HERE}[$__range])))"
    )


def jobs(language: Language) -> Frame:
    """Return the dashboard of jobs."""
    say = language.say
    return Frame(
        "jobs",
        say("Jobs", "任务"),
        say(
            "Jobs of all tenants: how many are where, how long they wait by queue, and how they end. Prometheus needs "
            "an operator's token for them.",
            "所有租户的任务：所处状态、各队列等待时长与结束情况。需要运维角色的令牌。",
        ),
        [Variable("queue", say("Queue", "队列"), "seaway_jobs_waiting", "queue")],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("Queues", "队列"), _queues(language)),
            Section(say("Shares", "份额"), shares(language)),
            Section(say("On their way", "进展"), _way(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(
                say("Running", "运行中"),
                say("Jobs of which every replica runs.", "所有副本均在运行的任务。"),
                width=4,
                height=5,
            ),
            'sum(seaway_jobs{state="running"})',
        ),
        number(
            Show(
                say("Waiting", "等待中"),
                say("For a place, in the chosen queues.", "所选队列中等待位置的任务。"),
                width=4,
                height=5,
            ),
            f"sum(seaway_jobs_waiting{HERE})",
        ),
        number(
            Show(
                say("Longest wait", "最长等待"),
                say("Of a job that waits now in the chosen queues.", "所选队列当前等待任务中的最长者。"),
                SECONDS,
                4,
                5,
                WAIT_S,
            ),
            f"max(seaway_queue_longest_wait_seconds{HERE})",
        ),
        number(
            Show(
                say("Completed", "已完成"),
                say("In the time that is shown.", "所选时间范围内。"),
                width=4,
                height=5,
                decimals=0,
            ),
            f'sum(increase({ENDED}{{state="completed"}}[$__range]))',
        ),
        number(
            Show(
                say("Completion rate", "完成率"),
                say(
                    "Of the jobs that completed or failed in the time that is shown, those that completed.",
                    "所选时间范围内，完成数占完成与失败总数的比例。",
                ),
                SHARE,
                4,
                5,
                COMPLETION,
            ),
            f'sum(increase({ENDED}{{state="completed"}}[$__range]))'
            f' / (sum(increase({ENDED}{{state=~"completed|failed"}}[$__range])) > 0)',
            nothing=say("None ended", "没有任务结束"),
        ),
        number(
            Show(
                say("Preempted", "被抢占"),
                say("Had to make room for others, in the time that is shown.", "所选时间范围内为他人让位的任务。"),
                width=4,
                height=5,
                decimals=0,
            ),
            f'sum(increase({ENDED}{{state="preempted"}}[$__range]))',
        ),
    ]


def _queues(language: Language) -> list[Panel]:
    say = language.say
    return [
        rows(
            Show(
                say("Queues", "队列"),
                say(
                    "One row for each queue; waits are of the jobs that were placed in the time that is shown.",
                    "每个队列一行；等待时长按所选时间范围内放置的任务计算。",
                ),
                width=12,
                height=9,
            ),
            Labels({"queue": say("Queue", "队列")}),
            [
                Column(say("Waiting", "等待中"), f"sum by (queue) (seaway_jobs_waiting{HERE})"),
                Column(
                    say("Longest wait now", "当前最长等待"),
                    f"max by (queue) (seaway_queue_longest_wait_seconds{HERE})",
                    SECONDS,
                    WAIT_S,
                ),
                Column(say("Half waited less", "等待中位数"), _waits(0.5), SECONDS, WAIT_S),
                Column(say("95 of 100 waited less", "等待 p95"), _waits(0.95), SECONDS, WAIT_S),
            ],
            most_first=say("Waiting", "等待中"),
        ),
        spread(
            Show(
                say("How long jobs waited", "等待时长分布"),
                say(
                    "Of those that were placed at each moment: whether most wait a little, or a few wait long.",
                    "按放置时刻统计：是多数任务略有等待，还是少数任务等待很久。",
                ),
                SECONDS,
                12,
                9,
            ),
            f"sum by (le) (increase(seaway_queue_wait_seconds_bucket{HERE}{WINDOW}))",
        ),
        lines(
            Show(say("Waiting", "等待中"), say("By queue.", "按队列。")),
            {"{{queue}}": f"sum by (queue) (seaway_jobs_waiting{HERE})"},
            stacked=True,
        ),
        lines(
            Show(
                say("Longest wait", "最长等待"),
                say("By queue. Beyond an hour there is an alert.", "按队列，超过一小时告警。"),
                SECONDS,
                steps=WAIT_S,
            ),
            {"{{queue}}": f"max by (queue) (seaway_queue_longest_wait_seconds{HERE})"},
        ),
        lines(
            Show(
                say("GPUs by queue", "各队列的 GPU"),
                say(
                    "Held by the jobs of a queue and its descendants, against its guarantee and its limit.",
                    "队列及其下级队列的任务所占 GPU，与保障量和上限对照。",
                ),
                width=24,
            ),
            {
                "{{queue}}": of_queues("usage"),
                say("{{queue}} guarantee", "{{queue}} 保障量"): of_queues("guarantee"),
                say("{{queue}} limit", "{{queue}} 上限"): of_queues("limit"),
            },
        ),
    ]


def _way(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(say("Jobs by state", "各状态任务数"), say("Of those that are unfinished.", "未结束的任务。")),
            {"{{state}}": "sum by (state) (seaway_jobs)"},
            stacked=True,
            colours=STEADY,
        ),
        lines(
            Show(
                say("Into each state", "状态转换速率"),
                say(
                    "How many jobs come into each state: pending when submitted, completed or failed at the end.",
                    "进入各状态的任务速率：新提交为 pending，结束为 completed 或 failed。",
                ),
                PER_SECOND,
            ),
            {"{{state}}": f"sum by (state) (rate({ENDED}{WINDOW}))"},
            colours=STEADY,
        ),
        ranking(
            Show(
                say("What became of deployments", "部署结果"),
                say(
                    "In the time that is shown, before their jobs ran: refused by the cluster, failed to start, struck "
                    "by a node that failed, not confirmed in time, or removed by others.",
                    "所选时间范围内、任务运行之前：被集群拒绝、启动失败、节点故障、确认超时或被人删除。",
                ),
                decimals=0,
            ),
            {"{{outcome}}": "sum by (outcome) (increase(seaway_deployments_total[$__range]))"},
        ),
        lines(
            Show(
                say("Deployments that came to nothing", "失败的部署"),
                say("By cluster, and what became of them.", "按集群与结果。"),
                PER_SECOND,
            ),
            {
                "{{cluster}} {{outcome}}": "sum by (cluster, outcome)"
                f' (rate(seaway_deployments_total{{outcome!="running"}}{WINDOW}))'
            },
        ),
        lines(
            Show(
                say("Broken bounds", "网络约束被破坏"),
                say(
                    "Running jobs whose links broke a bound for long, and those of them that were moved.",
                    "链路长时间不满足约束的运行中任务，以及其中被迁移者。",
                ),
                PER_SECOND,
            ),
            {
                say("broken", "破坏"): f"sum(rate(seaway_slo_violations_total{WINDOW}))",
                say("moved", "迁移"): f"sum(rate(seaway_slo_moves_total{WINDOW}))",
            },
        ),
        lines(
            Show(
                say("Standbys", "备用副本"),
                say(
                    "Services that should have a standby in another cluster, and those that cannot switch to it now.",
                    "应在其他集群有备用副本的服务，以及目前无法切换到备用副本的服务。",
                ),
                decimals=0,
            ),
            {
                say("services", "服务"): "max(seaway_standbys)",
                say("without a standby", "缺少备用副本"): "max(seaway_standbys_missing)",
            },
        ),
        ranking(
            Show(
                say("What keeps jobs waiting", "任务等待的原因"),
                say(
                    "Jobs that wait, by the rule that refuses most nodes to them.",
                    "等待的任务，按拒绝节点最多的规则统计。",
                ),
            ),
            {"{{rule}}": "sum by (rule) (seaway_jobs_unschedulable)"},
        ),
    ]
