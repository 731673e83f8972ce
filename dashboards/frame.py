"""Common parts of all dashboards: data source, variables, and links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.models import dashboard as models

from dashboards.language import Language
from dashboards.panels import SOURCE, Link, Panel, heading

LABEL_VALUES = 1
"""Type of a variable's query, as numbered by Grafana's editor for Prometheus."""

REFRESH = "30s"


@dataclass(frozen=True, slots=True)
class Section:
    """Panels with a common heading."""

    title: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True)
class Variable:
    """A template variable: the values of a label of some series.

    Attributes
    ----------
    name
        Name in queries, ``$name``.
    label
        Label of the metrics.
    """

    name: str
    title: str
    series: str
    label: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A dashboard before it is built.

    Attributes
    ----------
    name
        Name in links and files.
    """

    name: str
    title: str
    says: str
    variables: Sequence[Variable]
    sections: Sequence[Section]


def cluster(language: Language) -> Variable:
    """Return the variable for clusters."""
    return Variable("cluster", language.say("Cluster", "集群"), "GPUDeviceCoreLimit", "cluster")


def node(language: Language) -> Variable:
    """Return the variable for nodes of the selected clusters."""
    return Variable("node", language.say("Node", "节点"), 'GPUDeviceCoreLimit{cluster=~"$cluster"}', "nodeid")


def device(language: Language) -> Variable:
    """Return the variable for devices of the selected nodes."""
    series = 'GPUDeviceCoreLimit{cluster=~"$cluster",nodeid=~"$node"}'
    return Variable("device", language.say("Device", "设备"), series, "deviceuuid")


def link(language: Language, title: str, to: str, **labels: str) -> Link:
    """Return a link from a table row to a dashboard, with variables set from columns of the row, by their titles."""
    chosen = "".join(f'&var-{name}=${{__data.fields["{column}"]}}' for name, column in labels.items())
    return Link(title, f"/d/{language.uid(to)}?${{__url_time_range}}&${{datasource:queryparam}}{chosen}")


def build(frame: Frame, language: Language) -> models.Dashboard:
    """Build a dashboard."""
    made = (
        builders.Dashboard(frame.title)
        .uid(language.uid(frame.name))
        .description(frame.says)
        .tags(["seaway", f"seaway-{language.value}"])
        .editable()
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh(REFRESH)
        .timezone("browser")
        .with_variable(
            builders.DatasourceVariable("datasource").label(language.say("Data source", "数据源")).type("prometheus")
        )
        .link(
            builders.DashboardLink(language.say("Dashboards", "仪表盘"))
            .type(models.DashboardLinkType.DASHBOARDS)
            .tags([f"seaway-{language.value}"])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )
    for variable in frame.variables:
        made = made.with_variable(_chosen(variable, language))
    for section in frame.sections:
        made = made.with_row(heading(section.title))
        for panel in section.panels:
            made = made.with_panel(panel)
    return _numbered(made.build())


def _chosen(variable: Variable, language: Language) -> builders.QueryVariable:
    asked: dict[str, object] = {
        "qryType": LABEL_VALUES,
        "query": f"label_values({variable.series},{variable.label})",
        "refId": "PrometheusVariableQueryEditor-VariableQuery",
    }
    everything = models.VariableOption(True, language.say("All", "全部"), "$__all")
    return (
        builders.QueryVariable(variable.name)
        .label(variable.title)
        .datasource(SOURCE)
        .query(asked)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.NATURAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(everything)
    )


def _numbered(made: models.Dashboard) -> models.Dashboard:
    """Set the IDs of panels, so that links to them remain valid across versions."""
    for number, panel in enumerate(made.panels or (), start=1):
        panel.id_val = number
    return made
