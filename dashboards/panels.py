"""Panels of the kinds that Seaway's dashboards have, each from what it shows and what it asks."""

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
"""The Prometheus that whoever looks has chosen."""

NEVER_SHOWN = ("Time", "__name__", "instance", "job", "zone")
"""Columns that say nothing."""

NO_COLOURS: Mapping[str, str] = {}
"""Each series has its own, by its name, of a palette."""

Panel = Builder[models.Panel]
Made = TypeVar("Made", bargauge.Panel, heatmap.Panel, stat.Panel, statetimeline.Panel, table.Panel, timeseries.Panel)


@dataclass(frozen=True, slots=True)
class Show:
    """How a panel presents itself.

    Attributes
    ----------
    title, says
        What it is called, and what it means to whoever looks at it.
    width, height
        In the grid's 24 columns, and its rows.
    steps
        Which value has which colour.
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
    """A column of a table: what is asked for it, and how it is shown.

    Attributes
    ----------
    most
        With one it is a bar, which is full then.
    """

    title: str
    query: str
    unit: str = NUMBER
    steps: Steps = PLAIN
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """Where a click on a label leads: a dashboard, with variables by what labels say."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Labels:
    """The columns of a table that are labels: what each is called, and where a click on it leads."""

    names: Mapping[str, str]
    links: Mapping[str, Link] = field(default_factory=dict)


def number(show: Show, query: str, *, nothing: str = "") -> Panel:
    """Show one figure, as it is now, and its course behind it.

    Parameters
    ----------
    nothing
        What stands there where the query has no answer; empty for Grafana's own words.
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
    """Show courses.

    Parameters
    ----------
    queries
        By the legend, in which ``{{label}}`` stands for what a label says.
    colours
        Of some series by their names; all others have one of a palette.
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
    """Show figures of several things beside each other as bars, as they are now."""
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
    """Show how times are spread, moment by moment; the query's series are buckets by ``le``."""
    panel = _dressed(heatmap.Panel(), show)
    return (
        panel.with_target(_asked(query, "{{le}}", form=PromQueryFormat.HEATMAP))
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(show.unit))
        .color(heatmap.HeatmapColorOptions().mode(heatmap_models.HeatmapColorMode.SCHEME).scheme("Blues").steps(32))
        .show_color_scale(True)
    )


def courses(show: Show, query: str, legend: str) -> Panel:
    """Show for each thing in which range its figure was, as a band of colours."""
    return (
        _dressed(statetimeline.Panel(), show)
        .color_scheme(by_steps())
        .with_target(_asked(query, legend))
        .show_value(common_models.VisibilityMode.NEVER)
        .merge_values(True)
        .fill_opacity(80)
    )


def rows(show: Show, labels: Labels, columns: Sequence[Column], *, most_first: str = "") -> Panel:
    """Show a table of things as they are now, the labels that tell them apart first.

    Parameters
    ----------
    most_first
        Title of the column that it is sorted by.
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
    """Return how the cells of a column look."""
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
    """Make the line above panels that belong together."""
    return builders.Row(title)
