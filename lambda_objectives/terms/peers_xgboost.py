"""XGBoost's ranking objectives as a term; what it does is said at `compat.xgboost`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import whole_number
from lambda_objectives.metrics import MAP, NDCG
from lambda_objectives.metrics.tables import longest_query
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, check_column, loops, qualified
from lambda_objectives.terms.peers import Peer, Prepared, check_choice, check_flag, reciprocal


@dataclass(frozen=True, repr=False)
class XGBoostTerm(Peer):
    """See `xgboost`."""

    call: ClassVar[str] = "xgboost"

    objective: str
    lambdarank_pair_method: str
    lambdarank_num_pair_per_sample: int | None
    lambdarank_normalization: bool
    lambdarank_score_normalization: bool
    ndcg_exp_gain: bool
    label: str | None

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, "rank:ndcg", "rank:map", "rank:pairwise")
        check_choice("lambdarank_pair_method", self.lambdarank_pair_method, "topk", "mean")
        if self.lambdarank_num_pair_per_sample is not None:
            whole_number("lambdarank_num_pair_per_sample", self.lambdarank_num_pair_per_sample, at_least=1)
        for name in ("lambdarank_normalization", "lambdarank_score_normalization", "ndcg_exp_gain"):
            check_flag(name, getattr(self, name))
        check_column("label", self.label)

    @property
    def pairs(self) -> int:
        """How many first ranks make pairs, or how many rows are drawn for each row."""
        return self.lambdarank_num_pair_per_sample or (1 if self.lambdarank_pair_method == "mean" else 32)

    @property
    def metric_of_ours(self) -> Any:
        """NDCG or MAP, cut where the pairs are; none for rank:pairwise."""
        k = None if self.lambdarank_pair_method == "mean" else self.pairs
        if self.objective == "rank:ndcg":
            return NDCG(k, gain="exp2" if self.ndcg_exp_gain else "linear")
        return MAP(k) if self.objective == "rank:map" else None

    @property
    def name(self) -> str:
        """ndcg@32, map@32 or rank_pairwise, with the name of a column of labels in front."""
        return qualified(self.label, "rank_pairwise") if self.objective == "rank:pairwise" else super().name

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Look up gains and ideal values."""
        common, kernels = loops("peers"), loops("peers_xgboost")
        ptr, mean = queries.borders, self.lambdarank_pair_method == "mean"
        kind = getattr(kernels, self.objective.removeprefix("rank:").upper())
        labels = gain = queries.column(self.label)
        longest = longest_query(ptr)
        inverse, discount = np.zeros(len(ptr) - 1), common.log2_discounts(longest)
        if kind == kernels.MAP:
            self.checked_labels(queries, "rank:map", 1)
        elif kind == kernels.NDCG:
            exp = self.ndcg_exp_gain
            self.checked_labels(queries, "rank:ndcg", 31 if exp else np.inf, whole=exp)
            gain = np.exp2(labels) - 1.0 if exp else labels
            inverse = reciprocal(common.ideal_sums(labels, gain, discount, ptr, longest if mean else self.pairs))
        return self.with_tables(
            queries, labels, queries.query_weights.astype(dtype), kind, mean, self.pairs,
            bool(self.lambdarank_normalization), bool(self.lambdarank_score_normalization),
            labels, gain, inverse, discount,
        )  # fmt: skip

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the cost of the pairs."""
        ptr = prepared.queries.borders
        cost = np.empty(len(ptr) - 1)
        loops("peers_xgboost").rank_objective(
            *prepared.fixed, ranking.round, ranking.scores, ptr, ranking.order, prepared.weights, grad, hess, cost,
            ranking.parts,
        )  # fmt: skip
        return prepared.queries.mean_over_queries(cost)
