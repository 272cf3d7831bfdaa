"""The public estimators: what a ranking, a mean and a class make of scores, with either booster."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

import lambda_objectives as lo
from lambda_objectives.queries import Queries
from lambda_objectives.run import Run
from lambda_objectives.sklearn.boosted import Boosted, Floats
from lambda_objectives.sklearn.inputs import QID, Rows, column_names, read_columns, read_queries, read_weights
from lambda_objectives.specs import as_spec
from lambda_objectives.terms.losses import logistic


class Ranker(Boosted):
    """Scores, by which the rows of a query are ranked."""

    _default = lo.LambdaRank(lo.NDCG())

    def _check(self, rows: Rows) -> None:
        if rows.group is None:
            raise ValueError(
                "group: a ranker needs queries, and none are given: say group= (sizes) or qid= (one id a row), or put "
                "a column 'qid' into a data frame X"
            )

    def predict(self, X: Any) -> Floats:
        """Scores, (n,); greater is better ranked."""
        return self._scores(X)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, group: Any = None, qid: Any = None, columns: Any = None
    ) -> float:
        """The metric of the objective's first term on some data, less is better turned round: for model selection.

        Parameters
        ----------
        X, y, sample_weight, group, qid, columns
            As of `fit`. scikit-learn's searches pass no queries to `score`: put a column "qid" into a data frame X, or
            ask for them by its metadata routing, `set_score_request(qid=True)`.
        """
        scores, n = self._scores(X), len(np.asarray(y))
        sizes = read_queries(X, group, qid, n)
        if sizes is None:
            raise ValueError(
                "group: a ranking is scored query by query, and no queries are given: say group= or qid=, put a column "
                "'qid' into a data frame X, or let scikit-learn pass them: set_config(enable_metadata_routing=True) "
                "and set_score_request(qid=True)"
            )
        there = [name for name in self._taken_out if name in (column_names(X) or ()) and name != QID]
        queries = Queries.from_arrays(
            y,
            group=sizes,
            weights=read_weights(sample_weight, sizes, n),
            columns=read_columns(there if columns is None else columns, X, n),
        )
        run = Run(as_spec(self.objective_.spec).terms[0], queries, dtype=np.float64)
        reading = run.evaluate(scores)[run.primary]
        return reading.value if reading.maximise else -reading.value


class Regressor(RegressorMixin, Boosted):  # type: ignore[misc]
    """Means, whatever the link of the loss."""

    _default = lo.SquaredError()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean label that is predicted, (n,); with `Gaussian` and ``return_std=True`` the deviation besides.

        Means come through the link of the objective's first term: e^score for Poisson, Gamma and Tweedie.
        """
        scores, term = self._scores(X), as_spec(self.objective_.spec).terms[0]
        if scores.ndim == 2:
            return (scores[:, 0], np.exp(scores[:, 1])) if return_std else scores[:, 0]
        if return_std:
            raise ValueError(f"return_std: {type(term).__name__} predicts no deviation, Gaussian() does")
        link = getattr(term, "link", None)
        means: Floats = np.exp(scores) if link == "log" else logistic(scores)[0] if link == "logit" else scores
        return means


class Classifier(ClassifierMixin, Boosted):  # type: ignore[misc]
    """Probabilities of two classes."""

    _default = lo.LogLoss()

    def _labels(self, y: Any, reset: bool) -> Floats:
        y = np.asarray(y)
        check_classification_targets(y)
        if reset:
            if (kind := type_of_target(y, input_name="y")) != "binary":
                raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y must have two classes, found one class: {self.classes_[0]!r}")
        strange = ~np.isin(y, self.classes_)
        if strange.any():
            found = y[strange].tolist()[0]
            raise ValueError(f"y: {found!r} is none of the classes {self.classes_.tolist()} of y in fit")
        second: Floats = (y == self.classes_[1]).astype(np.float64)
        return second

    def decision_function(self, X: Any) -> Floats:
        """Raw scores, (n,): the log odds of the second class where the loss is `LogLoss`."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of both classes, (n, 2): the logistic function of the scores, as of a `LogLoss`."""
        p = logistic(self._scores(X))[0]
        both: Floats = np.stack([1.0 - p, p], axis=1)
        return both

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The more probable class, (n,)."""
        second = self._scores(X) > 0
        chosen: npt.NDArray[Any] = self.classes_[second.astype(np.intp)]
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class LightGBMRanker(Ranker):
    """LightGBM, trained to rank by a term or a spec, as a scikit-learn estimator.

    Parameters
    ----------
    objective
        A term or a spec, such as ``LambdaRank(NDCG(10))`` or an `AugmentedLagrangian`, or an `Objective`; None for
        ``LambdaRank(NDCG())``.
    n_estimators
        Rounds.
    early_stopping_rounds
        Stop after so many rounds without a better one on the first entry of ``eval_set``, without one on the training
        data, and keep the best, under constraints the best within all bounds there (`lo.lightgbm.early_stopping`). None
        for all rounds; under constraints for the best within all bounds on the training data.
    stopping_metric
        The reading by which rounds are compared, such as ``"ndcg@10"``; None for the primary term's metric.
    tolerance
        Share of a bound by which it may be broken.
    watch
        Further metrics to evaluate each round, such as ``[NDCG(10), MAP()]``.
    **params
        LightGBM's own parameters, by any of their names: ``num_leaves=31, learning_rate=0.1, random_state=0``.

    Notes
    -----
    After `fit`: ``booster_`` (the LightGBM Booster), ``history_`` (costs, metrics, multipliers by round),
    ``evals_result_``, ``objective_``, ``n_iter_``, ``feature_importances_``. The same model comes out of
    `lightgbm.train` with the same parameters. LightGBM says nothing unless ``verbosity=`` is given.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> shop = lo.datasets.product_search(queries=100, seed=0)
    >>> ranker = lo.sklearn.LightGBMRanker(lo.LambdaRank(lo.NDCG(10)), n_estimators=20)
    >>> ranker = ranker.fit(shop.X, shop.y, group=shop.group)
    >>> ranker.history_["ndcg@10"][-1] > ranker.history_["ndcg@10"][0]
    True
    """

    _booster = "lightgbm"


class XGBoostRanker(Ranker):
    """XGBoost, trained to rank by a term or a spec, as a scikit-learn estimator.

    Parameters
    ----------
    objective, n_estimators, early_stopping_rounds, stopping_metric, tolerance, watch
        As of `LightGBMRanker`.
    **params
        XGBoost's own parameters: ``max_depth=6, learning_rate=0.3, random_state=0``, and ``missing``,
        ``enable_categorical``, ``feature_types``, ``feature_weights`` of its matrices. Terms that work on pairs have
        ``min_child_weight=1e-3`` unless it is given, for their Hessians are small.

    Notes
    -----
    After `fit` as `LightGBMRanker`. Weights may be one a row, which `XGBRanker` has not.

    Examples
    --------
    >>> import lambda_objectives as lo
    >>> shop = lo.datasets.product_search(queries=100, seed=0)
    >>> ranker = lo.sklearn.XGBoostRanker(lo.LambdaRank(lo.MAP()), n_estimators=20, max_depth=3)
    >>> ranker.fit(shop.X, shop.y, group=shop.group).predict(shop.X).shape
    (2435,)
    """

    _booster = "xgboost"


class LightGBMRegressor(Regressor):
    """LightGBM, trained on a loss of rows or a spec of such, as a scikit-learn regressor.

    Parameters
    ----------
    objective
        As ``Decorrelated(Poisson(), "age", weight=5)``, or an `Objective`; None for ``SquaredError()``.
    n_estimators, early_stopping_rounds, stopping_metric, tolerance, watch
        As of `LightGBMRanker`.
    **params
        LightGBM's own parameters.

    Notes
    -----
    After `fit` as `LightGBMRanker`. Training starts from the mean label, as with LightGBM's own objectives, and the
    model has it in its first tree. `predict` returns means; ``booster_.predict`` scores, which for Poisson, Gamma and
    Tweedie are their logarithms.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)); age = X[:, 1] + rng.normal(size=500)
    >>> claims = rng.poisson(np.exp(X[:, 0] + age))
    >>> fair = lo.Decorrelated(lo.Poisson(), "age", weight=2.0)
    >>> model = lo.sklearn.LightGBMRegressor(fair, n_estimators=30)
    >>> model = model.fit(X, claims, columns={"age": age})
    >>> bool(model.predict(X).min() > 0), len(model.history_["age.dcov2"])
    (True, 30)
    """

    _booster = "lightgbm"


class XGBoostRegressor(Regressor):
    """XGBoost, trained on a loss of rows or a spec of such, as a scikit-learn regressor.

    Parameters
    ----------
    objective, n_estimators, early_stopping_rounds, stopping_metric, tolerance, watch
        As of `LightGBMRegressor`.
    **params
        As of `XGBoostRanker`.

    Notes
    -----
    After `fit` as `LightGBMRegressor`; the model has the mean label as its ``base_score``.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)); y = 50 + X[:, 0]
    >>> model = lo.sklearn.XGBoostRegressor(lo.Gaussian()).fit(X, y)
    >>> mean, deviation = model.predict(X, return_std=True)
    >>> bool(abs(mean - y).max() < 0.5), deviation.shape
    (True, (500,))
    """

    _booster = "xgboost"


class LightGBMClassifier(Classifier):
    """LightGBM, trained on a loss of two classes or a spec of such, as a scikit-learn classifier.

    Parameters
    ----------
    objective
        As ``Decorrelated(LogLoss(), "sex", weight=5)``, or an `Objective`; None for ``LogLoss()``.
    n_estimators, early_stopping_rounds, stopping_metric, tolerance, watch
        As of `LightGBMRanker`.
    **params
        LightGBM's own parameters.

    Notes
    -----
    After `fit` as `LightGBMRegressor`, and ``classes_``: two labels of any kind; the objective sees 0 and 1.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3)); mass = X[:, 1] + rng.normal(size=500)
    >>> y = np.where(X[:, 0] + mass > 0, "signal", "noise")
    >>> flat = lo.Decorrelated(lo.LogLoss(), "mass", weight=5.0, within_group="label")
    >>> model = lo.sklearn.LightGBMClassifier(flat, n_estimators=30)
    >>> model = model.fit(X, y, columns={"mass": mass})
    >>> model.classes_.tolist(), model.predict_proba(X).shape
    (['noise', 'signal'], (500, 2))
    """

    _booster = "lightgbm"


class XGBoostClassifier(Classifier):
    """XGBoost, trained on a loss of two classes or a spec of such, as a scikit-learn classifier.

    Parameters
    ----------
    objective, n_estimators, early_stopping_rounds, stopping_metric, tolerance, watch
        As of `LightGBMClassifier`.
    **params
        As of `XGBoostRanker`.

    Notes
    -----
    After `fit` as `LightGBMClassifier`; the model has the log odds of all rows as its ``base_score``.

    Examples
    --------
    >>> import numpy as np, lambda_objectives as lo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> lo.sklearn.XGBoostClassifier(max_depth=3).fit(X, X[:, 0] > 0).score(X, X[:, 0] > 0) > 0.9
    True
    """

    _booster = "xgboost"
