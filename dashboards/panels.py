"""Panels of Seaway's dashboards, by type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_uppercase
from typing import TypeVar

from grafana_foundation_sdk.builders import (
    bargauge,
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as common_models
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import heatmap as heatmap_models
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from dashboards.looks import NUMBER, PLAIN, Steps, by_name, by_steps, fixed, thresholds

SOURCE = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
"""The Prometheus data source that the user selected."""

NEVER_SHOWN = ("Time", "__name__", "instance", "job", "zone")
"""Columns without information."""

NO_COLOURS: Mapping[str, str] = {}
"""No fixed colours: each series has its colour from a palette, by its name."""

Panel = Builder[models.Panel]
Made = TypeVar("Made", bargauge.Panel, heatmap.Panel, stat.Panel, statetimeline.Panel, table.Panel, timeseries.Panel)


@dataclass(frozen=True, slots=True)
class Show:
    """Presentation of a panel.

    Attributes
    ----------
    title, says
        Title and description.
    width, height
        Size in the grid's 24 columns, and in its rows.
    steps
        Thresholds.
    """

    title: str
    says: str
    unit: str = NUMBER
    width: int = 12
    height: int = 8
    steps: Steps = PLAIN
    decimals: int | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, with its query and presentation.

    Attributes
    ----------
    most
        Maximum of a bar; None for a number.
    """

    title: str
    query: str
    unit: str = NUMBER
    steps: Steps = PLAIN
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Link of a label to a dashboard, with variables set from labels."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Labels:
    """Label columns of a table, with their titles and links."""

    names: Mapping[str, str]
    links: Mapping[str, Link] = field(default_factory=dict)


def number(show: Show, query: str, *, nothing: str = "") -> Panel:
    """Return a panel with the present value, and its history in the background.

    Parameters
    ----------
    nothing
        Text if the query has no result; empty for Grafana's default.
    """
    panel = _dressed(stat.Panel(), show).with_target(_asked(query, ""))
    panel = panel.no_value(nothing) if nothing else panel
    return (
        panel.color_scheme(by_steps())
        .graph_mode(common_models.BigValueGraphMode.AREA)
        .color_mode(common_models.BigValueColorMode.VALUE)
        .reduce_options(_latest())
    )


def lines(
    show: Show, queries: Mapping[str, str], *, stacked: bool = False, colours: Mapping[str, str] = NO_COLOURS
) -> Panel:
    """Return a panel with time series.

    Parameters
    ----------
    queries
        Queries by legend, in which ``{{label}}`` is the value of a label.
    colours
        Colours of some series by their names; others have one from a palette.
    """
    panel = _dressed(timeseries.Panel(), show).color_scheme(by_name())
    panel = panel.line_width(1).fill_opacity(60 if stacked else 8).show_points(common_models.VisibilityMode.NEVER)
    if stacked:
        panel = panel.stacking(common.StackingConfig().mode(common_models.StackingMode.NORMAL))
    panel = panel.tooltip(
        common.VizTooltipOptions().mode(common_models.TooltipDisplayMode.MULTI).sort(common_models.SortOrder.DESCENDING)
    ).legend(
        common.VizLegendOptions()
        .display_mode(common_models.LegendDisplayMode.TABLE)
        .placement(common_models.LegendPlacement.BOTTOM)
        .show_legend(True)
        .calcs(["lastNotNull", "max"])
    )
    for letter, (legend, query) in zip(ascii_uppercase, queries.items(), strict=False):
        panel = panel.with_target(_asked(query, legend, letter))
    for name, colour in colours.items():
        panel = panel.override_by_name(name, fixed(colour))
    return panel.min(0)


def ranking(show: Show, queries: Mapping[str, str], *, most: float | None = None) -> Panel:
    """Return a panel with present values as bars."""
    panel = _dressed(bargauge.Panel(), show).color_scheme(by_steps()).min(0)
    for letter, (legend, query) in zip(ascii_uppercase, queries.items(), strict=False):
        panel = panel.with_target(_asked(query, legend, letter, instant=True))
    if most is not None:
        panel = panel.max(most)
    return (
        panel.orientation(common_models.VizOrientation.HORIZONTAL)
        .display_mode(common_models.BarGaugeDisplayMode.LCD)
        .reduce_options(_latest())
    )


def spread(show: Show, query: str) -> Panel:
    """Return a heat map of durations; the query's series are buckets by ``le``."""
    panel = _dressed(heatmap.Panel(), show)
    return (
        panel.with_target(_asked(query, "{{le}}", form=PromQueryFormat.HEATMAP))
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(show.unit))
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Blues").steps(32))
        .show_color_scale(True)
    )


def courses(show: Show, query: str, legend: str) -> Panel:
    """Return a panel with a band for each series, coloured by the threshold of its value over time."""
    return (
        _dressed(statetimeline.Panel(), show)
        .color_scheme(by_steps())
        .with_target(_asked(query, legend))
        .show_value(common_models.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(80)
    )


def rows(show: Show, labels: Labels, columns: Sequence[Column], *, most_first: str = "") -> Panel:
    """Return a table of present values, with the labels first.

    Parameters
    ----------
    most_first
        Title of the column that it is sorted by, in descending order.
    """
    panel = _dressed(table.Panel(), show).color_scheme(by_steps()).filterable(True)
    titles = dict(labels.names)
    for letter, column in zip(ascii_uppercase, columns, strict=False):
        panel = panel.with_target(_asked(column.query, "", letter, instant=True, form=PromQueryFormat.TABLE))
        titles[f"Value #{letter}"] = column.title
        panel = panel.override_by_name(column.title, _cell(column))
    for label, link in labels.links.items():
        clicked = [{"title": link.title, "url": link.url}]
        panel = panel.override_by_name(labels.names[label], [models.DynamicConfigValue("links", clicked)])
    order = {name: at for at, name in enumerate(titles)}
    arranged = {
        "excludeByName": dict.fromkeys(NEVER_SHOWN, True),
        "indexByName": order,
        "renameByName": titles,
    }
    panel = panel.transformations(
        [
            models.DataTransformerConfig("merge", options={}),
            models.DataTransformerConfig("organize", options=arranged),
        ]
    )
    return panel.sort_by([common.TableSortByFieldState().display_name(most_first).desc(True)]) if most_first else panel


def _cell(column: Column) -> list[models.DynamicConfigValue]:
    """Return the presentation of a column's cells."""
    steps = thresholds(column.steps).build()
    look = [models.DynamicConfigValue("unit", column.unit), models.DynamicConfigValue("thresholds", steps)]
    if column.most is not None:
        look += [
            models.DynamicConfigValue("min", 0),
            models.DynamicConfigValue("max", column.most),
            models.DynamicConfigValue("custom.cellOptions", {"type": "gauge", "mode": "basic"}),
        ]
    return look


def _dressed(panel: Made, show: Show) -> Made:
    panel = panel.title(show.title).description(show.says).unit(show.unit).datasource(SOURCE)
    panel = panel.thresholds(thresholds(show.steps)).span(show.width).height(show.height)
    return panel if show.decimals is None else panel.decimals(show.decimals)


def _asked(
    query: str,
    legend: str,
    letter: str = "A",
    *,
    instant: bool = False,
    form: PromQueryFormat = PromQueryFormat.TIME_SERIES,
) -> prometheus.Dataquery:
    asked = prometheus.Dataquery().expr(query).ref_id(letter).format(form).datasource(SOURCE)
    asked = asked.legend_format(legend) if legend else asked
    return asked.instant() if instant else asked.range()


def _latest() -> common.ReduceDataOptions:
    return common.ReduceDataOptions().calcs(["lastNotNull"]).values(False)


def heading(title: str) -> builders.Row:
    """Return the heading of a section."""
    return builders.Row(title)
