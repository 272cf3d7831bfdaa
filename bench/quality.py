"""NDCG@10 of each booster's own ranking objective and of ours, same parameters, on LETOR files, over several seeds.

python -m bench.quality --train S1.txt.gz S2.txt.gz S3.txt.gz --valid S4.txt.gz --test S5.txt.gz

Without --valid a fifth of the training queries is held out for early stopping (another fifth for each seed). Seeds
change feature sampling and that fifth. Queries without a relevant row are left out of the test figure.
"""

from __future__ import annotations

import argparse
import sys

import lightgbm as lgb
import numpy as np
import xgboost as xgb

import lambda_objectives as lo

LIGHTGBM = dict(learning_rate=0.05, num_leaves=15, min_data_in_leaf=20, feature_fraction=0.8, verbosity=-1)
XGBOOST = dict(
    eta=0.05, max_leaves=15, max_depth=0, grow_policy="lossguide", colsample_bytree=0.8, min_child_weight=1e-3,
    base_score=0, disable_default_eval_metric=1,
)  # fmt: skip
OURS = {
    "ours": lo.LambdaRank(lo.NDCG()),
    "ours, log_norm": lo.LambdaRank(lo.NDCG(), log_norm=True),
    "ours, both norms": lo.LambdaRank(lo.NDCG(), score_gap_norm=True, log_norm=True),
    "ours, both norms and truncation 30": lo.LambdaRank(lo.NDCG(), truncation=30, score_gap_norm=True, log_norm=True),
    "ours, ERR, both norms": lo.LambdaRank(lo.ERR(), score_gap_norm=True, log_norm=True),
    "ours, XENDCG": lo.XENDCG(),
    "ours, QueryRMSE": lo.QueryRMSE(),
}
OBJECTIVES = {
    f"{booster} {name}": (booster, term)
    for booster, own in (("LightGBM", "lambdarank"), ("XGBoost", "rank:ndcg"))
    for name, term in ({own: None} | OURS).items()
}


def load(paths: list[str], n_features: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Several files as one data set; files may differ in their last features."""
    parts = [lo.datasets.load_letor(path) for path in paths]
    width = max([part.X.shape[1] for part in parts] + [n_features or 0])
    X = np.vstack([np.pad(part.X, ((0, 0), (0, width - part.X.shape[1]))) for part in parts])
    return X, np.concatenate([part.y for part in parts]), np.concatenate([part.group for part in parts])


def part_of(data: tuple[np.ndarray, np.ndarray, np.ndarray], chosen: np.ndarray) -> tuple[np.ndarray, ...]:
    """The rows of some of the queries."""
    X, y, group = data
    rows = np.repeat(chosen, group)
    return X[rows], y[rows], group[chosen]


def train_lightgbm(term: object, train: tuple, valid: tuple, seed: int, rounds: int) -> object:
    """Train with early stopping on the validation set's NDCG@10, computed by LightGBM."""
    data = lgb.Dataset(train[0], train[1], group=train[2])
    watched = data.create_valid(valid[0], valid[1], group=valid[2])
    params = {**LIGHTGBM, "seed": seed, "objective": lo.Objective(term) if term else "lambdarank"}
    params |= {"metric": "ndcg", "eval_at": [10]}
    return lgb.train(params, data, rounds, valid_sets=[watched], callbacks=[lgb.early_stopping(100, verbose=False)])


def train_xgboost(term: object, train: tuple, valid: tuple, seed: int, rounds: int) -> xgb.Booster:
    """The same with XGBoost."""
    data, watched = (
        xgb.QuantileDMatrix(X, y) if i == 0 else xgb.DMatrix(X, y) for i, (X, y, _) in enumerate((train, valid))
    )
    data.set_group(train[2])
    watched.set_group(valid[2])
    params = {**XGBOOST, "seed": seed, "eval_metric": "ndcg@10"} | ({} if term else {"objective": "rank:ndcg"})
    if isinstance(term, lo.QueryRMSE):
        params["min_child_weight"] = 20  # its Hessian is 1 a row: as LightGBM's min_data_in_leaf
    stop = xgb.callback.EarlyStopping(rounds=100, save_best=True, maximize=True)
    return xgb.train(
        params, data, rounds, evals=[(watched, "valid")], obj=lo.Objective(term) if term else None,
        callbacks=[stop], verbose_eval=False,
    )  # fmt: skip


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="+", required=True)
    parser.add_argument("--valid", nargs="+")
    parser.add_argument("--test", nargs="+", required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=1000)
    options = parser.parse_args()
    files = {name: load(getattr(options, name)) for name in ("train", "valid", "test") if getattr(options, name)}
    width = max(X.shape[1] for X, _, _ in files.values())
    files = {name: load(getattr(options, name), width) for name in files}
    _, y, group = files["test"]
    relevant = np.add.reduceat(y, np.cumsum(group) - group) > 0
    test = part_of(files["test"], relevant)
    found: dict[str, list[float]] = {name: [] for name in OBJECTIVES}
    for seed in range(options.seeds):
        train, valid = files["train"], files.get("valid")
        if valid is None:
            held = np.random.default_rng(seed).permutation(len(train[2])) % 5 == 0
            train, valid = part_of(train, ~held), part_of(train, held)
        for name, (booster, term) in OBJECTIVES.items():
            if booster == "LightGBM":
                scores = train_lightgbm(term, train, valid, seed, options.rounds).predict(test[0])
            else:
                model = train_xgboost(term, train, valid, seed, options.rounds)
                scores = model.predict(xgb.DMatrix(test[0]), output_margin=True)
            found[name].append(lo.NDCG(10)(scores, test[1], group=test[2]))
            print(f"seed {seed}: {name} {found[name][-1]:.4f}", file=sys.stderr)
    print("| objective | NDCG@10 | standard deviation over seeds |")
    print("|---|---|---|")
    for name, values in found.items():
        print(f"| {name} | {np.mean(values):.4f} | {np.std(values, ddof=1):.4f} |")


if __name__ == "__main__":
    main()
