"""Ranking metrics: what they are worth at given scores, and the tables from which any swap's change is O(1).

A metric is declared by a frozen dataclass with a `name`, whether to `maximise` it, and `tables(labels, ptr)`, which
turns the labels of a data set into what the kernels need; that is all a pair loop has to know about it.
"""

from lambda_objectives.metrics.binary import MAP, MRR, RBP, HitRate, Precision, Recall
from lambda_objectives.metrics.cascade import ERR
from lambda_objectives.metrics.custom import CustomMetric
from lambda_objectives.metrics.dcg import DCG, NDCG
from lambda_objectives.metrics.order import AUC, Kendall, Spearman
from lambda_objectives.metrics.tables import Tables, check_cutoff, check_number, values

__all__ = [
    "AUC",
    "DCG",
    "ERR",
    "MAP",
    "MRR",
    "NDCG",
    "RBP",
    "CustomMetric",
    "HitRate",
    "Kendall",
    "Precision",
    "Recall",
    "Spearman",
    "Tables",
    "check_cutoff",
    "check_number",
    "values",
]
