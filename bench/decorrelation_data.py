"""Two data sets with controls for bench.decorrelation, and what it measures of scores.

The controls are no features: a model sees them through their proxies alone. Adult keeps marital status and
relationship, which all but give the sex away.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

import lambda_objectives as lo
from bench.common import Array

ADULT = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
TEXT = {"workclass", "education", "marital-status", "occupation", "relationship", "native-country"}
MEASURES = ("raw", "probability", "rank")
KINDS: dict[str, bool | str] = {"pooled": False, "within": "label"}  # by their within_group
Dependence = dict[str, dict[str, dict[str, float]]]  # by measure, kind and control


class Data(NamedTuple):
    """Rows of a data set; the controls are standardised over all of them."""

    name: str
    X: Array
    y: Array
    controls: dict[str, Array]

    def part(self, rows: Array) -> Data:
        """Some of the rows."""
        controls = {name: values[rows] for name, values in self.controls.items()}
        return Data(self.name, self.X[rows], self.y[rows], controls)


def dalitz(folder: Path) -> Data:
    """hep_ml's events, signal and background: three features, two squared masses as controls. Needs uproot."""
    import uproot

    with uproot.open(folder / "dalitzdata.root") as file:
        tree = file["tree"].arrays(library="np")
    X = np.column_stack([tree[name] for name in ("Y1", "Y2", "Y3")]).astype(float)
    return Data(
        "dalitz", X, tree["labels"].astype(float), _standardised({name: tree[name] for name in ("M2AB", "M2AC")})
    )


def adult(folder: Path) -> Data:
    """UCI Adult, training and test file together: is the income above 50,000? Texts become numbers by the alphabet.

    Controls: sex (male or not), race (white or not), age.
    """
    rows = []
    for name in ("adult.data.gz", "adult.test.gz"):
        with gzip.open(folder / name, "rt") as file:
            rows += [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(ADULT)]
    columns = dict(zip(ADULT, map(np.array, zip(*rows, strict=True)), strict=True))
    controls = {
        "sex": (columns.pop("sex") == "Male").astype(float),
        "race": (columns.pop("race") == "White").astype(float),
        "age": columns.pop("age").astype(float),
    }
    y = np.char.startswith(columns.pop("income"), ">50K").astype(float)
    features = [
        np.unique(values, return_inverse=True)[1].astype(float) if name in TEXT else values.astype(float)
        for name, values in columns.items()
    ]
    return Data("Adult", np.column_stack(features), y, _standardised(controls))


def halves(data: Data, seed: int, rows: int | None = None) -> tuple[Data, Data]:
    """Training and held-out half, at random, of at most so many rows."""
    order = np.random.default_rng(seed).permutation(len(data.y))[:rows]
    half = len(order) // 2
    return data.part(order[:half]), data.part(order[half:])


def auc(scores: Array, y: Array) -> float:
    """Area under the ROC curve; ties count half."""
    ranks, positive = rankdata(scores), y > 0
    m = int(positive.sum())
    return float((ranks[positive].mean() - (m + 1) / 2) / (len(y) - m))


def dependence(scores: Array, data: Data, kind: str) -> dict[str, float]:
    """Unbiased squared distance covariance of the scores with each control."""
    found = {}
    for name in data.controls:
        term = lo.DistanceCovariance(name, within_group=KINDS[kind])
        found[name] = lo.evaluate(term, scores, data.y, columns=data.controls)[term.name]
    return found


def measured(scores: Array, data: Data) -> Dependence:
    """Dependence of the raw scores (log odds), of the probability, and of the rank, from 0 to 1.

    The rank's is the same for any two scores that put the rows in the same order: neither it nor the AUC can be had by
    shrinking the scores.
    """
    taken = dict(zip(MEASURES, (scores, expit(scores), rankdata(scores) / len(scores)), strict=True))
    return {measure: {kind: dependence(taken[measure], data, kind) for kind in KINDS} for measure in MEASURES}


def _standardised(controls: dict[str, Array]) -> dict[str, Array]:
    return {name: (values - values.mean()) / values.std() for name, values in controls.items()}
