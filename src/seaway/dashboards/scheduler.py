"""The scheduler: what it decides, how long each stage takes, and the database and interface behind it."""

from __future__ import annotations

from seaway.dashboards.frame import Frame, Section
from seaway.dashboards.language import Language
from seaway.dashboards.looks import ANY, BYTES, NUMBER, PER_SECOND, READY, SECONDS, SHARE, SOME, WAIT_S
from seaway.dashboards.panels import Panel, Show, lines, number, ranking, spread

WINDOW = "[$__rate_interval]"
OURS = "and on (job, instance) seaway_build_info"
"""Which processes are Seaway's: others tell of themselves by the same names."""


def _rate(name: str, by: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({name}{WINDOW}))"


def _quantile(share: float, name: str, by: str = "") -> str:
    within = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({within}) (rate({name}_bucket{WINDOW})))"


def scheduler(language: Language) -> Frame:
    """Return the dashboard of the scheduler."""
    say = language.say
    return Frame(
        "scheduler",
        say("Scheduler", "调度器"),
        say(
            "How Seaway itself does: decisions, stages, policies, what clusters are told, the database, requests. "
            "Prometheus needs an operator's token for most of it.",
            "Seaway 自身的运行状况：决策、各阶段耗时、策略、下发、数据库与请求。其中大部分需要运维角色的令牌。",
        ),
        [],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("Decisions", "决策"), _decisions(language)),
            Section(say("Stages", "阶段"), _stages(language)),
            Section(say("Clusters", "集群"), _clusters(language)),
            Section(say("Database", "数据库"), _database(language)),
            Section(say("Interface", "接口"), _interface(language)),
            Section(say("Pages", "网页"), _pages(language)),
            Section(say("Seaway itself", "Seaway 自身"), _itself(language)),
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
            _rate("seaway_jobs_placed_total"),
        ),
        number(
            Show(say("Jobs that wait", "等待的任务"), say("In all queues.", "所有队列合计。"), width=4, height=5),
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
                    "In the last hour: somebody changed the job while it was decided. A few are no trouble.",
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
                say("tried", "尝试"): _rate("seaway_jobs_decided_total"),
                say("placed", "放置"): _rate("seaway_jobs_placed_total"),
            },
        ),
        lines(
            Show(
                say("Placed, by policy", "按策略放置"),
                say("Which policy chose the places.", "由哪种策略选定位置。"),
                PER_SECOND,
                8,
            ),
            {"{{policy}}": _rate("seaway_jobs_placed_total", "policy")},
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
            {"{{rule}}": "sum by (rule) (seaway_jobs_refused)"},
        ),
        lines(
            Show(
                say("Trained policies: time to decide", "训练策略的决策耗时"),
                say("99 of 100 decisions took less.", "99 % 的决策不超过该值。"),
                SECONDS,
            ),
            {"{{policy}}": _quantile(0.99, "seaway_policy_decision_seconds", "policy")},
        ),
        lines(
            Show(
                say("Trained policies: fall-backs", "训练策略的回退"),
                say(
                    "Decisions that something else made in a policy's place, by why it did not.",
                    "由其他策略代为做出的决策，按原因区分。",
                ),
                PER_SECOND,
            ),
            {"{{policy}} {{reason}}": _rate("seaway_policy_fallbacks_total", "policy, reason")},
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
            {"{{stage}}": _quantile(0.5, "seaway_stage_seconds", "stage")},
        ),
        lines(
            Show(
                say("99 of 100 took less", "各阶段耗时 p99"),
                say("The same stages, their slowest hundredth.", "同样的阶段，最慢的百分之一。"),
                SECONDS,
            ),
            {"{{stage}}": _quantile(0.99, "seaway_stage_seconds", "stage")},
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
                say("Still to be told", "待下发"),
                say(
                    "Commands that a cluster has not confirmed. They pile up for one that does not answer.",
                    "集群尚未确认的命令。集群无响应时会堆积。",
                ),
                width=8,
            ),
            {"{{cluster}}": "sum by (cluster) (seaway_outgoing)"},
            stacked=True,
        ),
        lines(
            Show(
                say("Age of the oldest", "最旧命令的等待时长"),
                say("Of what each cluster is still to be told.", "各集群待下发命令中最旧者。"),
                SECONDS,
                8,
            ),
            {"{{cluster}}": "max by (cluster) (seaway_outgoing_oldest_seconds)"},
        ),
        lines(
            Show(
                say("Told in vain", "未成功的下发"),
                say("What was tried and has to be tried again.", "已尝试、需重试的命令。"),
                width=8,
            ),
            {"{{cluster}}": "sum by (cluster) (seaway_outgoing_delayed)"},
        ),
        lines(
            Show(
                say("Age of what is known", "已知信息的时长"),
                say(
                    "Since each cluster told something, or something there began to fail.",
                    "距各集群上次有效上报的时间。",
                ),
                SECONDS,
                8,
            ),
            {"{{cluster}}": "max by (cluster) (seaway_cluster_silent_seconds)"},
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
                say("Doubts about what is told", "可疑的上报"),
                say(
                    "What a cluster says that is broken, unusable, uncertain, or double. The log has each in words.",
                    "集群上报中损坏、不可用、不确定或重复的内容，日志中有详情。",
                ),
                width=8,
            ),
            {"{{cluster}} {{kind}}": "sum by (cluster, kind) (seaway_collector_troubles)"},
        ),
    ]


def _database(language: Language) -> list[Panel]:
    say = language.say
    failed = say("failed", "失败")
    return [
        lines(
            Show(
                say("Time of a transaction", "事务耗时"),
                say("Nobody is answered before what they did is stored.", "存储完成之前不会答复任何请求。"),
                SECONDS,
                6,
            ),
            {
                "p50": _quantile(0.5, "seaway_transaction_seconds"),
                "p99": _quantile(0.99, "seaway_transaction_seconds"),
            },
        ),
        lines(
            Show(
                say("Changes that wait", "等待写入的变更"),
                say(
                    "To be stored. At 20,000 those who submit are told to come again.",
                    "等待写入存储的变更，达到 20,000 时拒绝新的提交。",
                ),
                width=6,
            ),
            {say("wait", "等待"): "sum(seaway_changes_waiting)"},
        ),
        lines(
            Show(
                say("Transactions", "事务"),
                say(
                    "And the changes in them: the more changes in one, the busier the writer.",
                    "以及其中的变更数：单个事务变更越多，写入越繁忙。",
                ),
                PER_SECOND,
                6,
            ),
            {
                say("changes", "变更"): _rate("seaway_changes_total"),
                say("transactions", "事务"): _rate("seaway_transactions_total"),
            },
        ),
        lines(
            Show(
                say("Failures", "失败"),
                say("Each has everything read anew. One is one too many.", "每次失败都会重新读取全部数据。"),
                PER_SECOND,
                6,
            ),
            {failed: _rate("seaway_transaction_failures_total")},
            colours={failed: "red"},
        ),
    ]


def _interface(language: Language) -> list[Panel]:
    say = language.say
    answered = 'sum(rate(seaway_http_requests_total{status!~"5.."}[$__rate_interval]))'
    return [
        lines(
            Show(say("Requests", "请求"), say("By status.", "按状态码。"), PER_SECOND, 6),
            {"{{status}}": _rate("seaway_http_requests_total", "status")},
            stacked=True,
        ),
        lines(
            Show(
                say("99 of 100 took less", "请求耗时 p99"),
                say("By operation; streams are left out.", "按操作，不含流式接口。"),
                SECONDS,
                6,
            ),
            {"{{operation}}": _quantile(0.99, "seaway_http_request_seconds", "operation")},
        ),
        lines(
            Show(
                say("Share of errors", "错误占比"),
                say(
                    "Requests that failed on this side: a status of 500 or more.",
                    "服务端失败的请求：状态码不小于 500。",
                ),
                SHARE,
                6,
            ),
            {say("errors", "错误"): f"1 - {answered} / {_rate('seaway_http_requests_total')}"},
        ),
        lines(
            Show(
                say("Who follows events", "事件订阅者"),
                say("Open streams, and audit entries that found no room.", "打开的事件流，以及无法写入的审计条目。"),
                width=6,
            ),
            {
                say("streams", "事件流"): "sum(seaway_event_listeners)",
                say("audit entries lost", "丢失的审计条目"): "sum(seaway_audit_dropped_total)",
            },
        ),
    ]


def _pages(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("Requests for pages", "页面请求"),
                say("By what browsers ask for.", "按浏览器请求的页面。"),
                PER_SECOND,
                8,
            ),
            {"{{page}}": _rate("seaway_page_requests_total", "page")},
            stacked=True,
        ),
        lines(
            Show(
                say("Pages: 99 of 100 took less", "页面耗时 p99"),
                say("Until a page, or a part of it, was answered.", "页面或其局部的响应耗时。"),
                SECONDS,
                8,
            ),
            {"{{page}}": _quantile(0.99, "seaway_page_request_seconds", "page")},
        ),
        lines(
            Show(
                say("What pages ask", "页面查询"),
                say("Of the interface, once for all who look at the same.", "页面对接口的查询，相同内容只查一次。"),
                PER_SECOND,
                8,
            ),
            {"{{operation}}": _rate("seaway_page_asks_total", "operation")},
            stacked=True,
        ),
    ]


def _itself(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("Memory", "内存"),
                say("What the process holds in memory.", "进程常驻内存。"),
                BYTES,
                6,
            ),
            {"{{instance}}": f"process_resident_memory_bytes {OURS}"},
        ),
        lines(
            Show(
                say("Processor", "CPU"),
                say("Cores that the process keeps busy.", "进程占用的 CPU 核数。"),
                NUMBER,
                6,
            ),
            {"{{instance}}": f"rate(process_cpu_seconds_total{WINDOW}) {OURS}"},
        ),
        lines(
            Show(
                say("Runs for", "运行时长"),
                say(
                    "Since the process started. Each fall is a restart, or another replica that leads now.",
                    "距进程启动的时间。每次下降表示重启，或由另一副本接管。",
                ),
                SECONDS,
                6,
            ),
            {"{{instance}}": f"time() - process_start_time_seconds {OURS}"},
        ),
        lines(
            Show(
                say("Version", "版本"),
                say("What runs, and from when to when.", "运行的版本及其时段。"),
                NUMBER,
                6,
            ),
            {"{{version}}, Python {{python}}": "count by (version, python) (seaway_build_info)"},
        ),
    ]
