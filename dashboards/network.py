"""Dashboard of the network: links between users and clusters, gateways and their agents."""

from __future__ import annotations

from dashboards.extremes import LINK, most
from dashboards.frame import Frame, Section, Variable, cluster
from dashboards.language import Language
from dashboards.looks import (
    ANY,
    LOSS,
    MBITS,
    NANOSECONDS,
    PER_SECOND,
    PERCENT,
    PRESSURE,
    SECONDS,
    SHARE,
    SILENCE_S,
    STEADY,
)
from dashboards.once import once
from dashboards.panels import Column, Labels, Panel, Show, courses, lines, number, ranking, rows

TO = '{cluster=~"$cluster",source=~"$source",target=~"$target"}'
FROM_SITE = '{cluster=~"$cluster",site=~"$site",source=~"$source",target=~"$target"}'
EVERY_LOSS = '{__name__=~"(UserToCluster|ClusterToCluster)PacketLoss",cluster=~"$cluster"}'
FROM_SOURCE = '{__name__=~"(UserToCluster|ClusterToCluster)PacketLoss",cluster=~"$cluster",source=~"$source"}'
WAY = "{{source}} → {{target}}"
KNOWN, UNKNOWN = 'seaway_links{state=~"measured|reported"}', 'seaway_links{state=~"stale|unknown"}'
USED = once("seaway_gateway_used_mbps", "gateway, direction")
FULL = f"100 * {USED} / on (gateway) group_left {once('seaway_gateway_speed_mbps', 'gateway')}"
"""Utilisation of interfaces, percent."""


def network(language: Language) -> Frame:
    """Return the dashboard of the network."""
    say = language.say
    return Frame(
        "network",
        say("Network", "网络"),
        say(
            "What agents measure between users' gateways and those of clusters, and what the gateways carry.",
            "代理在用户网关与集群网关之间测得的数据，以及网关的流量。",
        ),
        [
            cluster(language),
            Variable("site", say("Site", "站点"), 'UserToClusterPacketLoss{cluster=~"$cluster"}', "site"),
            Variable("source", say("From", "起点"), EVERY_LOSS, "source"),
            Variable("target", say("To", "终点"), FROM_SOURCE, "target"),
        ],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("From users to clusters", "用户到集群"), _users(language)),
            Section(say("Between clusters", "集群之间"), _clusters(language)),
            Section(say("Gateways", "网关"), _gateways(language)),
            Section(say("Who measures", "测量者"), _agents(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(
                say("Links that are measured", "已测量的链路"),
                say("Pairs of gateways of which something came lately.", "近期有测量数据的网关对。"),
                width=4,
                height=5,
            ),
            f"sum({once(KNOWN, 'state')})",
        ),
        number(
            Show(
                say("Links that no one knows", "未知的链路"),
                say(
                    "Of which nothing came lately, or ever. No job with a bound on its network goes over them.",
                    "近期或从未有测量数据。对网络有要求的任务不会使用它们。",
                ),
                width=4,
                height=5,
                steps=ANY,
            ),
            f"sum({once(UNKNOWN, 'state')})",
        ),
        number(
            Show(
                say("Gateways that answer nobody", "无响应的网关"),
                say("Every probe to them is lost: they are down, or cut off.", "所有探测均丢失：已宕机或被隔离。"),
                width=4,
                height=5,
                steps=ANY,
            ),
            f"sum(min by (target) ({EVERY_LOSS}) == bool 1)",
        ),
        number(
            Show(
                say("Most lost", "最高丢包率"),
                say(
                    "On the worst link to a gateway that is reachable from others; 100 % for a broken link.",
                    "在仍有响应的网关中，最差链路的丢包率；链路完全中断时为 100 %。",
                ),
                SHARE,
                4,
                5,
                LOSS,
            ),
            f"max({EVERY_LOSS} unless on (target) min by (target) ({EVERY_LOSS}) == 1)",
        ),
        number(
            Show(
                say("Longest round trip", "最长往返时延"),
                say("From a user's gateway to a cluster's.", "用户网关到集群网关。"),
                NANOSECONDS,
                4,
                5,
            ),
            f"max(UserToClusterLatency{FROM_SITE})",
        ),
        number(
            Show(
                say("Fullest interface", "最满的网络接口"),
                say("Of a gateway, in or out.", "网关接口，任一方向。"),
                PERCENT,
                4,
                5,
                PRESSURE,
            ),
            f"max({FULL})",
        ),
    ]


def _users(language: Language) -> list[Panel]:
    say = language.say
    title = say("Links to clusters", "到集群的链路")
    says = say(
        "One row for each link of a user: what its latest round says. Decisions go by smoothed figures.",
        "每条用户链路一行，为最近一轮探测结果。调度决策使用平滑后的数值。",
    )
    table = _table(language, title, says, "UserToCluster", FROM_SITE)
    return [table, *_figures(language, "UserToCluster", FROM_SITE)]


def _clusters(language: Language) -> list[Panel]:
    say = language.say
    title = say("Links between clusters", "集群间的链路")
    says = say(
        "One row for each link from a cluster's gateway to another's: what its latest round says.",
        "每条集群网关之间的链路一行，为最近一轮探测结果。",
    )
    table = _table(language, title, says, "ClusterToCluster", TO)
    return [table, *_figures(language, "ClusterToCluster", TO)]


def _table(language: Language, title: str, says: str, prefix: str, where: str) -> Panel:
    say = language.say
    return rows(
        Show(title, says, width=24, height=9),
        Labels(
            {"source": say("From", "起点"), "target": say("To", "终点"), "cluster": say("Cluster", "集群")},
        ),
        [
            Column(say("Round trip", "往返时延"), once(f"{prefix}Latency{where}", LINK), NANOSECONDS),
            Column(say("Jitter", "抖动"), once(f"{prefix}Jitter{where}", LINK), NANOSECONDS),
            Column(say("Loss", "丢包率"), once(f"{prefix}PacketLoss{where}", LINK), SHARE, LOSS),
            Column(say("Bandwidth free", "可用带宽"), once(f"{prefix}Bandwidth{where}", LINK), MBITS),
        ],
        most_first=say("Round trip", "往返时延"),
    )


def _figures(language: Language, prefix: str, where: str) -> list[Panel]:
    """Return panels for the worst links of a kind: latency, jitter, loss and bandwidth."""
    say = language.say
    worst = say("The 20 worst links of now.", "显示当前最差的 20 条链路。")

    def among(says: str) -> str:
        return f"{says} {worst}"

    def courses_of(what: str, *, least: bool = False) -> dict[str, str]:
        return {WAY: most(f"{prefix}{what}{where}", where, LINK, least=least)}

    return [
        lines(
            Show(
                say("Round trip", "往返时延"),
                among(say("Mean of the answered probes of a round.", "一轮中有响应的探测的平均值。")),
                NANOSECONDS,
            ),
            courses_of("Latency"),
        ),
        lines(
            Show(
                say("Jitter", "抖动"),
                among(say("The largest distance of one answer from that mean.", "单个响应与平均值的最大偏差。")),
                NANOSECONDS,
            ),
            courses_of("Jitter"),
        ),
        lines(
            Show(
                say("Loss", "丢包率"),
                among(
                    say(
                        "Share of a round's probes that were not answered: with five probes, steps of a fifth.",
                        "一轮中未响应的探测占比；每轮五个探测时，以五分之一为步长。",
                    )
                ),
                SHARE,
                steps=LOSS,
            ),
            courses_of("PacketLoss"),
        ),
        lines(
            Show(
                say("Bandwidth free", "可用带宽"),
                among(
                    say(
                        "What both interfaces can carry, less what passes through the fuller of them.",
                        "两端接口容量减去较满一端的流量。",
                    )
                ),
                MBITS,
            ),
            courses_of("Bandwidth", least=True),
        ),
    ]


def _gateways(language: Language) -> list[Panel]:
    say = language.say
    return [
        lines(
            Show(
                say("What passes through", "网关流量"),
                say("By each gateway's interface, in and out.", "各网关接口的进出流量。"),
                MBITS,
            ),
            {"{{gateway}} {{direction}}": USED},
        ),
        ranking(
            Show(
                say("How full interfaces are", "接口利用率"),
                say(
                    "Beyond nine tenths for ten minutes there is an alert: jobs that need bandwidth go elsewhere.",
                    "超过九成并持续十分钟会触发告警，需要带宽的任务将改道。",
                ),
                PERCENT,
                6,
                8,
                PRESSURE,
            ),
            {"{{gateway}} {{direction}}": FULL},
            most=100,
        ),
        lines(
            Show(
                say("Looks at exporters", "读取导出器"),
                say(
                    "Number of readings of interfaces, by outcome.",
                    "读取接口流量的次数，按结果区分。",
                ),
                PER_SECOND,
                6,
            ),
            {"{{outcome}}": "sum by (outcome) (rate(seaway_gateway_scrapes_total[$__rate_interval]))"},
            colours=STEADY,
        ),
    ]


def _agents(language: Language) -> list[Panel]:
    say = language.say
    return [
        courses(
            Show(
                say("Do agents report?", "代理是否上报"),
                say(
                    "Green while the agent of a gateway reports. Links measured by a lost agent count as unknown.",
                    "绿色表示网关代理正常上报。失联代理测量的链路视为未知。",
                ),
                SECONDS,
                24,
                6,
                SILENCE_S,
            ),
            once("seaway_agent_last_seen_seconds", "gateway"),
            "{{gateway}}",
        ),
        lines(
            Show(
                say("Rounds of probes", "探测轮次"),
                say(
                    "By how they ended: all probes answered, some lost, or none answered at all.",
                    "按结果区分：全部响应、部分丢失、全部无响应。",
                ),
                PER_SECOND,
                8,
            ),
            {"{{outcome}}": "sum by (outcome) (rate(seaway_probe_rounds_total[$__rate_interval]))"},
            stacked=True,
            colours=STEADY,
        ),
        lines(
            Show(
                say("Reports", "上报"),
                say(
                    "Of agents, taken and refused. Refused ones say that a clock is off or an agent misconfigured.",
                    "代理的上报：接受与拒绝。被拒绝说明时钟不准或配置有误。",
                ),
                PER_SECOND,
                8,
            ),
            {"{{outcome}}": "sum by (outcome) (rate(seaway_agent_reports_total[$__rate_interval]))"},
            colours=STEADY,
        ),
        lines(
            Show(
                say("Left out", "丢弃的数据"),
                say(
                    "Answers with an impossible time, and rounds that were given up while no one took reports.",
                    "时间不合理的响应，以及无人接收期间放弃的轮次。",
                ),
                PER_SECOND,
                8,
            ),
            {
                say("answers", "响应"): "sum(rate(seaway_probe_answers_discarded_total[$__rate_interval]))",
                say("rounds", "轮次"): "sum(rate(seaway_probe_rounds_dropped_total[$__rate_interval]))",
            },
        ),
    ]
