"""Every metric against libraries that were written without us, query by query, on random rankings."""

import importlib
import shutil
import warnings
from typing import NamedTuple

import ir_measures
import lightgbm as lgb
import numpy as np
import pytest
import pytrec_eval
import xgboost as xgb
from ir_measures import AP, ERR, RR, P, R, Success, nDCG
from scipy import stats
from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

import lambda_objectives as lo

CUTOFFS = (1, 3, 10, 50)
TIGHT = {"rtol": 1e-9, "atol": 1e-12}


class Data(NamedTuple):
    scores: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray

    @property
    def queries(self):
        """Scores and labels of each query."""
        ends = np.cumsum(self.sizes)[:-1]
        return list(zip(np.split(self.scores, ends), np.split(self.labels, ends), strict=True))

    @property
    def qrels(self):
        """Labels as those want them who name queries and documents: unjudged rows are not there."""
        return {
            str(q): {f"d{i}": int(y) for i, y in enumerate(labels) if y == y}
            for q, (_, labels) in enumerate(self.queries, 1)
        }

    @property
    def run(self):
        return {
            str(q): {f"d{i}": float(s) for i, s in enumerate(scores)} for q, (scores, _) in enumerate(self.queries, 1)
        }


def draw(grades=5, ties=False):
    """Queries of 1 to 40 rows; among them some without a relevant row, and some of equal labels."""
    rng = np.random.default_rng(10 * grades + ties)
    sizes = np.concatenate([np.arange(1, 41), rng.integers(1, 41, 20)])
    scores = rng.normal(size=sizes.sum()).astype(np.float32).astype(float)  # what trec_eval and XGBoost keep of them
    labels = rng.integers(0, grades, len(scores)).astype(float)
    for q, label in ((2, 0), (9, 0), (24, 0), (7, grades - 1), (30, grades - 1)):
        labels[sizes[:q].sum() : sizes[: q + 1].sum()] = label
    data = Data(np.round(scores * 2) / 2 if ties else scores, labels, sizes)
    if not ties:
        assert all(len(np.unique(s)) == len(s) for s, _ in data.queries)
    return data


GRADED, BINARY, TIED = draw(), draw(2), draw(2, ties=True)


def each(metric, data, **options):
    """The metric of each query, having made sure that all at once is their mean."""
    out = np.array([metric(s, y, group=[len(y)], **options) for s, y in data.queries])
    assert metric(data.scores, data.labels, group=data.sizes, **options) == pytest.approx(out.mean(), rel=1e-12)
    return out


def counts(data, threshold=0):
    """Rows, and relevant rows, of each query."""
    return data.sizes, np.array([(y > threshold).sum() for _, y in data.queries])


def with_pairs(data):
    """Queries with rows of different labels."""
    return [q for q, (_, y) in enumerate(data.queries) if y.min() < y.max()]


# trec_eval


def trec_eval(data, threshold=0):
    measures = {f"{m}.{','.join(map(str, CUTOFFS))}" for m in ("map_cut", "P", "recall", "success", "ndcg_cut")}
    evaluator = pytrec_eval.RelevanceEvaluator(data.qrels, {"map", "ndcg", "recip_rank"} | measures, threshold + 1)
    found = evaluator.evaluate(data.run)
    assert found.keys() == data.qrels.keys()  # queries without a relevant row included
    return {name: np.array([found[q][name] for q in data.run]) for name in found["1"]}


@pytest.mark.parametrize("threshold", [0, 2])
@pytest.mark.parametrize("k", CUTOFFS)
def test_trec_eval(k, threshold):
    want = trec_eval(GRADED, threshold)
    for metric, name in (
        (lo.MAP(threshold=threshold, empty=0.0), "map"),
        (lo.MRR(threshold=threshold), "recip_rank"),
        (lo.Precision(k, threshold), f"P_{k}"),
        (lo.Recall(k, threshold, empty=0.0), f"recall_{k}"),
        (lo.HitRate(k, threshold), f"success_{k}"),
        (lo.NDCG(gain="linear", empty=0.0), "ndcg"),
        (lo.NDCG(k, gain="linear", empty=0.0), f"ndcg_cut_{k}"),
    ):
        np.testing.assert_allclose(each(metric, GRADED), want[name], **TIGHT, err_msg=name)
    relevant = np.maximum(counts(GRADED, threshold)[1], 1)
    ours = each(lo.MAP(k, threshold, empty=0.0), GRADED) * np.minimum(relevant, k) / relevant
    np.testing.assert_allclose(ours, want[f"map_cut_{k}"], **TIGHT)


def test_trec_eval_of_rows_without_a_judgement():
    labels = GRADED.labels.copy()
    labels[np.random.default_rng(0).random(len(labels)) < 0.3] = np.nan
    first = np.cumsum(GRADED.sizes) - GRADED.sizes
    labels[first] = GRADED.labels[first]  # trec_eval leaves out queries without any
    data = GRADED._replace(labels=labels)
    assert np.isnan(labels).any()
    want = trec_eval(data)
    for metric, name in (
        (lo.MAP(empty=0.0), "map"),
        (lo.MRR(), "recip_rank"),
        (lo.Precision(10), "P_10"),
        (lo.Recall(10, empty=0.0), "recall_10"),
        (lo.HitRate(3), "success_3"),
        (lo.NDCG(10, gain="linear", empty=0.0), "ndcg_cut_10"),
    ):
        np.testing.assert_allclose(each(metric, data, unjudged=True), want[name], **TIGHT, err_msg=name)


# ir-measures


def ir(data, measure, provider=ir_measures):
    """Value of each query. One measure a call: 0.4.3 may take the gains of one nDCG for another beside it."""
    found = {result.query_id: result.value for result in provider.iter_calc([measure], data.qrels, data.run)}
    return [found[q] for q in data.run]


@pytest.mark.parametrize("k", CUTOFFS)
def test_ir_measures(k):
    for measure, metric in (
        (AP(rel=3), lo.MAP(threshold=2, empty=0.0)),
        (P(rel=2) @ k, lo.Precision(k, threshold=1)),
        (R(rel=2) @ k, lo.Recall(k, threshold=1, empty=0.0)),
        (RR(rel=2) @ k, lo.MRR(k, threshold=1)),
        (Success(rel=4) @ k, lo.HitRate(k, threshold=3)),
        (nDCG @ k, lo.NDCG(k, gain="linear", empty=0.0)),
        (nDCG(gains={0: 0, 1: 1, 2: 5, 3: 5, 4: 7}) @ k, lo.NDCG(k, gain=[0, 1, 5, 5, 7], empty=0.0)),
    ):
        np.testing.assert_allclose(each(metric, GRADED), ir(GRADED, measure), **TIGHT, err_msg=str(measure))


@pytest.mark.skipif(not shutil.which("perl"), reason="gdeval is written in Perl")
@pytest.mark.parametrize("k", CUTOFFS)
def test_gdeval(k):
    for measure, metric in ((ERR @ k, lo.ERR(k)), (nDCG(dcg="exp-log2") @ k, lo.NDCG(k, empty=0.0))):
        want = ir(GRADED, measure, ir_measures.gdeval)
        np.testing.assert_allclose(each(metric, GRADED), want, rtol=0, atol=5.1e-6)  # it prints five decimals


# scikit-learn and scipy


@pytest.mark.parametrize("k", [None, *CUTOFFS])
@pytest.mark.parametrize("data", [GRADED, TIED], ids=["graded", "tied"])
def test_scikit_learn_dcg(data, k):
    ties = "mean" if data is TIED else "row"
    several = data.sizes > 1  # it refuses single rows
    for name, gain in (("linear", lambda y: y), ("exp2", lambda y: 2**y - 1)):
        for metric, score in (
            (lo.DCG(k, gain=name, ties=ties), dcg_score),
            (lo.NDCG(k, gain=name, empty=0.0, ties=ties), ndcg_score),
        ):
            want = [score([gain(y)], [s], k=k) for s, y in data.queries if len(y) > 1]
            np.testing.assert_allclose(each(metric, data)[several], want, **TIGHT)


@pytest.mark.filterwarnings("ignore:No positive class found")
@pytest.mark.parametrize("threshold", [0, 2])
def test_scikit_learn_average_precision(threshold):
    want = [average_precision_score(y > threshold, s) for s, y in GRADED.queries]
    np.testing.assert_allclose(each(lo.MAP(threshold=threshold, empty=0.0), GRADED), want, **TIGHT)


@pytest.mark.filterwarnings("ignore:No positive class found")
def test_scikit_learn_average_precision_by_grade():
    """Graded average precision is that of each grade as a threshold, weighted by the steps and by the relevant rows."""
    for gain in ([0, 1, 2, 3, 4], [0, 1, 3, 7, 15], [0, 2, 2, 5, 6]):
        want = []
        for s, y in GRADED.queries:
            weights = np.diff(gain) * [(y >= grade).sum() for grade in (1, 2, 3, 4)]
            values = [average_precision_score(y >= grade, s) for grade in (1, 2, 3, 4)]
            want.append(weights @ values / weights.sum() if weights.any() else 1.0)
        np.testing.assert_allclose(each(lo.MAP(gain=gain), GRADED), want, **TIGHT)
    np.testing.assert_allclose(each(lo.MAP(gain="linear"), BINARY), each(lo.MAP(), BINARY), **TIGHT)


@pytest.mark.parametrize("data", [GRADED, BINARY, TIED], ids=["graded", "binary", "tied"])
def test_scikit_learn_auc(data):
    for threshold in {0, data.labels.max() // 2}:
        size, relevant = counts(data, threshold)
        both = np.flatnonzero((relevant > 0) & (relevant < size))  # else it has no value
        want = [roc_auc_score(data.queries[q][1] > threshold, data.queries[q][0]) for q in both]
        np.testing.assert_allclose(each(lo.AUC(threshold, ties="mean"), data)[both], want, **TIGHT)
        if data is not TIED:
            np.testing.assert_allclose(each(lo.AUC(threshold), data)[both], want, **TIGHT)


def test_scipy_kendall():
    """Without equal scores Somers' D, given the scores, is tau a."""
    pairs = with_pairs(GRADED)
    b = [stats.kendalltau(*GRADED.queries[q]).statistic for q in pairs]
    np.testing.assert_allclose(each(lo.Kendall(tau="b"), GRADED)[pairs], b, **TIGHT)
    a = [stats.somersd(*GRADED.queries[q]).statistic for q in pairs]
    np.testing.assert_allclose(each(lo.Kendall(tau="a"), GRADED)[pairs], a, **TIGHT)


def test_scipy_spearman():
    pairs = with_pairs(GRADED)
    want = [stats.spearmanr(*GRADED.queries[q]).statistic for q in pairs]
    np.testing.assert_allclose(each(lo.Spearman(), GRADED)[pairs], want, **TIGHT)
    for q in with_pairs(TIED):  # ours takes the spread of different ranks
        scores, labels = TIED.queries[q]
        n, spread = len(scores), stats.rankdata(scores).std()
        want = stats.spearmanr(scores, labels).statistic * spread / np.sqrt((n * n - 1) / 12) if spread else 0.0
        assert lo.Spearman(ties="mean")(scores, labels, group=[n]) == pytest.approx(want, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("p", [0.5, 0.8, 0.95])
def test_scipy_rbp(p):
    """The rank of the row at which a user gives up has a geometric distribution."""
    for k in (None, *CUTOFFS):
        for metric, gain in (
            (lo.RBP(k, p), lambda y: y > 0),
            (lo.RBP(k, p, threshold=2), lambda y: y > 2),
            (lo.RBP(k, p, max_grade=4), lambda y: y / 4),
        ):
            want = []
            for s, y in GRADED.queries:
                top = gain(y[np.argsort(-s)])[:k]
                want.append(stats.geom.pmf(np.arange(1, len(top) + 1), 1 - p) @ top)
            np.testing.assert_allclose(each(metric, GRADED), want, **TIGHT)


# the boosters, at given scores and before the first tree


def lightgbm(data, metric, weights=None, **params):
    params = {"metric": metric, "eval_at": list(CUTOFFS), "verbosity": -1, "num_threads": 1, **params}
    rows = np.arange(len(data.scores), dtype=float)[:, None]
    group = None if metric in ("auc", "average_precision") else data.sizes
    train = lgb.Dataset(rows, data.labels, group=group, weight=weights, init_score=data.scores, params=params)
    return {name: value for _, name, value, _ in lgb.Booster(params, train).eval_train()}


def xgboost(data, metrics, grouped=True, **params):
    rows = xgb.DMatrix(np.arange(len(data.scores), dtype=float)[:, None], data.labels, base_margin=data.scores)
    if grouped:
        rows.set_group(data.sizes)
    found = xgb.train({"eval_metric": metrics, "nthread": 1, **params}, rows, 0).eval(rows, "at")
    return {name.removeprefix("at-"): float(value) for name, value in (part.split(":") for part in found.split()[1:])}


@pytest.mark.parametrize("data", [GRADED, TIED], ids=["graded", "tied"])
def test_lightgbm(data):
    for gain, params in (("exp2", {}), ([0, 1, 1, 4, 9], {"label_gain": [0, 1, 1, 4, 9]})):
        for name, value in lightgbm(data, "ndcg", objective="lambdarank", **params).items():
            ours = lo.NDCG(int(name.split("@")[1]), gain=gain)
            assert ours(data.scores, data.labels, group=data.sizes) == pytest.approx(value, rel=1e-9), name
    for name, value in lightgbm(data, "map", objective="lambdarank").items():
        ours = lo.MAP(int(name.split("@")[1]))
        assert ours(data.scores, data.labels, group=data.sizes) == pytest.approx(value, rel=1e-9), name


def test_lightgbm_counts_queries_without_gain_whatever_their_weight():
    weight = 1.0 + np.arange(len(GRADED.sizes)) % 3
    found = lightgbm(GRADED, "ndcg", np.repeat(weight, GRADED.sizes), objective="lambdarank")
    some = counts(GRADED)[1] > 0
    for k in CUTOFFS:
        values = each(lo.NDCG(k), GRADED)
        want = (weight[some] @ values[some] + (~some).sum()) / weight.sum()
        assert found[f"ndcg@{k}"] == pytest.approx(want, rel=1e-9)
        assert lo.NDCG(k)(GRADED.scores, GRADED.labels, group=GRADED.sizes, weights=weight) == pytest.approx(
            weight @ values / weight.sum(), rel=1e-12
        )


@pytest.mark.parametrize("data", [GRADED, BINARY, TIED], ids=["graded", "binary", "tied"])
def test_xgboost(data):
    want = xgboost(data, [f"ndcg@{k}{minus}" for k in CUTOFFS for minus in ("", "-")], objective="rank:ndcg")
    table = {}
    if int(xgb.__version__.split(".")[0]) > 2:  # 2.1 prints exponential gains whatever it is told
        want["linear"] = xgboost(data, ["ndcg@10"], objective="rank:ndcg", ndcg_exp_gain=False)["ndcg@10"]
        table["linear"] = lo.NDCG(10, gain="linear")
    for k in CUTOFFS:
        table |= {f"ndcg@{k}": lo.NDCG(k), f"ndcg@{k}-": lo.NDCG(k, empty=0.0)}
    if data is not GRADED:  # it takes labels 0 and 1
        want |= xgboost(data, [f"map@{k}{minus}" for k in CUTOFFS for minus in ("", "-")], objective="rank:map")
        want |= xgboost(data, [f"pre@{k}" for k in CUTOFFS], objective="rank:map")
        for k in CUTOFFS:
            table |= {f"map@{k}": lo.MAP(k), f"map@{k}-": lo.MAP(k, empty=0.0)}
            of_length = each(lo.Precision(k), data) * k / np.minimum(data.sizes, k)
            assert want.pop(f"pre@{k}") == pytest.approx(of_length.mean(), rel=1e-9)
    assert want.keys() == table.keys()
    for name, metric in table.items():
        assert metric(data.scores, data.labels, group=data.sizes) == pytest.approx(want[name], rel=1e-9), name


@pytest.mark.parametrize("data", [BINARY, TIED], ids=["binary", "tied"])
def test_auc_of_both_boosters_is_that_of_one_query(data):
    ours = lo.AUC(ties="mean")(data.scores, data.labels, group=[len(data.scores)])
    assert lightgbm(data, "auc", objective="binary")["auc"] == pytest.approx(ours, rel=1e-9)
    assert xgboost(data, ["auc"], grouped=False, objective="binary:logistic")["auc"] == pytest.approx(ours, rel=1e-9)
    if data is BINARY:
        ours = lo.MAP()(data.scores, data.labels, group=[len(data.scores)])
        found = lightgbm(data, "average_precision", objective="binary")["average_precision"]
        assert found == pytest.approx(ours, rel=1e-9)


def test_xgboost_auc_of_queries_counts_pairs_of_equal_labels():
    found = xgboost(BINARY, ["auc"], objective="rank:pairwise")["auc"]
    values = []
    for scores, labels in BINARY.queries:
        y = labels - 1e-6 * np.arange(len(labels))  # the earlier of two rows with equal labels ought to be on top
        if len(y) > 2:
            values.append((1 + lo.Kendall()(scores, y, group=[len(y)])) / 2)
    assert found == pytest.approx(np.mean(values), rel=1e-9)


# what is too heavy for every run, or no longer kept up


def load(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip(name)
        return importlib.import_module(name)


@pytest.mark.filterwarnings("ignore")
def test_cwl_eval():
    ruler, ranking = load("cwl.ruler.cwl_ruler"), load("cwl.ruler.ranking")
    for p in (0.5, 0.8, 0.95):
        rbp = ruler.RBPCWLMetric(p)
        for k in (None, 3, 10):
            for metric, gain in ((lo.RBP(k, p), lambda y: y > 0), (lo.RBP(k, p, max_grade=4), lambda y: y / 4)):
                tops = [1.0 * gain(y[np.argsort(-s)])[:k] for s, y in GRADED.queries]
                want = [rbp.measure(ranking.Ranking("", top, np.ones(len(top)))) for top in tops]
                np.testing.assert_allclose(each(metric, GRADED), want, **TIGHT)


@pytest.mark.slow  # compiles for a minute when used for the first time
@pytest.mark.filterwarnings("ignore")
def test_ranx():
    ranx = load("ranx")
    qrels, run, binary = ranx.Qrels(GRADED.qrels), ranx.Run(GRADED.run), ranx.Qrels(BINARY.qrels)

    def check(name, metric, data=GRADED, qrels=qrels, run=run, share=1.0):
        found = ranx.evaluate(qrels, run, name, return_mean=False)
        want = dict(zip(sorted(data.run), found, strict=True))  # it sorts queries by name
        np.testing.assert_allclose(share * each(metric, data), [want[q] for q in data.run], **TIGHT, err_msg=name)

    check("map", lo.MAP(empty=0.0))
    check("mrr", lo.MRR())
    relevant = np.maximum(counts(GRADED)[1], 1)
    for k in CUTOFFS:
        check(f"map@{k}", lo.MAP(k, empty=0.0), share=np.minimum(relevant, k) / relevant)
        check(f"mrr@{k}", lo.MRR(k))
        check(f"precision@{k}-l2", lo.Precision(k, threshold=1))
        check(f"recall@{k}-l2", lo.Recall(k, threshold=1, empty=0.0))
        check(f"hit_rate@{k}-l4", lo.HitRate(k, threshold=3))
        check(f"dcg@{k}", lo.DCG(k, gain="linear"))
        check(f"dcg_burges@{k}", lo.DCG(k))
        check(f"ndcg@{k}", lo.NDCG(k, gain="linear", empty=0.0))
        check(f"ndcg_burges@{k}", lo.NDCG(k, empty=0.0))
    for p in (50, 80, 95):
        check(f"rbp.{p}", lo.RBP(persistence=p / 100), BINARY, binary, ranx.Run(BINARY.run))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_catboost():
    utils = load("catboost.utils")
    qid = np.repeat(np.arange(len(GRADED.sizes)), GRADED.sizes)
    for k in CUTOFFS:
        for name, metric, labels in (
            (f"ERR:top={k}", lo.ERR(k), (2**GRADED.labels - 1) / 16),
            (f"DCG:top={k};type=Exp", lo.DCG(k), GRADED.labels),
            (f"RecallAt:top={k};border=1.5", lo.Recall(k, threshold=1), GRADED.labels),
            (f"MRR:top={k};border=1.5", lo.MRR(k, threshold=1), GRADED.labels),
        ):
            ours = metric(GRADED.scores, GRADED.labels, group=GRADED.sizes)
            found = utils.eval_metric(labels, GRADED.scores, name, group_id=qid)[0]
            assert ours == pytest.approx(found, rel=1e-9), name
