"""Dashboard of devices: allocation and use of each GPU."""

from __future__ import annotations

from dashboards.extremes import DEVICE, MOST, most
from dashboards.frame import Frame, Section, cluster, device, link, node
from dashboards.language import Language
from dashboards.looks import BYTES, FILL, PERCENT, SECONDS, SOME
from dashboards.once import once, total
from dashboards.panels import Column, Labels, Panel, Show, courses, lines, number, ranking, rows

HERE = '{cluster=~"$cluster",nodeid=~"$node",deviceuuid=~"$device"}'
NAMED = "{{cluster}}/{{nodeid}} #{{deviceidx}}"


def device_dashboard(language: Language) -> Frame:
    """Return the dashboard of devices."""
    say = language.say
    return Frame(
        "device",
        say("GPU devices", "GPU 设备"),
        say(
            "GPU by GPU: how many hold it, how much of it is given away, and how much of that is used.",
            "逐卡查看：有多少持有者、分配了多少、实际用了多少。",
        ),
        [cluster(language), node(language), device(language)],
        [
            Section(say("Now", "当前"), _now(language)),
            Section(say("Devices", "设备列表"), _devices(language)),
            Section(say("Allocated", "分配情况"), _allocated(language)),
            Section(say("Used, as measured", "实际使用（测量值）"), _used(language)),
        ],
    )


def _now(language: Language) -> list[Panel]:
    say = language.say
    return [
        number(
            Show(say("Devices", "设备数"), say("Those chosen above.", "上方所选范围内的设备。"), width=4, height=5),
            total(f"GPUDeviceCoreLimit{HERE}", of="count"),
        ),
        number(
            Show(
                say("Cores allocated", "算力分配率"),
                say("Of all of them together.", "所选设备合计。"),
                PERCENT,
                4,
                5,
                FILL,
                1,
            ),
            f"100 * {total(f'GPUDeviceCoreAllocated{HERE}')} / {total(f'GPUDeviceCoreLimit{HERE}')}",
        ),
        number(
            Show(
                say("Memory allocated", "显存分配率"),
                say("Of all of them together.", "所选设备合计。"),
                PERCENT,
                4,
                5,
                FILL,
                1,
            ),
            f"100 * {total(f'GPUDeviceMemoryAllocated{HERE}')} / {total(f'GPUDeviceMemoryLimit{HERE}')}",
        ),
        number(
            Show(
                say("Holders of a device", "单卡持有者"),
                say(
                    "The most that share one device. The vGPU layer sets a limit to that.",
                    "共享同一设备的最多持有者数，其上限由 vGPU 层决定。",
                ),
                width=4,
                height=5,
            ),
            f"max(GPUDeviceSharedNum{HERE})",
        ),
        number(
            Show(
                say("Devices over their limit", "超额设备"),
                say(
                    "Devices with more allocations than capacity: another scheduler also allocates them.",
                    "占用超过总量的设备：说明有 Seaway 以外的组件在分配它们。",
                ),
                width=4,
                height=5,
                steps=SOME,
            ),
            total(f"GPUDeviceMemoryAllocated{HERE} > bool GPUDeviceMemoryLimit{HERE}"),
        ),
        number(
            Show(
                say("Age of what is measured", "测量数据时长"),
                say(
                    "The oldest figure of use that is shown. What is older than three periods is not shown at all.",
                    "所示使用数据中最旧的一个。超过三个采集周期的数据不再显示。",
                ),
                SECONDS,
                4,
                5,
            ),
            f"max(GPUDeviceUsedAge{HERE})",
        ),
    ]


def _devices(language: Language) -> list[Panel]:
    say = language.say
    in_cluster, on_node, uuid = say("Cluster", "集群"), say("Node", "节点"), say("Device", "设备")
    to_vgpus = link(
        language, say("vGPUs of this device", "该设备的 vGPU"), "vgpu", cluster=in_cluster, node=on_node, device=uuid
    )
    to_node = link(language, say("Only this node", "仅看该节点"), "device", cluster=in_cluster, node=on_node)
    return [
        rows(
            Show(
                say("Devices", "设备"),
                say(
                    "One row for each device; a click on one leads to the vGPUs on it.",
                    "每行一个设备；点击设备可查看其上的 vGPU。",
                ),
                width=24,
                height=11,
            ),
            Labels(
                {"cluster": in_cluster, "nodeid": on_node, "deviceidx": say("Index", "序号"), "deviceuuid": uuid},
                {"deviceuuid": to_vgpus, "nodeid": to_node},
            ),
            [
                Column(
                    say("Cores", "算力"),
                    once(f"100 * GPUDeviceCoreAllocated{HERE} / GPUDeviceCoreLimit{HERE}", DEVICE),
                    PERCENT,
                    FILL,
                    100,
                ),
                Column(
                    say("Memory", "显存"),
                    once(f"100 * GPUDeviceMemoryAllocated{HERE} / GPUDeviceMemoryLimit{HERE}", DEVICE),
                    PERCENT,
                    FILL,
                    100,
                ),
                Column(
                    say("Memory free", "剩余显存"),
                    once(f"GPUDeviceMemoryLimit{HERE} - GPUDeviceMemoryAllocated{HERE}", DEVICE),
                    BYTES,
                ),
                Column(say("Memory there is", "显存总量"), once(f"GPUDeviceMemoryLimit{HERE}", DEVICE), BYTES),
                Column(say("Holder", "持有者"), once(f"GPUDeviceSharedNum{HERE}", DEVICE)),
            ],
            most_first=say("Holder", "持有者"),
        ),
    ]


def _allocated(language: Language) -> list[Panel]:
    say = language.say
    top = say("The 20 with most of now.", "显示当前最高的 20 个。")
    return [
        lines(
            Show(
                say("Cores allocated", "已分配算力"),
                f"{say('Percent points of a whole device.', '整卡的百分点。')} {top}",
                PERCENT,
            ),
            {NAMED: most(f"GPUDeviceCoreAllocated{HERE}", HERE, DEVICE)},
        ),
        lines(
            Show(say("Memory allocated", "已分配显存"), top, BYTES),
            {NAMED: most(f"GPUDeviceMemoryAllocated{HERE}", HERE, DEVICE)},
        ),
        ranking(
            Show(
                say("Nodes by memory allocated", "节点显存分配率"),
                say("The 20 fullest nodes.", "占用最高的 20 个节点。"),
                PERCENT,
                steps=FILL,
                height=10,
            ),
            {
                "{{cluster}}/{{nodeid}}": f"topk({MOST},"
                f" 100 * {total(f'GPUDeviceMemoryAllocated{HERE}', 'cluster, nodeid')}"
                f" / {total(f'GPUDeviceMemoryLimit{HERE}', 'cluster, nodeid')})"
            },
            most=100,
        ),
        courses(
            Show(
                say("How full devices were", "设备占用历史"),
                say(
                    "By cores: blue is idle or nearly, green well used, orange and red full. The 20 fullest of now.",
                    "按算力：蓝色为空闲，绿色为利用良好，橙色与红色为占满。显示当前最满的 20 个。",
                ),
                PERCENT,
                height=10,
                steps=FILL,
            ),
            most(f"100 * GPUDeviceCoreAllocated{HERE} / GPUDeviceCoreLimit{HERE}", HERE, DEVICE),
            NAMED,
        ),
    ]


def _used(language: Language) -> list[Panel]:
    say = language.say
    top = say(
        "What exporters measured, not what was promised; nothing where none is read. The 20 with most of now.",
        "来自导出器的测量值，而非承诺值；未采集时无数据。显示当前最高的 20 个。",
    )
    return [
        lines(
            Show(say("Cores used", "已使用算力"), top, PERCENT),
            {NAMED: most(f"GPUDeviceCoreUsed{HERE}", HERE, DEVICE)},
        ),
        lines(
            Show(say("Memory used", "已使用显存"), top, BYTES),
            {NAMED: most(f"GPUDeviceMemoryUsed{HERE}", HERE, DEVICE)},
        ),
        ranking(
            Show(
                say("Promised and not used", "承诺而未使用的显存"),
                say(
                    "Memory that a user holds and no one touches, device by device: where jobs ask for too much.",
                    "被占有却无人使用的显存：说明任务申请过多。",
                ),
                BYTES,
                24,
                8,
            ),
            {NAMED: f"topk(10, {once(f'GPUDeviceMemoryAllocated{HERE} - GPUDeviceMemoryUsed{HERE}', DEVICE)})"},
        ),
    ]
