"""CatBoost's LambdaMart as a term; what it does is said at `compat.catboost`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lambda_objectives.arrays import whole_number
from lambda_objectives.metrics import DCG, MAP, MRR, NDCG, check_number
from lambda_objectives.metrics.tables import longest_query
from lambda_objectives.queries import Queries, Ranking
from lambda_objectives.terms import Floats, check_column, loops, qualified
from lambda_objectives.terms.pairs import row_weights
from lambda_objectives.terms.peers import Peer, Prepared, by_pairs, check_choice, check_flag


@dataclass(frozen=True, repr=False)
class CatBoostTerm(Peer):
    """See `catboost`."""

    call: ClassVar[str] = "catboost"

    metric: str
    sigma: float
    norm: bool
    top: int
    type: str
    denominator: str
    label: str | None

    def __post_init__(self) -> None:
        check_choice("metric", self.metric, "NDCG", "DCG", "MRR", "ERR", "MAP")
        check_number("sigma", self.sigma, above=0.0)
        check_flag("norm", self.norm)
        if self.top != -1 or isinstance(self.top, bool | float):
            try:
                whole_number("top", self.top, at_least=1)
            except ValueError:
                raise ValueError(f"top must be a whole number from 1, or -1 for all, found {self.top!r}") from None
        check_choice("type", self.type, "Base", "Exp")
        check_choice("denominator", self.denominator, "LogPosition", "Position")
        check_column("label", self.label)

    @property
    def metric_of_ours(self) -> Any:
        """The metric with its cut-off and gains; none for ERR of chances."""
        if self.metric in ("NDCG", "DCG"):
            return {"NDCG": NDCG, "DCG": DCG}[self.metric](
                None if self.top == -1 else self.top,
                gain="linear" if self.type == "Base" else "exp2",
                discount="log2" if self.denominator == "LogPosition" else "reciprocal",
            )
        return {"MRR": MRR(), "MAP": MAP(), "ERR": None}[self.metric]

    @property
    def name(self) -> str:
        """The metric's: ndcg, ndcg@10, mrr ..., with the name of a column of labels in front."""
        return qualified(self.label, "err") if self.metric == "ERR" else super().name

    def prepare(self, queries: Queries, dtype: npt.DTypeLike) -> Prepared:
        """Look up gains and ideal values."""
        common, ptr = loops("peers"), queries.borders
        most = 1.0 if self.metric == "ERR" else 1000.0 if self.type == "Exp" else np.inf
        labels = self.checked_labels(queries, f"CatBoost's {self.metric}", most, whole=False)
        longest = longest_query(ptr)
        top = longest if self.top == -1 else self.top
        gain = np.exp2(labels) - 1.0 if self.type == "Exp" else labels
        discount = 1.0 / np.arange(1.0, longest + 1)
        if self.denominator == "LogPosition":
            discount = common.log2_discounts(longest)
        kind = getattr(loops("peers_catboost"), self.metric.removeprefix("N"))
        ideal = common.ideal_sums(labels, gain, discount, ptr, top)
        return self.with_tables(
            queries, labels, row_weights(queries, dtype), kind, labels, gain, ideal, discount, top,
            float(self.sigma), bool(self.norm),
        )  # fmt: skip

    def gradient(self, prepared: Prepared, ranking: Ranking, grad: Floats, hess: Floats) -> float:
        """Write gradient and Hessian, return the cost of the pairs."""
        return by_pairs(loops("peers_catboost").lambda_mart, prepared, ranking, grad, hess)
