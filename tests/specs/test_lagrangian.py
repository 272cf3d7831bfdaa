"""AugmentedLagrangian: known multipliers, Algorithm 1 of the paper, what weighs what, errors."""

import functools
import json
import math

import numpy as np
import pytest
from scipy import optimize

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.specs import multipliers
from tests.oracles import all_lambdas, ndcg, queries_of

RANK = lo.LambdaRank(lo.NDCG(3))
QUALITY = lo.LambdaRank(lo.NDCG(3), label="quality")
CLICKS = lo.LogLoss("clicked")


def draw(seed=0, sizes=(5, 3, 6, 4), weights=False):
    """Queries with every column that the tests use; weights are equal within a query."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    columns = {
        "quality": rng.integers(0, 3, n),
        "clicked": rng.uniform(0.2, 0.8, n),
        "near": rng.normal(size=n),
        "far": rng.normal(size=n) + 0.5,
        "same": np.ones(n),
        "query": np.repeat(np.arange(len(sizes)), sizes),
    }
    labels = rng.integers(0, 4, n)
    weights = np.repeat(rng.uniform(0.3, 3.0, len(sizes)), sizes) if weights else None
    return Queries.from_arrays(labels, group=sizes, weights=weights, columns=columns)


LEAVES = np.arange(18) % 5


def descend(spec, queries, rounds, rate=0.5, start=0.0):
    """A run, and the scores after so many trees that all cut the rows into the same leaves."""
    run = Run(spec, queries, dtype=np.float64)
    run.rate = rate
    scores = np.full(len(queries), float(start))
    for _ in range(rounds):
        grad, hess = (np.bincount(LEAVES, part)[LEAVES] for part in run.step(scores))
        scores = scores - rate * grad / hess
    return run, scores


def evaluated(term, scores, queries):
    return Run(term, queries, dtype=np.float64).evaluate(scores)[f"cost/{term.name}"].value


# ---------------------------------------------------------------------------------------------------- known multipliers
# Minimise mean (s - a)^2 / 2 with mean (s - b)^2 / 2 <= c, s one number a leaf. Of the means of a and b in the leaves,
# s lies between the two, s - b = (a - b) / (1 + alpha), so that alpha = sqrt(D / (c - W)) - 1: D is mean (a - b)^2 / 2
# of these means, and W, half the variance of b within the leaves, is what no s can change.

NEAR, FAR = lo.SquaredError("near"), lo.SquaredError("far")
RULES = {  # rounds, learning rate, rule
    "carry": (400, 0.5, {"update": "carry", "mu": 1.0}),
    "carry, small steps": (1200, 0.5, {"update": "carry", "mu": 0.3}),
    "carry, growing": (400, 0.5, {"update": "carry", "mu": 0.5, "growth": 1.003}),
    "carry, kappa": (600, 0.3, {"update": "carry", "mu": 1.0, "kappa": 0.25}),
    "carry, normalised": (400, 0.5, {"update": "carry", "mu": 1.0, "normalise": True}),
    "auto": (400, 0.1, {"update": "auto", "rounds": 400, "tighten": 0.0}),
    "auto, other part": (400, 0.1, {"update": "auto", "rounds": 400, "tighten": 0.0, "start": 0.1, "land": 200}),
}
every_rule = pytest.mark.parametrize(("rounds", "rate", "rule"), RULES.values(), ids=RULES)


@pytest.fixture
def no_turns(monkeypatch):
    """Trees of "auto" that do not take turns: what the multipliers converge to."""
    monkeypatch.setattr(multipliers, "TURN", 0.0)


def of_leaves(values):
    return (np.bincount(LEAVES, values) / np.bincount(LEAVES))[LEAVES]


def known(queries, multiplier):
    """The bound that belongs to a multiplier."""
    a, b = queries.columns["near"], queries.columns["far"]
    within = np.mean((b - of_leaves(b)) ** 2) / 2
    return float(within + np.mean((of_leaves(a) - of_leaves(b)) ** 2) / 2 / (1 + multiplier) ** 2)


@every_rule
@pytest.mark.parametrize("alpha", [0.1, 1.5])
@pytest.mark.usefixtures("no_turns")
def test_multiplier_of_squared_errors(rounds, rate, rule, alpha):
    queries = draw()
    bound = known(queries, alpha)
    run, scores = descend(
        lo.AugmentedLagrangian(NEAR, [lo.Constraint(FAR, at_most=bound)], **rule), queries, rounds, rate
    )
    assert run.history["multiplier/far.mse"][-1] == pytest.approx(alpha, abs=1e-3)
    assert run.history["margin/far.mse"][-1] == pytest.approx(0, abs=1e-4)
    assert evaluated(FAR, scores, queries) == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize("alpha", [0.1, 1.5])
def test_equation_14_gets_there_from_below(alpha):
    """Full Newton steps and a small mu: the bound is broken until the end, so that nothing is ever set to 0."""
    queries = draw()
    spec = lo.AugmentedLagrangian(NEAR, [lo.Constraint(FAR, at_most=known(queries, alpha))], update="reset", mu=0.2)
    run, _ = descend(spec, queries, 400, rate=1.0)
    alphas = run.history["multiplier/far.mse"]
    assert alphas[-1] == pytest.approx(alpha, abs=1e-3)
    assert max(run.history["margin/far.mse"]) < 1e-9


@every_rule
@pytest.mark.usefixtures("no_turns")
def test_inactive_bound_beside_an_active_one(rounds, rate, rule):
    queries = draw()
    constraints = [
        lo.Constraint(FAR, at_most=known(queries, 0.5)),
        lo.Constraint(lo.SquaredError("clicked"), at_most=50.0, name="slack"),
    ]
    run, _ = descend(lo.AugmentedLagrangian(NEAR, constraints, **rule), queries, rounds, rate)
    assert run.history["multiplier/far.mse"][-1] == pytest.approx(0.5, abs=1e-3)
    assert set(run.history["multiplier/slack"]) == {0.0}
    assert run.history["margin/slack"][-1] > 0.5


@every_rule
@pytest.mark.usefixtures("no_turns")
def test_two_active_bounds(rounds, rate, rule):
    queries = draw()
    goals, wanted = [queries.columns[name] for name in ("near", "far", "quality")], (0.2, 0.1)
    a, b, d = map(of_leaves, goals)
    best = (a + wanted[0] * b + wanted[1] * d) / (1 + sum(wanted))
    constraints = [
        lo.Constraint(lo.SquaredError(name), at_most=float(np.mean((best - queries.columns[name]) ** 2) / 2))
        for name in ("far", "quality")
    ]
    run, scores = descend(lo.AugmentedLagrangian(NEAR, constraints, **rule), queries, rounds, rate)
    np.testing.assert_allclose(scores, best, atol=1e-3)
    for name, alpha in zip(("far.mse", "quality.mse"), wanted, strict=True):
        assert run.history[f"multiplier/{name}"][-1] == pytest.approx(alpha, abs=1e-3)


TIGHT = {"xatol": 1e-9, "fatol": 1e-13, "maxiter": 5000, "maxfev": 5000}


@functools.cache
def pairs_and_clicks(weights, multiplier):
    """The bound of the log loss that belongs to a multiplier beside pairs, both means, found by SciPy alone."""
    queries = draw(6, weights=weights)
    y, clicked = queries.labels, queries.columns["clicked"]
    w = np.ones(len(y)) if queries.weights is None else queries.weights
    slices = queries_of([5, 3, 6, 4])
    query_weights = np.array([w[q].mean() for q in slices])

    def pairs(s):
        costs = []
        for q in slices:
            better = y[q][:, None] > y[q][None, :]
            costs.append((np.logaddexp(0, -(s[q][:, None] - s[q][None, :])) * better).sum())
        return float(query_weights @ costs / query_weights.sum())

    def clicks(s):
        return float(w @ (np.logaddexp(0, s) - clicked * s) / w.sum())

    def best(alpha):
        def lagrangian(leaves):
            return pairs(leaves[LEAVES]) + alpha * clicks(leaves[LEAVES])

        return optimize.minimize(lagrangian, np.zeros(5), method="Nelder-Mead", options=TIGHT).x[LEAVES]

    return queries, clicks(best(multiplier))


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize(
    ("rounds", "rule"),
    [(800, {"update": "carry", "mu": 2.0}), (800, {"update": "auto", "rounds": 800, "tighten": 0.0})],
    ids=["carry", "auto"],
)
@pytest.mark.usefixtures("no_turns")
def test_multiplier_of_a_row_loss_beside_pairs(rounds, rule, weights):
    queries, bound = pairs_and_clicks(weights, 3.0)
    spec = lo.AugmentedLagrangian(lo.RankNet(), [lo.Constraint(CLICKS, at_most=bound)], **rule)
    run, scores = descend(spec, queries, rounds, rate=0.3)
    assert run.history["multiplier/clicked.logloss"][-1] == pytest.approx(3.0, abs=3e-3)
    assert evaluated(CLICKS, scores, queries) == pytest.approx(bound, rel=1e-3)


@pytest.mark.usefixtures("no_turns")
def test_auto_tightens_by_itself_to_a_hair_under_the_bound():
    queries = draw()
    constraint = lo.Constraint(FAR, at_most=known(queries, 0.5))
    run, _ = descend(lo.AugmentedLagrangian(NEAR, [constraint], rounds=300), queries, 300, rate=0.1)
    assert 0 < run.history["margin/far.mse"][-1] <= 0.0075 + 1e-6
    assert run.history["multiplier/far.mse"][:90] == [0.0] * 90  # the first .3 of the rounds
    assert min(run.history["margin/far.mse"][245:]) > -0.005


def test_auto_keeps_to_the_bound_in_some_late_round_where_trees_take_turns():
    queries = draw()
    constraint = lo.Constraint(FAR, at_most=known(queries, 0.2))
    run, _ = descend(lo.AugmentedLagrangian(NEAR, [constraint], rounds=300), queries, 300, rate=0.1)
    late = np.array(run.history["margin/far.mse"][-60:])
    assert (late >= 0).any()
    assert np.abs(late).max() < 0.03
    assert np.mean(run.history["multiplier/far.mse"][-60:]) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("update", ["carry", "auto"])
def test_infeasible_bounds_leave_scores_bounded(update):
    """Whatever the multipliers are, scores are between the goals, and infinite multipliers are none of a spec's."""
    queries = draw()
    spec = lo.AugmentedLagrangian(NEAR, [lo.Constraint(FAR, at_most=1e-3)], update=update, rounds=400)
    run, scores = descend(spec, queries, 400)
    near, far = (of_leaves(queries.columns[name]) for name in ("near", "far"))
    assert (np.abs(scores - far) <= np.abs(near - far) + 1e-9).all()
    assert run.history["margin/far.mse"][-1] < -1
    assert math.isfinite(run.history["multiplier/far.mse"][-1])
    spec = lo.AugmentedLagrangian(
        NEAR, [lo.Constraint(FAR, 1e-6), lo.Constraint(CLICKS, 1e-6)], update=update, rounds=400
    )
    run, scores = descend(spec, queries, 400)
    assert np.abs(scores).max() < 10


def test_auto_where_the_primary_can_be_fitted_without_error():
    queries = draw()
    columns = {"near": of_leaves(queries.columns["near"]), "far": of_leaves(queries.columns["far"])}
    exact = Queries.from_arrays(queries.labels, group=[5, 3, 6, 4], columns=columns)
    D = float(np.mean((columns["near"] - columns["far"]) ** 2) / 2)
    run, _ = descend(lo.AugmentedLagrangian(NEAR, [lo.Constraint(FAR, 0.8 * D)], rounds=400), exact, 400, rate=0.1)
    assert run.history["margin/far.mse"][-1] > -0.01


# -------------------------------------------------------------------------------------------- Algorithm 1 to the letter


def grow(X, grad, hess, leaves=4):
    """A tree of Newton steps, best leaf first, as score by row."""
    leaf, steps = np.zeros(len(X), int), [-grad.sum() / hess.sum()]

    def split(rows):
        best = (0.0, None, None)
        for j in range(X.shape[1]):
            for cut in np.unique(X[rows, j])[:-1]:
                left = rows & (X[:, j] <= cut)
                right = rows & ~left
                gain = sum(grad[part].sum() ** 2 / hess[part].sum() for part in (left, right))
                gain -= grad[rows].sum() ** 2 / hess[rows].sum()
                if gain > best[0] + 1e-12:
                    best = (gain, left, right)
        return best

    while len(steps) < leaves:
        _, left, right = max((split(leaf == k) for k in range(len(steps))), key=lambda found: found[0])
        if left is None:
            break
        leaf[right] = len(steps)
        steps.append(0.0)
        for k in range(len(steps)):
            steps[k] = -grad[leaf == k].sum() / hess[leaf == k].sum()
    return np.array(steps)[leaf]


@pytest.fixture(scope="module")
def ranked():
    """Six queries of five rows, few features with few values, and goals that disagree."""
    rng = np.random.default_rng(7)
    sizes = [5] * 6
    X = np.round(rng.normal(size=(30, 3)), 1)
    goals = [np.clip(np.round(X[:, j] + rng.normal(size=30) + 0.5), 0, 3) for j in range(3)]
    return X, goals, sizes


@functools.cache
def paper(update, bounds, mu, rounds):
    """Algorithm 1, costs and gradients by loops: multipliers and scores used for each tree."""
    rng = np.random.default_rng(7)
    X = np.round(rng.normal(size=(30, 3)), 1)
    goals = [np.clip(np.round(X[:, j] + rng.normal(size=30) + 0.5), 0, 3) for j in range(3)]
    f, alphas, table, path = np.zeros(30), [0.0, 0.0], [], []
    for _ in range(rounds):
        parts = [all_lambdas(ndcg, f, goal, [5] * 6) for goal in goals]
        grad, hess = (
            np.array(parts[0][i]) + alphas[0] * np.array(parts[1][i]) + alphas[1] * np.array(parts[2][i])
            for i in (0, 1)
        )
        table.append(list(alphas))
        path.append(f)
        f = f + 0.3 * grow(X, grad, hess)
        for t in (0, 1):
            excess = 6 * all_lambdas(ndcg, f, goals[t + 1], [5] * 6)[2] - bounds[t]  # sums over queries
            moved = mu[t] * excess + alphas[t]
            alphas[t] = max(0.0, moved) if update == "carry" else 0.0 if excess < 0 else moved
    return np.array(table), np.array(path)


@pytest.mark.parametrize("update", ["carry", "reset"])
def test_algorithm_1_to_the_letter(ranked, update):
    X, goals, sizes = ranked
    bounds, mu, rounds = (2.3, 2.6), (0.5, 0.8), 30
    wanted, path = paper(update, bounds, mu, rounds)
    spec = lo.AugmentedLagrangian(
        lo.LambdaRank(lo.NDCG()),
        [
            lo.Constraint(lo.LambdaRank(lo.NDCG(), label="one"), at_most=bounds[0]),
            lo.Constraint(lo.LambdaRank(lo.NDCG(), label="two"), at_most=bounds[1]),
        ],
        update=update, mu=mu, scale="sum",
    )  # fmt: skip
    queries = Queries.from_arrays(goals[0], group=sizes, columns={"one": goals[1], "two": goals[2]})
    run, scores = Run(spec, queries, dtype=np.float64), np.zeros(len(X))
    for n in range(rounds):
        np.testing.assert_allclose(scores, path[n], rtol=0, atol=1e-9)
        scores = scores + 0.3 * grow(X, *run.step(scores))
    found = np.array([run.history[f"multiplier/{name}.ndcg"] for name in ("one", "two")]).T
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    assert list(found[0]) == [0.0, 0.0]  # the first tree is that of the primary alone
    assert (np.ptp(wanted, axis=0) > 0.1).all()
    assert update == "carry" or (wanted[1:] == 0).any()  # met at times
    assert (np.diff(wanted, axis=0) < 0).any()
    for name, t, bound in (("one", 1, bounds[0]), ("two", 2, bounds[1])):
        costs = [6 * all_lambdas(ndcg, f, goals[t], sizes)[2] for f in path]
        np.testing.assert_allclose(run.history[f"cost/{name}.ndcg"], costs, rtol=1e-9)
        np.testing.assert_allclose(run.history[f"margin/{name}.ndcg"], (bound - np.array(costs)) / bound, atol=1e-9)


# ---------------------------------------------------------------------------------------------------------- by the rule


def told(queries, scores, spec, **options):
    """The history of a run that is taken to scores, whatever it answers."""
    run = Run(spec, queries, dtype=np.float64, **options)
    answers = [[part.copy() for part in run.step(s)] for s in scores]
    return run, answers


def walk(queries, rounds=8, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=len(queries)) * (k > 0) for k in range(rounds)]


@pytest.mark.parametrize("update", ["carry", "reset"])
@pytest.mark.parametrize("tighten", [None, 0.05])
def test_multipliers_follow_the_violations_that_are_logged(update, tighten):
    queries = draw()
    spec = lo.AugmentedLagrangian(
        RANK, [lo.Constraint(QUALITY, at_most=0.6), lo.Constraint(CLICKS, at_most=0.9)], update=update, mu=[2.0, 0.5],
        growth=1.1, tighten=tighten, start=2,
    )  # fmt: skip
    run, _ = told(queries, walk(queries), spec)
    for constraint, mu in zip(spec.constraints, (2.0, 0.5), strict=True):
        alpha = 0.0
        for n in range(8):
            margin = run.history[f"margin/{constraint.label}"][n]
            cost = run.history[f"cost/{constraint.label}"][n]
            assert margin == pytest.approx((constraint.bound - cost) / constraint.bound)
            violation = -margin + (tighten or 0.0)
            if n >= 2:
                moved = alpha + mu * 1.1 ** (n - 2) * violation
                alpha = max(0.0, moved) if update == "carry" else moved * (violation >= 0)
            assert run.history[f"multiplier/{constraint.label}"][n] == pytest.approx(alpha)


@pytest.mark.parametrize("update", ["carry", "reset", "auto"])
def test_at_least_moves_by_the_metric(update):
    """The very same rounds, but for a bound on one metric that is kept and on another that is not."""
    queries = draw()
    scores = walk(queries, 30)
    ndcg3 = [Run(QUALITY, queries).evaluate(s)["quality.ndcg@3"].value for s in scores]
    for bound, kept in ((0.5 * min(ndcg3), True), (0.999, False)):
        spec = lo.AugmentedLagrangian(
            RANK, [lo.Constraint(QUALITY, at_least=bound, name="floor")], update=update, rounds=30, start=0
        )
        run, _ = told(queries, scores, spec)
        np.testing.assert_allclose(run.history["margin/floor"], (np.array(ndcg3) - bound) / bound, rtol=1e-9)
        assert (max(run.history["multiplier/floor"]) == 0) == kept
        if update == "carry" and not kept:
            alphas = np.cumsum((bound - np.array(ndcg3)) / bound)
            np.testing.assert_allclose(run.history["multiplier/floor"], alphas, rtol=1e-9)


@pytest.mark.parametrize("update", ["carry", "reset", "auto"])
@pytest.mark.parametrize("start", [0, 3, 0.25])
def test_relative_bounds_are_shares_of_the_costs_when_constraints_are_switched_on(update, start):
    queries = draw()
    scores = walk(queries, 12)
    spec = lo.AugmentedLagrangian(
        RANK,
        [
            lo.Constraint(QUALITY, at_most=0.9, relative=True),
            lo.Constraint(QUALITY, at_least=1.05, relative=True, name="more"),
            lo.Constraint(CLICKS, at_most=5.0),
        ],
        update=update, start=start, rounds=12,
    )  # fmt: skip
    run, _ = told(queries, scores, spec)
    first = {0: 0, 3: 3, 0.25: 3}[start]
    history = {name: np.array(values) for name, values in run.history.items()}
    bound = 0.9 * history["cost/quality.ndcg@3"][first]
    floor = 1.05 * history["quality.ndcg@3"][first]
    for name, values in (
        ("quality.ndcg@3", (bound - history["cost/quality.ndcg@3"]) / bound),
        ("more", (history["quality.ndcg@3"] - floor) / floor),
    ):
        assert np.isnan(history[f"margin/{name}"][:first]).all()
        np.testing.assert_allclose(history[f"margin/{name}"][first:], values[first:], rtol=1e-9, atol=1e-12)
        assert set(history[f"multiplier/{name}"][:first]) <= {0.0}
    assert not np.isnan(history["margin/clicked.logloss"]).any()
    assert history["margin/quality.ndcg@3"][first] == pytest.approx(1 - 1 / 0.9)


def test_relative_bounds_stay_through_a_saved_state():
    queries = draw()
    scores = walk(queries, 12)
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, 0.9, relative=True)], rounds=12, start=3)
    whole, _ = told(queries, scores, spec)
    half, _ = told(queries, scores[:5], spec)
    rest, _ = told(queries, scores[5:], spec, state=json.loads(json.dumps(half.state)))
    assert (
        half.history["multiplier/quality.ndcg@3"] + rest.history["multiplier/quality.ndcg@3"]
        == (whole.history["multiplier/quality.ndcg@3"])
    )
    assert rest.history["margin/quality.ndcg@3"] == whole.history["margin/quality.ndcg@3"][5:]


@pytest.mark.parametrize("update", ["carry", "reset", "auto"])
def test_costs_of_another_data_set_can_be_followed(update):
    train, valid = draw(0), draw(5, sizes=(4, 4, 7))
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.5)], update=update, follow="valid", rounds=8)
    own = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.5)], update=update, rounds=8)
    run, watched = Run(spec, train, dtype=np.float64), Run(spec, valid, dtype=np.float64)
    alone = Run(own, valid, dtype=np.float64)
    for number, (s, other) in enumerate(zip(walk(train), walk(valid, seed=2), strict=True)):
        if number:
            watched.evaluate(other)
            run.watched = watched.seen
            alone.step(other)
        else:
            alone.step(other)
        run.step(s)
    name = "multiplier/quality.ndcg@3"
    assert run.history[name][0] == 0
    if update != "auto":  # nothing is known of it before the first tree
        first = alone.history[name][0]
        assert first > 0
        assert run.history[name][1] == pytest.approx(
            max(0.0, -watched_margin(spec, valid, walk(valid, seed=2)[1])), abs=1e-12
        )
    assert max(run.history[name]) > 0


def watched_margin(spec, queries, scores):
    return Run(spec, queries, dtype=np.float64).evaluate(scores)["margin/quality.ndcg@3"].value


def test_following_a_validation_set_that_is_not_there_is_refused():
    queries = draw()
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=0.5)], follow="valid")
    run = Run(spec, queries)
    run.step(np.zeros(len(queries)))
    with pytest.raises(
        ValueError, match=r"follow='valid': no data set besides.*give a validation set.*feval=.*custom_m"
    ):
        run.step(np.zeros(len(queries)))


# ------------------------------------------------------------------------------------------------------ what is weighed

TWO = lo.AugmentedLagrangian(
    RANK, [lo.Constraint(QUALITY, at_most=0.2), lo.Constraint(CLICKS, at_most=0.3)], update="carry", mu=1.5
)


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize("options", [{}, {"kappa": 0.25}, {"normalise": True}, {"kappa": 0.0, "normalise": True}])
def test_gradients_and_hessians_add_up_with_their_multipliers(options, weights):
    queries = draw(2, weights=weights)
    spec = lo.AugmentedLagrangian(RANK, TWO.constraints, update="carry", mu=1.5, **options)
    scores = walk(queries)[3]
    run, (got,) = told(queries, [scores], spec)
    alphas = [run.history[f"multiplier/{c.label}"][0] for c in spec.constraints]
    assert min(alphas) > 0.1
    parts = [Run(term, queries, dtype=np.float64).step(scores) for term in (RANK, QUALITY, CLICKS)]
    queries_weigh = queries.query_weights.sum()
    rows_weigh = len(queries) if queries.weights is None else queries.weights.sum()
    factors = [1.0, alphas[0], alphas[1] * queries_weigh / rows_weigh]
    for i, kappa in ((0, 1.0), (1, options.get("kappa", 1.0))):
        wanted = sum(
            factor * (kappa if t else 1.0) * part[i]
            for t, (factor, part) in enumerate(zip(factors, parts, strict=True))
        )
        np.testing.assert_allclose(got[i], wanted / (1 + sum(alphas) if options.get("normalise") else 1), rtol=1e-9)


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weights"])
@pytest.mark.parametrize(
    ("primary", "bounded"),
    [(lo.RankNet(), CLICKS), (CLICKS, lo.RankNet()), (lo.RankNet(), lo.RankNet("quality")), (NEAR, CLICKS)],
    ids=["rows beside pairs", "pairs beside rows", "pairs", "rows"],
)
def test_gradient_is_that_of_the_lagrangian(primary, bounded, weights):
    """By finite differences: the primary's weight times (primary cost + multiplier x constraint's cost)."""
    queries = draw(4, weights=weights)
    scores = walk(queries)[2]
    spec = lo.AugmentedLagrangian(primary, [lo.Constraint(bounded, at_most=0.1)], update="carry")
    run, ((grad, hess),) = told(queries, [scores], spec)
    (alpha,) = run.history[f"multiplier/{bounded.name}"]
    assert alpha > 0.1
    weight = queries.query_weights.sum() if primary.needs_order else np.sum(queries.weights if weights else np.ones(18))

    def value(s):
        return weight * (evaluated(primary, s, queries) + alpha * evaluated(bounded, s, queries))

    step = 1e-4
    for i in range(len(scores)):
        move = step * (np.arange(len(scores)) == i)
        above, here, below = value(scores + move), value(scores), value(scores - move)
        assert grad[i] == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-7)
        assert hess[i] == pytest.approx((above - 2 * here + below) / step**2, rel=1e-3, abs=1e-4)


def test_equal_terms_are_computed_once():
    """The primary bounded too, and one term bounded twice."""
    spec = lo.AugmentedLagrangian(
        RANK,
        [
            lo.Constraint(lo.LambdaRank(lo.NDCG(3)), 0.1),
            lo.Constraint(QUALITY, 0.1),
            lo.Constraint(QUALITY, 0.2, "again"),
        ],
        update="carry",
    )
    assert spec.terms == (RANK, QUALITY)
    queries = draw()
    scores = walk(queries)[2]
    run, (got,) = told(queries, [scores], spec)
    assert [name for name in run.history if name.startswith("cost/")] == ["cost/ndcg@3", "cost/quality.ndcg@3"]
    one, two, three = (run.history[f"multiplier/{name}"][0] for name in ("ndcg@3", "quality.ndcg@3", "again"))
    parts = [Run(term, queries, dtype=np.float64).step(scores) for term in (RANK, QUALITY)]
    for i in (0, 1):
        np.testing.assert_allclose(got[i], (1 + one) * parts[0][i] + (two + three) * parts[1][i], rtol=1e-9)


@pytest.mark.parametrize("update", ["carry", "reset", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slack_bounds_leave_the_gradient_bit_for_bit(update, dtype):
    queries = draw()
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, at_most=99.0)], update=update, rounds=8, normalise=True)
    run, alone = Run(spec, queries, dtype=dtype), Run(RANK, queries, dtype=dtype)
    for scores in walk(queries):
        for found, wanted in zip(run.step(scores), alone.step(scores), strict=True):
            assert found.tobytes() == wanted.tobytes()
    assert set(run.history["multiplier/quality.ndcg@3"]) == {0.0}


def test_evaluating_moves_nothing():
    queries = draw()
    run, other = Run(TWO, queries), Run(TWO, queries)
    for scores in walk(queries):
        run.evaluate(-scores)
        run.step(scores)
        run.evaluate(scores * 2)
        other.step(scores)
    assert run.history == other.history
    assert run.state == other.state


def test_states_handed_out_do_not_change():
    queries = draw()
    for update in ("carry", "auto"):
        run = Run(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, 0.2)], update=update, rounds=8), queries)
        kept = []
        for scores in walk(queries):
            run.step(scores)
            kept.append((run.state, json.dumps(run.state)))
        assert all(json.dumps(state) == text for state, text in kept)


@pytest.mark.parametrize(
    ("options", "planned", "rate", "settled"),
    [
        ({"update": "carry"}, None, 0.1, 0),
        ({"update": "reset", "start": 5}, None, 0.1, 5),
        ({"update": "carry", "start": 0.2}, 50, 0.1, 10),
        ({}, 100, 0.1, 80),
        ({"land": 0.5}, 100, 0.1, 50),
        ({"land": 40}, None, 0.1, 40),
        ({"rounds": 200}, 100, 0.1, 160),
        ({"start": 90}, 100, 0.1, 90),
        ({}, None, 0.1, 41),
        ({}, None, 0.5, 9),
        ({"start": 10}, None, 0.5, 18),
    ],
)
def test_when_constraints_are_asked_for_in_full(options, planned, rate, settled):
    queries = draw()
    run = Run(lo.AugmentedLagrangian(RANK, [lo.Constraint(QUALITY, 0.2)], **options), queries)
    run.planned, run.rate = planned, rate
    for rounds in range(250):
        run.rounds = rounds
        assert run.settled == (rounds >= settled)


# --------------------------------------------------------------------------------------------------------------- errors

ONE = [lo.Constraint(QUALITY, at_most=0.5)]


@pytest.mark.parametrize(
    ("constraints", "options", "words"),
    [
        ([], {}, "constraints must hold at least one Constraint, found none; without any, the primary alone is a spec"),
        ([*ONE, lo.Constraint(QUALITY, 0.6)], {}, "2 constraints have the name 'quality.ndcg@3': give each.* name="),
        ([*ONE, lo.Constraint(CLICKS, 1, "quality.ndcg@3")], {}, "2 constraints have the name 'quality.ndcg@3'"),
        (ONE, {"update": "adam"}, "update must be 'auto', 'carry' or 'reset', found 'adam'"),
        (ONE, {"update": None}, "update must be .*found None"),
        (ONE, {"scale": "mean"}, "scale must be 'bound' or 'sum', found 'mean'"),
        (ONE, {"follow": "test"}, "follow must be 'train' or 'valid', found 'test'"),
        (ONE, {"mu": -1.0}, "mu must be above 0, found -1.0"),
        (ONE, {"mu": 0}, "mu must be above 0, found 0"),
        (ONE, {"mu": np.nan}, "mu must be a finite number, found nan"),
        (ONE, {"mu": np.inf}, "mu must be a finite number, found inf"),
        (ONE, {"mu": "1"}, "mu must be a finite number, found '1'"),
        (ONE, {"mu": [1.0, 2.0]}, "mu: one for each constraint wanted, found 2 for 1 constraints"),
        (ONE, {"mu": []}, "mu: one for each constraint wanted, found 0 for 1 constraints"),
        (ONE, {"mu": np.array([np.nan])}, "mu must be a finite number"),
        (ONE, {"growth": 1.1}, "growth belongs to update='carry' and 'reset', found 1.1 beside 'auto'"),
        (ONE, {"update": "carry", "growth": 0.0}, "growth must be above 0, found 0.0"),
        (ONE, {"update": "carry", "growth": np.nan}, "growth must be a finite number"),
        (ONE, {"update": "carry", "land": 0.5}, "land belongs to update='auto', found 0.5 beside 'carry'"),
        (ONE, {"update": "reset", "land": 5}, "land belongs to update='auto', found 5 beside 'reset'"),
        (ONE, {"update": "carry", "scale": "sum"}, "mu: with scale='sum' .* give one"),
        (ONE, {"mu": 1.0, "scale": "sum"}, "scale='sum' belongs to update='carry' and 'reset'"),
        ([lo.Constraint(QUALITY, 0.5, scale=2.0)], {"update": "carry", "scale": "sum", "mu": 1.0},
         "scale: constraint 'quality.ndcg@3' has a scale, which scale='sum' makes no use of"),
        (ONE, {"kappa": -0.1}, "kappa must not be negative, found -0.1"),
        (ONE, {"kappa": np.inf}, "kappa must be a finite number"),
        (ONE, {"tighten": -0.1}, "tighten must not be negative"),
        (ONE, {"tighten": 1.0}, "tighten must be a share below 1, found 1.0"),
        (ONE, {"start": -1}, "start must not be negative"),
        (ONE, {"start": 2.5}, "start must be a whole number of rounds, or a share of them below 1, found 2.5"),
        (ONE, {"land": 10.5}, "land must be a whole number of rounds"),
        (ONE, {"land": "half"}, "land must be a finite number, found 'half'"),
        (ONE, {"rounds": 0}, "rounds must be a whole number from 1, found 0"),
        (ONE, {"rounds": 10.0}, "rounds must be a whole number from 1, found 10.0"),
        (ONE, {"normalise": 1}, "normalise must be True or False, found 1"),
    ],
)  # fmt: skip
def test_wrong_specs_are_refused(constraints, options, words):
    with pytest.raises(ValueError, match=words):
        lo.AugmentedLagrangian(RANK, constraints, **options)


@pytest.mark.parametrize(
    ("primary", "constraints", "words"),
    [
        (lo.NDCG(10), ONE, r"primary must be a term.*: write LambdaRank\(NDCG"),
        (lo.LambdaRank, ONE, "primary must be a term"),
        (ONE[0], ONE, r"primary must be a term.*found Constraint\("),
        (
            RANK,
            [QUALITY],
            r"constraints\[0\] must be a Constraint, such as Constraint\(term, at_most=.*found LambdaRank\(",
        ),
        (RANK, [*ONE, lo.NDCG(3)], r"constraints\[1\] must be a Constraint.*found NDCG\("),
        (RANK, [None], r"constraints\[0\] must be a Constraint.*found None"),
        (RANK, QUALITY, r"constraints.* must be .*Constraint.*found LambdaRank\("),
        (RANK, None, r"constraints.* must be .*Constraint.*found None"),
    ],
)
def test_what_is_no_term_or_no_constraint_is_refused(primary, constraints, words):
    with pytest.raises(TypeError, match=words):
        lo.AugmentedLagrangian(primary, constraints)


def test_one_constraint_needs_no_list_and_lists_are_not_followed():
    constraints, mu = [*ONE], [2.0]
    spec = lo.AugmentedLagrangian(RANK, constraints, mu=mu)
    constraints.clear()
    mu[0] = 5.0
    assert spec == lo.AugmentedLagrangian(RANK, ONE[0], mu=(2.0,))
    assert hash(spec) == hash(lo.AugmentedLagrangian(RANK, ONE[0], mu=(2.0,)))


@pytest.mark.parametrize(
    ("number", "own"), [(np.float64, float), (np.float32, float), (np.int64, int)], ids=["float64", "float32", "int64"]
)
@pytest.mark.parametrize("update", ["carry", "auto"])
def test_numbers_of_any_kind_make_the_same_spec(number, own, update):
    """Bounds come from NumPy: repr, by which a saved state knows its spec, and state are those of plain numbers."""

    def spec(one, two):
        constraint = lo.Constraint(QUALITY, at_most=one, scale=two)
        return lo.AugmentedLagrangian(RANK, constraint, update, mu=[one], kappa=one, tighten=one - one, start=one)

    plain, other = spec(own(1), own(2)), spec(number(1), number(2))
    assert other == plain
    assert repr(other) == repr(plain)
    queries = draw()
    run, _ = told(queries, walk(queries, 4), other)
    assert json.loads(json.dumps(run.state)) == run.state
    Run(plain, queries, state=run.state)


def test_mu_of_one_number_for_all_or_an_array():
    assert lo.AugmentedLagrangian(RANK, ONE, mu=np.array([2.0])) == lo.AugmentedLagrangian(RANK, ONE, mu=[2.0])
    assert "np." not in repr(lo.AugmentedLagrangian(RANK, ONE, mu=np.array([2.0])))


@pytest.mark.parametrize(
    ("term", "words"),
    [
        (lo.LambdaRank(lo.NDCG(3), label="margin"), "label='margin': this data set of 18 rows has no such column"),
        (lo.LogLoss("bought"), "label='bought': .*there: 'clicked', .*attach it"),
        (
            lo.LambdaRank(lo.NDCG(3), label="same"),
            "constraint 'c': column 'same' has no query with two different values",
        ),
        (
            lo.RankNet("query"),
            "constraint 'c': column 'query' has no query with two different values.* leave the const",
        ),
    ],
)
def test_columns_that_nothing_can_be_made_of_are_refused(term, words):
    queries = draw()
    with pytest.raises(ValueError, match=words):
        Run(lo.AugmentedLagrangian(RANK, [lo.Constraint(term, 0.5, "c")]), queries).step(np.zeros(len(queries)))


def test_columns_without_variation_are_fine_for_row_losses_and_for_data_that_are_only_watched():
    queries = draw()
    spec = lo.AugmentedLagrangian(RANK, [lo.Constraint(lo.SquaredError("same"), 0.5)], update="carry")
    Run(spec, queries).step(np.zeros(len(queries)))
    ranked = lo.AugmentedLagrangian(RANK, [lo.Constraint(lo.LambdaRank(lo.NDCG(3), label="same"), 0.5)])
    assert Run(ranked, queries).evaluate(np.zeros(len(queries)))["margin/same.ndcg@3"].value == 1.0


@pytest.mark.parametrize(
    ("constraint", "options", "words"),
    [
        (lo.Constraint(QUALITY, 0.9, relative=True), {}, r"start: a bound is relative.*\(..., start=100\), or rounds="),
        (ONE[0], {"start": 0.5}, "start=0.5 is a share of the rounds.*give a number of rounds, or rounds="),
        (ONE[0], {"start": 1, "land": 0.5}, "land=0.5 is a share of the rounds.*or rounds="),
    ],
)
def test_shares_of_a_number_of_rounds_that_nobody_knows_are_refused(constraint, options, words):
    queries = draw()
    with pytest.raises(ValueError, match=words):
        Run(lo.AugmentedLagrangian(RANK, [constraint], **options), queries).step(np.zeros(len(queries)))


@pytest.mark.parametrize("share", [3.0, 0.0])
def test_a_full_step_takes_dependence_to_0(share):
    """To first order, by the multiplier that `couple` tells and "auto" counts in; a quarter of the spread at least."""
    rng = np.random.default_rng(0)
    n = 400
    control, weights = rng.normal(size=n), rng.random(n) + 0.5
    scores = share * control + rng.normal(size=n)
    for primary in (lo.SquaredError(), lo.LambdaRank(lo.NDCG())):
        term = lo.DistanceCovariance("c")
        spec = lo.AugmentedLagrangian(primary, [lo.Constraint(term, at_most=0.01)])
        data = Queries.from_arrays(rng.integers(0, 3, n), group=[20] * 20, weights=weights, columns={"c": control})
        run = Run(spec, data, dtype=np.float64)
        run.evaluate(scores)
        full = run.seen.coupling
        assert np.isnan(full[0])
        grad, hess = run.work.parts[1, 0], run.work.parts[0, 1].mean()
        ratio = run.work.masses[0] / run.work.masses[1]  # gradients of constraints are brought to the primary's mass
        step = full[1] * ratio * grad / hess
        value, slope = run.seen.costs[1], grad / run.work.masses[1]
        if share:
            assert value - slope @ step == pytest.approx(0, abs=1e-12)
            assert np.sqrt(np.mean(step**2)) > 0.25 * scores.std()
        else:
            assert np.sqrt(np.mean(step**2)) == pytest.approx(0.25 * scores.std())
            assert value - slope @ step < 0
    spec = lo.AugmentedLagrangian(lo.SquaredError(), [lo.Constraint(lo.LogLoss("c"), at_most=0.1)])
    run = Run(spec, Queries.from_arrays(np.zeros(4), columns={"c": [0, 1, 1, 0]}))
    run.evaluate(np.zeros(4))
    assert run.seen.coupling is None  # other costs have no such unit
