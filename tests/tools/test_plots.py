"""Pictures are what they say, and not blank."""

import numpy as np
import pytest
from matplotlib import image
from matplotlib.figure import Figure

import lambda_objectives as lo
from lambda_objectives.tools.plots import (
    constraints,
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


def test_histories_as_they_are():
    histories = {
        "train": {"ndcg": [0.1, 0.2], "cost/ndcg": [3, 2]},
        "test": {"ndcg": [0.3, 0.4]},
        "more": {"ndcg": [0, 1]},
    }
    axes = learning_curve(Figure().add_subplot(), histories, metric="ndcg")
    assert {line.get_label(): line.get_ydata().tolist() for line in axes.get_lines()} == {
        "train": [0.1, 0.2],
        "test": [0.3, 0.4],
        "more": [0, 1],
    }
    assert len({line.get_color() for line in axes.get_lines()}) == 3
    with pytest.raises(ValueError, match=r"curves\['test'\] has no 'cost/ndcg': there is 'ndcg'"):
        learning_curve(Figure().add_subplot(), histories, metric="cost/ndcg")
    with pytest.raises(ValueError, match="curves must hold at least one data set"):
        learning_curve(Figure().add_subplot(), {})
    with pytest.raises(ValueError, match="best_round must be a round from 1 to 2, as many as there are, found 3"):
        learning_curve(Figure().add_subplot(), histories, 3, "ndcg")


@pytest.mark.parametrize("rounds", [1, 3, 2000])
def test_nothing_overlaps_the_legend(rounds):
    figure = Figure(figsize=(7, 4.3), layout="constrained")
    axes = learning_curve(figure.add_subplot(), {name: np.linspace(0, 1, rounds) for name in CURVES}, rounds)
    figure.draw_without_rendering()
    legend, inside = axes.get_legend().get_window_extent(), axes.get_window_extent()
    assert legend.y0 >= inside.y1 - 1
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1


@pytest.mark.parametrize(
    "names",
    [["train", "valid"], ["train", "valid", "test of last year", "valid, baseline"], [f"data {i}" for i in range(9)]],
    ids=len,
)
def test_legends_of_small_axes_are_not_cut_off(names):
    figure = Figure(figsize=(9, 6), layout="constrained")
    grid = figure.subplots(2, 2)
    for axes in grid.flat:
        learning_curve(axes, {name: np.linspace(0, 1, 30) for name in names}, 20, "ndcg@10")
    figure.draw_without_rendering()
    boxes = [axes.get_legend().get_window_extent() for axes in grid.flat]
    for axes, box in zip(grid.flat, boxes, strict=True):
        inside = axes.get_window_extent()
        assert inside.x0 - 30 <= box.x0 < box.x1 <= inside.x1 + 30
        assert box.y0 >= 0
        assert box.y1 <= figure.bbox.y1
        assert inside.height > figure.bbox.height / 5
        assert not any(box.overlaps(other) for other in boxes if other is not box)
    assert {len(axes.get_legend().get_texts()) for axes in grid.flat} == {len(names) + 1}


def test_best_round_on_the_data_that_is_named():
    axes = learning_curve(Figure().add_subplot(), CURVES, 2, "ndcg@10", best_on="train")
    assert axes.get_lines()[-1].get_label() == "best round 2: 0.6000"
    with pytest.raises(ValueError, match="best_on='test' is none of the curves: there is 'train', 'valid'"):
        learning_curve(Figure().add_subplot(), CURVES, 2, best_on="test")


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


T1, T2 = (lo.LambdaRank(lo.NDCG(5), label=label) for label in ("t1", "t2"))
SPEC = lo.AugmentedLagrangian(
    lo.LambdaRank(lo.NDCG(5)),
    [lo.Constraint(T2, at_least=0.5, name="floor"), lo.Constraint(T1, at_most=0.9, relative=True)],
    start=2,
)
NAN = float("nan")
HISTORY = {  # of training data: costs before the round's tree, t1 bounded by .9 of the .8 of round 2
    "cost/ndcg@5": [1.0, 0.9, 0.8],
    "cost/t2.ndcg@5": [1.0, 0.9, 0.8],
    "t2.ndcg@5": [0.4, 0.5, 0.6],
    "cost/t1.ndcg@5": [0.7, 0.8, 0.9],
    "t1.ndcg@5": [0.4, 0.5, 0.6],
    "multiplier/floor": [0.0, 0.3, 0.1],
    "multiplier/t1.ndcg@5": [0.0, 0.0, 0.2],
    "margin/floor": [-0.2, 0.0, 0.2],
    "margin/t1.ndcg@5": [NAN, (0.72 - 0.8) / 0.72, (0.72 - 0.9) / 0.72],
}


def drawn(axes):
    return {line.get_label(): line for line in axes.get_lines()}


def test_a_history_and_its_spec_are_enough():
    given = Figure().subplots(2, 1, sharex=True)
    axes = constraints(given, HISTORY, SPEC, 2)
    assert axes is given
    above, below = map(drawn, axes)
    assert list(above)[:4] == ["floor: t2.ndcg@5", "its bound, 0.5", "cost/t1.ndcg@5", "its bound, 0.72"]
    assert list(below)[:2] == ["floor", "t1.ndcg@5"]
    cost, bound = above["cost/t1.ndcg@5"], above["its bound, 0.72"]
    np.testing.assert_array_equal(cost.get_xydata(), [[0, 0.7], [1, 0.8], [2, 0.9]])  # after so many trees
    np.testing.assert_allclose(bound.get_ydata(), [NAN, 0.72, 0.72])
    np.testing.assert_array_equal(below["t1.ndcg@5"].get_xydata(), [[1, 0], [2, 0], [3, 0.2]])
    np.testing.assert_array_equal(above["round 2"].get_xydata(), [[2, 0.6], [2, 0.9]])
    assert cost.get_color() == bound.get_color() == below["t1.ndcg@5"].get_color()
    assert above["floor: t2.ndcg@5"].get_color() == below["floor"].get_color() != cost.get_color()
    assert axes[0].get_ylabel() == "what is bounded"


def test_costs_and_metrics_apart():
    costs, metrics, below = constraints(Figure().subplots(3, 1, sharex=True), HISTORY, SPEC)
    assert [axes.get_ylabel() for axes in (costs, metrics, below)] == ["cost", "metric", "multiplier"]
    assert list(drawn(costs)) == ["cost/t1.ndcg@5", "its bound, 0.72"]
    assert drawn(costs)["cost/t1.ndcg@5"].get_color() == drawn(below)["t1.ndcg@5"].get_color()
    with pytest.raises(ValueError, match="all bounds are of one kind"):
        constraints(Figure().subplots(3, 1), HISTORY, {"cost/t1.ndcg@5": 0.7})
    for wrong, found in ((Figure().subplots(4, 1), "found 4"), (Figure().add_subplot(), "found <Axes")):
        with pytest.raises(ValueError, match=f"two or three wanted.*{found}"):
            constraints(wrong, HISTORY, SPEC)


def test_bounds_by_name_have_the_colours_of_their_multipliers():
    axes = costs_and_bounds(
        Figure().add_subplot(), HISTORY, {"cost/t1.ndcg@5": 0.7, "t2.ndcg@5": 0.6, "cost/ndcg@5": 1.0}
    )
    below = drawn(multipliers(Figure().add_subplot(), HISTORY))
    colours = {name: line.get_color() for name, line in drawn(axes).items() if "bound" not in name}
    assert colours["cost/t1.ndcg@5"] == below["t1.ndcg@5"].get_color()
    assert len(set(colours.values())) == 3
    assert axes.get_ylabel() == "what is bounded"
    assert costs_and_bounds(Figure().add_subplot(), HISTORY, {"t2.ndcg@5": 0.6}).get_ylabel() == "metric"


def test_relative_bounds_by_a_scale_of_their_own():
    spec = lo.AugmentedLagrangian(SPEC.primary, [lo.Constraint(T1, at_most=0.9, relative=True, scale=2.0)], start=2)
    history = HISTORY | {"margin/t1.ndcg@5": [NAN, (0.72 - 0.8) / 2, (0.72 - 0.9) / 2]}
    axes = costs_and_bounds(Figure().add_subplot(), history, spec)
    assert "its bound, 0.72" in drawn(axes)
    early = {name: values[:1] for name, values in history.items()}
    assert "its bound, not yet" in drawn(costs_and_bounds(Figure().add_subplot(), early, spec))


@pytest.mark.filterwarnings("ignore:no late round keeps:lambda_objectives.LambdaObjectivesWarning")
def test_bounds_that_a_training_knew():
    """Of real histories, in which the bound is nowhere written."""
    lightgbm = pytest.importorskip("lightgbm")
    shop = lo.datasets.product_search(60, 0)
    train = lo.attach(lightgbm.Dataset(shop.X, shop.y, group=shop.group, free_raw_data=False), shop.columns)
    valid = lo.attach(train.create_valid(shop.X, shop.y, group=shop.group), shop.columns)
    objective = lo.Objective(lo.AugmentedLagrangian(SPEC.primary, SPEC.constraints, start=3))
    params = {"objective": objective, "verbosity": -1, "num_leaves": 4, "metric": "None"}
    lightgbm.train(params, train, 6, valid_sets=[valid], feval=objective.metrics)
    bound = 0.9 * objective.history(train)["cost/t1.ndcg@5"][3]
    for data in (train, valid):
        lines = drawn(costs_and_bounds(Figure().add_subplot(), objective.history(data), objective.spec))
        assert f"its bound, {bound:.4g}" in lines
        known = lines[f"its bound, {bound:.4g}"].get_ydata()
        np.testing.assert_allclose(known[np.isfinite(known)], bound, rtol=1e-6)
    below = drawn(multipliers(Figure().add_subplot(), objective.history(train)))
    np.testing.assert_array_equal(below["floor"].get_xdata(), [1, 2, 3, 4, 5, 6])
    with pytest.raises(ValueError, match="history has no multiplier/NAME: take the history of the training data"):
        multipliers(Figure().add_subplot(), objective.history(valid))


def test_two_terms_of_one_name():
    few = lo.LambdaRank(lo.NDCG(5), truncation=3)
    spec = lo.AugmentedLagrangian(SPEC.primary, [lo.Constraint(few, at_most=0.9, name="few")])
    history = {"cost/ndcg@5": [1.0], "cost/ndcg@5-2": [0.5], "multiplier/few": [0.0]}
    assert "few: cost/ndcg@5-2" in drawn(costs_and_bounds(Figure().add_subplot(), history, spec))


@pytest.mark.parametrize(
    ("bounds", "error", "match"),
    [
        ({"cost/t3": 1.0}, ValueError, "history has no 'cost/t3': there is 'cost/ndcg@5', 'cost/t2.ndcg@5'"),
        ({}, ValueError, "bounds must hold at least one"),
        (0.9, TypeError, r"bounds must be the AugmentedLagrangian that was trained .* found 0.9"),
        (SPEC.primary, TypeError, "bounds must be the AugmentedLagrangian"),
    ],
)
def test_what_are_no_bounds(bounds, error, match):
    with pytest.raises(error, match=match):
        costs_and_bounds(Figure().add_subplot(), HISTORY, bounds)


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
