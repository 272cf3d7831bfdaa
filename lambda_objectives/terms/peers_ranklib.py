"""RankLib's LambdaMART as a term; what it does is said at `compat.ranklib`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.metrics import DCG, ERR, MAP, MRR, NDCG, Precision
from lambda_objectives.metrics.tables import longest_query
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, check_column, loops, qualified
from lambda_objectives.terms.pairs import row_weights
from lambda_objectives.terms.peers import Peer, Prepared, by_pairs

SCORER = re.compile(r"(MAP|NDCG|DCG|P|RR|ERR|BEST)(@0*[1-9]\d{0,8})?", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class RankLibTerm(Peer):
    """See `ranklib`."""

    call: ClassVar[str] = "ranklib"

    metric: str
    label: str | None

    def __post_init__(self) -> None:
        check_column("label", self.label)
        if not isinstance(self.metric, str) or not SCORER.fullmatch(self.metric):
            names = "'MAP', 'NDCG@k', 'DCG@k', 'P@k', 'RR@k', 'ERR@k' or 'Best@k' with a k from 1"
            raise ValueError(f"metric must be {names}, found {self.metric!r}")

    @property
    def scorer(self) -> tuple[str, int]:
        """Name and k of RankLib's scorer."""
        name, _, k = self.metric.upper().partition("@")
        return name, int(k) if k else 0 if name in ("MAP", "RR") else 10

    @property
    def metric_of_ours(self) -> Any:
        """The metric with RankLib's value for queries without a relevant row; none for Best."""
        name, k = self.scorer
        if name == "MAP":
            return MAP(empty=0.0)
        if name == "NDCG":
            return NDCG(k, empty=0.0)
        if name == "RR":
            return MRR(k or None)
        return {"DCG": DCG, "P": Precision, "ERR": ERR}[name](k) if name != "BEST" else None

    @property
    def name(self) -> str:
        """The metric's: ndcg@10, map ..., with the name of a column of labels in front."""
        name, k = self.scorer
        return qualified(self.label, f"best@{k}") if name == "BEST" else super().name

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Look up gains and ideal values."""
        common, ptr, (name, k) = loops("peers"), queries.borders, self.scorer
        kinds = {"NDCG": "DCG", "MAP": "AP", "P": "PRECISION"}
        kind = getattr(loops("peers_ranklib"), kinds.get(name, name))
        labels = self.checked_labels(queries, f"RankLib's {self.metric}", 4 if name == "ERR" else 30)
        gain, discount = np.exp2(labels) - 1.0, common.log2_discounts(longest_query(ptr))
        ideal = common.ideal_sums(labels, gain, discount, ptr, k) if name == "NDCG" else np.ones(len(ptr) - 1)
        return self.with_tables(
            queries, labels, row_weights(queries, dtype), kind, k, k, labels, gain, ideal, discount
        )  # fmt: skip

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the cost of the pairs."""
        return by_pairs(loops("peers_ranklib").lambda_mart, prepared, ranking, grad, hess)
