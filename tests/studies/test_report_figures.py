"""Figures of reproductions, drawn for papers."""

import math

import numpy as np
import pytest

from tacit_studies import Figure, Panel, Series
from tacit_studies.report.figures import colour_numbers, draw_figure
from tacit_studies.report.maps import contours, map_scale

X = [1.0, 10.0, 100.0]
SERIES = [
    Series("GAP, corrected", X, [3.0, 2.0, 1.0], [2.5, 1.5, 0.5], [3.5, 2.5, 1.5]),
    Series("GAP, published", X, [4.0, 3.0, math.nan], dashed=True),
]
# The value is the product of both coordinates, so a contour is a hyperbola.
PANEL = Panel(
    "p",
    X,
    [1.0, 2.0, 4.0],
    [[x * y for y in (1.0, 2.0, 4.0)] for x in X],
    Series("best", X, [1.0, 2.0, 3.0]),
)
FIGURES = {
    "map": Figure(
        "t", "x", "y", [], x_log=True, kind="map", panels=[PANEL, PANEL], value_label="z"
    ),
    "plain map": Figure("t", "x", "y", [], kind="map", panels=[PANEL] * 4, value_label="z"),
    "line": Figure("t", "x", "y", SERIES),
    "log points": Figure("t", "x", "y", SERIES, x_log=True, y_log=True, kind="points"),
    "bar": Figure(
        "t",
        "",
        "y",
        [Series(s.label, [0.0, 1.0, 2.0], s.y, s.low, s.high) for s in SERIES],
        kind="bar",
        ticks=["a", "b", "c"],
    ),
    "long line": Figure("t", "x", "y", [Series("a", [float(k) for k in range(500)], [0.0] * 500)]),
    "empty": Figure("t", "x", "y", []),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_kind_is_drawn_as_svg_and_pdf(name, tmp_path):
    svg, pdf = draw_figure(FIGURES[name], tmp_path / "some" / "figure-1")
    assert (svg.name, pdf.name) == ("figure-1.svg", "figure-1.pdf")
    assert b"<svg" in svg.read_bytes()
    assert pdf.read_bytes().startswith(b"%PDF")


def test_the_same_data_give_the_same_bytes(tmp_path):
    figure = FIGURES["log points"]
    one, two = (draw_figure(figure, tmp_path / name) for name in ("one", "two"))
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_other_data_give_other_bytes(tmp_path):
    other = Figure("t", "x", "y", [Series("GAP, corrected", X, [3.0, 2.0, 1.1])])
    one, two = (
        draw_figure(figure, tmp_path / name)
        for name, figure in (("one", FIGURES["line"]), ("two", other))
    )
    assert all(a.read_bytes() != b.read_bytes() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["GAP, corrected", "GAP, published*"], [0, 0]),
        (["GAP", "GAP, published*"], [0, 0]),
        (["a, x", "a, y", "a, claimed*"], [0, 1, 2]),
        (["slope 1/2*", "measured"], [0, 1]),
        (["a", "b", "b, paper*", "a, paper*"], [0, 1, 1, 0]),
    ],
)
def test_a_dashed_line_has_the_colour_of_its_companion(labels, numbers):
    series = [Series(label.rstrip("*"), [], [], dashed=label.endswith("*")) for label in labels]
    assert colour_numbers(series) == numbers


def test_contours_run_where_the_value_is():
    scale = map_scale(FIGURES["map"])
    assert (scale.low, scale.high) == (1.0, 400.0)
    assert scale.levels == [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]
    found = contours(PANEL, [20.0], x_log=True)
    points = np.concatenate(found[0].lines)
    # Interpolated between logarithms along x, exact there; along y the grid is coarse.
    assert points[:, 0] * points[:, 1] == pytest.approx(20.0, rel=0.1)
    assert np.ptp(points[:, 0]) > 10
    assert contours(PANEL, [500.0], x_log=True) == []
