"""Pictures are what they say, and not blank."""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

from lambda_objectives.tools.plots import learning_curve, save_learning_curve

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
