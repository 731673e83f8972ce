"""Dashboard of the fleet: allocation of GPUs by cluster."""

from __future__ import annotations

from dashboards.frame import Frame, Section, cluster, link
from dashboards.language import Language
from dashboards.looks import ALLOCATED, BYTES, FILL, IDLE, PERCENT, SECONDS, SILENCE_S, USED
from dashboards.once import once, total
from dashboards.panels import Column, Labels, Panel, Show, courses, lines, number, ranking, rows

HERE = '{cluster=~"$cluster"}'

CORES = f"100 * {total(f'GPUDeviceCoreAllocated{HERE}')} / {total(f'GPUDeviceCoreLimit{HERE}')}"
MEMORY = f"100 * {total(f'GPUDeviceMemoryAllocated{HERE}')} / {total(f'GPUDeviceMemoryLimit{HERE}')}"
STRANDED = (
    f"(GPUDeviceMemoryLimit{HERE} - GPUDeviceMemoryAllocated{HERE}) * (GPUDeviceSharedNum{HERE} > bool 0)"
    f" * (GPUDeviceCoreAllocated{HERE} >= bool GPUDeviceCoreLimit{HERE})"
)
FULL = f"(100 * GPUDeviceCoreAllocated{HERE} / GPUDeviceCoreLimit{HERE})"
NOBODYS = f"GPUDeviceSharedNum{HERE} == bool 0"
"""True for devices without any allocation of cores or memory."""

HELD = f"(GPUDeviceSharedNum{HERE} > bool 0)"


def fleet(language: Language) -> Frame:
    """Return the dashboard of the fleet."""
    say = language.say
    return Frame(
        "fleet",
        say("GPU fleet", "GPU 总览"),
        say(
            "All GPUs of all clusters: how much is allocated, how much of that is used, and where there is room.",
            "所有集群的全部 GPU：已分配多少、其中实际使用多少、哪里还有空闲。",
        ),
        [cluster(language)],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("Clusters", "集群"), _clusters(language)),
            Section(say("Course", "变化趋势"), _courses(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(
                say("GPUs", "GPU 数量"),
                say("Devices that clusters tell of, sick ones included.", "各集群上报的设备数，包括不健康的设备。"),
                width=4,
                height=5,
            ),
            total(f"GPUDeviceCoreLimit{HERE}", of="count"),
        ),
        number(
            Show(
                say("GPU cores allocated", "GPU 算力分配率"),
                say(
                    "Share of all cores that are allocated. Below a half, many GPUs are idle; near "
                    "100 %, the next job waits.",
                    "已承诺给用户的算力占比。低于一半说明 GPU 闲置浪费；接近 100 % 时新任务需要排队。",
                ),
                PERCENT,
                4,
                5,
                FILL,
                1,
            ),
            CORES,
        ),
        number(
            Show(
                say("GPU memory allocated", "显存分配率"),
                say(
                    "Share of all GPU memory that is promised. Far from that of cores, one of the two runs out first "
                    "and strands the other.",
                    "已承诺的显存占比。若与算力分配率相差很大，其中一种会先耗尽，使另一种无法使用。",
                ),
                PERCENT,
                4,
                5,
                FILL,
                1,
            ),
            MEMORY,
        ),
        number(
            Show(
                say("vGPUs", "vGPU 数量"),
                say(
                    "Shares of devices that containers hold: more of them than GPUs is what sharing is for.",
                    "容器持有的设备份额数量：共享的意义就在于它比 GPU 数量多。",
                ),
                width=4,
                height=5,
            ),
            total(f"GPUDeviceSharedNum{HERE}"),
        ),
        number(
            Show(
                say("Idle GPUs", "空闲 GPU"),
                say("Devices of which no one holds anything.", "没有任何人占用的设备。"),
                width=4,
                height=5,
            ),
            total(NOBODYS),
        ),
        number(
            Show(
                say("Stranded memory", "搁浅显存"),
                say(
                    "Free memory of devices whose cores are all given away: no job that needs cores can use it.",
                    "算力已全部分配的设备上剩余的显存：需要算力的任务无法使用。",
                ),
                BYTES,
                4,
                5,
            ),
            total(STRANDED),
        ),
    ]


def _clusters(language: Language) -> list[Panel]:
    say = language.say
    name = say("Cluster", "集群")
    to_devices = link(language, say("Devices of this cluster", "该集群的设备"), "device", cluster=name)
    return [
        rows(
            Show(
                say("Clusters", "集群列表"),
                say(
                    "One row for each cluster; a click on its name opens its devices. Data of a cluster that is "
                    "unreachable has the age in the last column.",
                    "每行一个集群；点击名称可查看其设备。失联集群的数据时间以最后一列为准。",
                ),
                width=16,
                height=9,
            ),
            Labels({"cluster": name}, {"cluster": to_devices}),
            [
                Column(say("GPUs", "GPU 数量"), total(f"GPUDeviceCoreLimit{HERE}", "cluster", of="count")),
                Column(say("Cores", "算力"), once(f"ClusterGPUCorePercentage{HERE}", "cluster"), PERCENT, FILL, 100),
                Column(say("Memory", "显存"), once(f"ClusterGPUMemoryPercentage{HERE}", "cluster"), PERCENT, FILL, 100),
                Column(say("vGPUs", "vGPU 数量"), total(f"GPUDeviceSharedNum{HERE}", "cluster")),
                Column(say("Idle", "空闲"), total(NOBODYS, "cluster")),
                Column(
                    say("Silent for", "失联时长"),
                    once(f"seaway_cluster_last_seen_seconds{HERE}", "cluster"),
                    SECONDS,
                    SILENCE_S,
                ),
            ],
            most_first=say("GPUs", "GPU 数量"),
        ),
        ranking(
            Show(
                say("Fill of devices", "设备占用分布"),
                say(
                    "How many devices are how full, by cores. Many that are half full and none that is idle: jobs that "
                    "want a whole GPU wait although there is room in sum.",
                    "按算力统计不同占用程度的设备数。若大量半满而没有空闲设备，则需要整卡的任务仍须等待。",
                ),
                width=8,
                height=9,
            ),
            {
                say("idle", "空闲"): total(NOBODYS),
                say("less than half", "不足一半"): total(f"{HELD} * ({FULL} < bool 50)"),
                say("half and more", "一半以上"): total(f"({FULL} >= bool 50) * ({FULL} < bool 100)"),
                say("full", "占满"): total(f"{FULL} >= bool 100"),
            },
        ),
        courses(
            Show(
                say("Do clusters answer?", "集群是否响应"),
                say(
                    "Green while a cluster answers. After 15 s of silence it gets no new work, after a minute its jobs "
                    "are placed elsewhere (both can be set).",
                    "绿色表示集群正常响应。失联 15 秒后不再分配新任务，一分钟后其任务迁往别处（均可配置）。",
                ),
                SECONDS,
                24,
                5,
                SILENCE_S,
            ),
            once(f"seaway_cluster_last_seen_seconds{HERE}", "cluster"),
            "{{cluster}}",
        ),
    ]


def _courses(language: Language) -> list[Panel]:
    say = language.say
    allocated, used, limit = say("allocated", "已分配"), say("used", "已使用"), say("there is", "总量")
    colours = {allocated: ALLOCATED, used: USED, limit: IDLE}
    return [
        lines(
            Show(
                say("GPU cores allocated", "算力分配率"),
                say("Cluster by cluster.", "按集群。"),
                PERCENT,
                steps=FILL,
            ),
            {"{{cluster}}": once(f"ClusterGPUCorePercentage{HERE}", "cluster")},
        ),
        lines(
            Show(
                say("GPU memory allocated", "显存分配率"),
                say("Cluster by cluster.", "按集群。"),
                PERCENT,
                steps=FILL,
            ),
            {"{{cluster}}": once(f"ClusterGPUMemoryPercentage{HERE}", "cluster")},
        ),
        lines(
            Show(
                say("GPU memory: promised and used", "显存：承诺与实际使用"),
                say(
                    "Used is what exporters measured, where Seaway reads them. A wide gap between the two is memory "
                    "that was asked for and is not needed.",
                    "实际使用量来自监控导出器。两者差距大，说明申请了却没有用到。",
                ),
                BYTES,
            ),
            {
                limit: total(f"GPUDeviceMemoryLimit{HERE}"),
                allocated: total(f"GPUDeviceMemoryAllocated{HERE}"),
                used: total(f"GPUDeviceMemoryUsed{HERE}"),
            },
            colours=colours,
        ),
        lines(
            Show(
                say("GPU cores: promised and used", "算力：承诺与实际使用"),
                say(
                    "In whole GPUs. What is used beyond what is allocated runs on devices shared without limit.",
                    "以整卡为单位。超出分配量的使用来自不限算力的共享设备。",
                ),
            ),
            {
                limit: f"{total(f'GPUDeviceCoreLimit{HERE}')} / 100",
                allocated: f"{total(f'GPUDeviceCoreAllocated{HERE}')} / 100",
                used: f"{total(f'GPUDeviceCoreUsed{HERE}')} / 100",
            },
            colours=colours,
        ),
    ]
