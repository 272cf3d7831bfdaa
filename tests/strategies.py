"""Random data sets for hypothesis; test_strategies.py makes sure that they are as varied as they claim."""

import numpy as np
from hypothesis import strategies as st

SCALES = (0.0, 1e-3, 1.0, 30.0, 1e4)  # of the scores: all equal, nearly equal, usual, wide, beyond single precision


@st.composite
def ranked_data(draw, max_queries=6, max_rows=24, grades=5):
    """Scores, labels and sizes of a few ragged queries, with ties and with queries that have a single label."""
    sizes = draw(st.lists(st.integers(1, max_rows), min_size=1, max_size=max_queries))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = sum(sizes)
    scores = rng.normal(size=n) * draw(st.sampled_from(SCALES))
    if draw(st.booleans()):
        scores = np.round(scores * 2) / 2  # ties
    labels = rng.integers(0, draw(st.integers(1, grades)), n).astype(float)
    if draw(st.booleans()):
        labels[: sizes[0]] = labels[0]
    return scores, labels, np.array(sizes)
