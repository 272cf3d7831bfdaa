"""Distance covariance: the definition by n x n matrices, identities, groups, options, what is refused, as a budget."""

import pickle
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.terms.slices import SPREAD, directions
from tests.oracles import dcov2 as naive
from tests.oracles import standardised as standard


def weighted(x, b, w):
    """Value and slope with weights within the statistic, of scores and n x n distances b; equal weights: as `naive`."""
    a, sign = abs(x[:, None] - x), np.sign(x[:, None] - x)
    d2, d3, d4 = distinct(w)
    sums = b @ w
    total = w @ sums
    r = sums * (2 / d3 + 4 * w / d4)
    inner = b * (1 / d2 + (w[:, None] + w) / d3 + 2 * np.outer(w, w) / d4) - (r[:, None] + r) / 2 + total / d4
    inner *= np.outer(w, w)
    return (a * inner).sum(), 2 * (sign * inner).sum(1)


def distinct(w):
    """Sum of the products of the weights of 2, 3 and 4 different rows."""
    p1, p2, p3, p4 = (np.sum(w**k) for k in (1, 2, 3, 4))
    return (
        p1**2 - p2,
        p1**3 - 3 * p1 * p2 + 2 * p3,
        p1**4 - 6 * p1**2 * p2 + 3 * p2**2 + 8 * p1 * p3 - 6 * p4,
    )


def both(term, scores, **columns):
    value = lo.evaluate(term, scores, np.zeros(len(scores)), **columns)[f"cost/{term.name}"]
    return value, lo.gradient(term, scores, np.zeros(len(scores)), **columns)[0]


PRICE = lo.DistanceCovariance("price")


@pytest.mark.parametrize("n", [4, 5, 31, 32, 33, 100, 1023, 1025, 3000])
@pytest.mark.parametrize("ties", ["none", "scores", "both", "binary"])
def test_the_definition(n, ties):
    rng = np.random.default_rng(n)
    price = rng.normal(size=n)
    scores = 0.5 * price + rng.normal(size=n)
    if ties in ("scores", "both"):
        scores = np.round(scores, 1)
    if ties == "both":
        price = np.round(price, 1) + 0.01 * np.arange(n)[::-1] * (n < 6)
    if ties == "binary":
        price = (np.arange(n) % 2) * 1.0
    value, grad = both(PRICE, scores, price=price)
    wanted, slope = naive(scores, standard(price))
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, n * slope, atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 60), st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_the_definition_with_many_ties(n, seed, levels, prices):
    rng = np.random.default_rng(seed)
    scores, price = rng.integers(0, levels, n) * 1.0, np.sort(rng.integers(0, prices + 1, n)) * 1.0
    price[:2], price[-2:] = -1.0, 9.0  # enough of a spread
    value, grad = both(PRICE, scores, price=price)
    wanted, slope = naive(scores, standard(price))
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, n * slope, atol=1e-11)


def test_identities():
    rng = np.random.default_rng(1)
    price = rng.normal(size=200)
    scores = np.round(0.3 * price + rng.normal(size=200), 1)
    value, grad = both(PRICE, scores, price=price)
    assert grad.sum() == pytest.approx(0, abs=1e-11)
    assert grad @ scores / 200 == pytest.approx(value)
    for offset in (1e6, 1e9):  # scores in eighths are exact there
        eighths = np.round(8 * scores) / 8
        near, far = both(PRICE, eighths, price=price), both(PRICE, eighths + offset, price=price)
        assert far[0] == pytest.approx(near[0], rel=1e-12)
        np.testing.assert_array_equal(far[1], near[1])
    for other in (price + 1e9, price * 1e-7, -price, 3.0 - 1e5 * price):
        again, slope = both(PRICE, scores, price=other)
        assert again == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(slope, grad, atol=1e-5)
    order = rng.permutation(200)
    np.testing.assert_allclose(both(PRICE, scores[order], price=price[order])[1], grad[order], atol=1e-12)
    assert both(PRICE, 5 * scores, price=price)[0] == pytest.approx(5 * value)
    assert both(PRICE, -scores, price=price)[0] == pytest.approx(value)
    np.testing.assert_allclose(both(PRICE, np.full(200, 3.0), price=price)[1], 0, atol=1e-12)


def test_slopes_also_at_ties():
    rng = np.random.default_rng(2)
    price = rng.normal(size=40)
    scores = np.round(0.5 * price + rng.normal(size=40), 0)
    _, grad = both(PRICE, scores, price=price)
    for i in range(0, 40, 7):
        move = np.zeros(40)
        move[i] = 1e-4
        high, low = (both(PRICE, s, price=price)[0] for s in (scores + move, scores - move))
        assert grad[i] == pytest.approx(40 * (high - low) / 2e-4, abs=1e-9)


def test_independent_samples_go_both_ways():
    rng = np.random.default_rng(3)
    values = [both(PRICE, rng.normal(size=12), price=rng.normal(size=12))[0] for _ in range(200)]
    assert 60 < sum(value < 0 for value in values) < 160
    assert abs(np.mean(values)) < 4 * np.std(values) / 200**0.5


def test_groups():
    """Each on its own, by the weight of its rows; too small ones and those without spread are left out and counted."""
    rng = np.random.default_rng(4)
    sizes = np.array([3, 1, 6, 30, 8])
    scores, price, weights = rng.normal(size=48), rng.normal(size=48), rng.random(48) + 0.5
    price[40:] = 5.0
    price[47] = 6.0  # one row beside tied ones is no spread
    wanted, slope = 0.0, np.zeros(48)
    for a, b in ((4, 10), (10, 40)):
        value, grad = naive(scores[a:b], standard(price[a:b]))
        share = weights[a:b].sum()
        wanted += share * value / weights.sum()
        slope[a:b] = share * grad
    group = np.repeat(np.arange(5), sizes)
    shuffled = rng.permutation(48)
    for term, order, options in (
        (lo.DistanceCovariance("price", True), np.arange(48), {"group": sizes}),
        (lo.DistanceCovariance("price", "era"), shuffled, {"era": group * 2.5}),
    ):
        given = dict(price=price[order], weights=weights[order])
        given |= {name: values[order] if name == "era" else values for name, values in options.items()}
        found = lo.evaluate(term, scores[order], np.zeros(48), **given)
        assert found["price.dcov2"] == pytest.approx(wanted)
        assert found["skipped/price.dcov2"] == 3
        grad, hess = lo.gradient(term, scores[order], np.zeros(48), **given)
        np.testing.assert_allclose(grad, slope[order], atol=1e-12)
        assert not hess.any()
    by_label = lo.evaluate(lo.DistanceCovariance("price", "label"), scores, group, price=price, weights=weights)
    assert by_label["price.dcov2"] == pytest.approx(wanted)


def test_single_precision_and_threads_change_nothing():
    rng = np.random.default_rng(5)
    n = 40_000
    price = rng.normal(size=n)
    scores = price + rng.normal(size=n)
    queries = Queries.from_arrays(np.zeros(n), group=[1000] * 40, columns={"price": price})
    for within in (False, True):
        term = lo.DistanceCovariance("price", within)
        one, three = Run(term, queries, threads=1), Run(term, queries, threads=3)
        for _ in range(3):
            first, second = one.step(scores)[0].copy(), three.step(scores)[0].copy()
            np.testing.assert_array_equal(first, second)
            scores = scores + 0.1 * rng.normal(size=n)
        assert one.history == three.history
        np.testing.assert_allclose(Run(term, queries, dtype=np.float64).step(scores)[0], one.step(scores)[0], rtol=1e-6)


def test_what_is_refused():
    few, flat = dict(price=[1.0, 2.0, 3.0]), dict(price=[7.0] * 9)
    beside = dict(price=[0.0] + [1.0] * 7 + [2.0])  # one value on either side of tied ones
    for columns, words in ((few, "'price' has 3 rows, 4"), (flat, "no usable spread"), (beside, "no usable spread")):
        with pytest.raises(ValueError, match=words):
            lo.gradient(PRICE, np.arange(len(columns["price"])), np.zeros(len(columns["price"])), **columns)
    with pytest.raises(ValueError, match="control='price': this data set of 4 rows has no such column"):
        lo.gradient(PRICE, np.zeros(4), np.zeros(4))
    with pytest.raises(ValueError, match="needs queries"):
        lo.gradient(lo.DistanceCovariance("price", True), np.zeros(4), np.zeros(4), price=np.arange(4))
    with pytest.raises(ValueError, match="within_group='era'"):
        lo.gradient(lo.DistanceCovariance("price", "era"), np.zeros(4), np.zeros(4), price=np.arange(4))
    with pytest.raises(ValueError, match="column 'price' must be finite"):
        lo.gradient(PRICE, np.zeros(4), np.zeros(4), price=[0, 1, np.nan, 3])
    for control, within in ((None, False), ("a b", False), ("p", None), (("a", ""), False)):
        with pytest.raises(ValueError, match="must be"):
            lo.DistanceCovariance(control, within)
    for wrong, words in (
        (dict(control=("a",)), "two to four columns, found 1"),
        (dict(control=tuple("abcde")), "take several terms"),
        (dict(control=("a", "a")), "control: each column once"),
        (dict(control="p", link="probit"), "link must be None, 'logit' or 'log', found 'probit'"),
        (dict(control="p", weighted=1), "weighted must be True or False"),
        (dict(control="p", categorical="yes"), "categorical must be True or False"),
        (dict(control=("a", "b"), categorical=True), "make one column of the categories' combinations"),
        (dict(control="p", slices=3), "slices must be a whole number from 4"),
    ):
        with pytest.raises(ValueError, match=words):
            lo.DistanceCovariance(**wrong)
    light = dict(price=[1.0, 2.0, 3.0, 4.0, 5.0], weights=[1.0, 0.0, 1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="'price' has 3 rows with a weight, 4 rows are wanted"):
        lo.gradient(lo.DistanceCovariance("price", weighted=True), np.arange(5.0), np.zeros(5), **light)
    with pytest.raises(ValueError, match="columns 'price' and 'other' have no usable spread"):
        lo.gradient(lo.DistanceCovariance(("price", "other")), np.zeros(9), np.zeros(9), other=np.arange(9), **flat)


def random_case(seed, n=None):
    """Scores with ties, a control, weights of which some are 0."""
    rng = np.random.default_rng(seed)
    n = n or int(rng.integers(6, 60))
    control = rng.normal(size=n) if seed % 2 else rng.integers(0, 5, n) * 1.0
    control[:2], control[2:4] = -3.0 - np.arange(2), 3.0 + np.arange(2)
    scores = np.round(0.5 * control + rng.normal(size=n), rng.integers(0, 4))
    weights = rng.exponential(size=n) * (rng.random(n) < 0.8)
    weights[:4] = rng.random(4) + 0.1
    return scores, control, weights


def weighted_standard(c, w):
    centred = c - (w @ c) / w.sum()
    return centred / np.sqrt((w @ centred**2) / w.sum())


def apart(c):
    """Distances, n x n, of numbers, categories or points."""
    c = np.asarray(c)
    return abs(c[:, None] - c) if c.ndim == 1 else np.sqrt(((c[:, None] - c) ** 2).sum(2))


def test_weights_within_are_a_mean_over_different_rows():
    """By brute force: each of the three means over all pairs, triples and quadruples of different rows."""
    scores, control, weights = random_case(1, n=7)
    weights = weights + 0.2
    a, b = apart(scores), apart(weighted_standard(control, weights))
    found = np.zeros(3)
    for i, j, k, m in permutations(range(7), 4):
        found += np.prod(weights[[i, j, k, m]]) * np.array([a[i, j] * b[i, j], a[i, j] * b[i, k], a[i, j] * b[k, m]])
    pairs = sum(weights[i] * weights[j] * a[i, j] * b[i, j] for i, j in permutations(range(7), 2))
    triples = sum(np.prod(weights[[i, j, k]]) * a[i, j] * b[i, k] for i, j, k in permutations(range(7), 3))
    d2, d3, d4 = distinct(weights)
    wanted = pairs / d2 - 2 * triples / d3 + found[2] / d4
    assert weighted(scores, b, weights)[0] == pytest.approx(wanted, rel=1e-12)
    term = lo.DistanceCovariance("price", weighted=True)
    assert both(term, scores, price=control, weights=weights)[0] == pytest.approx(wanted, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_weights_within(seed):
    scores, control, weights = random_case(seed)
    term = lo.DistanceCovariance("price", weighted=True)
    value, grad = both(term, scores, price=control, weights=weights)
    wanted, slope = weighted(scores, apart(weighted_standard(control, weights)), weights)
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, weights.sum() * slope, atol=1e-11)
    assert not grad[weights == 0].any()
    kept = weights > 0  # rows of weight 0 take no part, whatever they hold
    without = both(term, scores[kept], price=control[kept], weights=weights[kept])
    assert without[0] == pytest.approx(value, abs=1e-12)
    np.testing.assert_allclose(grad[kept], without[1], atol=1e-11)
    for equal in (np.ones(len(scores)), np.full(len(scores), 7.5)):
        same, plain = (both(t, scores, price=control, weights=equal) for t in (term, PRICE))
        assert same[0] == pytest.approx(plain[0], abs=1e-13)
        np.testing.assert_allclose(same[1], plain[1], atol=1e-11)
    assert both(term, scores, price=control)[0] == both(PRICE, scores, price=control)[0]


def test_one_weight_far_above_the_others():
    scores, control, weights = random_case(3, n=30)
    weights = weights + 0.5
    weights[5] = 1e5  # power sums would cancel
    value, _ = both(lo.DistanceCovariance("price", weighted=True), scores, price=control, weights=weights)
    x, y, w = (values.astype(np.longdouble) for values in (scores, control, weights))
    wanted, _ = weighted(x, apart(weighted_standard(y, w)), w)
    assert value == pytest.approx(float(wanted), rel=1e-7)


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.booleans())
def test_categories(seed, count, within):
    """Distance 1 between any two; refused exactly where the distance variance is 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    kind = rng.integers(0, count, n) * 2.5 - 4
    scores, weights = np.round(rng.normal(size=n), 1), rng.random(n) + 0.1
    options = dict(weights=weights) if within else {}
    term = lo.DistanceCovariance("kind", categorical=True, weighted=within)
    b = 1.0 * (kind[:, None] != kind)
    if n < 4 or variance(b) < 1e-12:
        with pytest.raises(ValueError, match=r"'kind' has (no usable categories|3 rows)"):
            both(term, scores, kind=kind, **options)
        return
    value, grad = both(term, scores, kind=kind, **options)
    w = weights if within else np.ones(n)
    wanted, slope = weighted(scores, b, w)
    assert value == pytest.approx(wanted, abs=1e-12)
    np.testing.assert_allclose(grad, w.sum() * slope, atol=1e-11)


def variance(b):
    """Unbiased squared distance variance of n x n distances."""
    n = len(b)
    rows = b.sum(1)
    return ((b**2).sum() - 2 * (rows @ rows) / (n - 2) + b.sum() ** 2 / ((n - 1) * (n - 2))) / (n * (n - 3))


def test_options_in_groups():
    """Everything group by group: weights within, categories, joint controls, with small and useless groups left out."""
    rng = np.random.default_rng(7)
    sizes = np.array([3, 0, 40, 9, 25, 4])
    n, group = sizes.sum(), np.repeat(np.arange(6), sizes)
    scores, weights = np.round(rng.normal(size=n), 1), rng.random(n) + 0.1
    columns = dict(a=rng.normal(size=n), b=rng.integers(0, 4, n) * 1.0, kind=rng.integers(0, 3, n) * 1.0)
    columns["a"][group == 5] = columns["kind"][group == 5] = 0.0
    order = rng.permutation(n)
    for term in (
        lo.DistanceCovariance("a", "era", weighted=True),
        lo.DistanceCovariance("kind", "era", categorical=True),
        lo.DistanceCovariance("kind", "era", categorical=True, weighted=True),
        lo.DistanceCovariance(("a", "b"), "era", slices=8),
    ):
        wanted, slope = 0.0, np.zeros(n)
        for g in (2, 3, 4):
            rows = group == g
            w = weights[rows] if term.weighted else np.ones(rows.sum())
            if term.categorical:
                b = 1.0 * (columns["kind"][rows][:, None] != columns["kind"][rows])
            elif isinstance(term.control, tuple):
                z = np.column_stack([standard(columns[name][rows]) for name in term.control])
                b = SPREAD[2] * np.mean([apart(z @ u) for u in directions(8, 2)], axis=0)
            else:
                b = apart(weighted_standard(columns["a"][rows], w))
            value, grad = weighted(scores[rows], b, w)
            share = weights[rows].sum()
            wanted += share * value / weights.sum()
            slope[rows] = share * grad
        given = {name: values[order] for name, values in columns.items()} | dict(era=group[order] - 2.5)
        found = lo.evaluate(term, scores[order], np.zeros(n), weights=weights[order], **given)
        assert found[term.name] == pytest.approx(wanted, abs=1e-12)
        assert found[f"skipped/{term.name}"] == 2  # groups of a column are those it has: none without rows
        grad, _ = lo.gradient(term, scores[order], np.zeros(n), weights=weights[order], **given)
        np.testing.assert_allclose(grad, slope[order], atol=1e-11)


@pytest.mark.parametrize(("names", "within"), [("ab", 0.003), ("abc", 0.02), ("abcd", 0.04)])
def test_joint_control_is_close_to_euclidean_distances(names, within):
    rng = np.random.default_rng(8)
    columns = {name: rng.normal(size=300) for name in names}
    scores = columns["a"] * columns["b"] + 0.5 * columns["a"] + 0.3 * rng.normal(size=300)
    exact, slope = weighted(scores, apart(np.column_stack([standard(c) for c in columns.values()])), np.ones(300))
    value, grad = both(lo.DistanceCovariance(tuple(names)), scores, **columns)
    assert value == pytest.approx(exact, rel=within)
    assert abs(grad - 300 * slope).max() < 3 * within * abs(300 * slope).max()
    finer, _ = both(lo.DistanceCovariance(tuple(names), slices=100), scores, **columns)
    assert finer == pytest.approx(exact, rel=within / 3)


def test_joint_control_sees_what_each_alone_does_not():
    rng = np.random.default_rng(9)
    a, b = rng.normal(size=(2, 4000))
    scores = np.sign(a) * np.sign(b) + 0.1 * rng.normal(size=4000)
    joint = both(lo.DistanceCovariance(("a", "b")), scores, a=a, b=b)[0]
    alone = [both(lo.DistanceCovariance(name), scores, a=a, b=b)[0] for name in "ab"]
    assert joint > 0.02
    assert max(map(abs, alone)) < 0.1 * joint


LINKS = {"logit": lambda s: 1 / (1 + np.exp(-s)), "log": np.exp}


@pytest.mark.parametrize("link", LINKS)
def test_link(link):
    """The dependence of a function of the scores: its value, and its slopes by differences."""
    scores, control, _ = random_case(5, n=40)
    term = lo.DistanceCovariance("price", link=link)
    value, grad = both(term, scores, price=control)
    assert term.name == "price.dcov2"
    assert value == pytest.approx(both(PRICE, LINKS[link](scores), price=control)[0], abs=1e-13)
    for i in range(0, 40, 7):
        move = np.zeros(40)
        move[i] = 1e-5
        high, low = (both(term, s, price=control)[0] for s in (scores + move, scores - move))
        assert grad[i] == pytest.approx(40 * (high - low) / 2e-5, rel=1e-4, abs=1e-7)
    with pytest.raises(ValueError, match="gradient"):
        Run(lo.DistanceCovariance("price", link="log"), made(price=control)).step(scores + 1e4)
    extreme, slopes = both(lo.DistanceCovariance("price", link="logit"), 1e3 * scores, price=control)
    assert np.isfinite(extreme)
    assert np.isfinite(slopes).all()


def made(weights=None, group=None, **columns):
    n = len(next(iter(columns.values())))
    return Queries.from_arrays(np.zeros(n), weights=weights, group=group, columns=columns)


def test_through_any_function_that_rises():
    scores, control, weights = random_case(6, n=60)
    queries = made(weights, [20, 30, 10], price=control, era=np.arange(60) // 20)
    for term in (PRICE, lo.DistanceCovariance("price", "era"), lo.DistanceCovariance("price", weighted=True)):
        run = Run(term, queries, dtype=np.float64)
        run.step(scores)
        prepared = run.work.prepared[0]
        for outputs in (np.floor(scores), 3 * scores + 1, np.tanh(scores), 0 * scores):
            wanted = Run(term, queries, dtype=np.float64).evaluate(outputs)["price.dcov2"].value
            assert term.through(prepared, outputs) == pytest.approx(wanted, abs=1e-13)
            assert term.readings(prepared, run.work.ranking)["price.dcov2"].value == pytest.approx(wanted, abs=1e-13)
        eighths = np.round(8 * scores) / 8
        assert term.through(prepared, eighths + 1e9) == pytest.approx(term.through(prepared, eighths), rel=1e-12)


def test_leaning_is_pearsons_correlation():
    scores, control, weights = random_case(7, n=60)
    weights += 0.1
    group = np.repeat([0, 1, 2], [30, 27, 3])
    queries = made(weights, price=control, era=group, other=scores)

    def leaning(scores, *given, **options):
        term = lo.DistanceCovariance(*given, **options)
        run = Run(term, queries)
        run.step(scores)
        return term.leaning(run.work.prepared[0], run.work.ranking)

    assert leaning(scores, "price") == pytest.approx(np.corrcoef(scores, control)[0, 1])
    assert leaning(scores + 1e9, "price") == pytest.approx(np.corrcoef(scores, control)[0, 1], rel=1e-5)
    spread = np.cov(scores, control, aweights=weights)
    wanted = spread[0, 1] / np.sqrt(spread[0, 0] * spread[1, 1])
    assert leaning(scores, "price", weighted=True) == pytest.approx(wanted)
    each = [np.corrcoef(scores[group == g], control[group == g])[0, 1] for g in (0, 1)]
    share = [weights[group == g].sum() / weights.sum() for g in (0, 1)]
    assert leaning(scores, "price", "era") == pytest.approx(np.dot(share, each))
    assert leaning(np.full(60, 3.0), "price") == leaning(np.full(60, 0.1), "price", "era") == 0.0
    assert np.isnan(leaning(scores, ("price", "other")))
    assert np.isnan(leaning(scores, "era", categorical=True))


def test_options_are_part_of_the_value():
    terms = [
        PRICE, lo.DistanceCovariance("price", link="log"), lo.DistanceCovariance("price", weighted=True),
        lo.DistanceCovariance("price", categorical=True), lo.DistanceCovariance(["price", "era"]),
        lo.DistanceCovariance(("price", "era"), "label", slices=8),
    ]  # fmt: skip
    assert len(set(terms)) == len(terms)
    for term in terms:
        assert eval(repr(term), {"DistanceCovariance": lo.DistanceCovariance}) == term
        assert pickle.loads(pickle.dumps(term)) == term
    assert terms[4].name == "price-era.dcov2"
    assert terms[4] == lo.DistanceCovariance(("price", "era"))


def test_one_sort_serves_all_controls_of_the_same_groups(monkeypatch):
    from lambda_objectives.kernels import ordering

    sorts = []
    plain = ordering.below
    monkeypatch.setattr(ordering, "below", lambda *given: (sorts.append(1), plain(*given))[1])
    scores, control, _ = random_case(8, n=60)
    queries = made(None, [20, 40], a=control, b=control**2 + scores, c=-control, d=np.arange(60) % 7)
    terms = [lo.DistanceCovariance(name, within) for within in (False, True) for name in "abc"]
    run = Run(lo.WeightedSum(terms, [1.0] * 6), queries, dtype=np.float64)
    for round in range(3):
        run.evaluate(scores * (-1) ** round + round)
        assert len(sorts) == 2 * (round + 1)
    alone = {term: Run(term, queries, dtype=np.float64).evaluate(scores + 2) for term in terms}
    for term, prepared in zip(terms, run.work.prepared, strict=True):
        assert term.readings(prepared, run.work.ranking)[term.name] == alone[term][term.name]
    moved = run.work.ranking.shifted(-2 * run.work.ranking.scores)
    grad, hess = np.empty((2, 60))
    assert terms[0].gradient(run.work.prepared[0], moved, grad, hess) == pytest.approx(
        alone[terms[0]]["a.dcov2"].value
    )  # fmt: skip


@pytest.mark.parametrize(
    "term",
    [
        PRICE,
        lo.DistanceCovariance("price", "era"),
        lo.DistanceCovariance("price", weighted=True),
        lo.DistanceCovariance("kind", categorical=True),
        lo.DistanceCovariance(("price", "kind"), slices=4),
    ],
    ids=repr,
)
def test_any_number_of_threads_gives_the_same_bits(term):
    """In one group of several pieces and blocks, and in groups of very different sizes."""
    rng = np.random.default_rng(10)
    n = 70_000
    price = rng.normal(size=n)
    era = np.repeat(np.arange(104), [20_000, 30_000, *[198] * 101, 2])
    queries = made(rng.random(n), price=price, era=era, kind=rng.integers(0, 9, n))
    scores = np.where(rng.random(n) < 0.1, 0.0, price + rng.normal(size=n))
    one, two, three = (Run(term, queries, threads=t, dtype=np.float64) for t in (1, 2, 3))
    wanted = one.step(scores)[0]
    for run in (two, three):
        np.testing.assert_array_equal(run.step(scores)[0], wanted)
        assert run.history == one.history


@pytest.mark.slow  # its import compiles
@pytest.mark.parametrize(
    "term",
    [
        lo.DistanceCovariance("a"),
        lo.DistanceCovariance("a", "era"),
        lo.DistanceCovariance(("a", "b"), "era", link="logit", slices=6),
    ],
    ids=repr,
)
def test_the_array_form_in_place_of_the_loops(term):
    """What device="cuda" computes by CuPy, here by NumPy; round after round, and in every reading."""
    rng = np.random.default_rng(8)
    n = 500
    columns = {"a": rng.normal(size=n), "b": rng.integers(0, 3, n) * 1.0, "era": rng.integers(0, 9, n) * 1.0}
    data = Queries.from_arrays(np.zeros(n), weights=rng.random(n), columns=columns)
    loops, arrays = (Run(term, data, dtype=np.float64, arrays=xp) for xp in (None, np))
    for _ in range(3):
        scores = np.round(columns["a"] + rng.normal(size=n), 1)
        np.testing.assert_allclose(arrays.step(scores)[0], loops.step(scores)[0], atol=1e-11)
    assert arrays.history.keys() == loops.history.keys()
    for name, values in arrays.history.items():
        assert values == pytest.approx(loops.history[name], abs=1e-12)
    assert arrays.work.prepared[0].plans


def test_training_data_of_no_use_to_any_group_are_refused_and_others_counted():
    era = np.repeat(np.arange(5.0), 3)
    term = lo.DistanceCovariance("price", "era")
    given = dict(price=np.arange(15.0), era=era)
    with pytest.raises(ValueError, match="in none of the 5 groups of within_group='era' has 'price' 4 rows"):
        lo.gradient(term, np.zeros(15), np.zeros(15), **given)
    with pytest.raises(ValueError, match="in none of the 5 groups"):
        lo.gradient(lo.Decorrelated(lo.SquaredError(), "price", 1.0, within_group="era"), era, era, **given)
    assert lo.evaluate(term, np.arange(15.0), era, **given)["skipped/price.dcov2"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("ties", [False, True])
def test_dcor_finds_the_same(ties):
    """Where it is installed: importing it compiles for the better part of a minute."""
    dcor = pytest.importorskip("dcor")
    rng = np.random.default_rng(11)
    price = rng.normal(size=2000)
    scores = np.round(price**2 + rng.normal(size=2000), 1 if ties else 9)
    wanted = dcor.u_distance_covariance_sqr(scores, standard(price), method="naive")
    assert both(PRICE, scores, price=price)[0] == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("booster", ["lightgbm", "xgboost"])
def test_a_budget_is_kept(booster):
    """Nobody tunes a weight: the dependence ends within its bound, and the fit is better than without the feature."""
    pytest.importorskip(booster, minversion="4.0" if booster == "lightgbm" else None)
    rng = np.random.default_rng(6)
    n, rounds = 600, 80
    X = rng.normal(size=(n, 3))
    y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)
    train, margins, scores = fitted(booster, X, y, lo.SquaredError(), rounds)
    free = lo.evaluate(PRICE, scores, y, price=X[:, 0])["price.dcov2"]
    spec = lo.AugmentedLagrangian(lo.SquaredError(), [lo.Constraint(PRICE, at_most=0.2 * free)])
    train, margins, scores = fitted(booster, X, y, spec, rounds)
    kept = lo.evaluate(PRICE, scores, y, price=X[:, 0])["price.dcov2"]
    assert 0 <= margins["price.dcov2"] < 0.05
    assert kept == pytest.approx(0.2 * free * (1 - margins["price.dcov2"]), rel=1e-4)
    assert np.mean((scores - y) ** 2) < 0.97 * np.var(y - X[:, 1])
    assert train


def fitted(booster, X, y, spec, rounds):
    """History, margins of the returned round, and its scores."""
    objective = lo.Objective(spec)
    if booster == "lightgbm":
        import lightgbm as lgb

        data = lo.attach(lgb.Dataset(X, y, free_raw_data=False), price=X[:, 0])
        stop = lo.lightgbm.early_stopping(objective, rounds)
        params = {"objective": objective, "num_leaves": 7, "verbosity": -1, "num_threads": 1}
        model = lgb.train(params, data, rounds, callbacks=[stop])
        return objective.history(data), stop.best.margins, model.predict(X)
    import xgboost as xgb

    data = lo.attach(xgb.DMatrix(X, y), price=X[:, 0])
    stop = lo.xgboost.EarlyStopping(objective, rounds)
    model = xgb.train({"max_depth": 3, "eta": 0.1, "nthread": 1, "base_score": 0}, data, rounds, obj=objective,
                      callbacks=[stop])  # fmt: skip
    return objective.history(data), stop.best.margins, model.predict(data, output_margin=True)
