"""Dashboard of the scheduler: decisions, durations of stages, database, API and process."""

from __future__ import annotations

from dashboards.frame import Frame, Section
from dashboards.language import Language
from dashboards.looks import ANY, NUMBER, PER_SECOND, READY, SECONDS, SOME, WAIT_S
from dashboards.panels import Panel, Show, lines, number, ranking, spread
from dashboards.rates import WINDOW, quantile, rate
from dashboards.service import database, interface, itself, pages


def scheduler(language: Language) -> Frame:
    """Return the dashboard of the scheduler."""
    say = language.say
    return Frame(
        "scheduler",
        say("Scheduler", "调度器"),
        say(
            "Seaway itself: decisions, stages, policies, commands to clusters, the database, requests. "
            "Prometheus needs an operator's token for most of it.",
            "Seaway 自身的运行状况：决策、各阶段耗时、策略、下发、数据库与请求。其中大部分需要运维角色的令牌。",
        ),
        [],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("Decisions", "决策"), _decisions(language)),
            Section(say("Stages", "阶段"), _stages(language)),
            Section(say("Clusters", "集群"), _clusters(language)),
            Section(say("Database", "数据库"), database(language)),
            Section(say("Interface", "接口"), interface(language)),
            Section(say("Pages", "网页"), pages(language)),
            Section(say("Seaway itself", "Seaway 自身"), itself(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(
                say("Ready", "就绪"),
                say(
                    "1 while jobs can be placed: it knows what is stored, and which clusters there are.",
                    "1 表示可以放置任务：已知存储内容与集群情况。",
                ),
                width=3,
                height=5,
                steps=READY,
            ),
            "min(seaway_ready)",
        ),
        number(
            Show(
                say("Placed per second", "每秒放置"),
                say("Jobs that were given a place.", "获得位置的任务。"),
                PER_SECOND,
                5,
                5,
            ),
            rate("seaway_jobs_placed_total"),
        ),
        number(
            Show(say("Waiting jobs", "等待的任务"), say("In all queues.", "所有队列合计。"), width=4, height=5),
            "sum(seaway_jobs_waiting)",
        ),
        number(
            Show(
                say("Longest wait", "最长等待"),
                say(
                    "Of a job that waits now. Beyond an hour there is an alert.",
                    "当前等待任务中的最长者，超过一小时告警。",
                ),
                SECONDS,
                4,
                5,
                WAIT_S,
            ),
            "max(seaway_queue_longest_wait_seconds)",
        ),
        number(
            Show(
                say("Decisions given back", "退回的决策"),
                say(
                    "In the last hour: a user changed the job during the decision. A few are normal.",
                    "最近一小时：决策期间任务被修改。少量属正常。",
                ),
                width=4,
                height=5,
                steps=SOME,
            ),
            "sum(increase(seaway_conflicts_total[1h]))",
        ),
        number(
            Show(
                say("Failed rounds", "失败的轮次"),
                say(
                    "Rounds of the control loop in the last hour that failed, mostly as the database did not answer.",
                    "最近一小时控制循环失败的轮次，多因数据库无响应。",
                ),
                width=4,
                height=5,
                steps=ANY,
            ),
            "sum(increase(seaway_loop_failures_total[1h]))",
        ),
    ]


def _decisions(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("Decisions", "决策速率"),
                say(
                    "Jobs tried and jobs placed. Many more tried than placed: those who wait are tried again.",
                    "尝试的任务与放置的任务。前者远多于后者，说明等待中的任务在反复尝试。",
                ),
                PER_SECOND,
                8,
            ),
            {
                say("tried", "尝试"): rate("seaway_jobs_decided_total"),
                say("placed", "放置"): rate("seaway_jobs_placed_total"),
            },
        ),
        lines(
            Show(
                say("Placed, by policy", "按策略放置"),
                say("Which policy chose the places.", "由哪种策略选定位置。"),
                PER_SECOND,
                8,
            ),
            {"{{policy}}": rate("seaway_jobs_placed_total", "policy")},
            stacked=True,
        ),
        ranking(
            Show(
                say("What keeps jobs waiting", "任务等待的原因"),
                say(
                    "Jobs that wait, by the rule that refuses most nodes to them. DeviceFit: no one device has that "
                    "much free. room: it would fit, but not all replicas at once, or the place is kept for another.",
                    "等待的任务，按拒绝节点最多的规则统计。DeviceFit：没有单个设备有足够空闲；"
                    "room：可放下，但副本无法同时放置，或位置已预留。",
                ),
                NUMBER,
                8,
            ),
            {"{{rule}}": "sum by (rule) (seaway_jobs_unschedulable)"},
        ),
        lines(
            Show(
                say("Trained policies: time to decide", "训练策略的决策耗时"),
                say("99 of 100 decisions took less.", "99 % 的决策不超过该值。"),
                SECONDS,
            ),
            {"{{policy}}": quantile(0.99, "seaway_policy_decision_seconds", "policy")},
        ),
        lines(
            Show(
                say("Trained policies: fallbacks", "训练策略的回退"),
                say(
                    "Decisions that something else made in a policy's place, by why it did not.",
                    "由其他策略代为做出的决策，按原因区分。",
                ),
                PER_SECOND,
            ),
            {"{{policy}} {{reason}}": rate("seaway_policy_fallbacks_total", "policy, reason")},
        ),
    ]


def _stages(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("Half of all took less", "各阶段耗时中位数"),
                say(
                    "decide: trying a batch of jobs. store: until that is stored. dispatch: until clusters took it "
                    "over. start: until every replica runs.",
                    "decide：尝试一批任务；store：写入存储；dispatch：集群接管；start：所有副本运行。",
                ),
                SECONDS,
            ),
            {"{{stage}}": quantile(0.5, "seaway_stage_seconds", "stage")},
        ),
        lines(
            Show(
                say("99 of 100 took less", "各阶段耗时 p99"),
                say("The same stages, their slowest hundredth.", "同样的阶段，最慢的百分之一。"),
                SECONDS,
            ),
            {"{{stage}}": quantile(0.99, "seaway_stage_seconds", "stage")},
        ),
        spread(
            Show(
                say("Until clusters took it over", "集群接管耗时分布"),
                say(
                    "From a stored placement until all clusters of it confirmed: how fast they are.",
                    "从位置存储到所有集群确认，反映集群的响应速度。",
                ),
                SECONDS,
            ),
            f'sum by (le) (increase(seaway_stage_seconds_bucket{{stage="dispatch"}}{WINDOW}))',
        ),
        spread(
            Show(
                say("Until every replica runs", "启动耗时分布"),
                say(
                    "From there until the job runs: images to pull, volumes to mount, and clusters' own schedulers.",
                    "从接管到任务运行：拉取镜像、挂载存储、集群自身调度。",
                ),
                SECONDS,
            ),
            f'sum by (le) (increase(seaway_stage_seconds_bucket{{stage="start"}}{WINDOW}))',
        ),
    ]


def _clusters(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("Pending commands", "待下发"),
                say(
                    "Commands that a cluster has not confirmed. They pile up for one that does not answer.",
                    "集群尚未确认的命令。集群无响应时会堆积。",
                ),
                width=8,
            ),
            {"{{cluster}}": "sum by (cluster) (seaway_pending_commands)"},
            stacked=True,
        ),
        lines(
            Show(
                say("Age of the oldest", "最旧命令的等待时长"),
                say("Oldest pending command of each cluster.", "各集群待下发命令中最旧者。"),
                SECONDS,
                8,
            ),
            {"{{cluster}}": "max by (cluster) (seaway_pending_command_oldest_seconds)"},
        ),
        lines(
            Show(
                say("Failed commands", "未成功的下发"),
                say("What was tried and must be tried again.", "已尝试、需重试的命令。"),
                width=8,
            ),
            {"{{cluster}}": "sum by (cluster) (seaway_pending_commands_retrying)"},
        ),
        lines(
            Show(
                say("Age of reports", "已知信息的时长"),
                say(
                    "Time since the last report of each cluster, or since a source there began to fail.",
                    "距各集群上次有效上报的时间。",
                ),
                SECONDS,
                8,
            ),
            {"{{cluster}}": "max by (cluster) (seaway_cluster_last_seen_seconds)"},
        ),
        lines(
            Show(
                say("Sources that fail", "采集失败"),
                say(
                    "For how long a kind of object could not be listed or watched; the worst of each cluster.",
                    "某类对象无法列出或监听的时长，取各集群最差者。",
                ),
                SECONDS,
                8,
            ),
            {"{{cluster}}": "max by (cluster) (seaway_collector_failing_seconds)"},
        ),
        lines(
            Show(
                say("Problems in reports", "可疑的上报"),
                say(
                    "What a cluster says that is broken, unusable, uncertain, or double. The log has each in words.",
                    "集群上报中损坏、不可用、不确定或重复的内容，日志中有详情。",
                ),
                width=8,
            ),
            {"{{cluster}} {{kind}}": "sum by (cluster, kind) (seaway_collector_problems)"},
        ),
    ]
