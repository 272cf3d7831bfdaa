"""What LightGBM, XGBoost, CatBoost and RankLib compute, by their own parameters and with their own faults.

Each function takes a peer's parameters, with the peer's defaults, and returns a term that has its gradient and Hessian:
to go on from a model of theirs, to compare with one, or to combine their objective with terms of this package.
"""

from __future__ import annotations

from collections.abc import Sequence

from lambda_objectives.terms.peers_catboost import CatBoostTerm
from lambda_objectives.terms.peers_lightgbm import LightGBMTerm
from lambda_objectives.terms.peers_ranklib import RankLibTerm
from lambda_objectives.terms.peers_xgboost import XGBoostTerm

__all__ = ["catboost", "lightgbm", "ranklib", "xgboost"]


def lightgbm(
    objective: str = "lambdarank",
    *,
    lambdarank_norm: bool = True,
    lambdarank_truncation_level: int = 30,
    sigmoid: float = 1.0,
    label_gain: Sequence[float] | None = None,
    objective_seed: int = 5,
    label: str | None = None,
) -> LightGBMTerm:
    """LightGBM's `lambdarank` or `rank_xendcg`: LightGBM grows the same trees from either.

    Parameters
    ----------
    objective
        ``"lambdarank"`` or ``"rank_xendcg"``.
    lambdarank_norm
        Divide each pair's weight by 0.01 + the difference of its scores, and multiply each query by log2(1 + S) / S,
        S = twice the sum of its pairs' gradients.
    lambdarank_truncation_level
        Pairs whose better-ranked row is among this many first ranks; the ideal DCG is cut there as well.
    sigmoid
        Slope of the logistic function.
    label_gain
        Gain of the labels 0, 1, 2 ...; None for 2^label - 1 of labels up to 30.
    objective_seed
        Of the numbers that rank_xendcg draws. LightGBM makes one from `seed`, if that is given and this is not.
    label
        Name of the column that holds the labels, whole numbers; None for the data set's own.

    Returns
    -------
    A term.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that are no whole numbers, or have no gain.

    Notes
    -----
    As in LightGBM 4.7, faults included:

    * A pair weighs what swapping it changes in the NDCG of the whole list, divided by the ideal DCG of the truncation
      level: neither the change of NDCG at that level nor of any other.
    * The logistic function is the left edge of one of 2^20 bins between -25 and 25 (over `sigmoid`): too large by up
      to 5e-5 of its value. Gradients are added up in float32.
    * With `lambdarank_norm` the gradient is that of no cost: the divisor depends on the scores.
    * rank_xendcg draws a number a row and round from a generator for each query, whose seed is objective_seed plus the
      query's number; the number has 15 random bits, and the first ones of neighbouring queries are nearly the same.
    * Where one row has nearly all of the probability, rank_xendcg divides by what is left of 1 after rounding.

    A row's weight multiplies its gradient after the pairs are summed. Left out: correction for position bias;
    LightGBM's refusal of queries of more than 10,000 rows; that rank_xendcg cuts off fractions of labels in silence
    (here they are refused) and divides by 0 where one row has all of the probability. Rounds are counted from where the
    term's training began, `Objective(spec, state=...)` included; LightGBM's continued training draws afresh.

    References
    ----------
    Bruch (2021), "An alternative cross entropy loss for learning-to-rank", for rank_xendcg.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> term = lo.compat.lightgbm(lambdarank_norm=False)
    >>> grad, hess = lo.gradient(term, [0.0, 0.0], [0, 1], group=[2])
    >>> grad.round(4).tolist()
    [0.1845, -0.1845]
    """
    return LightGBMTerm(
        objective, lambdarank_norm, lambdarank_truncation_level, sigmoid, label_gain, objective_seed, label
    )


def xgboost(
    objective: str = "rank:ndcg",
    *,
    lambdarank_pair_method: str = "topk",
    lambdarank_num_pair_per_sample: int | None = None,
    lambdarank_normalization: bool = True,
    lambdarank_score_normalization: bool = True,
    ndcg_exp_gain: bool = True,
    label: str | None = None,
) -> XGBoostTerm:
    """XGBoost's `rank:ndcg`, `rank:map` or `rank:pairwise`: XGBoost grows the same trees from either.

    Parameters
    ----------
    objective
        ``"rank:ndcg"``, ``"rank:map"`` or ``"rank:pairwise"``.
    lambdarank_pair_method
        ``"topk"``: each of the first ranks with all rows below it. ``"mean"``: each row with rows drawn from those with
        another label.
    lambdarank_num_pair_per_sample
        How many first ranks, or how many rows are drawn for each row; None for 32, or 1.
    lambdarank_normalization
        "topk": multiply each query by log2(1 + S) / S, S = twice the sum of its pairs' gradients; "mean": divide by the
        number of draws.
    lambdarank_score_normalization
        Divide each pair's weight by 0.01 + the difference of its scores.
    ndcg_exp_gain
        Gains are 2^label - 1 of whole numbers up to 31, else the labels.
    label
        Name of the column that holds the labels; None for the data set's own.

    Returns
    -------
    A term.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for labels that the objective does not take.

    Notes
    -----
    As in XGBoost 3.2 on the CPU, faults included:

    * Hessians are twice the true ones, so that steps are half as long as LightGBM's.
    * A pair weighs what swapping it changes in the NDCG, or average precision, of the whole list; rank:ndcg divides by
      the ideal DCG of the first ranks that make pairs.
    * `lambdarank_score_normalization` divides the pairs of rank:pairwise too. Under either normalisation the gradient
      is that of no cost.
    * Weights of the queries (here the mean weight of the rows) are divided by their mean: doubling them all changes
      nothing.
    * A Hessian is at least 2e-16 times the pair's weight. Logistic function and sums are float32.
    * "mean" draws with std::minstd_rand, started afresh in each round with (round + 1) * number of queries + number of
      the query, and with libstdc++'s uniform_int_distribution: XGBoost built with another standard library draws
      others, and so do GPUs and versions other than 3.2 (later ones take the seed from the global generator).

    Give XGBoost `base_score=0` to compare: else its own objective begins near 0 and any custom one at 0.5, and scores
    round differently. `lambdarank_unbiased` is not offered.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> term = lo.compat.xgboost("rank:pairwise", lambdarank_normalization=False)
    >>> lo.gradient(term, [0.0, 0.0], [0, 1], group=[2])
    (array([ 0.5, -0.5]), array([0.5, 0.5]))
    """
    return XGBoostTerm(
        objective, lambdarank_pair_method, lambdarank_num_pair_per_sample, lambdarank_normalization,
        lambdarank_score_normalization, ndcg_exp_gain, label,
    )  # fmt: skip


def catboost(
    *,
    metric: str = "NDCG",
    sigma: float = 1.0,
    norm: bool = True,
    top: int = -1,
    type: str = "Base",
    denominator: str = "LogPosition",
    label: str | None = None,
) -> CatBoostTerm:
    """CatBoost's `LambdaMart`: its derivatives, with the sign of the gradient of a loss.

    Parameters
    ----------
    metric
        ``"NDCG"``, ``"DCG"``, ``"MRR"``, ``"ERR"`` or ``"MAP"``.
    sigma
        Slope of the logistic function.
    norm
        Divide each pair's weight by 0.01 + the difference of its scores, and multiply each query by log2(1 + S) / S,
        S = twice the sum of its pairs' gradients.
    top
        For NDCG and DCG: pairs with a row among this many first ranks; -1 for all.
    type
        For NDCG and DCG: ``"Base"``, gains are the labels; ``"Exp"``, 2^label - 1.
    denominator
        For NDCG and DCG: ``"LogPosition"``, log2(rank + 1); ``"Position"``, the rank (from 1).
    label
        Name of the column that holds the labels; None for the data set's own.

    Returns
    -------
    A term.

    Raises
    ------
    ValueError
        For a parameter out of range; on data, for negative labels, and for ERR, whose labels are chances that the user
        stops at a row, for labels above 1.

    Notes
    -----
    As in CatBoost 1.2, faults included:

    * NDCG, DCG: a pair weighs the change in the whole list over the ideal value of the first `top` ranks, so that DCG
      is NDCG by another name.
    * MRR: pairs of a later relevant row count its own rank as the one to be improved on, though the first relevant
      row's counts. `top` is ignored, by ERR and MAP too.
    * ERR: a row whose label equals that of the upper row of a pair is left out between the two.
    * MAP: a pair weighs 1 / (rank of its upper row), and if that row is irrelevant 1 / rank of each relevant row
      between the two is added; nothing is divided by the number of relevant rows.

    CatBoost itself stores the gradient of a loss where all of its other losses store the opposite, and a positive
    second derivative, so that steps change their sign with `l2_leaf_reg` and point the wrong way with
    `leaf_estimation_method="Gradient"`. Here a step against the gradient improves the ranking. CatBoost ignores
    weights; here a row's weight multiplies its gradient. It computes in float32 in places, and this term in double
    precision.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> grad, hess = lo.gradient(lo.compat.catboost(metric="MRR", norm=False), [0.0, 0.0], [0, 1], group=[2])
    >>> grad.tolist()  # half of 1/1 - 1/2
    [0.25, -0.25]
    """
    return CatBoostTerm(metric, sigma, norm, top, type, denominator, label)


def ranklib(metric: str = "NDCG@10", *, label: str | None = None) -> RankLibTerm:
    """RankLib's `LambdaMART`: its lambdas (with the sign of a gradient) and weights.

    Parameters
    ----------
    metric
        As `-metric2t` takes it: ``"MAP"``, ``"NDCG@k"``, ``"DCG@k"``, ``"P@k"``, ``"RR@k"``, ``"ERR@k"`` or
        ``"Best@k"``. Without ``@k`` RankLib takes k = 10, for MAP and RR k = 0.
    label
        Name of the column that holds the labels, whole numbers; None for the data set's own.

    Returns
    -------
    A term.

    Raises
    ------
    ValueError
        For a name of no scorer, or a k below 1; on data, for labels that are no whole numbers from 0 to 30 (ERR: 4).

    Notes
    -----
    As in RankLib 2.x, faults included:

    * Pairs count if one row is among the first k + 1 ranks. MAP has k = 0, so that all pairs without the top row are
      left out, though their changes are worked out rightly; "MAP@k" moves this cut and nothing else.
    * NDCG and DCG: a pair weighs the change in the whole list, over the ideal value of the first k ranks for NDCG.
    * RR: right with a k; without one everything is 0, and a training stops with an error.
    * ERR: the chance to get past a row is multiplied twice, and rows below k count as labelled 0.
    * Best: marked as unsure by its authors; some changes are wrong, and three equal best rows are needed for one to
      be held dispensable.

    There is no sigma, no normalisation and no floor. RankLib has no weights; here a row's weight multiplies its
    gradient. Leaves are sums of lambdas over sums of weights, RankLib's own from LightGBM with `lambda_l2=0`; it adds
    them up in float32.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> grad, hess = lo.gradient(lo.compat.ranklib("RR@10"), [0.0, 0.0], [0, 1], group=[2])
    >>> grad.tolist(), hess.tolist()
    ([0.25, -0.25], [0.125, 0.125])
    """
    return RankLibTerm(metric, label)
