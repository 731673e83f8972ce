"""Dashboard of vGPUs: allocation and use by container and device."""

from __future__ import annotations

from dashboards.extremes import VGPU, most
from dashboards.frame import Frame, Section, Variable, cluster, device, node
from dashboards.language import Language
from dashboards.looks import BYTES, FILL, PERCENT
from dashboards.once import once, total
from dashboards.panels import Column, Labels, Panel, Show, lines, number, ranking, rows

HERE = '{cluster=~"$cluster",nodeid=~"$node",deviceuuid=~"$device",namespace=~"$namespace"}'
NAMED = "{{namespace}}/{{pod}} {{container}} ({{cluster}}/{{nodeid}} #{{deviceidx}})"


def vgpu(language: Language) -> Frame:
    """Return the dashboard of vGPUs."""
    say = language.say
    series = 'vGPUMemoryAllocated{cluster=~"$cluster",nodeid=~"$node",deviceuuid=~"$device"}'
    return Frame(
        "vgpu",
        "vGPU",
        say(
            "Container by container: what it holds of which device, and what it uses of that. Pods of others are named "
            "to Prometheus only by an operator's token.",
            "逐容器查看：持有哪个设备的多少份额、实际用了多少。只有运维角色的令牌才能看到他人 Pod 的名称。",
        ),
        [
            cluster(language),
            node(language),
            device(language),
            Variable("namespace", say("Namespace", "命名空间"), series, "namespace"),
        ],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("vGPUs", "vGPU 列表"), _vgpus(language)),
            Section(say("Course", "变化趋势"), _courses(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(
                "vGPU",
                say(
                    "Shares of devices, one for each container and device.", "设备份额数，每个容器在每个设备上计一个。"
                ),
                width=6,
                height=5,
            ),
            total(f"vGPUMemoryAllocated{HERE}", of="count"),
        ),
        number(
            Show(
                say("Pods", "Pod 数"), say("That hold a share of a device.", "持有设备份额的 Pod。"), width=6, height=5
            ),
            f"count(count by (cluster, namespace, pod) (vGPUMemoryAllocated{HERE}))",
        ),
        number(
            Show(say("Memory held", "占用显存"), say("By all of them together.", "合计。"), BYTES, 6, 5),
            total(f"vGPUMemoryAllocated{HERE}"),
        ),
        number(
            Show(
                say("Cores held", "占用算力"),
                say("By all of them together, in whole GPUs.", "合计，以整卡为单位。"),
                width=6,
                height=5,
                decimals=2,
            ),
            f"{total(f'vGPUCorePercentage{HERE}')} / 100",
        ),
    ]


def _vgpus(language: Language) -> list[Panel]:
    say = language.say
    return [
        rows(
            Show(
                say("vGPUs", "vGPU"),
                say(
                    "One row for each container and device. Until the pod of a job is seen, its replica stands for it.",
                    "每个容器与设备一行。在看到任务的 Pod 之前，由其副本名代替。",
                ),
                width=24,
                height=11,
            ),
            Labels(
                {
                    "namespace": say("Namespace", "命名空间"),
                    "pod": "Pod",
                    "container": say("Container", "容器"),
                    "cluster": say("Cluster", "集群"),
                    "nodeid": say("Node", "节点"),
                    "deviceidx": say("Index", "序号"),
                    "deviceuuid": say("Device", "设备"),
                }
            ),
            [
                Column(say("Cores", "算力"), once(f"vGPUCorePercentage{HERE}", VGPU), PERCENT, FILL, 100),
                Column(say("Memory share", "显存占比"), once(f"vGPUMemoryPercentage{HERE}", VGPU), PERCENT, FILL, 100),
                Column(say("Memory held", "占用显存"), once(f"vGPUMemoryAllocated{HERE}", VGPU), BYTES),
            ],
            most_first=say("Memory held", "占用显存"),
        ),
    ]


def _courses(language: Language) -> list[Panel]:
    say = language.say
    top = say("The 20 with most of now.", "显示当前最高的 20 个。")
    measured = say("As measured, where a user does.", "测量值（如有采集）。")
    return [
        lines(
            Show(say("Memory held", "占用显存"), top, BYTES), {NAMED: most(f"vGPUMemoryAllocated{HERE}", HERE, VGPU)}
        ),
        lines(
            Show(say("Memory used", "使用显存"), f"{measured} {top}", BYTES),
            {NAMED: most(f"vGPUMemoryUsed{HERE}", HERE, VGPU)},
        ),
        lines(
            Show(say("Cores held", "占用算力"), f"{say('Of its device.', '占所在设备的比例。')} {top}", PERCENT),
            {NAMED: most(f"vGPUCorePercentage{HERE}", HERE, VGPU)},
        ),
        lines(
            Show(say("Cores used", "使用算力"), f"{measured} {top}", PERCENT),
            {NAMED: most(f"vGPUCoreUsed{HERE}", HERE, VGPU)},
        ),
        lines(
            Show(
                say("Memory held by namespace", "各命名空间占用显存"),
                say("What the pods of each namespace hold.", "各命名空间的 Pod 所占显存。"),
                BYTES,
            ),
            {"{{namespace}}": total(f"vGPUPodsDeviceAllocated{HERE}", "namespace")},
            stacked=True,
        ),
        ranking(
            Show(
                say("Least used allocations", "利用率最低的占用"),
                say(
                    "Share of its memory that a container uses. A container with a low share keeps others waiting.",
                    "容器对其占用显存的使用比例。只用十分之一的任务在让他人等待。",
                ),
                PERCENT,
            ),
            {NAMED: f"bottomk(10, {once(f'100 * vGPUMemoryUsed{HERE} / vGPUMemoryAllocated{HERE}', VGPU)})"},
            most=100,
        ),
    ]
