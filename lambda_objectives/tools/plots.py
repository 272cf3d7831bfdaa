"""Pictures of trainings and models. Every function takes a matplotlib Axes and returns it.

Legends that could hide a line stand outside the axes: make figures with ``layout="constrained"``, which leaves room.
"""

from lambda_objectives.tools.plots_bins import calibration
from lambda_objectives.tools.plots_bounds import constraints, costs_and_bounds, multipliers
from lambda_objectives.tools.plots_bounds import save_constraints as save_constraints
from lambda_objectives.tools.plots_models import cost_line, front, tradeoff
from lambda_objectives.tools.plots_rounds import learning_curve
from lambda_objectives.tools.plots_rounds import save_learning_curve as save_learning_curve

__all__ = [
    "calibration",
    "constraints",
    "cost_line",
    "costs_and_bounds",
    "front",
    "learning_curve",
    "multipliers",
    "tradeoff",
]
