"""A strategy that draws only easy data makes every test that uses it worthless."""

import numpy as np
from hypothesis import HealthCheck, given, settings

from tests.oracles import queries_of
from tests.strategies import ranked_data


def test_drawn_data_are_varied():
    seen = set()

    @settings(max_examples=300, database=None, suppress_health_check=list(HealthCheck))
    @given(ranked_data())
    def draw(data):
        scores, labels, sizes = data
        assert len(scores) == len(labels) == sizes.sum()
        for q in queries_of(sizes):
            s, y = scores[q], labels[q]
            seen.add("single row" if len(s) == 1 else "more rows")
            seen.add("one label" if np.ptp(y) == 0 else "labels differ")
            seen.add("no relevant row" if y.max() == 0 else "relevant row")
            if len(s) > 2:
                seen.add("ties" if len(set(s)) < len(s) else "all scores differ")
                seen.add("all equal" if np.ptp(s) == 0 else "scores differ")
                seen.add("far apart" if np.ptp(s) > 1e3 else "near")

    draw()
    assert len(seen) == 12
