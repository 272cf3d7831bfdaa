"""Small ranking data for the tests of both boosters, and what each way into a booster has to show."""

import dataclasses

import numpy as np

import lambda_objectives as lo

SPEC = lo.LambdaRank(lo.NDCG(10))


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """Queries of 6 to 16 rows; every array is read-only, so whoever writes into one is caught.

    Labels are grades from 0 to 4 and `quality` is 0 or 1; both can be learnt from X. `place` is the number of the row
    as a part of all; it is also the last feature, so that a model trained on it shows whether rows were mixed up.
    """

    X: np.ndarray
    y: np.ndarray
    group: np.ndarray
    columns: dict

    @classmethod
    def random(cls, queries, seed):
        rng = np.random.default_rng(seed)
        group = rng.integers(6, 17, queries)
        n = group.sum()
        X = rng.normal(size=(n, 5))
        X[:, 4] = (np.arange(n) + 0.5) / n
        useful = X[:, 0] + 0.7 * np.tanh(2 * X[:, 1]) + 0.4 * X[:, 0] * X[:, 2] + 0.6 * rng.normal(size=n)
        y = np.digitize(useful, [0.0, 0.9, 1.7, 2.5]).astype(float)
        quality = (X[:, 3] - 0.4 * X[:, 0] + 0.5 * rng.normal(size=n) > 0.6).astype(float)
        columns = {"quality": quality, "place": X[:, 4].copy()}
        for array in (X, y, group, *columns.values()):
            array.flags.writeable = False
        return cls(X, y, group, columns)

    def __len__(self):
        return len(self.y)

    @property
    def qid(self):
        return np.repeat(np.arange(len(self.group)), self.group)

    @property
    def query_weights(self):
        return 0.5 + np.arange(len(self.group)) % 3

    def part(self, rows):
        """Some of the queries, whole, in the order of the rows given."""
        borders = np.flatnonzero(np.diff(self.qid[rows], prepend=-1, append=-1))
        group = np.diff(borders)
        return Table(self.X[rows], self.y[rows], group, {name: values[rows] for name, values in self.columns.items()})

    def ndcg(self, scores):
        return lo.NDCG(10)(scores, self.y, group=self.group)

    def evaluate(self, scores, spec=SPEC, weights=None):
        return lo.evaluate(spec, scores, self.y, group=self.group, weights=weights, columns=self.columns)

    def assert_ranked_well(self, scores, own):
        """Near the NDCG@10 of 0.9 that the booster's own objective reaches; scores at random reach 0.54."""
        assert self.ndcg(scores) > max(own - 0.04, 0.8)

    def assert_history(self, history, staged, spec=SPEC, weights=None):
        """One entry for each round's scores, of all that `evaluate` knows, and equal to it."""
        wanted = [self.evaluate(scores, spec, weights) for scores in staged]
        assert history.keys() == wanted[0].keys()
        for name, values in history.items():
            np.testing.assert_allclose(values, [entry[name] for entry in wanted], rtol=1e-5, err_msg=name)


TRAIN, TEST = Table.random(90, seed=1), Table.random(60, seed=2)


def letor(X, y, group):
    """Rows as a LETOR file has them, features numbered from 1, queries from 0."""
    qid = np.repeat(np.arange(len(group)), group)
    return "".join(
        f"{label:.0f} qid:{query} " + " ".join(f"{j}:{value:.5f}" for j, value in enumerate(row, 1)) + "\n"
        for row, label, query in zip(X, y, qid, strict=True)
    )
