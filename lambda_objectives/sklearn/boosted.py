"""What all estimators are: parameters, one fit for both boosters, raw scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

import lambda_objectives as lo
from lambda_objectives.arrays import check_order, vector, whole_number
from lambda_objectives.queries import MissingColumn
from lambda_objectives.sklearn import boosting
from lambda_objectives.sklearn.inputs import (
    QID,
    Rows,
    column_names,
    read_columns,
    read_queries,
    read_weights,
    taken_out,
    where_to_say,
    without,
)
from lambda_objectives.specs import as_spec
from lambda_objectives.specs.lagrangian import AugmentedLagrangian

Floats = npt.NDArray[np.float64]
ARRAYS = {"accept_sparse": "csr", "ensure_all_finite": False}  # boosters know what to do with NaN
SEVERAL = ("eval_group", "eval_qid", "eval_sample_weight", "eval_columns")


class Boosted(BaseEstimator):  # type: ignore[misc]
    """What all estimators have: parameters, a training, raw scores. Not to be used by itself."""

    _booster = ""
    _default = None  # type: Any  # what is trained on unless something is given

    def __init__(
        self,
        objective: Any = None,
        *,
        n_estimators: int = 100,
        early_stopping_rounds: int | None = None,
        stopping_metric: str | None = None,
        tolerance: float = 0.0,
        watch: Any = (),
        **params: Any,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.early_stopping_rounds = early_stopping_rounds
        self.stopping_metric = stopping_metric
        self.tolerance = tolerance
        self.watch = watch
        self._take(params)

    def _take(self, params: Mapping[str, Any]) -> None:
        """Keep the booster's own parameters where scikit-learn keeps parameters: as attributes without underscores."""
        for name, value in params.items():
            if name.startswith("_") or name.endswith("_") or hasattr(type(self), name):
                raise ValueError(f"{name}={value!r}: no parameter of a booster has this name")
            setattr(self, name, value)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator and of the booster, by name."""
        own: dict[str, Any] = super().get_params(deep)
        return own | {name: value for name, value in vars(self).items() if name not in own and _is_parameter(name)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator and of the booster."""
        there = self.get_params()
        self._take({name: value for name, value in params.items() if name not in there and "__" not in name})
        super().set_params(**params)
        return self

    @property
    def _booster_params(self) -> dict[str, Any]:
        own = super().get_params(deep=False)
        return {name: value for name, value in self.get_params(deep=False).items() if name not in own}

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        group: Any = None,
        qid: Any = None,
        columns: Any = None,
        eval_set: Any = None,
        eval_group: Any = None,
        eval_qid: Any = None,
        eval_sample_weight: Any = None,
        eval_columns: Any = None,
        callbacks: Sequence[Any] | None = None,
        init_model: Any = None,
    ) -> Self:
        """Train the booster.

        Parameters
        ----------
        X
            (n, d) features: an array, a sparse matrix, or a data frame of pandas, polars or Arrow. A column of a data
            frame called "qid" holds the id of each row's query and is no feature.
        y
            (n,) labels.
        sample_weight
            (n,) one a row, or one a query.
        group, qid
            Sizes of the queries in the order of the rows, or one id a row. The rows of a query lie together.
        columns
            Further labels and controls that the objective names: a mapping from names to (n,) values, a data frame, or
            names of columns of X, which are no features then, and need not be there to predict.
        eval_set
            [(X, y), ...] to evaluate after each round; they are called valid_0, valid_1 ...
        eval_group, eval_qid, eval_sample_weight, eval_columns
            Of each entry of eval_set, in lists.
        callbacks
            The booster's own callbacks.
        init_model
            A model of the booster to go on from.

        Returns
        -------
        The estimator, with

        ``booster_``
            The LightGBM or XGBoost Booster: an ordinary model.
        ``history_``
            Costs, metrics, multipliers and margins by round, at the scores before the round's tree: dict of lists.
        ``evals_result_``
            The same after each round's tree, by entry of eval_set.
        ``objective_``
            The Objective that it was trained by.
        ``n_iter_``
            Rounds of the model.

        Raises
        ------
        TypeError, ValueError
            For data and parameters that do not fit.
        """
        params = boosting.plain(self._booster_params)
        boosting.check_params(self._booster, params)
        objective = self._objective()
        rounds = whole_number("n_estimators", self.n_estimators, at_least=1)
        patience = self.early_stopping_rounds
        on_train = patience is None and isinstance(objective.spec, AugmentedLagrangian)
        if on_train:
            patience = rounds  # never stops, and chooses a round that keeps to the bounds
        self._taken_out = (QID, *(taken_out(columns) or ()))
        train = self._rows(X, y, group, qid, sample_weight, columns, reset=True)
        several = (eval_group, eval_qid, eval_sample_weight, eval_columns)
        valid = {
            f"valid_{i}": self._rows(*each, reset=False, what=f"eval_set[{i}]: ")
            for i, each in enumerate(_eval_sets(eval_set, dict(zip(SEVERAL, several, strict=True)), columns))
        }
        start = boosting.start_of(as_spec(objective.spec).terms[0], train)
        stop = (patience, on_train, self.stopping_metric, self.tolerance)
        plan = boosting.Plan(objective, params, rounds, *stop, start, callbacks or (), init_model)
        run = boosting.train_lightgbm if self._booster == "lightgbm" else boosting.train_xgboost
        try:
            self.booster_, self.history_, self.evals_result_ = run(plan, train, valid)
        except MissingColumn as error:
            raise ValueError(where_to_say(error.column, X, train, list(valid.values()))) from error
        self.objective_ = objective
        return self

    def _objective(self) -> lo.Objective:
        """The Objective of a training: the user's own, or one of the spec."""
        given = self._default if self.objective is None else self.objective
        if isinstance(given, lo.Objective):
            if self.watch:
                raise ValueError(
                    f"watch={self.watch!r} belongs to the Objective that is given: Objective(spec, watch=)"
                )
            return given
        try:
            return lo.Objective(given, watch=self.watch)
        except TypeError as error:
            raise TypeError(f"objective: {error}") from error

    def _rows(
        self,
        X: Any,
        y: Any,
        group: Any,
        qid: Any,
        sample_weight: Any,
        columns: Any,
        *,
        reset: bool,
        what: str = "",
    ) -> Rows:
        """Read and check a data set; ``what`` is said in front of its errors."""
        given = y
        try:
            features = without(X, self._taken_out)
            if column_names(features) is None:
                options = {**ARRAYS, "ensure_min_samples": 2 if reset else 1}
                features, y = validate_data(self, features, y, reset=reset, **options)
            else:
                validate_data(self, features, reset=reset, skip_check_array=True)
                y = column_or_1d(y, warn=True)
            labels = self._labels(y, reset)
            n = len(labels)
            for name, values in {"y": given, "qid": qid, "sample_weight": sample_weight, "columns": columns}.items():
                check_order(name, values, "X", X)
            if np.shape(features)[0] != n:
                raise ValueError(f"y has {n} values, X has {np.shape(features)[0]} rows")
            sizes = read_queries(X, group, qid, n)
            weights = read_weights(sample_weight, sizes, n)
            rows = Rows(features, labels, sizes, weights, read_columns(columns, X, n))
            self._check(rows)
            return rows
        except (TypeError, ValueError) as error:
            if not what:
                raise
            raise type(error)(what + str(error)) from error

    def _labels(self, y: Any, reset: bool) -> Floats:
        """The labels as a booster takes them."""
        return vector("y", y)

    def _check(self, rows: Rows) -> None:
        """Refuse a data set that this kind of estimator can do nothing with."""

    def _scores(self, X: Any) -> Floats:
        """Raw scores, (n,) or (n, outputs)."""
        check_is_fitted(self)
        features = without(X, self._taken_out)
        if column_names(features) is None:
            features = validate_data(self, features, reset=False, **ARRAYS)
        else:
            validate_data(self, features, reset=False, skip_check_array=True)
        run = boosting.scores_lightgbm if self._booster == "lightgbm" else boosting.scores_xgboost
        scores: Floats = run(self.booster_, features, self._booster_params)
        return scores

    @property
    def n_iter_(self) -> int:
        """Rounds of the model: all of them, or as many as early stopping or the bounds have left."""
        check_is_fitted(self)
        lightgbm = self._booster == "lightgbm"
        return int(self.booster_.current_iteration() if lightgbm else self.booster_.num_boosted_rounds())

    @property
    def feature_importances_(self) -> npt.NDArray[Any]:
        """(d,) as the booster's own estimators have it: number of splits in LightGBM, share of gain in XGBoost."""
        check_is_fitted(self)
        lightgbm = self._booster == "lightgbm"
        return (boosting.importances_lightgbm if lightgbm else boosting.importances_xgboost)(self.booster_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _is_parameter(name: str) -> bool:
    """Whether an attribute is a parameter: what scikit-learn keeps besides begins or ends with an underscore."""
    return not name.startswith("_") and not name.endswith("_")


def _eval_sets(eval_set: Any, several: Mapping[str, Any], columns: Any) -> list[tuple[Any, ...]]:
    """X, y, queries, weights and columns of each entry of eval_set."""
    if eval_set is None:
        for name, values in several.items():
            if values is not None:
                raise ValueError(f"{name} belongs to eval_set=[(X, y), ...], which is not given")
        return []
    sets = [eval_set] if isinstance(eval_set, tuple) and len(eval_set) == 2 else list(eval_set)
    for i, pair in enumerate(sets):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"eval_set must be a list of pairs (X, y): entry {i} is {type(pair).__name__}")
    if several["eval_columns"] is None and taken_out(columns) is not None:
        several = {**several, "eval_columns": [columns] * len(sets)}  # names of columns of X hold for every X
    lists = []
    for name, values in several.items():
        if values is not None and (not isinstance(values, list | tuple) or len(values) != len(sets)):
            found = f"{len(values)} entries" if isinstance(values, list | tuple) else type(values).__name__
            raise ValueError(
                f"{name}: a list with an entry for each of the {len(sets)} in eval_set wanted, found {found}"
            )
        lists.append([None] * len(sets) if values is None else values)
    return [(*pair, *more) for pair, *more in zip(sets, *lists, strict=True)]
