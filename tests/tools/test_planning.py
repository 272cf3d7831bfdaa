"""From a baseline to bounds, the line from cut to gain, over-weighting, scalarisation, fronts and their volume."""

import math
import pickle
from functools import partial
from itertools import combinations

import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lambda_objectives as lo
from lambda_objectives import planning
from tests.strategies import ranked_data

RANK = lo.LambdaRank(lo.NDCG(5))
T1, T2 = (lo.LambdaRank(lo.NDCG(5), label=name) for name in ("t1", "t2"))
rng = np.random.default_rng(0)
GROUP = np.array([5, 1, 8, 4])
N = GROUP.sum()
DATA = {"labels": rng.integers(0, 3, N), "group": GROUP, "t1": rng.integers(0, 2, N), "t2": rng.integers(0, 2, N)}
SCORES = rng.normal(size=N)


class TestBounds:
    def test_are_shares_of_what_evaluate_says(self):
        found = lo.evaluate(lo.WeightedSum([T1, T2], [1, 1]), SCORES, **DATA)
        assert planning.bounds([T1, T2], SCORES, **DATA, cut=[0.2, -0.05]) == [
            lo.Constraint(T1, at_most=0.8 * found["cost/t1.ndcg@5"]),
            lo.Constraint(T2, at_most=1.05 * found["cost/t2.ndcg@5"]),
        ]
        assert planning.bounds(T1, SCORES, **DATA) == planning.bounds([T1], SCORES, **DATA, cut=0.1)
        assert planning.bounds([T1, T2], SCORES, **DATA, gain=0.01) == [
            lo.Constraint(T1, at_least=1.01 * found["t1.ndcg@5"]),
            lo.Constraint(T2, at_least=1.01 * found["t2.ndcg@5"]),
        ]

    def test_queries_weights_and_columns_in_every_way(self):
        qid, weights = np.repeat(np.arange(len(GROUP)), GROUP), np.array([1.0, 0.0, 3.0, 2.0])
        columns = {"t1": DATA["t1"]}
        (a,) = planning.bounds(T1, SCORES, DATA["labels"], qid=qid, weights=weights, columns=columns)
        (b,) = planning.bounds(T1, SCORES, DATA["labels"], group=GROUP, weights=np.repeat(weights, GROUP), **columns)
        assert a == b != planning.bounds(T1, SCORES, **DATA)[0]

    def test_margin_at_the_baseline_is_what_is_asked(self):
        spec = lo.AugmentedLagrangian(RANK, planning.bounds(T1, SCORES, **DATA, cut=0.2))
        assert lo.evaluate(spec, SCORES, **DATA)["margin/t1.ndcg@5"] == pytest.approx(-0.25)  # (.8 - 1) / .8

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"cut": 0.1, "gain": 0.1}, "not both"),
            ({"cut": 1.0}, "cut must be a share below 1, found 1.0"),
            ({"cut": [0.1, 0.2]}, "cut: one for each term wanted, found 2 for 1 terms"),
            ({"gain": -1.0}, "gain must be a share above -1"),
            ({"gain": math.nan}, "gain must be a finite number"),
            ({"terms": []}, "terms must hold at least one term"),
            ({"terms": [T1, T1]}, "2 have the name 't1.ndcg@5'"),
            ({"terms": lo.RankNet(label="t1"), "gain": 0.1}, "no metric of which more is better"),
            ({"t1": np.zeros(N)}, r"cost/t1.ndcg@5 is 0 at the baseline's scores"),
            ({"terms": lo.LambdaRank(lo.Precision(5), "t1"), "gain": 0.1, "t1": np.zeros(N)}, "precision@5 is 0"),
        ],
    )
    def test_refusals(self, change, message):
        with pytest.raises(ValueError, match=message):
            planning.bounds(**{"terms": T1, "scores": SCORES, **DATA, **change})

    def test_a_metric_is_no_term(self):
        with pytest.raises(TypeError, match=r"terms must be a term.*write LambdaRank"):
            planning.bounds(lo.NDCG(5), SCORES, **DATA)


@given(ranked_data(), st.integers(1, 8))
def test_shown_counts_rows(data, k):
    scores, flags, group = data
    ends = np.cumsum(group)
    counts = []
    for a, b in zip(ends - group, ends, strict=True):
        first = sorted(range(a, b), key=lambda i: (-scores[i], i))[:k]
        counts.append(sum(flags[i] != 0 for i in first))
    assert planning.shown(scores, flags, group=group, k=k) == pytest.approx(np.mean(counts))
    assert planning.shown(scores, -flags, group=group, k=k, share=True) == pytest.approx(np.mean(counts) / k)
    qid, weights = np.repeat(np.arange(len(group)), group), np.arange(1.0, len(group) + 1)
    assert planning.shown(scores, flags, qid=qid, weights=weights, k=k) == pytest.approx(
        np.average(counts, weights=weights)
    )


class TestLine:
    @given(st.integers(2, 8), st.integers(0, 2**32 - 1))
    def test_is_least_squares_through_the_origin(self, m, seed):
        r = np.random.default_rng(seed)
        x = r.uniform(0.01, 0.5, m)
        y = 0.3 * x + 0.02 * r.normal(size=m)
        line = planning.fit_line(x, y)
        (slope,), (rss,), *_ = np.linalg.lstsq(x[:, None], y, rcond=None)
        covariance = rss / (m - 1) * np.linalg.inv(x[None, :] @ x[:, None])
        assert (line.slope, line.error) == pytest.approx((slope, math.sqrt(covariance[0, 0])), rel=1e-6)
        assert line.r2 == pytest.approx(1 - rss / (y**2).sum(), abs=1e-6)
        assert line.points == m
        assert line.attained == x.max()
        wish = line.attained * line.slope
        if wish > 0:
            assert line.gain_for(line.cut_for(wish / 2)) == pytest.approx(wish / 2)
            assert line.cut_for(wish) == pytest.approx(line.attained)  # the very edge is within

    def test_standard_error_is_that_of_repeated_probes(self):
        """Of 4000 lines through noisy points: their slopes spread as the standard error says."""
        r = np.random.default_rng(0)
        x = np.array([0.05, 0.1, 0.15, 0.2, 0.3])
        lines = [planning.fit_line(x, 0.2 * x + 0.01 * r.normal(size=5)) for _ in range(4000)]
        spread = np.std([line.slope for line in lines])
        assert math.sqrt(np.mean([line.error**2 for line in lines])) == pytest.approx(spread, rel=0.05)
        assert np.mean([line.slope for line in lines]) == pytest.approx(0.2, abs=0.003)

    def test_the_paper_s_t2(self):
        """1 % of gain at a slope of .181 asks for a cut of 5.5 % (section 4.3.1)."""
        line = planning.fit_line([0.1, 0.2], [0.0181, 0.0362])
        assert line.cut_for(0.01) == pytest.approx(0.055, abs=3e-4)
        assert line.gain_for(0.055) == pytest.approx(0.01, abs=5e-5)

    def test_one_point_has_no_error(self):
        line = planning.fit_line([0.1], [0.02])
        assert line.slope == pytest.approx(0.2)
        assert math.isnan(line.error)
        assert math.isnan(planning.fit_line([0.1, 0.2], [0.0, 0.0]).r2)

    def test_beyond_what_was_probed_is_said(self):
        line = planning.fit_line([0.1, 0.2], [0.05, 0.1], asked=[0.1, 0.2], name="t1.ndcg@5", metric="ndcg@5")
        assert line.missed == ()
        with pytest.warns(
            lo.LambdaObjectivesWarning, match=r"\+15.000% ndcg@5 asks for a cut of 30.00% .*probe larger"
        ):
            assert line.cut_for(0.15) == pytest.approx(0.3)
        with pytest.warns(lo.LambdaObjectivesWarning, match=r"cut: 40.00% is asked for of the cost t1.ndcg@5"):
            assert line.gain_for(0.4) == pytest.approx(0.2)

    def test_no_cost_can_be_cut_by_all_of_it(self):
        with pytest.raises(
            ValueError, match=r"\+60.000% ndcg@5 asks for a cut of 120.00% of the cost t1, which is more"
        ):
            planning.fit_line([0.1, 0.2], [0.05, 0.1], name="t1", metric="ndcg@5").cut_for(0.6)

    def test_beyond_what_could_be_attained_is_refused(self):
        with pytest.warns(
            lo.LambdaObjectivesWarning, match=r"t1: no probed model attained a cut of 20.00%, 30.00%; the"
        ):
            line = planning.fit_line([0.1, 0.15, 0.14], [0.05, 0.075, 0.07], asked=[0.1, 0.3, 0.2], name="t1")
        assert line.missed == (0.2, 0.3)
        assert line.gain_for(0.15) == pytest.approx(0.075)
        for ask in (lambda: line.cut_for(0.1), lambda: line.gain_for(0.16)):
            with pytest.raises(ValueError, match=r"no probed model attained more than 15.00%, though 20.00% was asked"):
                ask()

    def test_a_cut_that_another_model_attained_is_not_missed(self):
        assert planning.fit_line([0.09, 0.2], [0.05, 0.1], asked=[0.1, 0.2]).missed == ()

    def test_a_hair_is_no_miss(self):
        """(.8 - .8005) / .8 is -.06 %: within the tolerance of .1 %; (.8 - .8009) / .8 is -.11 %."""
        assert planning.fit_line([0.1995], [0.1], asked=[0.2]).missed == ()
        with pytest.warns(lo.LambdaObjectivesWarning, match="no probed model"):
            assert planning.fit_line([0.1991], [0.1], asked=[0.2]).missed == (0.2,)
        with pytest.warns(lo.LambdaObjectivesWarning, match="no probed model"):
            assert planning.fit_line([0.1995], [0.1], asked=[0.2], tolerance=0.0).missed == (0.2,)

    def test_refusals(self):
        with pytest.raises(ValueError, match="no model has less of the cost t1 than the baseline"):
            planning.fit_line([-0.1, 0.0], [0.1, 0.1], name="t1")
        with pytest.raises(ValueError, match="no model has less"):
            planning.fit_line([], [])
        with pytest.raises(ValueError, match="gains has 1 values"):
            planning.fit_line([0.1, 0.2], [0.1])
        falls = planning.fit_line([0.1], [-0.1], name="t1", metric="ndcg@5")
        with pytest.raises(ValueError, match=r"cutting the cost t1 did not raise ndcg@5 \(slope -1\)"):
            falls.cut_for(0.01)
        assert falls.gain_for(0.05) == pytest.approx(-0.05)
        for wish in (-0.01, math.inf, None):
            with pytest.raises(ValueError, match="gain must be a"):
                falls.cut_for(wish)
        with pytest.raises(ValueError, match="cut must be a share below 1"):
            falls.gain_for(1.0)

    def test_is_a_value(self):
        line = planning.fit_line([0.1, 0.2], [0.01, 0.03])
        assert pickle.loads(pickle.dumps(line)) == line
        assert line in {planning.fit_line([0.1, 0.2], [0.01, 0.03])}


class TestProbe:
    """On models made by hand: scores that move from the baseline's towards t1."""

    def train(self, seen, most=3.0):
        def made(spec):
            seen.append(spec)
            if spec == RANK:
                return SCORES
            best = None
            for step in np.linspace(0.0, most, 201):  # the least step that keeps to every bound, else the last
                best = SCORES + step * (DATA["t1"] + DATA["t2"] / 2)
                margins = [v for k, v in lo.evaluate(spec, best, **DATA).items() if k.startswith("margin/")]
                if min(margins) >= 0:
                    break
            return best

        return made

    def test_makes_the_points_and_fits_them(self):
        seen = []
        lines = planning.probe(self.train(seen), RANK, T1, **DATA, cuts=[0.1, 0.3], metric=lo.NDCG(3))
        assert seen[0] == RANK
        before = lo.evaluate(T1, SCORES, **DATA)["cost/t1.ndcg@5"]
        assert [spec.constraints[0].at_most / before for spec in seen[1:]] == pytest.approx([0.9, 0.7])
        reductions, gains = [], []
        for spec in seen[1:]:
            scores = self.train([])(spec)
            reductions.append(1 - lo.evaluate(T1, scores, **DATA)["cost/t1.ndcg@5"] / before)
            ndcg = [lo.NDCG(3)(s, DATA["t1"], group=GROUP) for s in (scores, SCORES)]
            gains.append(ndcg[0] / ndcg[1] - 1)
        assert min(np.array(reductions) - [0.1, 0.3]) > 1e-4  # attained is not what was asked
        expected = planning.fit_line(reductions, gains, name="t1.ndcg@5", metric="t1.ndcg@3")
        assert lines == {"t1.ndcg@5": expected}

    def test_own_metric_unless_told(self):
        (line,) = planning.probe(self.train([]), RANK, T1, **DATA, cuts=[0.2]).values()
        assert line.metric == "t1.ndcg@5"
        top = lo.Precision(3)
        (line,) = planning.probe(self.train([]), RANK, T1, **DATA, cuts=[0.6], metric=top).values()
        assert line.metric == "t1.precision@3"
        flags = {"flags": DATA["t1"], "group": GROUP, "k": 3}
        bound = planning.bounds(T1, SCORES, **DATA, cut=0.6)
        after = self.train([])(lo.AugmentedLagrangian(RANK, bound))
        gain = planning.shown(after, **flags) / planning.shown(SCORES, **flags) - 1
        assert gain > 0.05
        assert line.gains == pytest.approx((gain,))

    def test_several_terms_are_cut_together(self):
        seen = []
        rule = partial(lo.AugmentedLagrangian, update="reset")
        lines = planning.probe(self.train(seen), RANK, [T1, T2], **DATA, cuts=[0.1], rule=rule)
        assert list(lines) == ["t1.ndcg@5", "t2.ndcg@5"]
        assert seen[1] == rule(RANK, planning.bounds([T1, T2], SCORES, **DATA, cut=0.1))
        for term in (T1, T2):
            costs = [lo.evaluate(term, self.train([])(spec), **DATA)[f"cost/{term.name}"] for spec in seen]
            assert lines[term.name].reductions == pytest.approx((1 - costs[1] / costs[0],))

    def test_cuts_that_no_model_attains_are_named(self):
        with pytest.warns(
            lo.LambdaObjectivesWarning, match=r"t1.ndcg@5: no probed model attained a cut of 90.00%; the"
        ):
            lines = planning.probe(self.train([], most=0.3), RANK, T1, **DATA, cuts=[0.05, 0.9])
        line = lines["t1.ndcg@5"]
        assert line.missed == (0.9,)
        assert 0.05 < line.attained < 0.6
        with pytest.raises(ValueError, match=r"though 90.00% was asked for"):
            line.gain_for(0.6)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"cuts": []}, "cuts must hold at least one share"),
            ({"cuts": [0.1, 0.0]}, "cuts must be above 0"),
            ({"cuts": [1.0]}, "cuts must be shares below 1"),
            ({"metric": "ndcg@5"}, "metric must be one of which more is better"),
            ({"terms": lo.RankNet(label="t1")}, "no metric of which more is better"),
            ({"train": lambda spec: [1.0]}, f"scores has 1 values, the data set has {N} rows"),
            ({"train": lambda spec: SCORES}, "no model has less of the cost t1.ndcg@5"),
        ],
    )
    def test_refusals(self, change, message):
        arguments = {"train": self.train([]), "primary": RANK, "terms": T1, **DATA, **change}
        with pytest.raises(ValueError, match=message):
            planning.probe(**arguments)


PARAMS = {"num_leaves": 15, "num_threads": 2, "verbosity": -1, "deterministic": True}


def trainer(data, rounds=40):
    """Train with LightGBM on a simulation; return scores on it."""
    train = lo.attach(lgb.Dataset(data.X, data.y, group=data.group, params=PARAMS), data.columns)

    def run(spec):
        objective = lo.Objective(spec)
        stop = lo.lightgbm.early_stopping(objective, rounds)
        return lgb.train({"objective": objective, **PARAMS}, train, rounds, callbacks=[stop]).predict(data.X)

    return run


def test_the_line_of_a_small_sample_foretells_the_gain_on_a_large_one():
    """Seed 004's way from end to end, of another shop too: t1 gets the gain that was wished for, give or take."""
    small, large = (lo.datasets.product_search(queries, seed=1) for queries in (500, 2500))
    top = lo.Precision(5)
    lines = planning.probe(trainer(small), RANK, T1, small.y, group=small.group, columns=small.columns, metric=top)
    line = lines["t1.ndcg@5"]
    assert line.r2 > 0.9
    assert line.error < 0.25 * line.slope
    train, data = trainer(large), {"group": large.group, "columns": large.columns}
    before = train(RANK)
    for wish in (0.05, 0.1):
        cut = line.cut_for(wish)
        after = train(lo.AugmentedLagrangian(RANK, planning.bounds(T1, before, large.y, **data, cut=cut)))
        flags = {"flags": large.columns["t1"], "group": large.group, "k": 5}
        gain = planning.shown(after, **flags) / planning.shown(before, **flags) - 1
        assert 0.6 * wish < gain < 1.5 * wish


class TestOverweighting:
    @given(ranked_data(grades=2), st.integers(0, 2**32 - 1))
    def test_multiplies_queries_with_a_flagged_row(self, data, seed):
        _, t1, group = data
        r = np.random.default_rng(seed)
        t2, weights = r.integers(0, 2, len(t1)) - 0.5, r.uniform(size=len(t1))  # -.5 is no flag
        got = planning.overweighted({"t1": 3.0, "t2": 0.5}, group=group, weights=weights, t1=t1, t2=t2)
        rows = planning.overweighted({"t2": 0.5}, group=group, columns={"t2": t2}, on="row")
        start = 0
        for size in group:
            inside = slice(start, start + size)
            factor = (3.0 if (t1[inside] > 0).any() else 1.0) * (0.5 if (t2[inside] > 0).any() else 1.0)
            np.testing.assert_allclose(got[inside], weights[inside] * factor)
            start += size
        np.testing.assert_array_equal(rows, np.where(t2 > 0, 0.5, 1.0))

    def test_weights_stay_as_they_were(self):
        weights = np.ones(4)
        planning.overweighted({"t1": 3.0}, group=[4], weights=weights, t1=[0, 1, 0, 0])
        assert (weights == 1).all()

    def test_one_weight_a_query_for_xgboost(self):
        got = planning.overweighted({"t1": 3.0}, group=GROUP, weights=[1, 2, 3, 4], t1=np.repeat([1, 0, 0, 1], GROUP))
        assert got[np.cumsum(GROUP) - GROUP].tolist() == [3, 2, 3, 12]

    def test_the_weighted_query_counts_for_so_much_more(self):
        """Its gradient is three times what it was; that of the other query stays."""
        weights = planning.overweighted({"t1": 3.0}, group=[2, 2], t1=[0, 1, 0, 0])
        data = {"scores": np.zeros(4), "labels": [1, 0, 0, 1], "group": [2, 2]}
        plain, weighted = (lo.gradient(RANK, **data, **w)[0] for w in ({}, {"weights": weights}))
        np.testing.assert_allclose(weighted / plain, [3, 3, 1, 1])

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"factors": {}}, "factors must hold at least one"),
            ({"factors": {"t2": 1.0}}, r"factors: no column 't2' is given \(there: 't1'\); give it as t2=values"),
            ({"factors": {"t1": -1.0}}, r"factors\['t1'\] must not be negative"),
            ({"on": "rows"}, "on must be 'query' or 'row'"),
            ({"group": None}, "needs queries"),
            ({"t1": [0, math.nan]}, "column 't1' must be finite"),
        ],
    )
    def test_refusals(self, change, message):
        with pytest.raises(ValueError, match=message):
            planning.overweighted(**{"factors": {"t1": 2.0}, "group": [2], "t1": [0, 1], **change})

    def test_grid(self):
        got = list(planning.grid({"a": [1, 2], "b": np.array([3.0, 4.0, 5.0])}))
        assert [tuple(each.values()) for each in got] == [(1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)]
        with pytest.raises(ValueError, match=r"values\['b'\] must hold at least one factor"):
            planning.grid({"a": [1], "b": []})


class TestScalarisations:
    @given(st.integers(1, 6), st.integers(1, 4))
    def test_are_the_lattice_of_the_simplex(self, steps, count):
        terms = [RANK, T1, T2, lo.RankNet()][:count]
        specs = list(planning.scalarisations(terms, steps))
        got = [tuple(round(w * steps, 9) for w in spec.weights) for spec in specs]
        cube = [tuple(i // (steps + 1) ** t % (steps + 1) for t in range(count)) for i in range((steps + 1) ** count)]
        assert sorted(got) == sorted(point for point in cube if sum(point) == steps)
        assert len(got) == math.comb(steps + count - 1, count - 1)
        assert got[0] == (steps, *[0] * (count - 1))
        assert all(spec.terms == tuple(terms) for spec in specs)

    def test_refusals_come_at_once(self):
        with pytest.raises(ValueError, match="steps must be a whole number from 1"):
            planning.scalarisations([RANK], 0)
        with pytest.raises(TypeError, match=r"terms\[0\] must be a term"):
            planning.scalarisations([lo.NDCG(5)], 2)


class TestLabels:
    def test_weighted_sum(self):
        labels = rng.normal(size=(3, 7))
        expected = [sum(w * labels[t, i] for t, w in enumerate([1.0, 0.0, -2.0])) for i in range(7)]
        np.testing.assert_allclose(planning.aggregated(list(labels), [1.0, 0.0, -2.0]), expected)

    @given(ranked_data(), st.integers(0, 2**63 - 1))
    def test_a_query_draws_for_all_its_rows(self, data, seed):
        _, labels, group = data
        both = [labels, 100 + labels]
        got = planning.drawn(both, [1, 3], seed, group=group)
        drawn = np.split(got - labels, np.cumsum(group)[:-1])
        assert all(len(set(query)) == 1 and query[0] in (0, 100) for query in drawn)
        np.testing.assert_array_equal(got, planning.drawn(both, [0.25, 0.75], seed, group=group))
        np.testing.assert_array_equal(planning.drawn(both, [1, 0], seed), labels)

    def test_shares_are_the_weights(self):
        """20,000 draws: within four standard errors of 1 to 2 to 5."""
        n = 20_000
        for options in ({}, {"qid": np.arange(n)}):
            got = planning.drawn([np.zeros(n), np.ones(n), np.full(n, 2)], [1, 2, 5], 3, **options)
            for value, share in enumerate((1 / 8, 2 / 8, 5 / 8)):
                assert abs((got == value).mean() - share) < 4 * math.sqrt(share * (1 - share) / n)
        other = planning.drawn([np.zeros(n), np.ones(n), np.full(n, 2)], [1, 2, 5], 4)
        assert (other != got).any()

    def test_expected_cost_of_drawing_queries_is_the_weighted_sum(self):
        costs = [lo.evaluate(RANK, SCORES, DATA[t], group=GROUP)["cost/ndcg@5"] for t in ("t1", "t2")]
        drawn = [
            lo.evaluate(
                RANK, SCORES, planning.drawn([DATA["t1"], DATA["t2"]], [0.3, 0.7], seed, group=GROUP), group=GROUP
            )["cost/ndcg@5"]
            for seed in range(1000)
        ]
        error = np.std(drawn) / math.sqrt(len(drawn))
        assert abs(np.mean(drawn) - (0.3 * costs[0] + 0.7 * costs[1])) < 4 * error

    @pytest.mark.parametrize(
        ("labels", "weights", "message"),
        [
            ([], [], "labels must hold at least one label"),
            ([[1, 2], [1]], [1, 1], r"same number of rows each, found \[2, 1\]"),
            ([[1, 2], [1, 2]], [1], "one for each label wanted, found 1 for 2"),
            ([[1, math.nan]], [1], r"labels\[0\] must be finite"),
        ],
    )
    def test_refusals(self, labels, weights, message):
        for call in (partial(planning.drawn, seed=0), planning.aggregated):
            with pytest.raises(ValueError, match=message):
                call(labels, weights)
        for bad in ([0, 0], [2, -1]):
            with pytest.raises(ValueError, match="they are probabilities"):
                planning.drawn([[1], [1]], bad, 0)


@st.composite
def clouds(draw, most=7):
    """A few points of 1 to 5 columns, on a coarse lattice, so that there are ties and equal points, or anywhere."""
    m, d = draw(st.integers(0, most)), draw(st.integers(1, 5))
    r = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return r.integers(-1, 4, (m, d)).astype(float) if draw(st.booleans()) else r.uniform(-0.3, 1, (m, d))


def union(sides):
    """Volume of the union of boxes from the origin, by inclusion and exclusion."""
    volume = 0.0
    for size in range(1, len(sides) + 1):
        for some in combinations(sides, size):
            volume -= (-1) ** size * np.prod(np.minimum.reduce(some).clip(0))
    return volume


class TestFronts:
    @given(clouds(most=12), st.integers(0, 31))
    def test_front(self, points, signs):
        up = [bool(signs >> j & 1) for j in range(points.shape[1])]
        found = planning.front(points, up)
        assert found.shape == (len(points),)

        def beats(a, b):
            ahead = [x - y if maximise else y - x for x, y, maximise in zip(a, b, up, strict=True)]
            return min(ahead) >= 0 and max(ahead) > 0

        assert found.tolist() == [not any(beats(a, b) for a in points) for b in points]

    @settings(max_examples=150)
    @given(clouds())
    def test_volume_is_that_of_inclusion_and_exclusion(self, points):
        reference = np.zeros(points.shape[1])
        volume = planning.hypervolume(points, reference)
        assert volume == pytest.approx(union(points), rel=1e-9, abs=1e-12)
        order = np.random.default_rng(0).permutation(points.shape[1])
        assert planning.hypervolume(points[::-1][:, order], reference) == pytest.approx(volume)
        assert planning.hypervolume(-points, reference, maximise=False) == pytest.approx(volume)
        assert planning.hypervolume(points[planning.front(points)], reference) == pytest.approx(volume)
        assert planning.hypervolume(3.0 - points, reference + 3.0, maximise=False) == pytest.approx(volume)

    @pytest.mark.parametrize("d", [2, 3, 4, 5])
    def test_volume_is_the_share_of_darts_that_hit(self, d):
        """40 points on a sphere, all of them in the front; 100,000 darts, four standard errors."""
        r = np.random.default_rng(d)
        points = np.abs(r.normal(size=(40, d)))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        darts = r.uniform(size=(100_000, d))
        hit = np.zeros(len(darts), bool)
        for point in points:
            hit |= (darts <= point).all(axis=1)
        assert planning.front(points).all()
        error = math.sqrt(hit.mean() * (1 - hit.mean()) / len(darts))
        assert abs(planning.hypervolume(points, np.zeros(d)) - hit.mean()) < 4 * error

    def test_directions_by_column(self):
        """Cost down, metric up, from the reference (10, 0): boxes of 4 x 2 and 7 x 1, 4 x 1 in both."""
        points = [[6.0, 2.0], [3.0, 1.0]]
        assert planning.hypervolume(points, [10.0, 0.0], [False, True]) == 11.0
        assert planning.front(points, [False, True]).tolist() == [True, True]
        assert planning.front(points, [True, True]).tolist() == [True, False]

    @pytest.mark.parametrize(
        ("points", "reference", "maximise", "message"),
        [
            ([1.0, 2.0], [0.0], True, r"\(m, d\) array, one point a row, found one of shape \(2,\)"),
            ([[1.0, math.nan]], [0.0, 0.0], True, "points must be finite"),
            ([[1.0, 2.0]], [0.0, 0.0], "max", "maximise must be True or False"),
            ([[1.0, 2.0]], [0.0, 0.0], [True], "each of the 2 columns"),
            ([[1.0, 2.0]], [0.0], True, "reference: 2 numbers wanted"),
            ([[1.0, 2.0]], [0.0, math.inf], True, "reference must be finite"),
        ],
    )
    def test_refusals(self, points, reference, maximise, message):
        with pytest.raises(ValueError, match=message):
            planning.hypervolume(points, reference, maximise)


def test_a_sweep_has_the_costs_and_metrics_of_every_model():
    """A "booster" that shifts scores towards the label that is bounded, the more the tighter its bound."""
    rng = np.random.default_rng(5)
    y, flags = rng.integers(0, 3, 60).astype(float), rng.integers(0, 2, 60).astype(float)
    rank, wish = lo.LambdaRank(lo.NDCG()), lo.LambdaRank(lo.NDCG(), label="flags")
    asked = []

    def train(spec):
        asked.append(spec)
        return y if spec is rank else y + 3 * (1 - spec.constraints[0].at_most / before) * flags

    before = lo.evaluate(wish, y, y, group=[20] * 3, flags=flags)["cost/flags.ndcg"]
    models = lo.planning.sweep(train, rank, wish, y, group=[20] * 3, flags=flags, cuts=[0.2, 0.6])
    assert [model["cut"] for model in models] == [0.0, 0.2, 0.6]
    assert [spec.constraints[0].at_most for spec in asked[1:]] == pytest.approx([0.8 * before, 0.4 * before])
    for model in models:
        s = y + 3 * model["cut"] * flags
        for label, column in (("", y), ("flags.", flags)):
            assert model[f"{label}ndcg"] == pytest.approx(lo.NDCG()(s, column, group=[20] * 3))
    assert models[2]["flags.ndcg"] > models[1]["flags.ndcg"] > models[0]["flags.ndcg"]
    for cuts in ([], [1.0], [-0.1]):
        with pytest.raises(ValueError, match="cuts must"):
            lo.planning.sweep(train, rank, wish, y, group=[20] * 3, flags=flags, cuts=cuts)
