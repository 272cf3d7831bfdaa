"""Who is calling an objective: which booster, and for how many rounds. Boosters do not say so themselves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from lambda_objectives.warn import HERE

BOOSTERS = ("lightgbm", "xgboost")


def adapters() -> list[ModuleType]:
    """The adapters of the boosters that are loaded; no other can have made a data set."""
    return [import_module(f"lambda_objectives.{name}") for name in BOOSTERS if name in sys.modules]


def adapter_of(data: Any) -> ModuleType | None:
    """The module that reads a data set, or None for arrays."""
    return next((adapter for adapter in adapters() if adapter.owns(data)), None)


def booster_above(kind: type) -> tuple[Any, str]:
    """The booster that is calling, found as `self` of a method on the stack, or None when called by hand.

    Neither booster hands itself to an objective, yet its identity is the one sure sign of a new training, and XGBoost
    shows its parameters nowhere else.

    Returns
    -------
    The booster, and the name of its method if that calls this package itself, with nothing of the user's between.
    """
    frame: Any = sys._getframe(2)
    between = 0
    for _ in range(10):
        if frame is None:
            break
        caller = frame.f_locals.get("self")
        if isinstance(caller, kind):
            return caller, "" if between else frame.f_code.co_name
        between += not frame.f_code.co_filename.startswith(HERE)
        frame = frame.f_back
    return None, ""


def data_above(owns: Callable[[Any], bool]) -> Any:
    """The data set that an estimator keeps to itself, found in its wrapper on the stack; None if there is none."""
    frame: Any = sys._getframe(2)
    for _ in range(6):
        if frame is None:
            return None
        for name in ("dataset", "dmatrix"):
            if owns(data := frame.f_locals.get(name)):
                return data
        frame = frame.f_back
    return None


def planned_rounds(begun: int) -> int | None:
    """How many rounds a training will have, those before it included: what `train` or `cv` above on the stack was told.

    A booster driven by hand says nothing of it; then it is None.
    """
    rounds = told("num_boost_round")
    return None if rounds is None else begun + int(rounds)


def told(name: str) -> Any:
    """What `train` or `cv` above on the stack was given as an argument; None where neither is there."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") in ("lightgbm.engine", "xgboost.training"):
            return frame.f_locals.get(name)
        frame = frame.f_back
    return None
