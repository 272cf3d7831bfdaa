"""LightGBM's ranking objectives as a term; what it does is said at `compat.lightgbm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import vector, whole_number
from lambda_objectives.metrics import NDCG, check_number
from lambda_objectives.metrics.tables import longest_query
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, check_column, loops, qualified
from lambda_objectives.terms.pairs import row_weights
from lambda_objectives.terms.peers import Peer, Prepared, check_choice, check_flag, reciprocal


@dataclass(frozen=True, repr=False)
class LightGBMTerm(Peer):
    """See `lightgbm`."""

    call: ClassVar[str] = "lightgbm"

    objective: str
    lambdarank_norm: bool
    lambdarank_truncation_level: int
    sigmoid: float
    label_gain: Any
    objective_seed: int
    label: str | None

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, "lambdarank", "rank_xendcg")
        check_flag("lambdarank_norm", self.lambdarank_norm)
        whole_number("lambdarank_truncation_level", self.lambdarank_truncation_level, at_least=1)
        check_number("sigmoid", self.sigmoid, above=0.0)
        whole_number("objective_seed", self.objective_seed, at_least=0)
        check_column("label", self.label)
        if self.label_gain is not None:
            gain = vector("label_gain", self.label_gain)
            object.__setattr__(self, "label_gain", tuple(gain.tolist()))
            if len(gain) == 0 or (gain < 0).any() or (np.diff(gain) < 0).any():
                raise ValueError(f"label_gain must not be empty, negative or falling, found {self.label_gain}")

    @property
    def metric_of_ours(self) -> Any:
        """NDCG, of lambdarank cut at the truncation level."""
        if self.objective == "rank_xendcg":
            return NDCG()
        return NDCG(self.lambdarank_truncation_level, gain="exp2" if self.label_gain is None else self.label_gain)

    @property
    def name(self) -> str:
        """ndcg@30 (lambdarank) or rank_xendcg, with the name of a column of labels in front."""
        return super().name if self.objective == "lambdarank" else qualified(self.label, self.objective)

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Look up gains and ideal values."""
        common, ptr, weights = loops("peers"), queries.borders, row_weights(queries, dtype)
        if self.objective == "rank_xendcg":
            labels = self.checked_labels(queries, "rank_xendcg", 30)
            return self.with_tables(queries, labels, weights, np.exp2(labels), self.objective_seed)
        gains = np.array(self.label_gain or np.exp2(np.arange(31)) - 1.0)
        labels = self.checked_labels(queries, "lambdarank", len(gains) - 1)
        gain, discount = gains[labels.astype(np.int64)], common.log2_discounts(longest_query(ptr))
        inverse = reciprocal(common.ideal_sums(labels, gain, discount, ptr, self.lambdarank_truncation_level))
        return self.with_tables(
            queries, labels, weights, labels, gain, inverse, discount,
            self.lambdarank_truncation_level, float(self.sigmoid), bool(self.lambdarank_norm),
        )  # fmt: skip

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the cost of the pairs, or the cross-entropy."""
        kernels, ptr = loops("peers_lightgbm"), prepared.queries.borders
        out = (prepared.weights, grad, hess, np.empty(len(ptr) - 1), ranking.parts)
        if self.objective == "rank_xendcg":
            kernels.xendcg(*prepared.fixed, ranking.round, ranking.scores, ptr, *out)
        else:
            kernels.lambdarank(*prepared.fixed, ranking.scores, ptr, ranking.order, *out)
        return prepared.queries.mean_over_queries(out[3])
