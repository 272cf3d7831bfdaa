"""The peers' gradients: CatBoost's and RankLib's against lists and loops, the boosters' in test_parity.py."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from tests.oracles import queries_of, ranked, sigmoid, softplus
from tests.strategies import ranked_data

TERMS = [
    lo.compat.lightgbm(),
    lo.compat.lightgbm(lambdarank_norm=False, lambdarank_truncation_level=2, sigmoid=2.0, label_gain=[0, 1, 1, 5, 6]),
    lo.compat.lightgbm("rank_xendcg", objective_seed=3),
    lo.compat.xgboost(),
    lo.compat.xgboost("rank:pairwise", lambdarank_pair_method="mean", lambdarank_normalization=False),
    lo.compat.xgboost(ndcg_exp_gain=False, lambdarank_score_normalization=False, lambdarank_num_pair_per_sample=2),
    *[lo.compat.catboost(metric=metric) for metric in ("NDCG", "DCG", "MRR", "MAP")],
    lo.compat.catboost(sigma=2.0, norm=False, top=3, type="Exp", denominator="Position", label="other"),
    *[lo.compat.ranklib(metric) for metric in ("NDCG@3", "DCG", "MAP", "P@2", "RR@4", "RR", "ERR@3", "best@2")],
]
PLAIN = {"lambdarank_normalization": False, "lambdarank_score_normalization": False}
BINARY = [lo.compat.xgboost("rank:map"), lo.compat.xgboost("rank:map", lambdarank_pair_method="mean")]
CHANCES = [lo.compat.catboost(metric="ERR")]


def labels_for(term, labels):
    """Labels that a term takes."""
    return (labels > 1) * 1.0 if term in BINARY else labels / 4 if term in CHANCES else labels


# ------------------------------------------------------------------------------------- the peers as loops over lists
def log_normed(grad, hess, total):
    factor = math.log2(1 + total) / total if total > 0 else 1.0
    return [factor * g for g in grad], [factor * h for h in hess]


def catboost_weight(metric, y, i, j, top, gain, discount):
    """Weight of the rows at ranks i and j, 0 for no pair; y: labels in rank order."""
    n = len(y)
    if metric in ("NDCG", "DCG"):
        if min(i, j) >= top:
            return 0.0
        ideal = sum(gain(v) * discount(r) for r, v in enumerate(sorted(y, reverse=True)[:top]))
        return abs(gain(y[i]) - gain(y[j])) * abs(discount(i) - discount(j)) / ideal
    up, down = min(i, j), max(i, j)
    if metric == "MRR":
        hits = [r for r in range(n) if y[r] > 0]
        hit, miss = (i, j) if y[i] > 0 else (j, i)
        if (y[i] > 0 and y[j] > 0) or not hits:
            return 0.0
        if miss < hit:
            return 1 / (miss + 1) - 1 / (hit + 1) if hit == hits[0] or miss < hits[0] else 0.0
        if hit != hits[0]:
            return 0.0
        return 1 / (hit + 1) - 1 / (min([miss, *hits[1:2]]) + 1)
    if metric == "ERR":
        reach = math.prod(1 - v for v in y[:up])
        middle, stay = 0.0, 1.0
        for r in range(up + 1, down):
            if y[r] != y[up]:
                middle += stay * y[r] / (r + 1)
                stay *= 1 - y[r]
        d = y[up] - y[down]
        return reach * abs(d / (up + 1) - middle * d - stay * d / (down + 1))
    if (y[up] > 0) == (y[down] > 0):
        return 0.0
    between = sum(1 / (r + 1) for r in range(up + 1, down) if y[r] > 0) if y[up] <= 0 else 0.0
    return 1 / (up + 1) + between


def catboost_lists(scores, labels, metric, sigma=1.0, norm=True, top=-1, type="Base", denominator="LogPosition"):
    order, n = ranked(scores), len(scores)
    y = [labels[row] for row in order]
    grad, hess, total = [0.0] * n, [0.0] * n, 0.0
    for i, j in itertools.product(range(n), repeat=2):
        if not y[i] > y[j]:
            continue
        weight = catboost_weight(
            metric, y, i, j, n if top == -1 else top, (lambda v: v) if type == "Base" else (lambda v: 2**v - 1),
            (lambda r: 1 / math.log2(r + 2)) if denominator == "LogPosition" else (lambda r: 1 / (r + 1)),
        )  # fmt: skip
        gap = scores[order[i]] - scores[order[j]]
        if norm and max(scores) != min(scores):
            weight /= 0.01 + abs(gap)
        p = sigmoid(-sigma * gap)
        for row, sign in ((order[i], -1), (order[j], 1)):
            grad[row] += sign * sigma * p * weight
            hess[row] += sigma**2 * p * sigmoid(sigma * gap) * weight
        total += 2 * sigma * p * weight
    return log_normed(grad, hess, total) if norm else (grad, hess)


def ranklib_changes(name, k, y):
    """The swap matrix of a scorer for labels in rank order."""
    n, size = len(y), min(len(y), k)
    change = [[0.0] * n for _ in range(n)]
    hit = [int(v > 0) for v in y]

    def put(i, j, value):
        change[i][j] = change[j][i] = value

    if name in ("DCG", "NDCG"):
        ideal = sum((2**v - 1) / math.log2(r + 2) for r, v in enumerate(sorted(y, reverse=True)[:size]))
        for i in range(size):
            for j in range(i + 1, n):
                value = (1 / math.log2(i + 2) - 1 / math.log2(j + 2)) * (2 ** y[i] - 2 ** y[j])
                put(i, j, value if name == "DCG" else value / ideal if ideal > 0 else 0.0)
    elif name == "MAP":

        def precision(list_):
            found = [r for r, v in enumerate(list_) if v]
            return sum((c + 1) / (r + 1) for c, r in enumerate(found)) / len(found) if found else 0.0

        for i, j in itertools.combinations(range(n), 2):
            swapped = list(hit)
            swapped[i], swapped[j] = hit[j], hit[i]
            put(i, j, precision(swapped) - precision(hit))
    elif name == "P":
        for i in range(size):
            for j in range(size, n):
                put(i, j, float(np.float32(hit[j] - hit[i]) / np.float32(size)))
    elif name == "RR":

        def reciprocal(list_):
            return next((1 / (r + 1) for r, v in enumerate(list_[:size]) if v), 0.0)

        for i, j in itertools.combinations(range(n), 2):
            swapped = list(hit)
            swapped[i], swapped[j] = hit[j], hit[i]
            put(i, j, reciprocal(swapped) - reciprocal(hit))
    elif name == "ERR":
        stop = [(2 ** y[r] - 1) / 16 if r < size else 0.0 for r in range(n)]
        label = [y[r] if r < size else 0 for r in range(n)]
        past, p = [0.0] * n, 1.0
        for r in range(size):
            past[r] = p * (1 - stop[r])
            p = p * past[r]
        for i in range(size):
            for j in range(i + 1, n):
                if label[i] == label[j]:
                    continue
                before = past[i - 1] if i else 1.0
                value = before / (i + 1) * (stop[j] - stop[i])
                p = before * (stop[i] - stop[j])
                for r in range(i + 1, j):
                    value += p * stop[r] / (r + 1)
                    p *= 1 - stop[r]
                end = past[j - 1] * ((1 - stop[j]) * stop[i] / (1 - stop[i]) - stop[j])
                put(i, j, value + end / (j + 1))
    return change


def best_changes(k, y):
    n = len(y)
    top, second, repeats, best = -1, -1, 0, []
    for r, v in enumerate(y):
        if v > top:
            if r < k:
                second, repeats = top, 0
            top = v
        elif v == top and r < k:
            repeats += 1
        best.append(top)
    second = max(second, 0)
    change = [[0.0] * n for _ in range(n)]
    for i in range(min(n, k)):
        for j in range(k, n):
            if y[i] == y[j] or y[j] == best[k - 1]:
                value = 0
            elif y[j] > best[k - 1]:
                value = y[j] - best[i]
            else:
                value = 0 if y[i] < best[k - 1] or repeats > 1 else top - max(second, y[j])
            change[i][j] = change[j][i] = value
    return change


def ranklib_lists(scores, labels, name, k, cut):
    order, n = ranked(scores), len(scores)
    y = [labels[row] for row in order]
    change = best_changes(k, y) if name == "BEST" else ranklib_changes(name, k, y)
    grad, hess = [0.0] * n, [0.0] * n
    for i in range(n):
        for j in range(n):
            if i > cut and j > cut:
                break
            if y[i] > y[j]:
                gap = scores[order[i]] - scores[order[j]]
                rho = sigmoid(-gap)
                for row, sign in ((order[i], -1), (order[j], 1)):
                    grad[row] += sign * rho * abs(change[i][j])
                    hess[row] += rho * sigmoid(gap) * abs(change[i][j])
    return grad, hess


def compare(term, lists, scores, labels, sizes):
    grad, hess = lo.gradient(term, scores, labels, group=sizes)
    for q in queries_of(sizes):
        want = lists(list(scores[q]), [v.item() for v in labels[q]])
        for got, expected in zip((grad[q], hess[q]), want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10 * (1 + np.abs(expected).max()))


@settings(max_examples=60, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=10))
def test_catboost_equals_its_definition(data):
    scores, labels, sizes = data
    for options in (
        {"metric": "NDCG"},
        {"metric": "NDCG", "top": 3, "norm": False},
        {"metric": "DCG", "top": 2, "type": "Exp", "denominator": "Position", "sigma": 0.5},
        {"metric": "MRR"},
        {"metric": "MAP", "norm": False, "sigma": 2.0},
        {"metric": "MAP"},
    ):
        compare(lo.compat.catboost(**options), lambda s, y, o=options: catboost_lists(s, y, **o), scores, labels, sizes)
    compare(CHANCES[0], lambda s, y: catboost_lists(s, y, "ERR"), scores, labels / 4, sizes)


@settings(max_examples=60, deadline=None)
@given(data=ranked_data(max_queries=3, max_rows=10))
def test_ranklib_equals_its_definition(data):
    scores, labels, sizes = data
    for metric, name, k, cut in (
        ("NDCG@10", "NDCG", 10, 10),
        ("NDCG@3", "NDCG", 3, 3),
        ("DCG", "DCG", 10, 10),
        ("MAP", "MAP", 0, 0),
        ("MAP@2", "MAP", 2, 2),
        ("P@3", "P", 3, 3),
        ("RR", "RR", 0, 0),
        ("RR@4", "RR", 4, 4),
        ("ERR@10", "ERR", 10, 10),
        ("ERR@3", "ERR", 3, 3),
        ("Best@1", "BEST", 1, 1),
        ("Best@3", "BEST", 3, 3),
    ):
        at = (name, k, cut)
        compare(lo.compat.ranklib(metric), lambda s, y, at=at: ranklib_lists(s, y, *at), scores, labels, sizes)


# -------------------------------------------------------------------------------------------------- hand-made numbers
LIST = np.array([3.0, 2.0, 1.0])  # scores of rows that rank as they stand


@pytest.mark.parametrize(
    ("term", "labels", "changes"),
    [  # pairs (better row, worse row): the change, of rows that rank as they stand
        (lo.compat.catboost(metric="MAP", norm=False), [0, 1, 0], {(1, 0): 1.0, (1, 2): 0.5}),
        # row 2 would raise the reciprocal rank by 1/1 - 1/2, and is held to raise it by 1/1 - 1/3
        (lo.compat.catboost(metric="MRR", norm=False), [0, 1, 1], {(1, 0): 1 / 2, (2, 0): 2 / 3}),
        # rows 0 and 2: what row 1 between them gains is left out, since it is labelled like row 0
        (lo.compat.catboost(metric="ERR", norm=False), [0.5, 0.5, 0.0], {(0, 2): 1 / 3, (1, 2): 1 / 24}),
        (lo.compat.ranklib("MAP"), [0, 0, 1], {(2, 0): 2 / 3}),  # not (2, 1), though 1/2 - 1/3: the cut
        (lo.compat.ranklib("RR"), [0, 0, 1], {}),
        (lo.compat.ranklib("NDCG@1"), [0, 1, 2], {(1, 0): (1 - 1 / math.log2(3)) / 3, (2, 0): 1 / 2}),
        (lo.compat.ranklib("Best@1"), [1, 0, 2], {(0, 1): 2, (2, 0): 1}),  # (0, 1) is 1: the best of all is taken
    ],
)  # fmt: skip
def test_hand_made_changes(term, labels, changes):
    want = np.zeros(3)
    for (high, low), change in changes.items():
        first = change * sigmoid(LIST[low] - LIST[high])
        want += first * (np.eye(3)[low] - np.eye(3)[high])
    grad, _ = lo.gradient(term, LIST, labels, group=[3])
    np.testing.assert_allclose(grad, want, atol=1e-12)


def test_hand_made_xendcg():
    """Two rows of label 0: the numbers of LightGBM's generator are 0.00125 and 0.56359 for the C library's seed 1."""
    grad, hess = lo.gradient(lo.compat.lightgbm("rank_xendcg", objective_seed=1), [0.0, 0.0], [0, 0], group=[2])
    phi = [1 - 41 / 32768, 1 - 18467 / 32768]  # what rand() of that library gives first
    first = 0.5 - phi[0] / sum(phi)
    # second order: p times the other's first / (1 - p); third: the same once more
    np.testing.assert_allclose(grad, [first - first + first, -(first - first + first)], atol=1e-12)
    assert hess.tolist() == [0.25, 0.25]


# ----------------------------------------------------------------------------------------------- what every term does
@pytest.mark.parametrize("term", [*TERMS, *BINARY, *CHANCES], ids=repr)
def test_terms_are_values(term):
    assert pickle.loads(pickle.dumps(term)) == term
    assert hash(pickle.loads(pickle.dumps(term))) == hash(term)
    assert eval(repr(term), {"compat": lo.compat}) == term
    with pytest.raises(AttributeError):
        term.label = "x"
    assert not set(term.name) & set(" \t\n:,")


@pytest.mark.parametrize("term", [*TERMS, *BINARY, *CHANCES], ids=repr)
@settings(max_examples=20, deadline=None)
@given(data=ranked_data())
def test_gradient(term, data):
    scores, labels, sizes = data
    labels = labels_for(term, labels)
    given_data = dict(group=sizes, other=labels)
    grad, hess = lo.gradient(term, scores, labels, **given_data)
    assert np.isfinite(grad).all()
    assert (hess >= 0).all()
    scale = 1e-9 * (1 + np.abs(grad).max())
    if term.name != "rank_xendcg":  # which divides by 1 - p, as rounded
        for q in queries_of(sizes):
            assert abs(grad[q].sum()) <= scale * len(grad[q])
    report = lo.evaluate(term, scores, labels, **given_data)
    assert next(iter(report)) == f"cost/{term.name}"
    assert all(np.isfinite(value) for value in report.values())
    weighted, _ = lo.gradient(term, scores, labels, weights=np.full(len(scores), 2.0), **given_data)
    times = 1 if term.call == "xgboost" else 2  # XGBoost divides by the mean weight
    np.testing.assert_allclose(weighted, times * grad, atol=scale)


@pytest.mark.parametrize("term", [*TERMS, *BINARY, *CHANCES], ids=repr)
def test_extreme_lists(term):
    for labels, sizes in (([], []), ([1], [1]), ([0, 0, 0], [3]), ([1], [1])):
        grad, hess = lo.gradient(term, np.arange(len(labels)), labels, group=sizes, other=labels)
        if term.name != "rank_xendcg":
            assert grad.tolist() == hess.tolist() == [0.0] * len(labels)
        assert np.isfinite(grad).all()


@pytest.mark.parametrize("term", [*TERMS, *BINARY, *CHANCES], ids=repr)
def test_result_does_not_depend_on_the_number_of_threads(term):
    rng = np.random.default_rng(0)
    n = 20_000
    labels = labels_for(term, rng.integers(0, 5, n))
    queries = Queries.from_arrays(labels, group=[10] * (n // 10), columns={"other": labels})
    scores = rng.normal(size=n)
    runs = [Run(term, queries, threads=threads) for threads in (1, 2)]
    assert len(runs[1].work.ranking.parts) > len(runs[0].work.ranking.parts)
    for one, two in zip(runs[0].step(scores), runs[1].step(scores), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("term", [*TERMS[:4], *TERMS[5:10], *BINARY[:1], lo.compat.ranklib("MAP@10")], ids=repr)
def test_steps_against_the_gradient_improve_the_ranking(term):
    rng = np.random.default_rng(0)
    sizes = [10] * 30
    scores, labels = rng.normal(size=300), labels_for(term, (rng.random(300) < 0.2) * rng.integers(1, 5, 300))
    metric = lo.NDCG()
    before = metric(scores, labels, group=sizes)
    for _ in range(20):
        scores = scores - 0.3 * lo.gradient(term, scores, labels, group=sizes)[0]
    assert metric(scores, labels, group=sizes) > before + 0.1


def test_cost():
    """The pairs' logistic losses by their weights, averaged over the queries by weight."""
    scores, labels, group = [0.2, 0.5, 1.0, 0.0], [1, 0, 0, 1], [2, 2]
    for term, factor in ((lo.compat.xgboost("rank:pairwise", **PLAIN), 1.0), (lo.compat.ranklib("RR@2"), 0.5)):
        cost = lo.evaluate(term, scores, labels, group=group, weights=[1.0, 3.0])[f"cost/{term.name}"]
        assert cost == pytest.approx(factor * (softplus(0.3) + 3 * softplus(1.0)) / 4)
    probabilities = np.exp([0.2, 0.5]) / np.exp([0.2, 0.5]).sum()
    gamma = [41 / 32768, 18467 / 32768]
    target = np.array([2 - gamma[0], 1 - gamma[1]])
    term = lo.compat.lightgbm("rank_xendcg", objective_seed=1)
    cost = lo.evaluate(term, scores[:2], labels[:2], group=[2])["cost/rank_xendcg"]
    assert cost == pytest.approx(-(target / target.sum()) @ np.log(probabilities))


def test_readings():
    scores, labels, group = [0.3, 0.2, 0.1], [0, 2, 1], [3]
    for term, name, value in (
        (lo.compat.lightgbm(lambdarank_truncation_level=2), "ndcg@2", lo.NDCG(2)),
        (lo.compat.lightgbm(label_gain=[0, 1, 7]), "ndcg@30", lo.NDCG(gain=[0, 1, 7])),
        (lo.compat.lightgbm("rank_xendcg"), "ndcg", lo.NDCG()),
        (lo.compat.xgboost(lambdarank_num_pair_per_sample=1, ndcg_exp_gain=False), "ndcg@1", lo.NDCG(1, "linear")),
        (lo.compat.catboost(metric="DCG", top=2), "dcg@2", lo.DCG(2, "linear")),
        (lo.compat.catboost(denominator="Position"), "ndcg", lo.NDCG(gain="linear", discount="reciprocal")),
        (lo.compat.catboost(metric="MRR"), "mrr", lo.MRR()),
        (lo.compat.ranklib("ERR@2"), "err@2", lo.ERR(2)),
        (lo.compat.ranklib("MAP"), "map", lo.MAP()),
    ):
        assert lo.evaluate(term, scores, labels, group=group)[name] == pytest.approx(value(scores, labels, group=group))
    for term in (lo.compat.xgboost("rank:pairwise"), lo.compat.ranklib("Best@2")):
        assert list(lo.evaluate(term, scores, labels, group=group)) == [f"cost/{term.name}"]


def test_labels_of_a_column():
    term = lo.compat.xgboost(label="quality")
    assert term.name == "quality.ndcg@32"
    got = lo.gradient(term, [0.1, 0.2], [0, 0], group=[2], quality=[1, 0])
    np.testing.assert_array_equal(got, lo.gradient(lo.compat.xgboost(), [0.1, 0.2], [1, 0], group=[2]))


# --------------------------------------------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lo.compat.lightgbm("ndcg"), r"objective must be 'lambdarank' or 'rank_xendcg', found 'ndcg'"),
        (lambda: lo.compat.lightgbm(lambdarank_norm=1), "lambdarank_norm must be True or False, found 1"),
        (lambda: lo.compat.lightgbm(lambdarank_truncation_level=0), "lambdarank_truncation_level must be a whole numb"),
        (lambda: lo.compat.lightgbm(sigmoid=0), "sigmoid must be above 0"),
        (lambda: lo.compat.lightgbm(label_gain=[]), "label_gain must not be empty"),
        (lambda: lo.compat.lightgbm(label_gain=[1, 0]), "label_gain must not be empty, negative or falling"),
        (lambda: lo.compat.lightgbm(objective_seed=-1), "objective_seed must be a whole number from 0"),
        (lambda: lo.compat.lightgbm(label="a b"), "label must be a column's name"),
        (lambda: lo.compat.xgboost("ndcg"), "objective must be 'rank:ndcg', 'rank:map' or 'rank:pairwise'"),
        (lambda: lo.compat.xgboost(lambdarank_pair_method="all"), "lambdarank_pair_method must be 'topk' or 'mean'"),
        (lambda: lo.compat.xgboost(lambdarank_num_pair_per_sample=0), "lambdarank_num_pair_per_sample must be a whole"),
        (lambda: lo.compat.xgboost(ndcg_exp_gain="yes"), "ndcg_exp_gain must be True or False"),
        (lambda: lo.compat.catboost(metric="AUC"), "metric must be 'NDCG', 'DCG', 'MRR', 'ERR' or 'MAP', found 'AUC'"),
        (lambda: lo.compat.catboost(sigma=-1.0), "sigma must be above 0"),
        (lambda: lo.compat.catboost(norm=None), "norm must be True or False"),
        (lambda: lo.compat.catboost(top=0), "top must be a whole number from 1, or -1 for all, found 0"),
        (lambda: lo.compat.catboost(top=-1.0), "top must be a whole number"),
        (lambda: lo.compat.catboost(type="exp"), "type must be 'Base' or 'Exp', found 'exp'"),
        (lambda: lo.compat.catboost(denominator=2), "denominator must be 'LogPosition' or 'Position'"),
        (lambda: lo.compat.ranklib("AUC"), "metric must be 'MAP', 'NDCG@k'.*found 'AUC'"),
        (lambda: lo.compat.ranklib("NDCG@0"), "with a k from 1, found 'NDCG@0'"),
        (lambda: lo.compat.ranklib(10), "metric must be"),
    ],
)
def test_wrong_parameters_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("term", "labels", "words"),
    [
        (lo.compat.lightgbm(), [0, 1.5], r"label: lambdarank takes whole numbers from 0 to 30, row 1 is 1.5; round"),
        (lo.compat.lightgbm(), [0, 31], "lambdarank takes whole numbers from 0 to 30, row 1 is 31"),
        (lo.compat.lightgbm(label_gain=[0, 1]), [2, 0], "from 0 to 1, row 0 is 2"),
        (lo.compat.lightgbm("rank_xendcg"), [0, 0.5], "rank_xendcg takes whole numbers"),
        (lo.compat.xgboost(), [0, -1], "rank:ndcg takes whole numbers from 0 to 31, row 1 is -1"),
        (lo.compat.xgboost(ndcg_exp_gain=False), [0, -1], "rank:ndcg takes numbers from 0, row 1 is -1"),
        (lo.compat.xgboost("rank:map"), [0, 2], "rank:map takes whole numbers from 0 to 1, row 1 is 2; shift, scale"),
        (lo.compat.catboost(metric="ERR"), [0, 2], "CatBoost's ERR takes numbers from 0 to 1, row 1 is 2"),
        (lo.compat.ranklib("ERR@5"), [0, 5], "RankLib's ERR@5 takes whole numbers from 0 to 4, row 1 is 5"),
        (lo.compat.ranklib(), [0.5, 0], "whole numbers"),
    ],
)
def test_wrong_labels_are_refused(term, labels, words):
    with pytest.raises(ValueError, match=words):
        lo.gradient(term, [0.0, 0.0], labels, group=[2])


def test_no_queries_no_gradient():
    for term in (lo.compat.lightgbm(), lo.compat.ranklib()):
        with pytest.raises(ValueError, match="needs queries"):
            lo.gradient(term, [0.0, 1.0], [0, 1])
