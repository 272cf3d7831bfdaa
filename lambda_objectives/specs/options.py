"""What options of specs may be; their numbers become plain ones, which a saved state can hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from lambda_objectives.arrays import brief, whole_number
from lambda_objectives.metrics import check_number


def weights_from_0(name: str, values: Any, count: int, of: str) -> tuple[float, ...]:
    """Read one number from 0 for each of so many terms, controls ..."""
    try:
        weights = tuple(values)
    except TypeError:
        raise ValueError(f"{name} must be one number for each {of}, found {brief(values)}: write a list") from None
    if len(weights) != count:
        raise ValueError(f"{name}: one for each {of} wanted, found {len(weights)} for {count} {of}s")
    for i, weight in enumerate(weights):
        check_number(f"{name}[{i}]", weight)
        if weight < 0:
            raise ValueError(f"{name}[{i}] must not be negative, found {weight!r}; 0 leaves the {of} out")
    return tuple(float(weight) for weight in weights)


def check_mu(spec: Any) -> None:
    """Read mu of an `AugmentedLagrangian`, and what depends on it."""
    given: Any = spec.mu
    if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1):
        mus = tuple(given)
        object.__setattr__(spec, "mu", mus)
        if len(mus) != len(spec.constraints):
            raise ValueError(
                f"mu: one for each constraint wanted, found {len(mus)} for {len(spec.constraints)} constraints"
            )
    for mu in spec.mus if spec.mu is not None else ():
        check_number("mu", mu, above=0.0)
    if spec.mu is not None:
        plain = tuple(map(float, spec.mu)) if isinstance(spec.mu, tuple) else float(spec.mu)
        object.__setattr__(spec, "mu", plain)
    check_number("growth", spec.growth, above=0.0)
    object.__setattr__(spec, "growth", float(spec.growth))
    if spec.scale == "sum":
        if spec.mu is None:
            raise ValueError(
                "mu: with scale='sum' violations are sums over the queries, so that no mu suits all data: give one"
            )
        for constraint in spec.constraints:
            if constraint.scale is not None:
                raise ValueError(
                    f"scale: constraint {constraint.label!r} has a scale, which scale='sum' makes no use of"
                )


def check_options(spec: Any) -> None:
    """Read the other options of an `AugmentedLagrangian`."""
    if spec.update == "auto":
        if spec.growth != 1.0:
            raise ValueError(f"growth belongs to update='carry' and 'reset', found {spec.growth!r} beside 'auto'")
        if spec.scale == "sum":
            raise ValueError("scale='sum' belongs to update='carry' and 'reset': choose one of them")
    elif spec.land is not None:
        raise ValueError(f"land belongs to update='auto', found {spec.land!r} beside {spec.update!r}")
    for name in ("kappa", "tighten", "start", "land"):
        value = getattr(spec, name)
        if value is not None:
            check_number(name, value)
            if value < 0:
                raise ValueError(f"{name} must not be negative, found {value!r}")
            # NumPy's numbers are not those of a saved state
            whole = name in ("start", "land") and value >= 1 and value == int(value)
            object.__setattr__(spec, name, int(value) if whole else float(value))
    if spec.rounds is not None:
        object.__setattr__(spec, "rounds", whole_number("rounds", spec.rounds, at_least=1))
    if spec.tighten is not None and spec.tighten >= 1:
        raise ValueError(f"tighten must be a share below 1, found {spec.tighten!r}")
    for name in ("start", "land"):
        value = getattr(spec, name)
        if value is not None and value > 1 and value != int(value):
            raise ValueError(f"{name} must be a whole number of rounds, or a share of them below 1, found {value!r}")
    start, land = spec.start, spec.land
    if start is not None and land is not None and (start < 1) == (land < 1) and land < start:
        raise ValueError(f"land must not come before start, found {land!r} and {start!r}")
    if not isinstance(spec.normalise, bool | np.bool_):
        raise ValueError(f"normalise must be True or False, found {spec.normalise!r}")
    object.__setattr__(spec, "normalise", bool(spec.normalise))
