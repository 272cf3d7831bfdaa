"""What users are told without being stopped."""

from __future__ import annotations

import os
import sys
import warnings

HERE = os.path.join(os.path.dirname(__file__), "")


class LambdaObjectivesWarning(UserWarning):
    """A setting or a piece of data that does not do what it seems to.

    Examples
    --------
    >>> import warnings, lambda_objectives as lo
    >>> warnings.simplefilter("error", lo.LambdaObjectivesWarning)  # stop at the first one
    >>> warnings.simplefilter("default", lo.LambdaObjectivesWarning)
    """


def warn(message: str) -> None:
    """Warn, pointing at the first caller outside this package."""
    depth, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
        depth += 1
    if "distributed" in sys.modules:  # within a task the client is told as well
        import distributed

        distributed.warn(message, LambdaObjectivesWarning, stacklevel=depth + 1)
    else:
        warnings.warn(message, LambdaObjectivesWarning, stacklevel=depth)


def warn_small_hessian(setting: str, value: float, total: float, rows: int) -> None:
    """Warn where a leaf's least sum of Hessians keeps trees from splitting: ranking Hessians are far below 1 a row."""
    if total > 0 and value > 0.01 * total:
        warn(
            f"{setting}={value:g} acts on the Hessians, which sum to {total:.3g} over {rows} rows here: a leaf must "
            f"hold {min(1.0, value / total):.0%} of that, so trees stay small; set {setting}=1e-3 or less"
        )
