"""Pictures of several models, and of what a model says over a control."""

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import lambda_objectives as lo

NAN = float("nan")


@pytest.fixture
def axes():
    return Figure(figsize=(7, 4), layout="constrained").add_subplot()


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def texts(axes):
    return [text.get_text() for text in axes.texts]


# ------------------------------------------------------------------------------------------------------ cuts and gains

LINE = lo.planning.fit_line([0.06, 0.11, 0.20], [0.012, 0.020, 0.041], name="t1.ndcg@5", metric="t1.ndcg@5")


def test_a_line_and_its_points(axes):
    assert lo.plots.cost_line(axes, {"t1.ndcg@5": LINE}) is axes
    points, line = axes.get_lines()
    np.testing.assert_array_equal(points.get_xydata(), np.column_stack([LINE.reductions, LINE.gains]))
    np.testing.assert_allclose(line.get_xydata(), [[0, 0], [0.2, 0.2 * LINE.slope]])
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(0.2 * (LINE.slope + LINE.error))
    assert legend(axes) == ["t1.ndcg@5: slope 0.200 ± 0.007"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("cut of the cost", "gain of t1.ndcg@5")
    assert axes.yaxis.get_major_formatter()(0.05, 0).startswith("5.")
    assert axes.xaxis.get_major_formatter()(0.05, 0).endswith("%")


def test_several_lines_and_cuts_that_were_missed(axes):
    with pytest.warns(lo.LambdaObjectivesWarning, match="no probed model attained"):
        single = lo.planning.fit_line([0.1], [0.0], asked=[0.3], name="b", metric="m")
    lo.plots.cost_line(axes, {"a": LINE, "b": single})
    assert legend(axes) == ["t1.ndcg@5: slope 0.200 ± 0.007", "b: slope 0.000"]
    assert axes.get_ylabel() == "gain of the metric"
    (tick,) = (line for line in axes.get_lines() if line.get_marker() == "|")
    assert tick.get_xdata() == [0.3]
    assert len(axes.collections) == 1  # no error of a line through one point
    points = [line for line in axes.get_lines() if line.get_linestyle() == "None" and line is not tick]
    assert len({line.get_color() for line in points}) == len({line.get_marker() for line in points}) == 2


def test_what_is_no_line(axes):
    with pytest.raises(TypeError, match=r"lines must be CostLine, what lo.planning.probe returns, found 0.5 under 'a'"):
        lo.plots.cost_line(axes, {"a": 0.5})
    with pytest.raises(ValueError, match="lines must hold at least one series"):
        lo.plots.cost_line(axes, {})


# ---------------------------------------------------------------------------------------------------------- the front

MODELS = [
    {"cut": cut, "ndcg": ndcg, "t1.ndcg": t1, "cost/t1.ndcg": -t1, "t1.dcov2": -t1}
    for cut, ndcg, t1 in ((0.0, 0.70, 0.50), (0.05, 0.66, 0.52), (0.1, 0.69, 0.55), (0.2, 0.65, 0.60))
]
KEPT, BEATEN = [[0.65, 0.60], [0.69, 0.55], [0.70, 0.50]], [[0.66, 0.52]]


@pytest.mark.parametrize("y", ["t1.ndcg", "cost/t1.ndcg", "t1.dcov2"])
def test_front_joined_and_the_beaten_paler(y, axes):
    assert lo.plots.front(axes, MODELS, "ndcg", y, label="cut") is axes
    kept, beaten = axes.get_lines()
    sign = 1 if y == "t1.ndcg" else -1
    np.testing.assert_allclose(kept.get_xydata(), KEPT * np.array([1, sign]))
    np.testing.assert_allclose(beaten.get_xydata(), BEATEN * np.array([1, sign]))
    assert kept.get_linestyle() == "-"
    assert beaten.get_linestyle() == "None"
    assert beaten.get_alpha() < 0.5
    assert kept.get_color() == beaten.get_color()
    assert (axes.get_xlabel(), axes.get_ylabel(), legend(axes)) == ("ndcg", y, ["the front"])
    assert sorted(texts(axes)) == ["0", "0.05", "0.1", "0.2"]


def test_fronts_of_several_methods(axes):
    points = np.array([[0.70, 0.50], [0.60, 0.40]])
    lo.plots.front(axes, {"bounds": MODELS, "weights": points}, "ndcg", "t1.ndcg", maximise=[True, False])
    assert legend(axes) == ["bounds", "weights"]
    first, *_ = axes.get_lines()
    np.testing.assert_allclose(first.get_xydata(), [[0.70, 0.50]])
    fronts = [line for line in axes.get_lines() if line.get_label() in ("bounds", "weights")]
    assert len({line.get_color() for line in fronts}) == len({line.get_marker() for line in fronts}) == 2


@pytest.mark.parametrize(
    ("models", "options", "match"),
    [
        (MODELS, {"x": "ndgc"}, r"models\[0\] has no 'ndgc': there is 'cut', 'ndcg', 't1.ndcg'"),
        (MODELS, {"label": "weight"}, r"label: models\[0\] has no 'weight', nor has any other: there is 'cut'"),
        ({"a": [*MODELS, {"ndcg": 1.0}]}, {}, r"models\['a'\]\[4\] has no 't1.ndcg': there is 'ndcg'"),
        ([], {}, "models must hold at least one model, found none"),
        ({}, {}, "models must hold at least one series, found none"),
        (np.zeros((3, 4)), {}, r"models must be an \(m, 2\) array.*shape \(3, 4\)"),
        (np.zeros((3, 2)), {"label": "cut"}, "label: an array has no 'cut'; give models as dicts"),
        ([[1.0, NAN]], {}, "models, t1.ndcg must be finite: row 0 is nan"),
        (MODELS[0], {}, r"models\['cut'\] must be a list of dicts of numbers, or .* found 0.0"),
        ({"a": MODELS[0]}, {}, r"models\['a'\] must be a list of models, found one"),
    ],
)
def test_what_are_no_models(models, options, match, axes):
    for draw in (lo.plots.front, lo.plots.tradeoff):
        with pytest.raises(ValueError, match=match):
            draw(axes, models, **{"x": "ndcg", "y": "t1.ndcg", **options})


# ------------------------------------------------------------------------------------------ quality against dependence


def test_models_along_a_weight(axes):
    penalty = [{"weight": w, "auc": 0.9 - w / 100, "age.dcov2": 0.1 / (1 + w)} for w in (0, 1, 5, 2)]
    budget = [{"weight": "half", "auc": 0.88, "age.dcov2": 0.05}]
    assert lo.plots.tradeoff(axes, {"penalty": penalty, "budget": budget}, "age.dcov2", "auc", "weight") is axes
    first, second = axes.get_lines()
    np.testing.assert_array_equal(first.get_xydata(), [[m["age.dcov2"], m["auc"]] for m in penalty])  # in their order
    np.testing.assert_array_equal(second.get_xydata(), [[0.05, 0.88]])
    assert first.get_color() != second.get_color()
    assert legend(axes) == ["penalty (weight)", "budget (weight)"]
    assert sorted(texts(axes)) == ["0", "1", "2", "5", "half"]
    colours = {text.get_text(): to_hex(text.get_color()).upper() for text in axes.texts}
    assert (colours["5"], colours["half"]) == (first.get_color(), second.get_color())


@pytest.mark.parametrize("draw", [lo.plots.tradeoff, lo.plots.front], ids=["tradeoff", "front"])
def test_texts_only_where_there_are_some(draw, axes):
    weighed = [{"weight": 1, "x": 0.1, "y": 0.2}, {"x": 0.5, "y": 0.4}]
    draw(axes, {"plain": [{"x": 0.3, "y": 0.9}], "weighed": weighed, "array": [[0.9, 0.1]]}, "x", "y", label="weight")
    assert texts(axes) == ["1"]
    told = "weighed (weight)" if draw is lo.plots.tradeoff else "weighed"
    assert legend(axes) == ["plain", told, "array"]


def test_one_series_has_no_legend(axes):
    lo.plots.tradeoff(axes, [[0.1, 0.2], [0.2, 0.3]], "dependence", "quality")
    assert axes.get_legend() is None
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dependence", "quality")


@pytest.mark.parametrize("seed", range(5))
def test_texts_beside_points_lie_over_nothing(seed, axes):
    rng = np.random.default_rng(seed)
    models = [{"x": x, "y": y, "name": f"{i * 1.25:g}"} for i, (x, y) in enumerate(rng.normal(size=(30, 2)))]
    lo.plots.tradeoff(axes, models, "x", "y", label="name")
    axes.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 10 < len(boxes) <= 30  # where there is no room, none is written
    for i, box in enumerate(boxes):
        assert axes.figure.bbox.x0 <= box.x0 < box.x1 <= axes.figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[:i])


# -------------------------------------------------------------------------------------------------------- calibration


def bars(axes):
    """Each series' x, means and half lengths of the bars."""
    found = []
    for container in axes.containers:
        line, _, (segments,) = container
        ends = np.array([segment[:, 1] for segment in segments.get_segments()])
        found.append((line.get_xdata(), line.get_ydata(), (ends[:, 1] - ends[:, 0]) / 2))
    return found


def test_bins_of_equal_numbers_of_rows(axes):
    rng = np.random.default_rng(0)
    age, noise = rng.permutation(np.arange(100.0)), rng.normal(size=100)
    scores = {"before": age / 50 + noise, "after": noise}
    assert lo.plots.calibration(axes, scores, age, bins=4, control_name="age", score_name="risk") is axes
    bins = [(age >= low) & (age < low + 25) for low in (0, 25, 50, 75)]
    for (x, means, lengths), values in zip(bars(axes), scores.values(), strict=True):
        np.testing.assert_allclose(x, [12, 37, 62, 87])
        np.testing.assert_allclose(means, [values[rows].mean() for rows in bins])
        np.testing.assert_allclose(lengths, [values[rows].std() / 5 for rows in bins])
    dashed = [line.get_ydata()[0] for line in axes.get_lines() if line.get_linestyle() == "--"]
    np.testing.assert_allclose(dashed, [values.mean() for values in scores.values()])
    assert (axes.get_xlabel(), axes.get_ylabel(), legend(axes)) == ("age", "risk", ["before", "after"])


def test_spread_and_weights(axes):
    scores, control, weights = [1.0, 2.0, 5.0, 7.0], [0.0, 0.0, 1.0, 1.0], [1.0, 3.0, 0.0, 2.0]
    lo.plots.calibration(axes, scores, control, bins=2, weights=weights, bars="spread")
    ((x, means, lengths),) = bars(axes)
    np.testing.assert_allclose(x, [0, 1])
    np.testing.assert_allclose(means, [1.75, 7.0])
    np.testing.assert_allclose(lengths, [(0.75**2 * 1 / 4 + 0.25**2 * 3 / 4) ** 0.5, 0.0], atol=1e-12)
    assert axes.get_legend() is None


def test_standard_errors_of_repeated_weights_are_those_of_weights(axes):
    scores, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 1.0])
    lo.plots.calibration(axes, scores, np.zeros(3), weights=weights)
    ((_, means, lengths),) = bars(axes)
    np.testing.assert_allclose(means, [2.25])
    np.testing.assert_allclose(lengths, [(1.25**2 + 4 * 0.25**2 + 1.75**2) ** 0.5 / 4])


def test_rows_of_one_value_are_in_one_bin(axes):
    control = np.repeat([1.0, 2.0, 3.0], [80, 10, 10])
    lo.plots.calibration(axes, np.arange(100.0), control, bins=10)
    ((x, means, _),) = bars(axes)
    np.testing.assert_allclose(x, [1, 2, 3])
    np.testing.assert_allclose(means, [39.5, 84.5, 94.5])


@pytest.mark.parametrize(
    ("control", "options", "names"),
    [
        (["b", "a", "b", "a"], {}, ["a", "b"]),
        (np.array(["b", "a", "b", "a"], dtype=object), {}, ["a", "b"]),
        ([True, False, True, False], {}, ["False", "True"]),
        ([10, 9, 10, 9], {"categorical": True}, ["9", "10"]),
    ],
)
def test_categories(control, options, names, axes):
    lo.plots.calibration(axes, {"one": [1.0, 2.0, 3.0, 6.0], "two": [0.0, 0.0, 0.0, 0.0]}, control, **options)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == names
    (x1, means, _), (x2, zeros, _) = bars(axes)
    np.testing.assert_allclose(means, [4.0, 2.0])
    np.testing.assert_allclose((x1 + x2) / 2, [0, 1])  # beside each other
    assert (x1 < x2).all()
    assert (zeros == 0).all()
    assert axes.get_xlim() == (-0.5, 1.5)


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (({"a": [1.0, 2.0], "b": [1.0]}, [1, 2]), {}, r"scores\['b'\] has 1 values, others have 2"),
        (([1.0, 2.0], [1, 2, 3]), {}, "control has 3 values, the data set has 2 rows"),
        (([1.0, 2.0], ["a"]), {}, r"control must be one value a row: shape \(1,\), 2 scores"),
        (([1.0, NAN], [1, 2]), {}, "scores must be finite: row 1 is nan"),
        (([1.0, 2.0], [1, NAN]), {}, "control must be finite: row 1 is nan"),
        (([], []), {}, "none to draw"),
        (([1.0], [1]), {"bins": 0}, "bins must be a whole number from 1, found 0"),
        (([1.0], [1]), {"bars": "sd"}, "bars must be 'error' .* or 'spread' .* found 'sd'"),
        (([1.0], [1]), {"weights": [-1.0]}, "weights must not be negative, found -1"),
        (
            (np.zeros(50), np.arange(50)),
            {"categorical": True},
            "50 categories, of which 40 can be drawn.*categorical=True",
        ),
    ],
)
def test_what_cannot_be_drawn(arguments, options, match, axes):
    with pytest.raises(ValueError, match=match):
        lo.plots.calibration(axes, *arguments, **options)


@pytest.mark.parametrize("categories", [2, 12])
def test_long_categories_are_not_cut_off(categories):
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    control = np.array([f"a rather long category {i % categories}" for i in range(60)])
    lo.plots.calibration(axes, {"before": np.arange(60.0), "after": np.zeros(60)}, control)
    figure.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in axes.get_xticklabels()]
    assert len(boxes) == categories
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)


RACES = ["African-American", "Asian", "Caucasian", "Hispanic", "Native American"]


@pytest.mark.parametrize("names", [RACES, [f"{name} or of such origin" for name in RACES], RACES[:2]], ids=len)
def test_names_of_categories_do_not_overlap(names):
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots(1, 2)[1]
    lo.plots.calibration(axes, {"before": np.arange(30.0)}, np.array([names[i % len(names)] for i in range(30)]))
    figure.draw_without_rendering()
    labels = axes.get_xticklabels()
    assert [" ".join(label.get_text().replace("-\n", "-").split()) for label in labels] == names
    boxes = [label.get_window_extent() for label in labels]
    slanted = labels[0].get_rotation() == 45
    assert slanted == (len(names) > 2)
    if not slanted:
        assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
    else:  # the boxes of slanting texts overlap; the texts lie apart by the share of a step that is across them
        lines = max(label.get_text().count("\n") + 1 for label in labels)
        step = axes.get_window_extent().width / len(names) / 2**0.5
        assert step >= 1.2 * lines * labels[0].get_fontsize() * figure.dpi / 72
    assert all(box.y0 >= 0 and box.x0 >= 0 for box in boxes)


def test_names_with_a_blank_are_broken_before_they_slant():
    figure = Figure(figsize=(4.5, 3), layout="constrained")
    axes = figure.add_subplot()
    names = ["one long name", "two long names", "three names", "four of these"]
    lo.plots.calibration(axes, np.arange(40.0), np.array(names * 10))
    figure.draw_without_rendering()
    labels = sorted(axes.get_xticklabels(), key=lambda label: label.get_window_extent().x0)
    assert {label.get_rotation() for label in labels} == {0}
    assert any("\n" in label.get_text() for label in labels)
    boxes = [label.get_window_extent() for label in labels]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
