"""UnbiasedRank beside its formulas, beside LightGBM's position bias, and on clicks whose bias is known."""

import json

import lightgbm as lgb
import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.run import Run
from tests.checks import assert_same_draws, many_queries, queries, rounds
from tests.oracles import ndcg, orders_of, pair_weights, pulls, queries_of, softplus

xgb = pytest.importorskip("xgboost")

SIZES = [6, 1, 9, 6]
RNG = np.random.default_rng(21)
CLICKS, WEIGHTS = RNG.integers(0, 2, 22).astype(float), RNG.uniform(0.5, 2, 22)
POSITION = np.concatenate([RNG.permutation(size) + 1.0 for size in SIZES])
STEPS = [RNG.normal(size=22) for _ in range(3)]


def plain_ratios(steps, weights, regularization, k=None):
    """Gradient, Hessian, cost and ratios of each round, by the docstring's formulas."""
    places = sorted(set(POSITION))
    plus, minus, out = dict.fromkeys(places, 1.0), dict.fromkeys(places, 1.0), []
    shares = {row: np.mean(weights[q]) for q in queries_of(SIZES) for row in range(q.start, q.stop)}
    for scores in steps:
        changes = pair_weights(lambda y: ndcg(y, k), orders_of(scores, SIZES), CLICKS)
        ratio = {(h, w): plus[POSITION[h]] * minus[POSITION[w]] for h, w in changes}
        grad, hess, _ = pulls({pair: change / ratio[pair] for pair, change in changes.items()}, scores)
        costs = {(h, w): change * softplus(scores[w] - scores[h]) * shares[h] for (h, w), change in changes.items()}
        value = sum(cost / ratio[pair] for pair, cost in costs.items()) / sum(
            shares[q.start] for q in queries_of(SIZES)
        )
        of_plus, of_minus = dict.fromkeys(places, 0.0), dict.fromkeys(places, 0.0)
        for (h, w), cost in costs.items():
            of_plus[POSITION[h]] += cost / minus[POSITION[w]]
            of_minus[POSITION[w]] += cost / plus[POSITION[h]]
        power = 1 / (1 + regularization)
        plus = {p: (c / of_plus[places[0]]) ** power if c else plus[p] for p, c in of_plus.items()}
        minus = {p: (c / of_minus[places[0]]) ** power if c else minus[p] for p, c in of_minus.items()}
        out.append((weights * grad, weights * hess, value, list(plus.values()), list(minus.values())))
    return out


def plain_bias(steps, weights, regularization, rate):
    """The same of the additive form: gradient, Hessian and biases."""
    bias, out = dict.fromkeys(sorted(set(POSITION)), 0.0), []
    for scores in steps:
        shifted = [s + bias[p] for s, p in zip(scores, POSITION, strict=True)]
        grad, hess, _ = pulls(pair_weights(ndcg, orders_of(shifted, SIZES), CLICKS), shifted)
        grad, hess = weights * grad, weights * hess
        for p in bias:
            at = np.equal(POSITION, p)
            slope = grad[at].sum() + regularization * at.sum() * bias[p]
            bias[p] -= rate * slope / (abs(hess[at].sum() + regularization * at.sum()) + 0.001)
        out.append((grad, hess, list(bias.values())))
    return out


# ----------------------------------------------------------------------------------------------- beside the formulas


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", [np.ones(22), WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(("regularization", "k"), [(None, None), (0.0, None), (2.5, 2)])
def test_ratios_as_their_formulas(regularization, k, weights, dtype):
    term = lo.UnbiasedRank(lo.NDCG(k), "shown", regularization=regularization)
    run = Run(term, queries(CLICKS, SIZES, weights, shown=POSITION), dtype=dtype)
    precise = {"rtol": 1e-9, "atol": 1e-12} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    for scores, want in zip(
        STEPS, plain_ratios(STEPS, weights, 1.0 if regularization is None else regularization, k), strict=True
    ):
        grad, hess = run.step(scores)
        np.testing.assert_allclose(grad, want[0], **precise)
        np.testing.assert_allclose(hess, want[1], **precise)
        assert run.history[f"cost/{term.name}"][-1] == pytest.approx(want[2], rel=1e-4)
        state = run.state["terms"][term.name]
        assert state["positions"] == sorted(set(POSITION))
        np.testing.assert_allclose(state["plus"], want[3], rtol=precise["rtol"])
        np.testing.assert_allclose(state["minus"], want[4], rtol=precise["rtol"])


@pytest.mark.parametrize("weights", [np.ones(22), WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize(("regularization", "rate"), [(None, 0.1), (0.5, 0.3)])
def test_biases_as_their_formula(regularization, rate, weights):
    term = lo.UnbiasedRank(lo.NDCG(), "shown", form="additive", regularization=regularization, rate=rate)
    run = Run(term, queries(CLICKS, SIZES, weights, shown=POSITION), dtype=np.float64)
    for scores, want in zip(STEPS, plain_bias(STEPS, weights, regularization or 0.0, rate), strict=True):
        grad, hess = run.step(scores)
        np.testing.assert_allclose(grad, want[0], atol=1e-12)
        np.testing.assert_allclose(hess, want[1], atol=1e-12)
        np.testing.assert_allclose(run.state["terms"][term.name]["bias"], want[2], atol=1e-12)


@pytest.mark.parametrize("form", ["ratio", "additive"])
def test_begins_without_a_bias_as_lambdarank(form):
    term = lo.UnbiasedRank(lo.NDCG(5), "shown", form=form)
    data = queries(CLICKS, SIZES, WEIGHTS, shown=POSITION)
    run = Run(term, data)
    start = {"ratio": {"plus": [1.0] * 9, "minus": [1.0] * 9}, "additive": {"bias": [0.0] * 9}}[form]
    assert run.state["terms"] == {"unbiased-ndcg@5": {"positions": list(range(1, 10)), **start}}
    want = rounds(lo.LambdaRank(lo.NDCG(5)), data, STEPS[:1])[0][0]
    np.testing.assert_allclose(run.step(STEPS[0]), want, rtol=1e-4, atol=1e-6)
    assert run.state["terms"]["unbiased-ndcg@5"] != {"positions": list(range(1, 10)), **start}


@pytest.mark.parametrize("form", ["ratio", "additive"])
def test_positions_are_any_numbers_in_their_order(form):
    term = lo.UnbiasedRank(lo.NDCG(), "shown", form=form)
    got, run = rounds(term, queries(CLICKS, SIZES, shown=POSITION), STEPS)
    moved, other = rounds(term, queries(CLICKS, SIZES, shown=POSITION**3 - 7.5), STEPS)
    np.testing.assert_array_equal(got, moved)
    one, two = (dict(r.state["terms"]["unbiased-ndcg"]) for r in (run, other))
    np.testing.assert_array_equal(two.pop("positions"), np.array(one.pop("positions")) ** 3 - 7.5)
    assert one == two


def test_a_position_without_pairs_in_one_round_does_not_blow_up_in_the_next():
    """At position 2 the only click has rank 2 in the first round, beyond the cut-off."""
    data = queries([1, 0, 1, 0, 1, 0], [3, 3], shown=[0, 1, 2, 0, 1, 2])
    run = Run(lo.UnbiasedRank(lo.NDCG(1), "shown"), data)
    run.step(np.array([3.0, 2.0, 1.0, 3.0, 2.0, 1.0]))
    assert run.state["terms"]["unbiased-ndcg@1"]["plus"][2] == 1.0
    for scores in ([1.0, 3.0, 2.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 2.0, 1.0, 3.0], [1.0, 3.0, 2.0, 1.0, 2.0, 3.0]):
        grad, _ = run.step(np.array(scores))
        assert np.abs(grad).max() < 20


def test_without_a_click_at_the_first_position_the_ratios_stay():
    clicks = np.where(POSITION == 1, 0.0, CLICKS)
    run = Run(lo.UnbiasedRank(lo.NDCG(), "shown"), queries(clicks, SIZES, shown=POSITION))
    run.step(STEPS[0])
    state = run.state["terms"]["unbiased-ndcg"]
    assert state["plus"] == [1.0] * 9
    assert state["minus"] != [1.0] * 9


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_the_scale_of_the_weights_does_not_matter_to_the_ratios(scale):
    term = lo.UnbiasedRank(lo.NDCG(), "shown")
    states = [
        rounds(term, queries(CLICKS, SIZES, w, shown=POSITION), STEPS, dtype=np.float64)[1].state["terms"][term.name]
        for w in (WEIGHTS, scale * WEIGHTS)
    ]
    np.testing.assert_allclose(states[0]["plus"], states[1]["plus"], rtol=1e-9)


@pytest.mark.parametrize("form", ["ratio", "additive"])
def test_extreme_lists(form):
    term = lo.UnbiasedRank(lo.NDCG(), "shown", form=form)
    for labels, sizes in (([], []), ([1], [1]), ([1, 1, 1], [3]), ([0, 0], [1, 1])):
        grad, hess = lo.gradient(term, np.arange(len(labels)), labels, group=sizes, shown=np.arange(len(labels)))
        assert grad.tolist() == hess.tolist() == [0.0] * len(labels)


# ------------------------------------------------------------------------------------------------------------ states


@pytest.mark.parametrize("form", ["ratio", "additive"])
def test_any_number_of_threads_and_a_resume_change_no_bit(form):
    data, steps = many_queries(longest=40, count=2500, shown=lambda rng, n: rng.integers(0, 12, n).astype(float))
    assert_same_draws(lo.UnbiasedRank(lo.NDCG(10), "shown", form=form), data, steps)


@pytest.mark.parametrize("form", ["ratio", "additive"])
def test_evaluating_does_not_correct_and_does_not_learn(form):
    term = lo.UnbiasedRank(lo.NDCG(5), "shown", form=form)
    data = queries(CLICKS, SIZES, WEIGHTS, shown=POSITION)
    run = Run(term, data)
    for scores in STEPS:
        run.step(scores)
    before = json.dumps(run.state)
    got = run.evaluate(STEPS[0])
    assert json.dumps(run.state) == before
    want = Run(lo.LambdaRank(lo.NDCG(5)), data).evaluate(STEPS[0])
    assert got["ndcg@5"] == want["ndcg@5"]
    assert got["cost/unbiased-ndcg@5"].value == pytest.approx(want["cost/ndcg@5"].value, rel=1e-5)


def test_positions_of_another_data_set_are_refused():
    term = lo.UnbiasedRank(lo.NDCG(), "shown")
    _, run = rounds(term, queries(CLICKS, SIZES, shown=POSITION), STEPS)
    other = Run(term, queries(CLICKS, SIZES, shown=POSITION + 1), state=run.state)
    with pytest.raises(
        ValueError, match=r"state: estimates for the positions \[1.0, .*\] do not fit .* column 'shown'"
    ):
        other.step(STEPS[0])


def test_two_terms_learn_each_for_itself():
    ratio, bias = lo.UnbiasedRank(lo.NDCG(), "shown"), lo.UnbiasedRank(lo.NDCG(), "shown", form="additive")
    data = queries(CLICKS, SIZES, shown=POSITION)
    both, run = rounds(lo.WeightedSum([ratio, bias], [1.0, 0.5]), data, STEPS)
    alone = [rounds(term, data, STEPS) for term in (ratio, bias)]
    states = [other.state["terms"]["unbiased-ndcg"] for _, other in alone]
    assert run.state["terms"] == {"unbiased-ndcg": states[0], "unbiased-ndcg-2": states[1]}
    np.testing.assert_allclose(both, alone[0][0] + 0.5 * alone[1][0], rtol=1e-5, atol=1e-6)


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: lo.UnbiasedRank("ndcg", "shown"), TypeError, "metric must be a metric object"),
        (lambda: lo.UnbiasedRank(lo.NDCG()), TypeError, "position"),
        (lambda: lo.UnbiasedRank(lo.NDCG(), None), ValueError, "position must be the name of a column, found None"),
        (lambda: lo.UnbiasedRank(lo.NDCG(), "a b"), ValueError, "position must be a column's name"),
        (
            lambda: lo.UnbiasedRank(lo.NDCG(), "p", form="sum"),
            ValueError,
            "form must be 'ratio' or 'additive', found 'sum'",
        ),
        (lambda: lo.UnbiasedRank(lo.NDCG(), "p", regularization=-1), ValueError, "regularization must not be negative"),
        (
            lambda: lo.UnbiasedRank(lo.NDCG(), "p", regularization="1"),
            ValueError,
            "regularization must be a finite number",
        ),
        (lambda: lo.UnbiasedRank(lo.NDCG(), "p", rate=0.0), ValueError, "rate must be above 0"),
        (lambda: lo.UnbiasedRank(lo.NDCG(), "p", sigma=0.0), ValueError, "sigma must be above 0"),
    ],
)
def test_wrong_parameters_are_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_positions_are_a_column_of_numbers():
    term = lo.UnbiasedRank(lo.NDCG(), "shown")
    with pytest.raises(ValueError, match="position='shown': this data set of 2 rows has no such column"):
        lo.gradient(term, [0, 1], [1, 0], group=[2])
    with pytest.raises(ValueError, match="column 'shown' must be finite: row 1 is nan"):
        lo.gradient(term, [0, 1], [1, 0], group=[2], shown=[0, np.nan])


# -------------------------------------------------------------------------------------------------------- trainings

QUERIES, ROWS, ROUNDS = 1500, 10, 30
LIGHTGBM = {"verbosity": -1, "num_threads": 1, "num_leaves": 8, "learning_rate": 0.1}
XGBOOST = {"nthread": 1, "max_depth": 3, "eta": 0.1, "min_child_weight": 1e-3, "disable_default_eval_metric": 1}


class Shop:
    """Rows shown by a ranker of little worth; position p, from 0, is looked at with the probability 1 / (1 + p)."""

    def __init__(self, seed, count=QUERIES):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(count, ROWS, 4))
        ranker = X[..., 3] + 0.5 * X[..., 0] + 0.5 * rng.normal(size=(count, ROWS))
        X = np.take_along_axis(X, np.argsort(-ranker, axis=1)[..., None], axis=1)
        relevant = X[..., 0] + 0.5 * X[..., 1] * (X[..., 2] > 0) > 0.8
        seen = rng.random((count, ROWS)) < 1 / (1 + np.arange(ROWS))
        clicks = seen & (rng.random((count, ROWS)) < np.where(relevant, 0.9, 0.1))
        self.X, self.relevant, self.clicks = X.reshape(-1, 4), relevant.ravel(), clicks.ravel()
        self.position, self.group = np.tile(np.arange(ROWS), count), np.full(count, ROWS)

    def lightgbm(self):
        return lo.attach(lgb.Dataset(self.X, self.clicks, group=self.group), position=self.position)

    def xgboost(self):
        qid = np.repeat(np.arange(len(self.group)), ROWS)
        return lo.attach(xgb.DMatrix(self.X, self.clicks, qid=qid), position=self.position)


SEEN, LATER = Shop(0), Shop(100, 500)


def train_lightgbm(objective, count=ROUNDS, model=None):
    model = lgb.train({**LIGHTGBM, "objective": objective}, SEEN.lightgbm(), count, init_model=model)
    return model, model.predict(LATER.X)


def train_xgboost(objective, count=ROUNDS, model=None):
    model = xgb.train(XGBOOST, SEEN.xgboost(), count, obj=objective, xgb_model=model)
    return model, model.predict(LATER.xgboost())


def truth(scores):
    return lo.NDCG(10)(scores, LATER.relevant, group=LATER.group)


@pytest.mark.parametrize("train", [train_lightgbm, train_xgboost])
def test_known_bias_is_found_and_corrected(train):
    plain = truth(train(lo.Objective(lo.LambdaRank(lo.NDCG(10))))[1])
    known = 1 / np.sqrt(1 + np.arange(ROWS))  # what a regularization of 1 makes of the probabilities
    for form in ("ratio", "additive"):
        objective = lo.Objective(lo.UnbiasedRank(lo.NDCG(10), "position", form=form))
        assert truth(train(objective)[1]) > plain + 0.01
        state = json.loads(json.dumps(objective.state()))["terms"]["unbiased-ndcg@10"]
        assert state["positions"] == list(range(ROWS))
        if form == "ratio":
            np.testing.assert_allclose(state["plus"], known, rtol=0.3)
        assert np.corrcoef(np.log(known), np.log(state["plus"]) if form == "ratio" else state["bias"])[0, 1] > 0.95


@pytest.mark.parametrize("form", ["ratio", "additive"])
@pytest.mark.parametrize("train", [train_lightgbm, train_xgboost])
def test_taken_up_again_half_way(train, form):
    spec = lo.UnbiasedRank(lo.NDCG(10), "position", form=form)
    once, first = lo.Objective(spec), lo.Objective(spec)
    _, want = train(once, 8)
    half, _ = train(first, 4)
    second = lo.Objective(spec, state=json.loads(json.dumps(first.state())))
    _, got = train(second, 4, half)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    for name, values in once.state()["terms"]["unbiased-ndcg@10"].items():
        np.testing.assert_allclose(second.state()["terms"]["unbiased-ndcg@10"][name], values, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [{"position": LATER.position + 5}, {}], ids=["other positions", "no positions"])
def test_validation_data_are_not_corrected(columns):
    objective, data = lo.Objective(lo.UnbiasedRank(lo.NDCG(10), "position")), SEEN.lightgbm()
    valid = lo.attach(data.create_valid(LATER.X, LATER.clicks, group=LATER.group), columns)
    params = {**LIGHTGBM, "objective": objective, "metric": "None"}
    model = lgb.train(params, data, 5, valid_sets=[valid], feval=objective.metrics)
    history = objective.history(valid)
    want = lo.evaluate(lo.LambdaRank(lo.NDCG(10)), model.predict(LATER.X), LATER.clicks, group=LATER.group)
    assert history["ndcg@10"][-1] == pytest.approx(want["ndcg@10"])
    assert history["cost/unbiased-ndcg@10"][-1] == pytest.approx(want["cost/ndcg@10"], rel=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("regularization", [0.0, 0.5])
def test_the_additive_form_is_lightgbms(regularization, weighted):
    rng = np.random.default_rng(0)
    sizes = rng.integers(4, 20, 300)
    n = sizes.sum()
    X, position = rng.normal(size=(n, 5)), np.concatenate([np.arange(size) % 8 for size in sizes])
    clicks = rng.random(n) < 1 / (1 + np.exp(-X[:, 0])) / (1 + 0.5 * position)
    weight = rng.uniform(0.5, 2, n) if weighted else None
    own = {
        "objective": "lambdarank", "lambdarank_norm": False, "lambdarank_truncation_level": 30,
        "lambdarank_position_bias_regularization": regularization,
    }  # fmt: skip
    rate = LIGHTGBM["learning_rate"]
    term = lo.UnbiasedRank(lo.NDCG(), "position", form="additive", rate=rate, regularization=regularization)
    theirs = lgb.train(LIGHTGBM | own, lgb.Dataset(X, clicks, weight=weight, group=sizes, position=position), 30)
    data = lo.attach(lgb.Dataset(X, clicks, weight=weight, group=sizes), position=position)
    ours = lgb.train({**LIGHTGBM, "objective": lo.Objective(term)}, data, 30)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-4, atol=1e-4)
    without = lgb.train(LIGHTGBM | own, lgb.Dataset(X, clicks, weight=weight, group=sizes), 30)
    assert np.abs(without.predict(X) - theirs.predict(X)).max() > 0.1
