"""Sections of the scheduler's dashboard: the database, the API, pages, and the process."""

from __future__ import annotations

from dashboards.language import Language
from dashboards.looks import BYTES, NUMBER, PER_SECOND, SECONDS, SHARE
from dashboards.panels import Panel, Show, lines
from dashboards.rates import WINDOW, quantile, rate

OURS = "and on (job, instance) seaway_build_info"
"""Matches processes of Seaway; other processes export metrics with the same names."""


def database(language: Language) -> list[Panel]:
    """Return panels of the database."""
    say = language.say
    failed = say("failed", "失败")
    return [
        lines(
            Show(
                say("Time of a transaction", "事务耗时"),
                say("No one is answered before what they did is stored.", "存储完成之前不会答复任何请求。"),
                SECONDS,
                6,
            ),
            {
                "p50": quantile(0.5, "seaway_transaction_seconds"),
                "p99": quantile(0.99, "seaway_transaction_seconds"),
            },
        ),
        lines(
            Show(
                say("Changes that wait", "等待写入的变更"),
                say(
                    "Changes to be stored. At 20,000, clients that submit are asked to retry later.",
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
                say("changes", "变更"): rate("seaway_changes_total"),
                say("transactions", "事务"): rate("seaway_transactions_total"),
            },
        ),
        lines(
            Show(
                say("Failures", "失败"),
                say("Each has everything read again. One is one too many.", "每次失败都会重新读取全部数据。"),
                PER_SECOND,
                6,
            ),
            {failed: rate("seaway_transaction_failures_total")},
            colours={failed: "red"},
        ),
    ]


def interface(language: Language) -> list[Panel]:
    """Return panels of the API."""
    say = language.say
    answered = 'sum(rate(seaway_http_requests_total{status!~"5.."}[$__rate_interval]))'
    return [
        lines(
            Show(say("Requests", "请求"), say("By status.", "按状态码。"), PER_SECOND, 6),
            {"{{status}}": rate("seaway_http_requests_total", "status")},
            stacked=True,
        ),
        lines(
            Show(
                say("99 of 100 took less", "请求耗时 p99"),
                say("By operation; streams are left out.", "按操作，不含流式接口。"),
                SECONDS,
                6,
            ),
            {"{{operation}}": quantile(0.99, "seaway_http_request_seconds", "operation")},
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
            {say("errors", "错误"): f"1 - {answered} / {rate('seaway_http_requests_total')}"},
        ),
        lines(
            Show(
                say("Who follows events", "事件订阅者"),
                say(
                    "Open streams and sessions, and audit entries that found no room.",
                    "打开的事件流和会话，以及无法写入的审计条目。",
                ),
                width=6,
            ),
            {
                say("streams", "事件流"): "sum(seaway_event_listeners)",
                say("sessions", "会话"): "sum(seaway_sessions)",
                say("audit entries lost", "丢失的审计条目"): "sum(seaway_audit_dropped_total)",
            },
        ),
    ]


def pages(language: Language) -> list[Panel]:
    """Return panels of pages and their API requests."""
    say = language.say
    return [
        lines(
            Show(
                say("Requests for pages", "页面请求"),
                say("By requested page.", "按浏览器请求的页面。"),
                PER_SECOND,
                8,
            ),
            {"{{page}}": rate("seaway_page_requests_total", "page")},
            stacked=True,
        ),
        lines(
            Show(
                say("Pages: 99 of 100 took less", "页面耗时 p99"),
                say("Until a page, or a part of it, was answered.", "页面或其局部的响应耗时。"),
                SECONDS,
                8,
            ),
            {"{{page}}": quantile(0.99, "seaway_page_request_seconds", "page")},
        ),
        lines(
            Show(
                say("What pages ask", "页面查询"),
                say("Of the interface, once for all who look at the same.", "页面对接口的查询，相同内容只查一次。"),
                PER_SECOND,
                8,
            ),
            {"{{operation}}": rate("seaway_page_api_requests_total", "operation")},
            stacked=True,
        ),
    ]


def itself(language: Language) -> list[Panel]:
    """Return panels of the process and its use of the machine."""
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
