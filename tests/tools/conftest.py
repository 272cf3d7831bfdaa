"""Reports of trainings on simulated files, for the tests of what they say and of how they look."""

import numpy as np
import pytest

import lambda_objectives as lo
from lambda_objectives.__main__ import main
from tests.data import letor


def shop_file(queries, seed):
    """A shop's queries, of a few products each; feature 19 is an attribute that is 0 or 1, feature 20 the price."""
    shop = lo.datasets.product_search(queries, seed, products=8)
    return letor(np.column_stack([shop.X, shop.columns["t2"], shop.columns["price"]]), shop.y, shop.group)


@pytest.fixture(scope="session")
def reports(tmp_path_factory):
    """Folders of trainings with a report, by booster and whether there are constraints, made when they are wanted."""
    folder = tmp_path_factory.mktemp("reports")
    arguments = []
    for seed, role in enumerate(("train", "valid", "test")):
        path = folder / f"{role} & more.txt"
        path.write_text(shop_file(200, seed))
        arguments += [f"--{role}", str(path)]
    made = {}

    def of(kind):
        if kind not in made:
            booster, bounded = kind
            out = folder / f"{booster}{bounded:d}"
            more = ["--label", "t2=19"]
            if bounded:
                more += ["--label", "cheap=-20", "--constrain", "t2<=0.9*baseline", "--constrain", "cheap>=0.3"]
            few = ["--rounds", "20", "--early-stopping", "0", "--param", "learning_rate=0.1"]
            assert main(["train", *arguments, "--booster", booster, *few, "--out", str(out), "--report", *more]) == 0
            made[kind] = out
        return made[kind]

    return of
