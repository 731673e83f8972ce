"""Links as a matrix and as a graph."""

from __future__ import annotations

from itertools import combinations
from math import hypot

import pytest

from seaway.web.fragment import written
from seaway.web.link_figures import FIGURES
from seaway.web.pages.network.network import drawn, rows_of
from seaway.web.parts.link_graph import BOX_HEIGHT, BOX_WIDTH, graph, ring_of, scale_for
from seaway.web.parts.link_map import LEAST, SIZE, places_of
from seaway.web.words import Words
from seaway.wire.facts import LocationOut
from seaway.wire.fleet import ClusterOut, GatewayOut
from seaway.wire.job_out import RingLinkOut
from seaway.wire.links import KnownLinkOut, LinkMatrix

MS = 1_000_000
GATEWAYS = [
    GatewayOut(name="gw-1", address="", clusters=["one"], site=""),
    GatewayOut(name="gw-2", address="", clusters=["two"], site=""),
    GatewayOut(name="<b>office</b>", address="", clusters=[], site="office"),
]
MATRIX = LinkMatrix.model_validate(
    {
        "figure": "latency",
        "gateways": [each.model_dump() for each in GATEWAYS],
        "values": [[None, 5 * MS, None], [5 * MS, None, None], [None, None, None]],
        "states": [[None, "measured", "unknown"], ["stale", None, "measured"], [None, None, None]],
        "bounds": [],
    }
)


def link(**fields: object) -> KnownLinkOut:
    """Make a link."""
    usual = {"source": "gw-1", "target": "gw-2", "latency_ns": MS, "jitter_ns": 1, "loss_ppm": 0, "bandwidth_mbps": 10}
    more = {"used_mbps": 0, "traffic_mbps": 0, "reserved_mbps": 0, "free_mbps": 10, "path": "", "state": "measured"}
    return KnownLinkOut.model_validate(usual | more | {"age_s": 1.0, "raw": None, "smoothed": None} | fields)


def test_stale_unknown_dead_and_missing_links_are_distinguished() -> None:
    """Each has a look of its own, and another text where there is no figure."""
    rows = rows_of(MATRIX, lambda _: True, Words())
    looks = [[(cell.look, cell.text) for cell in row.cells] for row in rows.rows]
    assert looks[0] == [("", ""), ("h0", "5"), ("unknown", "?")]
    assert looks[1] == [("h0 stale", "5"), ("", ""), ("dead", "dead")]
    assert looks[2] == [("", "")] * 3


def test_a_loss_too_small_to_see_is_an_upper_bound() -> None:
    """The matrix and the graph write it as less than one probe of the window, coloured as no loss."""
    values = [[None, 0, None], [20_000, None, None], [None, None, None]]
    bounds = [[None, 6_667, None], [None, None, None], [None, None, None]]
    matrix = MATRIX.model_copy(update={"figure": "loss", "values": values, "bounds": bounds})
    looks = [[(cell.look, cell.text) for cell in row.cells] for row in rows_of(matrix, lambda _: True, Words()).rows]
    assert (looks[0][1], looks[1][0]) == (("h0", "<0.67"), ("h3 stale", "2"))
    links = [link(loss_bound_ppm=6_667), link(loss_ppm=20_000, loss_bound_ppm=None)]
    ends = {each.name: each for each in GATEWAYS}
    arcs = graph(links, ends, scale_for(links, FIGURES["loss"]), "", Words())["series"][0]["links"]
    assert "<b>&lt; 0.67 %</b>" in arcs[0]["tip"]
    assert "<b>2 %</b>" in arcs[1]["tip"]


def test_a_choice_leaves_both_directions_of_its_links() -> None:
    """A gateway that is chosen has a row for what leads from it, and one for what leads to it."""
    rows = rows_of(MATRIX, lambda gateway: gateway.name == "gw-1", Words())
    assert [(row.name, row.outward) for row in rows.rows] == [("gw-1", True), ("gw-1", False)]
    assert (rows.rows[1].cells[1].source, rows.rows[1].cells[1].target) == ("gw-2", "gw-1")


def test_a_matrix_is_written_once_for_all_who_look_at_it() -> None:
    """The same answer looked at in the same way is the same text; names are escaped in it."""
    once = drawn(MATRIX, (), lambda _: True, Words())
    assert drawn(MATRIX, (), lambda _: True, Words()) is once
    assert drawn(MATRIX, ("gw-1",), lambda gateway: gateway.name == "gw-1", Words()) is not once
    assert drawn(MATRIX.model_copy(), (), lambda _: True, Words()) is not once
    assert "<b>office" not in once.html
    assert "&lt;b&gt;office" in once.html


def test_lines_of_a_graph_say_how_much_is_known() -> None:
    """Solid, dashed for stale, dotted for unknown; dead links have a colour that no figure has."""
    links = [link(), link(state="stale"), link(state="unknown", latency_ns=None, jitter_ns=None, loss_ppm=None),
             link(latency_ns=None, loss_ppm=1_000_000)]  # fmt: skip
    ends = {each.name: each for each in GATEWAYS}
    arcs = graph(links, ends, scale_for(links, FIGURES["latency"]), "", Words())["series"][0]["links"]
    assert [each["lineStyle"]["type"] for each in arcs] == ["solid", "dashed", "dotted", "dotted"]
    assert [each["lineStyle"]["color"] for each in arcs] == [
        "var(--heat-0)",
        "var(--heat-0)",
        "var(--quiet)",
        "var(--heat-dead)",
    ]


def test_a_line_says_all_figures_and_a_lost_cluster_marks_its_gateway() -> None:
    """The tip of a link has every quantity; names are whole, with the state of a cluster that does not answer."""
    ends = {each.name: each for each in GATEWAYS}
    lost = {GATEWAYS[0].name: "lost"}
    series = graph([link()], ends, scale_for([link()], FIGURES["loss"]), "", Words(), lost)["series"][0]
    tip = series["links"][0]["tip"]
    assert all(f"{each.title}: " in tip for each in FIGURES.values())
    assert tip.count("<b>") == 1
    labels = {each["name"]: each["label"].get("formatter", each["name"]) for each in series["data"]}
    assert labels[GATEWAYS[0].name] == f"{GATEWAYS[0].name} (lost)"
    assert all("overflow" not in each["label"] for each in series["data"])
    html = drawn(MATRIX, (), lambda _: True, Words(), lost).html
    assert html.count("matrix-lost") == 2


def test_names_in_tips_are_escaped_and_the_chosen_gateway_is_in_the_middle() -> None:
    """Tips are HTML; others stand around on a circle."""
    links = [link(source="<b>office</b>"), link()]
    ends = {each.name: each for each in GATEWAYS}
    series = graph(links, ends, scale_for(links, FIGURES["loss"]), "gw-2", Words())["series"][0]
    assert all("<b>office" not in each["tip"] for each in (*series["links"], *series["data"]))
    assert [(each["x"], each["y"]) for each in series["data"] if each["name"] == "gw-2"] == [(0, 0)]


def located(**places: tuple[float, float] | None) -> tuple[dict[str, GatewayOut], list[ClusterOut]]:
    """Make gateways, each with a cluster at a latitude and longitude, or of a user site."""
    ends = {
        name: GatewayOut(name=name, address="", clusters=[f"c-{name}"] if where else [], site="" if where else name)
        for name, where in places.items()
    }
    clusters = [
        ClusterOut.model_construct(name=f"c-{name}", location=LocationOut(latitude=where[0], longitude=where[1]))
        for name, where in places.items()
        if where
    ]
    return ends, clusters


def test_a_map_places_gateways_by_the_coordinates_of_their_clusters() -> None:
    """North is up, and east is right, also across the date line. Others are below. The same place has room for two."""
    ends, clusters = located(berlin=(52.5, 13.4), madrid=(40.4, -3.7), office=None)
    places = places_of(ends, ends, clusters)
    (east, north), (west, south), (_, below) = (places[each] for each in ("berlin", "madrid", "office"))
    assert (east > west, north < south < below) == (True, True)
    ends, clusters = located(hamburg=(53.55, 9.99), berlin=(52.52, 13.4), barcelona=(41.39, 2.17))
    places = places_of(ends, ends, clusters)
    assert sorted(places, key=lambda name: places[name][0]) == ["barcelona", "hamburg", "berlin"]
    ends, clusters = located(fiji=(-18.0, 178.0), samoa=(-14.0, -172.0))
    across = places_of(ends, ends, clusters)
    assert 0 < across["samoa"][0] - across["fiji"][0] <= SIZE
    ends, clusters = located(a=(52.5, 13.4), b=(52.5, 13.4), c=(52.5, 13.4), d=(40.4, -3.7))
    near = list(places_of(ends, ends, clusters).values())
    assert all(hypot(x - to_x, y - to_y) >= LEAST - 1e-6 for (x, y), (to_x, to_y) in combinations(near, 2))
    ends, clusters = located(office=None)
    assert places_of(ends, ends, clusters) == {}


@pytest.mark.parametrize("count", range(2, 9))
def test_a_ring_is_drawn_with_clusters_apart_and_each_link_with_its_figures(count: int) -> None:
    """Boxes do not overlap and are within the picture; a link leads to its page, and an unknown one has a dash."""
    parts = [
        RingLinkOut(cluster=f"c{at}", next=f"c{(at + 1) % count}", replicas=2, link=link(latency_ns=(at + 1) * MS))
        for at in range(count)
    ]
    parts[-1] = parts[-1].model_copy(update={"link": None})
    drawing = ring_of(parts)
    for one in drawing.arcs:
        assert BOX_WIDTH / 2 <= one.x <= drawing.width - BOX_WIDTH / 2
        assert BOX_HEIGHT / 2 <= one.y <= drawing.height - BOX_HEIGHT / 2
        for other in drawing.arcs:
            apart = abs(one.x - other.x) >= BOX_WIDTH or abs(one.y - other.y) >= BOX_HEIGHT
            assert one is other or apart
    text = written("job_ring", Words(), ring=drawing, lost=lambda each: str(each.loss_ppm))
    assert text.count('href="/network/gw-1/gw-2"') == count - 1
    assert all(f">{at + 1} ms<" in text for at in range(count - 1))
    assert "ring-none" in text
    assert text.count("rank 0") == 1
