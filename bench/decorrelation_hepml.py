"""hep_ml's flatness losses for bench.decorrelation, which runs this file with a Python that has hep_ml 0.8.

python decorrelation_hepml.py IN.npz OUT.npy SETTINGS, which are JSON
"""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
from hep_ml.gradientboosting import UGradientBoostingClassifier
from hep_ml.losses import BinFlatnessLossFunction, KnnFlatnessLossFunction


def main() -> None:
    """Train on one half, write the log odds of the other.

    Twice the score, as the loss is the exponential one, and the label's own, as it lets both classes weigh the same.
    """
    source, target, settings = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    arrays = np.load(source)
    features = [f"feature {i}" for i in range(arrays["X"].shape[1])]
    controls = [f"control {i}" for i in range(arrays["controls"].shape[1])]
    train = pd.DataFrame(np.column_stack([arrays["X"], arrays["controls"]]), columns=features + controls)
    flat = dict(uniform_features=controls, uniform_label=settings["labels"], fl_coefficient=settings["coefficient"])
    if settings["groups"] == "bins":
        loss = BinFlatnessLossFunction(**flat)
    else:
        loss = KnnFlatnessLossFunction(**flat, max_groups=settings["max_groups"], random_state=settings["seed"])
    model = UGradientBoostingClassifier(
        loss=loss, n_estimators=settings["rounds"], learning_rate=settings["rate"], max_leaf_nodes=settings["leaves"],
        max_depth=None, min_samples_leaf=settings["rows_a_leaf"], train_features=features,
        random_state=settings["seed"],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's, of names of features
        model.fit(train, arrays["y"].astype(int))
    scores = model.decision_function(pd.DataFrame(arrays["held_out"], columns=features))
    positive = arrays["y"].mean()
    np.save(target, 2 * scores + np.log(positive / (1 - positive)))


if __name__ == "__main__":
    main()
