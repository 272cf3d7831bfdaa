"""Training under constraints, `--constrain "quality<=0.9*baseline"`: a baseline first, then the model."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lambda_objectives as lo
from lambda_objectives.tools.console import UserError, explained
from lambda_objectives.tools.files import Ranked
from lambda_objectives.tools.labels import measure_labels, varied
from lambda_objectives.tools.scoring import reported
from lambda_objectives.tools.settings import BOOSTING, Settings
from lambda_objectives.tools.training import Goal, Trained, train

FORMS = "quality<=0.9*baseline or quality<=1.35 for its cost, quality>=1.02*baseline or quality>=0.61 for its metric"
LEAST = 50  # rounds of a constrained training, if the baseline took so many: multipliers need time


@dataclass(frozen=True)
class Bound:
    """What the user asks of a label.

    Attributes
    ----------
    label
        Its name.
    number
        The bound, or the share of the baseline's value that is the bound.
    at_least
        A bound on the metric, from below; else on the cost, from above.
    relative
        Whether the number is a share of the baseline's.
    """

    label: str
    number: float
    at_least: bool
    relative: bool

    @property
    def text(self) -> str:
        """As the user may write it."""
        return f"{self.label}{'>=' if self.at_least else '<='}{self.number:g}{'*baseline' if self.relative else ''}"


@dataclass(frozen=True)
class Wanted:
    """All that is asked of a constrained training.

    Attributes
    ----------
    bounds
        One for each constrained label.
    update, mu, start, land
        As `AugmentedLagrangian` takes them.
    tolerance
        Share of a bound by which it may be broken.
    judge
        "train" or "valid": the data on which bounds have to be kept.
    """

    bounds: Sequence[Bound]
    update: str = "auto"
    mu: float | None = None
    start: float | None = None
    land: float | None = None
    tolerance: float = 0.0
    judge: str = "train"


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of it.

    Attributes
    ----------
    wanted
        What was asked.
    baseline, model
        The trainings without and with constraints.
    spec
        What the model was trained on, all bounds in numbers: those of the data that they are judged on.
    values
        What is bounded at the returned models: by data set, by label, (baseline, model).
    bounds
        Bounds as numbers: by data set, by label; a share of the baseline's is one of its value on that data set.
    metrics
        Of both: by "baseline" and "constrained", by data set, by label, by metric.
    """

    wanted: Wanted
    baseline: Trained
    model: Trained
    spec: lo.AugmentedLagrangian
    values: dict[str, dict[str, tuple[float, float]]]
    bounds: dict[str, dict[str, float]]
    metrics: dict[str, dict[str, dict[str, dict[str, float]]]]

    def margin(self, bound: Bound, role: str, value: float | None = None) -> float:
        """(b - C) / |b| on a data set, at the returned model or at another value; below 0 where the bound is broken."""
        if value is None:
            value = self.values[role][bound.label][1]
        number = self.bounds[role][bound.label]
        left = value - number if bound.at_least else number - value
        return left / (abs(number) or abs(value) or 1.0)

    def met(self, bound: Bound) -> bool:
        """Whether a bound is kept on the data that it is judged on."""
        return self.margin(bound, self.wanted.judge) >= -self.wanted.tolerance

    @property
    def feasible(self) -> bool:
        """Whether all bounds are kept on the data that they are judged on."""
        return all(map(self.met, self.wanted.bounds))


def parse_bounds(words: Sequence[str], labels: Collection[str]) -> list[Bound]:
    """Read bounds on the labels there are.

    Raises
    ------
    UserError
        For another form, an unknown label, and for two bounds on one label.

    Examples
    --------
    >>> from lambda_objectives.tools.constrained import parse_bounds
    >>> parse_bounds(["quality <= 0.9*baseline"], ["quality"])
    [Bound(label='quality', number=0.9, at_least=False, relative=True)]
    """
    bounds: list[Bound] = []
    for word in words:
        bound = _parsed(word)
        if bound.label not in labels:
            there = f"there are {', '.join(labels)}" if labels else "there is none"
            raise UserError(
                f"--constrain {word!r}: unknown label {bound.label!r}: {there}; --label {bound.label}=NUMBER makes one "
                "of a feature"
            )
        if bound.label in [other.label for other in bounds]:
            raise UserError(f"--constrain {word!r}: there is another bound on {bound.label!r}: give each label one")
        bounds.append(bound)
    return bounds


def _parsed(word: str) -> Bound:
    number = r"[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
    pattern = rf"\s*([A-Za-z][A-Za-z0-9_-]*)\s*([<>=]+)\s*({number})\s*(\*\s*baseline)?\s*"
    found = re.fullmatch(pattern, word)
    if found is None:
        raise UserError(f"--constrain {word!r}: not a bound; a bound is {FORMS}")
    name, sign, value, relative = found[1], found[2], float(found[3]), found[4] is not None
    if sign not in ("<=", ">="):
        meant = {"<": "<=", "=<": "<=", ">": ">=", "=>": ">="}.get(sign)
        hint = f"write {name}{meant}{found[3]}{'*baseline' if relative else ''}" if meant else f"a bound is {FORMS}"
        raise UserError(f"--constrain {word!r}: {sign} is not understood, <= and >= are; {hint}")
    if not (value > 0 and np.isfinite(value)):
        raise UserError(f"--constrain {word!r}: a number above 0 is wanted, found {found[3]}")
    return Bound(name, value, at_least=sign == ">=", relative=relative)


def run(settings: Settings, wanted: Wanted, data: Mapping[str, Ranked]) -> Outcome:
    """Train the baseline and then the model that keeps to the bounds.

    With ``judge="train"`` the model has as many rounds as the baseline kept, 50 at the least if so many were trained,
    and the best of those that keep to the bounds by the trained metric on the training data is returned: early stopping
    there would wait forever. With ``judge="valid"`` multipliers follow the validation data, and land as if there were
    as many rounds, but it may have all of them: early stopping chooses by the validation data.

    Raises
    ------
    UserError
        For labels that no ranking can change, bounds out of reach, and all that a booster refuses.
    """
    if "dart" in (settings.params.get(name) for name in ("booster", *BOOSTING)):
        raise UserError("with dart no earlier round is to be had, for its trees change later: no --constrain with it")
    judge = wanted.judge
    for bound in wanted.bounds:
        for role in dict.fromkeys(("train", judge)):
            if not varied(data[role], bound.label):
                raise UserError(
                    f"--constrain {bound.text}: no query of {data[role].path} has two different grades of "
                    f"{bound.label!r}, so that no ranking can change it; take another feature"
                )
    terms = {bound.label: settings.bounded(bound.label, bound.at_least) for bound in wanted.bounds}
    # options are refused before the work, not after it
    _spec(settings, wanted, [lo.Constraint(terms[bound.label], 1.0, bound.label) for bound in wanted.bounds])
    baseline = train(settings, data, what=f"baseline, {settings.booster}")
    scores = {role: baseline.model.scores(part.X) for role, part in data.items()}
    before = {role: _values(wanted, terms, scores[role], part) for role, part in data.items()}
    constraints = [
        _constraint(bound, terms[bound.label], before[judge][bound.label], data[judge]) for bound in wanted.bounds
    ]
    rounds = max(baseline.best_round, min(LEAST, len(baseline.curves["train"])))
    spec = _spec(settings, wanted, constraints, rounds)
    if judge == "train":
        goal = Goal(spec, "train", rounds, wanted.tolerance)
        settings = dataclasses.replace(settings, rounds=rounds)
    else:
        goal = Goal(spec, "valid", settings.early_stopping or settings.rounds, wanted.tolerance)
    model = train(settings, data, goal, what=f"constrained, {settings.booster}")
    after = {role: model.model.scores(part.X) for role, part in data.items()}
    values, bounds = {}, {}
    for role, part in data.items():
        now = _values(wanted, terms, after[role], part)
        values[role] = {name: (value, now[name]) for name, value in before[role].items()}
        bounds[role] = {bound.label: _number(bound, before[role][bound.label]) for bound in wanted.bounds}
    metrics = {
        what: {role: measure_labels(reported(settings.metric), at[role], part) for role, part in data.items()}
        for what, at in (("baseline", scores), ("constrained", after))
    }
    return Outcome(wanted, baseline, model, spec, values, bounds, metrics)


def _spec(
    settings: Settings, wanted: Wanted, constraints: Sequence[lo.Constraint], rounds: int | None = None
) -> lo.AugmentedLagrangian:
    with explained():
        return lo.AugmentedLagrangian(
            settings.term, constraints, wanted.update, wanted.mu, start=wanted.start, land=wanted.land, rounds=rounds,
            follow=wanted.judge,
        )  # fmt: skip


def reading(bound: Bound, term: Any) -> str:
    """Under which name histories have what is bounded."""
    return term.name if bound.at_least else f"cost/{term.name}"


def _values(wanted: Wanted, terms: Mapping[str, Any], scores: Any, part: Ranked) -> dict[str, float]:
    """What is bounded, by label."""
    return {
        bound.label: lo.evaluate(terms[bound.label], scores, part.y, group=part.group, columns=part.labels)[
            reading(bound, terms[bound.label])
        ]
        for bound in wanted.bounds
    }


def _number(bound: Bound, baseline: float) -> float:
    """A bound as a number, where the baseline has this value."""
    return bound.number * baseline if bound.relative else bound.number


def _constraint(bound: Bound, term: Any, baseline: float, part: Ranked) -> lo.Constraint:
    """The constraint with its bound as a number."""
    number = _number(bound, baseline)
    if not bound.at_least:
        return lo.Constraint(term, number, bound.label)
    name = term.metric.name
    if not number:
        raise UserError(
            f"--constrain {bound.text}: the baseline's {name} of {bound.label!r} on {part.path} is 0, and every share "
            f"of it; give a number, as in {bound.label}>=0.1"
        )
    column = part.labels[bound.label]
    most = float(term.metric(column, column, group=part.group))
    if number > most:
        of = f", {bound.number:g} times the baseline's {baseline:.4f}," if bound.relative else ""
        raise UserError(
            f"--constrain {bound.text}: {name} of {number:.4f}{of} is out of reach: the best ranking there is has "
            f"{most:.4f} on {part.path}"
        )
    return lo.Constraint(term, name=bound.label, at_least=number)
