"""Pictures are what they say, and not blank."""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from lambda_objectives.tools.plots import (
    costs_and_bounds,
    learning_curve,
    multipliers,
    save_constraints,
    save_learning_curve,
)

CURVES = {"train": [0.5, 0.6, 0.7, 0.8], "valid": [0.5, 0.65, 0.6, 0.55]}


def test_learning_curve():
    given = Figure().add_subplot()
    axes = learning_curve(given, CURVES, 2, "ndcg@10")
    assert axes is given
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("round", "ndcg@10")
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name, values in CURVES.items():
        np.testing.assert_array_equal(lines[name].get_xydata(), np.column_stack([[1, 2, 3, 4], values]))
    np.testing.assert_array_equal(lines["best round 2: 0.6500"].get_xydata(), [[2, 0.65]])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["train", "valid", "best round 2: 0.6500"]


def test_any_data_sets_and_no_best_round():
    axes = learning_curve(Figure().add_subplot(), {"one": [1.0], "two": [2.0]})
    assert [line.get_marker() for line in axes.get_lines()] == ["o", "o"]  # a line of one point would not show


@pytest.mark.parametrize("rounds", [1, 3, 2000])
def test_nothing_overlaps_the_legend(rounds):
    figure = Figure(figsize=(7, 4.3), layout="constrained")
    axes = learning_curve(figure.add_subplot(), {name: np.linspace(0, 1, rounds) for name in CURVES}, rounds)
    figure.draw_without_rendering()
    legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert legend.y0 >= inside.y1 - 1
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


def test_saved_picture(tmp_path):
    save_learning_curve(tmp_path / "a.png", CURVES, 2, "ndcg@10")
    pixels = image.imread(tmp_path / "a.png")
    assert pixels.shape[:2] == (645, 1050)
    assert 0.01 < (pixels[..., :3].min(axis=2) < 0.9).mean() < 0.5


COSTS = {"cost of quality": [0.9, 0.8, 0.7], "cost of short": [1.2, 1.1, 1.0]}


def test_costs_and_bounds():
    given = Figure().add_subplot()
    axes = costs_and_bounds(given, COSTS, {"cost of short": 1.05, "cost of quality": 0.75}, 3)
    assert axes is given
    lines = {line.get_label(): line for line in axes.get_lines()}
    for name, bound in (("cost of quality", 0.75), ("cost of short", 1.05)):
        np.testing.assert_array_equal(lines[name].get_xydata(), np.column_stack([[1, 2, 3], COSTS[name]]))
        dashed = lines[f"its bound, {bound}"]
        assert set(dashed.get_ydata()) == {bound}
        assert dashed.get_color() == lines[name].get_color()
    np.testing.assert_array_equal(lines["round 3"].get_xydata(), [[3, 0.7], [3, 1.0]])


def test_multipliers():
    given = Figure().add_subplot()
    axes = multipliers(given, {"quality": [0.0, 0.5, 0.25]}, 2)
    assert axes is given
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_ylim()[0]) == ("round", "multiplier", 0)
    lines = {line.get_label(): line for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["quality"].get_xydata(), [[1, 0], [2, 0.5], [3, 0.25]])
    np.testing.assert_array_equal(lines["round 2"].get_xydata(), [[2, 0.5]])


def test_constraints_on_a_page(tmp_path, monkeypatch):
    kept = []
    save = Figure.savefig

    def keep(figure, *arguments, **options):
        kept.append(figure)
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    panels = {"cost": COSTS, "ndcg@10": {"ndcg@10 of a label with a long name": [0.5, 0.6, 0.7]}}
    bounds = {"cost of quality": 0.75, "cost of short": 1.05, "ndcg@10 of a label with a long name": 0.6}
    weights = {"quality": [0.0, 0.1, 0.2], "short": [0.1, 0.1, 0.1], "a label with a long name": [0.0, 1.0, 1.0]}
    save_constraints(tmp_path / "a.png", panels, bounds, weights, 3, "title")
    pixels = image.imread(tmp_path / "a.png")
    assert 0.01 < (pixels[..., :3].min(axis=2) < 0.9).mean() < 0.5
    (figure,) = kept
    *above, below = figure.axes
    drawn = [line for axes in above for line in axes.get_lines() if line.get_label() in bounds]
    multiplied = [line for line in below.get_lines() if line.get_label() in weights]
    assert [line.get_color() for line in drawn] == [line.get_color() for line in multiplied]
    for axes in figure.axes:
        legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
        assert legend.x0 >= inside.x1
        assert legend.x1 <= figure.bbox.x1
        assert legend.y0 >= inside.y0 - 1
